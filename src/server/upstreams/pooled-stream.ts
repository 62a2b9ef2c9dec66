// One stream of the pool between exchanges: idle, reserved for one visitor, or lent to a lane.

import type { LaneEnd, LaneTerms } from '../../accelerator.ts'
import type { ErrorCode } from '../../errors.ts'
import type { RequestHead } from '../../http/head.ts'
import type { ByteStream, StreamHandler } from '../../session/byte-stream.ts'
import type { Socket, Splice, SpliceDone } from '../../socket.ts'
import type { LaneEvents, Reserved } from '../contracts/lane.ts'
import { DEAD_EXCHANGE, type Exchange, type Rewrite, type Visit } from '../contracts/upstream.ts'
import type { ConnectionLogins, Kept } from '../limits/connection-logins.ts'
import type { Deadline } from '../limits/deadlines.ts'
import type { Taker, Takers } from '../limits/takers.ts'
import { StreamExchange } from './stream-exchange.ts'
import type { StreamsContext, StreamsUpstream } from './streams.ts'

/** The time in milliseconds for which a lane may be idle before the connection is returned. */
const LANE_IDLE_MS = 1_000
/** The time in milliseconds for the origin to end a stream after this side ended it. */
const RETIRE_MS = 5_000

type Phase =
  | 'idle'
  /** A lane serves one visitor on the stream, or is about to. */
  | 'lent'
  | 'exchange'
  /** This side ended the stream; the origin has a moment to end it as well. */
  | 'retiring'
  | 'closed'

export class PooledStream implements StreamHandler, Reserved, Deadline, Taker, Kept {
  dueTick = 0
  /** Whether an exchange was completed on the stream before, so that the origin may have closed it since. */
  isReused = false
  /** The visitor that used the stream last, or uses it now. */
  visitor: string
  /** Whether the stream carries HTTP/1.1 to an app that otherwise gets HTTP/2: for one WebSocket. */
  isApart = false
  /** Whether the app asked for a login of the connection, or accepted one. */
  isPrivate = false
  /** The connection whose logins the stream carries. `undefined` if none can have it again. */
  logins: ConnectionLogins | undefined
  readonly #pool: StreamsUpstream
  readonly #context: StreamsContext
  readonly #takers: Takers
  readonly #exchange: StreamExchange
  #stream: ByteStream | undefined
  #phase: Phase = 'idle'
  /** Whether the stream is reserved for one visitor. */
  #isReserved = false
  #lane: { stop(): void } | undefined
  /** Whether a lane sent the request that comes next. */
  #wasAsked = false

  constructor(pool: StreamsUpstream, context: StreamsContext, takers: Takers, visitor: string) {
    this.#pool = pool
    this.#context = context
    this.#takers = takers
    this.visitor = visitor
    this.#exchange = new StreamExchange(this, context)
  }

  /** Opens the stream. `undefined` when the session has no room or is gone. */
  open(isApart: boolean): ByteStream | undefined {
    const { session, apps, tunnel, idle, isStopped } = this.#context
    this.isApart = isApart
    const way = isApart ? session : (apps ?? session)
    this.#stream = isStopped ? undefined : idle.open(way, tunnel, this, this.visitor, this.#takers)
    if (this.#stream !== undefined) this.#context.server.deadlines.watch(this)
    return this.#stream
  }

  /** Starts a visit's exchange on the stream, by sending its head. */
  begin(visit: Visit): Exchange {
    if (this.#stream === undefined) {
      visit.fail('CLIENT_GONE')
      return DEAD_EXCHANGE
    }
    const wasAsked = this.#wasAsked
    this.#wasAsked = false
    this.#phase = 'exchange'
    this.#exchange.begin(visit, this.#stream, wasAsked)
    return this.#exchange
  }

  // ── From the stream ────────────────────────────────────────────────────────────────────────────────────────

  received(bytes: Uint8Array, start: number, end: number): void {
    if (this.#phase === 'exchange') return this.#exchange.received(bytes, start, end)
    if (this.#phase !== 'idle' && this.#phase !== 'lent') return
    // A response without a request could only mislead the next visitor.
    this.#pool.dropIdle(this)
    this.#reset('PROTOCOL_ERROR')
  }

  receivedFrom(from: Socket, limitBytes: number, done: SpliceDone): Splice | undefined {
    return this.#exchange.receivedFrom(from, limitBytes, done)
  }

  writable(): void {
    this.#exchange.writable()
  }

  ended(delivered: number): void {
    switch (this.#phase) {
      case 'idle':
      case 'lent':
        this.#pool.dropIdle(this)
        return this.retire()
      case 'exchange':
        return this.#exchange.ended(delivered)
      case 'retiring':
        return this.#close()
    }
  }

  reset(code: ErrorCode, delivered: number, reason?: string): void {
    this.#stream = undefined
    if (this.#phase === 'exchange') return this.#exchange.reset(code, delivered, reason)
    if (this.#phase === 'idle') this.#pool.dropIdle(this)
    this.#close()
  }

  /** Called when the stream was idle for too long, or the origin took too long for a response head or to end the stream. */
  expired(): void {
    switch (this.#phase) {
      case 'idle':
        this.#pool.dropIdle(this)
        return this.retire()
      case 'exchange':
        return this.#exchange.originTimedOut()
      case 'retiring':
        return this.discard()
    }
  }

  /** Ends the idle stream, because another one of the client needs its place. */
  giveWay(): void {
    if (this.#phase === 'exchange') return this.#exchange.giveWay()
    this.#lane?.stop()
    this.#pool.dropIdle(this)
    this.discard()
  }

  leave(): void {
    this.#pool.dropIdle(this)
    this.retire()
  }

  // ── From its exchange ──────────────────────────────────────────────────────────────────────────────────────

  /** Calls `originTimedOut` after `ms`; 0: never. Replaces an earlier call. */
  expectAnswer(ms: number): void {
    this.#context.server.deadlines.arm(this, ms)
  }

  /** Reserves the stream for this visitor's connection. With `undefined`, it serves no further exchange. */
  becomePrivate(logins: ConnectionLogins | undefined): void {
    this.isPrivate = true
    this.logins = logins
    if (logins !== undefined) logins.hasBegun = true
  }

  /** Opens a new stream in place of the one that failed. `undefined` if the session has no room, or is gone. */
  reopen(head: RequestHead): ByteStream | undefined {
    this.#stream?.reset('CANCELLED')
    this.isReused = false
    return this.open(goesApart(head, this.#context))
  }

  /** Called when the exchange is over and the stream can be used again. */
  giveBack(): void {
    // The next request of the pool uses HTTP/2.
    if (this.isApart) return this.retire()
    this.#phase = 'idle'
    this.isReused = true
    // A visitor's connection has an idle timeout of its own.
    this.#context.server.deadlines.arm(this, this.isPrivate ? 0 : this.#context.server.limits.streamIdleMs)
    this.#returnToPool()
  }

  /** Ends the stream in good order: the origin sees FIN rather than a failure. */
  retire(): void {
    const stream = this.#stream
    if (stream === undefined) return this.#close()
    this.#phase = 'retiring'
    stream.end()
    if (stream.isClosed) this.#close()
    else this.#context.server.deadlines.arm(this, RETIRE_MS)
  }

  /** Resets the stream, because the exchange left it in an unusable state. */
  discard(): void {
    this.#reset('CANCELLED')
  }

  #returnToPool(): void {
    if (!this.#isReserved) this.#pool.release(this)
  }

  #reset(code: ErrorCode): void {
    this.#stream?.reset(code)
    this.#close()
  }

  #close(): void {
    if (this.#phase === 'closed') return
    this.#phase = 'closed'
    this.#stream = undefined
    this.#context.server.deadlines.forget(this)
    this.#pool.closed(this)
  }

  // ── For one visitor alone ──────────────────────────────────────────────────────────────────────────────────

  reserve(): void {
    this.#isReserved = true
  }

  release(): void {
    this.#isReserved = false
    this.#lane?.stop()
    if (this.#phase === 'lent' || this.#wasAsked) this.discard()
    else if (this.#phase === 'idle') this.#returnToPool()
  }

  get rewrite(): Rewrite | undefined {
    return this.#context.rewrite
  }

  get isOpen(): boolean {
    return this.#phase !== 'closed' && this.#phase !== 'retiring'
  }

  get isLendable(): boolean {
    return this.#phase === 'idle' && !this.isPrivate && this.#stream?.lendable?.isAtRest === true
  }

  lend(visitor: Socket, terms: LaneTerms, events: LaneEvents): void {
    const stream = this.#stream?.lendable
    const { lanes, server } = this.#context
    if (stream === undefined || lanes === undefined) return events.ended(undefined)
    this.#phase = 'lent'
    server.deadlines.disarm(this)
    this.#lane = lanes.lend(stream, visitor, terms, events, end => this.#returned(end))
  }

  #returned(end: LaneEnd | undefined): void {
    this.#lane = undefined
    if (this.#phase !== 'lent') return
    if (end?.isTorn) return this.discard()
    this.#phase = 'idle'
    this.#wasAsked = end?.isAsked === true
    const { deadlines, limits } = this.#context.server
    // The stream has already used a part of its idle time.
    if (limits.streamIdleMs > 0) deadlines.arm(this, Math.max(1, limits.streamIdleMs - LANE_IDLE_MS))
  }
}

/** Whether this request needs HTTP/1.1 although the app gets HTTP/2 otherwise. */
export function goesApart(head: RequestHead, { apps }: StreamsContext): boolean {
  return head.upgrade === 'websocket' && apps?.sendsUpgradesApart === true
}
