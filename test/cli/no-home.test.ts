// A user that is a number and no more, as in a container or a sandbox of CI: everything works, and nothing is kept.

import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { testWith } from '../support/needs.ts'
import { folder } from '../support/programs.ts'
import { startServer } from '../support/tunnel.ts'
import { Running } from './bin.ts'

const BIN = join(import.meta.dir, '../../bin/localtunnels.ts')

/** In an empty folder, without any variable but PATH, and without an entry in the table of users. */
async function begin(args: readonly string[], cwd: string, more: Readonly<Record<string, string>> = {}) {
  const set = Object.entries(more).map(([name, value]) => `${name}=${value}`)
  const nobody = ['unshare', '--user', '--map-user=12345', '--map-group=12345']
  const clean = ['env', '-i', `PATH=${process.env.PATH}`, ...set]
  return new Running([...nobody, ...clean, 'sh', BIN, ...args], {}, false, cwd)
}

async function ended(args: readonly string[], cwd: string, more: Readonly<Record<string, string>> = {}) {
  const run = await begin(args, cwd, more)
  const exitCode = await run.exited
  return { text: run.stdout + run.stderr, exitCode }
}

testWith(['unshare'], 'what shares and serves runs', async () => {
  await using own = await folder('no-home')
  await using server = await startServer()
  const to = ['--server', `http://127.0.0.1:${server.port}`]
  await Bun.write(`${own.path}/a.toml`, `server = "${to[1]}"\n[services.a]\nport = 3000\n`)
  for (const args of [
    ['3000', ...to],
    ['3000', '--local'],
    ['tcp', '22', '--local'],
    ['up', '--config', 'a.toml'],
    ['server', '--host', '127.0.0.1', '--port', '0'],
    [
      'server',
      '--host',
      '127.0.0.1',
      '--port',
      '0',
      '--admin',
      '127.0.0.1:0',
      '--admin-token',
      'secret-of-the-operator',
    ],
  ]) {
    await using run = await begin(args, own.path)
    await run.printed(/(?:http|tcp):\/\/\S+/)
    await run.end()
    expect(run.stdout + run.stderr).not.toContain('INTERNAL')
  }
  expect((await ended(['run', ...to, '--', 'true'], own.path)).exitCode).toBe(0)
  expect((await ended(['doctor', ...to], own.path)).text).toContain('registration')
  // Not even in the folder where it was started.
  expect([...new Bun.Glob('**/*').scanSync({ cwd: own.path, dot: true })]).toEqual(['a.toml'])
})

testWith(['unshare'], 'what needs a place for something says so, with what to do', async () => {
  await using own = await folder('no-home')
  await Bun.write(`${own.path}/a.toml`, `[services.a]\nport = 3000\n`)
  for (const [args, says] of [
    [
      ['login', 'http://127.0.0.1:9', '--token-stdin'],
      /LOGIN_INVALID: This user has no home folder to keep logins in: set HOME or XDG_CONFIG_HOME\.\n/,
    ],
    [['logout', 'http://127.0.0.1:9'], /There is no login for/],
    [['whoami'], /Not logged in to any server/],
    [['config', 'check', 'a.toml'], /a client with 1 service/],
    [['token', 'list'], /no state folder that can be written: name a file with --tokens-db/],
    [['server', '--port', '0', '--host', '127.0.0.1', '--tokens-db'], /no state folder that can be written/],
    [['server', '--acme', 'a@b.test', '--domain', 'b.test', '--token', 'x'], /set XDG_STATE_HOME/],
    [['link', 'shop'], /No tunnel "shop" with links was started here/],
    [['requests'], /INSPECTOR_NOT_FOUND/],
    [['admin', 'status'], /No admin listener is known/],
    [['service', 'status'], /This user has no home folder for the service: set HOME\./],
    [['completions', 'bash'], /complete/],
  ] as const) {
    const { text } = await ended(args, own.path)
    expect(text).toMatch(says)
    expect(text).not.toContain('INTERNAL')
  }
})

test.each(['', 'relative'])(
  'a HOME of "%s" is none: nothing is kept below the current folder',
  async HOME => {
    await using own = await folder('no-home')
    await using server = await startServer()
    const run = new Running(
      [
        'env',
        '-i',
        `PATH=${process.env.PATH}`,
        `HOME=${HOME}`,
        'sh',
        BIN,
        '3000',
        '--server',
        `http://127.0.0.1:${server.port}`,
      ],
      {},
      false,
      own.path,
    )
    await run.printed(/http:\/\/\S+/)
    await run.end()
    expect([...new Bun.Glob('**/*').scanSync({ cwd: own.path, dot: true })]).toEqual([])
  },
)
