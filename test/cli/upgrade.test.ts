// `localtunnels server` replaces itself while a load generator of others, downloads and raw connections go on.

import { describe, expect, test } from 'bun:test'
import { connect } from 'node:net'
import { TunnelClient } from '../../src/index.ts'
import { eventually } from '../support/events.ts'
import { testWith } from '../support/needs.ts'
import { closedAfterEach } from '../support/opened.ts'
import { freePort } from '../support/ports.ts'
import { folder } from '../support/programs.ts'
import { Supervisor } from '../support/supervisor.ts'
import { within } from '../support/within.ts'
import { finish, type Running, start } from './bin.ts'

const { defer } = closedAfterEach()

/** A server, and all that replace it: they are gone at the end. */
class Line {
  readonly run: Running
  readonly port: number = freePort()
  readonly pids: number[] = []

  constructor(flags: readonly string[], env: Readonly<Record<string, string>> = {}) {
    this.run = start(['server', '--json', '--host', '127.0.0.1', '--port', String(this.port), ...flags], env)
    defer(async () => {
      for (const pid of this.#announced()) kill(pid)
      await this.run[Symbol.asyncDispose]()
    })
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`
  }

  /** Resolves with the process that serves now. */
  async upgraded(times: number): Promise<number> {
    await eventually(() => this.#announced().length >= times, 'the upgrade')
    return this.#announced().at(-1) ?? 0
  }

  #announced(): readonly number[] {
    return [...this.run.stdout.matchAll(/Process (\d+) serves from now on/g)].map(([, pid]) => Number(pid))
  }
}

function kill(pid: number, signal: NodeJS.Signals = 'SIGKILL'): void {
  try {
    process.kill(pid, signal)
  } catch {
    // It is gone already.
  }
}

async function tunnelOf(line: Line, fetch: (request: Request) => Response): Promise<TunnelClient> {
  const app = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch })
  defer(() => app.stop(true))
  const client = new TunnelClient({ server: line.url, port: app.port, subdomain: 'shop' })
  client.on('error', () => {})
  defer(() => client.disconnect())
  await client.connect()
  return client
}

/** What wrk of the first kind of visitor, or of those that connect anew for each request, counted. */
async function load(line: Line, ...flags: readonly string[]): Promise<string> {
  const child = Bun.spawn(
    [
      'wrk',
      '-t1',
      '-c10',
      '-d3s',
      '--timeout',
      '20s',
      '-H',
      'Host: shop.localhost',
      ...flags,
      `${line.url}/`,
    ],
    { stdout: 'pipe', stderr: 'inherit' },
  )
  return child.stdout.text()
}

testWith(
  ['wrk'],
  'SIGUSR2 under load: not one request fails, and a download goes on',
  async () => {
    const line = new Line(['--log-rate', '1'])
    await line.run.printed(/"type":"listening"/)
    const download = Promise.withResolvers<ReadableStreamDefaultController<Uint8Array>>()
    const client = await tunnelOf(line, request =>
      new URL(request.url).pathname === '/download'
        ? new Response(new ReadableStream({ start: controller => download.resolve(controller) }))
        : new Response('hello'),
    )
    const states: string[] = []
    client.on('disconnected', ({ error }) => states.push(String(error && Reflect.get(error, 'code'))))
    client.on('connected', () => states.push('connected'))
    const headers = { host: 'shop.localhost' }
    const answer = fetch(`${line.url}/download`, { headers })
    const app = await within(download.promise, 'the download')
    app.enqueue(Buffer.from('before '))
    const body = (await answer).text()
    const loads = [load(line), load(line, '-H', 'Connection: close')]
    await line.run.printed(/"type":"(?:more|response)"/)
    line.run.kill('SIGUSR2')
    const second = await line.upgraded(1)
    await eventually(() => states.length === 2, 'the client to come back')
    process.kill(second, 'SIGUSR2')
    await line.upgraded(2)
    await eventually(() => states.length === 4, 'the client to come back')
    expect(states).toEqual(['SERVER_REPLACED', 'connected', 'SERVER_REPLACED', 'connected'])
    for (const counted of await Promise.all(loads)) {
      expect(counted).toMatch(/\d+ requests in/)
      expect(counted).not.toMatch(/Socket errors|Non-2xx/)
    }
    // Its program is replaced twice over.
    app.enqueue(Buffer.from('after'))
    app.close()
    expect(await within(body, 'the end of the download')).toBe('before after')
  },
  60_000,
)

describe('a new program that does not start', () => {
  test('the old one goes on, and says why', async () => {
    await using dir = await folder('upgrade')
    const file = `${dir.path}/server.toml`
    await Bun.write(file, 'domains = ["localhost"]\n')
    const line = new Line(['--config', file, '--admin', '127.0.0.1:0'], { XDG_STATE_HOME: dir.path })
    await line.run.printed(/"code":"ADMIN"/)
    await Bun.write(file, 'domains = 17\n')
    line.run.kill('SIGUSR2')
    await line.run.printed(/"code":"UPGRADE_FAILED","message":"The new program did not start: .* has 1 fault/)
    const asked = await finish(['admin', 'upgrade'], { XDG_STATE_HOME: dir.path })
    expect(asked.exitCode).not.toBe(0)
    expect(asked.stderr).toContain('error UPGRADE_FAILED: The new program did not start: ')
    expect(await (await fetch(`${line.url}/health`)).text()).toBe('OK')
  })
})

test('admin upgrade: the new program has the port of the admin listener, too', async () => {
  await using dir = await folder('upgrade-admin')
  const env = { XDG_STATE_HOME: dir.path }
  const adminPort = freePort()
  const line = new Line(['--admin', `127.0.0.1:${adminPort}`], env)
  await line.run.printed(/"code":"ADMIN"/)
  const asked = await finish(['admin', 'upgrade'], env)
  expect(asked.stdout).toMatch(/^Process \d+ serves from now on/)
  const pid = await line.upgraded(1)
  await eventually(() => line.run.stdout.includes('"type":"totals"'), 'the old program to leave')
  expect((await finish(['admin', 'tunnels'], env)).stdout).toBe('None.\n')
  expect(await (await fetch(`${line.url}/health`)).text()).toBe('OK')
  // A server that replaces none does not get a port that another one has.
  const other = await finish(
    ['server', '--host', '127.0.0.1', '--port', '0', '--admin', `127.0.0.1:${adminPort}`],
    env,
  )
  expect(other.stderr).toContain('error PORT_IN_USE: ')
  process.kill(pid, 'SIGTERM')
  expect(await line.run.exited).toBe(0)
})

test('a TCP tunnel: connections go on, and new ones are not refused meanwhile', async () => {
  const remotePort = freePort()
  const line = new Line(['--tcp-ports', String(remotePort)])
  await line.run.printed(/"type":"listening"/)
  const app = Bun.listen({
    hostname: '127.0.0.1',
    port: 0,
    socket: { data: (socket, bytes) => void socket.write(bytes) },
  })
  defer(() => app.stop(true))
  const client = new TunnelClient({ server: line.url })
  defer(() => client.disconnect())
  await client.tcp({ port: app.port, remotePort })
  const dial = () => {
    const socket = connect(remotePort, '127.0.0.1')
    defer(() => socket.destroy())
    return socket
  }
  const echo = (socket: ReturnType<typeof dial>, text: string) => {
    const { promise, resolve, reject } = Promise.withResolvers<string>()
    socket.once('data', bytes => resolve(String(bytes)))
    socket.once('error', reject)
    socket.once('close', () => reject(new Error(`closed before "${text}" came back`)))
    socket.write(text)
    return within(promise, text)
  }
  const old = dial()
  expect(await echo(old, 'one')).toBe('one')
  line.run.kill('SIGUSR2')
  await line.upgraded(1)
  const [again, still] = await Promise.all([echo(dial(), 'two'), echo(old, 'three')])
  expect([again, still]).toEqual(['two', 'three'])
})

testWith(['python3'], 'systemd hears when it serves, and which process goes on', async () => {
  await using supervisor = await Supervisor.start()
  const line = new Line([], supervisor.env)
  await supervisor.heard(`READY=1\nSTATUS=Serves http://localhost:${line.port}\n`)
  line.run.kill('SIGUSR2')
  const pid = await line.upgraded(1)
  await supervisor.heard(`MAINPID=${pid}\n`)
  kill(pid, 'SIGTERM')
  await supervisor.heard('STOPPING=1\n')
  // Both have ended: the one that was replaced has not said that the service stops.
  expect(await line.run.exited).toBe(0)
  expect(supervisor.lines.filter(text => text === 'STOPPING=1')).toHaveLength(1)
})
