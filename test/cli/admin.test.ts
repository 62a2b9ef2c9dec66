// `localtunnels server --admin` and `localtunnels admin …` as an operator uses them: real processes, and every wrong word.

import { afterAll, expect, test } from 'bun:test'
import { existsSync } from 'node:fs'
import { chmod, mkdtemp, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { start, startOnTerminal } from './bin.ts'

const bin = join(import.meta.dir, '../../bin/localtunnels.ts')
const state = await mkdtemp(join(tmpdir(), 'localtunnels-admin-cli-'))
const env = { ...process.env, XDG_STATE_HOME: state, NO_COLOR: '1' }
afterAll(() => rm(state, { recursive: true }))

async function run(...words: readonly string[]): Promise<{ out: string; err: string; code: number }> {
  const program = Bun.spawn(['bun', bin, 'admin', ...words], { env, stdout: 'pipe', stderr: 'pipe' })
  const [out, err] = await Promise.all([
    new Response(program.stdout).text(),
    new Response(program.stderr).text(),
  ])
  return { out, err, code: await program.exited }
}

test('the commands find the server that this user started, and act on it', async () => {
  const server = Bun.spawn(
    ['bun', bin, 'server', '--port', '0', '--host', '127.0.0.1', '--admin', '127.0.0.1:0', '--json'],
    { env, stdout: 'pipe', stderr: 'ignore' },
  )
  try {
    let text = ''
    // Read on: a server whose reader leaves stops.
    const reader = server.stdout.getReader()
    while (!text.includes('"code":"ADMIN"')) text += new TextDecoder().decode((await reader.read()).value)
    expect((await stat(join(state, 'localtunnels/admin.json'))).mode & 0o777).toBe(0o600)
    expect(text).not.toContain(
      JSON.parse(await Bun.file(join(state, 'localtunnels/admin.json')).text()).token,
    )
    const { url, token } = JSON.parse(await Bun.file(join(state, 'localtunnels/admin.json')).text())
    const screen = join(state, 'bin/xdg-open')
    await Bun.write(screen, `#!/bin/sh\necho "$1" > ${state}/opened\n`)
    await chmod(screen, 0o755)
    await using terminal = startOnTerminal(['admin', 'open'], {
      XDG_STATE_HOME: state,
      DISPLAY: ':0',
      PATH: `${state}/bin:${process.env.PATH}`,
    })
    expect(await terminal.exited).toBe(0)
    expect(terminal.stdout).toContain(`${url}/#${token}`)
    // The words of a command are seen by all: the token is in a file.
    while (!existsSync(join(state, 'opened'))) await Bun.sleep(5)
    const page = (await Bun.file(join(state, 'opened')).text()).trim()
    expect(page).toBe(join(state, 'localtunnels/open.html'))
    expect(await Bun.file(page).text()).toContain(`url=${url}/#${token}"`)
    expect((await stat(page)).mode & 0o777).toBe(0o600)
    expect(await run('open')).toEqual({ out: `${url}/#${token}\n`, err: '', code: 0 })
    expect((await run('tunnels')).out).toBe('None.\n')
    expect(
      (await run('ban', '192.0.2.0/24', '--for', '2h', '--reason', 'spam\u001b[31m\u009b32m\u202e')).out,
    ).toContain('is kept away')
    const { out } = await run('bans')
    expect(out).toContain('192.0.2.0/24')
    // What others wrote does not steer the terminal.
    expect(out).not.toContain('\u001b')
    const json = (await run('log', '--json')).out
    expect(json).not.toMatch(/[\u009b\u202e]/)
    expect(JSON.parse(json).entries[0].detail).toContain('\u009b32m\u202e')
    expect(JSON.parse(json).entries).toHaveLength(1)
    expect((await run('unban', '1')).out).toBe('Ban 1 is removed.\n')
    for (const [words, says] of [
      [['close', 'nothing'], 'error ADMIN_INVALID: There is no tunnel "nothing" at this server.'],
      [['tunnels', '--admin-token', 'x'], 'error ADMIN_REFUSED: '],
      [['tunnels', '--url', 'http://127.0.0.1:1', '--admin-token', 'x'], 'error SERVER_UNREACHABLE: '],
      [['tunnels', '--url', 'http://127.0.0.1:1'], 'error OPTION_INVALID: Give the token'],
      [['ban', 'nowhere'], 'error OPTION_INVALID: "nowhere" is not an address'],
    ] as const) {
      const { err, code } = await run(...words)
      expect(err).toStartWith(says)
      expect(code).toBeGreaterThan(0)
    }
  } finally {
    server.kill('SIGTERM')
    await server.exited
  }
  expect(server.exitCode).toBe(0)
}, 60_000)

test('below a path of a site, open also says where the page is there', async () => {
  const flags = ['--base-path', '/tunnel/', '--public-url', 'https://site.example', '--token', 's3cret']
  await using server = start(
    ['server', '--port', '0', '--host', '127.0.0.1', '--admin', '127.0.0.1:0', ...flags],
    { XDG_STATE_HOME: state },
  )
  await server.printed(/The admin listener is at/)
  const { url, token } = JSON.parse(await Bun.file(join(state, 'localtunnels/admin.json')).text())
  const { out, err } = await run('open')
  expect(out).toBe(`${url}/#${token}\n`)
  expect(err).toBe(`If the proxy passes this path on: https://site.example/tunnel/admin/#${token}\n`)
  expect(JSON.parse((await run('open', '--json')).out)).toEqual({
    url: `${url}/#${token}`,
    siteUrl: `https://site.example/tunnel/admin/#${token}`,
  })
})
