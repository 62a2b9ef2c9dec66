// The world of one simulation: servers, clients with their apps, visitors and a Redis, on machines of a network. What it offers are the
// things that can happen to them.

// Loaded before: inside, nothing waits for files.
import '../../src/parts/cluster/joining.ts'
import '../../src/parts/http2/connection.ts'
import '../../src/parts/lanes/client/session-trunk.ts'
import '../../src/sockets/authorities.ts'
import '../../src/sockets/bun.ts'
import '../../src/sockets/dial.ts'
import type { DirectoryTimes } from '../../src/directory.ts'
import { TunnelError } from '../../src/errors.ts'
import type { ServerLimits } from '../../src/server/settings/options.ts'
import { TunnelClient } from '../../src/tunnel-client.ts'
import { TunnelServer } from '../../src/tunnel-server.ts'
import { Random } from '../support/random.ts'
import { APP_PORT, App } from './app.ts'
import { Network } from './network.ts'
import { Machine, Process } from './process.ts'
import { Redis } from './redis.ts'
import { RedisDirectory } from './redis-directory.ts'
import { Runtime } from './runtime.ts'
import { Timeline } from './timeline.ts'
import { Trace } from './trace.ts'
import { type Outcome, type Question, question, Visitor } from './visitor.ts'

export const DOMAIN = 'tunnel.example'
const SERVER_PORT = 8_080
/** A client that was refused for good is started again by whoever runs it. */
const RESTART_MS = 1_000

export interface WorldOptions {
  readonly servers: number
  /** The tunnels: one client each, whose app has the same name. */
  readonly names: readonly string[]
  /** One of them that two clients share. Default: none. */
  readonly pooled?: string | undefined
  readonly whenUnreachable?: 'refuse' | 'grant'
  readonly limits?: Partial<ServerLimits>
  readonly times?: Partial<DirectoryTimes>
}

/** A server of the cluster, running or not. */
export interface ServerPlace {
  readonly name: string
  readonly machine: Machine
  process: Process | undefined
  server: TunnelServer | undefined
  directory: RedisDirectory | undefined
  /** It has started, and does not stop. */
  isUp: boolean
}

/** A client with its app, running or not. */
export interface ClientPlace {
  readonly name: string
  readonly machine: Machine
  process: Process | undefined
  client: TunnelClient | undefined
  isUp: boolean
}

export interface Granted {
  readonly name: string
  readonly node: string
  readonly epoch: number
}

export class World {
  readonly timeline: Timeline = new Timeline()
  readonly random: Random
  readonly network: Network
  readonly trace: Trace = new Trace()
  readonly redis: Redis
  readonly servers: readonly ServerPlace[]
  readonly clients: readonly ClientPlace[]
  /** All that the directory has granted, in its order. */
  readonly granted: Granted[] = []
  /** What must not happen, and has. */
  readonly broken: string[] = []
  readonly #options: WorldOptions
  readonly #runtime: Runtime
  readonly #visitors: Process
  readonly #frozen = new Set<Process>()
  #questions = 0
  /** Requests with bodies that came to an app. */
  readonly #posted = new Set<string>()

  constructor(seed: number, options: WorldOptions) {
    this.#options = options
    this.random = new Random(seed)
    this.network = new Network(this.timeline, this.random)
    this.#runtime = new Runtime(this.timeline, this.network, new Random(seed + 1))
    const machine = (address: string): Machine => {
      const one = new Machine(address)
      this.network.add(one)
      return one
    }
    this.redis = new Redis(machine('10.0.0.1'), this.network, this.timeline)
    this.servers = Array.from({ length: options.servers }, (_, index) => ({
      name: `s${index + 1}`,
      machine: machine(`10.0.1.${index + 1}`),
      process: undefined,
      server: undefined,
      directory: undefined,
      isUp: false,
    }))
    const { names, pooled } = options
    this.clients = [...names, ...(pooled === undefined ? [] : [pooled])].map((name, index) => ({
      name,
      machine: machine(`10.0.2.${index + 1}`),
      process: undefined,
      client: undefined,
      isUp: false,
    }))
    this.#visitors = new Process('visitors', machine('10.0.3.1'), this.timeline)
    this.timeline.failed = (process, error) =>
      this.broke(`${process?.name ?? 'the world'} threw into the event loop: ${String(error)}`)
    this.timeline.noted = process => this.trace.note(this.timeline.now, process?.name ?? '-', '', true)
  }

  /** Runs `work` on the simulated runtime. */
  within<Result>(work: () => Result): Result {
    return this.#runtime.run(work)
  }

  /** As `WorldOptions.pooled`. */
  get pooled(): string | undefined {
    return this.#options.pooled
  }

  note(who: string, what: string): void {
    this.trace.note(this.timeline.now, who, what)
  }

  /** It must not happen. */
  broke(what: string): void {
    this.note('BROKEN', what)
    if (this.broken.length < 100) this.broken.push(`${(this.timeline.now / 1_000).toFixed(3)} s: ${what}`)
  }

  pass(ms: number): void {
    this.timeline.run(this.timeline.now + ms)
  }

  // ── Servers ────────────────────────────────────────────────────────────────────────────────────────────────

  startServer(place: ServerPlace): void {
    if (place.process !== undefined) return
    const { machine, name } = place
    this.#powerOn(machine)
    const process = new Process(name, machine, this.timeline)
    place.process = process
    this.note(name, 'starts')
    const { whenUnreachable = 'refuse', limits, times } = this.#options
    this.timeline.as(process, () => {
      const directory = new RedisDirectory(process, this.redis, {
        did: what => this.note(`${name} in redis:`, what),
        granted: (granted, node, epoch, isShared) => this.#granted(granted, node, epoch, isShared),
      })
      const server = new TunnelServer({
        host: machine.address,
        port: SERVER_PORT,
        domains: [DOMAIN],
        cluster: {
          directory,
          whenUnreachable,
          peerUrl: `http://${machine.address}:${SERVER_PORT}`,
          ...(times && { times }),
        },
        ...(limits && { limits }),
      })
      place.server = server
      place.directory = directory
      server.on('error', error => this.note(name, `error ${error.message}`))
      server.start().then(
        () => {
          place.isUp = true
          this.note(name, 'is up')
        },
        (error: Error) => {
          this.note(name, `cannot start: ${error.message}`)
          // As a supervisor does.
          void directory.close()
          this.killServer(place, false)
          this.timeline.after(RESTART_MS, undefined, () => this.startServer(place))
        },
      )
    })
  }

  /** SIGKILL; or, `isSilent`, its machine is gone without a word. */
  killServer(place: ServerPlace, isSilent: boolean): void {
    const { process } = place
    if (process === undefined) return
    this.note(place.name, isSilent ? 'loses its power' : 'is killed')
    if (isSilent) place.machine.isOff = true
    this.network.killed(process, isSilent)
    process.kill()
    place.directory?.vanish(isSilent)
    place.process = undefined
    place.server = undefined
    place.directory = undefined
    place.isUp = false
  }

  /** SIGTERM. */
  stopServer(place: ServerPlace, stopped: () => void = () => {}): void {
    const { process, server, directory } = place
    if (process === undefined || server === undefined || !place.isUp) return
    this.note(place.name, 'stops')
    place.isUp = false
    this.timeline.as(process, () => {
      void server.stop().then(async () => {
        await directory?.close()
        this.note(place.name, 'has stopped')
        // A dial cannot be stopped: what comes of it is cut once it is up.
        this.timeline.after(1_000, undefined, () => {
          if (place.process !== process) return
          this.#checkNothingLeft(process)
          this.network.killed(process, false)
          process.kill()
          place.process = undefined
          place.server = undefined
          place.directory = undefined
          stopped()
        })
      })
    })
  }

  // ── Clients ────────────────────────────────────────────────────────────────────────────────────────────────

  startClient(place: ClientPlace): void {
    if (place.process !== undefined) return
    const { machine, name } = place
    this.#powerOn(machine)
    const isSecond = this.clients.find(one => one.name === name) !== place
    const process = new Process(`c-${name}${isSecond ? '-2' : ''}`, machine, this.timeline)
    place.process = process
    this.note(process.name, 'starts')
    this.timeline.as(process, () => {
      const later = (ms: number, run: () => void): void => void this.timeline.after(ms, process, run)
      new App(name, process, this.network, later, nonce => {
        if (this.#posted.has(nonce)) this.broke(`${name} got ${nonce} twice, which its visitor sent once`)
        this.#posted.add(nonce)
      })
      this.#connect(place, process)
    })
  }

  #connect(place: ClientPlace, process: Process): void {
    const first = this.clients.indexOf(place)
    // Each begins with another server.
    const servers = this.servers.map(
      (_, index) =>
        `http://${this.servers[(first + index) % this.servers.length]?.machine.address}:${SERVER_PORT}`,
    )
    const client = new TunnelClient({
      server: servers,
      subdomain: place.name,
      exact: true,
      ...(place.name === this.#options.pooled && { pool: true }),
      port: APP_PORT,
      proxy: false,
    })
    place.client = client
    const again = (): void => {
      place.isUp = false
      this.timeline.after(RESTART_MS, process, () => this.#connect(place, process))
    }
    client.on('connected', () => {
      place.isUp = true
      this.note(process.name, 'is connected')
    })
    client.on('disconnected', ({ error }) => {
      place.isUp = false
      this.note(process.name, `is disconnected: ${codeOf(error)}`)
    })
    client.on('error', error => this.note(process.name, `error ${codeOf(error)} ${error.message}`))
    client.on('close', ({ error }) => {
      this.note(process.name, `ends: ${codeOf(error)}`)
      if (error !== undefined) again()
    })
    client.connect().catch((error: unknown) => {
      this.note(process.name, `cannot connect: ${codeOf(error)}`)
      again()
    })
  }

  killClient(place: ClientPlace, isSilent: boolean): void {
    const { process } = place
    if (process === undefined) return
    this.note(process.name, isSilent ? 'loses its power' : 'is killed')
    if (isSilent) place.machine.isOff = true
    this.network.killed(process, isSilent)
    process.kill()
    place.process = undefined
    place.client = undefined
    place.isUp = false
  }

  /** All clients disconnect, and all servers stop. */
  end(): void {
    for (const { process, client } of this.clients)
      if (process !== undefined && client !== undefined)
        this.timeline.as(process, () => void client.disconnect())
    this.pass(5_000)
    for (const { process } of this.clients) if (process !== undefined) this.#checkNothingLeft(process)
    for (const place of this.servers) this.stopServer(place)
    this.pass(40_000)
    for (const { name, process } of this.servers)
      if (process !== undefined) this.broke(`${name} does not stop`)
  }

  /** A server or client that has ended has no timer and no connection any more. */
  #checkNothingLeft(process: Process): void {
    const open = this.network.openOf(process)
    if (process.timers.size > 0)
      this.broke(`${process.name} has ended, and ${process.timers.size} timers would go off`)
    if (open > 0) this.broke(`${process.name} has ended, and has ${open} connections`)
  }

  // ── What happens to them ───────────────────────────────────────────────────────────────────────────────────

  /** One connection, but for those of visitors. Returns which. */
  harmConnection(isCut: boolean): string | undefined {
    return this.network.harm(isCut, ({ process, peer }) => ![process, peer.process].includes(this.#visitors))
  }

  freeze(process: Process): void {
    this.#frozen.add(process)
    process.freeze()
  }

  /** At any time. */
  wasFrozen(process: Process): boolean {
    return this.#frozen.has(process)
  }

  startRedis(isEmpty: boolean): void {
    if (this.redis.process !== undefined) return
    this.note('redis', isEmpty ? 'is back, empty' : 'is back with its data')
    this.redis.start(isEmpty)
  }

  /** All machines run and reach each other. */
  heal(): void {
    this.startRedis(false)
    this.redis.process?.thaw()
    this.redis.costMs = 0.02
    for (const place of this.servers) {
      place.process?.thaw()
      this.startServer(place)
    }
    for (const place of this.clients) {
      place.process?.thaw()
      this.startClient(place)
    }
    this.network.heal()
  }

  #powerOn(machine: Machine): void {
    if (!machine.isOff) return
    machine.isOff = false
    this.network.freed()
  }

  // ── Visitors ───────────────────────────────────────────────────────────────────────────────────────────────

  visitor(place: ServerPlace): Visitor {
    return new Visitor(this.#visitors, this.network, place.machine.address, what =>
      this.broke(`a visitor of ${place.name} got bytes that it did not ask for: ${what}`),
    )
  }

  /** Asks at a server for a tunnel; a wrong answer is a fault, whatever else happens. */
  ask(
    visitor: Visitor,
    place: ServerPlace,
    name: string,
    over: (outcome: Outcome) => void,
    terms: Partial<Question> = {},
  ): Question {
    const asked = { ...question(this.random, name, DOMAIN, `q${++this.#questions}`), ...terms }
    this.timeline.as(this.#visitors, () =>
      visitor.ask(asked, outcome => {
        const detail =
          outcome.kind === 'refused' ? outcome.code : outcome.kind === 'failed' ? outcome.why : ''
        this.trace.note(
          this.timeline.now,
          asked.nonce,
          `${place.name} ${name} ${asked.kind} ${outcome.kind} ${detail}`,
          outcome.kind === 'ok',
        )
        if (outcome.kind === 'wrong') this.broke(`at ${place.name}: ${outcome.what}`)
        over(outcome)
      }),
    )
    return asked
  }

  leave(visitor: Visitor): void {
    this.timeline.as(this.#visitors, () => visitor.leave())
  }

  /** The visitor asks again after `ms`. */
  later(ms: number, run: () => void): void {
    this.timeline.after(ms, undefined, run)
  }

  // ── The directory ──────────────────────────────────────────────────────────────────────────────────────────

  #granted(name: string, node: string, epoch: number, isShared: boolean): void {
    const earlier = this.granted.findLast(one => one.name === name)
    if (!isShared && earlier !== undefined && earlier.epoch >= epoch)
      this.broke(`${name} was granted with epoch ${epoch}, and before with ${earlier.epoch}`)
    this.granted.push({ name, node, epoch })
  }
}

function codeOf(error: unknown): string {
  if (error === undefined) return 'as asked'
  return error instanceof TunnelError ? error.code : error instanceof Error ? error.message : 'unknown'
}
