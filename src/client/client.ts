// The core of a tunnel client: gives local services public addresses over one connection and keeps them, whatever happens to the network.
/// <reference lib="esnext.disposable" preserve="true" />

import { type ErrorCode, optionInvalid, TunnelError } from '../errors.ts'
import { Events } from '../events.ts'
import { checkNames } from '../option-names.ts'
import { associate } from '../sockets/associate.ts'
import { dial } from '../sockets/dial.ts'
import { watchWorkers } from '../sockets/worker-faults.ts'
import { stopped, tooLate } from './carriers/carrier.ts'
import { Servers } from './carriers/connect.ts'
import type { Connection, ConnectionEvents } from './carriers/connection.ts'
import { guardToken } from './carriers/server-address.ts'
import { Tries } from './carriers/tries.ts'
import { watchForWake } from './carriers/wake.ts'
import type { Exchange, WaitOptions, Watchable } from './contracts/watching.ts'
import {
  CLIENT_HINTS,
  CLIENT_NAMES,
  HTTP_NAMES,
  ORIGIN_NAMES,
  TCP_NAMES,
  TLS_NAMES,
  UDP_NAMES,
} from './option-names.ts'
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
import { originOf } from './origins/origin-of.ts'
import { Parts } from './parts.ts'
import { probePublicSide } from './reach/probe.ts'
import { PublicWatch } from './reach/public-watch.ts'
import { atEachServer, type ClientSettings, clientSettings } from './settings.ts'
import { httpTunnel } from './tunnels/http-tunnel.ts'
import { tcpTunnel, tlsTunnel, udpTunnel } from './tunnels/raw-tunnel.ts'
import type { Tunnel } from './tunnels/tunnel.ts'
import type { TunnelSettings } from './tunnels/tunnel-settings.ts'
import { IDS_OF_A_CONNECTION, type VisitEvent, VisitReports } from './tunnels/visit-reports.ts'
import { WantedTunnels } from './tunnels/wanted-tunnels.ts'

/** The time in milliseconds after a wake-up in which the old connection must prove that it is alive. */
const WAKE_CHECK_MS = 3_000
/** The number of connections to replaced server programs. If a server replaces itself more often, the oldest one is cut. */
const MAX_RETIRED = 4
/** The events whose listeners make the server send a report for each visitor. */
const WATCHED: readonly VisitEvent[] = [
  'request',
  'upgraded',
  'response',
  'requests',
  'visitorConnected',
  'visitorDisconnected',
]

/** The scope for exchanges of every tunnel, until the client ends. */
const ALL = { tunnel: () => undefined, over: new AbortController().signal }

/** The client without its parts: `src/tunnel-client.ts` installs them. */
export class TunnelClient extends Events<TunnelClientEvents> implements AsyncDisposable, Watchable {
  readonly #settings: ClientSettings
  readonly #servers: Servers
  readonly #parts: Parts
  readonly #tunnels: WantedTunnels
  /** The origin if the program names the app only after `start`. */
  readonly #late: LateOrigin | undefined
  readonly #tries: Tries
  #state: TunnelState = 'idle'
  #connection: Connection | undefined
  #reports: VisitReports | undefined
  /** The first id for the next connection, above those of earlier ones. */
  #firstId = 0
  /** The connections to replaced server programs, where open requests continue. */
  readonly #retired = new Map<Connection, VisitReports>()
  /** Cancels the attempts in progress. */
  #stopping = new AbortController()
  #stopWatching: (() => void)[] = []
  readonly #publicWatch: PublicWatch
  #connecting: Promise<void> | undefined
  #draining: Promise<void> | undefined
  #leaving: Promise<void> | undefined

  /** Makes a client. `installs` are its parts, in the order in which bytes for an app pass them. */
  constructor(options: TunnelClientOptions, installs: readonly object[] = []) {
    super()
    checkNames(options, CLIENT_NAMES, 'TunnelClient', CLIENT_HINTS)
    this.#parts = new Parts(installs, {
      options,
      failed: error => this.emit('error', error),
    })
    const settings = clientSettings(options, process.env, dial, this.#parts.originOf)
    const lanes = this.#parts.all.find(part => part.lanes !== undefined)?.lanes
    this.#settings = { ...settings, lanes }
    this.#servers = new Servers(this.#settings, this.#parts.textWire)
    this.#tries = new Tries(this.#settings.maxBackoffMs)
    this.#publicWatch = new PublicWatch(
      {
        probe: () => this.probe(),
        isConnected: () => this.isConnected(),
        changed: isReachable => this.emit('reach', { url: this.getTunnelUrl(), isReachable }),
      },
      this.#settings.probeIntervalMs,
    )
    const { tunnel } = settings
    this.#tunnels = new WantedTunnels(this.#settings, this.#parts, {
      emit: (event, payload) => this.emit(event, payload),
      connection: () => this.#connection,
      isClosing: () => this.#state === 'closing',
    })
    if (tunnel?.origin instanceof LateOrigin) this.#late = tunnel.origin
  }

  /**
   * Connects and registers. Rejects with `SERVER_UNREACHABLE`, `SERVER_REFUSED`, `SERVER_UNTRUSTED`, `SERVER_SCHEME`,
   * `TOKEN_REFUSED`, `NAME_TAKEN`, `NAME_RESERVED`, `NOT_ALLOWED`, `PROXY_FAILED`, `PROXY_AUTH_REFUSED`; with
   * `OPTION_INVALID` if there is no tunnel to register; with `STATE_INVALID` if it is connected already. After a
   * rejection the client makes no further attempts, and `connect` may be called again.
   */
  async connect(): Promise<void> {
    if (this.#state !== 'idle' && this.#state !== 'closed') {
      throw new TunnelError('STATE_INVALID', `The client is ${this.#state} already.`)
    }
    if (this.#tunnels.size === 0) {
      throw optionInvalid(
        'One of port, url, unix, fetch, folder and later says where the app is; or call http(), tcp(), udp().',
      )
    }
    this.#connecting = this.#connectFirst()
    await this.#connecting
  }

  async #connectFirst(): Promise<void> {
    const stopping = new AbortController()
    this.#stopping = stopping
    this.#tries.restart()
    this.#state = 'connecting'
    this.#stopWatching = [watchWorkers(error => this.emit('error', error))]
    this.#publicWatch.set(this.hasListeners('reach'))
    try {
      for (const part of this.#parts.all) await part.start?.()
      // `#stopping` may belong to a later `connect` by now.
      if (stopping.signal.aborted) throw stopped()
      await this.#establish()
    } catch (error) {
      // After `disconnect` or another `connect`, the state is no longer this call's.
      if (!stopping.signal.aborted) {
        this.#state = 'idle'
        this.#endWatching()
        this.#stopParts()
      }
      throw error
    }
    if (!stopping.signal.aborted) this.#stopWatching.push(watchForWake(() => this.#woke()))
  }

  /**
   * Releases all names and ports, so that no new visitor comes, waits up to `drainTimeoutMs` for open requests, then
   * disconnects. New requests go to other clients of a pool, or to the next client that takes the name; until then
   * they get 404. A call of `disconnect()` ends the wait.
   */
  async close(): Promise<void> {
    const connection = this.#connection
    if (this.#state === 'connected' && connection !== undefined) {
      this.#state = 'closing'
      const all = [connection, ...this.#retired.keys()]
      this.#draining = Promise.all([...all.map(one => one.drain()), ...this.#tunnels.dropResumes()]).then(
        () => {},
      )
    }
    if (this.#state === 'closing') await this.#draining
    await this.disconnect()
  }

  /** Releases all names and ports and closes. Open requests are cut. Resolves once the server has also closed. */
  async disconnect(): Promise<void> {
    if (this.#state !== 'idle' && this.#state !== 'closed') {
      const connection = this.#connection
      // The server reserves the names for the lease, and the next start may have them.
      const drops = connection === undefined ? [] : this.#tunnels.dropResumes()
      const retired = [...this.#retired.keys()]
      this.#retired.clear()
      this.#end()
      const left = [connection, ...retired].map(one => one?.leave())
      this.#leaving = Promise.all([...left, ...drops]).then(() => {})
    }
    await this.#leaving
  }

  /**
   * Adds an HTTP tunnel, and connects first if necessary. Resolves once it is registered. Rejects with the errors of
   * `connect()`; the client's other tunnels continue.
   */
  async http(options: HttpTunnelOptions): Promise<Tunnel> {
    if (options.later) throw optionInvalid("later is for the client's own tunnel.")
    checkNames(options, HTTP_NAMES, 'http()', CLIENT_HINTS)
    return this.add(() => httpTunnel(options, {}, dial, this.#parts.originOf))
  }

  /** Adds a TCP tunnel. Rejects also with `PORT_TAKEN`, `NOT_ALLOWED`, `CLIENT_LIMIT`, `KIND_REFUSED`. */
  async tcp(options: TcpTunnelOptions): Promise<Tunnel> {
    checkNames(options, TCP_NAMES, 'tcp()')
    return this.add(() => tcpTunnel(options, dial))
  }

  /** Adds a TLS tunnel. Rejects also with `NAME_TAKEN`, `NAME_RESERVED` and `KIND_REFUSED`. */
  async tls(options: TlsTunnelOptions): Promise<Tunnel> {
    checkNames(options, TLS_NAMES, 'tls()')
    return this.add(() => tlsTunnel(options, dial))
  }

  /**
   * Adds a UDP tunnel. It may have the same `remotePort` as a TCP tunnel. If the service does not listen, there is an
   * `error` event, `ORIGIN_REFUSED`; a service that starts later gets the later datagrams.
   */
  async udp(options: UdpTunnelOptions): Promise<Tunnel> {
    checkNames(options, UDP_NAMES, 'udp()')
    return this.add(() => udpTunnel(options, associate, error => this.emit('error', error)))
  }

  /** The tunnels that the client has, or has requested. */
  get tunnels(): readonly Tunnel[] {
    return this.#tunnels.all
  }

  /** The public URL, as `getTunnelUrl()` returns it. */
  get url(): string {
    return this.getTunnelUrl()
  }

  /** The public URL of the first tunnel. Throws `STATE_INVALID` before its first registration. */
  getTunnelUrl(): string {
    return this.#tunnels.first.granted.url
  }

  /**
   * Sets the place of the app of a client with `later`: a port of this machine, or the options of an app. Open
   * connections are not moved. Throws `STATE_INVALID` without `later`, and `OPTION_INVALID`.
   */
  forward(where: number | OriginOptions): void {
    if (this.#late === undefined)
      throw new TunnelError('STATE_INVALID', 'The client was not made with later.')
    const options = typeof where === 'number' ? { port: where } : where
    if (options.later) throw optionInvalid('forward() says where the app is, and not later.')
    checkNames(options, ORIGIN_NAMES, 'forward()')
    this.#late.lead(originOf(options, dial, this.#parts.originOf))
  }

  /** Returns the granted name: the requested one, or another if that was in use. */
  getSubdomain(): string {
    return this.#tunnels.first.granted.name
  }

  /** Whether the client is connected and its tunnels are registered: `getState()` is `connected`. */
  isConnected(): boolean {
    return this.#state === 'connected'
  }

  /** The smallest round trip to the server since the connection opened, in milliseconds. 0: not measured yet. */
  get roundTripMs(): number {
    return this.#connection?.roundTripMs ?? 0
  }

  /**
   * The URL of the inspector's page, with its token after `#`: only for the user of this machine. `undefined` without
   * `inspect`, with `port: false`, and while the client is neither connecting nor connected.
   */
  get inspectorUrl(): string | undefined {
    return this.#parts.all.find(part => part.url !== undefined)?.url
  }

  get exchanges(): AsyncIterable<Exchange> {
    return this.#parts.watch(ALL).exchanges
  }

  async waitFor(filter: string, options?: WaitOptions): Promise<Exchange> {
    return await this.#parts.watch(ALL).waitFor(filter, options)
  }

  /** Returns the state. Every change emits an event. */
  getState(): TunnelState {
    return this.#state
  }

  /**
   * Probes the public URL of the first tunnel. The server responds after a round trip to this client, without the app. Resolves
   * with `true` if visitors can reach the tunnel, `false` if not or after `timeoutMs`, and `undefined` if it is not an HTTP
   * tunnel. On the JSON wire a server may not know its own port: the URL that responds is the tunnel's from then on.
   */
  async probe(timeoutMs = 5_000): Promise<boolean | undefined> {
    const { first } = this.#tunnels
    const { url, otherUrls = [], resume, probeSecret = resume } = first.granted
    const isPublic = first.kind === 'http' && first.settings.registersAs === undefined
    if (!isPublic || probeSecret === undefined) return undefined
    const urls = [url, ...otherUrls]
    const over = this.#stopping.signal
    const answers = await Promise.all(
      urls.map(one => probePublicSide(this.#settings.dialPublic, one, probeSecret, timeoutMs, over)),
    )
    const found = urls[answers.indexOf(true)]
    if (found !== undefined && found !== url && first.granted.url === url)
      this.#tunnels.moved(first.granted.tunnel, found)
    return found !== undefined
  }

  /** Calls `disconnect()` at the end of an `await using` block. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.disconnect()
  }

  protected override listenersChanged(event: keyof TunnelClientEvents): void {
    if (event === 'reach' && this.#stopWatching.length > 0) this.#publicWatch.set(this.hasListeners('reach'))
    if (!WATCHED.some(one => one === event)) return
    this.#connection?.watch(this.#isWatched, this.#reportRate)
    if (this.#isWatched) return
    for (const reports of [this.#reports, ...this.#retired.values()]) reports?.forget()
  }

  get #isWatched(): boolean {
    return this.#parts.reportRate !== undefined || WATCHED.some(event => this.hasListeners(event))
  }

  get #reportRate(): number {
    const isHeard = WATCHED.some(event => this.hasListeners(event))
    return isHeard ? this.#settings.reportRate : (this.#parts.reportRate ?? 0)
  }

  /** Adds a tunnel with these `TunnelSettings`, whose type is not public, and connects if necessary. */
  protected async add(settingsOf: () => object): Promise<Tunnel> {
    if (this.#state === 'closing') throw new TunnelError('STATE_INVALID', 'The client is closing.')
    const settings = settingsOf() as TunnelSettings
    for (const one of atEachServer(this.#settings)) guardToken(settings.token, one)
    const tunnel = this.#tunnels.want(settings)
    try {
      if (this.#state === 'idle' || this.#state === 'closed') this.#connecting = this.#connectFirst()
      // If this tunnel was refused itself, that error came first and says more.
      if (this.#state === 'connecting')
        await this.#connecting?.catch((error: unknown) => tunnel.refuse(error))
      // A tunnel that was refused with the others is not requested again.
      if (this.#connection !== undefined && this.#tunnels.has(tunnel))
        await this.#tunnels.register(tunnel, this.#connection)
      await tunnel.ready
      return tunnel
    } catch (error) {
      this.#tunnels.drop(tunnel)
      throw error
    }
  }

  /** Handles the revocation of a tunnel. Without another one, the client ends. */
  #revoked(number: number, refusal: TunnelError): void {
    const error = this.#tunnels.revoked(number, refusal)
    if (error === undefined) return
    if (this.#tunnels.size > 0) return this.emit('error', error)
    const connection = this.#connection
    this.#end(error)
    this.#leaving = connection?.leave()
  }

  // ── The connection ─────────────────────────────────────────────────────────────────────────────────────────

  /** Makes one attempt: dials, and registers every tunnel. */
  async #establish(): Promise<void> {
    const { signal } = this.#stopping
    const startedAt = performance.now()
    const reports = this.#newReports()
    let connection: Connection | undefined
    let end: TunnelError | undefined
    const isCurrent = () => connection === undefined || !this.#retired.has(connection)
    const events = this.#connectionEvents(reports, isCurrent, {
      leaving: code => {
        if (connection !== undefined && this.#connection === connection) this.#left(connection, reports, code)
      },
      closed: error => {
        end = error
        if (!signal.aborted) reports.lost()
        if (connection === undefined) return
        this.#retired.delete(connection)
        if (this.#connection === connection) this.#lost(error)
      },
    })
    connection = await this.#servers.connect(events, signal)
    await this.#registerInTime(connection, startedAt)
    // The connection was lost at the moment of the grant.
    if (end !== undefined) throw end
    this.#connection = connection
    this.#reports = reports
    this.#state = 'connected'
    this.#tries.connected()
    const { url, name: subdomain } = this.#tunnels.first.granted
    this.emit('connected', { url, subdomain, wire: connection.wire })
  }

  /** Registers within the rest of `connectTimeoutMs`, or ends the connection. */
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
      // Before the grant, so that requests which wait for the name are also reported.
      if (this.#isWatched) connection.watch(true, this.#reportRate)
      await this.#tunnels.registerAll(connection)
      if (signal.aborted) throw stopped()
    } catch (error) {
      connection.terminate()
      if (signal.aborted) throw stopped()
      throw isTooLate ? tooLate() : error
    } finally {
      clearTimeout(timer)
      signal.removeEventListener('abort', stop)
    }
  }

  #newReports(): VisitReports {
    return new VisitReports(this.#firstId, {
      emit: (event, payload) => this.emit(event, payload),
      parts: this.#parts.all,
    })
  }

  /** Makes the events of a connection. `isCurrent`: whether no other connection has replaced it. */
  #connectionEvents(
    reports: VisitReports,
    isCurrent: () => boolean,
    ends: Pick<ConnectionEvents, 'leaving' | 'closed'>,
  ): ConnectionEvents {
    return {
      ...reports.events,
      ...ends,
      revoked: (tunnel, error) => {
        if (isCurrent()) this.#revoked(tunnel, error)
      },
      hostTroubled: (tunnel, { code, message }) => {
        const label = isCurrent() ? this.#tunnels.registered(tunnel)?.label : undefined
        if (label !== undefined) this.emit('error', new TunnelError(code, `${label}: ${message}`))
      },
      moved: (tunnel, url) => {
        if (isCurrent()) this.#tunnels.moved(tunnel, url)
      },
      error: error => this.emit('error', error),
    }
  }

  /**
   * Called when the server stops. If it is the only one, it closes the connection when it is done, and reconnecting begins then.
   */
  #left(connection: Connection, reports: VisitReports, code: ErrorCode): void {
    const isElsewhere = code === 'SERVER_DRAINING' && this.#servers.areSeveral
    if (isElsewhere) this.#servers.goOn()
    if (isElsewhere || code === 'SERVER_REPLACED') this.#moveOn(connection, reports, code)
  }

  /**
   * Registers the tunnels on another connection, because another program has the server's ports, or there are other
   * servers. Open requests end on this connection, which the server closes afterwards.
   */
  #moveOn(connection: Connection, reports: VisitReports, code: ErrorCode): void {
    if (this.#state !== 'connected' || !this.#settings.isReconnecting || this.#tunnels.size === 0) return
    this.#retired.set(connection, reports)
    const [oldest] = this.#retired.keys()
    if (this.#retired.size > MAX_RETIRED) oldest?.terminate()
    this.#firstId += IDS_OF_A_CONNECTION
    this.#comeBack(new TunnelError(code))
  }

  #lost(error: TunnelError): void {
    if (this.#retired.size === 0) for (const { reports } of this.#parts.all) reports?.forget()
    if (this.#state === 'connected') this.#servers.goOn()
    this.#comeBack(error)
  }

  /** Called when no connection carries the tunnels any more. */
  #comeBack(error: TunnelError): void {
    this.#connection = undefined
    this.#reports = undefined
    this.#tunnels.disconnected()
    if (this.#state !== 'connected') return
    const { signal } = this.#stopping
    this.#tries.lost()
    // A client without tunnels has no reason to reconnect.
    const isReconnecting = this.#settings.isReconnecting && this.#tunnels.size > 0
    this.#state = isReconnecting ? 'reconnecting' : 'closed'
    this.emit('disconnected', { error })
    // A listener may have called `disconnect` or `connect`.
    if (signal.aborted || this.#stopping.signal !== signal) return
    if (isReconnecting) void this.#reconnect()
    else this.#end(this.#tunnels.size > 0 ? error : undefined)
  }

  /** Reconnects until it succeeds, is stopped, or the server refuses for good. Never rejects. */
  async #reconnect(): Promise<void> {
    const { signal } = this.#stopping
    while (!signal.aborted) {
      const { attempt, delayMs } = this.#tries.next()
      this.emit('reconnecting', { attempt, delayMs })
      if (signal.aborted) return
      await this.#tries.pause(delayMs)
      if (signal.aborted) return
      if (this.#tunnels.size === 0) return this.#end()
      try {
        return await this.#establish()
      } catch (cause) {
        if (signal.aborted) return
        const error = cause instanceof TunnelError ? cause : new TunnelError('INTERNAL', undefined, { cause })
        if (this.#tunnels.areRefusedForGood(error)) return this.#end(error)
        this.emit('error', error)
      }
    }
  }

  #woke(): void {
    this.#tries.goOn()
    this.#connection?.checkAlive(WAKE_CHECK_MS)
  }

  #end(error?: TunnelError): void {
    this.#state = 'closed'
    this.#connection = undefined
    this.#reports = undefined
    // Before connections are cut, so that no report follows.
    this.#stopping.abort()
    for (const retired of this.#retired.keys()) retired.terminate()
    this.#retired.clear()
    this.#stopParts()
    this.#tries.goOn()
    this.#endWatching()
    this.#tunnels.end(error ?? stopped())
    this.emit('close', error === undefined ? {} : { error })
  }

  #stopParts(): void {
    for (const part of this.#parts.all) part.stop?.()
  }

  #endWatching(): void {
    this.#publicWatch.set(false)
    for (const stop of this.#stopWatching) stop()
    this.#stopWatching = []
  }
}
