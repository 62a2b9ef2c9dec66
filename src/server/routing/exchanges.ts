// The books of HTTP exchanges: counts them, and reports each one to its client.

import { ERRORS, type ErrorCode } from '../../errors.ts'
import { shownTarget } from '../../guard.ts'
import type { RequestHead } from '../../http/head.ts'
import type { ServerContext } from '../context/server-context.ts'
import type { Asked, ClientReports } from '../contracts/clients.ts'
import type { Result } from '../contracts/front.ts'
import type { CopyEnd } from '../contracts/layer.ts'
import type { Member } from '../tunnels/member.ts'
import type { Tunnel } from '../tunnels/tunnel.ts'

/** The counts of all requests of a server. */
export class Exchanges {
  readonly #context: ServerContext
  /** The number of requests in progress, including those to the control host, without those in lanes. */
  #count = 0

  constructor(context: ServerContext) {
    this.#context = context
  }

  get isIdle(): boolean {
    return this.#count === 0 && this.#context.tunnels.lanes.count === 0
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

  /** Counts the end of a request; `tunnel` is its destination, if it had one. */
  ended(tunnel: Tunnel | undefined, bytesIn: number, bytesOut: number): void {
    const { counters } = this.#context
    this.#count--
    counters.bytesIn += bytesIn
    counters.bytesOut += bytesOut
    if (tunnel !== undefined) counters.pending--
  }
}

/** Returns the milliseconds since `startedAt`, rounded to hundredths. */
export function msSince(startedAt: number): number {
  return toHundredth(performance.now() - startedAt)
}

export function toHundredth(ms: number): number {
  return Math.round(ms * 100) / 100
}

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
  /** The reason in more detail than the code, from the guard, or from `Visit.fail` of an exchange that middlewares wrap. */
  reason: string | undefined
  readonly #request: Recorded
  readonly #books: Exchanges
  #isSent = false
  /** The receiver of reports to the client, and the number of the request in them; 0 if the client wants no reports. */
  #reports: ClientReports | undefined
  #report = 0

  constructor(request: Recorded, books: Exchanges) {
    this.#request = request
    this.#books = books
    books.begun()
  }

  routed(): void {
    this.#books.routed()
  }

  /** Called when the request leaves for another tunnel or server. */
  left(): void {
    this.#books.left()
  }

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

  switched(tunnel: Tunnel): void {
    this.#reports?.switched(tunnel, this.#report)
  }

  /** Counts the end, and reports it to its client. */
  ended(tunnel: Tunnel | undefined, { requestBytes, responseBytes, reason }: Result, status: number): void {
    const { code } = this
    this.#books.ended(tunnel, requestBytes, responseBytes)
    if (tunnel === undefined) return
    if (!this.#isSent && code !== undefined && code !== 'CANCELLED') this.#reportRefusal(tunnel)
    if (this.#report === 0) return
    const durationMs = msSince(this.#request.startedAt)
    this.#reports?.finished(tunnel, this.#report, status, durationMs, responseBytes, code, reason)
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
