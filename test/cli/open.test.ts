// Opening a browser: which program gets what, and what is never opened.

import { expect, test } from 'bun:test'
import { chmod, mkdir, mkdtemp, rm, stat, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openInBrowser, openPrivately } from '../../src/cli/terminal/open.ts'
import { rejection } from '../support/rejection.ts'
import { start } from './bin.ts'

test.each(['javascript:alert(1)', 'file:///etc/passwd', '--version', ''])('%p is never opened', async url => {
  expect(await openInBrowser(url, process.platform)).toBe(false)
})

test.skipIf(process.platform !== 'linux')('--open hands the URL to xdg-open as one argument', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'localtunnels-'))
  // The folder is the whole PATH: no browser of the developer's can open.
  const pipe = join(folder, 'opened')
  await Bun.spawn(['mkfifo', pipe]).exited
  await Bun.write(join(folder, 'xdg-open'), `#!/bin/sh\necho "$#:$1" > ${pipe}\n`)
  await chmod(join(folder, 'xdg-open'), 0o755)
  await symlink(process.execPath, join(folder, 'bun'))
  await using run = start(['--open', '--subdomain', 'calm-otter'], { PATH: folder })
  // Reading a named pipe waits for its writer.
  const opened = await new Response(Bun.spawn(['cat', pipe]).stdout).text()
  expect(opened).toMatch(/^1:http:\/\/calm-otter\.localhost:\d+\/\n$/)
  run.kill('SIGTERM')
  expect(await run.exited).toBe(0)
  await rm(folder, { recursive: true })
})

test('a machine without an opener is told in one line', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'localtunnels-'))
  await symlink(process.execPath, join(folder, 'bun'))
  await using run = start(['--open'], { PATH: folder })
  await run.printed(/The browser was not opened/)
  await rm(folder, { recursive: true })
})

test('a secret URL is written to a folder that may not be there yet, and the error says what is wrong with it', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'localtunnels-'))
  const open = (at: string) => openPrivately('http://localhost/#secret', at, { DISPLAY: ':9' }, 'aix')
  const path = process.env.PATH
  // No browser of the developer's opens.
  process.env.PATH = folder
  try {
    expect(await open(join(folder, 'a', 'b'))).toBe(false)
    expect((await stat(join(folder, 'a', 'b', 'open.html'))).mode & 0o777).toBe(0o600)
    expect((await stat(join(folder, 'a', 'b'))).mode & 0o777).toBe(0o700)
    await Bun.write(join(folder, 'file'), '')
    await mkdir(join(folder, 'taken', 'open.html'), { recursive: true })
    for (const name of ['file', 'taken']) {
      const error = await rejection(open(join(folder, name)))
      expect(error).toMatchObject({ code: 'STORE_FAILED' })
      expect(String(error)).toContain(folder)
      expect(String(error)).toEndWith('or open the link yourself.')
      expect(String(error)).not.toContain('secret')
    }
  } finally {
    process.env.PATH = path
    await rm(folder, { recursive: true })
  }
})
