// One request at the server: its destination, and the client that serves it. The base class applies layers; the
// record for reports is an object of its own.

import type { Branding } from '../../branding.ts'
import type { Account } from '../../bytes.ts'
import type { ErrorCode } from '../../errors.ts'
import type { RequestHead } from '../../http/head.ts'
import type { AskedCertificate, Reading, Refusal } from '../../plugin.ts'
import type { ServerContext } from '../context/server-context.ts'
import {
  type AcceptedRequest,
  type Arrival,
  changed,
  type Holding,
  type RequestRouter,
  type Result,
  type Route,
  refusal,
  type Served,
} from '../contracts/front.ts'
import type { CopyEnd, TunnelRequest } from '../contracts/layer.ts'
import type { Upstream } from '../contracts/upstream.ts'
import type { ConnectionLogins } from '../limits/connection-logins.ts'
import type { Member } from '../tunnels/member.ts'
import { memberCookie } from '../tunnels/pool.ts'
import type { Chosen, Tunnel } from '../tunnels/tunnel.ts'
import { AnswerUpstream } from '../upstreams/answer.ts'
import { type Exchanges, RequestRecord, statusOf } from './exchanges.ts'
import type { Visitor } from './judging.ts'
import { LayeredRequest } from './layered-request.ts'

export interface VisitorRouter extends RequestRouter {
  /** The operator's name, contact and logo, for pages. */
  readonly branding: Branding | undefined
  accept(arrival: Arrival): RoutedRequest
  /** Called when continuing a request after a wait threw: its visitor gets 500 `INTERNAL`. */
  failed(cause: unknown): void
}

/** The operations of the server that a request needs. */
export interface RequestHost extends VisitorRouter {
  readonly books: Exchanges
  readonly context: Pick<
    ServerContext,
    'parts' | 'isHeard' | 'somethingEnded' | 'isSecure' | 'isTrusted' | 'addressOf'
  >
  /** Routes a request. An error becomes an `error` event and a refusal. */
  routeSafely(route: () => Route): Route
  /** Routes a request again, because its tunnel moved to another server while the request waited. */
  routeAgain(request: RoutedRequest): Route
}

const NOT_FOUND = refusal('TUNNEL_NOT_FOUND')
const INVALID: Refusal = { code: 'INTERNAL' }
const MOVED: Refusal = { code: 'CLUSTER_MOVED' }

export class RoutedRequest extends LayeredRequest implements AcceptedRequest, Visitor, TunnelRequest {
  /** The first destination of the request. Only `RequestHost` sets it. */
  route: Route = NOT_FOUND
  readonly arrival: Arrival
  readonly startedAt: number = performance.now()
  readonly #host: RequestHost
  readonly #record: RequestRecord
  #tunnel: Tunnel | undefined
  /** Whether the host is below the tunnel's own name. */
  #isBelow = false
  /** The client to which a lane has sent the request already. */
  #resumed: { readonly member: Member | undefined; readonly upstream: Upstream } | undefined
  #member: Member | undefined
  /** The member whose response the visitor gets, if all members got a copy. */
  #answerer: Member | undefined
  /** The members at which the request failed. */
  #tried: Set<Member> | undefined

  constructor(arrival: Arrival, host: RequestHost) {
    super()
    this.arrival = arrival
    this.#host = host
    this.#record = new RequestRecord(this, host.books)
  }

  // ── Visitor ────────────────────────────────────────────────────────────────────────────────────────────────

  get address(): string {
    return this.#host.context.addressOf(this.arrival)
  }

  get head(): RequestHead {
    return this.arrival.head
  }

  get asked(): AskedCertificate | undefined {
    return this.arrival.asked
  }

  get logins(): ConnectionLogins | undefined {
    return this.arrival.logins
  }

  get isSecure(): boolean {
    const { context } = this.#host
    const { head, remoteAddress } = this.arrival
    if (context.isSecure || !context.isTrusted(remoteAddress)) return context.isSecure
    return head.header('x-forwarded-proto')?.toLowerCase() === 'https'
  }

  // ── For the server ─────────────────────────────────────────────────────────────────────────────────────────

  /** Starts counting the request for its tunnel, and returns its destination. */
  to(tunnel: Tunnel, isBelow: boolean): Route {
    this.#isBelow = isBelow
    // The server that sent this copy has asked the guards.
    this.isAdmitted = this.arrival.from?.isCopy === true
    return this.#pass(tunnel)
  }

  #pass(tunnel: Tunnel): Route {
    this.#enter(tunnel)
    const route = this.#host.context.parts.routerFor(tunnel)(this)
    if (route.kind === 'upstream' || route.kind === 'refusal') return route
    return changed(route, one => (one.kind === 'again' ? this.#again() : one))
  }

  #again(): Route {
    this.#leave()
    return this.#host.routeSafely(() => this.#host.routeAgain(this))
  }

  answer(answer: Refusal | Reading, failed?: (cause: unknown) => Refusal): Route {
    // The app never sees the host of this request.
    this.#isBelow = false
    const upstream = new AnswerUpstream(answer, {
      branding: this.#host.branding,
      failed: cause => failed?.(cause) ?? INVALID,
      answered: (code, reason) => {
        this.#record.code = code
        this.#record.reason = reason
      },
    })
    return { kind: 'upstream', upstream, isOwn: true }
  }

  arrived(instead?: () => Route): Route {
    if (this.#resumed === undefined) return this.#routeTo(this.#choose(this.#tunnel!), instead)
    const { member, upstream } = this.#resumed
    if (member !== undefined) this.#servedBy(member)
    return toUpstream(upstream)
  }

  /** Whether a guard refuses the request on this connection only. */
  get isMisdirected(): boolean {
    return this.#record.code === 'CONNECTION_MISDIRECTED'
  }

  /** Continues a request that a lane has sent to the member already. */
  resumeAt(member: Member | undefined, tunnel: Tunnel, upstream: Upstream): void {
    this.isAdmitted = true
    this.#resumed = { member, upstream }
    this.route = this.#pass(tunnel)
  }

  // ── For its visit ──────────────────────────────────────────────────────────────────────────────────────────

  /** The account that is charged for response bytes that the visitor has not read yet. */
  get account(): Account | undefined {
    return this.#answerer?.holder
  }

  /** Finds another member for a request that failed at its member. Each member gets it at most once. */
  #elsewhere(code: ErrorCode): Served | undefined {
    const tunnel = this.#tunnel
    const before = this.#member
    if (tunnel?.pool === undefined || before === undefined) return undefined
    this.#tried ??= new Set()
    this.#tried.add(before)
    const chosen = this.#choose(tunnel)
    if (typeof chosen === 'string' || chosen.kind === 'holding') return undefined
    this.retried()
    this.#record.failedAt(tunnel, code)
    before.finished()
    this.#servedBy(chosen)
    return chosen.upstream && this.#at(chosen.upstream)
  }

  #at(upstream: Upstream): Served {
    return { kind: 'upstream', upstream, instead: code => this.#elsewhere(code) }
  }

  /** Refuses a request that another server sent here for a name that has no tunnel here any more. */
  moved(): Route {
    return this.answer(this.arrival.from?.moved ?? MOVED)
  }

  /** Whether another server or owner has the tunnel by now. The response is `CLUSTER_MOVED`. */
  get isMoved(): boolean {
    return this.#record.code === 'CLUSTER_MOVED'
  }

  refused(code: ErrorCode, reason?: string): void {
    this.#record.code = code
    this.#record.reason = reason
  }

  /** Called before the final head of the response is sent. */
  answered(status: number): void {
    for (const follower of this.followers) follower.answered?.(status, this.#record.code)
  }

  /** Records that it is sent once more. */
  retried(): void {
    this.#host.context.parts.noted({ kind: 'retried' })
  }

  /** Records that it became a WebSocket. */
  switched(): void {
    for (const follower of this.followers) follower.switched?.()
    if (this.#tunnel !== undefined) this.#record.switched(this.#tunnel)
  }

  finished(result: Result, failure: ErrorCode | undefined): void {
    const record = this.#record
    const tunnel = this.#tunnel
    const code = failure ?? record.code
    const { answerStatus } = result
    const status = answerStatus || statusOf(code)
    record.code = code
    // A host below a wildcard for which the app responded may have a certificate.
    if (this.#isBelow && code === undefined && answerStatus >= 100 && answerStatus < 400)
      tunnel?.hostsBelow.answered(this.head.host)
    record.ended(tunnel, result, status)
    this.#tellEnd(result, status, code)
    this.#member?.finished()
    this.#host.context.somethingEnded()
  }

  #tellEnd(
    { requestBytes, responseBytes, reason }: Result,
    status: number,
    code: ErrorCode | undefined,
  ): void {
    const { followers } = this
    const tunnel = this.#tunnel
    const { isHeard, parts } = this.#host.context
    if (followers.length === 0 && tunnel !== undefined && !isHeard) return
    const served = this.#answerer?.served ?? {}
    const why = reason ?? this.#record.reason
    const ending = { status, code, reason: why, served, requestBytes, responseBytes }
    if (tunnel === undefined) {
      const { head, address } = this
      if (code !== undefined) parts.missed({ ...ending, code, head, address })
      return
    }
    for (const follower of followers) follower.ended?.(ending)
    if (isHeard) parts.ended(tunnel, this, ending)
  }

  #enter(tunnel: Tunnel): void {
    const isFirst = this.#tunnel === undefined
    this.#tunnel = tunnel
    // The name left this server and came back: it is still one request.
    if (!isFirst) return
    this.#record.routed()
  }

  /** Undoes the counts of the request, because the tunnel moved to another server or client. */
  #leave(): void {
    for (const follower of this.followers.toReversed()) follower.left?.()
    this.clearLayers()
    if (this.#tunnel !== undefined) this.#record.left()
    this.#tunnel = undefined
  }

  #choose(tunnel: Tunnel): Chosen {
    const { context } = this.#host
    const chosen = tunnel.choose(this, this.#tried)
    this.cookie = undefined
    if (tunnel.pool?.affinity !== 'cookie' || typeof chosen === 'string' || chosen.kind === 'holding')
      return chosen
    if (!tunnel.pool.isShown(chosen, this.head)) this.cookie = memberCookie(chosen, context.isSecure)
    return chosen
  }

  #routeTo(chosen: Chosen, instead?: () => Route): Route {
    if (chosen === 'CLUSTER_MOVED') return { kind: 'again' }
    if (chosen === 'SERVER_DRAINING' && this.arrival.from?.moved !== undefined) return this.moved()
    if (typeof chosen === 'string') return refusal(chosen)
    if (chosen.kind === 'holding') {
      for (const follower of this.followers) follower.held?.()
      return this.#holding(chosen, instead)
    }
    if (chosen.upstream === undefined) return refusal('CLIENT_GONE')
    if (instead !== undefined) return instead()
    this.#servedBy(chosen)
    return chosen.tunnel.pool === undefined ? toUpstream(chosen.upstream) : this.#at(chosen.upstream)
  }

  #holding(chosen: Holding<Member | ErrorCode>, instead?: () => Route): Holding<Route> {
    const routed = (outcome: Member | ErrorCode): Route =>
      this.#host.routeSafely(() => this.#routeTo(outcome, instead))
    return { kind: 'holding', hold: held => chosen.hold(outcome => held(routed(outcome))) }
  }

  copyTo(member: Member): CopyEnd {
    member.began()
    const ended = this.#record.copied(member)
    return (status, responseBytes, code) => {
      ended(status, responseBytes, code)
      member.finished()
    }
  }

  answeredBy(member: Member): void {
    this.#answerer = member
  }

  #servedBy(member: Member): void {
    member.began()
    // Set before anything may throw, so that the end of the request releases the member.
    this.#member = member
    this.#answerer = member
    const { logins } = this.arrival
    if (logins !== undefined) logins.member = member
    this.sent()
    this.#record.servedBy(member)
  }

  sent(): void {
    for (const follower of this.followers) follower.sent?.()
    this.#record.sent()
  }
}

function toUpstream(upstream: Upstream): Served {
  return { kind: 'upstream', upstream }
}
