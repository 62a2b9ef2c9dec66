// Three servers, a Redis, clients and visitors, each in a place of its own, and what can be done to them.

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { finish, type Launched, launch } from '../../benchmarks/measure/children.ts'
import { scratch } from '../../benchmarks/peers/binary.ts'
import type { ClientsSpec } from './clients-process.ts'
import { Places } from './places.ts'
import type { Visit, VisitorsSpec } from './visitors-process.ts'

const PROGRAM = join(import.meta.dir, '../../bin/localtunnels.ts')
const TOKEN = 'a-token-of-the-chaos'
const ADMIN_TOKEN = 'an-admin-token-of-the-chaos'
export const SERVERS: readonly string[] = ['server-a', 'server-b', 'server-c']
const FIRST_PORT = 18_081
const REDIS_PORT = 16_379
const ADMIN_PORT = 19_090
const READY_MS = 30_000
/** `drainTimeoutMs` and what a process needs to end. */
const END_MS = 35_000

export interface SceneOptions {
  readonly clients: number
  /** Processes of clients, each with the same share. */
  readonly groups: number
  readonly seed: number
  readonly rate: number
  readonly keeping: number
  readonly redis: string
  readonly verbose: boolean
}

/** A process that is there until it is told to end. */
interface Running {
  readonly pid: number
  readonly child: Launched
}

export const now = (): number => performance.timeOrigin + performance.now()

export class Scene {
  readonly places: Places
  readonly groups: readonly string[]
  readonly names: readonly string[]
  readonly visits: Visit[] = []
  /** Processes that ended without being told to, and ends with another code than 0 of those that were. */
  readonly deaths: string[] = []
  readonly #options: SceneOptions
  readonly #files = scratch('chaos')
  readonly #running = new Map<string, Running>()
  /** Ends that were asked for. */
  readonly #asked = new Set<number>()
  /** By name: where it was when. */
  readonly #holders = new Map<string, { readonly at: number; readonly server: string }[]>()

  private constructor(options: SceneOptions) {
    this.#options = options
    this.groups = Array.from({ length: options.groups }, (_, at) => `clients-${at}`)
    this.names = Array.from({ length: options.clients }, (_, at) => `app-${at}`)
    // A successor of an upgraded server is no child of this process.
    process.on('exit', () => {
      for (const { pid } of this.#running.values()) if (isThere(pid)) process.kill(pid, 'SIGKILL')
    })
    this.places = Places.open([...SERVERS, 'redis', ...this.groups, 'visitors'])
  }

  static async start(options: SceneOptions): Promise<Scene> {
    const scene = new Scene(options)
    await scene.startRedis()
    await Promise.all(SERVERS.map(server => scene.startServer(server)))
    await Promise.all(scene.groups.map(group => scene.startClients(group)))
    await scene.#startVisitors()
    return scene
  }

  // ── Starting ───────────────────────────────────────────────────────────────────────────────────────────────

  async startRedis(): Promise<void> {
    const command = `${this.#options.redis} --bind ${this.places.address('redis')} --port ${REDIS_PORT} --protected-mode no --save`
    await this.#start('redis', 'redis', [...command.split(' '), '', '--dir', this.#files.path('.')], {
      ready: /Ready to accept connections/,
    })
  }

  async startServer(server: string): Promise<void> {
    const address = this.places.address(server)
    const flags = `--host ${address} --port ${this.#portOf(server)} --peer-url ${this.#urlOf(server)} --token ${TOKEN}`
    const cluster = `--cluster redis://${this.places.address('redis')}:${REDIS_PORT}`
    const admin = `--admin ${address}:${ADMIN_PORT} --admin-token ${ADMIN_TOKEN}`
    await this.#start(
      server,
      server,
      ['bun', PROGRAM, 'server', '--json', ...`${flags} ${cluster} ${admin}`.split(' ')],
      {
        ready: /"type":"listening"/,
        env: { XDG_STATE_HOME: this.#files.path(server) },
      },
    )
  }

  async startClients(group: string): Promise<void> {
    const share = this.names.length / this.groups.length
    const from = this.groups.indexOf(group) * share
    const spec: ClientsSpec = {
      // Each process has another server first.
      servers: SERVERS.map(server => this.#urlOf(server)),
      token: TOKEN,
      names: this.names.slice(from, from + share),
      stateFolder: this.#files.path(group),
    }
    await this.#start(
      group,
      group,
      ['bun', join(import.meta.dir, 'clients-process.ts'), JSON.stringify(spec)],
      {
        ready: /^ready$/,
      },
    )
  }

  async #startVisitors(): Promise<void> {
    const { seed, rate, keeping } = this.#options
    const spec: VisitorsSpec = {
      servers: SERVERS.map(server => ({ host: this.places.address(server), port: this.#portOf(server) })),
      names: this.names,
      seed,
      rate,
      keeping,
    }
    const program = join(import.meta.dir, 'visitors-process.ts')
    await this.#start('visitors', 'visitors', ['bun', program, JSON.stringify(spec)], { ready: /^ready$/ })
  }

  async #start(
    what: string,
    place: string,
    command: readonly string[],
    options: { readonly ready: RegExp; readonly env?: Readonly<Record<string, string>> },
  ): Promise<void> {
    const child = await launch([...this.places.inside(place), ...command], {
      ...options,
      deadlineMs: READY_MS,
      onLine: line => this.#said(what, line),
    })
    this.#running.set(what, { pid: child.pid, child })
    void child.exited.then(code => this.#ended(what, child.pid, code))
  }

  #ended(what: string, pid: number, code: number): void {
    if (!this.#asked.has(pid)) this.deaths.push(`${what} ended by itself with ${code}`)
  }

  #said(what: string, line: string): void {
    if (line.startsWith('visit '))
      return void this.visits.push(JSON.parse(line.slice('visit '.length)) as Visit) // its own type
    if (this.#options.verbose) console.error(`${Math.round(now() % 1e6)} ${what}: ${line}`)
    const [, successor] = /"code":"UPGRADED".*Process (\d+)/.exec(line) ?? []
    if (successor !== undefined) this.#upgraded(Number(successor))
    const [, name, url] = /^at (\S+) (\S+)$/.exec(line) ?? []
    if (name === undefined || url === undefined) return
    const server = SERVERS[Number(new URL(url).port) - FIRST_PORT]
    const known = this.#holders.get(name) ?? []
    this.#holders.set(name, known)
    if (server !== undefined) known.push({ at: now(), server })
  }

  // ── What is where ──────────────────────────────────────────────────────────────────────────────────────────

  #portOf(server: string): number {
    return FIRST_PORT + SERVERS.indexOf(server)
  }

  #urlOf(server: string): string {
    return `http://${this.places.address(server)}:${this.#portOf(server)}`
  }

  /** The server that the client of the name was connected to. */
  holderOf(name: string, at: number): string | undefined {
    return this.#holders.get(name)?.findLast(one => one.at <= at)?.server
  }

  groupOf(name: string): string {
    const share = this.names.length / this.groups.length
    return this.groups[Math.floor(this.names.indexOf(name) / share)] ?? ''
  }

  // ── What is done to them ───────────────────────────────────────────────────────────────────────────────────

  #runningOf(what: string): Running {
    const running = this.#running.get(what)
    if (running === undefined) throw new Error(`${what} does not run`)
    return running
  }

  signal(what: string, name: NodeJS.Signals): void {
    process.kill(this.#runningOf(what).pid, name)
  }

  async kill(what: string): Promise<void> {
    const { pid, child } = this.#runningOf(what)
    this.#running.delete(what)
    this.#asked.add(pid)
    process.kill(pid, 'SIGKILL')
    await gone(pid, child)
  }

  /** Tells it to end, and waits until it has ended. */
  async end(what: string): Promise<void> {
    const { pid, child } = this.#runningOf(what)
    this.#running.delete(what)
    this.#asked.add(pid)
    process.kill(pid, 'SIGTERM')
    const late = setTimeout(() => {
      this.deaths.push(`${what} had not ended after ${END_MS / 1_000} s`)
      process.kill(pid, 'SIGKILL')
    }, END_MS)
    await gone(pid, child)
    clearTimeout(late)
    if (child.pid === pid && what !== 'redis') await child.exited.then(code => this.#endedWith(what, code))
  }

  #endedWith(what: string, code: number): void {
    if (code !== 0) this.deaths.push(`${what} was told to end and ended with ${code}`)
  }

  /** The server replaces its program. Resolves when the old process has ended. */
  async upgrade(server: string): Promise<void> {
    const { pid, child } = this.#runningOf(server)
    const { promise, resolve } = Promise.withResolvers<number>()
    this.#upgraded = resolve
    this.#asked.add(pid)
    process.kill(pid, 'SIGUSR2')
    const successor = await Promise.race([promise, Bun.sleep(READY_MS).then(() => undefined)])
    if (successor === undefined) throw new Error(`${server} was not upgraded`)
    this.#running.set(server, { pid: successor, child })
    await gone(pid, child)
  }

  #upgraded: (pid: number) => void = () => {}

  // ── The end ────────────────────────────────────────────────────────────────────────────────────────────────

  async endVisits(): Promise<void> {
    await this.end('visitors')
  }

  /** Answers of `localtunnels admin <what>` of each server. */
  async ask<Of>(what: 'tunnels' | 'status' | 'nodes'): Promise<readonly Of[]> {
    return Promise.all(
      SERVERS.map(async server => {
        const flags = `admin ${what} --json --url http://${this.places.address(server)}:${ADMIN_PORT} --admin-token ${ADMIN_TOKEN}`
        const { stdout, stderr, code } = await finish([
          ...this.places.inside(server),
          'bun',
          PROGRAM,
          ...flags.split(' '),
        ])
        if (code !== 0) throw new Error(`${server}: ${stderr}`)
        return JSON.parse(stdout) as Of // what the caller knows it to be
      }),
    )
  }

  /** Everything ends as it is told to; what is left then is named in `deaths`. */
  async close(): Promise<void> {
    const order = ['visitors', ...this.groups, ...SERVERS, 'redis'].filter(what => this.#running.has(what))
    for (const what of order)
      if (!isThere(this.#runningOf(what).pid)) this.deaths.push(`${what} was gone at the end`)
    for (const what of order) await this.end(what)
    for (const pid of this.places.processes()) {
      this.deaths.push(`process ${pid} was left`)
      process.kill(pid, 'SIGKILL')
    }
    this.places.close()
    this.#files.remove()
  }
}

/** A process that another one has started is no child of this one. */
async function gone(pid: number, child: Launched): Promise<void> {
  if (child.pid === pid) return void (await child.exited)
  while (isThere(pid)) await Bun.sleep(20)
}

/** One that has ended is there until its parent has read how. */
function isThere(pid: number): boolean {
  try {
    return !/\) [ZX] /.test(readFileSync(`/proc/${pid}/stat`, 'latin1'))
  } catch {
    return false
  }
}
