// Words that people try: short flags, `help`, commands of other tunnels, misspelt ones, and options by the name of their flag.

import { afterEach, describe, expect, test } from 'bun:test'
import { COMMANDS } from '../../src/cli/words.ts'
import { idleProgram } from '../support/idle-program.ts'
import { finish, start } from './bin.ts'

const opened: AsyncDisposable[] = []
afterEach(async () => {
  await Promise.all(opened.splice(0).map(one => one[Symbol.asyncDispose]()))
})

test('-h and help print the help, -V and -v the version', async () => {
  const { version } = (await import('../../package.json')).default
  for (const args of [['-h'], ['help'], ['start', '-h']]) {
    const { stdout, exitCode } = await finish(args)
    expect([stdout.split('\n')[0], exitCode]).toEqual(['Usage: localtunnels [options] [command] [port]', 0])
  }
  for (const args of [
    ['help', 'tcp'],
    ['tcp', '-h'],
    ['help', 'tcp', 'nonsense'],
  ]) {
    expect((await finish(args)).stdout).toStartWith('Usage: localtunnels tcp [options] <port>')
  }
  expect((await finish(['help', 'config', 'check'])).stdout).toStartWith('Usage: localtunnels config check ')
  for (const flag of ['-V', '-v']) {
    expect(await finish([flag])).toEqual({ stdout: `${version}\n`, stderr: '', exitCode: 0 })
  }
})

test('start --port, http <port>, serve <folder> and -p share, as other tunnels do', async () => {
  const app = Bun.serve({ port: 0, fetch: () => new Response('hi') })
  for (const args of [
    ['start', '--port', `${app.port}`],
    ['http', `${app.port}`],
    ['-p', `${app.port}`],
    ['serve', import.meta.dir],
  ]) {
    const run = start(args)
    opened.push(run)
    expect(await run.printed(/^(http:\/\/\S+)\n/m)).toMatch(/^http:\/\/[a-z0-9-]+\.localhost:\d+$/)
  }
  await app.stop(true)
})

describe('a misspelt command', () => {
  test.concurrent.each([
    [['tpc', '22'], '"tpc" is neither a port, a URL nor a command. Did you mean tcp?'],
    [['sever', '--domain', 'x'], 'Did you mean server?'],
    [['dotcor'], 'Did you mean doctor?'],
    [['strat', '--port', '3000'], 'Did you mean start?'],
    [
      ['expose', '3000'],
      'Commands: tcp, udp, tls, server, token, doctor, up, run, requests, replay, fixture, wait, mcp, login, logout, whoami, link, admin, service, config, completions, help.',
    ],
    [['3000', '4000'], 'Too many arguments.'],
    [['config', 'chek'], 'Did you mean check?'],
    [['token', 'add', '--for', '1d'], "Missing required argument 'name'. See localtunnels token add --help."],
    [['3000', '--port'], 'A value is missing: --port <port>.'],
    [['help', 'nope'], '"nope" is neither a port, a URL nor a command. Commands: tcp, '],
    [['help', 'tpc'], 'Did you mean tcp?'],
  ])('%p', async (args, says) => {
    const { stderr, exitCode } = await finish(args)
    expect(stderr).toStartWith('error OPTION_INVALID: ')
    expect(stderr).toContain(says)
    expect(stderr).not.toContain('documentation of the option')
    expect(exitCode).toBe(2)
  })
})

test.each(['config', 'admin', 'token', 'service', 'fixture'])(
  '%s without a command prints its help',
  async name => {
    const { stdout, stderr, exitCode } = await finish([name])
    expect(stderr).toStartWith(`Usage: localtunnels ${name} `)
    expect(stderr).not.toContain('error')
    expect({ stdout, exitCode }).toEqual({ stdout: '', exitCode: 2 })
  },
)

test('the words of the refusal are the commands of --help', () => {
  const program = idleProgram()
  expect<readonly string[]>(COMMANDS).toEqual([...program.commands.map(command => command.name()), 'help'])
})

test('what the library calls tlsPort is --tls-port for who typed it', async () => {
  const server = await finish(['server', '--port', '8080', '--tls-port', '8080'])
  expect(server.stderr).toContain('--tls-port')
  expect(server.stderr).not.toContain('tlsPort')
  const udp = await finish(['udp', '53', '--idle-timeout', '0'])
  expect(udp.stderr).toContain('--idle-timeout "0"')
  expect(udp.stderr).not.toContain('idleTimeoutMs')
})

test('--json and TUNNEL_JSON print an event for a usage fault too', async () => {
  for (const [args, env] of [
    [['--json', '--port', 'x'], {}],
    [['--port', 'x'], { TUNNEL_JSON: '1' }],
    [['--json', '--prot', '1'], {}],
    [['server', '--port', 'x'], { TUNNEL_SERVER_JSON: '1' }],
  ] as const) {
    const { stdout, exitCode } = await finish(args, env)
    const event: unknown = JSON.parse(stdout)
    expect(event).toMatchObject({ type: 'error', code: expect.stringMatching(/^(PORT|OPTION)_INVALID$/) })
    expect(exitCode).toBe(2)
  }
})
