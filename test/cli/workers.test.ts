// `localtunnels server --workers`: processes that share the ports, killed, frozen and replaced.

import { afterEach, describe, expect, test } from 'bun:test'
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { TunnelClient } from '../../src/index.ts'
import { ask } from '../support/ask.ts'
import { eventually } from '../support/events.ts'
import { testWith } from '../support/needs.ts'
import { freePort } from '../support/ports.ts'
import { folder } from '../support/programs.ts'
import { within } from '../support/within.ts'
import { finish, type Running, start } from './bin.ts'

const closing: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close()
})

/** A server of several processes. */
class Team {
  readonly port: number = freePort()
  readonly run: Running
  readonly #folder: string

  private constructor(dir: string, flags: readonly string[]) {
    this.#folder = dir
    this.run = start(['server', '--json', '--host', '127.0.0.1', '--port', String(this.port), ...flags], {
      XDG_RUNTIME_DIR: dir,
    })
    closing.push(async () => {
      this.run.kill('SIGKILL')
      // Workers whose parent is gone end by themselves; those that a test froze do not.
      for (const [, pid] of this.workers()) signal(pid, 'SIGKILL')
      await this.run[Symbol.asyncDispose]()
    })
  }

  static async start(count: number, ...flags: readonly string[]): Promise<Team> {
    const dir = await folder('workers')
    closing.push(() => dir[Symbol.asyncDispose]())
    const team = new Team(dir.path, ['--workers', String(count), ...flags])
    await eventually(() => team.workers().size === count, 'the workers')
    await team.run.printed(/"type":"listening"/)
    return team
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`
  }

  /** The private folder of the sockets; of the last one that was made. */
  get sockets(): readonly string[] {
    return readdirSync(this.#folder).flatMap(name =>
      readdirSync(join(this.#folder, name)).map(file => join(this.#folder, name, file)),
    )
  }

  /** Process numbers by the number of the worker; of those that were started again the last one. */
  workers(): ReadonlyMap<number, number> {
    const found = this.sockets.map(path => /worker-(\d+)-(\d+)$/.exec(path))
    const alive = found.filter(match => match !== null && signal(Number(match[2]), 0))
    return new Map(alive.map(match => [Number(match?.[1]), Number(match?.[2])]))
  }

  pid(number: number): number {
    return this.workers().get(number) ?? Number.NaN
  }

  /** A client at this worker: the others are frozen while it connects. */
  async client(worker: number, subdomain: string, fetch: (request: Request) => Response | Promise<Response>) {
    const others = [...this.workers()].filter(([number]) => number !== worker)
    for (const [, pid] of others) await freeze(pid)
    const client = new TunnelClient({ server: this.url, subdomain, exact: true, fetch, maxBackoffMs: 100 })
    client.on('error', () => {})
    closing.push(() => client.disconnect())
    const connecting = client.connect()
    // What is asked of the directory is answered by their parent.
    await connecting
    for (const [, pid] of others) signal(pid, 'SIGCONT')
    return client
  }
}

function signal(pid: number, name: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(pid, name)
  } catch {
    return false
  }
}

async function freeze(pid: number): Promise<void> {
  signal(pid, 'SIGSTOP')
  const stopped = () =>
    readdirSync(`/proc/${pid}/task`).every(task => {
      const stat = readFileSync(`/proc/${pid}/task/${task}/stat`, 'latin1')
      return stat.startsWith('T', stat.lastIndexOf(')') + 2)
    })
  await eventually(stopped, 'the worker to stand still')
}

const isLinux = process.platform === 'linux'

describe.if(isLinux)('workers', () => {
  test('a visitor at another worker gets what it would get at the one that has the client', async () => {
    const team = await Team.start(2)
    await team.client(1, 'shop', async request => new Response(`${request.method} ${await request.text()}`))
    // Its connection is accepted while the worker of the tunnel stands still, so the other one has it.
    const first = team.pid(1)
    await freeze(first)
    const socket = connect(team.port, '127.0.0.1')
    closing.push(() => socket.destroy())
    const body = 'x'.repeat(100_000)
    socket.write(
      `POST / HTTP/1.1\r\nHost: shop.localhost\r\nConnection: close\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
    )
    // The other worker alone answers this one.
    expect((await ask(team.port, 'localhost', { path: '/health' })).body).toBe('OK')
    signal(first, 'SIGCONT')
    let text = ''
    const ended = Promise.withResolvers<void>()
    socket.on('data', bytes => (text += bytes))
    socket.on('close', () => ended.resolve())
    await within(ended.promise, 'the answer')
    expect(text).toStartWith('HTTP/1.1 200 ')
    expect(text).toEndWith(`POST ${body}`)
  })

  test('what they share is for this user alone', async () => {
    const team = await Team.start(2)
    const { sockets } = team
    expect(sockets.map(path => path.replace(/.*\/|-\d+$/g, '')).toSorted()).toEqual([
      'directory',
      'worker-1',
      'worker-2',
    ])
    for (const path of sockets) expect(statSync(path).mode & 0o777).toBe(0o600)
    expect(statSync(join(sockets[0] ?? '', '..')).mode & 0o777).toBe(0o700)
    team.run.kill('SIGTERM')
    expect(await team.run.exited).toBe(0)
    expect(team.sockets).toEqual([])
  })

  test('a worker that is killed takes only its own connections with it, and starts again', async () => {
    const team = await Team.start(2)
    const bodies: ReadableStreamDefaultController<Uint8Array>[] = []
    await team.client(
      1,
      'one',
      () => new Response(new ReadableStream({ start: body => void bodies.push(body) })),
    )
    const client = await team.client(2, 'two', () => new Response('two'))
    let connected = 0
    client.on('connected', () => connected++)
    const [first, second] = [team.pid(1), team.pid(2)]
    // A visitor of the first worker, too.
    await freeze(second)
    const answer = fetch(`${team.url}/`, { headers: { host: 'one.localhost' } })
    await eventually(() => bodies.length === 1, 'the request')
    bodies[0]?.enqueue(Buffer.from('before '))
    const body = (await answer).text()
    signal(second, 'SIGKILL')
    await team.run.printed(/Worker 2 ended with exit code 137, and starts again in 0\.1 s/)
    await eventually(() => ![undefined, second].includes(team.workers().get(2)), 'another worker')
    expect(team.pid(1)).toBe(first)
    bodies[0]?.enqueue(Buffer.from('after'))
    bodies[0]?.close()
    expect(await body).toBe('before after')
    // Its client has proved its name to a worker that lives.
    await eventually(() => connected === 1, 'the client to be back')
    expect((await ask(team.port, 'two.localhost')).body).toBe('two')
  })

  test('all read their file again', async () => {
    await using dir = await folder('workers-file')
    const file = `${dir.path}/server.toml`
    await Bun.write(file, 'domains = ["localhost"]\n')
    const team = await Team.start(2, '--config', file)
    await Bun.write(file, 'domains = ["localhost", "other.localhost"]\n')
    team.run.kill('SIGHUP')
    await eventually(() => (team.run.stdout.match(/"code":"RELOADED"/g)?.length ?? 0) >= 2, 'both reloads')
  })

  test('when their parent is killed they end', async () => {
    const team = await Team.start(2)
    const pids = [...team.workers().values()]
    team.run.kill('SIGKILL')
    await eventually(() => pids.every(pid => !signal(pid, 0)), 'the workers to end')
  })

  testWith(['wrk'], 'SIGUSR2 replaces all of them, without a failed request', async () => {
    const team = await Team.start(2, '--log-rate', '1')
    const client = await team.client(1, 'shop', () => new Response('hello'))
    let connected = 0
    client.on('connected', () => connected++)
    const before = [...team.workers().values()]
    const load = Bun.spawn(
      ['wrk', '-t1', '-c10', '-d3s', '--timeout', '20s', '-H', 'Host: shop.localhost', `${team.url}/`],
      { stdout: 'pipe', stderr: 'inherit' },
    )
    await team.run.printed(/"type":"(?:more|response)"/)
    team.run.kill('SIGUSR2')
    const pid = Number(await team.run.printed(/Process (\d+) serves from now on/))
    closing.push(() => signal(pid, 'SIGKILL'))
    await eventually(() => connected === 1, 'the client to come back')
    const counted = await load.stdout.text()
    expect(counted).toMatch(/\d+ requests in/)
    expect(counted).not.toMatch(/Socket errors|Non-2xx/)
    await eventually(() => before.every(one => !signal(one, 0)), 'the old workers to leave')
    signal(pid, 'SIGTERM')
    await eventually(() => team.workers().size === 0, 'the new workers to leave')
  })

  test('what cannot be is said', async () => {
    for (const [flags, says] of [
      [['--workers', '0'], 'error OPTION_INVALID: --workers "0" is neither auto nor a number from 1 to 64.'],
      [['--workers', 'many'], 'error OPTION_INVALID: --workers "many"'],
      [['--workers', '2', '--admin', '9090'], 'error OPTION_INVALID: admin is for a server with one worker'],
      [
        ['--workers', '2', '--host', '192.0.2.1', '--token', 'x'],
        'error PORT_IN_USE: Port 8080 on 192.0.2.1',
      ],
      [['--workers', '2', '--host', '0.0.0.0', '--port', '0'], 'error OPEN_SERVER: '],
    ] as const)
      expect((await finish(['server', ...flags])).stderr).toContain(says)
  })
})
