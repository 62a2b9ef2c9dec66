// The books of HTTP exchanges: counts them, and tells the server's listeners and the client, whoever served them.

import { ERRORS, type ErrorCode } from '../errors.ts'
import type { Asked } from './clients.ts'
import type { LaneGrant, VisitRecord } from './front.ts'
import type { TunnelServerEvents } from './options.ts'
import { msSince, toHundredth } from './serving.ts'
import type { Counters } from './stats.ts'
import type { Tunnel, Tunnels } from './tunnels.ts'
import type { VisitorConnection } from './visitor.ts'

type RequestEvent = TunnelServerEvents['request']
type Outcome = Pick<RequestEvent, 'status' | 'durationMs' | 'bytes'>

/** Of which tunnel, and to which client under which number. */
type Told = Pick<VisitRecord, 'client' | 'report'> & { readonly tunnel: Tunnel }

/** What the books need of their server. */
export interface ExchangesOwner {
  readonly counters: Counters
  readonly tunnels: Tunnels
  /** Whether anybody wants to hear of each. */
  isHeard(): boolean
  over(event: RequestEvent): void
  /** One fewer is under way, perhaps none. */
  fewer(): void
}

export class Exchanges {
  readonly #owner: ExchangesOwner
  /** Under way, those with the control host included, those in lanes not. */
  #count = 0

  constructor(owner: ExchangesOwner) {
    this.#owner = owner
  }

  get isIdle(): boolean {
    return this.#count === 0 && this.#owner.tunnels.lanes.count === 0
  }

  /** Before it is known where it goes. */
  begun({ record }: VisitorConnection): void {
    this.#count++
    record.startedAt = performance.now()
  }

  /** It goes to a tunnel. */
  routed(record: VisitRecord, tunnel: Tunnel): void {
    record.tunnel = tunnel
    this.#owner.counters.requests++
    this.#owner.counters.pending++
  }

  switched({ record: { tunnel, client, report } }: VisitorConnection): void {
    if (tunnel !== undefined) client?.switched(tunnel, report)
  }

  finished(visitor: VisitorConnection, code: ErrorCode | undefined): void {
    const { counters } = this.#owner
    const { record, head, answerBytes } = visitor
    this.#count--
    counters.bytesIn += visitor.requestBytes
    counters.bytesOut += answerBytes
    const { tunnel, member, client, report } = record
    if (tunnel !== undefined) counters.pending--
    if (record.isBelow) noteHost(visitor, code)
    record.tunnel = undefined
    record.member = undefined
    record.tried = undefined
    record.client = undefined
    record.report = 0
    if (tunnel !== undefined && (report !== 0 || this.#owner.isHeard())) {
      const status = visitor.answerStatus || statusOf(code)
      const outcome = { status, durationMs: msSince(record.startedAt), bytes: answerBytes }
      this.#tell({ tunnel, client, report }, head, outcome, code)
    }
    member?.finished()
    this.#owner.fewer()
  }

  /** For a lane from the visitor to the tunnel it asked last; `undefined`: there is to be none. */
  laneGrant(visitor: VisitorConnection, tunnel: Tunnel): LaneGrant | undefined {
    const { counters, tunnels } = this.#owner
    // There are no lanes to the clients of a pool.
    const [member] = tunnel.members
    const client = member?.client
    // It has to hear of the requests, and the way through the program waits for it.
    if (client?.isBehind) return undefined
    const { host } = visitor.head
    const grant = tunnels.lanes.grant(tunnel, ({ requests, bytesIn, bytesOut }) => {
      counters.requests += requests
      counters.bytesIn += bytesIn
      counters.bytesOut += bytesOut
      member?.finished()
      this.#owner.fewer()
    })
    return {
      ...grant,
      began: lane => {
        member?.began()
        grant.began(lane)
      },
      isTold: client?.isWatching === true || this.#owner.isHeard(),
      exchanged: ({ target, status, durationMs, bytes }) => {
        const asked = { host, method: 'GET', target }
        const report = client?.begun(tunnel, asked) ?? 0
        const outcome = { status, durationMs: toHundredth(durationMs), bytes }
        this.#tell({ tunnel, client, report }, asked, outcome)
        if (client?.isBehind) tunnel.recallLanes()
      },
      goesOn: ({ record, head }) => {
        this.routed(record, tunnel)
        member?.began()
        record.member = member
        record.client = client
        record.report = client?.begun(tunnel, head) ?? 0
      },
    }
  }

  /** It is over: the client is told, and whoever listens. */
  #tell({ tunnel, client, report }: Told, asked: Asked, outcome: Outcome, error?: ErrorCode): void {
    const { status, durationMs, bytes } = outcome
    client?.finished(tunnel, report, status, durationMs, bytes, error)
    if (!this.#owner.isHeard()) return
    const { host, method, target } = asked
    this.#owner.over({
      subdomain: tunnel.name,
      ...(tunnel.isWildcard && { host }),
      method,
      path: target,
      ...outcome,
      ...(error !== undefined && { error }),
    })
  }
}

/** What a visitor is answered when its exchange fails before there was an answer. */
function statusOf(code: ErrorCode | undefined): number {
  return code === undefined || code === 'CANCELLED' ? 0 : ERRORS[code].status
}

/** A host for which the app has an answer may have a certificate. */
function noteHost({ record, head, answerStatus }: VisitorConnection, code: ErrorCode | undefined): void {
  record.isBelow = false
  const isAnswered = code === undefined && answerStatus >= 100 && answerStatus < 400
  if (isAnswered) record.tunnel?.hostsBelow.answered(head.host)
}
