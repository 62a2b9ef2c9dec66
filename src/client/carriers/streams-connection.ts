// One carrier to the server and its session: registers tunnels, joins streams, reports exchanges.

import { deferred } from '../../deferred.ts'
import { type ErrorCode, optionInvalid, TunnelError } from '../../errors.ts'
import { eventLoop } from '../../event-loop.ts'
import type { OwnGuard } from '../../own-guard.ts'
import type { Carrier, CarrierHandler } from '../../session/carrier.ts'
import type { SessionHandler } from '../../session/contract.ts'
import { Session } from '../../session/session.ts'
import { Turns } from '../../session/turns.ts'
import {
  encodeControl,
  type GrantedFeature,
  type GuardFields,
  parseServerMessage,
  type RegisterRoute,
  type ServerMessage,
  serverProbeProof,
} from '../../wire/control.ts'
import { MAX_FRAME_BYTES } from '../../wire/frame.ts'
import type { SessionLanes } from '../contracts/laning.ts'
import { bounded, join } from '../origins/join.ts'
import type { Origin } from '../origins/origin.ts'
import { sha256 } from '../reach/probe.ts'
import type { ClientSettings } from '../settings.ts'
import type { RouteSettings, TunnelSettings } from '../tunnels/tunnel-settings.ts'
import type { Connection, ConnectionEvents, Registration, Wish } from './connection.ts'
import { Links } from './links.ts'

export const turns: Turns = new Turns(eventLoop, error => {
  // A bug of this program, which is thrown like any other.
  queueMicrotask(() => {
    throw error
  })
})

const LEAVE_TIMEOUT_MS = 2_000

interface Registering {
  readonly settings: TunnelSettings
  resolve(granted: Registration): void
  reject(error: TunnelError): void
}

interface Granted {
  readonly name: string
  /** The origins for the tunnel's own number in OPEN frames, and for the numbers after it. */
  readonly origins: readonly Origin[]
}

interface Dialled {
  readonly origin: Origin
  readonly isRaw: boolean
  /** The proof with which the server marks its own probes. */
  readonly probeProof: string
}

/** A released tunnel, until the server reports that its last visitor has left. */
interface Leaving {
  readonly over: Promise<void>
  readonly end: () => void
}

export class StreamsConnection implements Connection {
  readonly wire = 'streams'
  readonly #events: ConnectionEvents
  readonly #carrier: Carrier
  readonly #session: Session
  readonly #links: Links
  /** The lanes. `undefined` if the client has none. */
  readonly #lanes: SessionLanes | undefined
  readonly #maxStreams: number
  /** Registrations in progress, by `ref`. */
  readonly #registering = new Map<number, Registering>()
  #nextRef = 1
  readonly #granted = new Map<number, Granted>()
  /** The released tunnels that may still have visitors. */
  readonly #leaving = new Map<number, Leaving>()
  readonly #drainTimeoutMs: number
  /** The origins by their number in OPEN frames: one for a tunnel itself, and one for each of its routes. */
  readonly #origins = new Map<number, Dialled>()
  /** The reason that the server gave for leaving. */
  #leavingCode: ErrorCode | undefined
  #closedWith: TunnelError | undefined
  readonly #carrierClosed = deferred()

  constructor(settings: ClientSettings, events: ConnectionEvents, carrier: Carrier) {
    this.#carrier = carrier
    this.#events = events
    this.#drainTimeoutMs = settings.drainTimeoutMs
    const handler: SessionHandler = {
      opened: (stream, tunnel) => {
        const to = this.#origins.get(tunnel)
        if (to === undefined) return 'PROTOCOL_ERROR'
        return join(stream, to.origin, to.isRaw, to.probeProof, error => events.error(error))
      },
      control: json => this.#control(json),
      leaving: code => {
        this.#leavingCode = code
        events.leaving(code)
      },
      linkWanted: () => this.#links.want(),
      closed: (code, error) => this.#closed(code, error),
    }
    this.#session = new Session(carrier, handler, {
      role: 'client',
      scheduler: eventLoop,
      turns,
      ...settings.limits,
      pingIntervalMs: settings.pingIntervalMs,
      deadAfterMs: settings.deadAfterMs,
    })
    const { agent, server, dial, limits } = settings
    this.#maxStreams = limits.maxStreams
    this.#links = new Links(
      this.#session,
      agent === undefined ? { server, dial, maxLinks: limits.maxLinks } : undefined,
    )
    this.#lanes = settings.lanes?.forSession(this.#session, this.#links)
  }

  get carrierHandler(): CarrierHandler {
    const session = this.#session.carrierHandler
    return {
      ...session,
      closed: error => {
        session.closed(error)
        this.#carrierClosed.resolve()
      },
    }
  }

  async register(settings: TunnelSettings, { name, port, resume, wishes }: Wish): Promise<Registration> {
    const guard = settings.guard && (await definitionOf(settings.guard, settings))
    if (wishes !== undefined && Buffer.byteLength(JSON.stringify({ guard, wishes })) > MAX_GUARD_BYTES)
      throw optionInvalid(`guard and away are longer than ${MAX_GUARD_BYTES} bytes.`)
    if (this.#closedWith !== undefined) throw this.#closedWith
    const { promise, resolve, reject } = deferred<Registration>()
    const ref = this.#nextRef++
    this.#registering.set(ref, { settings, resolve, reject })
    const {
      kind,
      registersAs,
      token,
      hostHeader,
      routes,
      isWildcard,
      hosts,
      hostNames,
      protocol,
      proxyProtocol,
      pool,
      poolResponse,
      poolLabel,
      inbox,
    } = settings
    this.#session.sendControl(
      encodeControl({
        type: 'register',
        ref,
        kind: registersAs ?? kind,
        ...(name !== undefined && { name }),
        ...(port !== undefined && { port }),
        ...(resume !== undefined && { resume }),
        ...(token !== undefined && { token }),
        ...(hostHeader !== undefined && { hostHeader }),
        ...(proxyProtocol !== undefined && { proxyProtocol }),
        ...(routes.length > 0 && { routes: routes.map(registerRoute) }),
        ...(isWildcard && { wildcard: true }),
        ...(hosts && { hosts }),
        ...(hostNames && { hostNames }),
        ...(protocol && { protocol }),
        ...(inbox && { inbox }),
        ...(wishes && { wishes }),
        ...(pool !== undefined && { pool }),
        ...(poolResponse !== undefined && { poolResponse }),
        ...(poolLabel !== undefined && { poolLabel }),
        ...(guard && { guard }),
      }),
    )
    const registration = await this.#grantOf(promise, guard !== undefined, settings)
    const hasHosts = hostNames === undefined || isGranted(registration, 'hosts')
    const hasInbox = inbox === undefined || isGranted(registration, 'inbox')
    const hasProtocols =
      registration.protocol === protocol &&
      (isGranted(registration, 'routes') || routes.every(one => one.protocol === undefined))
    if (hasHosts && hasInbox && hasProtocols) return registration
    this.release(registration)
    if (!hasHosts) throw new TunnelError('FEATURE_UNSUPPORTED', 'The server does not support custom domains.')
    if (!hasInbox) throw new TunnelError('INBOX_REFUSED', 'The server has no inbox.')
    throw new TunnelError(
      'KIND_REFUSED',
      'The server does not speak HTTP/2 to apps, which protocol asks for.',
    )
  }

  async #grantOf(
    promise: Promise<Registration>,
    hasGuard: boolean,
    { registersAs }: TunnelSettings,
  ): Promise<Registration> {
    if (!hasGuard && registersAs === undefined) return promise
    const registration = await promise.catch(error => {
      if (registersAs !== undefined && error instanceof TunnelError && error.code === 'KIND_REFUSED')
        throw new TunnelError('FEATURE_UNSUPPORTED', 'The server has no private services.')
      throw error
    })
    if (!hasGuard || isGranted(registration, 'guard')) return registration
    this.release(registration)
    throw noGuard()
  }

  async guard({ tunnel }: Registration, settings: TunnelSettings): Promise<void> {
    const guard = settings.guard && (await definitionOf(settings.guard, settings))
    if (guard === undefined || !this.#granted.has(tunnel)) return
    this.#session.sendControl(encodeControl({ type: 'guard', tunnel, guard }))
  }

  release({ tunnel }: Registration): void {
    void this.#giveBack(tunnel)
  }

  async drain(): Promise<void> {
    await Promise.all([...this.#granted.keys()].map(tunnel => this.#giveBack(tunnel)))
  }

  /** Releases a tunnel. Its origin stays known until the server confirms, because requests may be in transit. */
  #giveBack(tunnel: number): Promise<void> {
    const known = this.#leaving.get(tunnel)
    if (known !== undefined) return known.over
    const { promise: over, resolve } = deferred()
    if (this.#closedWith !== undefined) resolve()
    else {
      const cancel = eventLoop.after(this.#drainTimeoutMs, () => this.#forget(tunnel))
      const end = () => {
        cancel()
        resolve()
      }
      this.#leaving.set(tunnel, { over, end })
      this.#session.sendControl(encodeControl({ type: 'release', tunnel }))
    }
    return over
  }

  #forget(tunnel: number): void {
    this.#leaving.get(tunnel)?.end()
    this.#leaving.delete(tunnel)
    const routes = this.#granted.get(tunnel)?.origins.length ?? 0
    if (routes > 0) this.#session.resetStreams(tunnel, tunnel + routes, 'CLIENT_GONE')
    this.#forgetOrigins(tunnel)
  }

  #forgetOrigins(tunnel: number): void {
    for (const index of this.#granted.get(tunnel)?.origins.keys() ?? []) this.#origins.delete(tunnel + index)
    this.#granted.delete(tunnel)
  }

  dial({ tunnel }: Registration, count: number): void {
    this.#session.sendControl(encodeControl({ type: 'dial', tunnel, count }))
  }

  health({ tunnel }: Registration, isHealthy: boolean): void {
    this.#session.sendControl(encodeControl({ type: 'health', tunnel, isHealthy }))
  }

  watch(on: boolean, rate: number): void {
    this.#session.sendControl(encodeControl({ type: 'watch', on, ...(on && rate > 0 && { rate }) }))
  }

  get roundTripMs(): number {
    return this.#session.roundTripMs
  }

  checkAlive(withinMs: number): void {
    const cancel = eventLoop.after(withinMs, () => this.#session.terminate('CARRIER_LOST'))
    this.#session.ping(cancel)
  }

  async leave(): Promise<void> {
    for (const tunnel of this.#granted.keys())
      if (!this.#leaving.has(tunnel)) this.#session.sendControl(encodeControl({ type: 'release', tunnel }))
    this.#session.close('CANCELLED')
    // The carrier closes when the server has read this. A server that is gone is not waited for.
    const cancel = eventLoop.after(LEAVE_TIMEOUT_MS, this.#carrierClosed.resolve)
    await this.#carrierClosed.promise
    cancel()
  }

  terminate(): void {
    this.#session.terminate('CARRIER_LOST')
    // If the session closed before, the other side may not close the carrier.
    this.#carrier.terminate()
  }

  #control(json: Uint8Array): void {
    const message = parseServerMessage(json)
    if (message === undefined) this.#session.close('PROTOCOL_ERROR')
    else if (message !== 'unknown') this.#handle(message)
  }

  #handle(message: ServerMessage): void {
    switch (message.type) {
      case 'link-wanted':
        return this.#links.want()
      case 'trunk-wanted':
        if (this.#lanes !== undefined) return this.#lanes.wanted()
        return this.#session.sendControl(encodeControl({ type: 'no-trunk' }))
      case 'lane':
        return this.#lanes?.begin(this.#session.stream(message.stream)?.handler, message.link, message.lane)
      case 'granted':
        return this.#grant(message)
      case 'refused':
        this.#registering.get(message.ref)?.reject(saidBy(message))
        this.#registering.delete(message.ref)
        return
      case 'released':
        return this.#forget(message.tunnel)
      case 'revoked':
        // The server has cut its visitors, and will not respond to a release that was in transit.
        this.#leaving.get(message.tunnel)?.end()
        this.#leaving.delete(message.tunnel)
        this.#forgetOrigins(message.tunnel)
        return this.#tell(() => this.#events.revoked(message.tunnel, saidBy(message)))
      case 'host-troubled':
        return this.#tell(() =>
          this.#events.hostTroubled(message.tunnel, new TunnelError(message.code, message.message)),
        )
      case 'moved':
        return this.#tell(() => this.#events.moved(message.tunnel, message.url))
      case 'request':
        return this.#events.request({ ...message, tunnel: this.#nameOf(message.tunnel) })
      case 'switched':
        return this.#events.switched(message.id)
      case 'response':
        return this.#events.response(message)
      case 'requests':
        return this.#events.requests(message)
      case 'visitor-connected':
        return this.#events.visitorConnected({ ...message, tunnel: this.#nameOf(message.tunnel) })
      case 'visitor-disconnected':
        return this.#events.visitorDisconnected(message)
    }
  }

  #nameOf(tunnel: number): string {
    return this.#granted.get(tunnel)?.name ?? ''
  }

  #grant(message: Extract<ServerMessage, { type: 'granted' }>): void {
    const registering = this.#registering.get(message.ref)
    if (registering === undefined) return
    this.#registering.delete(message.ref)
    this.#links.allow(message.linkSecret)
    const { kind, origin, routes, registersAs } = registering.settings
    const isRaw = kind === 'tcp' || kind === 'tls'
    const origins = [origin, ...routes.map(route => route.origin)].map(one => bounded(one, this.#maxStreams))
    this.#granted.set(message.tunnel, { name: message.name, origins })
    const probeProof = serverProbeProof(message.resume, sha256)
    for (const [index, one] of origins.entries())
      this.#origins.set(message.tunnel + index, { origin: one, isRaw, probeProof })
    registering.resolve(registersAs === 'connect' ? { ...message, url: origin.url } : message)
  }

  /** Calls `tell` later, so that the caller gets the grant before other events of the tunnel. */
  #tell(tell: () => void): void {
    eventLoop.soon(() => {
      if (this.#closedWith === undefined) tell()
    })
  }

  #closed(code: ErrorCode, cause: Error | undefined): void {
    // The reason for leaving says more than the loss of the carrier after it.
    const reason = code === 'CARRIER_LOST' ? (this.#leavingCode ?? code) : code
    const error = new TunnelError(reason, undefined, { cause })
    this.#closedWith = error
    this.#links.close()
    for (const registering of this.#registering.values()) registering.reject(error)
    this.#registering.clear()
    for (const { end } of this.#leaving.values()) end()
    this.#leaving.clear()
    this.#events.closed(error)
  }
}

/** The maximum size of a guard. The rest of a registration is much shorter. */
const MAX_GUARD_BYTES = MAX_FRAME_BYTES - 16_384

async function definitionOf(guard: OwnGuard, { kind, name, port }: TunnelSettings): Promise<GuardFields> {
  const definition = { ...(await guard.define(`${kind} ${name ?? port ?? ''}`)) }
  if (Buffer.byteLength(JSON.stringify(definition)) <= MAX_GUARD_BYTES) return definition
  throw optionInvalid(`The guard is larger than ${MAX_GUARD_BYTES} bytes: use ranges and patterns.`)
}

function registerRoute({ path, hostHeader, protocol, wishes }: RouteSettings): RegisterRoute {
  return { path, ...(hostHeader && { hostHeader }), ...(protocol && { protocol }), ...(wishes && { wishes }) }
}

/** Whether the server applies a feature of the registration. */
const isGranted = ({ features }: Registration, feature: GrantedFeature): boolean =>
  features?.includes(feature) === true

/** Returns the error that the server sent, whose message says what to do. */
const saidBy = ({ code, message }: { readonly code: ErrorCode; readonly message: string }): TunnelError =>
  new TunnelError(code, message, { action: '' })

const noGuard = (): TunnelError =>
  new TunnelError(
    'FEATURE_UNSUPPORTED',
    'The server does not support guards, so everybody could visit the tunnel.',
  )
