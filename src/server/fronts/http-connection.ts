// One visitor's HTTP/1.1 connection: frames requests strictly, begins one visit after the other, and decides when the
// connection ends.

import type { LaneEnd } from '../../accelerator.ts'
import { type Account, copyOf } from '../../bytes.ts'
import type { ErrorCode } from '../../errors.ts'
import { eventLoop } from '../../event-loop.ts'
import { errorAnswer } from '../../http/error-answer.ts'
import type { RequestHead } from '../../http/head.ts'
import { RequestReader } from '../../http/message-reader.ts'
import type { AskedCertificate, Socket, SocketHandler } from '../../socket.ts'
import type { ServerContext } from '../context/server-context.ts'
import type { Takeover } from '../contracts/front.ts'
import type { LaneSite, VisitorShortcut } from '../contracts/laning.ts'
import type { Entrance, Visitor } from '../contracts/protocol.ts'
import type { Ease } from '../contracts/upstream.ts'
import type { AdmittedConnection, Occupant } from '../limits/admission.ts'
import { ConnectionLogins } from '../limits/connection-logins.ts'
import { IdleTime } from '../limits/deadlines.ts'
import { VisitorHop } from '../limits/visitor-hop.ts'
import type { RoutedRequest } from '../routing/routed-request.ts'
import type { Bounds } from '../settings/bounds.ts'
import type { HttpFront } from './http.ts'
import { HttpInput, type InputReader } from './http-input.ts'
import { HttpOutput, type OutputOwner } from './http-output.ts'
import { HttpVisit, type ShortcutChannel } from './http-visit.ts'

/**
 * The time in milliseconds after the visitor's FIN until a response without progress is cancelled. A visitor that
 * left and one that only closed its sending side look alike.
 */
const HALF_CLOSE_GRACE_MS = 1_000
/** The time in milliseconds for which a refused visitor may still send. An earlier RST could destroy the response. */
const LINGER_MS = 2_000
/**
 * The maximum number of bytes that a visitor sends in that time: most clients read a response only after they have sent their
 * whole request.
 */
const MAX_DROPPED_BYTES = 33_554_432
/** The number of bytes of a chunked body that are parsed at once. Chunks of one byte take about 100 ns each. */
const CHUNKED_BYTES_AT_ONCE = 65_536

type Phase =
  /** The connection waits for a request, or for the rest of its head. */
  | 'head'
  /** The connection is lent to a lane, which serves its small requests. */
  | 'lent'
  /** A visit is in progress. */
  | 'exchange'
  /** The visit switched protocols: raw bytes go both ways. */
  | 'switched'
  | 'taken'
  /** The response is complete, but the visitor has not taken all of it. Its next request waits until then. */
  | 'flushing'
  /** The last response is being sent; further bytes from the visitor are dropped. */
  | 'closing'
  | 'lingering'
  | 'closed'

export class HttpConnection
  implements SocketHandler, ShortcutChannel, InputReader, OutputOwner, Occupant, Visitor
{
  readonly #socket: Socket
  readonly #front: HttpFront
  readonly #context: ServerContext
  readonly #admitted: AdmittedConnection | undefined
  readonly input: HttpInput
  readonly output: HttpOutput
  readonly #visit: HttpVisit
  readonly request: RequestReader
  visitor: VisitorHop
  readonly #entrance: Entrance
  readonly #idle: IdleTime
  readonly #logins: ConnectionLogins = new ConnectionLogins()
  #phase: Phase = 'head'
  #takeover: SocketHandler | undefined
  #hasAsked = false
  /** The shortcut for small requests, made after the first one. */
  #lane: VisitorShortcut<RoutedRequest> | undefined

  constructor(
    socket: Socket,
    front: HttpFront,
    entrance: Entrance,
    head: RequestHead,
    admitted?: AdmittedConnection,
  ) {
    this.#socket = socket
    this.#front = front
    this.#context = front.context
    this.#admitted = admitted
    if (admitted !== undefined) admitted.occupant = this
    this.input = new HttpInput(socket, front, this)
    this.output = new HttpOutput(socket, front.deadlines, this)
    this.request = new RequestReader(undefined, undefined, head, this.input.buffer)
    this.#visit = new HttpVisit(head, this, front.router)
    this.#entrance = entrance
    this.visitor = new VisitorHop(entrance, socket.remoteAddress)
    this.#idle = new IdleTime(front.context, () => this.#waitedTooLong())
  }

  get limits(): Bounds {
    return this.#context.limits
  }

  // ── From the socket ────────────────────────────────────────────────────────────────────────────────────────

  received(bytes: Uint8Array): void {
    this.input.received(bytes)
  }

  drained(): void {
    if (this.#phase === 'taken') return this.#takeover?.drained()
    if (!this.output.flush()) return
    if (this.#phase === 'closing') this.#linger()
    else if (this.#phase === 'flushing') this.#nextRequest()
    else this.#visit.drained()
  }

  spliceable(): void {
    if (this.#phase === 'taken') return this.#takeover?.spliceable?.()
    if (this.#phase !== 'exchange' || this.#visit.isRequestComplete || this.input.isQueued) return
    this.#visit.bodyFrom(this.#socket, this.request.body.leftBytes, movedBytes => {
      this.request.body.skip(movedBytes)
      if (this.request.isComplete) this.#visit.bodyEnded()
    })
  }

  ended(): void {
    this.input.ended()
  }

  closed(error?: Error): void {
    this.#idle.close()
    this.input.close()
    this.output.close()
    if (this.#phase === 'taken') this.#takeover?.closed(error)
    this.#phase = 'closed'
    this.#visit.abandon()
    this.#lane?.giveUp()
    this.#logins.close()
    this.#front.keepHead(this.#visit.head)
    this.#front.left(this)
  }

  // ── Deadlines, and the end of the server ───────────────────────────────────────────────────────────────────

  #waitedTooLong(): void {
    if (this.#phase === 'lingering') return this.#socket.terminate()
    if (this.#phase !== 'head') return
    if (!this.input.isEmpty) this.#refuseHead('REQUEST_TIMEOUT')
    else if (this.#context.isShut) this.#closeSoon()
    else this.#close()
  }

  visitorStalled(): void {
    this.#cutOff('VISITOR_STALLED')
  }

  /** Called when the visitor sent FIN and the origin has sent nothing since. */
  answerStalled(): void {
    this.#socket.terminate()
  }

  /**
   * Called when the server stops: the next response is the last on this connection. A connection that waits for a
   * request closes after `drainIdleMs`; one that is lent to a lane is returned first.
   */
  drain(): void {
    if (this.#phase === 'head' && !this.input.isQueued) this.#idle.drain()
  }

  /** Closes the connection after reading the bytes that the kernel already has. */
  #closeSoon(): void {
    const isIdle = () => this.#phase === 'head' && this.input.isEmpty
    eventLoop.soon(() => {
      if (isIdle()) eventLoop.soon(() => isIdle() && this.#close())
    })
  }

  /**
   * Closes the connection when the time for draining is over. A last response in the kernel's buffer still arrives,
   * however slowly the visitor reads.
   */
  letGo(): void {
    if (this.#phase === 'lingering' && this.#socket.letGo !== undefined) this.#socket.letGo()
    else this.#socket.terminate()
  }

  forgetHop(): void {
    this.visitor.forget()
  }

  // ── Room on the server ─────────────────────────────────────────────────────────────────────────────────────

  get isCertified(): boolean {
    return this.#socket.isCertified === true
  }

  get asked(): AskedCertificate | undefined {
    return this.#socket.asked
  }

  /** The logins of the connection. `undefined` behind a proxy, whose connections carry several visitors. */
  get logins(): ConnectionLogins | undefined {
    return this.visitor.isTrusted ? undefined : this.#logins
  }

  isRefused(): boolean {
    return this.#admitted?.refusal !== undefined && this.#admitted.isRefused()
  }

  /**
   * Closes an idle connection to make room for another. A connection with half a head also counts as idle: otherwise
   * visitors that send theirs byte by byte could keep all others out. So does one whose last response was sent. A connection whose complete requests wait for a turn does not.
   */
  giveWay(): boolean {
    const isWaiting = this.#phase === 'head' && !this.input.isQueued && this.output.isEmpty
    const isIdle = isWaiting && this.#idle.isLong
    const isDone = isIdle || this.#phase === 'lingering'
    if (isDone) this.#socket.terminate()
    return isDone
  }

  // ── Requests ───────────────────────────────────────────────────────────────────────────────────────────────

  get isHeadAwaited(): boolean {
    return this.#phase === 'head'
  }

  get isParsing(): boolean {
    return this.#phase === 'head' || (this.#phase === 'exchange' && this.#visit.isBodyWanted)
  }

  take(bytes: Uint8Array, at: number): number {
    switch (this.#phase) {
      case 'head':
        return this.#takeHead(bytes, at)
      case 'exchange':
        return this.#visit.isBodyWanted ? this.#takeBody(bytes, at) : at
      case 'flushing':
      case 'lent':
        return at
      case 'switched':
        this.#visit.body(at === 0 ? bytes : bytes.subarray(at))
        break
      case 'taken':
        this.#takeover?.received(at === 0 ? bytes : bytes.subarray(at))
        break
      default:
        // The kernel would otherwise send a RST at the close, which destroys the response.
        if (this.input.dropsTooMuch(bytes.length - at, MAX_DROPPED_BYTES)) this.input.pause()
    }
    return bytes.length
  }

  /** Reads a head from `bytes` at `at` and begins its visit. Returns the next position. */
  #takeHead(bytes: Uint8Array, at: number): number {
    const { limits, isShut } = this.#context
    const isFirstByte = this.input.isEmpty
    if (isFirstByte) this.#idle.awaitHead()
    const next = this.request.readHead(bytes, at, bytes.length, limits)
    if (next > 0) {
      if (this.#entrance.visitorOf !== undefined) {
        const visitor = this.#entrance.visitorOf(this.request.head)
        if (visitor === undefined) {
          this.#refuseHead('BAD_REQUEST')
          return bytes.length
        }
        this.visitor = visitor
      }
      this.#phase = 'exchange'
      this.#hasAsked = true
      this.#idle.stop()
      this.#visit.begin()
      return next
    }
    const { refusal, bytes: all } = this.request.head
    if (next < 0 && refusal === 'VERSION_UNSUPPORTED' && this.#becomesOther(all)) return bytes.length
    if (next < 0) this.#refuseHead(refusal)
    else if (this.input.keepsTooMuch) this.#refuseHead('BUFFERS_FULL')
    else if (isFirstByte && isShut) this.drain()
    return bytes.length
  }

  /**
   * Whether the connection continues as HTTP/2 with prior knowledge, as a proxy that ended TLS in front of us uses it
   * for gRPC. On our own TLS, ALPN decides. `first`: all bytes so far.
   */
  #becomesOther(first: Uint8Array): boolean {
    if (this.#hasAsked || this.#socket.protocol || this.#entrance.visitorOf !== undefined) return false
    const protocol = this.#front.protocolOf(first)
    if (protocol === undefined) return false
    this.#phase = 'taken'
    this.#idle.stop()
    const connection = protocol.accept(this.#front, this.#socket, this.#entrance, this.#admitted)
    this.#takeover = connection
    this.#front.left(this)
    connection.received(copyOf(first))
    return true
  }

  /** Reads a part of the body from `bytes` at `at`. Returns the next position. */
  #takeBody(bytes: Uint8Array, at: number): number {
    const visit = this.#visit
    const { body, head } = this.request
    const most = head.body === 'chunked' ? at + CHUNKED_BYTES_AT_ONCE : bytes.length
    const end = body.feed(bytes, at, Math.min(most, bytes.length))
    const { maxBodyBytes } = this.#context.limits
    const isTooLarge = maxBodyBytes > 0 && body.payloadBytes > maxBodyBytes
    if (end === -1 || isTooLarge) {
      visit.breakOff(end === -1 ? 'BAD_REQUEST' : 'BODY_TOO_LARGE')
      return bytes.length
    }
    visit.body(at === 0 && end === bytes.length ? bytes : bytes.subarray(at, end))
    if (this.request.isComplete && this.#phase === 'exchange') visit.bodyEnded()
    return end
  }

  inputEnded(): void {
    switch (this.#phase) {
      case 'switched':
        return this.#visit.bodyEnded()
      case 'taken':
        return this.#takeover?.ended()
      case 'exchange':
        // A truncated request never completes; a complete one may still get its response.
        if (!this.#visit.mayComplete) return this.#socket.terminate()
        return this.output.expectAnswer(HALF_CLOSE_GRACE_MS)
      case 'head':
        return this.#close()
    }
  }

  /** Called when too many bytes wait: no response could say why to requests ahead of their turn, so the connection ends. */
  waits(): void {
    if (this.#phase === 'head') this.#idle.stop()
    if (!this.input.keepsTooMuch) return
    eventLoop.soon(() => this.input.keepsTooMuch && this.#cutOff('BUFFERS_FULL'))
  }

  // ── VisitChannel: what the visit does ──────────────────────────────────────────────────────────────────────

  get shortcut(): VisitorShortcut<RoutedRequest> | undefined {
    return this.#lane
  }

  get keepsAlive(): boolean {
    const isProvisional = this.#admitted?.refusal !== undefined
    if (!this.#visit.head.keepAlive || this.input.isOver || isProvisional) return false
    // A request that has arrived is still served after the server has started to stop.
    return !this.#context.isShut || !this.input.isEmpty
  }

  /**
   * Sets the account that is charged for unread response bytes. If the account is over its limit, the connection
   * ends, but not while its upstream writes.
   */
  charge(account: Account | undefined): void {
    this.output.account = account
    if (account?.isOver === true) eventLoop.soon(() => this.#cutOff('BUFFERS_FULL'))
  }

  switched(): void {
    this.#phase = 'switched'
    this.output.expectAnswer(0)
    this.input.proceed()
  }

  over(goesOn: boolean, ease: Ease): void {
    this.output.expectAnswer(0)
    if (!goesOn) return this.#close()
    // Lanes are for connections that have one visitor only.
    if (ease !== 'none' && this.visitor.from === undefined) this.#lane ??= this.#front.laneFor(this.#site())
    this.#lane?.exchanged(ease)
    this.#nextRequest()
  }

  takeOver(takeover: Takeover): void {
    this.#phase = 'taken'
    this.#admitted?.release()
    this.#front.settled(this)
    this.#takeover = takeover.takeOver(this.#socket)
  }

  terminate(): void {
    this.#socket.terminate()
  }

  // ── Between and after requests ─────────────────────────────────────────────────────────────────────────────

  #nextRequest(): void {
    // The next request waits until the visitor took the response: a stalled visitor's requests would fill memory.
    if (!this.output.isEmpty) {
      this.#phase = 'flushing'
      return
    }
    const { limits, isShut } = this.#context
    if (isShut && limits.drainIdleMs === 0 && this.input.isEmpty) return this.#close()
    this.#phase = 'head'
    this.#idle.awaitRequest()
    this.input.proceed()
    // TypeScript does not know that bytes which arrived during the call may have begun the next visit.
    const isIdle = this.isHeadAwaited && this.input.isIdle
    if (isIdle && this.#lane?.isReady) this.#lend(this.#lane)
  }

  /** Responds to an invalid head with the page of `code`, and closes. */
  #refuseHead(code: ErrorCode): void {
    this.#front.refused(code)
    this.#visit.isRequestComplete = false
    this.output.write(errorAnswer(code, { head: false, keepAlive: false, host: '' }))
    this.#close()
  }

  /** Ends the exchange, also at the origin, because too many bytes wait, or for too long. */
  #cutOff(code: ErrorCode): void {
    this.#visit.cutOff(code)
    this.#socket.terminate()
  }

  /** Sends the remaining bytes, then FIN, and for a while reads and drops the visitor's bytes. */
  #close(): void {
    this.#phase = 'closing'
    this.#logins.close()
    this.input.clear()
    this.input.resume()
    this.input.leaveQueue()
    this.#idle.stop()
    if (this.#isStillSending) this.output.hurry(LINGER_MS)
    this.output.end()
    if (this.output.isEmpty) this.#linger()
  }

  /**
   * Waits while the visitor reads its last response, which a RST would destroy. A visitor that continues to send has less time.
   */
  #linger(): void {
    this.#phase = 'lingering'
    this.#front.settled(this)
    this.#idle.awaitLeave(this.#isStillSending ? LINGER_MS : this.#context.limits.idleTimeoutMs)
  }

  get #isStillSending(): boolean {
    return !this.#visit.isRequestComplete
  }

  // ── Lent ───────────────────────────────────────────────────────────────────────────────────────────────────

  #site(): LaneSite<RoutedRequest> {
    return {
      socket: this.#socket,
      offer: () => this.#front.lanes.offer(this.#visit.head, this.visitor.address),
      hop: rewrite => this.visitor.hop(rewrite),
      tracing: () => this.visitor.tracing,
      hostWithPort: () => this.#visit.head.hostWithPort,
      limits: () => this.#context.limits,
      isUndisturbed: () => this.#phase === 'lent' && this.input.isEmpty && !this.input.hasEnded,
      left: end => this.#returned(end),
    }
  }

  #lend(lane: VisitorShortcut<RoutedRequest>): void {
    if (!lane.isGranted()) return
    this.#phase = 'lent'
    this.#idle.stop()
    this.input.pause()
    lane.enter()
  }

  /** Serves bytes that a lane read and did not serve, as if they had arrived here. */
  #returned(end: LaneEnd | undefined): void {
    if (this.#phase !== 'lent') return
    this.#phase = 'head'
    if (end?.unsent !== undefined) this.output.write(end.unsent)
    if (end?.request === undefined) return this.#nextRequest()
    this.input.resume()
    this.input.handle(end.request)
  }
}
