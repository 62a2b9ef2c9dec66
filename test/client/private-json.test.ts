// Files with secrets of a client: what counts as one, for resume secrets and guards alike.

import { expect, test } from 'bun:test'
import { chmod, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { readGuard } from '../../src/client/tunnels/guard-files.ts'
import { readPrivate, writePrivate } from '../../src/client/tunnels/private-json.ts'
import { folder, run } from '../support/programs.ts'
import { within } from '../support/within.ts'

test('what this user wrote is read; what others may read, no JSON and no file are not', async () => {
  await using dir = await folder('private')
  const path = join(dir.path, 'below', 'a.json')
  await writePrivate(path, { a: 1 })
  expect(await readPrivate(path)).toEqual({ a: 1 })
  await chmod(path, 0o644)
  expect(await readPrivate(path)).toBeUndefined()
  await writeFile(path, '{', { mode: 0o600 })
  await chmod(path, 0o600)
  expect(await readPrivate(path)).toBeUndefined()
  expect(await readPrivate(dir.path)).toBeUndefined()
  expect(await readPrivate(join(dir.path, 'none'))).toBeUndefined()
})

test('a FIFO in place of a guard is not waited for', async () => {
  await using dir = await folder('private')
  const path = join(dir.path, 'fifo.json')
  expect(await run(['mkfifo', '-m', '600', path], { PATH: process.env.PATH ?? '' })).toMatchObject({
    code: 0,
  })
  expect(await within(readGuard(path), 'the guard')).toBeUndefined()
})
