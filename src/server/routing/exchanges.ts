// The accounting of HTTP exchanges: counts them, and reports each one to its client and to the server's listeners.

import type { ExchangeCounts } from '../../accelerator.ts'
import { ERRORS, type ErrorCode } from '../../errors.ts'
import { shownTarget } from '../../guard.ts'
import type { RequestHead } from '../../http/head.ts'
import type { ServerContext } from '../context/server-context.ts'
import type { Asked, ClientReports } from '../contracts/clients.ts'
import type { Result } from '../contracts/front.ts'
import type { CopyEnd } from '../contracts/layer.ts'
import type { TunnelServerEvents } from '../settings/options.ts'
import type { Member } from '../tunnels/member.ts'
import type { Tunnel } from '../tunnels/tunnel.ts'
import { isFailure, Reports } from './reports.ts'

type RequestEvent = TunnelServerEvents['request']
type Outcome = Pick<RequestEvent, 'status' | 'durationMs' | 'bytes'>

export class Exchanges {
  readonly #context: ServerContext
  readonly #reports: Reports
  /** Whether the server has listeners for requests. */
  isHeard = false
  /** The number of requests in progress, including those to the control host, without those in lanes. */
  #count = 0

  constructor(context: ServerContext) {
    this.#context = context
    this.#reports = new Reports(
      context.deadlines,
      () => context.settings.reportRate,
      ({ requests, errors, bytes }) => context.emit('requests', { requests, errors, bytes }),
    )
    context.deadlines.watch(this.#reports)
  }

  /** Sends the remaining reports, because the server stops. */
  flush(): void {
    this.#reports.flush()
  }

  get isIdle(): boolean {
    return this.#count === 0 && this.#context.tunnels.lanes.count === 0
  }

  /** The number of requests per second that the server's listeners want reported one by one. */
  get reportRate(): number {
    return this.isHeard ? this.#reports.rate || Number.POSITIVE_INFINITY : 0
  }

  /** Counts a request, before its destination is known. */
  begun(): void {
    this.#count++
  }

  /** Counts a request to a tunnel. */
  routed(): void {
    const { counters } = this.#context
    counters.requests++
    counters.pending++
  }

  /** Undoes the count of a request that leaves for another server or tunnel. */
  left(): void {
    this.#context.counters.pending--
  }

  /** Counts the end of a request. `tunnel` is its destination, if it had one. */
  ended(tunnel: Tunnel | undefined, bytesIn: number, bytesOut: number): void {
    const { counters } = this.#context
    this.#count--
    counters.bytesIn += bytesIn
    counters.bytesOut += bytesOut
    if (tunnel !== undefined) counters.pending--
  }

  /** Counts one request in progress less, after its events were emitted. */
  fewer(): void {
    this.#context.somethingEnded()
  }

  /** Counts exchanges that ended without a report of their own. */
  counted(counts: ExchangeCounts): void {
    if (this.isHeard) this.#reports.counted(counts)
  }

  /** Whether the server's listeners get a report of the request that has ended. If not, call `count`. */
  takeReport(): boolean {
    return this.#reports.take()
  }

  /** Counts a request that ended without a report of its own. */
  count(hasFailed: boolean, bytes: number): void {
    this.#reports.ended(hasFailed, bytes)
  }

  report(tunnel: Tunnel, asked: Asked, outcome: Outcome, error?: ErrorCode, reason?: string): void {
    const { host, method, target } = asked
    this.#context.emit('request', {
      subdomain: tunnel.name,
      ...(tunnel.isWildcard && { host }),
      method,
      path: target,
      ...outcome,
      ...(error !== undefined && { error }),
      ...(reason !== undefined && { reason }),
    })
  }
}

/** Returns the milliseconds since `startedAt`, rounded to hundredths. */
export function msSince(startedAt: number): number {
  return toHundredth(performance.now() - startedAt)
}

export function toHundredth(ms: number): number {
  return Math.round(ms * 100) / 100
}

/** The facts about a request that reports need. */
export interface Recorded {
  readonly head: RequestHead
  /** The address of the visitor, even if trusted proxies are in front of the server. */
  readonly address: string
  /** The time of the beginning, on the clock of `performance.now()`. */
  readonly startedAt: number
}

export class RequestRecord {
  /** The code of a guard's refusal, or the one that a middleware got from the app's side. */
  code: ErrorCode | undefined
  /**
   * The reason in more detail than the code, from the guard, or from `Visit.fail` of an exchange that middlewares
   * wrap.
   */
  reason: string | undefined
  readonly #request: Recorded
  readonly #books: Exchanges
  #isSent = false
  /** The receiver of reports to the client, and the number of the request there; 0 if the client wants none. */
  #reports: ClientReports | undefined
  #report = 0

  constructor(request: Recorded, books: Exchanges) {
    this.#request = request
    this.#books = books
    books.begun()
  }

  /** Called when the request counts for a tunnel. */
  routed(): void {
    this.#books.routed()
  }

  /** Called when the request leaves for another tunnel or server. */
  left(): void {
    this.#books.left()
  }

  /** Called when the request was sent to a client. */
  sent(): void {
    this.#isSent = true
  }

  servedBy({ client, tunnel }: Member): void {
    this.#reports = client?.reports
    this.#report = this.#begunAt(this.#reports, tunnel)
  }

  /** Called when the request failed at one client and goes to another one. */
  failedAt(tunnel: Tunnel, code: ErrorCode): void {
    const durationMs = msSince(this.#request.startedAt)
    this.#reports?.finished(tunnel, this.#report, ERRORS[code].status, durationMs, 0, code)
  }

  copied({ client, tunnel }: Member): CopyEnd {
    const reports = client?.reports
    const report = this.#begunAt(reports, tunnel)
    return (status, responseBytes, code) => {
      const durationMs = msSince(this.#request.startedAt)
      reports?.finished(tunnel, report, status || statusOf(code), durationMs, responseBytes, code)
    }
  }

  /** Called when the request became a WebSocket. */
  switched(tunnel: Tunnel): void {
    this.#reports?.switched(tunnel, this.#report)
  }

  // ── It is over ─────────────────────────────────────────────────────────────────────────────────────────────

  /** Reports the end of the request to its client and to the server's listeners. */
  report(tunnel: Tunnel | undefined, { requestBytes, responseBytes, reason }: Result, status: number): void {
    const { code } = this
    const books = this.#books
    books.ended(tunnel, requestBytes, responseBytes)
    if (tunnel === undefined) return
    if (!this.#isSent && code !== undefined && code !== 'CANCELLED') this.#reportRefusal(tunnel)
    const { isHeard } = books
    if (this.#report === 0 && !isHeard) return
    const isAlone = isHeard && books.takeReport()
    const durationMs = isAlone || this.#report > 0 ? msSince(this.#request.startedAt) : 0
    this.#reports?.finished(tunnel, this.#report, status, durationMs, responseBytes, code, reason)
    const outcome = { status, durationMs, bytes: responseBytes }
    if (isAlone) books.report(tunnel, this.#asked, outcome, code, reason ?? this.reason)
    else if (isHeard) books.count(isFailure(status, code), responseBytes)
  }

  /** Reports a refused request to a client of the tunnel; in a pool, to the one that joined first. */
  #reportRefusal(tunnel: Tunnel): void {
    const member = tunnel.members.find(({ client }) => client?.reports.isWatching === true)
    if (member === undefined) return
    this.#reports = member.client?.reports
    this.#report = this.#begunAt(this.#reports, tunnel)
  }

  #begunAt(reports: ClientReports | undefined, tunnel: Tunnel): number {
    if (reports?.isWatching !== true) return 0
    const { address, startedAt } = this.#request
    return reports.begun(tunnel, this.#asked, { address, waitedMs: msSince(startedAt) })
  }

  get #asked(): Asked {
    const { host, method, target } = this.#request.head
    return { host, method, target: shownTarget(target) }
  }
}

/** Returns the status that a visitor gets when its request fails before a response; 0 if it gets none. */
export function statusOf(code: ErrorCode | undefined): number {
  return code === undefined || code === 'CANCELLED' ? 0 : ERRORS[code].status
}
