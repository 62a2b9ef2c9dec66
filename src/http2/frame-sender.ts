// The sending side of one connection: puts frames into the outbox in their order, and DATA as far as the windows and
// the kernel have room, in turn for each stream.

import { copyBytes } from '../bytes.ts'
import type { ResponseHead } from '../http/head.ts'
import * as Frame from './frame.ts'
import { encodeResponseHead, encodeTrailers, maxHeadBlockBytes, maxTrailerBlockBytes } from './head-block.ts'
import { HpackEncoder } from './hpack-encoder.ts'
import { Outbox } from './outbox.ts'
import type { ServerStream } from './server-stream.ts'
import type { PeerSettings } from './settings.ts'
import { INITIAL_WINDOW_BYTES, SendWindow } from './windows.ts'

/** The number of bytes that a stream sends before another one has its turn. */
const TURN_BYTES = 16_384
/**
 * The minimum size in bytes of a DATA frame that counts as useful work, unless it carries the last bytes there were.
 * Smaller ones come from a tiny window.
 */
const WHOLE_FRAME_BYTES = 256

export interface SenderHost {
  framed(): void
  /** Called when DATA was sent that no tiny window made small. */
  sentData(): void
  answered(stream: ServerStream): void
}

export class FrameSender {
  readonly outbox: Outbox = new Outbox()
  readonly window: SendWindow = new SendWindow(INITIAL_WINDOW_BYTES)
  /**
   * Whether the kernel is full: only heads and control frames are written until it has room. The code with the socket sets it.
   */
  isBlocked = false
  readonly #peer: PeerSettings
  readonly #host: SenderHost
  readonly #encoder: HpackEncoder = new HpackEncoder()
  readonly #waiting = new Set<ServerStream>()
  /** The number of bytes that the current stream may still send in its turn. */
  #turnBytes: number = Number.POSITIVE_INFINITY

  constructor(peer: PeerSettings, host: SenderHost) {
    this.#peer = peer
    this.#host = host
  }

  // ── Answers ────────────────────────────────────────────────────────────────────────────────────────────────

  head(stream: ServerStream, head: ResponseHead, isLast: boolean): void {
    const { outbox } = this
    const { maxFrameSize } = this.#peer
    const at = outbox.end
    const into = outbox.reserve(Frame.maxHeadersBytes(maxHeadBlockBytes(head), maxFrameSize))
    const end = encodeResponseHead(this.#encoder, head, into, at + Frame.FRAME_HEADER_BYTES)
    outbox.end = Frame.frameHeaders(into, at, end, stream.id, isLast, maxFrameSize)
    this.#sent(stream, isLast)
  }

  /** Sends the trailer section in bytes[start, end), which `BodyFramer` has checked. It ends the response. */
  trailers(stream: ServerStream, bytes: Uint8Array, start: number, end: number): void {
    const { outbox } = this
    const { maxFrameSize } = this.#peer
    const at = outbox.end
    const into = outbox.reserve(Frame.maxHeadersBytes(maxTrailerBlockBytes(end - start), maxFrameSize))
    const from = at + Frame.FRAME_HEADER_BYTES
    const to = encodeTrailers(this.#encoder, bytes, start, end, into, from)
    if (to === from) return this.end(stream)
    outbox.end = Frame.frameHeaders(into, at, to, stream.id, true, maxFrameSize)
    this.#sent(stream, true)
  }

  /** Sends as much of bytes[start, end) as there is room for, and returns the number. `isLast`: nothing follows. */
  data(stream: ServerStream, bytes: Uint8Array, start: number, end: number, isLast: boolean): number {
    const { outbox } = this
    const { maxFrameSize } = this.#peer
    let from = start
    while (from < end && this.hasRoom && this.#turnBytes > 0) {
      const most = Math.min(stream.sending.available, this.window.available, maxFrameSize, TURN_BYTES)
      const count = Math.min(end - from, most)
      if (count <= 0) break
      const isEnd = isLast && from + count === end
      const into = outbox.reserve(Frame.FRAME_HEADER_BYTES + count)
      const at = Frame.writeFrameHeader(
        into,
        outbox.end,
        Frame.DATA,
        isEnd ? Frame.END_STREAM : 0,
        stream.id,
        count,
      )
      copyBytes(bytes, from, from + count, into, at)
      outbox.end = at + count
      stream.sending.sent(count)
      this.window.sent(count)
      this.#turnBytes -= count
      from += count
      // A frame that the peer's tiny window made small earns no allowance: the peer may request byte after byte only
      // at its own cost.
      if (from === end || count >= WHOLE_FRAME_BYTES) this.#host.sentData()
      if (isEnd) this.#host.answered(stream)
    }
    if (from > start) this.#host.framed()
    return from - start
  }

  /** Ends the response after the bytes that were sent. */
  end(stream: ServerStream): void {
    if (stream.isClosed || stream.isAnswerEnded) return
    const { outbox } = this
    const into = outbox.reserve(Frame.FRAME_HEADER_BYTES)
    outbox.end = Frame.writeFrameHeader(into, outbox.end, Frame.DATA, Frame.END_STREAM, stream.id, 0)
    this.#sent(stream, true)
  }

  // ── Room ───────────────────────────────────────────────────────────────────────────────────────────────────

  get hasRoom(): boolean {
    return !this.isBlocked && !this.outbox.isFull && this.window.available > 0
  }

  awaitRoom(stream: ServerStream, hasData: boolean): void {
    if (stream.isClosed) return
    if (hasData && stream.sending.available <= 0) stream.isStarved = true
    else this.#waiting.add(stream)
  }

  /** Whether other streams wait for room already. */
  get isAwaited(): boolean {
    return this.#waiting.size > 0
  }

  /** Lets streams send in turn, as long as there is room. */
  pump(): void {
    for (const stream of this.#waiting) {
      if (!this.hasRoom) break
      this.#waiting.delete(stream)
      this.#turnBytes = TURN_BYTES
      stream.handler.writable()
    }
    this.#turnBytes = Number.POSITIVE_INFINITY
  }

  /** Forgets a stream that does not wait any more. */
  forget(stream: ServerStream): void {
    this.#waiting.delete(stream)
  }

  windowGrew(stream: ServerStream): void {
    if (!stream.isStarved || stream.sending.available <= 0) return
    stream.isStarved = false
    this.#waiting.add(stream)
    this.#host.framed()
  }

  /** Called when the peer's decoder has a table of this size from now on. The smallest size until then was `least`. */
  resizeTable(least: number, size: number): void {
    this.#encoder.setPeerLimit(least)
    this.#encoder.setPeerLimit(size)
  }

  close(): void {
    this.#waiting.clear()
  }

  // ── Control frames ─────────────────────────────────────────────────────────────────────────────────────────

  settings(pairs: readonly (readonly [id: number, value: number])[]): void {
    const { outbox } = this
    const into = outbox.reserve(Frame.FRAME_HEADER_BYTES + 6 * pairs.length)
    outbox.end = Frame.writeSettings(into, outbox.end, pairs)
    this.#host.framed()
  }

  settingsAck(): void {
    const { outbox } = this
    outbox.end = Frame.writeSettingsAck(outbox.reserve(Frame.FRAME_HEADER_BYTES), outbox.end)
    this.#host.framed()
  }

  ping(isAnswer: boolean, bytes: Uint8Array, start: number): void {
    const { outbox } = this
    outbox.end = Frame.writePing(outbox.reserve(17), outbox.end, isAnswer, bytes, start)
    this.#host.framed()
  }

  windowUpdate(id: number, increment: number): void {
    const { outbox } = this
    outbox.end = Frame.writeWindowUpdate(outbox.reserve(13), outbox.end, id, increment)
    this.#host.framed()
  }

  reset(id: number, code: number): void {
    const { outbox } = this
    outbox.end = Frame.writeReset(outbox.reserve(13), outbox.end, id, code)
    this.#host.framed()
  }

  goaway(lastStream: number, code: number, reason: string): void {
    const { outbox } = this
    const into = outbox.reserve(Frame.FRAME_HEADER_BYTES + 8 + reason.length)
    outbox.end = Frame.writeGoaway(into, outbox.end, lastStream, code, reason)
    this.#host.framed()
  }

  #sent(stream: ServerStream, isLast: boolean): void {
    if (isLast) this.#host.answered(stream)
    this.#host.framed()
  }
}
