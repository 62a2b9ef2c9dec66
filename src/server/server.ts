// TunnelServer: takes visitors and clients on one port and brings them together.
/// <reference lib="esnext.disposable" preserve="true" />

import { createHash } from 'node:crypto'
import { BlockList, isIP } from 'node:net'
import { deferred } from '../deferred.ts'
import { ERRORS, type ErrorCode, TunnelError } from '../errors.ts'
import { Events } from '../events.ts'
import { formatUrl, isValidSubdomain } from '../names.ts'
import type { Listening } from '../sockets/bun.ts'
import { VERSION } from '../version.ts'
import { adopt } from './adopt.ts'
import type { ClientConnection, ClientHost } from './clients.ts'
import { type ControlDesk, controlRoute } from './control.ts'
import { Deadlines } from './deadlines.ts'
import type { Holding, Route, VisitorHost } from './front.ts'
import { LinkGate } from './links.ts'
import {
  DEFAULT_LIMITS,
  type ServerLimits,
  type TunnelServerEvents,
  type TunnelServerOptions,
} from './options.ts'
import { isProbe, probeUpstream } from './probe.ts'
import { destinationOf } from './route.ts'
import { Counters, type ServerStats } from './stats.ts'
import { type Tunnel, Tunnels } from './tunnels.ts'
import { VisitorConnection } from './visitor.ts'

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
  readonly #options: TunnelServerOptions
  readonly #limits: ServerLimits
  readonly #domains: readonly string[]
  /** The same, those under another one first. */
  readonly #domainsByLength: readonly string[]
  readonly #trusted: BlockList | undefined
  readonly #deadlines: Deadlines = new Deadlines(error => this.emit('error', error))
  readonly #tunnels: Tunnels
  readonly #counters: Counters = new Counters()
  readonly #visitors = new Set<VisitorConnection>()
  readonly #clients = new Set<ClientConnection>()
  readonly #linkGate: LinkGate = new LinkGate()
  readonly #desk: ControlDesk
  #state: State = 'idle'
  #listening: Listening | undefined
  #startedAt = 0
  #starting: Promise<void> | undefined
  #stopping: Promise<void> | undefined
  /** Exchanges under way, those with the control host included. */
  #exchangeCount = 0
  /** Resolves `stop()` when the last exchange is over. */
  #drained: (() => void) | undefined
  #allLeft: (() => void) | undefined

  constructor(options: TunnelServerOptions = {}) {
    super()
    if (typeof Bun === 'undefined') throw new TunnelError('RUNTIME_UNSUPPORTED')
    this.#options = options
    this.#limits = checkLimits(options.limits ?? {})
    this.#domains = checkDomains(options.domains ?? ['localhost'])
    this.#domainsByLength = this.#domains.toSorted((one, other) => other.length - one.length)
    this.#trusted = trustedList(options.trustedProxies ?? [])
    checkPort(options.port ?? 8080)
    checkPublicUrl(options.publicUrl)
    checkTokens(options.tokens ?? [])
    this.#tunnels = new Tunnels(this.#limits, this.#deadlines, options.reservedNames ?? [])
    this.#desk = this.#controlDesk()
  }

  /** Listens. Rejects with `PORT_IN_USE`, `TLS_INVALID`, or `STATE_INVALID` when it was started before. */
  async start(): Promise<void> {
    if (this.#state !== 'idle') throw new TunnelError('STATE_INVALID', `The server is ${this.#state}.`)
    this.#state = 'starting'
    this.#starting = this.#listen()
    try {
      await this.#starting
    } catch (error) {
      this.#state = 'idle'
      throw error
    }
    this.#state = 'running'
    this.#startedAt = Date.now()
    this.#deadlines.start()
    this.emit('start', { port: this.port, url: this.url })
  }

  /**
   * Drains and stops: takes nothing new, lets exchanges finish for up to `drainTimeoutMs`, then cuts what is left.
   * A second call waits for the same end.
   */
  async stop(): Promise<void> {
    // One that fails to start has nothing to stop; `start()` tells its caller why.
    if (this.#state === 'starting') await this.#starting?.catch(() => {})
    if (this.#state === 'running') this.#stopping = this.#drainAndStop()
    await this.#stopping
  }

  /** `stop()`, at the end of an `await using` block. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop()
  }

  /** The port it listens on; the one asked for before `start()`. */
  get port(): number {
    return this.#listening?.port ?? this.#options.port ?? 8080
  }

  /** The control host's own URL, where clients connect. */
  get url(): string {
    return this.#urlOf(undefined)
  }

  /** Counters now; with `includeSubdomains` also the names held. */
  getStats(includeSubdomains = false): ServerStats {
    const uptimeSeconds = this.#startedAt === 0 ? 0 : Math.floor((Date.now() - this.#startedAt) / 1000)
    const { totalConnections, pending, requests, bytesIn, bytesOut } = this.#counters
    return {
      status: this.#state === 'running' ? 'operational' : this.#state === 'draining' ? 'draining' : 'stopped',
      version: VERSION,
      connections: this.#clients.size,
      totalConnections,
      activeSubdomains: this.#tunnels.count,
      ...(includeSubdomains && { subdomains: this.#tunnels.names() }),
      pendingResponses: pending,
      requests,
      uptimeSeconds,
      uptime: `${uptimeSeconds}s`,
      bytesIn,
      bytesOut,
    }
  }

  // ── Start and stop ─────────────────────────────────────────────────────────────────────────────────────────

  async #listen(): Promise<void> {
    const { listenBun } = await import('../sockets/bun.ts')
    const { port = 8080, host: hostname = '0.0.0.0', tls } = this.#options
    const visitorHost = this.#visitorHost()
    try {
      this.#listening = listenBun({
        hostname,
        port,
        ...(tls && { tls }),
        accept: socket => {
          const visitor = new VisitorConnection(socket, visitorHost)
          this.#visitors.add(visitor)
          return visitor
        },
        failed: error => this.emit('error', error),
      })
    } catch (cause) {
      throw listenError(cause, hostname, port)
    }
  }

  async #drainAndStop(): Promise<void> {
    this.#state = 'draining'
    this.#listening?.stop()
    for (const client of this.#clients) client.drain()
    this.#tunnels.releaseHeld('SERVER_DRAINING')
    for (const visitor of [...this.#visitors]) visitor.drain()
    await this.#whenDrained()
    this.#state = 'stopped'
    this.#tunnels.clear()
    for (const client of [...this.#clients]) client.close('SERVER_DRAINING')
    await this.#whenAllLeft()
    for (const visitor of [...this.#visitors]) visitor.terminate()
    this.#deadlines.stop()
    this.#listening?.stop(true)
    this.emit('stop', {})
  }

  // ── Visitors ───────────────────────────────────────────────────────────────────────────────────────────────

  #visitorHost(): VisitorHost {
    const trusted = this.#trusted
    return {
      limits: this.#limits,
      deadlines: this.#deadlines,
      proto: this.#options.tls === undefined ? 'http' : 'https',
      heads: [],
      isDraining: () => this.#state !== 'running',
      isTrusted: address => trusted?.check(address, isIP(address) === 6 ? 'ipv6' : 'ipv4') ?? false,
      begun: visitor => this.#begun(visitor),
      route: visitor => this.#route(visitor),
      finished: (visitor, code) => this.#finished(visitor, code),
      left: visitor => {
        this.#visitors.delete(visitor)
        if (this.#visitors.size === 0) this.#allLeft?.()
      },
    }
  }

  #begun(visitor: VisitorConnection): void {
    this.#exchangeCount++
    visitor.record.startedAt = performance.now()
  }

  #route(visitor: VisitorConnection): Route {
    if (this.#state !== 'running') return 'SERVER_DRAINING'
    const { head, record } = visitor
    const destination = destinationOf(head.host, this.#domainsByLength)
    if (destination.kind === 'control') return controlRoute(visitor, this.#desk)
    if (destination.kind === 'unknown') return 'HOST_UNKNOWN'
    const tunnel = this.#tunnels.find(destination.name)
    if (tunnel === undefined) return 'TUNNEL_NOT_FOUND'
    if (isProbe(head, tunnel)) return probeUpstream(tunnel)
    record.tunnel = tunnel
    this.#counters.requests++
    this.#counters.pending++
    if (tunnel.upstream === undefined) return this.#holdAt(tunnel, visitor)
    this.#report(tunnel, visitor)
    return tunnel.upstream
  }

  /** The client is told of a request that waited for it when it is back. */
  #holdAt(tunnel: Tunnel, visitor: VisitorConnection): Holding {
    return {
      hold: held =>
        tunnel.hold(outcome => {
          if (typeof outcome !== 'string') this.#report(tunnel, visitor)
          held(outcome)
        }),
    }
  }

  #report(tunnel: Tunnel, visitor: VisitorConnection): void {
    visitor.record.client = tunnel.client
    visitor.record.report = tunnel.client?.begun(tunnel, visitor) ?? 0
  }

  #finished(visitor: VisitorConnection, code: ErrorCode | undefined): void {
    const { record, head, answerBytes } = visitor
    this.#exchangeCount--
    this.#counters.bytesIn += visitor.requestBytes
    this.#counters.bytesOut += answerBytes
    const { tunnel, client, report } = record
    if (tunnel !== undefined) this.#counters.pending--
    record.tunnel = undefined
    record.client = undefined
    record.report = 0
    const isHeard = tunnel !== undefined && this.hasListeners('request')
    if (report !== 0 || isHeard) {
      const status = visitor.answerStatus || statusOf(code)
      const durationMs = Math.round((performance.now() - record.startedAt) * 100) / 100
      if (tunnel !== undefined) client?.finished(tunnel, report, status, durationMs, answerBytes, code)
      if (isHeard) {
        this.emit('request', {
          subdomain: tunnel.name,
          method: head.method,
          path: head.target,
          status,
          durationMs,
          bytes: answerBytes,
          ...(code !== undefined && { error: code }),
        })
      }
    }
    if (this.#exchangeCount === 0) this.#drained?.()
  }

  // ── Clients ────────────────────────────────────────────────────────────────────────────────────────────────

  #clientHost(): ClientHost {
    return {
      limits: this.#limits,
      deadlines: this.#deadlines,
      tunnels: this.#tunnels,
      linkGate: this.#linkGate,
      urlOf: name => this.#urlOf(name),
      registered: (client, tunnel) =>
        this.emit('connection', {
          subdomain: tunnel.name,
          wire: client.wire,
          remoteAddress: client.remoteAddress,
        }),
      released: (_client, tunnel, reason) => this.emit('disconnection', { subdomain: tunnel.name, reason }),
      gone: client => this.#clients.delete(client),
      failed: error => this.emit('error', error),
    }
  }

  #controlDesk(): ControlDesk {
    const clientHost = this.#clientHost()
    return {
      version: VERSION,
      tokenHashes: (this.#options.tokens ?? []).map(token => createHash('sha256').update(token).digest()),
      hasRoom: () => this.#clients.size < this.#limits.maxClients,
      stats: () => this.getStats(),
      linksOf: secret => this.#linkGate.find(secret),
      isKnownHost: host => {
        const destination = destinationOf(host, this.#domainsByLength)
        if (destination.kind === 'tunnel') return this.#tunnels.find(destination.name) !== undefined
        return destination.kind === 'control' && this.#domains.some(domain => host.endsWith(domain))
      },
      adopt: (socket, wire) =>
        adopt(socket, wire, clientHost, client => {
          this.#clients.add(client)
          this.#counters.totalConnections++
        }),
    }
  }

  #urlOf(name: string | undefined): string {
    const { publicUrl, tls } = this.#options
    const front = publicUrl === undefined ? undefined : new URL(publicUrl)
    const port = front === undefined ? this.port : front.port === '' ? undefined : Number(front.port)
    return formatUrl({
      secure: front === undefined ? tls !== undefined : front.protocol === 'https:',
      hostname: this.#domains[0] ?? 'localhost',
      ...(name !== undefined && { subdomain: name }),
      ...(port !== undefined && { port }),
    })
  }

  /** All exchanges are over, or the time for it is. */
  #whenDrained(): Promise<void> {
    if (this.#exchangeCount === 0) return Promise.resolve()
    return bounded(this.#limits.drainTimeoutMs, resolve => {
      this.#drained = resolve
    })
  }

  /** All connections have closed, last words read: cutting one now could destroy them. */
  #whenAllLeft(): Promise<void> {
    if (this.#visitors.size === 0) return Promise.resolve()
    return bounded(LAST_WORDS_MS, resolve => {
      this.#allLeft = resolve
    })
  }
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

/** What a visitor is answered when its exchange fails before there was an answer. */
function statusOf(code: ErrorCode | undefined): number {
  return code === undefined || code === 'CANCELLED' ? 0 : ERRORS[code].status
}

function listenError(cause: unknown, hostname: string, port: number): TunnelError {
  const code = cause instanceof Error && 'code' in cause ? String(cause.code) : ''
  if (code === 'EADDRINUSE') {
    return new TunnelError('PORT_IN_USE', `Port ${port} on ${hostname} is in use.`, { cause })
  }
  if (code === 'EACCES') {
    return new TunnelError('OPTION_INVALID', `Listening on port ${port} needs more rights.`, { cause })
  }
  if (/TLS|SSL|PEM|KEY|CERT|BoringSSL/i.test(`${code} ${String(cause)}`))
    return new TunnelError('TLS_INVALID', undefined, { cause })
  return new TunnelError('OPTION_INVALID', `Cannot listen on ${hostname}:${port}.`, { cause })
}

function trustedList(ranges: readonly string[]): BlockList | undefined {
  if (ranges.length === 0) return undefined
  const list = new BlockList()
  for (const range of ranges) {
    const [address = '', bits] = range.split('/')
    const family = isIP(address)
    if (family === 0) throw new TunnelError('OPTION_INVALID', `"${range}" is not an address or a CIDR range.`)
    const type = family === 6 ? 'ipv6' : 'ipv4'
    if (bits !== undefined && !(/^\d{1,3}$/.test(bits) && Number(bits) <= (family === 6 ? 128 : 32))) {
      throw new TunnelError('OPTION_INVALID', `"${range}" is not an address or a CIDR range.`)
    }
    if (bits === undefined) list.addAddress(address, type)
    else list.addSubnet(address, Number(bits), type)
  }
  return list
}

function checkPort(port: number): void {
  if (!Number.isInteger(port) || port < 0 || port > 65_535) {
    throw new TunnelError('PORT_INVALID', `${port} is not a port to listen on.`)
  }
}

function checkDomains(domains: readonly string[]): readonly string[] {
  if (domains.length === 0) throw new TunnelError('OPTION_INVALID', 'A server needs at least one domain.')
  return domains.map(domain => {
    const lower = domain.toLowerCase().replace(/\.$/, '')
    if (lower.split('.').every(isValidSubdomain)) return lower
    throw new TunnelError('OPTION_INVALID', `"${domain}" is not a domain name.`)
  })
}

/** What a timer can wait; more would fire at once. */
const MAX_TIMER_MS = 2_147_483_647
/** Limits that leave nothing to work with at 0. */
const NEVER_ZERO: ReadonlySet<string> = new Set([
  'maxHeadBytes',
  'maxHeaderCount',
  'maxTargetBytes',
  'maxStreams',
  'maxClientStreams',
  'maxTunnels',
  'maxCarrierBacklogBytes',
  'maxClients',
  'pingIntervalMs',
  'deadAfterMs',
  'maxMessageBytes',
])

function checkLimits(wished: Partial<ServerLimits>): ServerLimits {
  for (const [name, value] of Object.entries(wished)) {
    if (!Object.hasOwn(DEFAULT_LIMITS, name)) {
      throw new TunnelError('OPTION_INVALID', `There is no limit called "${name}".`)
    }
    if (value === undefined) continue
    const least = NEVER_ZERO.has(name) ? 1 : 0
    const most = name.endsWith('Ms') ? MAX_TIMER_MS : Number.MAX_SAFE_INTEGER
    if (!(value >= least && value <= most)) {
      throw new TunnelError(
        'OPTION_INVALID',
        `limits.${name} must be from ${least} to ${most}, not ${value}.`,
      )
    }
  }
  const given = Object.entries(wished).filter(([, value]) => value !== undefined)
  const limits: ServerLimits = { ...DEFAULT_LIMITS, ...Object.fromEntries(given) }
  if (limits.deadAfterMs <= limits.pingIntervalMs) {
    throw new TunnelError('OPTION_INVALID', 'limits.deadAfterMs must be more than limits.pingIntervalMs.')
  }
  return limits
}

function checkPublicUrl(publicUrl: string | undefined): void {
  if (publicUrl === undefined) return
  if (URL.canParse(publicUrl) && /^https?:$/.test(new URL(publicUrl).protocol)) return
  throw new TunnelError('OPTION_INVALID', `publicUrl "${publicUrl}" is not an http:// or https:// URL.`)
}

/** A token that cannot stand in a header would refuse everybody. */
function checkTokens(tokens: readonly string[]): void {
  if (tokens.every(token => /^[\x21-\x7e]+$/.test(token))) return
  throw new TunnelError('OPTION_INVALID', 'A token must be visible ASCII without spaces, and not empty.')
}
