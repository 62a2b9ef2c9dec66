// Which visitors may have a lane, and what lanes serve, in the server's books.

import type { ExchangeCounts, Lane, LaneEnd, LaneExchange, LaneTerms } from '../../accelerator.ts'
import type { RequestHead } from '../../http/head.ts'
import type { Allotment } from '../../plugin.ts'
import { Booking, type BookingHost } from '../booking.ts'
import type { ClientReports } from '../clients.ts'
import type { Deadline } from '../deadlines.ts'
import { toHundredth } from '../exchanges.ts'
import type { Arrival } from '../front.ts'
import { pluginsFor } from '../plugins-for.ts'
import type { ServerRoom } from '../room.ts'
import type { Tunnel } from '../tunnel.ts'
import type { Upstream } from '../upstream.ts'
import type { LaneTicket } from './lanes.ts'

/** How soon lanes are asked again for what they served: see `SOON_MS` of `reports.ts`. */
const HARVEST_MS = 1

/** A lane may begin. */
export interface LaneGrant
  extends LaneTicket,
    Pick<LaneTerms, 'isReported' | 'isMeasured' | 'isForGets' | 'allotted' | 'log'> {
  /** It did. */
  began(lane: Lane): void
  /** It served one; only if `isReported`. */
  exchanged(exchange: LaneExchange): void
  /** Lines of its exchanges, or of others of the same log; only with a `log`. */
  logged(lines: Uint8Array, count: number): void
  ended(lane: Lane, end: LaneEnd): void
  /** It left the visitor's exchange to the main thread, in the middle: a booking as of any other. */
  resumedByMain(arrival: Arrival, upstream: Upstream): Booking
}

export class LaneDesk implements Deadline {
  dueTick = 0
  readonly #room: ServerRoom
  /** Those that lanes take from, and how many lanes. */
  readonly #allotments = new Map<Allotment, number>()
  readonly #host: BookingHost

  constructor(room: ServerRoom, host: BookingHost) {
    this.#room = room
    this.#host = host
    room.deadlines.watch(this)
  }

  /** Passes on what lanes have served since the last time, and lets them report more one by one. */
  expired(): void {
    const { deadlines, tunnels } = this.#room
    tunnels.lanes.harvest()
    for (const allotment of this.#allotments.keys()) this.#guarded(() => allotment.renew())
    for (const tunnel of tunnels.lanes.tunnels) this.#allowReports(tunnel)
    if (tunnels.lanes.count > 0) deadlines.arm(this, HARVEST_MS)
  }

  /**
   * For a lane from the visitor of this request, with a connection from `address`, to the tunnel that it is for; `undefined`:
   * there is to be none.
   */
  grant(head: RequestHead, address: string): LaneGrant | undefined {
    const { host } = head
    const room = this.#room
    // What a lane answers does not say that it is the last.
    if (!room.isRunning) return undefined
    const destination = room.destinationOf(host)
    const tunnel = destination.kind === 'tunnel' ? room.tunnels.find(destination.name) : undefined
    // There are no lanes to the clients of a pool.
    const member = tunnel?.members[0]
    const reports = member?.client?.reports
    // A client that is behind has to get its reports, and requests on the main thread wait for it.
    if (tunnel === undefined || reports?.isBehind) return undefined
    const isProxy = room.isTrusted(address)
    const allotments = tunnel.isGuarded && !isProxy ? this.#allot(tunnel, address, head) : []
    // Guards are asked about each request, unless they have said how many pass.
    if (allotments === undefined || (tunnel.isGuarded && isProxy)) return undefined
    if (room.bans?.hasAddresses && (isProxy || room.isBanned(address))) return undefined
    if (pluginsFor(room.settings.middlewares, tunnel.name).length > 0) return undefined
    const pressure = room.pressures.of(tunnel)
    if (room.shaping.isFor(tunnel)) return undefined
    if (pressure?.slots !== undefined || pressure?.breaker?.isClosed === false) return undefined
    const { books, observers } = this.#host
    const isObserved = observers.areFor(tunnel.name)
    const lined = observers.linesOf(tunnel.name)
    const isCalled = isObserved && lined === undefined
    // Each request of a proxy's connection may be another visitor's: only the main thread reads who it says.
    if (isObserved && (isProxy || observers.trace(tunnel.name))) return undefined
    // Lanes know nothing of the time that a request took.
    if (room.settings.hasServerTiming) return undefined
    const { counters, deadlines, tunnels } = room
    const counted = (counts: ExchangeCounts) => {
      reports?.counted(counts)
      books.counted(counts)
      pressure?.breaker?.counted(counts.requests, counts.errors)
    }
    this.#allowReports(tunnel)
    const served = member?.served
    const { metrics } = room
    const ticket = tunnels.lanes.grant(
      tunnel,
      counted,
      ({ requests, bytesIn, bytesOut }) => {
        counters.requests += requests
        counters.bytesIn += bytesIn
        counters.bytesOut += bytesOut
        member?.finished()
        books.fewer()
      },
      metrics &&
        ((measures, bytesIn, bytesOut) => {
          metrics.measured(tunnel.name, 'GET', measures)
          metrics.moved(tunnel.name, bytesIn, bytesOut)
        }),
    )
    return {
      ...ticket,
      began: lane => {
        member?.began()
        ticket.began(lane)
        for (const allotment of allotments) {
          this.#guarded(() => allotment.began())
          this.#allotments.set(allotment, (this.#allotments.get(allotment) ?? 0) + 1)
        }
        if (this.dueTick === 0) deadlines.arm(this, HARVEST_MS)
      },
      ended: (lane, end) => {
        ticket.ended(lane, end)
        for (const allotment of allotments) this.#endAllotment(allotment)
      },
      log: lined && {
        number: lined.log,
        ids: observers.ids,
        ...lined.observer.accessLines.of(
          { kind: 'http', tunnel: tunnel.name, address, method: 'GET', host },
          served ?? {},
        ),
      },
      logged: (lines, count) => {
        if (lined !== undefined)
          observers.tell([lined.observer], () => lined.observer.accessLines.write(lines, count))
      },
      allotted: allotments.map(({ left }) => left),
      isMeasured: metrics !== undefined,
      // Measures are by method, so are lines of the log, and guards have said what they let pass of plain GETs alone.
      isForGets: metrics !== undefined || lined !== undefined || tunnel.isGuarded,
      isReported: isCalled || this.#rateFor(reports) === Number.POSITIVE_INFINITY,
      exchanged: ({ requestId, method, target, status, durationMs, requestBytes, bytes }) => {
        const asked = { host, method, target }
        if (isCalled) {
          const id = observers.nextId()
          const seen = {
            id,
            kind: 'http',
            tunnel: tunnel.name,
            address,
            ...asked,
          } as const
          const ms = toHundredth(durationMs)
          observers.served(requestId === '' ? seen : { ...seen, requestId }, {
            ...served,
            status,
            durationMs: ms,
            waitMs: 0,
            appMs: ms,
            requestBytes,
            answerBytes: bytes,
          })
        }
        pressure?.breaker?.counted(1, status >= 500 ? 1 : 0)
        const report = reports?.begun(tunnel, asked) ?? 0
        const outcome = { status, durationMs: toHundredth(durationMs), bytes }
        reports?.finished(tunnel, report, status, outcome.durationMs, bytes)
        if (books.isHeard) {
          if (books.takeReport()) books.report(tunnel, asked, outcome)
          else books.count(status >= 500, bytes)
        }
        if (reports?.isBehind) tunnel.routesChanged()
      },
      resumedByMain: (arrival, upstream) => {
        const booking = new Booking(arrival, this.#host)
        booking.resumeAt(member, tunnel, upstream)
        return booking
      },
    }
  }

  #allot(tunnel: Tunnel, address: string, head: RequestHead): readonly Allotment[] | undefined {
    const { kind, name, owner, guard, wall } = tunnel
    const { isSecure } = this.#room
    const admittance = { kind, tunnel: name, owner, address, isSecure, head }
    return this.#room.tunnels.guards.allot(guard, admittance, wall)
  }

  /** A guard is a stranger's code: what it throws ends no lane. */
  #guarded(task: () => void): void {
    try {
      task()
    } catch (cause) {
      this.#room.tunnels.guards.fail(cause)
    }
  }

  #endAllotment(allotment: Allotment): void {
    this.#guarded(() => allotment.ended())
    const count = (this.#allotments.get(allotment) ?? 1) - 1
    if (count === 0) this.#allotments.delete(allotment)
    else this.#allotments.set(allotment, count)
  }

  /** How many exchanges of a second the client or a listener of the server wants reported one by one. */
  #rateFor(reports: ClientReports | undefined): number {
    const ofClient = reports?.isWatching === true ? reports.reportRate || Number.POSITIVE_INFINITY : 0
    return Math.max(ofClient, this.#host.books.reportRate)
  }

  /** `Reports` keeps to the rate; this only bounds what lanes report in vain. */
  #allowReports(tunnel: Tunnel): void {
    const rate = this.#rateFor(tunnel.members[0]?.client?.reports)
    this.#room.tunnels.lanes.allowReports(tunnel, Number.isFinite(rate) ? rate : 0)
  }
}
