// Lanes as a part of a server: grants them on the terms of all parts, and reports what they serve.

import type { Lane, LaneEnd, LaneExchange, LaneTerms } from '../../accelerator.ts'
import type { Clock, Deadline } from '../../server/contracts/clock.ts'
import type {
  LaneOffer,
  LaneSite,
  Laning,
  SessionLanes,
  VisitorShortcut,
} from '../../server/contracts/laning.ts'
import type { LayeredTunnel } from '../../server/contracts/layer.ts'
import type { Install, PartServer } from '../../server/contracts/part.ts'
import type { Session } from '../../session/session.ts'
import { Lanes, type LaneTicket } from './lanes.ts'
import { SessionTrunk } from './session-trunk.ts'
import { VisitorLane } from './visitor-lane.ts'

/** The delay in milliseconds until lanes are asked again what they served: see `SOON_MS` of `reports.ts`. */
const HARVEST_MS = 1

/** The permission to begin a lane. */
export interface LaneGrant<Request>
  extends LaneTicket,
    Pick<LaneTerms, 'isReported' | 'isMeasured' | 'isForGets' | 'allotted' | 'log'>,
    Pick<LaneOffer<Request>, 'resume'> {
  began(lane: Lane): void
  /** Called for each exchange, if `isReported`. */
  exchanged(exchange: LaneExchange): void
  /** Called with log lines of its exchanges, or of others with the same log, if there is a `log`. */
  logged(lines: Uint8Array, count: number): void
  ended(lane: Lane, end: LaneEnd): void
}

interface LanesServer extends Pick<PartServer, 'deadlines'> {
  readonly parts: Pick<PartServer['parts'], 'harvest'>
}

export const installLanes: Install = server => {
  server.tunnels.lanes = new ServerLanes(server)
  return { name: 'lanes' }
}

export class ServerLanes extends Lanes<LayeredTunnel> implements Laning, Deadline {
  dueTick = 0
  readonly #deadlines: Clock
  readonly #parts: LanesServer['parts']

  constructor({ deadlines, parts }: LanesServer) {
    super()
    this.#deadlines = deadlines
    this.#parts = parts
    deadlines.watch(this)
  }

  /** Reports what lanes have served since the last call, and allows them more single reports. */
  expired(): void {
    this.harvest()
    this.#parts.harvest()
    this.allowReports()
    if (this.count > 0) this.#deadlines.arm(this, HARVEST_MS)
  }

  forVisitor<Request>(site: LaneSite<Request>): VisitorShortcut<Request> {
    const grant = () => {
      const offer = site.offer()
      return offer && this.#granted(offer)
    }
    return new VisitorLane({ ...site, grant })
  }

  forSession(session: Session): SessionLanes {
    return new SessionTrunk(session)
  }

  #granted<Request>(offer: LaneOffer<Request>): LaneGrant<Request> {
    const { tunnel, clauses } = offer
    const terms = clauses.flatMap(clause => clause.terms ?? [])
    const isMeasured = terms.some(one => one.isMeasured)
    const reportRate = () => Math.max(...clauses.map(clause => clause.reportRate?.() ?? 0))
    const ticket = this.grant(tunnel, {
      reportRate,
      counted(counts) {
        for (const clause of clauses) clause.tally?.(counts)
      },
      ended(counts) {
        for (const clause of clauses) clause.ended?.(counts)
      },
      measured: isMeasured
        ? (measures, bytesIn, bytesOut) => {
            for (const clause of clauses) clause.measured?.(measures, bytesIn, bytesOut)
          }
        : undefined,
    })
    return {
      ...ticket,
      resume: (arrival, upstream) => offer.resume(arrival, upstream),
      began: lane => {
        ticket.began(lane)
        for (const clause of clauses) clause.began?.()
        if (this.dueTick === 0) this.#deadlines.arm(this, HARVEST_MS)
      },
      log: terms.find(one => one.log)?.log,
      logged(lines, count) {
        for (const clause of clauses) clause.logged?.(lines, count)
      },
      allotted: terms.flatMap(({ allotted = [] }) => allotted),
      isMeasured,
      isForGets: terms.some(one => one.isForGets),
      isReported: terms.some(one => one.isReported) || reportRate() === Number.POSITIVE_INFINITY,
      exchanged(exchange) {
        for (const clause of clauses) clause.exchanged?.(exchange)
      },
    }
  }
}
