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
  /** Requests in progress, including those to the control host, without those in lanes. */
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

  /** Undoes the count of a request that does not go to a tunnel after all. */
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

  /** Counts one open request less, after its events were emitted. */
  fewer(): void {
    this.#context.somethingEnded()
  }
}

/** Returns the milliseconds until now, to the hundredth. */
export function msSince(startedAt: number): number {
  return toHundredth(performance.now() - startedAt)
}

export function toHundredth(ms: number): number {
  return Math.round(ms * 100) / 100
}

export interface Recorded {
  readonly head: RequestHead
  /** The address of the visitor, also behind trusted proxies. */
  readonly address: string
  /** On the clock of `performance.now()`. */
  readonly startedAt: number
}

export class RequestRecord {
  /** A guard refused the request, or a middleware got this from the app's side. */
  code: ErrorCode | undefined
  /** The reason in detail, from the guard, or from `Visit.fail` of an exchange that middlewares wrap. */
  reason: string | undefined
  readonly #request: Recorded
  readonly #books: Exchanges
  #isSent = false
  /** Where its client gets reports of it, and its number there; 0: the client wants none. */
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

  /** The request goes to another tunnel or server after all. */
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

  /** At the member that had it, it is over: another one gets it. */
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

  /** Reports a request that no client gets to a client of the tunnel; in a pool, to the one that joined first. */
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

/** Returns the status that a visitor gets when its request fails before there was a response; 0: nothing. */
export function statusOf(code: ErrorCode | undefined): number {
  return code === undefined || code === 'CANCELLED' ? 0 : ERRORS[code].status
}
