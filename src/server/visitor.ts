// One visitor's HTTP/1.1 connection: frames requests strictly, routes each by its own Host, answers in order.

import { ERRORS, type ErrorCode } from '../errors.ts'
import { eventLoop } from '../event-loop.ts'
import { BodyFramer } from '../http/body.ts'
import type { Hop } from '../http/forward.ts'
import { parseRequestHead, RequestHead } from '../http/head.ts'
import { errorAnswer, wantsHtml } from '../http/pages.ts'
import type { Waiting } from '../session/turns.ts'
import type { LaneEnd, Socket, SocketHandler, Splice, SpliceDone } from '../socket.ts'
import { Unsent } from '../unsent.ts'
import type { Occupant, Seat } from './admission.ts'
import { type Deadline, TICKS_PER_SECOND } from './deadlines.ts'
import type { Holding, Takeover, VisitorHost, VisitRecord } from './front.ts'
import { HeadBuffer } from './head-buffer.ts'
import type { Exchange, Rewrite, Upstream, Visit } from './upstream.ts'
import { VisitorLane } from './visitor-lane.ts'

/** After FIN from the visitor an answer that makes no progress is given up: leaving and half-closing look alike. */
const HALF_CLOSE_GRACE_MS = 1_000
/** How long a refused visitor may go on sending before its connection is cut: a RST now could destroy the answer. */
const LINGER_MS = 2_000
/** Heads kept for the next connections: enough for those that come and go at once. */
const MAX_SPARE_HEADS = 256
/**
 * Requests that one connection has begun or refused in its turn, when more of them have arrived than are worked off at
 * once: a fifth of a millisecond, so that 200 such connections go around in 40.
 */
const HEADS_IN_A_TURN = 16
/** A body in chunks is looked through in such pieces: chunks of one byte take some 100 ns each. */
const CHUNKED_BYTES_AT_ONCE = 65_536
/** A read above this is only worked off at once when others have not used up the time. */
const SMALL_READ_BYTES = 16_384

type Phase =
  /** Waiting for a request, or for the rest of its head. */
  | 'head'
  /** As long as its requests are easy, they are served without the program. */
  | 'lane'
  /** An exchange is under way. */
  | 'exchange'
  /** The exchange switched protocols: bytes both ways. */
  | 'switched'
  /** Another protocol on the control host took the connection over. */
  | 'taken'
  /** The answer is complete, but the visitor has not taken all of it: its next request waits for that. */
  | 'flushing'
  /** The last answer is on its way out; what still arrives is dropped. */
  | 'closing'
  | 'closed'

/** A visitor's connection, and the `Visit` of the exchange that runs on it. */
export class VisitorConnection implements SocketHandler, Visit, Deadline, Occupant, Waiting {
  head: RequestHead
  readonly remoteAddress: string
  dueTick = 0
  /** Bytes of the answer under way, for reports. */
  answerBytes = 0
  answerStatus = 0
  /** What the server knows of the exchange under way. */
  readonly record: VisitRecord = {
    tunnel: undefined,
    isBelow: false,
    member: undefined,
    tried: undefined,
    client: undefined,
    report: 0,
    startedAt: 0,
  }
  /** Set where the request was routed. */
  answerLines: Uint8Array | undefined
  /** It takes no more requests. */
  isSettled = false
  readonly #socket: Socket
  readonly #host: VisitorHost
  readonly #seat: Seat | undefined
  /** When it began to wait for a request, or for the rest of its head. */
  #idleSinceTick: number
  readonly #framer: BodyFramer = new BodyFramer()
  readonly #input: HeadBuffer
  #phase: Phase = 'head'
  #exchange: Exchange | undefined
  /** An upstream is about to begin the exchange. */
  #isPutting = false
  /** Where the exchange goes when that fails at once. */
  #nextUpstream: Upstream | undefined
  #stopHolding: (() => void) | undefined
  #takeover: SocketHandler | undefined
  /** Bytes that the kernel did not take yet. */
  readonly #unsent: Unsent = new Unsent()
  /** The kernel moves bytes of the answer. */
  #moving: Splice | undefined
  #isUnderWay = false
  #isRequestComplete = false
  #isPaused = false
  /** More has arrived than could be done at once: it waits in `#input` for its turn, and nothing is read. */
  #isWaiting = false
  #hasVisitorEnded = false
  /** What arrived is being worked off: there may be more of it than `#input` knows of. */
  #isAdvancing = false
  /** After a switch: the origin sends no more, FIN follows what is unsent. */
  #hasOriginEnded = false
  /** What the deadline compares with: bytes of the answer so far, or bytes unsent. */
  #bytesAtLastLook = 0
  /** The head of the answer under way said that the connection goes on behind it. */
  #wasKept = false
  #hop: Hop | undefined
  #hopRewrite: Rewrite | undefined
  /** Once there was an easy request. */
  #lane: VisitorLane | undefined

  constructor(socket: Socket, host: VisitorHost, seat?: Seat) {
    this.#socket = socket
    this.#host = host
    this.#input = new HeadBuffer(host.heldInput)
    this.#seat = seat
    if (seat !== undefined) seat.occupant = this
    this.remoteAddress = socket.remoteAddress
    this.#idleSinceTick = host.deadlines.tick
    this.head = host.heads.pop() ?? new RequestHead()
    host.deadlines.watch(this)
    const { headTimeoutMs, drainIdleMs } = host.limits
    // A connection whose TLS handshake ends after the server began to stop has not seen `drain`.
    host.deadlines.arm(this, host.isDraining() ? Math.max(drainIdleMs, 1) : headTimeoutMs)
  }

  // ── From the socket ────────────────────────────────────────────────────────────────────────────────────────

  received(bytes: Uint8Array): void {
    if (this.#isWaiting) this.#input.add(bytes)
    else if (bytes.length > SMALL_READ_BYTES && this.#isParsing && !this.#host.turns.hasTime)
      this.#wait(bytes, 0)
    else this.#advance(bytes)
  }

  /** Its turn has come. */
  turn(): void {
    this.#isWaiting = false
    if (!this.#isPaused) this.#socket.resume()
    const { arrayBytes } = this.#input
    const rest = this.#input.take()
    if (rest !== undefined) this.#advance(rest, arrayBytes, HEADS_IN_A_TURN)
    else if (this.#hasVisitorEnded) this.#actOnEnd()
  }

  drained(): void {
    if (this.#phase === 'taken') return this.#takeover?.drained()
    const taken = this.#unsent.flush(this.#socket)
    if (taken > 0) this.#watchExchange()
    if (!this.#unsent.isEmpty) return
    if (this.#phase === 'closing') {
      this.#watchUnsent()
      this.#socket.end()
      this.#settle()
    } else if (this.#hasOriginEnded) this.#socket.end()
    else if (this.#phase === 'flushing') this.#nextRequest()
    else this.#exchange?.drained()
  }

  turnBegan(): void {
    if (this.#phase === 'taken') return this.#takeover?.turnBegan?.()
    if (this.#phase !== 'exchange' || this.#isRequestComplete || this.#isWaiting) return
    const exchange = this.#exchange
    exchange?.bodyFrom?.(this.#socket, this.#framer.leftBytes, movedBytes => {
      if (this.#exchange !== exchange) return
      this.#framer.skip(movedBytes)
      if (this.#framer.complete) this.#completeRequest()
    })
  }

  ended(): void {
    this.#hasVisitorEnded = true
    this.#actOnEnd()
  }

  /** The visitor sends no more, and all that it sent was worked off as far as that is possible now. */
  #actOnEnd(): void {
    if (this.#isWaiting) return
    switch (this.#phase) {
      case 'switched':
        return this.#exchange?.bodyEnded()
      case 'taken':
        return this.#takeover?.ended()
      case 'exchange':
        // A request cut short never completes; a complete one may still be answered.
        if (!this.#isRequestComplete && this.#stopHolding === undefined) return this.#socket.terminate()
        return this.#watchExchange()
      case 'head':
        return this.#close()
    }
  }

  closed(error?: Error): void {
    const { deadlines, heads } = this.#host
    deadlines.forget(this)
    this.#host.turns.forget(this)
    this.#unsent.clear()
    this.#input.clear()
    if (this.#phase === 'taken') this.#takeover?.closed(error)
    this.#phase = 'closed'
    this.#stopHolding?.()
    const exchange = this.#exchange
    this.#exchange = undefined
    exchange?.abandoned()
    this.#finish('CANCELLED')
    this.#lane?.giveUp()
    // A head in the middle of parsing (after 408, say) knows of this connection's bytes: the next one must not.
    this.head.reset()
    if (heads.length < MAX_SPARE_HEADS) heads.push(this.head)
    this.#host.left(this)
  }

  expired(): void {
    switch (this.#phase) {
      case 'head':
        if (!this.#input.isEmpty) return this.#refuse('HEAD_TIMEOUT')
        return this.#host.isDraining() ? this.#closeSoon() : this.#close()
      case 'exchange':
        if (this.#moving !== undefined) return this.#lookAtMoving(this.#moving)
        if (!this.#unsent.isEmpty) return this.#stalled()
        if (this.answerBytes === this.#bytesAtLastLook) return this.#socket.terminate()
        return this.#watchExchange()
      case 'switched':
        if (!this.#unsent.isEmpty) this.#stalled()
        return
      case 'flushing':
      case 'closing': {
        const unsentBytes = this.#unsent.length
        if (unsentBytes === 0 || unsentBytes === this.#bytesAtLastLook) return this.#socket.terminate()
        return this.#watchUnsent()
      }
    }
  }

  /** The server trusts others now. */
  forgetHop(): void {
    this.#hop = undefined
  }

  /**
   * The server stops: the next answer is the last one here. A connection that waits for a request closes once it has waited
   * for `drainIdleMs`. One in a lane comes back by itself.
   */
  drain(): void {
    if (this.#phase !== 'head' || this.#isWaiting) return
    const { deadlines, limits } = this.#host
    const waitedMs = ((deadlines.tick - this.#idleSinceTick) * 1_000) / TICKS_PER_SECOND
    const leftMs = limits.drainIdleMs - waitedMs
    if (leftMs > 0) deadlines.arm(this, leftMs)
    else this.expired()
  }

  /** What the kernel has for us already is still taken. */
  #closeSoon(): void {
    const isIdle = () => this.#phase === 'head' && this.#input.isEmpty
    eventLoop.soon(() => {
      if (isIdle()) eventLoop.soon(() => isIdle() && this.#close())
    })
  }

  terminate(): void {
    this.#socket.terminate()
  }

  /** The time is over. A last answer that is out of our hands still arrives, however slowly it is read. */
  letGo(): void {
    if (this.isSettled && this.#phase === 'closing' && this.#socket.letGo !== undefined) this.#socket.letGo()
    else this.#socket.terminate()
  }

  /** There is room for the control host's requests only, and the connection is not kept. */
  get isProvisional(): boolean {
    return this.#seat?.refusal !== undefined
  }

  /** Asks for room again: some may have left since it came. */
  isRefused(): boolean {
    return this.#seat?.isRefused() ?? false
  }

  /**
   * Half a head gives way, too, or visitors that send theirs byte by byte would keep all others out. So does a last answer
   * that has left. Requests that have arrived and wait for their turn do not.
   */
  giveWay(): boolean {
    if (this.#phase === 'closing' && this.#unsent.isEmpty) this.#socket.terminate()
    else if (this.#phase !== 'head' || this.#isWaiting || !this.#unsent.isEmpty) return false
    else if (this.#host.deadlines.tick - this.#idleSinceTick < TICKS_PER_SECOND) return false
    else this.#socket.terminate()
    return true
  }

  // ── Requests ───────────────────────────────────────────────────────────────────────────────────────────────

  /** What arrives is looked at, not only passed on or kept. */
  get #isParsing(): boolean {
    if (this.#phase === 'head') return true
    return this.#phase === 'exchange' && !this.#isRequestComplete && this.#stopHolding === undefined
  }

  /**
   * Takes what arrived, whatever mixture of heads, bodies and further requests it is: `heads` of them, and more if there is
   * time in this turn of the event loop. The rest waits. `bytes` may be a view of an array of `arrayBytes`.
   */
  #advance(bytes: Uint8Array, arrayBytes: number = bytes.length, heads = 1): void {
    this.#isAdvancing = true
    const { turns } = this.#host
    let at = 0
    let headsLeft = heads
    while (at < bytes.length) {
      const isHead = this.#phase === 'head'
      const mayGoOn = at === 0 || !this.#isParsing || (isHead && headsLeft > 0) || turns.hasTime
      if (!mayGoOn) {
        this.#wait(bytes, at, arrayBytes)
        break
      }
      if (isHead) headsLeft--
      at = this.#take(bytes, at, arrayBytes)
    }
    this.#isAdvancing = false
    if (this.#hasVisitorEnded) this.#actOnEnd()
  }

  /** What has not been looked at waits for its turn. */
  #wait(bytes: Uint8Array, at: number, arrayBytes: number = bytes.length): void {
    this.#isWaiting = true
    if (!this.#isPaused) this.#socket.pause()
    if (this.#phase === 'head') this.#host.deadlines.disarm(this)
    this.#input.adopt(bytes, at, arrayBytes)
    this.#boundInput()
    this.#host.turns.wait(this)
  }

  #stopWaiting(): void {
    if (!this.#isWaiting) return
    this.#isWaiting = false
    this.#host.turns.forget(this)
    if (!this.#isPaused) this.#socket.resume()
  }

  /** Takes what the phase is about from `bytes` at `at`. Returns where to go on. */
  #take(bytes: Uint8Array, at: number, arrayBytes: number): number {
    switch (this.#phase) {
      case 'head':
        return this.#takeHead(bytes, at)
      case 'exchange':
        return this.#takeBody(bytes, at, arrayBytes)
      case 'flushing':
      case 'lane':
        return this.#keepForLater(bytes, at, arrayBytes)
      case 'switched':
        this.#exchange?.body(at === 0 ? bytes : bytes.subarray(at))
        break
      case 'taken':
        this.#takeover?.received(at === 0 ? bytes : bytes.subarray(at))
    }
    return bytes.length
  }

  /** Reads a head from `bytes` at `at` and begins its exchange. Returns where to go on. */
  #takeHead(bytes: Uint8Array, at: number): number {
    const before = this.#input.length
    if (before === 0) {
      const { deadlines, limits } = this.#host
      deadlines.arm(this, limits.headTimeoutMs)
      this.#idleSinceTick = deadlines.tick
    }
    const pending = this.#input.with(at === 0 ? bytes : bytes.subarray(at))
    const end = parseRequestHead(this.head, pending, 0, pending.length, this.#host.limits)
    if (end === 0) {
      this.#input.keep(pending)
      if (this.#keepsTooMuch) {
        this.#refuse('BUFFERS_FULL')
        return bytes.length
      }
      if (before === 0 && this.#host.isDraining()) this.drain()
      return bytes.length
    }
    this.#input.clear()
    if (end === -1) {
      this.#refuse(this.head.refusal)
      return bytes.length
    }
    this.#begin()
    return at + end - before
  }

  #begin(): void {
    const { head } = this
    const { limits, deadlines } = this.#host
    this.#phase = 'exchange'
    this.#isRequestComplete = false
    this.answerBytes = 0
    this.answerStatus = 0
    this.answerLines = undefined
    this.#isUnderWay = true
    this.#framer.begin(head.body, head.contentLength)
    deadlines.disarm(this)
    this.#host.begun(this)
    if (limits.maxBodyBytes > 0 && head.contentLength > limits.maxBodyBytes)
      return this.fail('BODY_TOO_LARGE')
    const unfinishedAt = this.#lane?.unfinishedAt(this)
    if (unfinishedAt !== undefined) return this.#start(unfinishedAt)
    const route = this.#host.route(this)
    if (typeof route !== 'string' && 'hold' in route) this.#hold(route)
    else this.#follow(route)
  }

  #follow(route: Upstream | Takeover | ErrorCode): void {
    if (typeof route === 'string') return this.fail(route)
    if (!('takeOver' in route)) return this.#start(route)
    this.#finish(undefined)
    this.#phase = 'taken'
    this.#seat?.release()
    this.#settle()
    this.#takeover = route.takeOver(this.#socket)
  }

  #start(upstream: Upstream): void {
    if (this.#put(upstream) !== undefined && this.#framer.complete) this.#completeRequest()
  }

  /** Puts the exchange on an upstream, or on the next one if it cannot begin there. `undefined`: it is over already. */
  #put(upstream: Upstream): Exchange | undefined {
    this.#isPutting = true
    this.#nextUpstream = undefined
    const exchange = this.#lane?.begin(upstream, this) ?? upstream.begin(this)
    this.#isPutting = false
    if (this.#nextUpstream !== undefined) return this.#put(this.#nextUpstream)
    // It may have failed at once, and the connection gone on to the next request.
    if (this.#phase !== 'exchange') return undefined
    this.#exchange = exchange
    return exchange
  }

  /** The request goes to another upstream from its beginning, as if it had just come. */
  #putAgain(upstream: Upstream, pieces: readonly Uint8Array[]): void {
    this.#exchange = undefined
    // What the old upstream wanted to wait for is gone; the new one may want to wait at once.
    this.resume()
    const exchange = this.#put(upstream)
    if (exchange === undefined) return
    for (const piece of pieces) exchange.body(piece)
    if (this.#isRequestComplete) exchange.bodyEnded()
  }

  /** The request waits, unread beyond its head. */
  #hold(holding: Holding): void {
    this.pause()
    const outcome = holding.hold(route => {
      this.#stopHolding = undefined
      if (typeof route === 'string') return this.fail(route)
      const { arrayBytes } = this.#input
      const rest = this.#input.take()
      this.resume()
      this.#follow(route)
      if (rest !== undefined) this.#advance(rest, arrayBytes)
    })
    if (typeof outcome === 'string') this.fail(outcome)
    else this.#stopHolding = outcome
  }

  /** Reads body from `bytes` at `at`. Returns where to go on. */
  #takeBody(bytes: Uint8Array, at: number, arrayBytes: number): number {
    if (this.#isRequestComplete || this.#stopHolding !== undefined)
      return this.#keepForLater(bytes, at, arrayBytes)
    const most = this.head.body === 'chunked' ? at + CHUNKED_BYTES_AT_ONCE : bytes.length
    const end = this.#framer.feed(bytes, at, Math.min(most, bytes.length))
    const { maxBodyBytes } = this.#host.limits
    if (end === -1 || (maxBodyBytes > 0 && this.#framer.payloadBytes > maxBodyBytes)) {
      this.#breakOff(end === -1 ? 'BAD_REQUEST' : 'BODY_TOO_LARGE')
      return bytes.length
    }
    this.#exchange?.body(at === 0 && end === bytes.length ? bytes : bytes.subarray(at, end))
    if (this.#framer.complete && this.#phase === 'exchange') this.#completeRequest()
    return end
  }

  #completeRequest(): void {
    this.#isRequestComplete = true
    this.#exchange?.bodyEnded()
  }

  /** What came before its turn is kept in bounds; then reading stops. */
  #keepForLater(bytes: Uint8Array, at: number, arrayBytes: number): number {
    this.#input.adopt(bytes, at, arrayBytes)
    this.#boundInput()
    if (this.#input.length > this.#host.limits.maxPipelinedBytes) this.pause()
    return bytes.length
  }

  /** All visitors together have the server keep too much, and this one has more than its share. */
  get #keepsTooMuch(): boolean {
    return this.#host.heldInput.isTooMuch(this.#input.arrayBytes, this.#host.limits.maxAllInputBytes)
  }

  /** Requests ahead of their turn have no answer that could say why: the connection ends. */
  #boundInput(): void {
    if (this.#keepsTooMuch) eventLoop.soon(() => this.#keepsTooMuch && this.#stalled('BUFFERS_FULL'))
  }

  /** The request went wrong in the middle: the exchange ends, the visitor learns why if it still can. */
  #breakOff(code: ErrorCode): void {
    const exchange = this.#exchange
    this.#exchange = undefined
    exchange?.abandoned()
    this.fail(code)
  }

  // ── Visit: what the upstream does ──────────────────────────────────────────────────────────────────────────

  hop(rewrite: Rewrite | undefined): Hop {
    if (this.#hop === undefined || this.#hopRewrite !== rewrite) {
      this.#hopRewrite = rewrite
      this.#hop = {
        address: this.remoteAddress,
        proto: this.#host.proto,
        trusted: this.#host.isTrusted(this.remoteAddress),
        hostHeader: rewrite?.host ?? '',
        origin: rewrite?.origin ?? '',
      }
    }
    return this.#hop
  }

  get hstsLine(): Uint8Array | undefined {
    return this.#host.hstsLine()
  }

  /** Bytes of the request under way: its head, and of its body what arrived. */
  get requestBytes(): number {
    return this.head.end - this.head.start + this.#framer.payloadBytes
  }

  get keepsAlive(): boolean {
    if (!this.head.keepAlive || this.#isLast || this.isProvisional) return false
    // A request that is here already is still served, however soon the server stops.
    return !this.#host.isDraining() || !this.#input.isEmpty
  }

  /** Whether no request can follow: the visitor sent FIN, and all that came before it was worked off. */
  get #isLast(): boolean {
    return this.#hasVisitorEnded && this.#input.isEmpty && !this.#isAdvancing
  }

  write(bytes: Uint8Array, isScratch = false, start = 0, end: number = bytes.length): boolean {
    const count = end - start
    this.answerBytes += count
    const isFirst = this.#unsent.isEmpty
    if (this.#unsent.send(this.#socket, bytes, isScratch, start, end) === count) return true
    if (isFirst) this.#watchExchange()
    this.#chargeUnsent()
    return false
  }

  /** What waits counts for the token whose client sent it. One answer too many ends, but not while its upstream writes. */
  #chargeUnsent(): void {
    const holder = this.record.member?.holder
    this.#unsent.account = holder
    if (holder?.isOver === true) eventLoop.soon(() => this.#stalled('BUFFERS_FULL'))
  }

  writeFrom(from: Socket, limitBytes: number, done: SpliceDone): Splice | undefined {
    if (this.#phase !== 'exchange' || !this.#unsent.isEmpty) return undefined
    this.#moving = from.spliceTo?.(this.#socket, limitBytes, movedBytes => {
      this.#moving = undefined
      this.answerBytes += movedBytes
      this.#watchExchange()
      done(movedBytes)
    })
    if (this.#moving !== undefined) this.#watchExchange()
    return this.#moving
  }

  answered(status: number): void {
    this.answerStatus = status
    this.#wasKept = this.keepsAlive
  }

  switched(): void {
    this.#phase = 'switched'
    this.#host.switched(this)
    this.#watchExchange()
    const rest = this.#input.take()
    this.resume()
    if (rest !== undefined) this.#exchange?.body(rest)
    if (this.#hasVisitorEnded) this.#exchange?.bodyEnded()
  }

  endAnswer(): void {
    this.#hasOriginEnded = true
    if (this.#unsent.isEmpty) this.#socket.end()
  }

  done(keepAlive: boolean, cameWhole = false): void {
    this.#exchange = undefined
    this.#finish(undefined)
    // What the answer said counts: the visitor may have sent its next request by now.
    const mayGoOn = keepAlive && this.#wasKept && this.#isRequestComplete && this.#phase === 'exchange'
    if (!mayGoOn) return this.#close()
    const isEasy = cameWhole && this.head.method === 'GET' && this.head.body === 'none'
    if (isEasy) this.#lane ??= new VisitorLane(() => this.#mayHaveLane)
    this.#lane?.exchanged(isEasy)
    this.#nextRequest()
  }

  fail(code: ErrorCode, again?: readonly Uint8Array[]): void {
    if (this.#phase === 'closed' || this.#phase === 'closing') return
    if (again !== undefined && this.answerBytes === 0) {
      const upstream = this.#host.elsewhere(this, code)
      if (upstream !== undefined) {
        if (!this.#isPutting) return this.#putAgain(upstream, again)
        this.#nextUpstream = upstream
        return
      }
    }
    this.#exchange = undefined
    if (this.answerStatus === 0) return this.#refuse(code)
    this.#finish(code)
    // After the head of an answer a page would be taken for its body.
    this.#socket.terminate()
  }

  pause(): void {
    if (this.#isPaused) return
    this.#isPaused = true
    if (!this.#isWaiting) this.#socket.pause()
  }

  resume(): void {
    if (!this.#isPaused || this.#input.length > this.#host.limits.maxPipelinedBytes) return
    this.#isPaused = false
    if (!this.#isWaiting) this.#socket.resume()
  }

  // ── Between and after requests ─────────────────────────────────────────────────────────────────────────────

  #finish(code: ErrorCode | undefined): void {
    if (!this.#isUnderWay) return
    this.#isUnderWay = false
    this.#host.finished(this, code)
  }

  #nextRequest(): void {
    // Requests are served only as fast as their answers are taken: those of a stalled visitor would pile up here.
    if (!this.#unsent.isEmpty) {
      this.#phase = 'flushing'
      return this.#watchUnsent()
    }
    const { deadlines, limits } = this.#host
    const isDraining = this.#host.isDraining()
    if (isDraining && limits.drainIdleMs === 0 && this.#input.isEmpty) return this.#close()
    this.#phase = 'head'
    this.#idleSinceTick = deadlines.tick
    deadlines.arm(this, isDraining ? Math.max(limits.drainIdleMs, 1) : limits.idleTimeoutMs)
    const { arrayBytes } = this.#input
    const rest = this.#input.take()
    this.resume()
    if (rest !== undefined) this.#advance(rest, arrayBytes)
    else if (this.#isLast) this.#close()
    else if (this.#lane?.isReady && !this.#isAdvancing) this.#enterLane(this.#lane)
  }

  get #mayHaveLane(): boolean {
    return this.#host.laneTerms(this) !== undefined && this.#socket.canEnterLane?.() === true
  }

  #enterLane(lane: VisitorLane): void {
    const { limits, deadlines } = this.#host
    const grant = this.#host.laneTerms(this)
    if (grant === undefined) return lane.giveUp()
    this.#phase = 'lane'
    deadlines.disarm(this)
    this.pause()
    lane.enter(
      this.#socket,
      grant,
      rewrite => ({
        era: grant.era,
        since: grant.since,
        hostWithPort: this.head.hostWithPort,
        hop: this.hop(rewrite),
        limits,
        isTold: grant.isTold,
      }),
      () => this.#phase === 'lane' && this.#input.isEmpty && !this.#hasVisitorEnded,
      end => this.#leaveLane(end),
    )
  }

  /** What the lane read and did not serve is served here, as if it had been read here. */
  #leaveLane(end: LaneEnd | undefined): void {
    if (this.#phase !== 'lane') return
    this.#phase = 'head'
    if (end?.unsent !== undefined) this.#unsent.send(this.#socket, end.unsent)
    if (end?.request === undefined) return this.#nextRequest()
    this.resume()
    this.#advance(end.request)
  }

  /** Answers with the page of `code` and closes, unless the connection is still sound. */
  #refuse(code: ErrorCode): void {
    const wasUnderstood = this.#phase === 'exchange'
    // Who wanted to switch protocols has no other request to send.
    const mayGoOn = wasUnderstood && this.head.body === 'none' && this.head.upgrade === ''
    const keepAlive = mayGoOn && this.keepsAlive
    const page = errorAnswer(code, {
      html: wasUnderstood && wantsHtml(this.head),
      head: wasUnderstood && this.head.method === 'HEAD',
      keepAlive,
      host: wasUnderstood ? this.head.host : '',
    })
    this.answerStatus = ERRORS[code].status
    this.write(page)
    this.#finish(code)
    if (keepAlive) return this.#nextRequest()
    this.#isRequestComplete &&= wasUnderstood
    this.#close()
  }

  /** What bounds an exchange: bytes that the visitor does not take, or FIN and then silence. */
  #watchExchange(): void {
    const { deadlines, limits } = this.#host
    const isExchange = this.#phase === 'exchange'
    if (!isExchange && this.#phase !== 'switched') return
    if (this.#moving !== undefined) this.#bytesAtLastLook = this.#moving.movedBytes
    if (this.#moving !== undefined || !this.#unsent.isEmpty) return deadlines.arm(this, limits.sendTimeoutMs)
    if (!isExchange || !this.#hasVisitorEnded) return deadlines.disarm(this)
    this.#bytesAtLastLook = this.answerBytes
    deadlines.arm(this, HALF_CLOSE_GRACE_MS)
  }

  /** What is between the sockets is taken, or the origin has sent no more: the visitor is not to blame. */
  #lookAtMoving({ movedBytes, takenBytes }: Splice): void {
    if (takenBytes > movedBytes && movedBytes === this.#bytesAtLastLook) this.#stalled()
    else this.#watchExchange()
  }

  /** Nothing of what waits was taken for too long: the exchange ends, on the origin's side too. */
  #stalled(code: ErrorCode = 'VISITOR_STALLED'): void {
    this.#finish(code)
    this.#socket.terminate()
  }

  /** Sends what is left, then FIN; what the visitor still sends is read and dropped for a while. */
  #close(): void {
    this.#phase = 'closing'
    this.#input.clear()
    this.resume()
    this.#stopWaiting()
    this.#watchUnsent()
    if (!this.#unsent.isEmpty) return
    this.#socket.end()
    this.#settle()
  }

  #settle(): void {
    if (this.isSettled) return
    this.isSettled = true
    this.#host.settled(this)
  }

  /**
   * The visitor has time to take what is on its way to it, here and in the kernel, which a RST would destroy. One that
   * goes on sending what nobody wants has less.
   */
  #watchUnsent(): void {
    const isSending = this.#phase === 'closing' && !this.#isRequestComplete
    this.#bytesAtLastLook = this.#unsent.length
    const { idleTimeoutMs, sendTimeoutMs } = this.#host.limits
    const waitMs = this.#unsent.isEmpty ? idleTimeoutMs : sendTimeoutMs
    this.#host.deadlines.arm(this, isSending ? LINGER_MS : waitMs)
  }
}
