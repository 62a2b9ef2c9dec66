// One visitor's HTTP/3 connection: its limits, its idle time and its end. Each of its streams is a visit.

import { Allowance } from '../../http/allowance.ts'
import * as Code from '../../http2/error-codes.ts'
import type { FieldList } from '../../http2/field-list.ts'
import type { AdmittedVisitor, Entrance, HttpShare, Visitor } from '../../server/contracts/protocol.ts'
import type { Occupant } from '../../server/limits/admission.ts'
import { type Deadlines, IdleTime, TICKS_PER_SECOND } from '../../server/limits/deadlines.ts'
import { VisitorHop } from '../../server/limits/visitor-hop.ts'
import type { Bounds } from '../../server/settings/bounds.ts'
import type { MultiplexedConnection } from '../http2/multiplexed.ts'
import { StreamChannel } from '../http2/stream-channel.ts'
import { FIELD_BYTES } from './fields.ts'
import type { QuicSession, QuicStream } from './quic.ts'
import { HELD_BYTES, Http3Stream } from './stream.ts'

/** The code H3_EXCESSIVE_LOAD (RFC 9114 section 8.1). */
const EXCESSIVE_LOAD = 0x107
/** The number of ticks until given-up requests are forgotten, as for HTTP/2: four seconds. */
const TICKS_TO_REFILL = 4 * TICKS_PER_SECOND

export class Http3Connection implements Visitor, Occupant, MultiplexedConnection {
  readonly front: HttpShare
  readonly visitor: VisitorHop
  readonly isCertified = false
  /** The maximum size of the fields of a head, or of trailers. */
  readonly maxListBytes: number
  readonly #session: QuicSession
  readonly #admitted: AdmittedVisitor | undefined
  readonly #streams = new Set<Http3Stream>()
  readonly #resets: Allowance
  readonly #idle: IdleTime
  #isClosing = false
  #isOver = false

  constructor(
    session: QuicSession,
    front: HttpShare,
    entrance: Entrance,
    address: string,
    admitted: AdmittedVisitor | undefined,
  ) {
    this.#session = session
    this.front = front
    this.#admitted = admitted
    if (admitted !== undefined) admitted.occupant = this
    this.visitor = new VisitorHop(entrance, address)
    const { maxHttp2Resets, maxHeadBytes, maxHeaderCount } = front.limits
    this.maxListBytes = maxHeadBytes + FIELD_BYTES * maxHeaderCount
    this.#resets = new Allowance(maxHttp2Resets, Math.ceil(maxHttp2Resets / TICKS_TO_REFILL))
    this.#idle = new IdleTime(front, () => this.#close())
    this.#idle.awaitRequest()
    session.onstream = stream => this.opened(stream as unknown as QuicStream)
    session.closed.then(
      () => this.#closed(),
      () => this.#closed(),
    )
    if (front.isShut) this.drain()
  }

  get limits(): Bounds {
    return this.front.limits
  }

  get deadlines(): Deadlines {
    return this.front.deadlines
  }

  opened(quic: QuicStream): void {
    this.#idle.stop()
    this.#streams.add(new Http3Stream(this, quic))
  }

  // ── From its streams ───────────────────────────────────────────────────────────────────────────────────────

  /** Called with a head. `bodyBytes`: the announced length of the body, -1 without one. */
  requested(stream: Http3Stream, fields: FieldList, isLast: boolean, bodyBytes: number): void {
    const channel = new StreamChannel(this, stream)
    if (bodyBytes > HELD_BYTES) channel.refuse('HTTP3_BODY_TOO_LARGE')
    else channel.begin(fields, isLast)
  }

  /** Called when the stream is closed. `isGivenUp`: by a reset, or because of the visitor's fault. */
  left(stream: Http3Stream, isGivenUp: boolean): void {
    if (!this.#streams.delete(stream)) return
    if (isGivenUp && !this.#isOver) this.#countReset()
    if (this.#streams.size > 0 || this.#isOver) return
    if (this.#isClosing) this.front.settled(this)
    else this.#idle.awaitRequest()
  }

  /** Counts a reset as a new connection of the address, because a visitor can open the next connection at little cost. */
  #countReset(): void {
    if (this.#resets.spend(1, this.deadlines.tick) && this.#admitted?.mayGiveUp() !== false) return
    this.#destroy(EXCESSIVE_LOAD)
  }

  // ── MultiplexedConnection ──────────────────────────────────────────────────────────────────────────────────

  isRefused(): boolean {
    return this.#admitted?.isRefused() ?? false
  }

  takesRequest(): (() => void) | undefined {
    return this.#admitted === undefined ? () => {} : this.#admitted.takesRequest()
  }

  filled(): void {}

  // ── The end ────────────────────────────────────────────────────────────────────────────────────────────────

  forgetHop(): void {
    this.visitor.forget()
  }

  drain(): void {
    this.#close()
  }

  letGo(): void {
    this.#destroy(0x100)
  }

  giveWay(): boolean {
    const isDone = this.#streams.size === 0 && this.#idle.isLong
    if (isDone) this.#destroy(0x100)
    return isDone
  }

  /** Sends GOAWAY. Open requests continue to their end. */
  #close(): void {
    if (this.#isClosing || this.#isOver) return
    this.#isClosing = true
    this.#idle.stop()
    this.#session.close().catch(() => {})
    if (this.#streams.size === 0) this.front.settled(this)
  }

  #destroy(code: number): void {
    if (this.#isOver) return
    this.#session.destroy(undefined, { code, type: 'application' })
    this.#closed()
  }

  #closed(): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#idle.close()
    const unanswered = [...this.#streams].filter(stream => !stream.isAnswerEnded).length
    if (unanswered > 0) this.#admitted?.gaveUp(unanswered)
    for (const stream of [...this.#streams]) {
      const { handler } = stream
      stream.cut(Code.CANCEL)
      handler.reset()
    }
    this.#admitted?.left()
    this.front.left(this)
  }
}
