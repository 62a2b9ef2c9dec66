// The multiplexer on one carrier: many streams, each with credit both ways, on one reliable byte stream.

import { copyBytes, copyOf } from '../bytes.ts'
import { ERRORS, type ErrorCode, errorOfWire, TunnelError } from '../errors.ts'
import {
  CONTROL,
  CREDIT,
  END,
  type FrameHandler,
  GOAWAY,
  LINK,
  LINK_FREE,
  MAX_FRAME_BYTES,
  OPEN,
  PING,
  PONG,
  RESET,
  readU32,
  readU48,
  UNLINK,
  writeU32,
  writeU48,
} from '../wire/frame.ts'
import { Arrivals, type ArrivalsOwner } from './arrivals.ts'
import type { ByteStream, StreamHandler } from './byte-stream.ts'
import type { Carrier, CarrierHandler } from './carrier.ts'
import type { SessionHandler, SessionOptions } from './contract.ts'
import { Heartbeat } from './heartbeat.ts'
import { BULK_BYTES, LinkSet } from './link-set.ts'
import { Outbox } from './outbox.ts'
import { Stream, type StreamOwner } from './stream.ts'
import { MAX_PINGS_PER_SECOND, Tolerance } from './tolerance.ts'
import { MAX_CREDIT_BYTES, Windows } from './windows.ts'

/** The maximum stream id. Ids have 32 bits and are not reused. */
const MAX_STREAM_ID = 0xffff_ffff

/** The frames that refer to a stream's earlier bytes. */
const BEHIND_BYTES = [END, RESET, LINK, UNLINK]

/** The number of control messages per second that are accepted from a client. An honest client sends a few at once. */
const MAX_CLIENT_MESSAGES_PER_SECOND = 1_024
/**
 * The additional messages for each tunnel that the client has or was promised: to register it, report its health and
 * a link, and release it.
 */
const MESSAGES_FOR_A_TUNNEL = 4
/** The usual length of a control message. A message with routes may be several times as long. */
const BYTES_OF_A_MESSAGE = 1_024

/**
 * A session. The creator of the carrier passes its events to `carrierHandler`; the session closes the carrier. The
 * other end is not trusted: whatever rule it breaks ends this session with a code and affects no other.
 */
export class Session implements ArrivalsOwner, StreamOwner {
  readonly carrierHandler: CarrierHandler
  readonly #options: SessionOptions
  readonly #handler: SessionHandler
  readonly #carrier: Carrier
  readonly #outbox: Outbox
  readonly #arrivals: Arrivals
  readonly #heartbeat: Heartbeat
  readonly #streams = new Map<number, Stream>()
  /** The connections for large transfers, in addition to the carrier. */
  readonly links: LinkSet
  #highestStream = 0
  readonly #windows: Windows
  readonly #pings = new Tolerance(MAX_PINGS_PER_SECOND)
  readonly #messages = new Tolerance(MAX_CLIENT_MESSAGES_PER_SECOND)
  #peerIsLeaving = false
  #closedWith: ErrorCode | undefined

  constructor(carrier: Carrier, handler: SessionHandler, options: SessionOptions) {
    this.#carrier = carrier
    this.#handler = handler
    this.#options = options
    this.#windows = new Windows(options)
    this.#outbox = new Outbox(
      carrier,
      options.scheduler,
      () => options.scheduler.soon(() => this.terminate('FLOOD')),
      stream => stream.peerEnded && this.#forget(stream),
      options.maxCarrierBacklogBytes,
    )
    this.links = new LinkSet(this, this.#outbox, options.scheduler, options.deadAfterMs)
    const frames: FrameHandler = {
      data: (stream, bytes, start, end) => this.#dataArrived(stream, bytes, start, end),
      frame: (type, stream, bytes, at, end) => this.#frameArrived(type, stream, bytes, at, end),
    }
    this.#arrivals = new Arrivals(this, carrier, frames, options.turns)
    this.#heartbeat = new Heartbeat(
      options.scheduler,
      options,
      number => this.#sendPing(number),
      () => this.terminate('CARRIER_LOST'),
      () => this.#streams.size > 0,
    )
    this.carrierHandler = {
      received: (bytes, start, end) => {
        this.guard(() => this.#arrivals.received(bytes, start, end))
      },
      drained: () => {
        this.guard(() => this.#outbox.drained())
      },
      closed: error => this.#close(isFlood(error) ? 'FLOOD' : 'CARRIER_LOST', error),
    }
    // The first round trip lets windows grow from the start.
    this.#heartbeat.ping()
  }

  get streamCount(): number {
    return this.#streams.size
  }

  get isClosed(): boolean {
    return this.#closedWith !== undefined
  }

  /** The number of times a stream had to wait for the other side's credit. */
  get creditStalls(): number {
    return this.#outbox.creditStalls
  }

  /** The smallest round trip seen, in milliseconds; 0 before the first. */
  get roundTripMs(): number {
    return this.#heartbeat.roundTripMs
  }

  stream(id: number): Stream | undefined {
    return this.#streams.get(id)
  }

  /**
   * Opens a stream to a tunnel's origin (server role). `undefined` at `maxStreams`, if the other side is leaving, or
   * after the session closed.
   */
  open(tunnel: number, handler: StreamHandler): ByteStream | undefined {
    if (this.isClosed || this.#peerIsLeaving || this.#streams.size >= this.#options.maxStreams)
      return undefined
    if (this.#highestStream === MAX_STREAM_ID) {
      // After four billion streams only a new session helps, which the client makes at once.
      this.close('TUNNEL_BUSY')
      return undefined
    }
    if (this.#options.streamBudget?.open() === false) return undefined
    const stream = new Stream(this, ++this.#highestStream, tunnel, handler)
    this.#streams.set(stream.id, stream)
    const at = this.#outbox.frame(OPEN, stream.id, 4)
    writeU32(this.#outbox.batch, at, tunnel)
    return stream
  }

  /** Sends a control message, already encoded; at most one frame. */
  sendControl(json: Uint8Array): void {
    if (this.isClosed) return
    if (json.length > MAX_FRAME_BYTES) throw new RangeError('a control message must fit one frame')
    const at = this.#outbox.frame(CONTROL, 0, json.length)
    this.#outbox.batch.set(json, at)
  }

  /** The number of bytes that wait because the other side does not read, up to `maxCarrierBacklogBytes`. */
  get backlogBytes(): number {
    return this.#outbox.backlogBytes
  }

  /** Asks the other side for a sign of life. `answered` is called with it, or never. */
  ping(answered?: () => void): void {
    if (!this.isClosed) this.#heartbeat.ping(answered)
  }

  /** Resets the streams of the tunnels from `first` up to, but not including, `end`. */
  resetStreams(first: number, end: number, code: ErrorCode): void {
    for (const stream of [...this.#streams.values()]) {
      if (stream.tunnel < first || stream.tunnel >= end) continue
      stream.giveUp(code)
    }
  }

  /** Tells the other side to open no new streams. Open ones continue. */
  leave(code: ErrorCode): void {
    if (this.isClosed) return
    const at = this.#outbox.frame(GOAWAY, 0, 2)
    this.#writeCode(at, code)
  }

  /** Ends the session: tells the other side why, resets every stream, closes the carrier. */
  close(code: ErrorCode): void {
    if (this.isClosed) return
    this.leave(code)
    this.#outbox.finish()
    this.#close(code, undefined, () => this.#carrier.close())
  }

  /** Ends the session without telling the other side, for a dead carrier. */
  terminate(code: ErrorCode): void {
    this.#close(code, undefined, () => this.#carrier.terminate())
  }

  // ── What streams ask for ───────────────────────────────────────────────────────────────────────────────────

  sendData(stream: Stream, bytes: Uint8Array, start: number, end: number): boolean {
    const link = stream.sendingLink ?? (stream.runBytes > BULK_BYTES ? this.links.move(stream) : undefined)
    if (link !== undefined) return link.send(bytes, start, end)
    return this.#outbox.data(stream, bytes, start, end)
  }

  moveToLink(stream: Stream): void {
    this.links.moveSmall(stream)
  }

  sendEnd(stream: Stream): void {
    this.links.leave(stream)
    this.#outbox.end(stream)
  }

  sendReset(stream: Stream, code: ErrorCode): void {
    this.links.leave(stream)
    const at = this.#outbox.frame(RESET, stream.id, 8)
    this.#writeCode(at, code)
    writeU48(this.#outbox.batch, at + 2, stream.deliveredBytes)
    this.#forget(stream)
  }

  /** Fills the other side's credit up to the window again. */
  giveCredit(stream: Stream): void {
    const now = this.#options.scheduler.now()
    const credit = this.#windows.refill(stream, now, this.#heartbeat.roundTripMs)
    if (credit === 0) return
    const at = this.#outbox.frame(CREDIT, stream.id, 4)
    writeU32(this.#outbox.batch, at, credit)
  }

  #writeCode(at: number, code: ErrorCode): void {
    const { wire } = ERRORS[code]
    this.#outbox.batch[at] = wire >>> 8
    this.#outbox.batch[at + 1] = wire
  }

  /** Resets a stream that lost an unknown number of bytes with its link. */
  lose(stream: Stream): void {
    const delivered = stream.sentBytes
    this.sendReset(stream, 'CARRIER_LOST')
    stream.handler.reset('CARRIER_LOST', delivered)
  }

  linkFailed(error: unknown): void {
    this.#handlerFailed(error)
  }

  linkWanted(): void {
    this.#handler.linkWanted?.()
  }

  // ── Streams that are lent ──────────────────────────────────────────────────────────────────────────────────

  /** Handles bytes of a lent stream that arrived outside of frames. */
  broughtElsewhere(stream: Stream, bytes: Uint8Array): void {
    if (stream.isClosed) return
    this.guard(() => {
      if (stream.peerEnded) return this.close('PROTOCOL_ERROR')
      stream.heard(bytes.length)
      stream.handler.received(bytes, 0, bytes.length)
    })
  }

  /** Ends a loan: handles the frames that waited. */
  giveBack(stream: Stream, isTorn: boolean): void {
    this.guard(() => {
      if (stream.isClosed) return
      if (isTorn) return this.lose(stream)
      const { held } = stream
      stream.held = undefined
      held?.letGo((bytes, start, end) => this.#delivered(stream, bytes, start, end))
    })
  }

  /** Called when bytes of the other side arrived. */
  heard(): void {
    this.#heartbeat.hasHeard = true
  }

  /** Runs a task of a handler, which may throw. */
  guard(task: () => void): void {
    try {
      task()
    } catch (error) {
      this.#handlerFailed(error)
    }
  }

  // ── What arrives ───────────────────────────────────────────────────────────────────────────────────────────

  #dataArrived(id: number, bytes: Uint8Array, start: number, end: number): void {
    const stream = this.#streams.get(id)
    const count = end - start
    if (stream === undefined) return this.#strayData(id, count)
    stream.allowance -= count
    if (stream.allowance < 0) return this.close('PROTOCOL_ERROR')
    if (stream.held !== undefined)
      return stream.held.keepData(bytes, start, end) ? undefined : this.close('PROTOCOL_ERROR')
    this.#delivered(stream, bytes, start, end)
  }

  #delivered(stream: Stream, bytes: Uint8Array, start: number, end: number): void {
    if (stream.peerEnded || stream.receivingLink !== undefined) return this.close('PROTOCOL_ERROR')
    stream.heard(end - start)
    stream.handler.received(bytes, start, end)
  }

  #frameArrived(type: number, id: number, bytes: Uint8Array, at: number, end: number): void {
    const held = this.#streams.get(id)?.held
    if (held !== undefined && BEHIND_BYTES.includes(type)) {
      const kept = copyOf(bytes, at, end)
      const isPossible = held.keepFrame(
        () => this.isClosed || this.#frameArrived(type, id, kept, 0, kept.length),
      )
      return isPossible ? undefined : this.close('PROTOCOL_ERROR')
    }
    switch (type) {
      case CREDIT:
        return this.#creditArrived(id, readU32(bytes, at))
      case END:
        return this.#endArrived(id, readU48(bytes, at))
      case RESET:
        return this.#resetArrived(id, readCode(bytes, at), readU48(bytes, at + 2))
      case OPEN:
        return this.#openArrived(id, readU32(bytes, at))
      case PING:
        return this.#pingArrived(bytes, at, end)
      case PONG:
        return this.#heartbeat.answered(readU32(bytes, at + 4))
      case CONTROL:
        return this.#controlArrived(bytes.subarray(at, end))
      case GOAWAY:
        return this.#goawayArrived(readCode(bytes, at))
      case LINK:
        if (id > this.#highestStream) return this.close('PROTOCOL_ERROR')
        return this.links.bind(this.#streams.get(id), id, readU32(bytes, at), readU48(bytes, at + 4))
      case UNLINK:
        if (id > this.#highestStream) return this.close('PROTOCOL_ERROR')
        return this.links.unbind(id, readU32(bytes, at), readU48(bytes, at + 4))
      case LINK_FREE:
        return this.links.freed(readU32(bytes, at))
    }
  }

  /** Handles a frame for a stream that is not open: late if the stream existed, otherwise a protocol error. */
  #strayFrame(id: number): void {
    if (id > this.#highestStream) this.close('PROTOCOL_ERROR')
  }

  /** Counts late data, sent with credit that its stream had. More than that is a protocol error. */
  #strayData(id: number, count: number): void {
    if (id > this.#highestStream) return this.close('PROTOCOL_ERROR')
    if (!this.#windows.allowsStray(count)) this.close('PROTOCOL_ERROR')
  }

  #openArrived(id: number, tunnel: number): void {
    if (this.#options.role === 'server' || id <= this.#highestStream) return this.close('PROTOCOL_ERROR')
    this.#highestStream = id
    // There is no handler before `opened` returns. Until then, only a close of the session can happen.
    let orphaned: [ErrorCode, number] | undefined
    const stream = new Stream(this, id, tunnel, {
      received() {},
      writable() {},
      ended() {},
      reset: (code, delivered) => {
        orphaned = [code, delivered]
      },
    })
    const isFull = this.#streams.size >= this.#options.maxStreams
    this.#streams.set(id, stream)
    const answer = isFull ? 'TUNNEL_BUSY' : this.#handler.opened(stream, tunnel)
    if (typeof answer === 'string') return stream.reset(answer)
    stream.handler = answer
    if (orphaned !== undefined) answer.reset(...orphaned)
  }

  #creditArrived(id: number, credit: number): void {
    if (credit === 0) return this.close('PROTOCOL_ERROR')
    const stream = this.#streams.get(id)
    if (stream === undefined) return this.#strayFrame(id)
    stream.credit += credit
    if (stream.credit > MAX_CREDIT_BYTES) return this.close('PROTOCOL_ERROR')
    this.#outbox.credited(stream)
  }

  #endArrived(id: number, delivered: number): void {
    const stream = this.#streams.get(id)
    if (stream === undefined) return this.#strayFrame(id)
    if (stream.peerEnded || stream.earlyEnd !== undefined) return this.close('PROTOCOL_ERROR')
    if (delivered > stream.sentBytes - stream.queuedBytes) return this.close('PROTOCOL_ERROR')
    // The last bytes may still be in transit on a link. UNLINK has given their number.
    if (stream.receivingLink === undefined) this.peerHasEnded(stream, delivered)
    else if (stream.receivingLink.isEnding) stream.earlyEnd = delivered
    else this.close('PROTOCOL_ERROR')
  }

  /** Called when END and all bytes of the other side have arrived. */
  peerHasEnded(stream: Stream, delivered: number): void {
    stream.peerEnded = true
    if (stream.hasEnded && stream.queuedBytes === 0) this.#forget(stream)
    stream.handler.ended(delivered)
  }

  #resetArrived(id: number, code: ErrorCode, delivered: number): void {
    const stream = this.#streams.get(id)
    if (stream === undefined) return this.#strayFrame(id)
    if (delivered > stream.sentBytes - stream.queuedBytes) return this.close('PROTOCOL_ERROR')
    this.#forget(stream)
    stream.handler.reset(code, delivered)
  }

  #pingArrived(bytes: Uint8Array, start: number, end: number): void {
    if (!this.#pings.allows(this.#options.scheduler.now())) return this.close('FLOOD')
    const at = this.#outbox.frame(PONG, 0, 8)
    copyBytes(bytes, start, end, this.#outbox.batch, at)
  }

  /** Passes a control message on. A server may send one for each request, because its client watches them; a client sends few. */
  #controlArrived(json: Uint8Array): void {
    const isBounded = this.#options.role === 'server'
    if (isBounded && !this.#isTolerated(json.length)) return this.close('FLOOD')
    this.#handler.control(json)
  }

  /**
   * Whether the control message is within the limit. A long one counts as several, and a client with many tunnels may send more.
   */
  #isTolerated(bytes: number): boolean {
    const count = Math.ceil(bytes / BYTES_OF_A_MESSAGE)
    const more = MESSAGES_FOR_A_TUNNEL * (this.#handler.tunnelCount?.() ?? 0)
    return this.#messages.allows(this.#options.scheduler.now(), count, more)
  }

  #goawayArrived(code: ErrorCode): void {
    if (!this.#pings.allows(this.#options.scheduler.now())) return this.close('FLOOD')
    this.#peerIsLeaving = true
    this.#handler.leaving(code)
  }

  #sendPing(number: number): void {
    const at = this.#outbox.frame(PING, 0, 8)
    writeU32(this.#outbox.batch, at, 0)
    writeU32(this.#outbox.batch, at + 4, number)
  }

  /** Ends this session after an error of a handler. In the event loop, the error would end all sessions. */
  #handlerFailed(thrown: unknown): void {
    const error = thrown instanceof Error ? thrown : new Error(String(thrown))
    this.#close('INTERNAL', error, () => this.#carrier.terminate())
  }

  // ── The end ────────────────────────────────────────────────────────────────────────────────────────────────

  #forget(stream: Stream): void {
    if (stream.isClosed) return
    stream.isClosed = true
    this.#streams.delete(stream.id)
    this.#options.streamBudget?.close()
    stream.gone?.()
    this.#outbox.forget(stream)
    this.links.leave(stream)
    stream.receivingLink?.forget(stream)
    this.#windows.forget(stream)
    // A link that the stream uses must still be released.
    const { held } = stream
    stream.held = undefined
    held?.letGo()
  }

  /** The only place that ends a session. Everything is forgotten before handlers are called, so that they may call anything. */
  #close(code: ErrorCode, error?: Error, leaveCarrier?: () => void): void {
    if (this.#closedWith !== undefined) return
    this.#closedWith = code
    this.#arrivals.stop()
    this.#heartbeat.stop()
    this.#outbox.close()
    const orphans = [...this.#streams.values()].map(stream => ({
      handler: stream.handler,
      delivered: stream.sentBytes - stream.queuedBytes,
      stream,
    }))
    for (const { stream } of orphans) this.#forget(stream)
    this.links.close()
    leaveCarrier?.()
    for (const { handler, delivered } of orphans) handler.reset(code, delivered)
    this.#handler.closed(code, error)
  }
}

function isFlood(error: Error | undefined): boolean {
  return error instanceof TunnelError && error.code === 'FLOOD'
}

function readCode(bytes: Uint8Array, at: number): ErrorCode {
  return errorOfWire((bytes[at]! << 8) | bytes[at + 1]!)
}
