// One client on the streams wire: its session, its tunnels, and the reports that it wants.

import { deferred } from '../../deferred.ts'
import { type ErrorCode, errorOf, type TunnelError } from '../../errors.ts'
import { eventLoop } from '../../event-loop.ts'
import type { Carrier, CarrierHandler } from '../../session/carrier.ts'
import { Session } from '../../session/session.ts'
import { Tolerance } from '../../session/tolerance.ts'
import { encodeControl, parseClientMessage } from '../../wire/control.ts'
import type { SessionLanes } from '../contracts/laning.ts'
import { ClientUse } from '../limits/client-use.ts'
import type { QuotaOwner } from '../limits/quotas.ts'
import type { Rule } from '../settings/policy.ts'
import type { Tunnel } from '../tunnels/tunnel.ts'
import type { SessionLinks } from './links.ts'
import { StreamsRegistering } from './streams-registering.ts'
import { StreamsReports } from './streams-reports.ts'
import { type StreamsHost, StreamsTunnels, type TunnelsOwner } from './streams-tunnels.ts'
import { StreamsUpstreams } from './streams-upstreams.ts'

/** The time in milliseconds before a client that brought no link is asked again. It may have been refused one, or have enough. */
const LINK_WISH_MS = 5_000
/**
 * The number of changes of reports, health and guards per second. Each change routes requests again, and an honest
 * client makes few.
 */
const MAX_CHANGES_PER_SECOND = 50
/** The additional changes per second for each tunnel: all tunnels of a client may change at once, and change back. */
const CHANGES_OF_A_TUNNEL = 2

export class StreamsConnection implements TunnelsOwner {
  readonly wire = 'streams'
  readonly remoteAddress: string
  number = 0
  agent = ''
  readonly connectedAtMs: number = Date.now()
  dueTick = 0
  readonly #host: StreamsHost
  #rule: Rule
  /** The connection's share of its owner's quota, such as bytes that wait for the client. */
  readonly use: ClientUse
  readonly reports: StreamsReports
  readonly #session: Session
  readonly #tunnels: StreamsTunnels
  readonly #registering: StreamsRegistering
  readonly #links: SessionLinks
  readonly #lanes: SessionLanes | undefined
  /** The time of the last request for a link that has not arrived. */
  #linkWantedAt = Number.NEGATIVE_INFINITY
  readonly #changes = new Tolerance(MAX_CHANGES_PER_SECOND)

  constructor(carrier: Carrier, remoteAddress: string, host: StreamsHost, rule: Rule) {
    this.#host = host
    this.#rule = rule
    this.remoteAddress = remoteAddress
    this.use = new ClientUse(host.server.quotas.of(rule, remoteAddress))
    const { limits, deadlines } = host.server
    this.#session = new Session(
      carrier,
      {
        opened: () => 'PROTOCOL_ERROR',
        tunnelCount: () => this.#tunnels.size + this.#registering.count,
        control: json => this.#control(json),
        leaving: () => {},
        linkWanted: () => this.#wantLink(),
        closed: (code, error) => this.#closed(code, error),
      },
      {
        role: 'server',
        scheduler: eventLoop,
        turns: host.server.turns,
        maxStreams: limits.maxClientStreams,
        maxCarrierBacklogBytes: limits.maxCarrierBacklogBytes,
        maxStreamWindowBytes: limits.maxStreamWindowBytes,
        maxSessionWindowBytes: limits.maxSessionWindowBytes,
        pingIntervalMs: limits.pingIntervalMs,
        deadAfterMs: limits.deadAfterMs,
        streamBudget: this.use.streamBudget,
        hungAfterMs: limits.hungAfterMs,
      },
    )
    this.#links = host.linkRegistry.open(this.#session, deadlines, limits.maxLinks, {
      hasRoom: () => this.holder.hasRoomFor('links') && host.hasRoomForLink(this.holder),
      opened: () => this.holder.take('links'),
      closed: () => this.holder.give('links'),
    })
    this.reports = new StreamsReports(this.#session, host.server)
    this.#lanes = host.server.tunnels.lanes.forSession(this.#session)
    const upstreams = new StreamsUpstreams(this.#session, host, this.#lanes)
    this.#tunnels = new StreamsTunnels(host, this, upstreams)
    this.#registering = new StreamsRegistering(host, this, this.#tunnels)
    if (limits.maxLinks === 0) this.#lanes?.refused(undefined)
    deadlines.watch(this)
    deadlines.arm(this, limits.registerTimeoutMs)
  }

  get isClosed(): boolean {
    return this.#session.isClosed
  }

  get rule(): Rule {
    return this.#rule
  }

  get holder(): QuotaOwner {
    return this.use.holder
  }

  get linkSecret(): string | undefined {
    return this.#host.server.limits.maxLinks > 0 ? this.#links.secret : undefined
  }

  get roundTripMs(): number {
    return this.#session.roundTripMs
  }

  get creditStalls(): number {
    return this.#session.creditStalls
  }

  get carrierHandler(): CarrierHandler {
    return this.#session.carrierHandler
  }

  /** Called when the client registered nothing in time. */
  expired(): void {
    if (this.#tunnels.size > 0) return
    const { limits, deadlines } = this.#host.server
    // The client did register, and waits for the result.
    if (this.#registering.count > 0) deadlines.arm(this, limits.registerTimeoutMs)
    else this.#session.close('REGISTER_TIMEOUT')
  }

  checkAlive(): Promise<boolean> {
    const { promise, resolve } = deferred<boolean>()
    const cancel = eventLoop.after(this.#host.server.limits.deadAfterMs, () => resolve(false))
    this.#session.ping(() => {
      cancel()
      resolve(true)
    })
    return promise
  }

  drain(code: 'SERVER_DRAINING' | 'SERVER_REPLACED'): void {
    this.#session.leave(code)
  }

  close(code: ErrorCode): void {
    this.reports.flush()
    this.#session.close(code)
  }

  reloaded(): void {
    const rule = this.#rule.in(this.#host.server.settings.policy)
    this.#tunnels.reloaded(rule)
    if (rule === undefined) return this.close(this.#rule.endCode)
    this.#rule = rule
    this.use.passTo(this.#host.server.quotas.of(rule, this.remoteAddress), this.#links.count)
  }

  hostTroubled(tunnel: Tunnel, host: string, error: TunnelError): void {
    this.#tunnels.hostTroubled(tunnel, host, error)
  }

  send(message: Parameters<typeof encodeControl>[0]): void {
    this.#session.sendControl(encodeControl(message))
  }

  #control(json: Uint8Array): void {
    const message = parseClientMessage(json)
    if (message === undefined) return this.#session.close('PROTOCOL_ERROR')
    if (message === 'unknown') return
    switch (message.type) {
      case 'register':
        return this.#registering.register(message)
      case 'health':
        if (this.#tunnels.health(message.tunnel, message.isHealthy)) this.#changed()
        return
      case 'guard':
        return this.#changed() ? this.#tunnels.changeGuard(message) : undefined
      case 'watch':
        if (this.reports.watch(message.on, message.rate ?? 0) && this.#changed())
          this.#tunnels.routesChanged()
        return
      case 'linked':
        if (message.trunk === true)
          return this.#links.linked(message.link, link => this.#lanes?.take(link) === true)
        this.#linkWantedAt = Number.NEGATIVE_INFINITY
        return this.#links.linked(message.link)
      case 'no-trunk':
        return this.#lanes?.refused(message.retryMs)
      case 'link-retired':
        return this.#links.retired(message.link)
      case 'dial':
        return this.#tunnels.dial(message)
      case 'release':
        return this.#tunnels.release(message.tunnel)
    }
  }

  /** Counts a change. Returns `false` if there are more than an honest client makes. */
  #changed(): boolean {
    const isTolerated = this.#changes.allows(eventLoop.now(), 1, CHANGES_OF_A_TUNNEL * this.#tunnels.size)
    if (!isTolerated) this.#session.close('FLOOD')
    return isTolerated
  }

  /** Asks the client for a link for large transfers, unless it was asked a short time ago without result. */
  #wantLink(): void {
    const now = eventLoop.now()
    if (this.#host.server.limits.maxLinks === 0 || now - this.#linkWantedAt < LINK_WISH_MS) return
    this.#linkWantedAt = now
    this.send({ type: 'link-wanted' })
  }

  broke(cause: unknown): void {
    this.#host.server.failed(errorOf(cause))
    this.close('INTERNAL')
  }

  #closed(code: ErrorCode, error: Error | undefined): void {
    if (code === 'INTERNAL' && error !== undefined) this.#host.server.failed(error)
    this.#host.server.deadlines.forget(this)
    this.reports.close()
    this.#registering.close()
    this.#tunnels.close(code)
    this.#links.close()
    this.#host.gone(this)
  }
}
