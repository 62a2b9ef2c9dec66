// What `localtunnels 3000` loads: its start and its memory grow with every byte of code, so optional parts stay out.

import { expect, test } from 'bun:test'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { startServer } from '../support/tunnel.ts'

const root = resolve(import.meta.dir, '../..')
/** Source text, comments included; a fifth more than today. What is beyond is loaded when it is first used. */
const MAX_BYTES = 1_000_000

/** The modules of ours that a command loads until it prints the pattern, by their paths below `src`. */
async function loadedBy(args: readonly string[], pattern: RegExp): Promise<readonly string[]> {
  const folder = await mkdtemp(join(tmpdir(), 'localtunnels-modules-'))
  const { PATH = '', HOME = '' } = process.env
  const LOADED = join(folder, 'loaded')
  const nowhere = '/dev/null/localtunnels-tests'
  const child = Bun.spawn({
    cmd: ['bun', '--preload', join(root, 'test/support/record-modules.ts'), 'bin/localtunnels.ts', ...args],
    cwd: root,
    env: { PATH, HOME, LOADED, XDG_CONFIG_HOME: nowhere, XDG_STATE_HOME: nowhere },
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'inherit',
  })
  try {
    const decoder = new TextDecoder()
    const reader = child.stdout.getReader()
    for (let text = ''; !pattern.test(text); ) {
      const { value, done } = await reader.read()
      if (done) throw new Error(`${pattern} never came:\n${text}`)
      text += decoder.decode(value, { stream: true })
    }
    const paths = (await readFile(LOADED, 'utf8').catch(() => '')).trim().split('\n')
    return [...new Set(paths)].map(path => path.replace(`${root}/src/`, ''))
  } finally {
    child.kill('SIGKILL')
    await child.exited
    await rm(folder, { recursive: true })
  }
}

const OPTIONAL =
  /^(?:server\/|certificates|http2\/|plugins\/|stores?\/|cli\/commands\/(?!share\b)|config\/(?!fault\.|port-range\.|quantity\.|target\.)|cli\/(?:dev-server|qr|open|clipboard|secret-input)\.|client\/carriers\/ws\.|sockets\/node)/

test('`localtunnels 3000` loads no optional part', async () => {
  await using server = await startServer()
  const loaded = await loadedBy(['3000', '--server', `http://127.0.0.1:${server.port}`], /^http:\S+$/m)
  expect(loaded).toContain('client/client.ts')
  expect(loaded.filter(path => OPTIONAL.test(path))).toEqual([])
  const bytes = loaded.reduce((sum, path) => sum + Bun.file(join(root, 'src', path)).size, 0)
  expect(bytes).toBeLessThan(MAX_BYTES)
})

test('`--version` loads nothing but the version', async () => {
  expect(await loadedBy(['--version'], /\d\.\d/)).toEqual(['version.ts'])
})

test('`--help` loads no end of a tunnel', async () => {
  const loaded = await loadedBy(['--help'], /Usage:/)
  expect(
    loaded.filter(path => OPTIONAL.test(path) || /^(?:session|sockets|accelerator)\//.test(path)),
  ).toEqual([])
})
