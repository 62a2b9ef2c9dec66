// The record of one request, and its receivers: its client, and the server's listeners.

import { ERRORS, type ErrorCode } from '../../errors.ts'
import { shownTarget } from '../../guard.ts'
import type { RequestHead } from '../../http/head.ts'
import type { Asked, AskedBy, ClientReports } from '../contracts/clients.ts'
import type { CopyEnd } from '../contracts/layer.ts'
import type { Member } from '../tunnels/member.ts'
import type { Tunnel } from '../tunnels/tunnel.ts'
import { type Exchanges, msSince } from './exchanges.ts'
import { isFailure } from './reports.ts'

/** The recorded facts of a request. */
export interface Recorded {
  readonly head: RequestHead
  /** The address of the visitor, also behind trusted proxies. */
  readonly address: string
  /** The time of its beginning on the clock of `performance.now()`. */
  readonly startedAt: number
}

/** The result of a request. */
export interface Result {
  /** The status of the response. 0 if there was none. */
  readonly answerStatus: number
  readonly responseBytes: number
  readonly requestBytes: number
  /** The details of the reason, as `Visit.fail` has them. */
  readonly reason?: string | undefined
}

export class RequestRecord {
  /** A guard refused the request, or a middleware got this from the app's side. */
  code: ErrorCode | undefined
  /** The details of the reason, from a guard or `Visit.fail`, for an exchange that middlewares wrap. */
  reason: string | undefined
  readonly #request: Recorded
  readonly #books: Exchanges
  #isSent = false
  /** The reports of its client, with its number there; 0 if the client wants none. */
  #reports: ClientReports | undefined
  #report = 0

  constructor(request: Recorded, books: Exchanges) {
    this.#request = request
    this.#books = books
    books.begun()
  }

  /** Counts the request for a tunnel. */
  routed(): void {
    this.#books.routed()
  }

  /** Undoes the count: the request goes to another tunnel or server. */
  left(): void {
    this.#books.left()
  }

  /** Records that it was sent to a client. */
  sent(): void {
    this.#isSent = true
  }

  /** The member has it, whose client gets a report. */
  servedBy({ client, tunnel }: Member): void {
    this.#reports = client?.reports
    this.#report = this.#begunAt(this.#reports, tunnel)
  }

  /** Ends it for the member that failed: another one gets it. */
  failedAt(tunnel: Tunnel, code: ErrorCode): void {
    const durationMs = msSince(this.#request.startedAt)
    this.#reports?.finished(tunnel, this.#report, ERRORS[code].status, durationMs, 0, code)
  }

  /** The member has a copy of it. */
  copied({ client, tunnel }: Member): CopyEnd {
    const reports = client?.reports
    const report = this.#begunAt(reports, tunnel)
    return (status, responseBytes, code) => {
      const durationMs = msSince(this.#request.startedAt)
      reports?.finished(tunnel, report, status || statusOf(code), durationMs, responseBytes, code)
    }
  }

  /** Records that it became a WebSocket. */
  switched(tunnel: Tunnel): void {
    this.#reports?.switched(tunnel, this.#report)
  }

  // ── It is over ─────────────────────────────────────────────────────────────────────────────────────────────

  /** Reports to its client and the server's listeners. */
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

  /** A client of the tunnel learns of what it never gets: with a pool the one that joined first. */
  #reportRefusal(tunnel: Tunnel): void {
    const member = tunnel.members.find(({ client }) => client?.reports.isWatching === true)
    if (member === undefined) return
    this.#reports = member.client?.reports
    this.#report = this.#begunAt(this.#reports, tunnel)
  }

  #begunAt(reports: ClientReports | undefined, tunnel: Tunnel): number {
    return reports?.begun(tunnel, this.#asked, this.#askedBy(reports)) ?? 0
  }

  get #asked(): Asked {
    const { host, method, target } = this.#request.head
    return { host, method, target: shownTarget(target) }
  }

  /** Returns how the request came. `undefined` if the client does not watch. */
  #askedBy(reports: ClientReports): AskedBy | undefined {
    if (!reports.isWatching) return undefined
    return { address: this.#request.address, waitedMs: msSince(this.#request.startedAt) }
  }
}

/** Returns the status for a visitor whose request fails before there was a response; 0: none. */
export function statusOf(code: ErrorCode | undefined): number {
  return code === undefined || code === 'CANCELLED' ? 0 : ERRORS[code].status
}
