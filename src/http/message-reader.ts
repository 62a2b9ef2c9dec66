// Reads one direction of an HTTP/1.1 connection: a head, in any number of pieces, the body after it, and the next head.

import { ByteBuffer } from '../bytes.ts'
import type { AnswerLimits } from './answer-head.ts'
import { BodyFramer, type Payload } from './body.ts'
import { type HeadLimits, parseRequestHead, parseResponseHead, RequestHead, ResponseHead } from './head.ts'

abstract class MessageReader<Head extends RequestHead | ResponseHead, Limits> {
  /** The last head, complete or not. */
  readonly head: Head
  /** The body after the last head. */
  readonly body: BodyFramer
  /** The stored beginning of an incomplete head. */
  readonly #begun: ByteBuffer

  /** Makes a reader. `begun` stores the beginning of a head, and nothing else during that time. */
  constructor(head: Head, body: BodyFramer, begun: ByteBuffer) {
    this.head = head
    this.body = body
    this.#begun = begun
  }

  /**
   * Reads a head that begins or continues at bytes[start, end). Returns the index after it, and `body` frames what follows; 0 if
   * the head is incomplete, and the reader keeps a copy; -1 if it is invalid. `method`, for a response: that of the request.
   */
  readHead(bytes: Uint8Array, start: number, end: number, limits: Limits, method = ''): number {
    const begun = this.#begun
    const before = begun.length
    let at: number
    if (before === 0) {
      at = this.parse(bytes, start, end, limits, method)
      if (at === 0) begun.add(bytes, start, end)
    } else {
      begun.add(bytes, start, end)
      const all = begun.all
      at = this.parse(all, 0, all.length, limits, method)
      if (at !== 0) begun.clear()
      if (at > 0) at += start - before
    }
    if (at > 0) this.body.begin(this.head.body, this.head.contentLength)
    return at
  }

  protected abstract parse(
    bytes: Uint8Array,
    start: number,
    end: number,
    limits: Limits,
    method: string,
  ): number

  /** The number of bytes of an incomplete head. */
  get begunBytes(): number {
    return this.#begun.length
  }

  /** Forgets an incomplete head. */
  reset(): void {
    this.head.reset()
    this.#begun.clear()
  }
}

/** Reads requests. `payload` and `trailer` are those of `BodyFramer`. */
export class RequestReader extends MessageReader<RequestHead, HeadLimits> {
  constructor(
    payload?: Payload,
    trailer?: Payload,
    head: RequestHead = new RequestHead(),
    begun: ByteBuffer = new ByteBuffer(),
  ) {
    super(head, new BodyFramer(payload, trailer), begun)
  }

  protected parse(bytes: Uint8Array, start: number, end: number, limits: HeadLimits): number {
    return parseRequestHead(this.head, bytes, start, end, limits)
  }

  /** Whether the whole body has arrived, or there is none. */
  get isComplete(): boolean {
    return this.body.complete
  }

  /** The number of bytes of the head, and of the payload so far. */
  get requestBytes(): number {
    return this.head.end - this.head.start + this.body.payloadBytes
  }
}

/** Reads responses. `isTolerant`: the sender is an app; responses of servers must be strict. */
export class ResponseReader extends MessageReader<ResponseHead, AnswerLimits> {
  constructor(isTolerant: boolean, payload?: Payload, trailer?: Payload) {
    super(new ResponseHead(isTolerant), new BodyFramer(payload, trailer), new ByteBuffer())
    this.body.isTolerant = isTolerant
  }

  protected parse(
    bytes: Uint8Array,
    start: number,
    end: number,
    limits: AnswerLimits,
    method: string,
  ): number {
    return parseResponseHead(this.head, bytes, start, end, limits, method)
  }

  /** Whether the last head is the final one. Interim responses (1xx, except 101) come before it. */
  get isFinal(): boolean {
    return this.head.status >= 200 || this.head.status === 101
  }
}
