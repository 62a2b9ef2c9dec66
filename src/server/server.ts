// TunnelServer: takes visitors and clients on one port and brings them together.
/// <reference lib="esnext.disposable" preserve="true" />

import { isIP } from 'node:net'
import { deferred } from '../deferred.ts'
import { TunnelError } from '../errors.ts'
import { eventLoop } from '../event-loop.ts'
import { Events } from '../events.ts'
import type { RequestHead } from '../http/head.ts'
import { formatUrl } from '../names.ts'
import { Turns } from '../session/turns.ts'
import type { Socket, SocketHandler } from '../socket.ts'
import { watchWorkers } from '../sockets/worker-faults.ts'
import { VERSION } from '../version.ts'
import { Admission, type AdmissionHost, type Seat } from './admission.ts'
import { adopt } from './adopt.ts'
import { type ClaimHost, claim, detailOf, refusalOf } from './claims.ts'
import type { ClientConnection, ClientHost } from './clients.ts'
import { type ControlDesk, controlRoute } from './control.ts'
import { Deadlines } from './deadlines.ts'
import { type AcceptVisitor, Doors } from './doors.ts'
import { Exchanges } from './exchanges.ts'
import type { LaneGrant, Route, TunnelRoute, VisitorHost } from './front.ts'
import { listenTcp, type TcpFrontHost } from './fronts/tcp.ts'
import { TlsFront, type TlsFrontHost } from './fronts/tls.ts'
import type { UdpFrontHost } from './fronts/udp.ts'
import { HeldBytes } from './head-buffer.ts'
import { type Holder, Holdings } from './holdings.ts'
import { LinkGate } from './links.ts'
import type { TunnelServerEvents, TunnelServerOptions } from './options.ts'
import { proberOf, probeUpstream } from './probe.ts'
import { acceptProxied, type ProxiedHost } from './proxied.ts'
import { RawVisits } from './raw-visits.ts'
import { settingsAfter, takeBack } from './reload.ts'
import { destinationOf, type NamedTunnel } from './route.ts'
import { Serving } from './serving.ts'
import { isOpenServer, type ServerSettings, serverSettings } from './settings.ts'
import { StartupHold } from './startup-hold.ts'
import { Counters, type ServerStats } from './stats.ts'
import { TokenGate } from './token-gate.ts'
import { refusalOfName, type Tunnel, Tunnels } from './tunnels.ts'
import { UnfinishedMessages } from './unfinished-messages.ts'
import { VisitorConnection } from './visitor.ts'
import { Visitors } from './visitors.ts'

/** How long connections may take to close by themselves at the very end of `stop()`. */
const LAST_WORDS_MS = 1_000

type State = 'idle' | 'starting' | 'running' | 'draining' | 'stopped'

/**
 * A tunnel server in this process: `start()` listens, `stop()` drains. Many may run in one process. Nothing that a
 * visitor or a client sends makes it throw; what goes wrong inside arrives as an `error` event.
 *
 * Throws `OPTION_INVALID`, `PORT_INVALID` for options that cannot be used and `RUNTIME_UNSUPPORTED` outside of Bun.
 */
export class TunnelServer extends Events<TunnelServerEvents> implements AsyncDisposable {
  /** Replaced as a whole by `reload()`: who wants some of it asks when it needs it. */
  #settings: ServerSettings
  readonly #deadlines: Deadlines = new Deadlines(error => this.emit('error', error))
  readonly #turns: Turns = new Turns(eventLoop, error => this.emit('error', error))
  readonly #tunnels: Tunnels
  readonly #counters: Counters = new Counters()
  readonly #visitors: Visitors = new Visitors(() => this.#visitorsChanged())
  readonly #heads: RequestHead[] = []
  readonly #heldInput: HeldBytes = new HeldBytes()
  readonly #clients = new Set<ClientConnection>()
  readonly #holdings: Holdings = new Holdings(() => this.#settings.limits)
  /** Flows of all UDP tunnels. */
  readonly #flows = { count: 0 }
  readonly #linkGate: LinkGate = new LinkGate()
  readonly #tokenGate: TokenGate
  readonly #desk: ControlDesk
  readonly #rawVisits: RawVisits = new RawVisits({
    counters: this.#counters,
    connected: event => this.emit('visitorConnected', event),
    disconnected: event => this.emit('visitorDisconnected', event),
    noneLeft: () => this.#maybeDrained(),
  })
  readonly #exchanges: Exchanges
  readonly #serving: Serving
  readonly #tlsFront: TlsFront
  readonly #admission: Admission
  readonly #startupHold: StartupHold
  readonly #doors: Doors
  #state: State = 'idle'
  /** No visitor comes in any more: from now on each answer is the last on its connection. */
  #isShut = false
  #stopWatchingWorkers: (() => void) | undefined
  #startedAt = 0
  #starting: Promise<void> | undefined
  #stopping: Promise<void> | undefined
  /** One after the other: each is compared with what the one before it left. */
  #reloading: Promise<void> = Promise.resolve()
  /** Resolves `stop()` when the last exchange is over. */
  #drained: (() => void) | undefined
  #allLeft: (() => void) | undefined

  constructor(options: TunnelServerOptions = {}) {
    super()
    if (typeof Bun === 'undefined') throw new TunnelError('RUNTIME_UNSUPPORTED')
    this.#settings = serverSettings(options)
    this.#tunnels = new Tunnels(() => this.#settings.limits, this.#deadlines)
    this.#exchanges = new Exchanges({
      counters: this.#counters,
      tunnels: this.#tunnels,
      isHeard: () => this.hasListeners('request'),
      over: event => this.emit('request', event),
      fewer: () => this.#maybeDrained(),
    })
    this.#admission = new Admission(this.#admissionHost())
    this.#startupHold = new StartupHold(() => this.#settings.limits, this.#deadlines)
    this.#tlsFront = new TlsFront(this.#tlsFrontHost())
    this.#doors = new Doors({
      tlsFront: this.#tlsFront,
      entrance: (proto, accept) => this.#behindProxies(proto, accept),
      admission: this.#admission,
      visitor: (socket, host, seat) => this.#acceptVisitor(socket, host, seat),
      failed: error => this.emit('error', error),
    })
    this.#tokenGate = new TokenGate({
      limits: () => this.#settings.limits,
      scheduler: eventLoop,
      ruleOf: token => this.#settings.policy.ruleOf(token),
    })
    this.#desk = this.#controlDesk()
    this.#serving = new Serving({
      isSecure: () => this.#isSecure,
      isTrusted: address => this.#isTrusted(address),
      isDraining: () => this.#state !== 'running',
    })
  }

  /** Listens. Rejects with `PORT_IN_USE`, `TLS_INVALID`, or `STATE_INVALID` when it was started before. */
  async start(): Promise<void> {
    if (this.#state !== 'idle') throw new TunnelError('STATE_INVALID', `The server is ${this.#state}.`)
    this.#state = 'starting'
    this.#starting = this.#doors.open(this.#settings)
    try {
      await this.#starting
    } catch (error) {
      this.#state = 'idle'
      throw error
    }
    this.#state = 'running'
    this.#startedAt = Date.now()
    this.#deadlines.start()
    this.#stopWatchingWorkers = watchWorkers(error => this.emit('error', error))
    this.#admission.start()
    this.#startupHold.begin()
    this.emit('start', { port: this.port, url: this.url })
    if (isOpenServer(this.#settings)) this.emit('warning', new TunnelError('OPEN_SERVER'))
  }

  /**
   * Drains and stops: takes no new connections, clients and WebSockets; serves what is asked on kept-alive connections within
   * `drainIdleMs`, with `Connection: close`; lets exchanges finish for up to `drainTimeoutMs`, then cuts what is left. A second
   * call waits for the same end.
   */
  async stop(): Promise<void> {
    // One that fails to start has nothing to stop; `start()` tells its caller why.
    if (this.#state === 'starting') await this.#starting?.catch(() => {})
    if (this.#state === 'running') this.#stopping = this.#drainAndStop()
    await this.#stopping
  }

  /**
   * Works by other options from now on, without dropping a visitor: `options` are all of them, as for a new server, but
   * `port` and `host` may be left out. A tunnel that they do not allow any more is taken back, with the code with which
   * it would be refused; everything else goes on. New limits bound what begins after, a new certificate is shown in new
   * handshakes.
   *
   * Rejects with what the constructor throws, `TLS_INVALID`, `STATE_INVALID` when it does not run, and `OPTION_INVALID`
   * for another `port` or `host`, or `tls` where there was none: then nothing has changed.
   */
  async reload(options: TunnelServerOptions): Promise<void> {
    const reloading = this.#reloading.then(() => this.#reload(options))
    this.#reloading = reloading.catch(() => {})
    await reloading
  }

  /** `stop()`, at the end of an `await using` block. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop()
  }

  /** The port it listens on; the one asked for before `start()`. */
  get port(): number {
    return this.#doors.port ?? this.#settings.port
  }

  /** The port of TLS tunnels, likewise; `undefined`: there is none. */
  get tlsPort(): number | undefined {
    const { tlsPort, sharesTlsPort } = this.#settings
    return this.#doors.tlsPort ?? (sharesTlsPort ? this.port : tlsPort)
  }

  /** The control host's own URL, where clients connect. */
  get url(): string {
    return this.#urlOf(undefined)
  }

  /** Counters now; with `includeSubdomains` also the names held. */
  getStats(includeSubdomains = false): ServerStats {
    const uptimeSeconds = this.#startedAt === 0 ? 0 : Math.floor((Date.now() - this.#startedAt) / 1000)
    const { totalConnections, pending, rawVisitors } = this.#counters
    const { requests, bytesIn, bytesOut } = this.#tunnels.lanes.addedTo(this.#counters)
    return {
      status: this.#state === 'running' ? 'operational' : this.#state === 'draining' ? 'draining' : 'stopped',
      version: VERSION,
      connections: this.#clients.size,
      totalConnections,
      activeSubdomains: this.#tunnels.count,
      rawVisitors: this.#rawVisits.count,
      totalRawVisitors: rawVisitors,
      ...(includeSubdomains && {
        subdomains: this.#tunnels.names(),
        droppedDatagramsByTunnel: this.#tunnels.droppedDatagrams(),
      }),
      flows: this.#flows.count,
      droppedDatagrams: this.#counters.droppedDatagrams,
      pendingResponses: pending,
      requests,
      uptimeSeconds,
      uptime: `${uptimeSeconds}s`,
      bytesIn,
      bytesOut,
    }
  }

  protected override listenersChanged(event: keyof TunnelServerEvents): void {
    if (event === 'request') this.#tunnels.recallLanes()
  }

  // ── Start and stop ─────────────────────────────────────────────────────────────────────────────────────────

  async #reload(options: TunnelServerOptions): Promise<void> {
    const next = settingsAfter(this.#settings, options)
    const isNewCertificate =
      next.tls?.cert !== this.#settings.tls?.cert ||
      next.tls?.key !== this.#settings.tls?.key ||
      next.tls?.ciphers !== this.#settings.tls?.ciphers
    const showCertificate = isNewCertificate && next.tls && (await this.#doors.prepareTls(next.tls))
    if (this.#state !== 'running') throw new TunnelError('STATE_INVALID', `The server is ${this.#state}.`)
    if (showCertificate) showCertificate()
    const isOpenNow = isOpenServer(next) && !isOpenServer(this.#settings)
    this.#settings = next
    takeBack(next, this.#clients, this.#tunnels)
    this.#tunnels.recallLanes()
    this.#visitors.forgetHops()
    if (isOpenNow) this.emit('warning', new TunnelError('OPEN_SERVER'))
  }

  async #drainAndStop(): Promise<void> {
    this.#state = 'draining'
    // Closing a listener resets the connections that wait in its queue: right after a turn of the event loop it is nearly
    // empty. Before, no answer says "close", because its visitor would be in that queue next.
    await turn()
    this.#doors.close(false)
    this.#isShut = true
    for (const client of this.#clients) client.drain()
    this.#startupHold.end('SERVER_DRAINING')
    this.#tunnels.drain('SERVER_DRAINING')
    this.#tunnels.recallLanes()
    this.#visitors.drain()
    await this.#whenDrained()
    this.#state = 'stopped'
    this.#tunnels.clear('SERVER_DRAINING')
    for (const client of [...this.#clients]) client.close('SERVER_DRAINING')
    await this.#whenAllLeft()
    this.#visitors.letGo()
    this.#admission.stop()
    this.#deadlines.stop()
    this.#stopWatchingWorkers?.()
    this.#doors.close(true)
    this.emit('stop', {})
  }

  // ── Visitors ───────────────────────────────────────────────────────────────────────────────────────────────

  #visitorHost(proto: 'http' | 'https', mayBeTrusted = true): VisitorHost {
    const limits = () => this.#settings.limits
    return {
      get limits() {
        return limits()
      },
      deadlines: this.#deadlines,
      turns: this.#turns,
      proto,
      hstsLine: () => (proto === 'https' ? this.#settings.hstsLine : undefined),
      heldInput: this.#heldInput,
      heads: this.#heads,
      isDraining: () => this.#isShut,
      isTrusted: address => mayBeTrusted && this.#isTrusted(address),
      begun: visitor => this.#exchanges.begun(visitor),
      route: visitor => this.#route(visitor),
      elsewhere: (visitor, code) => this.#serving.elsewhere(visitor, code),
      switched: visitor => this.#exchanges.switched(visitor),
      finished: (visitor, code) => this.#exchanges.finished(visitor, code),
      laneTerms: visitor => this.#laneTerms(visitor),
      settled: () => this.#visitors.settled(),
      left: visitor => this.#visitors.left(visitor),
    }
  }

  #admissionHost(): AdmissionHost {
    const settings = () => this.#settings
    return {
      get limits() {
        return settings().limits
      },
      get addressBounds() {
        return settings().addressBounds
      },
      deadlines: this.#deadlines,
      isTrusted: address => this.#isTrusted(address),
      failed: error => this.emit('error', error),
    }
  }

  #isTrusted(address: string): boolean {
    return this.#settings.trusted?.check(address, isIP(address) === 6 ? 'ipv6' : 'ipv4') ?? false
  }

  #acceptVisitor(socket: Socket, host: VisitorHost, seat: Seat | undefined): VisitorConnection {
    const visitor = new VisitorConnection(socket, host, seat)
    this.#visitors.add(visitor)
    return visitor
  }

  /** Takes the PROXY header away first, where there has to be one. */
  #behindProxies(
    proto: 'http' | 'https',
    accept: AcceptVisitor,
  ): (socket: Socket, seat: Seat | undefined) => SocketHandler {
    const host = this.#visitorHost(proto)
    const proxied = this.#proxiedHost(host, accept)
    return (socket, seat) =>
      this.#settings.acceptsProxyProtocol ? acceptProxied(socket, proxied, seat) : accept(socket, host, seat)
  }

  #proxiedHost(host: VisitorHost, accept: AcceptVisitor): ProxiedHost {
    const overTls = this.#visitorHost('https')
    // A header that names nobody leaves the proxy's address. The words of whoever it was are not the proxy's.
    const ofNobody = this.#visitorHost(host.proto, false)
    return {
      deadlines: host.deadlines,
      get headerTimeoutMs() {
        return host.limits.headTimeoutMs
      },
      isTrusted: address => host.isTrusted(address),
      accept: (socket, header, seat) =>
        accept(
          socket,
          header === undefined ? host : header.route === undefined ? ofNobody : header.isTls ? overTls : host,
          seat,
        ),
      failed: error => this.emit('error', error),
    }
  }

  #route(visitor: VisitorConnection): Route {
    const { head } = visitor
    // While it drains, requests are served on the connections that are there. What could last is not begun.
    if (this.#state === 'stopped') return 'SERVER_DRAINING'
    const isDraining = this.#state === 'draining'
    if (isDraining && head.upgrade === 'websocket') return 'SERVER_DRAINING'
    const destination = destinationOf(head.host, this.#settings.domainsByLength)
    if (destination.kind === 'control')
      return isDraining && head.upgrade !== '' ? 'SERVER_DRAINING' : controlRoute(visitor, this.#desk)
    if (visitor.isRefused()) return 'VISITOR_LIMIT'
    if (destination.kind === 'unknown') return 'HOST_UNKNOWN'
    return this.#routeToTunnel(visitor, destination)
  }

  #routeToTunnel(visitor: VisitorConnection, { name, isBelow }: NamedTunnel): TunnelRoute {
    const { head, record } = visitor
    const tunnel = this.#tunnels.find(name)
    if (tunnel === undefined && this.#startupHold.isAwaited(name) && this.#mayBeClaimed(name))
      return this.#startupHold.holding(name, () => this.#routeToTunnel(visitor, { name, isBelow }))
    if (isBelow && tunnel?.isWildcard !== true) return 'HOST_UNKNOWN'
    if (tunnel?.kind !== 'http') return 'TUNNEL_NOT_FOUND'
    const prober = proberOf(head, tunnel)
    if (prober !== undefined) return probeUpstream(prober)
    record.isBelow = isBelow
    this.#exchanges.routed(record, tunnel)
    return this.#serving.route(tunnel, visitor)
  }

  /** Whether a client could have this name: for no other it is worth while to wait. */
  #mayBeClaimed(name: string): boolean {
    return refusalOfName(name) === undefined && !this.#settings.reservedNames.has(name)
  }

  #laneTerms(visitor: VisitorConnection): LaneGrant | undefined {
    // What a lane answers does not say that it is the last.
    if (this.#state !== 'running') return undefined
    const destination = destinationOf(visitor.head.host, this.#settings.domainsByLength)
    if (destination.kind !== 'tunnel') return undefined
    const tunnel = this.#tunnels.find(destination.name)
    return tunnel && this.#exchanges.laneGrant(visitor, tunnel)
  }

  #udpFrontHost(): UdpFrontHost {
    const settings = () => this.#settings
    return {
      hostname: settings().hostname,
      get limits() {
        return settings().limits
      },
      flows: this.#flows,
      dropped: (tunnel, count) => {
        tunnel.droppedDatagrams += count
        this.#counters.droppedDatagrams += count
      },
      ended: (bytesIn, bytesOut) => {
        this.#counters.bytesIn += bytesIn
        this.#counters.bytesOut += bytesOut
      },
      failed: error => this.emit('error', error),
    }
  }

  // ── Clients ────────────────────────────────────────────────────────────────────────────────────────────────

  #clientHost(): ClientHost {
    const claimHost = this.#claimHost()
    const settings = () => this.#settings
    return {
      get limits() {
        return settings().limits
      },
      deadlines: this.#deadlines,
      turns: this.#turns,
      unfinishedMessages: new UnfinishedMessages(),
      tunnels: this.#tunnels,
      linkGate: this.#linkGate,
      tokenGate: this.#tokenGate,
      isTrusted: address => this.#isTrusted(address),
      refused: ({ remoteAddress, wire }, { kind, name, port = 0 }, code) =>
        this.emit('refused', {
          remoteAddress,
          wire,
          code,
          kind,
          name: name ?? (port === 0 ? kind : `${kind}-${port}`),
        }),
      ruleNow: rule => rule.in(this.#settings.policy),
      refusalOf: (wish, rule) => refusalOf(wish, rule, this.#settings),
      holderOf: (rule, address) => this.#holdings.of(rule, address),
      claim: (wish, claiming) =>
        this.#state === 'draining' ? 'SERVER_DRAINING' : claim(wish, claiming, claimHost),
      detailOf: (code, wish, claiming) => detailOf(code, wish, claiming, this.#settings),
      urlOf: tunnel => this.#urlOf(tunnel),
      registered: (client, tunnel) => {
        this.#startupHold.arrived(tunnel.name)
        this.emit('connection', {
          subdomain: tunnel.name,
          wire: client.wire,
          remoteAddress: client.remoteAddress,
        })
      },
      released: (_client, tunnel, reason) => this.emit('disconnection', { subdomain: tunnel.name, reason }),
      gone: client => {
        if (this.#clients.delete(client)) client.holder.give('clients')
      },
      failed: error => this.emit('error', error),
    }
  }

  #tlsFrontHost(): TlsFrontHost {
    const settings = () => this.#settings
    return {
      deadlines: this.#deadlines,
      get helloTimeoutMs() {
        return settings().limits.headTimeoutMs
      },
      get maxHellos() {
        return settings().limits.maxHellos
      },
      get maxVisitors() {
        return settings().limits.maxStreams
      },
      visits: this.#rawVisits,
      find: name => {
        const destination = destinationOf(name, settings().domainsByLength)
        const tunnel = destination.kind === 'tunnel' ? this.#tunnels.find(destination.name) : undefined
        if (tunnel?.kind !== 'tls' || destination.kind !== 'tunnel') return undefined
        return destination.isBelow && !tunnel.isWildcard ? undefined : tunnel
      },
    }
  }

  #controlDesk(): ControlDesk {
    const clientHost = this.#clientHost()
    return {
      version: VERSION,
      tokenGate: this.#tokenGate,
      isTrusted: address => this.#isTrusted(address),
      clientRefusal: (rule, address) => {
        if (this.#state !== 'running') return 'SERVER_DRAINING'
        const holder = this.#holdings.of(rule, address)
        return holder.hasRoomFor('clients') && this.#hasRoomForClient(holder) ? undefined : 'CLIENT_LIMIT'
      },
      refused: (applicant, code) => this.emit('refused', { ...applicant, code }),
      stats: () => this.getStats(),
      linksOf: secret => this.#linkGate.find(secret),
      hasRoomForLink: () => this.#admission.hasRoomForLink(),
      isKnownHost: host => {
        const destination = destinationOf(host, this.#settings.domainsByLength)
        if (destination.kind === 'tunnel') {
          const tunnel = this.#tunnels.find(destination.name)
          // A port has no certificate.
          if (tunnel === undefined || tunnel.port !== 0) return false
          return !destination.isBelow || tunnel.mayCertify(host, this.#settings.domains)
        }
        return destination.kind === 'control' && this.#settings.domains.some(domain => host.endsWith(domain))
      },
      adopt: (socket, applicant, rule) =>
        adopt(socket, applicant, clientHost, rule, client => {
          this.#clients.add(client)
          client.holder.take('clients')
          this.#counters.totalConnections++
        }),
    }
  }

  #claimHost(): ClaimHost {
    const settings = () => this.#settings
    const tcpHost: TcpFrontHost = {
      hostname: settings().hostname,
      get maxVisitors() {
        return settings().limits.maxStreams
      },
      visits: this.#rawVisits,
      admission: this.#admission,
      failed: error => this.emit('error', error),
    }
    const udpHost = this.#udpFrontHost()
    return {
      tunnels: this.#tunnels,
      get terms() {
        return settings()
      },
      open: {
        tcp: tunnel => {
          this.#checkRoomForPort(tunnel)
          return listenTcp(tunnel, tcpHost)
        },
        udp: async tunnel => {
          this.#checkRoomForPort(tunnel)
          return (await import('./fronts/udp.ts')).listenUdp(tunnel, udpHost)
        },
      },
    }
  }

  #hasRoomForClient(holder: Holder): boolean {
    return this.#admission.hasRoomForClient(holder.descriptorCount, this.#holdings.descriptorCount)
  }

  #checkRoomForPort({ members: [first] }: Tunnel): void {
    if (first !== undefined && !this.#hasRoomForClient(first.holder)) throw new TunnelError('CLIENT_LIMIT')
  }

  /** Whether visitors come by https, also when that ends in front of this server. */
  get #isSecure(): boolean {
    const { publicUrl, tls } = this.#settings
    return publicUrl === undefined ? tls !== undefined : publicUrl.protocol === 'https:'
  }

  #urlOf(tunnel: Tunnel | undefined): string {
    const { publicUrl, domains } = this.#settings
    const hostname = domains[0] ?? 'localhost'
    if (tunnel !== undefined && tunnel.port !== 0) return `${tunnel.kind}://${hostname}:${tunnel.port}`
    if (tunnel?.kind === 'tls') {
      const tlsPort = this.#settings.sharesTlsPort && publicUrl ? Number(publicUrl.port || 443) : this.tlsPort
      return `tls://${tunnel.name}.${hostname}${tlsPort === 443 ? '' : `:${tlsPort}`}`
    }
    const port =
      publicUrl === undefined ? this.port : publicUrl.port === '' ? undefined : Number(publicUrl.port)
    return formatUrl({
      secure: this.#isSecure,
      hostname,
      ...(tunnel !== undefined && { subdomain: tunnel.name }),
      ...(port !== undefined && { port }),
    })
  }

  get #isIdle(): boolean {
    return this.#exchanges.isIdle && this.#rawVisits.count === 0 && this.#visitors.areSettled
  }

  #visitorsChanged(): void {
    this.#maybeDrained()
    if (this.#visitors.isEmpty) this.#allLeft?.()
  }

  #maybeDrained(): void {
    if (this.#drained !== undefined && this.#isIdle) this.#drained()
  }

  /** All exchanges and raw connections are over, and no visitor brings another; or the time for it is over. */
  #whenDrained(): Promise<void> {
    if (this.#isIdle) return Promise.resolve()
    return bounded(this.#settings.limits.drainTimeoutMs, resolve => {
      this.#drained = resolve
    })
  }

  /** All connections have closed, last words read: cutting one now could destroy them. */
  #whenAllLeft(): Promise<void> {
    if (this.#visitors.isEmpty) return Promise.resolve()
    return bounded(LAST_WORDS_MS, resolve => {
      this.#allLeft = resolve
    })
  }
}

/** Resolves when everything that the kernel had for us was handed out. */
function turn(): Promise<void> {
  const { promise, resolve } = deferred<void>()
  eventLoop.soon(() => eventLoop.soon(resolve))
  return promise
}

/** Resolves when `begin`'s callback is called, or after `ms`. */
function bounded(ms: number, begin: (resolve: () => void) => void): Promise<void> {
  const { promise, resolve } = deferred<void>()
  const timer = setTimeout(resolve, ms)
  begin(() => {
    clearTimeout(timer)
    resolve()
  })
  return promise
}
