// TunnelClient: gives local services public addresses over one connection and keeps them, whatever happens to the network.
/// <reference lib="esnext.disposable" preserve="true" />

import { deferred } from '../deferred.ts'
import { type ErrorCode, TunnelError } from '../errors.ts'
import { Events } from '../events.ts'
import { associate } from '../sockets/associate.ts'
import { dial } from '../sockets/dial.ts'
import { watchWorkers } from '../sockets/worker-faults.ts'
import { stopped } from './carrier.ts'
import type {
  Connection,
  ConnectionEvents,
  RequestSeen,
  ResponseSeen,
  VisitorGone,
  VisitorSeen,
} from './connection.ts'
import { GuardFiles } from './guard-files.ts'
import { Inspection, inspectionOf } from './inspect/inspection.ts'
import type { Exchange, WaitOptions, Watchable } from './inspect/seen.ts'
import { NUMBERS_OF_A_CONNECTION, numberedFrom } from './numbered.ts'
import type {
  HttpTunnelOptions,
  OriginOptions,
  TcpTunnelOptions,
  TlsTunnelOptions,
  TunnelClientEvents,
  TunnelClientOptions,
  TunnelState,
  UdpTunnelOptions,
} from './options.ts'
import { LateOrigin } from './origins/late.ts'
import { OwnTunnel } from './own-tunnel.ts'
import { pauseBefore } from './patience.ts'
import { probePublicSide } from './probe.ts'
import { ResumeFiles } from './resume-files.ts'
import { guardToken } from './server-address.ts'
import { Servers } from './servers.ts'
import {
  type ClientSettings,
  clientSettings,
  httpTunnel,
  originOf,
  type TunnelSettings,
  tcpTunnel,
  tlsTunnel,
  udpTunnel,
} from './settings.ts'
import type { Tunnel } from './tunnel.ts'
import { UnderWay } from './under-way.ts'
import { watchForWake } from './wake.ts'

/** After the machine woke, how long the old connection has to prove that it lives. */
const WAKE_CHECK_MS = 3_000
/** A connection that lasted so long is no try that failed: the next loss is an outage of its own. */
const LASTING_MS = 1_000
/** A tunnel that lost its name or port to somebody else, while others go on, asks for it again this often. */
const ASK_AGAIN_MS = 5_000
/** Connections to programs that others have replaced; a server that replaces itself more often gets the oldest cut. */
const MAX_RETIRED = 4
/** What tells of visitors, and costs the server messages. */
const WATCHED = [
  'request',
  'upgraded',
  'response',
  'requests',
  'visitorConnected',
  'visitorDisconnected',
] as const

/** Exchanges of every tunnel, until the client ends. */
const ALL = { tunnel: () => undefined, over: new AbortController().signal }

/**
 * A tunnel client. With `port`, `url`, `unix`, `fetch` or `folder` it has an HTTP tunnel, and `connect()` resolves once
 * its URL is registered; `http()`, `tcp()`, `udp()` add tunnels, on the same connection. A lost connection is made again for ever
 * (unless `reconnect` is false) and names and ports stay. It never throws outside of its own methods and never exits the
 * process; what goes wrong arrives as an `error` event with a stable `code`.
 *
 * Throws `OPTION_INVALID`, `PORT_INVALID` or `NAME_INVALID` for options that cannot be used.
 */
export class TunnelClient extends Events<TunnelClientEvents> implements AsyncDisposable, Watchable {
  readonly #settings: ClientSettings
  readonly #servers: Servers
  readonly #resumes: ResumeFiles | undefined
  readonly #guards: GuardFiles | undefined
  #hasStateFailed = false
  /** Sees what passes, if the client was told to inspect. */
  readonly #inspection: Inspection | undefined
  #state: TunnelState = 'idle'
  #connection: Connection | undefined
  /** To a program that another one has replaced: what is under way goes on there. By where the ids of their reports begin. */
  readonly #retired = new Map<Connection, number>()
  /** Where those of `#connection` begin. */
  #firstId = 0
  /** All that are wanted, the client's own first. */
  readonly #tunnels = new Set<OwnTunnel>()
  /** The tunnel that the client's options describe. */
  readonly #own: OwnTunnel | undefined
  /** Of an app that comes later. */
  readonly #late: LateOrigin | undefined
  /** Ends the attempts under way. */
  #stopping = new AbortController()
  #stopWatchingForWake: (() => void) | undefined
  #stopWatchingWorkers: (() => void) | undefined
  #wakeBackoff: (() => void) | undefined
  #askAgain: ReturnType<typeof setTimeout> | undefined
  #connecting: Promise<void> | undefined
  #draining: Promise<void> | undefined
  #leaving: Promise<void> | undefined
  /** Tries since the last connection that lasted. */
  #attempt = 0
  #connectedAt = 0
  readonly #requests = new UnderWay<RequestSeen>()
  readonly #visitors = new UnderWay<VisitorSeen>()
  /** Requests that the server counts instead of reporting them. */
  #unreportedUnderWay = 0

  constructor(options: TunnelClientOptions) {
    super()
    this.#settings = clientSettings(options, process.env, dial)
    this.#servers = new Servers(this.#settings)
    const { stateFolder, server } = this.#settings
    if (stateFolder !== undefined) {
      const origin = `${server.isSecure ? 'https' : 'http'}://${server.host}`
      this.#resumes = new ResumeFiles(stateFolder, origin)
      this.#guards = new GuardFiles(stateFolder, origin)
    }
    const { tunnel, inspect } = this.#settings
    this.#inspection = inspect && new Inspection(inspect, error => this.emit('error', error))
    this.#own = tunnel && this.#want(tunnel)
    if (tunnel?.origin instanceof LateOrigin) this.#late = tunnel.origin
  }

  /**
   * Connects and registers. Rejects with `SERVER_UNREACHABLE`, `SERVER_REFUSED`, `SERVER_UNTRUSTED`, `SERVER_SCHEME`, `CONNECT_TIMEOUT`, `TOKEN_REFUSED`,
   * `NAME_TAKEN`, `NAME_RESERVED`, `NOT_ALLOWED`, `PROXY_UNREACHABLE`, `PROXY_AUTH_REFUSED`, `PROXY_REFUSED`, with `OPTION_INVALID` when there is no tunnel to register, or with
   * `STATE_INVALID` when it is connected already; nothing goes on in the background then, and `connect` may be called
   * again.
   */
  async connect(): Promise<void> {
    if (this.#state !== 'idle' && this.#state !== 'closed') {
      throw new TunnelError('STATE_INVALID', `The client is ${this.#state} already.`)
    }
    if (this.#tunnels.size === 0) {
      throw new TunnelError(
        'OPTION_INVALID',
        'One of port, url, unix, fetch, folder and later says where the app is; or call http(), tcp(), udp().',
      )
    }
    this.#connecting = this.#connectFirst()
    await this.#connecting
  }

  async #connectFirst(): Promise<void> {
    const stopping = new AbortController()
    this.#stopping = stopping
    this.#attempt = 0
    this.#state = 'connecting'
    this.#stopWatchingWorkers ??= watchWorkers(error => this.emit('error', error))
    try {
      await this.#inspection?.start()
      await this.#establish()
    } catch (error) {
      // `disconnect` and another `connect` may have come meanwhile: the state is theirs then.
      if (!stopping.signal.aborted) {
        this.#state = 'idle'
        this.#stopWatchingWorkers?.()
        this.#stopWatchingWorkers = undefined
        this.#inspection?.stop()
      }
      throw error
    }
    if (!stopping.signal.aborted) this.#stopWatchingForWake ??= watchForWake(() => this.#woke())
  }

  /**
   * Gives all names and ports back, so that no new visitor comes, lets what is under way finish for up to `drainTimeoutMs`,
   * then disconnects. New requests go to the other clients of a pool, or to the next client that takes the name; until then
   * they are 404. `disconnect()` meanwhile ends the wait.
   */
  async close(): Promise<void> {
    const connection = this.#connection
    if (this.#state === 'connected' && connection !== undefined) {
      this.#state = 'closing'
      const all = [connection, ...this.#retired.keys()]
      this.#draining = Promise.all([...all.map(one => one.drain()), ...this.#dropResumes()]).then(() => {})
    }
    if (this.#state === 'closing') await this.#draining
    await this.disconnect()
  }

  /** Gives all names and ports back and closes. What is under way is cut; resolves once the server has closed too. */
  async disconnect(): Promise<void> {
    if (this.#state !== 'idle' && this.#state !== 'closed') {
      const connection = this.#connection
      // While the server is away the names are this client's still, for the lease: the next start may have them.
      const drops = connection === undefined ? [] : this.#dropResumes()
      const retired = [...this.#retired.keys()]
      this.#retired.clear()
      this.#end()
      const left = [connection, ...retired].map(one => one?.leave())
      this.#leaving = Promise.all([...left, ...drops]).then(() => {})
    }
    await this.#leaving
  }

  /**
   * Adds an HTTP tunnel; resolves once it is registered, and connects first if the client is not connected. Rejects with
   * what `connect()` rejects with; the client's other tunnels go on then.
   */
  async http(options: HttpTunnelOptions): Promise<Tunnel> {
    if (options.later) throw new TunnelError('OPTION_INVALID', "later is for the client's own tunnel.")
    return this.#add(() => httpTunnel(options, {}, dial))
  }

  /** Adds a TCP tunnel, likewise. Rejects also with `PORT_TAKEN`, `PORT_NOT_ALLOWED`, `PORTS_EXHAUSTED`, `KIND_REFUSED`. */
  tcp(options: TcpTunnelOptions): Promise<Tunnel> {
    return this.#add(() => tcpTunnel(options, dial))
  }

  /** Adds a TLS tunnel, likewise. Rejects also with `NAME_TAKEN`, `NAME_RESERVED` and `KIND_REFUSED`. */
  tls(options: TlsTunnelOptions): Promise<Tunnel> {
    return this.#add(() => tlsTunnel(options, dial))
  }

  /**
   * Adds a UDP tunnel, likewise. One with the same `remotePort` as a TCP tunnel works beside it. That the service does not
   * listen arrives as an `error` event, `ORIGIN_REFUSED`; one that starts later gets what is sent then.
   */
  udp(options: UdpTunnelOptions): Promise<Tunnel> {
    return this.#add(() => udpTunnel(options, associate, error => this.emit('error', error)))
  }

  /** The tunnels that the client has or asks for. */
  get tunnels(): readonly Tunnel[] {
    return [...this.#tunnels]
  }

  /** `getTunnelUrl()`. */
  get url(): string {
    return this.getTunnelUrl()
  }

  /** The public URL of the first tunnel. Throws `STATE_INVALID` before its first registration. */
  getTunnelUrl(): string {
    return this.#first.granted.url
  }

  /**
   * Where the app of a client with `later` is, from now on: a port of this machine, or what else says where an app is.
   * Connections that are open stay where they are. Throws `STATE_INVALID` without `later`, `OPTION_INVALID` and
   * `PORT_INVALID`.
   */
  forward(where: number | OriginOptions): void {
    if (this.#late === undefined)
      throw new TunnelError('STATE_INVALID', 'The client was not made with later.')
    const options = typeof where === 'number' ? { port: where } : where
    if (options.later)
      throw new TunnelError('OPTION_INVALID', 'forward() says where the app is, and not later.')
    this.#late.lead(originOf(options, dial))
  }

  /** The name that it was granted: the wished one, or another when it was taken. */
  getSubdomain(): string {
    return this.#first.granted.name
  }

  /** Whether tunnels are registered and the connection is up: `getState()` is `connected`. */
  isConnected(): boolean {
    return this.#state === 'connected'
  }

  /**
   * Where the page of the inspector is, with its token behind `#`: for the user of this machine alone. `undefined` without
   * `inspect`, or with `port: false`, and while the client is not connecting or connected.
   */
  get inspectorUrl(): string | undefined {
    return this.#inspection?.inspector?.url
  }

  get exchanges(): AsyncIterable<Exchange> {
    return inspectionOf(this.#inspection).exchanges(ALL)
  }

  async waitFor(filter: string, options?: WaitOptions): Promise<Exchange> {
    return await inspectionOf(this.#inspection).waitFor(ALL, filter, options)
  }

  /** What the client is doing; every change comes with an event. */
  getState(): TunnelState {
    return this.#state
  }

  /**
   * Sends a request to the public URL that the server answers itself, after a round trip to this client: `true` when
   * visitors can reach the first tunnel, `false` when they cannot, or nothing came in time. The app is not asked. A tunnel
   * that is not an HTTP one cannot be asked so: `undefined`. On the JSON wire a server may not know its own port: the URL
   * that answers is the tunnel's from then on.
   */
  async probe(timeoutMs = 5_000): Promise<boolean | undefined> {
    const first = this.#first
    const { url, otherUrls = [], resume, probeSecret = resume } = first.granted
    if (first.kind !== 'http' || probeSecret === undefined) return undefined
    const urls = [url, ...otherUrls]
    const answers = await Promise.all(
      urls.map(one => probePublicSide(this.#settings.dial, one, probeSecret, timeoutMs)),
    )
    const found = urls[answers.indexOf(true)]
    if (found !== undefined && found !== url && first.granted.url === url)
      this.#moved(first.granted.tunnel, found)
    return found !== undefined
  }

  /** `disconnect()`, at the end of an `await using` block. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.disconnect()
  }

  protected override listenersChanged(event: keyof TunnelClientEvents): void {
    if (!WATCHED.some(one => one === event)) return
    this.#connection?.watch(this.#isWatched, this.#reportRate)
    // Nobody will report the ends of these.
    if (!this.#isWatched) this.#forgetSeen()
  }

  get #isWatched(): boolean {
    return this.#inspection !== undefined || WATCHED.some(event => this.hasListeners(event))
  }

  /** The inspector alone wants no more reports than it captures requests. */
  get #reportRate(): number {
    const isHeard = WATCHED.some(event => this.hasListeners(event))
    return isHeard ? this.#settings.reportRate : (this.#inspection?.settings.rate ?? 0)
  }

  #forgetSeen(): void {
    this.#unreportedUnderWay = 0
    this.#requests.forget()
    this.#visitors.forget()
  }

  get #first(): OwnTunnel {
    for (const tunnel of this.#tunnels) if (tunnel.registration !== undefined) return tunnel
    throw new TunnelError('STATE_INVALID', 'The client is not registered yet.')
  }

  // ── Tunnels ────────────────────────────────────────────────────────────────────────────────────────────────

  #want(settings: TunnelSettings): OwnTunnel {
    const tunnel: OwnTunnel = new OwnTunnel(this.#inspection?.tap(settings) ?? settings, {
      closed: () => this.#forget(tunnel),
      healthChanged: ({ name }, isHealthy, error) =>
        this.emit('health', { tunnel: name, isHealthy, ...(error !== undefined && { error }) }),
      resumes: this.#resumes,
      guards: this.#guards,
      inspection: this.#inspection,
      failed: error => this.#stateFailed(error),
    })
    this.#tunnels.add(tunnel)
    return tunnel
  }

  async #add(settingsOf: () => TunnelSettings): Promise<Tunnel> {
    if (this.#state === 'closing') throw new TunnelError('STATE_INVALID', 'The client is closing.')
    const settings = settingsOf()
    guardToken(settings.token, this.#settings)
    const tunnel = this.#want(settings)
    try {
      if (this.#state === 'idle' || this.#state === 'closed') this.#connecting = this.#connectFirst()
      // Its own refusal, if there was one, came before and says more than the first of all.
      if (this.#state === 'connecting')
        await this.#connecting?.catch((error: unknown) => tunnel.refuse(error))
      // One that was refused with the others is not asked for again.
      if (this.#connection !== undefined && this.#tunnels.has(tunnel))
        await this.#register(tunnel, this.#connection)
      await tunnel.ready
      return tunnel
    } catch (error) {
      this.#tunnels.delete(tunnel)
      throw error
    }
  }

  #dropResumes(): Promise<void>[] {
    return [...this.#tunnels].filter(tunnel => tunnel.isRegistered).map(tunnel => tunnel.dropResume())
  }

  /** Said once: it will fail in the same way for each name. */
  #stateFailed(error: TunnelError): void {
    if (!this.#hasStateFailed) this.emit('error', error)
    this.#hasStateFailed = true
  }

  #forget(tunnel: OwnTunnel): void {
    this.#tunnels.delete(tunnel)
    this.#inspection?.forget(tunnel.settings.origin)
    if (tunnel.isRegistered) void tunnel.dropResume()
    if (tunnel.isRegistered) this.#connection?.release(tunnel.granted)
  }

  /** Asks for a tunnel. Resolves with the refusal, or with why the connection ended meanwhile; never rejects. */
  async #register(tunnel: OwnTunnel, connection: Connection): Promise<TunnelError | undefined> {
    if (tunnel.isRegistered || tunnel.isClosed || this.#state === 'closing') return undefined
    try {
      await tunnel.register(connection)
    } catch (cause) {
      const error = cause instanceof TunnelError ? cause : new TunnelError('INTERNAL', undefined, { cause })
      if (this.#connection === connection) this.#refused(tunnel, error)
      return error
    }
    if (tunnel.isRegistered && !tunnel.isClosed) this.#tellRegistered(tunnel)
    return undefined
  }

  /** The server said no, or the connection ended while it was asked: then the next one asks again. */
  #refused(tunnel: OwnTunnel, error: TunnelError): void {
    if (tunnel.registration === undefined) {
      tunnel.refuse(error)
      this.#tunnels.delete(tunnel)
    } else if (tunnel.isRefusedForGood(error)) {
      tunnel.rest()
      void tunnel.dropResume()
      this.#tunnels.delete(tunnel)
    } else {
      this.#planToAskAgain()
    }
  }

  /** The server has changed its mind. It would refuse the tunnel again, so that is for good. */
  #revoked(number: number, { code, message }: TunnelError): void {
    const tunnel = this.#registered(number)
    if (tunnel === undefined) return
    tunnel.isRegistered = false
    tunnel.rest()
    this.#tunnels.delete(tunnel)
    const error = new TunnelError(code, `${tunnel.label}: ${message}`)
    if (this.#tunnels.size > 0) return this.emit('error', error)
    const connection = this.#connection
    this.#end(error)
    this.#leaving = connection?.leave()
  }

  #tellRegistered({ kind, name, url, settings }: OwnTunnel): void {
    this.#inspection?.granted(settings.origin, name, url)
    this.emit('registered', { kind, name, url })
  }

  #moved(number: number, url: string): void {
    const tunnel = this.#registered(number)
    if (tunnel?.registration === undefined) return
    tunnel.registration = { ...tunnel.registration, url }
    this.#tellRegistered(tunnel)
  }

  /** The tunnel of this number on the connection there is now. */
  #registered(number: number): OwnTunnel | undefined {
    for (const tunnel of this.#tunnels)
      if (tunnel.isRegistered && tunnel.registration?.tunnel === number) return tunnel
    return undefined
  }

  #planToAskAgain(): void {
    this.#askAgain ??= setTimeout(() => {
      this.#askAgain = undefined
      const connection = this.#connection
      if (connection !== undefined)
        for (const tunnel of this.#tunnels) void this.#register(tunnel, connection)
    }, ASK_AGAIN_MS)
  }

  // ── The connection ─────────────────────────────────────────────────────────────────────────────────────────

  /** One attempt: dial, and register every tunnel. */
  async #establish(): Promise<void> {
    const { signal } = this.#stopping
    const startedAt = performance.now()
    let connection: Connection | undefined
    let end: TunnelError | undefined
    const isRetired = () => connection !== undefined && this.#retired.has(connection)
    const closed = (error: TunnelError) => {
      end = error
      if (connection === undefined) return
      if (this.#connection === connection) this.#lost(error)
      else this.#retiredClosed(connection)
    }
    const leaving = (code: ErrorCode) => {
      if (connection === undefined || this.#connection !== connection) return
      const isElsewhere = code === 'SERVER_DRAINING' && this.#servers.areSeveral
      if (isElsewhere) this.#servers.goOn()
      if (isElsewhere || code === 'SERVER_REPLACED') this.#moveOn(connection, code)
    }
    const events = this.#connectionEvents(closed, leaving, isRetired)
    connection = await this.#servers.connect(numberedFrom(this.#firstId, events), signal)
    await this.#registerInTime(connection, startedAt)
    // Granted and lost in the same moment.
    if (end !== undefined) throw end
    this.#connection = connection
    this.#state = 'connected'
    this.#connectedAt = performance.now()
    const { url, name: subdomain } = this.#first.granted
    this.emit('connected', { url, subdomain, wire: connection.wire })
  }

  /** Registers within what is left of `connectTimeoutMs`, or ends the connection. */
  async #registerInTime(connection: Connection, startedAt: number): Promise<void> {
    const { signal } = this.#stopping
    const { connectTimeoutMs } = this.#settings
    const stop = () => connection.terminate()
    let isTooLate = false
    const timer = setTimeout(
      () => {
        isTooLate = true
        connection.terminate()
      },
      startedAt + connectTimeoutMs - performance.now(),
    )
    signal.addEventListener('abort', stop)
    try {
      // Before the name is granted, so that requests which wait for it are reported too.
      if (this.#isWatched) connection.watch(true, this.#reportRate)
      await this.#registerAll(connection)
      if (signal.aborted) throw stopped()
    } catch (error) {
      connection.terminate()
      if (signal.aborted) throw stopped()
      throw isTooLate ? new TunnelError('CONNECT_TIMEOUT') : error
    } finally {
      clearTimeout(timer)
      signal.removeEventListener('abort', stop)
    }
  }

  /** Registers all tunnels. Rejects when the client's own is refused for the first time, or none is granted. */
  async #registerAll(connection: Connection): Promise<void> {
    for (const tunnel of this.#tunnels) tunnel.isRegistered = false
    const asked = [...this.#tunnels]
    const refusals = await Promise.all(asked.map(tunnel => this.#register(tunnel, connection)))
    const [first] = refusals.filter(refusal => refusal !== undefined)
    if (first === undefined) return
    const ownRefusal = this.#own && refusals[asked.indexOf(this.#own)]
    for (const [index, tunnel] of asked.entries())
      if (refusals[index] !== undefined && tunnel.registration === undefined) tunnel.refuse(refusals[index])
    if (ownRefusal !== undefined && this.#own?.registration === undefined) throw ownRefusal
    if (!asked.some(({ isRegistered }) => isRegistered)) throw first
    for (const [index, refusal] of refusals.entries()) {
      const tunnel = asked[index]
      if (tunnel === undefined || refusal === undefined) continue
      if (tunnel.registration !== undefined) this.emit('error', refusal)
      this.#refused(tunnel, refusal)
    }
  }

  #connectionEvents(
    closed: (error: TunnelError) => void,
    leaving: (code: ErrorCode) => void,
    isRetired: () => boolean,
  ): ConnectionEvents {
    const reports = this.#inspection?.inspector?.reports
    return {
      request: report => {
        reports?.requested(report)
        const { host = '', method, path } = report
        this.#requests.begin(report, host.length + method.length + path.length)
        this.emit('request', requestEvent(report))
      },
      switched: id => {
        const request = this.#requests.find(id)
        if (request !== undefined) this.emit('upgraded', requestEvent(request))
      },
      response: report => this.#responded(report),
      requests: ({ begun, requests, errors, bytes, underWay }) => {
        reports?.counted(begun)
        if (!isRetired()) this.#unreportedUnderWay = underWay
        this.emit('requests', { begun, requests, errors, bytes, underWay })
      },
      revoked: (tunnel, error) => {
        if (!isRetired()) this.#revoked(tunnel, error)
      },
      hostTroubled: (tunnel, { code, message }) => {
        const label = isRetired() ? undefined : this.#registered(tunnel)?.label
        if (label !== undefined) this.emit('error', new TunnelError(code, `${label}: ${message}`))
      },
      moved: (tunnel, url) => {
        if (!isRetired()) this.#moved(tunnel, url)
      },
      visitorConnected: ({ id, tunnel, remoteAddress, remotePort }) => {
        const visitor = { id, tunnel, remoteAddress, remotePort }
        this.#visitors.begin(visitor, remoteAddress.length)
        reports?.visitorConnected(visitor)
        this.emit('visitorConnected', visitor)
      },
      visitorDisconnected: report => this.#visitorLeft(report),
      error: error => this.emit('error', error),
      // The only server closes the connection when it is done, and reconnecting begins then.
      leaving,
      closed,
    }
  }

  #responded(report: ResponseSeen): void {
    this.#inspection?.inspector?.reports.responded(report)
    const request = this.#requests.end(report.id)
    if (request === undefined) return
    const { status, durationMs, bytes, error } = report
    const outcome = { status, durationMs, bytes, ...(error !== undefined && { error }) }
    this.emit('response', { ...requestEvent(request), ...outcome })
  }

  #visitorLeft({ id, durationMs, bytesIn, bytesOut, error }: VisitorGone): void {
    this.#inspection?.inspector?.reports.visitorLeft({ id, durationMs, bytesIn, bytesOut })
    const visitor = this.#visitors.end(id)
    if (visitor === undefined) return
    const end = { durationMs, bytesIn, bytesOut, ...(error !== undefined && { error }) }
    this.emit('visitorDisconnected', { ...visitor, ...end })
  }

  /** The connection took with it what was under way: the server reports no end of these. */
  #endSeen(firstId: number): void {
    const error = 'CARRIER_LOST'
    const isOfIt = ({ id }: { readonly id: number }) =>
      id >= firstId && id < firstId + NUMBERS_OF_A_CONNECTION
    for (const { id, durationMs } of this.#requests.all().filter(isOfIt))
      this.#responded({ id, status: 0, durationMs, bytes: 0, error })
    for (const { id, durationMs } of this.#visitors.all().filter(isOfIt))
      this.#visitorLeft({ id, durationMs, bytesIn: 0, bytesOut: 0, error })
    if (firstId !== this.#firstId) return
    const unreported = this.#unreportedUnderWay
    this.#unreportedUnderWay = 0
    if (unreported > 0)
      this.emit('requests', { begun: 0, requests: unreported, errors: unreported, bytes: 0, underWay: 0 })
  }

  /**
   * Another program has the server's ports, or there are other servers: the tunnels are asked for there. What is under way ends on
   * this connection, which the server closes when it is done.
   */
  #moveOn(connection: Connection, code: ErrorCode): void {
    if (this.#state !== 'connected' || !this.#settings.isReconnecting || this.#tunnels.size === 0) return
    this.#retired.set(connection, this.#firstId)
    const [oldest] = this.#retired.keys()
    if (this.#retired.size > MAX_RETIRED) oldest?.terminate()
    this.#firstId += NUMBERS_OF_A_CONNECTION
    this.#unreportedUnderWay = 0
    this.#comeBack(new TunnelError(code))
  }

  #retiredClosed(connection: Connection): void {
    const firstId = this.#retired.get(connection)
    this.#retired.delete(connection)
    if (firstId !== undefined) this.#endSeen(firstId)
  }

  #lost(error: TunnelError): void {
    this.#endSeen(this.#firstId)
    if (this.#retired.size === 0) this.#inspection?.inspector?.reports.forget()
    if (this.#state === 'connected') this.#servers.goOn()
    this.#comeBack(error)
  }

  /** There is no connection for the tunnels any more. */
  #comeBack(error: TunnelError): void {
    this.#connection = undefined
    for (const tunnel of this.#tunnels) tunnel.isRegistered = false
    if (this.#state !== 'connected') return
    const { signal } = this.#stopping
    // A server that grants and hangs up at once, again and again, is tried like one that is down.
    const lastedMs = performance.now() - this.#connectedAt
    if (lastedMs > Math.min(LASTING_MS, this.#settings.maxBackoffMs)) this.#attempt = 0
    // Without tunnels there is nothing to come back for.
    const isReconnecting = this.#settings.isReconnecting && this.#tunnels.size > 0
    this.#state = isReconnecting ? 'reconnecting' : 'closed'
    this.emit('disconnected', { error })
    // A listener may have called `disconnect`, or `connect`.
    if (signal.aborted || this.#stopping.signal !== signal) return
    if (isReconnecting) void this.#reconnect()
    else this.#end(this.#tunnels.size > 0 ? error : undefined)
  }

  /** Tries until it works, it is told to stop, or the server says no for good. Never rejects. */
  async #reconnect(): Promise<void> {
    const { signal } = this.#stopping
    while (!signal.aborted) {
      const attempt = ++this.#attempt
      const delayMs = pauseBefore(attempt, this.#settings.maxBackoffMs)
      this.emit('reconnecting', { attempt, delayMs })
      if (signal.aborted) return
      await this.#pause(delayMs)
      if (signal.aborted) return
      if (this.#tunnels.size === 0) return this.#end()
      try {
        return await this.#establish()
      } catch (cause) {
        if (signal.aborted) return
        const error = cause instanceof TunnelError ? cause : new TunnelError('INTERNAL', undefined, { cause })
        if ([...this.#tunnels].every(tunnel => tunnel.isRefusedForGood(error))) return this.#end(error)
        this.emit('error', error)
      }
    }
  }

  /** Waits, but not beyond a wake-up of the machine or the end of the client. */
  #pause(ms: number): Promise<void> {
    if (ms === 0) return Promise.resolve()
    const { promise, resolve } = deferred<void>()
    const timer = setTimeout(resolve, ms)
    this.#wakeBackoff = () => {
      clearTimeout(timer)
      resolve()
    }
    return promise
  }

  #woke(): void {
    this.#wakeBackoff?.()
    this.#connection?.checkAlive(WAKE_CHECK_MS)
  }

  #end(error?: TunnelError): void {
    this.#state = 'closed'
    this.#connection = undefined
    for (const retired of this.#retired.keys()) retired.terminate()
    this.#retired.clear()
    this.#resumes?.leave()
    this.#inspection?.stop()
    this.#forgetSeen()
    this.#stopping.abort()
    clearTimeout(this.#askAgain)
    this.#askAgain = undefined
    this.#wakeBackoff?.()
    this.#stopWatchingForWake?.()
    this.#stopWatchingForWake = undefined
    this.#stopWatchingWorkers?.()
    this.#stopWatchingWorkers = undefined
    for (const tunnel of this.#tunnels) {
      tunnel.isRegistered = false
      tunnel.rest()
      if (tunnel === this.#own || tunnel.registration !== undefined) continue
      tunnel.refuse(error ?? stopped())
      this.#tunnels.delete(tunnel)
    }
    this.emit('close', error === undefined ? {} : { error })
  }
}

/** Field by field: a report may hold more than its event. */
function requestEvent({ id, tunnel, host, method, path }: RequestSeen): TunnelClientEvents['request'] {
  return { id, tunnel, ...(host !== undefined && { host }), method, path }
}

/**
 * Starts a client and resolves once its URL is registered: `const { url } = await connectTunnel(3000)`, or with options. A number is a
 * port of this machine.
 */
export async function connectTunnel(options: number | TunnelClientOptions): Promise<TunnelClient> {
  const client = new TunnelClient(typeof options === 'number' ? { port: options } : options)
  await client.connect()
  return client
}
