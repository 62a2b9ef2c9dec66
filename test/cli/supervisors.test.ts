// What supervisors such as systemd need of the real bin: it says when it is ready and when it stops (sd_notify), and ends if it loses
// its server.

import { describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { TunnelServer } from '../../src/tunnel-server.ts'
import { ConfigFiles } from '../support/config-files.ts'
import { testWith } from '../support/needs.ts'
import { closedAfterEach } from '../support/opened.ts'
import { freePort } from '../support/ports.ts'
import { folder } from '../support/programs.ts'
import { Supervisor } from '../support/supervisor.ts'
import { BIN, Running, start, startOnTerminal } from './bin.ts'

const { open } = closedAfterEach()

async function server(port = 0): Promise<TunnelServer> {
  const one = new TunnelServer({
    port,
    host: '127.0.0.1',
    tcpPorts: '20000-29999',
    limits: { drainTimeoutMs: 10, startupHoldMs: 0 },
  })
  await open(one).start()
  return one
}

async function file(port: number, more = ''): Promise<string> {
  const files = open(await ConfigFiles.make())
  return files.write('a.toml', `server = "http://127.0.0.1:${port}"\n${more}[services.shop]\nport = 1\n`)
}

const at = (port: number) => ['--server', `http://127.0.0.1:${port}`]
const url = (port: number) => `http://shop.localhost:${port}`

describe('sd_notify', () => {
  testWith(
    ['python3'],
    'a client is ready once its URL is public, and says what its connection does',
    async () => {
      await using supervisor = await Supervisor.start()
      const port = freePort()
      const run = open(start(['1', ...at(port), '--subdomain', 'shop'], supervisor.env))
      await run.printed(/retrying/)
      expect(supervisor.lines.filter(line => line !== '')).toEqual([])
      const first = await server(port)
      await supervisor.heard(`READY=1\nSTATUS=${url(port)}\n`)
      await first.stop()
      await supervisor.heard('STATUS=Not connected: ')
      const before = supervisor.lines.length
      await server(port)
      await supervisor.heard(
        `STATUS=Not connected: ${supervisor.lines.at(-1)?.split(': ')[1]}\nSTATUS=${url(port)}\n`,
      )
      expect(supervisor.lines.length).toBe(before + 1)
      run.kill('SIGTERM')
      expect(await run.exited).toBe(0)
      await supervisor.heard('STOPPING=1\n')
    },
  )

  testWith(['python3'], 'the services of a file, a TCP service, and an abstract socket', async () => {
    await using supervisor = await Supervisor.start(`@localtunnels-${process.pid}`)
    const { port } = await server()
    const up = open(start(['up', '--config', await file(port)], supervisor.env))
    await supervisor.heard('READY=1\nSTATUS=1 service\n')
    await up.end()
    const tcp = open(start(['tcp', '1', ...at(port)], supervisor.env))
    await supervisor.heard('READY=1\nSTATUS=tcp://')
    await tcp.end()
  })

  testWith(['python3'], 'of `run` the command does not get the socket', async () => {
    await using supervisor = await Supervisor.start()
    const { port } = await server()
    const words = [
      'run',
      ...at(port),
      '--subdomain',
      'shop',
      '--',
      'sh',
      '-c',
      'echo "<$NOTIFY_SOCKET>"; cat',
    ]
    const run = open(start(words, supervisor.env))
    await supervisor.heard(`READY=1\nSTATUS=${url(port)}\n`)
    await run.printed(/<>/)
    await run.exited
  })

  testWith(['python3', 'node', 'systemd-notify'], 'a client on Node', async () => {
    await using supervisor = await Supervisor.start()
    await using dir = await folder('supervised-node')
    await Bun.build({ entrypoints: [BIN], target: 'node', outdir: dir.path, splitting: true })
    const { port } = await server()
    const { PATH = '', HOME = '' } = process.env
    const words = ['1', ...at(port), '--subdomain', 'shop']
    const node = ['node', join(dir.path, 'localtunnels.js'), ...words]
    const run = open(new Running(node, { PATH, HOME, ...supervisor.env }, false))
    await supervisor.heard(`READY=1\nSTATUS=${url(port)}\n`)
    run.kill('SIGTERM')
    await supervisor.heard('STOPPING=1\n')
    expect(await run.exited).toBe(0)
  })

  test.each(['/nowhere/notify', '', `/${'x'.repeat(200)}`])(
    'a socket that is not there is none: %p',
    async path => {
      const { port } = await server()
      const run = open(start(['1', ...at(port)], { NOTIFY_SOCKET: path }))
      await run.printed(/http:\/\/\S+/)
      run.kill('SIGTERM')
      expect(await run.exited).toBe(0)
    },
  )
})

describe('--exit-on-disconnect', () => {
  const kinds = [
    ['an app', async (port: number) => ['1', ...at(port), '--exit-on-disconnect']],
    ['a TCP service', async (port: number) => ['tcp', '1', ...at(port), '--exit-on-disconnect']],
    ['a file', async (port: number) => ['up', '--config', await file(port), '--exit-on-disconnect']],
    [
      'a file that says so',
      async (port: number) => ['up', '--config', await file(port, 'reconnect = false\n')],
    ],
    ['a command', async (port: number) => ['run', ...at(port), '--exit-on-disconnect', '--', 'sleep', '60']],
  ] as const
  test.each(kinds)('%s: code 8 when the server is gone', async (_, words) => {
    const one = await server()
    const run = open(start(await words(one.port)))
    await run.printed(/(?:http|tcp):\/\/\S+/)
    await one.stop()
    expect(await run.exited).toBe(8)
    expect(run.stderr).toContain('error DISCONNECTED: The connection to the server was lost')
    expect(run.stderr).not.toContain('reconnecting')
  })

  test('on a terminal, too, nothing says that it reconnects', async () => {
    const one = await server()
    const run = open(startOnTerminal(['1', ...at(one.port), '--exit-on-disconnect']))
    await run.printed(/Public +\S*http/)
    await one.stop()
    expect(await run.exited).toBe(8)
    expect(run.stdout).not.toContain('reconnecting')
  })

  test('until the first connection it tries again, and Ctrl+C is a clean end', async () => {
    const port = freePort()
    const run = open(start(['1', ...at(port), '--exit-on-disconnect']))
    await run.printed(/retrying/)
    await server(port)
    await run.printed(/ready, forwarding/)
    run.kill('SIGINT')
    expect(await run.exited).toBe(0)
  })

  test('without it a client comes back', async () => {
    const one = await server()
    const run = open(start(['1', ...at(one.port), '--json']))
    await run.printed(/"type":"ready"/)
    const { port } = one
    await one.stop()
    await run.printed(/"type":"reconnecting"/)
    await server(port)
    await run.printed(/"type":"reconnecting"[\s\S]*"type":"connected"/)
    await run.end()
  })
})
