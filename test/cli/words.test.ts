// Words that people try: short flags, `help`, commands of other tunnels, misspelt ones, and options by the name of their flag.

import { describe, expect, test } from 'bun:test'
import { timeOf } from '../../src/cli/program/values.ts'
import { commandsOf } from '../../src/cli/settings/environment.ts'
import { COMMANDS } from '../../src/cli/words.ts'
import { idleProgram } from '../support/idle-program.ts'
import { closedAfterEach } from '../support/opened.ts'
import { finish, start } from './bin.ts'

const { open } = closedAfterEach()

test('-h and help print the help, -V and -v the version', async () => {
  const { version } = (await import('../../package.json')).default
  for (const args of [['-h'], ['help']]) {
    const { stdout, exitCode } = await finish(args)
    expect([stdout.split('\n')[0], exitCode]).toEqual(['Usage: localtunnels [port] [options]', 0])
  }
  for (const args of [
    ['http', '-h'],
    ['start', '-h'],
    ['help', 'http'],
  ])
    expect((await finish(args)).stdout).toStartWith('Usage: localtunnels http [options] [port]')
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
    open(run)
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
      'Commands: http, tcp, udp, tls, run, up, connect, requests, replay, fixture, wait, mcp, login, logout, whoami, link, server, token, admin, service, doctor, config, completions, help.',
    ],
    [['3000', '4000'], 'Too many arguments.'],
    [['config', 'chek'], 'Did you mean check?'],
    [['token', 'add', '--for', '1d'], "Missing required argument 'name'. See localtunnels token add --help."],
    [['3000', '--port'], 'A value is missing: --port <port>.'],
    [['help', 'nope'], '"nope" is neither a port, a URL nor a command. Commands: http, tcp, '],
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

describe('a command line of another tunnel', () => {
  const SERVER = 'http://127.0.0.1:1'
  // Whatever is understood finds no server there.
  test.concurrent.each([
    // localtunnels 0.2
    [['start', '-p', '3000', '-s', 'shop', '--server', SERVER]],
    [['start', '--port', '3000', '--no-manage-hosts', '--server', SERVER]],
    // localtunnel
    [['--port', '3000', '-s', 'shop', '-l', '127.0.0.1', '--print-requests', '--server', SERVER]],
    [['--port', '3000', '--subdomain=shop', '--local-host=127.0.0.1', '--server', SERVER]],
    // ngrok
    [['http', '3000', '--authtoken', 'x', '--server', SERVER]],
    [['http', ':3000', '--server', SERVER]],
    [['*:3000', '--server', SERVER]],
    // cloudflared
    [['tunnel', '--url', 'http://localhost:3000', '--server', SERVER]],
    // bore
    [['local', '3000', '--to', SERVER, '--secret', 'x', '--port', '20001']],
  ])('%p is understood', async args => {
    await using run = start([...args, '--json'])
    expect(await run.printed(/"code":"([A-Z_]+)"/)).toBe('SERVER_UNREACHABLE')
  })

  test('version', async () => {
    expect(await finish(['version'])).toMatchObject({ exitCode: 0, stdout: expect.stringMatching(/^\d+\./) })
  })

  test.concurrent.each([
    [
      ['--host', 'https://tunnel.example', '--port', '3000'],
      'For the server use --server https://tunnel.example.',
    ],
    [['start', '--secure'], "Unknown option '--secure'. The address of the server has the scheme"],
    [['up', '--server', 'x'], "Unknown option '--server'. Its file sets the server and the services: see"],
    [['http', '3000', '--foo'], "Unknown option '--foo'. See localtunnels http 3000 --help."],
    [['start', '--verbose'], 'Requests are listed anyway'],
    [['server', '--verbose'], 'Requests are listed anyway'],
    [['http', '3000', '--url', 'https://shop.tunnel.example'], 'For the name use --subdomain <name>'],
    [['http', '3000', '--domain=shop.tunnel.example'], 'For the name use --subdomain <name>'],
    [['http', '3000', '--basic-auth', 'a:b'], 'For a password use --password <password>'],
    [['http', '3000', '--region', 'eu'], 'For the server use --server <address>.'],
    [['3000', '--name', 'shop'], 'For the name use --subdomain <name>'],
    [['config', 'add-authtoken', 'x'], 'localtunnels login <server>'],
    [['authtoken', 'x'], 'localtunnels login <server>'],
    [['tunnel', 'run', 'shop'], 'localtunnels up'],
    [['-c', 'frpc.toml'], 'localtunnels up --config <file>'],
    [['server', '-c', 'frps.toml'], 'localtunnels server --config <file>'],
    [['start', '--all'], 'localtunnels up --config <file>'],
    [['--localPort', '3000'], 'For the port of the app use --port <port>.'],
    [['3000', '--allow-invalid-cert'], 'use --app-insecure'],
    [['tunnel', '--url', 'https://nas.lan', '--no-tls-verify'], 'use --app-insecure'],
    [['tunnel', '--url', 'https://nas.lan', '--origin-server-name', 'nas'], 'use --app-server-name <name>'],
    [['tunnel', '--url', 'https://nas.lan', '--origin-ca-pool', 'ca.pem'], 'use --app-ca <file>'],
    [['3000', '--local-ca', 'ca.pem'], 'use --app-ca <file>'],
    [['3000', '--local-https'], 'localtunnels https://localhost:<port>'],
    [['http', '--local-port', '3000', '--server-addr', 'a'], 'For the port of the app use --port <port>.'],
    [['ls'], 'Commands: http, tcp, '],
    [['--prot', '3000'], 'Did you mean --port?'],
    [['3000:80'], '"3000:80" has two ports. Write the one of this machine alone: 3000.'],
    [['tcp', '22:22'], '"22:22" has two ports. Write the one of this machine alone: 22.'],
    [['tcp', 'tcp://localhost:22'], 'Write localhost:22 alone.'],
    [['tcp://localhost:22'], 'Write: localtunnels tcp localhost:22.'],
    [['server', '--domain', 'lt.test:8080'], 'write lt.test, as the port has an option of its own'],
    [['server', '--admin', '0', '--admin-token', 'sesame'], '--admin-token must be 16 to 255 characters'],
    [
      ['admin', '--url', 'http://127.0.0.1:1', 'tunnels'],
      "Unknown option '--url'. Write it behind the command: localtunnels admin tunnels.",
    ],
    [['server', '--domain', '*.lt.test'], 'write lt.test, which has all hosts below it'],
    [['server', '--domain', 'münchen.test'], 'letters must be a-z here'],
    [['server', '--domain', 'https://lt.test'], 'write lt.test, without https://'],
  ])('%p is answered with our words', async (args, says) => {
    const { stderr, exitCode } = await finish(args)
    expect(stderr).toStartWith('error OPTION_INVALID: ')
    expect(stderr).toContain(says)
    expect(exitCode).toBe(2)
  })

  test('a near word is named only where it is near', async () => {
    for (const args of [['3000', '--zone', 'eu'], ['3000', '--nme', 'x'], ['lss']])
      expect((await finish(args)).stderr).not.toContain('Did you mean')
  })
})

test('a guard that cannot be used is named by its flag', async () => {
  const { stderr, exitCode } = await finish(['3000', '--allow', '1.2.3'])
  expect(stderr).toBe(
    'error OPTION_INVALID: --allow: "1.2.3" is not an address, a range such as 10.0.0.0/8, or a country such as country:DE.\n',
  )
  expect(exitCode).toBe(2)
})

test('the words of the refusal are the commands of --help', async () => {
  const program = await idleProgram()
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

test('a time without a unit is seconds, whatever the flag', async () => {
  for (const [text, ms] of [
    ['1', 1_000],
    ['0.5', 500],
    ['500ms', 500],
    ['30s', 30_000],
    ['1m30s', 90_000],
    ['2h', 7_200_000],
  ] as const)
    expect(timeOf(text, '--ttl')).toBe(ms)
  for (const text of ['0', '0s', 'soon', '1 s', '-1', '1.2.3', ''])
    expect(() => timeOf(text, '--ttl')).toThrow('a number alone is seconds')
  // No flag has another unit, but the header that has none.
  const flags = commandsOf(await idleProgram()).flatMap(command =>
    command.options.map(option => option.flags),
  )
  expect(flags.filter(text => /<(?:seconds|ms|milliseconds|duration|minutes)>/.test(text))).toEqual([
    '--hsts <seconds>',
  ])
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
