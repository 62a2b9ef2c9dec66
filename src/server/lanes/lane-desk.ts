// Which visitors may have a lane, and what lanes serve, in the server's books.

import type { Lane, LaneEnd, LaneExchange, LaneTerms } from '../../accelerator.ts'
import type { RequestHead } from '../../http/head.ts'
import { Booking, type BookingHost } from '../booking.ts'
import type { ClientReports } from '../clients.ts'
import type { LaneClause } from '../contracts/part.ts'
import type { Deadline } from '../deadlines.ts'
import { toHundredth } from '../exchanges.ts'
import type { Arrival } from '../front.ts'
import type { Member } from '../member.ts'
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
    this.#room.parts.harvest()
    for (const tunnel of tunnels.lanes.tunnels) this.#allowReports(tunnel)
    if (tunnels.lanes.count > 0) deadlines.arm(this, HARVEST_MS)
  }

  /**
   * For a lane from the visitor of this request, with a connection from `address`, to the tunnel that it is for; `undefined`:
   * there is to be none.
   */
  grant(head: RequestHead, address: string): LaneGrant | undefined {
    const room = this.#room
    // What a lane answers does not say that it is the last.
    if (!room.isRunning) return undefined
    const destination = room.destinationOf(head.host)
    const tunnel = destination.kind === 'tunnel' ? room.tunnels.find(destination.name) : undefined
    // A client that is behind has to get its reports, and requests on the main thread wait for it.
    if (tunnel === undefined || tunnel.members[0]?.client?.reports.isBehind) return undefined
    const served = tunnel.members[0]?.served ?? {}
    const isProxy = room.isTrusted(address)
    const clauses = room.parts.clausesFor({ tunnel, head, address, isProxy, served })
    return clauses && this.#granted(tunnel, head.host, clauses)
  }

  #granted(tunnel: Tunnel, host: string, clauses: readonly LaneClause[]): LaneGrant {
    const { deadlines } = this.#room
    // There are no lanes to the clients of a pool.
    const member = tunnel.members[0]
    const reports = member?.client?.reports
    const terms = clauses.flatMap(clause => clause.terms ?? [])
    const isMeasured = terms.some(one => one.isMeasured)
    this.#allowReports(tunnel)
    const ticket = this.#ticketOf(tunnel, member, clauses, isMeasured)
    return {
      ...ticket,
      began: lane => {
        member?.began()
        ticket.began(lane)
        for (const clause of clauses) clause.began?.()
        if (this.dueTick === 0) deadlines.arm(this, HARVEST_MS)
      },
      ended: (lane, end) => {
        ticket.ended(lane, end)
        for (const clause of clauses) clause.ended?.()
      },
      log: terms.find(one => one.log)?.log,
      logged: (lines, count) => {
        for (const clause of clauses) clause.logged?.(lines, count)
      },
      allotted: terms.flatMap(({ allotted = [] }) => allotted),
      isMeasured,
      isForGets: terms.some(one => one.isForGets),
      isReported: terms.some(one => one.isReported) || this.#rateFor(reports) === Number.POSITIVE_INFINITY,
      exchanged: exchange => {
        for (const clause of clauses) clause.exchanged?.(exchange)
        this.#report(tunnel, host, exchange, reports)
      },
      resumedByMain: (arrival, upstream) => {
        const booking = new Booking(arrival, this.#host)
        booking.resumeAt(member, tunnel, upstream)
        return booking
      },
    }
  }

  #ticketOf(
    tunnel: Tunnel,
    member: Member | undefined,
    clauses: readonly LaneClause[],
    isMeasured: boolean,
  ): LaneTicket {
    const { counters, tunnels } = this.#room
    const { books } = this.#host
    const reports = member?.client?.reports
    return tunnels.lanes.grant(
      tunnel,
      counts => {
        reports?.counted(counts)
        books.counted(counts)
        for (const clause of clauses) clause.tally?.(counts)
      },
      ({ requests, bytesIn, bytesOut }) => {
        counters.requests += requests
        counters.bytesIn += bytesIn
        counters.bytesOut += bytesOut
        member?.finished()
        books.fewer()
      },
      isMeasured
        ? (measures, bytesIn, bytesOut) => {
            for (const clause of clauses) clause.measured?.(measures, bytesIn, bytesOut)
          }
        : undefined,
    )
  }

  /** For its client and the server's listeners. */
  #report(
    tunnel: Tunnel,
    host: string,
    { method, target, status, durationMs, bytes }: LaneExchange,
    reports: ClientReports | undefined,
  ): void {
    const { books } = this.#host
    const asked = { host, method, target }
    const report = reports?.begun(tunnel, asked) ?? 0
    const outcome = { status, durationMs: toHundredth(durationMs), bytes }
    reports?.finished(tunnel, report, status, outcome.durationMs, bytes)
    if (books.isHeard) {
      if (books.takeReport()) books.report(tunnel, asked, outcome)
      else books.count(status >= 500, bytes)
    }
    if (reports?.isBehind) tunnel.routesChanged()
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
