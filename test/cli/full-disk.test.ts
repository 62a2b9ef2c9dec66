// A disk that is full where standard output goes: a command says that its output is not complete, and a server goes on.

import { expect, test } from 'bun:test'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { ask } from '../support/ask.ts'

const BIN = join(import.meta.dir, '../../bin/localtunnels.ts')
const FULL = '/dev/full'

/** Standard output goes to a disk without space. */
function full(args: readonly string[]) {
  const env = { ...process.env, NO_COLOR: '1' }
  return Bun.spawn(['bun', BIN, ...args], { env, stdin: 'ignore', stdout: Bun.file(FULL), stderr: 'pipe' })
}

test.skipIf(!existsSync(FULL))('a command fails (skipped where there is no /dev/full)', async () => {
  const child = full(['config', 'schema'])
  expect(await child.stderr.text()).toStartWith('error STORE_FAILED: ')
  expect(await child.exited).toBe(1)
})

test.skipIf(!existsSync(FULL))('a server goes on (skipped where there is no /dev/full)', async () => {
  const child = full(['server', '--host', '127.0.0.1', '--port', '0'])
  const decoder = new TextDecoder()
  let text = ''
  let isAsked = false
  for await (const bytes of child.stderr) {
    text += decoder.decode(bytes, { stream: true })
    const port = /listening on port (\d+)/.exec(text)?.[1]
    if (port === undefined || isAsked) continue
    isAsked = true
    expect((await ask(Number(port), 'localhost', { path: '/health' })).status).toBe(200)
    child.kill('SIGTERM')
  }
  expect(text).toContain('\nerror STORE_FAILED: ')
  expect(await child.exited).toBe(1)
})
