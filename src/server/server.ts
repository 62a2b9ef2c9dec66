// The core of a tunnel server: takes visitors and clients on one port and brings them together.
/// <reference lib="esnext.disposable" preserve="true" />

import { TunnelError } from '../errors.ts'
import { eventLoop } from '../event-loop.ts'
import { Events } from '../events.ts'
import { watchWorkers } from '../sockets/worker-faults.ts'
import { VERSION } from '../version.ts'
import { ServerContext } from './context/server-context.ts'
import type { Install, WholeServer } from './contracts/part.ts'
import { Draining, nextTurn } from './draining.ts'
import { HttpFront } from './fronts/http.ts'
import { PublicPorts } from './fronts/public-ports.ts'
import { RawVisits } from './fronts/raw-visits.ts'
import { TlsFront, tlsTunnelOf } from './fronts/tls.ts'
import { Visitors } from './fronts/visitors.ts'
import { Admission } from './limits/admission.ts'
import { TokenThrottle } from './limits/token-throttle.ts'
import { entranceOf } from './listening/entrances.ts'
import { Listeners } from './listening/listeners.ts'
import { Redirects } from './listening/redirects.ts'
import { ClientRegistry } from './registration/client-registry.ts'
import { ControlHost, controlRoute } from './registration/control.ts'
import { settingsAfter, takeBack } from './reload.ts'
import { Exchanges } from './routing/exchanges.ts'
import { LaneOffers } from './routing/lane-offers.ts'
import { Serving } from './routing/serving.ts'
import { StartupHold } from './routing/startup-hold.ts'
import type { TunnelServerEvents, TunnelServerOptions } from './settings/options.ts'
import { serverSettings } from './settings/settings.ts'
import type { ServerStats } from './settings/stats.ts'
import { statsOf } from './stats-of.ts'

/** The server without its parts: `src/tunnel-server.ts` installs them. */
export class TunnelServer extends Events<TunnelServerEvents> implements AsyncDisposable {
  readonly #context: ServerContext
  readonly #draining: Draining
  readonly #visitors: Visitors
  readonly #rawVisits: RawVisits
  readonly #ports: PublicPorts
  readonly #exchanges: Exchanges
  readonly #admission: Admission
  readonly #startupHold: StartupHold
  readonly #clientRegistry: ClientRegistry
  readonly #listeners: Listeners
  readonly #whole: WholeServer
  #stopWatchingWorkers: (() => void) | undefined
  #starting: Promise<void> | undefined
  #stopping: Promise<void> | undefined
  /** The reload in progress. Reloads run one after the other, because each is compared with the result of the one before. */
  #reloading: Promise<void> = Promise.resolve()

  /**
   * Makes a server. `installs` are the `Install`s of its parts, in the order in which requests pass their layers; `fixed` are
   * `FixedBounds` that tests make small. Both are typed loosely, because the package does not export their types.
   */
  constructor(options: TunnelServerOptions = {}, installs: readonly object[] = [], fixed: object = {}) {
    super()
    if (typeof Bun === 'undefined') throw new TunnelError('RUNTIME_UNSUPPORTED')
    const context = new ServerContext(serverSettings(options, fixed), {
      emit: (event, payload) => this.emit(event, payload),
    })
    this.#context = context
    context.parts.use((installs as readonly Install[]).map(install => install(context)))
    this.#visitors = new Visitors(() => context.somethingEnded())
    this.#rawVisits = new RawVisits(context)
    this.#exchanges = new Exchanges(context)
    this.#admission = new Admission(context)
    this.#startupHold = new StartupHold(context)
    this.#draining = new Draining(context, {
      visitors: this.#visitors,
      exchanges: this.#exchanges,
      rawVisits: this.#rawVisits,
    })
    this.#ports = new PublicPorts(context, this.#rawVisits, this.#admission)
    this.#clientRegistry = new ClientRegistry(
      context,
      new TokenThrottle({
        limits: () => context.limits,
        scheduler: eventLoop,
        ruleOf: token => context.settings.policy.ruleOf(token),
        readingOf: (token, address) => context.settings.policy.readingOf(token, address),
        failed: error => context.failed(error),
      }),
      this.#admission,
      this.#ports,
      this.#startupHold,
      { urlOf: tunnel => this.#listeners.urlOf(tunnel) },
    )
    const control = new ControlHost(context, this.#clientRegistry)
    const serving = new Serving(context, this.#exchanges, this.#startupHold, arrival =>
      controlRoute(arrival, control),
    )
    const lanes = new LaneOffers(context, serving)
    const httpFront: HttpFront = new HttpFront(context, serving, lanes, this.#visitors)
    const redirects = new Redirects(context, serving, () => this.port)
    const redirectFront = new HttpFront(context, redirects, lanes, this.#visitors)
    const tlsFront = new TlsFront(context, this.#rawVisits)
    this.#listeners = new Listeners(context, this.#admission, httpFront, redirectFront, tlsFront)
    const [listeners, admission] = [this.#listeners, this.#admission]
    this.#whole = {
      router: serving,
      get port() {
        return listeners.port
      },
      get visitorCount() {
        return admission.count
      },
      clients: this.#clientRegistry.clients,
      raw: this.#rawVisits,
      ports: this.#ports,
      stats: () => this.getStats(),
      urlOf: tunnel => listeners.urlOf(tunnel),
      on: (event, listener) => this.on(event, listener),
      accept: (socket, entrance) => httpFront.accept(socket, entrance, undefined),
      entranceOf: proto => entranceOf(context, proto),
      tunnelFor: (kind, wanted) =>
        kind === 'tls'
          ? tlsTunnelOf(context, wanted)
          : context.tunnels.find(kind === 'private' ? wanted : `${kind}-${wanted}`),
      claimedElsewhere: name => {
        this.#startupHold.isElsewhere(name)
        context.parts.claimedElsewhere(name)
      },
      allowanceChanged: () => {
        takeBack(context.settings, this.#clientRegistry.clients, context.tunnels)
        context.tunnels.routesChanged()
      },
    }
  }

  /** Listens. Rejects with `PORT_IN_USE`, `TLS_INVALID`, or `STATE_INVALID` when it was started before. */
  async start(): Promise<void> {
    const context = this.#context
    if (context.state !== 'idle') throw new TunnelError('STATE_INVALID', `The server is ${context.state}.`)
    context.state = 'starting'
    this.#starting = this.#open()
    try {
      await this.#starting
    } catch (error) {
      context.state = 'idle'
      throw error
    }
    context.state = 'running'
    context.counters.startedAt = Date.now()
    context.deadlines.start()
    this.#stopWatchingWorkers = watchWorkers(error => this.emit('error', error))
    this.#admission.start()
    this.#startupHold.begin()
    this.emit('start', { port: this.port, url: this.url })
    const open = context.settings.openFault(context.inheritance?.areLocal)
    if (open !== undefined) this.emit('warning', open)
  }

  /**
   * Drains and stops. The server accepts no new connections, clients or WebSockets. For `drainIdleMs` it still serves
   * requests on kept-alive connections, with `Connection: close`. Exchanges have up to `drainTimeoutMs` to finish;
   * then they are cut. A second call waits for the same end.
   */
  async stop(): Promise<void> {
    // A part that fails to start has nothing to stop; `start()` tells its caller why.
    if (this.#context.state === 'starting') await this.#starting?.catch(() => {})
    if (this.#context.state === 'running') this.#stopping = this.#drainAndStop('SERVER_DRAINING')
    await this.#stopping
  }

  /**
   * Stops this server after another program took over its sockets and serves already. Clients are sent to that
   * program at once; open requests finish here.
   */
  async handOver(): Promise<void> {
    if (this.#context.state === 'running') this.#stopping = this.#drainAndStop('SERVER_REPLACED')
    await this.#stopping
  }

  /**
   * The descriptors of the listening sockets, this server's own port first. Another program gets them as `inherited`
   * to take over.
   */
  get descriptors(): readonly number[] {
    return [...this.#listeners.descriptors, ...this.#ports.descriptors]
  }

  /**
   * Applies new options without dropping a visitor. `options` are complete, as for a new server, but `port` and
   * `host` may be left out. A tunnel that the new options forbid is revoked, with the error code of a refused
   * registration; all others continue. New limits apply to what starts afterwards, and new certificates to new
   * handshakes.
   *
   * Rejects with the errors of the constructor, `TLS_INVALID`, `STATE_INVALID` if the server is not running, and
   * `OPTION_INVALID` for another `port` or `host`, or for `tls` where there was none. Then nothing has changed.
   */
  async reload(options: TunnelServerOptions): Promise<void> {
    const reloading = this.#reloading.then(() => this.#reload(options))
    this.#reloading = reloading.catch(() => {})
    await reloading
  }

  /** Calls `stop()` at the end of an `await using` block. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop()
  }

  /** The port that the server listens on; before `start()`, the requested one. */
  get port(): number {
    return this.#listeners.port
  }

  /** The port of TLS tunnels. `undefined` if there is none. */
  get tlsPort(): number | undefined {
    return this.#listeners.tlsPort
  }

  /** The port that redirects HTTP to HTTPS. */
  get httpPort(): number | undefined {
    return this.#listeners.httpPort
  }

  /**
   * Whether `host` should have a certificate: it is a domain of the server, or the host of an HTTP or TLS tunnel,
   * including tunnels whose client is away. A client can name a custom domain that does not point to this server, so
   * look up its DNS before you order a certificate. `host` is lower-case, without a port.
   */
  isKnownHost(host: string): boolean {
    return this.#context.isKnownHost(host)
  }

  /** As `isKnownHost`, for all servers of the cluster. Rejects if the directory cannot be asked. */
  async isKnownHostAnywhere(host: string): Promise<boolean> {
    const { servers } = this.#context
    if (this.isKnownHost(host) || servers === undefined) return this.isKnownHost(host)
    const destination = this.#context.destinationOf(host)
    if (destination.kind === 'control' || (destination.kind === 'tunnel' && destination.isBelow)) return false
    const nodes = await servers.find(destination.kind === 'tunnel' ? destination.name : host)
    return nodes !== undefined && nodes.length > 0
  }

  /**
   * The ACME challenge responses that all servers of the cluster share, for `AcmeCertificates`. `undefined` if the
   * server is alone.
   */
  get sharedAnswers():
    | {
        get(key: string): string | undefined
        put(key: string, text: string, untilMs: number): Promise<void>
        remove(key: string): void
      }
    | undefined {
    return this.#context.servers?.shared?.answers
  }

  /**
   * Returns the owner of the tunnel with `host`: the same text for all tunnels of one token, or of one address
   * without a token. `undefined` if there is no such tunnel.
   */
  ownerOfHost(host: string): string | undefined {
    return this.#context.ownerOfHost(host)
  }

  /** The control host's own URL, where clients connect. */
  get url(): string {
    return this.#listeners.urlOf(undefined)
  }

  /** The URL of the admin listener. `undefined` if there is none, or before it listens. */
  get adminUrl(): string | undefined {
    return this.#context.parts.url
  }

  /** Returns the current counters; with `includeSubdomains`, also the names of tunnels. */
  getStats(includeSubdomains = false): ServerStats {
    const { clients } = this.#clientRegistry
    return statsOf(this.#context, VERSION, clients.size, this.#rawVisits.count, includeSubdomains)
  }

  protected override listenersChanged(event: keyof TunnelServerEvents): void {
    if (event !== 'request' && event !== 'requests') return
    this.#context.isHeard = this.hasListeners('request') || this.hasListeners('requests')
    this.#context.tunnels.routesChanged()
  }

  // ── Start and stop ─────────────────────────────────────────────────────────────────────────────────────────

  async #open(): Promise<void> {
    const { settings, parts } = this.#context
    await parts.load(settings)
    try {
      // Visitors can arrive on an inherited socket as soon as it opens, so parts start before it.
      await parts.start(this.#whole)
      await this.#listeners.open()
      await parts.listening()
    } catch (error) {
      this.#listeners.close(true)
      await parts.stop()
      throw error
    }
  }

  async #reload(options: TunnelServerOptions): Promise<void> {
    const context = this.#context
    const before = context.settings
    const next = settingsAfter(before, options)
    await context.parts.load(next)
    const showCertificate = await this.#listeners.prepare(next)
    if (!context.isRunning) throw new TunnelError('STATE_INVALID', `The server is ${context.state}.`)
    showCertificate?.()
    context.settings = next
    context.parts.reloaded()
    takeBack(next, this.#clientRegistry.clients, context.tunnels)
    context.tunnels.routesChanged()
    this.#visitors.forgetHops()
    const areLocal = context.inheritance?.areLocal
    const open = next.openFault(areLocal)
    if (open !== undefined && before.openFault(areLocal) === undefined) this.emit('warning', open)
  }

  async #drainAndStop(code: 'SERVER_DRAINING' | 'SERVER_REPLACED'): Promise<void> {
    const context = this.#context
    const { tunnels } = context
    const { clients } = this.#clientRegistry
    context.state = 'draining'
    // Closing a listener resets the connections in its queue, which is nearly empty right after a turn of the event
    // loop. No response says "close" before that, because its visitor would reconnect into that queue.
    await nextTurn()
    this.#listeners.close(false)
    context.isShut = true
    context.parts.drain(code)
    for (const client of clients) client.drain(code)
    this.#startupHold.end('SERVER_DRAINING')
    tunnels.drain('SERVER_DRAINING')
    tunnels.routesChanged()
    this.#visitors.drain()
    const until = performance.now() + context.limits.drainTimeoutMs
    await this.#draining.untilIdle(context.limits.drainTimeoutMs)
    await context.parts.idle(Math.max(0, until - performance.now()))
    context.state = 'stopped'
    tunnels.clear('SERVER_DRAINING')
    for (const client of [...clients]) client.close('SERVER_DRAINING')
    await this.#draining.untilEmpty()
    this.#visitors.letGo()
    this.#admission.stop()
    context.faults.flush()
    context.deadlines.stop()
    this.#stopWatchingWorkers?.()
    await context.parts.stop()
    this.#listeners.close(true)
    this.emit('stop', {})
  }
}
