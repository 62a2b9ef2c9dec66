// The response on one stream of HTTP/2 or HTTP/3: turns HTTP/1.1 text into HEADERS and DATA. Bytes for which the
// visitor has no room wait here.

import { type Account, ByteBuffer, SendQueue, type Writing } from '../../bytes.ts'
import { BodyFramer } from '../../http/body.ts'
import { parseResponseHead, ResponseHead } from '../../http/head.ts'
import type { MultiplexedStream } from './multiplexed.ts'
import type { StreamChannel } from './stream-channel.ts'

/** The limits of the text. It was checked when it came from the app, and has got the server's own lines since. */
const LIMITS = { maxHeadBytes: 1_048_576, maxHeaderCount: 4_096, maxTargetBytes: 0 }

/** Heads are parsed and encoded within one call, so one object serves all streams. */
const head = new ResponseHead()

type Phase = 'head' | 'length' | 'chunked' | 'raw' | 'complete'

export class StreamAnswer implements Writing {
  readonly #stream: MultiplexedStream
  readonly #owner: StreamChannel
  readonly #unsent: SendQueue = new SendQueue()
  #phase: Phase = 'head'
  /** The number of bytes still to come of a body of known length. */
  #leftBytes = 0
  #framer: BodyFramer | undefined
  #trailers: ByteBuffer | undefined
  /** The head so far, if it comes in pieces. */
  #partial: ByteBuffer | undefined
  /** Whether nothing follows the unsent bytes. */
  #isEnding = false
  /** The number of bytes given to DATA frames. */
  sentBytes = 0

  constructor(stream: MultiplexedStream, owner: StreamChannel) {
    this.#stream = stream
    this.#owner = owner
  }

  /** Takes text[start, end). Returns `false` if it is not a response, or does not fit this request. */
  take(text: Uint8Array, start: number, end: number): boolean {
    if (this.#phase !== 'head') return this.#takeBody(text, start, end)
    if (this.#partial === undefined) return this.#takeHead(text, start, end)
    this.#partial.add(text, start, end)
    const whole = this.#partial.take()
    return whole === undefined || this.#takeHead(whole, 0, whole.length)
  }

  #takeHead(text: Uint8Array, start: number, end: number): boolean {
    let at = start
    while (at < end) {
      const next = parseResponseHead(head, text, at, end, LIMITS, this.#owner.method)
      if (next === -1) return false
      if (next === 0) {
        head.fields.isPartial = false
        this.#partial ??= new ByteBuffer()
        this.#partial.add(text, at, end)
        return true
      }
      at = next
      if (head.status >= 200 || head.status === 101) {
        if (!this.#owner.judge(head)) return false
        return this.#begin() && this.#takeBody(text, at, end)
      }
      this.#stream.head(head, false)
    }
    return true
  }

  #begin(): boolean {
    const { body, contentLength, status } = head
    const isRaw = status === 101 || body === 'close'
    const isEmpty = !isRaw && (body === 'none' || (body === 'length' && contentLength === 0))
    this.#leftBytes = contentLength
    this.#phase = isRaw ? 'raw' : isEmpty || body === 'none' ? 'complete' : body
    if (this.#phase === 'chunked') {
      this.#framer = new BodyFramer(
        (bytes, from, to) => this.#send(bytes, from, to),
        (bytes, from, to) => {
          this.#trailers ??= new ByteBuffer()
          this.#trailers.add(bytes, from, to)
        },
      )
      this.#framer.begin('chunked', 0)
    }
    this.#isEnding = isEmpty
    this.#stream.head(head, isEmpty)
    return true
  }

  #takeBody(text: Uint8Array, start: number, end: number): boolean {
    if (start === end) return true
    switch (this.#phase) {
      case 'raw':
        this.#send(text, start, end)
        return true
      case 'length':
        this.#leftBytes -= end - start
        if (this.#leftBytes < 0) return false
        if (this.#leftBytes === 0) {
          this.#phase = 'complete'
          this.#isEnding = true
        }
        this.#send(text, start, end)
        return true
      case 'chunked': {
        const framer = this.#framer
        if (framer?.feed(text, start, end) !== end) return false
        if (!framer.complete) return true
        this.#phase = 'complete'
        this.#isEnding = true
        this.#finish()
        return true
      }
      default:
        return false
    }
  }

  #send(bytes: Uint8Array, start: number, end: number): void {
    // Streams that wait already come first.
    const mayOvertake = !this.#stream.isAwaited || !this.#unsent.isEmpty
    if (mayOvertake) this.#unsent.send(this, bytes, start, end)
    else this.#unsent.keep(bytes, start, end)
  }

  /** Writes DATA, as much as there is room for. Called by `SendQueue`. */
  write(bytes: Uint8Array, start = 0, end: number = bytes.length): number {
    // Waiting bytes are sent piece by piece, and whether a piece is the last is only known if it did not wait.
    const isLast = this.#isEnding && this.#unsent.isEmpty && this.#trailers === undefined
    const count = this.#stream.data(bytes, start, end, isLast && this.#phase === 'complete')
    this.sentBytes += count
    return count
  }

  flush(): void {
    this.#unsent.flush(this)
    this.#finish()
  }

  /** Called when the origin sends no more. Returns `false` if the response is incomplete. */
  end(): boolean {
    // A partial response must not look complete.
    if (this.#phase !== 'raw' && this.#phase !== 'complete') return false
    this.#phase = 'complete'
    this.#isEnding = true
    this.#finish()
    return true
  }

  /** Ends the stream after the bytes that were sent. */
  #finish(): void {
    if (!this.#isEnding || !this.#unsent.isEmpty || this.#stream.isAnswerEnded) return
    const trailers = this.#trailers?.take()
    if (trailers === undefined) this.#stream.end()
    else this.#stream.trailers(trailers, 0, trailers.length)
  }

  /** Whether nothing of the response was sent, not even its head. */
  get isUnsent(): boolean {
    return this.#phase === 'head'
  }

  /** Begins another response in place of an unsent one. */
  restart(): void {
    this.#partial = undefined
  }

  get isEmpty(): boolean {
    return this.#unsent.isEmpty
  }

  set account(account: Account | undefined) {
    this.#unsent.account = account
  }

  clear(): void {
    this.#unsent.clear()
  }
}
