// One request at the server: where it goes, which client serves it, and what is noted when it is over.

import { ERRORS, type ErrorCode } from '../errors.ts'
import type { RequestHead } from '../http/head.ts'
import { parentOf } from '../http/tracing.ts'
import type { AskedCertificate, Pass, Reading, Refusal } from '../plugin.ts'
import type { Account } from '../unsent.ts'
import type { PoolAnswer } from '../wire/control.ts'
import type { AnswerDeadline } from './answer-deadline.ts'
import type { AskedBy, ClientReports } from './clients.ts'
import type { Cluster } from './cluster/cluster.ts'
import { MOVED_HEADER } from './cluster/peer-wire.ts'
import { type Exchanges, msSince } from './exchanges.ts'
import { type Arrival, type Holding, type Route, refusal, routedLater } from './front.ts'
import { answerLinesOf, applyPasses, hidesAdded, type Judgement, keepOpen, restoreHead } from './guards.ts'
import { withoutMarks } from './inbox/marks.ts'
import type { Member } from './member.ts'
import type { Metrics } from './metrics.ts'
import type { Observers, Watched } from './observers.ts'
import { memberCookie } from './pool.ts'
import type { Pressure } from './pressure.ts'
import { isFailure } from './reports.ts'
import type { Shapes } from './shaping.ts'
import type { Tunnel } from './tunnels.ts'
import type { Upstream } from './upstream.ts'
import { AnswerUpstream } from './upstreams/answer.ts'
import { type CopyEnd, type CopyHost, CopyingUpstream } from './upstreams/copying.ts'
import type { Chosen, Visitor, VisitorGate } from './visitor-gate.ts'

/** Books requests. */
export interface BookingDesk {
  /** The request counts from now on, until its booking is `finished`. */
  book(arrival: Arrival): Booking
}

/** What a booking needs of the server. */
export interface BookingHost {
  readonly books: Exchanges
  readonly gate: VisitorGate
  readonly observers: Observers
  /** `undefined`: nothing is measured. */
  readonly metrics: Metrics | undefined
  /** What the tunnel may do under pressure; `undefined`: no rule names it. */
  pressureOf(tunnel: Tunnel): Pressure | undefined
  /** How fast a visitor of the tunnel may be; `undefined`: as fast as it goes. */
  shapesOf(tunnel: Tunnel, address: string): Shapes | undefined
  /** Bodies of requests that are copied to all clients of a pool. */
  readonly copyBodies: Pick<CopyHost, 'maxBodyBytes' | 'take' | 'give'>
  /** The other servers that have clients of the name, too. */
  othersWith(name: string): readonly Upstream[] | Promise<readonly Upstream[]>
  /** What an upstream becomes when middlewares wrap it; the same one when there are none. */
  wrapped(upstream: Upstream, wrapping: Wrapping): Upstream
  /** Calls `over` when the time is over. */
  answerDeadline(ms: number, over: () => void): AnswerDeadline
  /** Whether answers say how long they took. */
  readonly hasServerTiming: boolean
  /** Whether visitors reach tunnels by https. */
  readonly isSecure: boolean
  /** Whether a trusted proxy says that the visitor came by https. */
  isSecureBefore(arrival: Arrival): boolean
  /** Address of the visitor, also behind trusted proxies. */
  addressOf(arrival: Arrival): string
  /** The tunnel is another server's since the request began to wait for it: where it goes now. */
  routeAgain(arrival: Arrival, booking: Booking): Route
}

/** The exchange that middlewares wrap. */
export interface Wrapping {
  readonly tunnel: string
  readonly address: string
  /** As `Booking.elsewhere`. */
  elsewhere(code: ErrorCode): Upstream | undefined
  /** What is answered is a refusal with this code. */
  refused(code: ErrorCode): void
}

/** What a request asks of the cluster that it waits for a name of. */
export type NameWait = Pick<Cluster, 'awaitName' | 'forget'>

/** A client moves from one server to another once; a request that meets three servers without the name is refused. */
const MAX_SERVERS_TRIED = 3

/** A queue that is full is another one in a second. */
const QUEUE_RETRY_SECONDS = 1

/** What became of a request. */
export interface Result {
  /** 0: there was no answer. */
  readonly answerStatus: number
  readonly answerBytes: number
  readonly requestBytes: number
}

export class Booking implements Visitor, Wrapping {
  /** Where the request goes at first. Only `BookingDesk` sets it. */
  route: Route = refusal('TUNNEL_NOT_FOUND')
  /** Lines for the head of the answer; see `Visit.answerLines`. */
  answerLines: Uint8Array | undefined
  readonly #arrival: Arrival
  readonly #host: BookingHost
  readonly #startedAt: number = performance.now()
  /** It went to a client; kept where answers say so. */
  #sentAt = 0
  #isSent = false
  #tunnel: Tunnel | undefined
  /** It is for a host below the tunnel's own. */
  #isBelow = false
  #member: Member | undefined
  /** Of those that got a copy, the one whose answer the visitor gets. */
  #winner: Member | undefined
  /** Members that failed it. */
  #tried: Set<Member> | undefined
  /** Where its client gets reports of it, and its number there; 0: the client wants none. */
  #reports: ClientReports | undefined
  #report = 0
  /** What guards let it pass with. */
  #passes: readonly Pass[] = []
  /** As the visitor sent it, where they changed it. */
  #headBefore: Uint8Array | undefined
  #guardLines: Uint8Array | undefined
  /** A guard refused it, or a middleware got this from the app's side. */
  #guardCode: ErrorCode | undefined
  #maxBodyBytes = Number.POSITIVE_INFINITY
  /** Of a tunnel with a time of its own; 0: none. */
  #answerTimeoutMs = 0
  #answerDeadline: AnswerDeadline | undefined
  /** It counts there until it is over. */
  #pressure: Pressure | undefined
  /** For observers. */
  #watched: Watched | undefined
  /** The guards know that it is under way, and may cut it. */
  #stopKeeping: (() => void) | undefined
  /** Another server has it: what it waits for if that one fails. */
  #awaiting: ((code: ErrorCode) => Holding<Route>) | undefined
  #tries = 0
  /** Since when it has waited for a name at another server, with pauses; 0: it has not. */
  #waitsSince = 0
  /** Another server has it. */
  isElsewhere = false

  constructor(arrival: Arrival, host: BookingHost) {
    this.#arrival = arrival
    this.#host = host
    host.books.begun()
  }

  // ── Visitor ────────────────────────────────────────────────────────────────────────────────────────────────

  get address(): string {
    return this.#host.addressOf(this.#arrival)
  }

  get head(): RequestHead {
    return this.#arrival.head
  }

  get asked(): AskedCertificate | undefined {
    return this.#arrival.asked
  }

  get isSecure(): boolean {
    return this.#host.isSecure || this.#host.isSecureBefore(this.#arrival)
  }

  // ── For the server ─────────────────────────────────────────────────────────────────────────────────────────

  /** The request is for a tunnel, and counts there from now on. Returns where it goes. */
  to(tunnel: Tunnel, isBelow: boolean): Route {
    this.#enter(tunnel)
    this.#isBelow = isBelow
    if (tunnel.hasInbox && this.#arrival.keptFor === undefined) withoutMarks(this.head)
    const judgement = this.#host.gate.judge(tunnel, this)
    if (judgement === undefined) return this.#admit(tunnel)
    if (!(judgement instanceof Promise)) return this.#judged(tunnel, judgement)
    return routedLater(judgement, one => this.#judged(tunnel, one))
  }

  /** A copy from another server, which has asked the guards: it is for the clients that are here. */
  copied(tunnel: Tunnel, isBelow: boolean): Route {
    this.#enter(tunnel)
    this.#isBelow = isBelow
    const { pool } = tunnel
    return pool?.isCopied(this.head) === true
      ? this.#copiedTo(tunnel, pool.answer, [])
      : this.#routeTo(this.#choose(tunnel))
  }

  #judged(tunnel: Tunnel, judgement: Judgement): Route {
    if (judgement.kind !== 'pass')
      return this.#answered(judgement.kind === 'refusal' ? judgement.refusal : judgement.reading)
    this.#passes = judgement.passes
    try {
      this.#headBefore = applyPasses(this.head, judgement.passes)
      this.#guardLines = answerLinesOf(judgement.passes)
    } catch (cause) {
      return this.#answered(this.#host.gate.failed(cause))
    }
    if (hidesAdded(this.head, judgement.passes)) return this.#answered({ code: 'BAD_REQUEST' })
    if (this.#passes.length > 0) this.#stopKeeping = keepOpen(this.#passes, () => this.#arrival.terminate())
    return this.#admit(tunnel)
  }

  /** To a client, as far as the rules of the operator let it. */
  #admit(tunnel: Tunnel): Route {
    const pressure = this.#host.pressureOf(tunnel)
    if (pressure === undefined) return this.#toClients(tunnel)
    if (this.head.contentLength > pressure.maxContentLength) return refusal('BODY_TOO_LARGE')
    if (this.head.end - this.head.start > pressure.maxHeadBytes) return refusal('HEAD_TOO_LARGE')
    this.#maxBodyBytes = pressure.maxContentLength
    const { slots } = pressure
    if (slots === undefined || slots.take()) return this.#enterUnder(pressure, tunnel)
    return {
      kind: 'holding',
      hold: held =>
        slots.wait(code =>
          held(
            code === undefined ? this.#enterUnder(pressure, tunnel) : this.#busy(code, QUEUE_RETRY_SECONDS),
          ),
        ),
    }
  }

  /** It has a place, if places are counted. */
  #enterUnder(pressure: Pressure, tunnel: Tunnel): Route {
    const { slots, breaker } = pressure
    const waitMs = breaker?.admit() ?? 0
    if (waitMs > 0) {
      slots?.release()
      return this.#busy('CIRCUIT_OPEN', Math.ceil(waitMs / 1_000))
    }
    this.#pressure = pressure
    this.#answerTimeoutMs = pressure.answerTimeoutMs
    return this.#toClients(tunnel)
  }

  #busy(code: ErrorCode, seconds: number): Route {
    return this.#answered({ code, headers: [['retry-after', String(seconds)]] })
  }

  /** The place is free for the next one; `hasFailed` as `Breaker.ended` has it. */
  #leavePressure(hasFailed: boolean | undefined): void {
    const pressure = this.#pressure
    this.#pressure = undefined
    pressure?.slots?.release()
    pressure?.breaker?.ended(hasFailed)
  }

  /** A guard says that the request belongs on another connection. */
  get isMisdirected(): boolean {
    return this.#guardCode === 'CONNECTION_MISDIRECTED'
  }

  /** A guard answers in place of the app. */
  #answered(answer: Refusal | Reading): Route {
    // The host is not one that the app knows.
    this.#isBelow = false
    const upstream = new AnswerUpstream(answer, {
      failed: cause => this.#host.gate.failed(cause),
      answered: code => {
        this.#guardCode = code
      },
    })
    return { kind: 'upstream', upstream }
  }

  /** A lane has sent the request to the member already. */
  resumeAt(member: Member | undefined, tunnel: Tunnel, upstream: Upstream): void {
    this.#enter(tunnel)
    if (member !== undefined) this.#servedBy(member)
    this.route = { kind: 'upstream', upstream }
  }

  /** What the visitor may know of the time so far: until it was on its way, and from there. */
  get timingLine(): Uint8Array | undefined {
    if (!this.#host.hasServerTiming || this.#sentAt === 0) return undefined
    const now = performance.now()
    const [waitMs, appMs] = [this.#sentAt - this.#startedAt, now - this.#sentAt]
    return Buffer.from(
      `Server-Timing: tunnel-wait;dur=${waitMs.toFixed(1)}, tunnel-app;dur=${appMs.toFixed(1)}\r\n`,
    )
  }

  // ── For its visit ──────────────────────────────────────────────────────────────────────────────────────────

  /** Whose limit bytes of the answer count against that the visitor does not take. */
  get account(): Account | undefined {
    return (this.#member ?? this.#winner)?.holder
  }

  /** How fast the visitor may be; `undefined`: as fast as it goes, or it is no tunnel's. */
  get shapes(): Shapes | undefined {
    return this.#tunnel && this.#host.shapesOf(this.#tunnel, this.address)
  }

  /** Of a body without a length, that may be so long. */
  get maxBodyBytes(): number {
    return this.#maxBodyBytes
  }

  /** The request failed at the member that had it, and may go to another one: each is asked once. */
  elsewhere(code: ErrorCode): Upstream | undefined {
    const tunnel = this.#tunnel
    const before = this.#member
    if (tunnel?.pool === undefined || before === undefined) return undefined
    this.#tried ??= new Set()
    this.#tried.add(before)
    const chosen = this.#choose(tunnel)
    if (typeof chosen === 'string' || chosen.kind === 'holding') return undefined
    this.retried()
    // At the one that had it, it is over.
    const durationMs = msSince(this.#startedAt)
    this.#reports?.finished(tunnel, this.#report, ERRORS[code].status, durationMs, 0, code)
    before.finished()
    this.#servedBy(chosen)
    return chosen.upstream
  }

  // ── For another server of the cluster ──────────────────────────────────────────────────────────────────────

  /** The server that holds the name does the rest: guards, counts and reports are its own. `kept`: where it goes when that fails. */
  toServer(
    upstream: Upstream,
    name: string,
    cluster: NameWait,
    again: () => Route,
    kept: () => Upstream | undefined,
  ): Route {
    // That server makes the id.
    this.head.requestId = ''
    this.isElsewhere = true
    this.#awaiting = code => {
      if (code === 'CLUSTER_MOVED') cluster.forget(name)
      const instead = kept()
      if (instead === undefined) return this.awaitingName(name, cluster, again)
      this.isElsewhere = false
      return routedLater(Promise.resolve(instead), upstream => ({ kind: 'upstream', upstream }))
    }
    return { kind: 'upstream', upstream }
  }

  /** No server that holds the name can be reached just now: `again` says where it goes once one can. */
  awaitingName(name: string, cluster: NameWait, again: () => Route): Holding<Route> {
    this.#waitsSince ||= performance.now()
    return {
      kind: 'holding',
      hold: held =>
        cluster.awaitName(
          name,
          this.#waitsSince,
          () => held(again()),
          () => held(refusal('CLIENT_RECONNECTING')),
        ) ?? 'CLIENT_RECONNECTING',
    }
  }

  /**
   * The server that had it failed it, without harm: it waits for another, or for that one, as long as requests wait for a client.
   * `undefined`: too many servers did not have the name.
   */
  awaitingServer(code: ErrorCode): Holding<Route> | undefined {
    const awaiting = this.#awaiting
    if (awaiting === undefined) return undefined
    if (code === 'CLUSTER_MOVED') {
      if (++this.#tries > MAX_SERVERS_TRIED) return undefined
      this.retried()
    }
    this.#awaiting = undefined
    return awaiting(code)
  }

  /** Another server sent the request here, and no tunnel of this one has the name any more. */
  moved(): Route {
    return this.#answered({ code: 'CLUSTER_MOVED', headers: [[MOVED_HEADER, '1']] })
  }

  /** The tunnel that it is for; `''`: none. */
  get tunnel(): string {
    return this.#tunnel?.name ?? ''
  }

  refused(code: ErrorCode): void {
    this.#guardCode = code
  }

  /** The final head of its answer is about to go out. */
  answered(status: number): void {
    this.#answerDeadline?.stop()
    this.#watched?.answered(status)
  }

  /** It is sent once more. */
  retried(): void {
    const { metrics } = this.#host
    if (metrics !== undefined) metrics.retried++
  }

  /** It became a WebSocket. */
  switched(): void {
    this.#leavePressure(false)
    if (this.#tunnel !== undefined) this.#reports?.switched(this.#tunnel, this.#report)
  }

  /** It is over; `code` says why, when it failed. */
  finished({ answerStatus, answerBytes, requestBytes }: Result, failure: ErrorCode | undefined): void {
    this.#answerDeadline?.stop()
    const code = failure ?? this.#guardCode
    // One for no tunnel is seen by those who watch all of them.
    if (this.#tunnel === undefined && code !== undefined) this.#watch('')
    const { metrics } = this.#host
    if (metrics !== undefined && !(this.#tunnel === undefined && code === undefined))
      metrics.ended(this.#tunnel?.name, {
        method: this.head.method,
        status: answerStatus || statusOf(code),
        durationMs: performance.now() - this.#startedAt,
        requestBytes,
        answerBytes,
        code,
      })
    this.#watched?.ended({
      status: answerStatus || statusOf(code),
      requestBytes,
      answerBytes,
      ...(code !== undefined && { code }),
      ...(this.#member ?? this.#winner)?.served,
    })
    this.#stopKeeping?.()
    if (this.#pressure !== undefined) {
      const status = answerStatus || statusOf(code)
      // One that left before there was an answer says nothing of the app.
      this.#leavePressure(status === 0 ? undefined : isFailure(status, code))
    }
    const { books } = this.#host
    const tunnel = this.#tunnel
    books.ended(tunnel, requestBytes, answerBytes)
    // A host for which the app has an answer may have a certificate.
    if (this.#isBelow && code === undefined && answerStatus >= 100 && answerStatus < 400)
      tunnel?.hostsBelow.answered(this.head.host)
    const { isHeard } = books
    if (tunnel !== undefined && !this.#isSent && code !== undefined && code !== 'CANCELLED')
      this.#reportRefusal(tunnel)
    if (tunnel !== undefined && (this.#report !== 0 || isHeard)) {
      const status = answerStatus || statusOf(code)
      const isAlone = isHeard && books.takeReport()
      const durationMs = isAlone || this.#report > 0 ? msSince(this.#startedAt) : 0
      this.#reports?.finished(tunnel, this.#report, status, durationMs, answerBytes, code)
      if (isAlone) books.report(tunnel, this.head, { status, durationMs, bytes: answerBytes }, code)
      else if (isHeard) books.count(isFailure(status, code), answerBytes)
    }
    this.#member?.finished()
    books.fewer()
  }

  #enter(tunnel: Tunnel): void {
    const isFirst = this.#tunnel === undefined
    this.#tunnel = tunnel
    // The name was held here, then elsewhere, and is here again: it is one request.
    if (!isFirst) return
    this.#host.books.routed()
    this.#watch(tunnel.name)
  }

  /** The tunnel is another server's, or has another client here: nothing is left of what it was booked for. */
  #leave(): void {
    this.#leavePressure(undefined)
    this.#stopKeeping?.()
    this.#stopKeeping = undefined
    if (this.#headBefore !== undefined) restoreHead(this.head, this.#headBefore)
    this.#headBefore = undefined
    this.#watched?.ended({ status: 0, requestBytes: 0, answerBytes: 0, code: 'CLUSTER_MOVED' })
    this.#watched = undefined
    if (this.#tunnel !== undefined) this.#host.books.left()
    this.#tunnel = undefined
  }

  #watch(tunnel: string): void {
    this.#watched = this.#host.observers.began(tunnel, () => {
      const { method, target, host, requestId } = this.head
      const seen = { kind: 'http', address: this.address, method, target, host } as const
      return requestId === '' ? seen : { ...seen, requestId }
    })
    const traced = this.#watched?.trace(() => parentOf(this.head))
    if (traced !== undefined) this.head.traceparent = traced
  }

  #choose(tunnel: Tunnel): Chosen {
    const { gate, isSecure } = this.#host
    const chosen = gate.choose(tunnel, this, this.#tried)
    this.answerLines = this.#guardLines
    if (tunnel.pool?.affinity !== 'cookie' || typeof chosen === 'string' || chosen.kind === 'holding')
      return chosen
    if (!tunnel.pool.isShown(chosen, this.head)) {
      const cookie = memberCookie(chosen, isSecure)
      this.answerLines = this.#guardLines === undefined ? cookie : Buffer.concat([this.#guardLines, cookie])
    }
    return chosen
  }

  #routeTo(chosen: Chosen): Route {
    if (chosen === 'CLUSTER_MOVED') {
      this.#leave()
      return this.#host.routeAgain(this.#arrival, this)
    }
    if (chosen === 'SERVER_DRAINING' && this.#arrival.isForwarded) return this.moved()
    if (typeof chosen === 'string') return refusal(chosen)
    if (chosen.kind === 'holding' && this.#host.metrics !== undefined) this.#host.metrics.held++
    if (chosen.kind === 'holding')
      return { kind: 'holding', hold: held => chosen.hold(outcome => held(this.#routeTo(outcome))) }
    if (chosen.upstream === undefined) return refusal('CLIENT_GONE')
    const { tunnel } = chosen
    if (tunnel.pool?.isCopied(this.head) === true) return this.#copiedTo(tunnel, tunnel.pool.answer, [])
    this.#servedBy(chosen)
    return { kind: 'upstream', upstream: this.#host.wrapped(chosen.upstream, this) }
  }

  /** To one of its clients, or to all of them, wherever they are. */
  #toClients(tunnel: Tunnel): Route {
    const { pool } = tunnel
    if (pool?.isCopied(this.head) !== true) return this.#routeTo(this.#choose(tunnel))
    const routeTo = (others: readonly Upstream[]): Route => {
      if (others.length === 0) return this.#routeTo(this.#choose(tunnel))
      this.answerLines = this.#guardLines
      return this.#copiedTo(tunnel, pool.answer, others)
    }
    const others = this.#host.othersWith(tunnel.name)
    return others instanceof Promise ? routedLater(others, routeTo) : routeTo(others)
  }

  /** Every client of the pool gets it; those of `others` from their servers. */
  #copiedTo(tunnel: Tunnel, answer: PoolAnswer, others: readonly Upstream[]): Route {
    // The other servers believe this one.
    if (others.length > 0 && this.#arrival.keptFor === undefined) withoutMarks(this.head)
    this.#sent()
    const { maxBodyBytes, take, give } = this.#host.copyBodies
    const own = tunnel.able.map(member => ({
      upstream: member.upstream,
      label: member.label,
      began: () => this.#copyBegan(member),
      won: () => {
        this.#winner = member
      },
    }))
    const servers = others.map(upstream => ({ upstream, isServer: true, began: () => () => {}, won() {} }))
    const recipients = [...own, ...servers]
    const isForServer = this.#arrival.isCopy === true
    const upstream = new CopyingUpstream({ maxBodyBytes, recipients, answer, isForServer, take, give })
    return { kind: 'upstream', upstream: isForServer ? upstream : this.#host.wrapped(upstream, this) }
  }

  #copyBegan(member: Member): CopyEnd {
    const { tunnel, client } = member
    member.began()
    const reports = client?.reports
    const report = reports?.begun(tunnel, this.head, this.#askedBy) ?? 0
    return (status, answerBytes, code) => {
      const durationMs = msSince(this.#startedAt)
      reports?.finished(tunnel, report, status || statusOf(code), durationMs, answerBytes, code)
      member.finished()
    }
  }

  /** The request is this member's, whose client gets a report. */
  #servedBy(member: Member): void {
    member.began()
    this.#sent()
    this.#member = member
    this.#reports = member.client?.reports
    this.#report = this.#reports?.begun(member.tunnel, this.head, this.#askedBy) ?? 0
  }

  /** A client of the tunnel learns of what it never gets: with a pool the one that joined first. */
  #reportRefusal(tunnel: Tunnel): void {
    const reports = tunnel.members.find(({ client }) => client?.reports.isWatching === true)?.client?.reports
    if (reports === undefined) return
    this.#reports = reports
    this.#report = reports.begun(tunnel, this.head, this.#askedBy)
  }

  /** `undefined`: the client does not watch. */
  get #askedBy(): AskedBy | undefined {
    if (this.#reports?.isWatching === false) return undefined
    return { address: this.address, waitedMs: msSince(this.#startedAt) }
  }

  /** It is on its way to a client. */
  #sent(): void {
    if (this.#answerTimeoutMs > 0)
      this.#answerDeadline ??= this.#host.answerDeadline(this.#answerTimeoutMs, () =>
        this.#arrival.breakOff('ORIGIN_TIMEOUT'),
      )
    this.#isSent = true
    if (this.#host.hasServerTiming) this.#sentAt = performance.now()
    this.#watched?.sent()
  }
}

/** What a visitor is answered when its request fails before there was an answer. */
function statusOf(code: ErrorCode | undefined): number {
  return code === undefined || code === 'CANCELLED' ? 0 : ERRORS[code].status
}
