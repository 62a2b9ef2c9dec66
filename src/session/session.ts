// The multiplexer over one carrier: many streams, each with credit both ways, over one reliable byte stream.

import { ERRORS, type ErrorCode, errorOfWire } from '../errors.ts'
import { FrameDecoder } from '../wire/decoder.ts'
import {
  CONTROL,
  CREDIT,
  END,
  GOAWAY,
  INITIAL_CREDIT_BYTES,
  MAX_FRAME_BYTES,
  OPEN,
  PING,
  PONG,
  RESET,
  readU32,
  readU48,
  writeU32,
  writeU48,
} from '../wire/frame.ts'
import type { Carrier, CarrierHandler } from './carrier.ts'
import { Heartbeat, type HeartbeatOptions } from './heartbeat.ts'
import { Outbox } from './outbox.ts'
import type { Scheduler } from './scheduler.ts'
import { Stream, type StreamHandler } from './stream.ts'

export interface SessionOptions extends HeartbeatOptions {
  /** Only the server opens streams. */
  readonly role: 'server' | 'client'
  readonly scheduler: Scheduler
  /** Streams open at once. Above: an OPEN is answered with RESET `STREAM_LIMIT`. */
  readonly maxStreams: number
  /** Receive window that one stream may grow to, bytes. */
  readonly maxStreamWindowBytes: number
  /** Growth of windows in all streams together, bytes. */
  readonly maxSessionWindowBytes: number
}

export interface SessionHandler {
  /** The server opened a stream (client role only). Returns the stream's handler, or the code to refuse it with. */
  opened(stream: Stream): StreamHandler | ErrorCode
  /** A control message. The bytes are only valid during the call. */
  control(json: Uint8Array): void
  /** The other side takes no new streams and will leave when what is open has finished. */
  leaving(code: ErrorCode): void
  /** The session is over, exactly once; all its streams were reset before. */
  closed(code: ErrorCode, error?: Error): void
}

/** A sender with more credit than this was never given it by our kind of receiver. */
const MAX_CREDIT_BYTES = 0x7fff_ffff

const NOBODY: StreamHandler = { received() {}, writable() {}, ended() {}, reset() {} }

/**
 * A session. Whoever made the carrier passes its events to `carrierHandler`; the session closes the carrier.
 * The other end is not trusted: whatever it breaks ends this session with a code and touches no other.
 */
export class Session {
  readonly carrierHandler: CarrierHandler
  readonly #options: SessionOptions
  readonly #handler: SessionHandler
  readonly #carrier: Carrier
  readonly #outbox: Outbox
  readonly #decoder: FrameDecoder
  readonly #heartbeat: Heartbeat
  readonly #streams = new Map<number, Stream>()
  #highestStream = 0
  /** What windows have grown beyond their first size, in all streams together. */
  #grownBytes = 0
  #isClosed = false

  constructor(carrier: Carrier, handler: SessionHandler, options: SessionOptions) {
    this.#carrier = carrier
    this.#handler = handler
    this.#options = options
    this.#outbox = new Outbox(
      carrier,
      options.scheduler,
      () => options.scheduler.soon(() => this.terminate('FLOOD')),
      stream => stream.peerEnded && this.#forget(stream),
    )
    this.#decoder = new FrameDecoder({
      data: (stream, piece) => this.#dataArrived(stream, piece),
      frame: (type, stream, payload) => this.#frameArrived(type, stream, payload),
    })
    this.#heartbeat = new Heartbeat(
      options.scheduler,
      options,
      number => this.#sendPing(number),
      () => this.terminate('CARRIER_DEAD'),
    )
    this.carrierHandler = {
      received: bytes => this.#received(bytes),
      drained: () => this.#outbox.drained(),
      closed: error => this.#close('CARRIER_LOST', error),
    }
    // The first round trip lets windows grow from the start.
    this.#heartbeat.ping()
  }

  /** Streams open now. */
  get streamCount(): number {
    return this.#streams.size
  }

  get isClosed(): boolean {
    return this.#isClosed
  }

  /** Smallest round trip seen, milliseconds; 0 before the first. */
  get roundTripMs(): number {
    return this.#heartbeat.roundTripMs
  }

  /** Opens a stream to a tunnel's origin (server role). `undefined` at `maxStreams` or after the session closed. */
  open(tunnel: number, handler: StreamHandler): Stream | undefined {
    if (this.#isClosed || this.#streams.size >= this.#options.maxStreams) return undefined
    const stream = new Stream(this, ++this.#highestStream, tunnel, handler)
    this.#streams.set(stream.id, stream)
    const at = this.#outbox.frame(OPEN, stream.id, 4)
    writeU32(this.#outbox.batch, at, tunnel)
    return stream
  }

  /** Sends a control message, already encoded; at most one frame. */
  sendControl(json: Uint8Array): void {
    if (this.#isClosed) return
    if (json.length > MAX_FRAME_BYTES) throw new RangeError('a control message must fit one frame')
    const at = this.#outbox.frame(CONTROL, 0, json.length)
    this.#outbox.batch.set(json, at)
  }

  /** Asks the other side for a sign of life; `answered` is called with it, or never. */
  ping(answered?: () => void): void {
    if (!this.#isClosed) this.#heartbeat.ping(answered)
  }

  /** Tells the other side that no new streams are wanted; those open go on. */
  leave(code: ErrorCode): void {
    if (this.#isClosed) return
    const at = this.#outbox.frame(GOAWAY, 0, 2)
    this.#writeCode(at, code)
  }

  /** Ends the session: tells the other side why, resets every stream, closes the carrier. */
  close(code: ErrorCode): void {
    if (this.#isClosed) return
    this.leave(code)
    this.#outbox.flush()
    this.#carrier.close()
    this.#close(code)
  }

  /** Ends the session without a word: for a carrier that is dead. */
  terminate(code: ErrorCode): void {
    if (this.#isClosed) return
    this.#carrier.terminate()
    this.#close(code)
  }

  // ── What streams ask for ───────────────────────────────────────────────────────────────────────────────────

  /** @internal */
  sendData(stream: Stream, bytes: Uint8Array): boolean {
    return this.#outbox.data(stream, bytes)
  }

  /** @internal */
  sendEnd(stream: Stream): void {
    this.#outbox.end(stream)
  }

  /** @internal */
  sendReset(stream: Stream, code: ErrorCode): void {
    const at = this.#outbox.frame(RESET, stream.id, 8)
    this.#writeCode(at, code)
    writeU48(this.#outbox.batch, at + 2, stream.deliveredBytes)
    this.#forget(stream)
  }

  /** @internal Fills the other side's credit up to the window again. */
  giveCredit(stream: Stream): void {
    this.#growWindow(stream)
    const credit = stream.window - stream.allowance - (stream.receivedBytes - stream.deliveredBytes)
    stream.unacknowledged = 0
    if (credit <= 0) return
    stream.allowance += credit
    const at = this.#outbox.frame(CREDIT, stream.id, 4)
    writeU32(this.#outbox.batch, at, credit)
  }

  /**
   * Doubles the window of a stream that used half of it up within two round trips: there the window, not the path,
   * is what limits. The smallest round trip counts, because a full queue makes the current one look long.
   */
  #growWindow(stream: Stream): void {
    const now = this.#options.scheduler.now()
    const elapsed = now - stream.lastCreditAt
    stream.lastCreditAt = now
    if (elapsed > 2 * this.#heartbeat.roundTripMs) return
    const { maxStreamWindowBytes, maxSessionWindowBytes } = this.#options
    const growth = Math.min(stream.window, maxStreamWindowBytes - stream.window)
    if (growth <= 0 || this.#grownBytes + growth > maxSessionWindowBytes) return
    stream.window += growth
    this.#grownBytes += growth
  }

  #writeCode(at: number, code: ErrorCode): void {
    const { wire } = ERRORS[code]
    this.#outbox.batch[at] = wire >>> 8
    this.#outbox.batch[at + 1] = wire
  }

  // ── What arrives ───────────────────────────────────────────────────────────────────────────────────────────

  #received(bytes: Uint8Array): void {
    if (this.#isClosed) return
    this.#heartbeat.heard()
    const problem = this.#decoder.receive(bytes)
    if (problem !== undefined) this.close(problem)
  }

  #dataArrived(id: number, piece: Uint8Array): void {
    const stream = this.#streams.get(id)
    if (stream === undefined) return this.#strayFrame(id)
    stream.allowance -= piece.length
    if (stream.allowance < 0) return this.close('CREDIT_EXCEEDED')
    if (stream.peerEnded) return this.close('PROTOCOL_ERROR')
    stream.receivedBytes += piece.length
    stream.handler.received(piece)
  }

  #frameArrived(type: number, id: number, payload: Uint8Array): void {
    switch (type) {
      case CREDIT:
        return this.#creditArrived(id, readU32(payload, 0))
      case END:
        return this.#endArrived(id, readU48(payload, 0))
      case RESET:
        return this.#resetArrived(id, readCode(payload), readU48(payload, 2))
      case OPEN:
        return this.#openArrived(id, readU32(payload, 0))
      case PING:
        return this.#pingArrived(payload)
      case PONG:
        return this.#heartbeat.answered(readU32(payload, 4))
      case CONTROL:
        return this.#handler.control(payload)
      case GOAWAY:
        return this.#handler.leaving(readCode(payload))
    }
  }

  /** A frame for a stream that is not open: late if it once was, a lie if it never was. */
  #strayFrame(id: number): void {
    if (id > this.#highestStream) this.close('STREAM_UNKNOWN')
  }

  #openArrived(id: number, tunnel: number): void {
    if (this.#options.role === 'server' || id <= this.#highestStream) return this.close('PROTOCOL_ERROR')
    this.#highestStream = id
    const stream = new Stream(this, id, tunnel, NOBODY)
    this.#streams.set(id, stream)
    const answer =
      this.#streams.size > this.#options.maxStreams ? 'STREAM_LIMIT' : this.#handler.opened(stream)
    if (typeof answer === 'string') stream.reset(answer)
    else stream.handler = answer
  }

  #creditArrived(id: number, credit: number): void {
    const stream = this.#streams.get(id)
    if (stream === undefined) return this.#strayFrame(id)
    stream.credit += credit
    if (stream.credit > MAX_CREDIT_BYTES) return this.close('PROTOCOL_ERROR')
    this.#outbox.credited(stream)
  }

  #endArrived(id: number, delivered: number): void {
    const stream = this.#streams.get(id)
    if (stream === undefined) return this.#strayFrame(id)
    if (stream.peerEnded) return this.close('PROTOCOL_ERROR')
    stream.peerEnded = true
    if (stream.hasEnded && stream.queue.length === 0) this.#forget(stream)
    stream.handler.ended(delivered)
  }

  #resetArrived(id: number, code: ErrorCode, delivered: number): void {
    const stream = this.#streams.get(id)
    if (stream === undefined) return this.#strayFrame(id)
    this.#forget(stream)
    stream.handler.reset(code, delivered)
  }

  #pingArrived(payload: Uint8Array): void {
    if (!this.#heartbeat.tolerates()) return this.close('FLOOD')
    const at = this.#outbox.frame(PONG, 0, 8)
    this.#outbox.batch.set(payload, at)
  }

  #sendPing(number: number): void {
    const at = this.#outbox.frame(PING, 0, 8)
    writeU32(this.#outbox.batch, at, 0)
    writeU32(this.#outbox.batch, at + 4, number)
  }

  // ── The end ────────────────────────────────────────────────────────────────────────────────────────────────

  #forget(stream: Stream): void {
    stream.isClosed = true
    this.#streams.delete(stream.id)
    stream.queue.length = 0
    this.#grownBytes -= stream.window - INITIAL_CREDIT_BYTES
  }

  #close(code: ErrorCode, error?: Error): void {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#decoder.stop()
    this.#heartbeat.stop()
    this.#outbox.close()
    for (const stream of [...this.#streams.values()]) {
      this.#forget(stream)
      stream.handler.reset(code, 0)
    }
    this.#handler.closed(code, error)
  }
}

function readCode(payload: Uint8Array): ErrorCode {
  return errorOfWire((payload[0]! << 8) | payload[1]!)
}
