// The server's end of one HTTP/2 connection (RFC 9113): streams, settings, windows, limits and the end. It handles
// bytes, without sockets or requests.
//
//   bytes ─▶ receive ─▶ decoder ─▶ streams' handlers … FrameSender ─▶ outbox ─▶ owner of the socket

import { Allowance } from '../http/allowance.ts'
import { ClosedStreams } from './closed-streams.ts'
import * as Code from './error-codes.ts'
import { FieldList } from './field-list.ts'
import * as Frame from './frame.ts'
import { FrameDecoder, type FrameHandler } from './frame-decoder.ts'
import { FrameSender } from './frame-sender.ts'
import { HpackDecoder } from './hpack-decoder.ts'
import { ServerStream } from './server-stream.ts'
import * as Settings from './settings.ts'
import { INITIAL_WINDOW_BYTES, ReceiveWindow } from './windows.ts'

/** The number of bytes that may arrive on a stream before its origin reads them: 20 Mbit/s over 100 ms. */
export const STREAM_WINDOW_BYTES = 262_144
/** The number of bytes of all streams of a connection that may wait here while origins do not read. */
export const CONNECTION_WINDOW_BYTES = 1_048_576
/**
 * The maximum number of request bytes after the complete response. Visitors that still send then may end the stream themselves.
 */
export const MAX_DROPPED_BYTES = 16_777_216
/** The number of periods without such bytes, as counted by `endPeriod`. */
export const QUIET_PERIODS = 2
/** The maximum number of CONTINUATION frames in a head. Senders fill frames, and four hold the largest head. */
export const MAX_CONTINUATIONS = 16
/**
 * The allowance of frames that cause no request: PING, SETTINGS, PRIORITY, WINDOW_UPDATE, CONTINUATION, DATA without data, frames
 * of closed streams and unknown ones. `maxNoise` at once, and more with each tick. Requests and responses add this many.
 */
const NOISE_PER_REQUEST = 8
const NOISE_PER_DATA = 2
/** The cost of a head that is too large for any request, and was decoded for nothing. */
const NOISE_OF_LARGE_HEAD = 64
/** The number of bytes of a field block that count as a frame of a portion. */
const BLOCK_BYTES_LIKE_A_FRAME = 1_024
/** The cost of a SETTINGS frame, which changes the windows of all streams. */
const NOISE_OF_SETTINGS = 8
/**
 * The number of ticks that refill the allowance of resets (`maxResets` at once): streams that ended by the peer's action before
 * their response was complete. Each has cost the origin a request. A page that a visitor leaves cancels all of its requests.
 */
const TICKS_TO_REFILL = 16
/** The bytes of heads and control frames that may wait while the peer reads nothing. If exceeded, the connection ends. */
export const MAX_WAITING_BYTES = 1_048_576

const NO_LAST_STREAM = Frame.MAX_U31
/** The list of the current block. One list serves all connections, because it is read at once. */
const fields = new FieldList()

export interface ServerConnectionHost {
  /** Called with the fields of a request, valid during the call. Sets `stream.handler` unless it resets the stream. */
  requested(stream: ServerStream, fields: FieldList, isLast: boolean): void
  framed(): void
  /**
   * Called when a stream was reset before its response was complete. Returns `false` if there are too many, on
   * connections that only the host knows.
   */
  mayReset(): boolean
  /**
   * Called when the connection is over, with the number of incomplete responses. Each has cost a request, like a reset stream.
   */
  leftUnanswered(count: number): void
  /** Called when the last stream is gone. */
  idle(): void
  /** Called when the connection ends with a fault, which GOAWAY names. Nothing more is read. */
  failed(fault: Code.Fault): void
  /** Called when the peer has seen the first GOAWAY of `shutDown`. */
  sawGoaway(): void
}

export interface ServerConnectionOptions {
  /** The maximum size of the fields of a head, as in RFC 7541. */
  readonly maxListBytes: number
  /** The maximum size of a field block. A longer one cannot be decoded, which ends the connection. */
  readonly maxBlockBytes: number
  /** The maximum number of requests in progress. */
  readonly maxStreams: number
  /** The number of streams that may be reset at once before their response is complete. */
  readonly maxResets: number
  /** The number of frames that may arrive at once without causing a request. */
  readonly maxNoise: number
}

export class ServerConnection implements FrameHandler {
  readonly sender: FrameSender
  readonly #host: ServerConnectionHost
  readonly #decoder: FrameDecoder
  readonly #hpackDecoder: HpackDecoder
  readonly #peer: Settings.PeerSettings = new Settings.PeerSettings('client')
  readonly #streams = new Map<number, ServerStream>()
  readonly #closedStreams: ClosedStreams = new ClosedStreams()
  readonly #maxStreams: number
  readonly #noise: Allowance
  readonly #resets: Allowance
  readonly #receiving: ReceiveWindow = new ReceiveWindow(INITIAL_WINDOW_BYTES)
  /** The stream of the current DATA frame. `undefined`: its data is dropped. */
  #dataStream: ServerStream | undefined
  #dataLength = 0
  #lastStream = 0
  /** The last stream that is served. */
  #lastServed: number = NO_LAST_STREAM
  #isShuttingDown = false
  #isOver = false
  #tick = 0

  constructor(host: ServerConnectionHost, options: ServerConnectionOptions) {
    const { maxListBytes, maxBlockBytes, maxStreams, maxResets, maxNoise } = options
    this.#host = host
    this.#maxStreams = maxStreams
    this.#noise = new Allowance(maxNoise, Math.ceil(maxNoise / TICKS_TO_REFILL))
    this.#resets = new Allowance(maxResets, Math.ceil(maxResets / TICKS_TO_REFILL))
    this.#decoder = new FrameDecoder(this, {
      role: 'server',
      maxBlockBytes,
      maxContinuations: MAX_CONTINUATIONS,
    })
    this.#hpackDecoder = new HpackDecoder({ maxListBytes })
    this.sender = new FrameSender(this.#peer, {
      framed: () => host.framed(),
      sentData: () => this.#noise.earn(NOISE_PER_DATA),
      answered: stream => {
        stream.isAnswerEnded = true
        if (stream.isRequestEnded) this.#remove(stream, false)
      },
    })
    this.sender.settings([
      [Settings.MAX_CONCURRENT_STREAMS, maxStreams],
      [Settings.INITIAL_WINDOW_SIZE, STREAM_WINDOW_BYTES],
      [Settings.MAX_HEADER_LIST_SIZE, maxListBytes],
      [Settings.ENABLE_CONNECT_PROTOCOL, 1],
    ])
    this.sender.windowUpdate(0, this.#receiving.enlarge(CONNECTION_WINDOW_BYTES))
  }

  get streamCount(): number {
    return this.#streams.size
  }

  /** Whether something other than DATA is incomplete: the preface, a head, or another frame. */
  get isInside(): boolean {
    return !this.#isOver && this.#decoder.isInside
  }

  // ── From the peer ──────────────────────────────────────────────────────────────────────────────────────────

  /**
   * Takes bytes from `at` on, at most `frames` frames of them. Returns the position reached. `tick`: the current
   * time, in quarters of a second.
   */
  receive(bytes: Uint8Array, at: number, frames: number, tick: number): number {
    if (this.#isOver) return bytes.length
    this.#tick = tick
    const decoder = this.#decoder
    decoder.framesLeft = frames
    const fault = decoder.receive(bytes, at)
    if (fault === undefined) return decoder.at
    this.#fail(fault)
    return bytes.length
  }

  /** Ends the portion: `receive` reads nothing more for now. */
  endPortion(): void {
    this.#decoder.framesLeft = 0
  }

  frame(type: number, _flags: number, stream: number, length: number): void {
    if (type === Frame.DATA) return this.#dataBegins(stream, length)
    if (type !== Frame.HEADERS) this.#countNoise(type === Frame.SETTINGS ? NOISE_OF_SETTINGS : 1)
  }

  #dataBegins(id: number, length: number): void {
    this.#dataStream = undefined
    this.#dataLength = length
    if (id > this.#lastStream) return this.#decoder.fail(Code.PROTOCOL_ERROR, 'DATA without a request')
    if (!this.#receiving.take(length))
      return this.#decoder.fail(Code.FLOW_CONTROL_ERROR, 'DATA beyond the window of the connection')
    const stream = this.#streams.get(id)
    if (stream === undefined) {
      this.#countNoise(1)
      if (!this.#closedStreams.wasReset(id)) this.#refuse(id, Code.STREAM_CLOSED)
    } else if (stream.isRequestEnded) this.#refuse(id, Code.STREAM_CLOSED)
    else if (!stream.receiving.take(length)) this.#refuse(id, Code.FLOW_CONTROL_ERROR)
    else this.#dataStream = stream
  }

  data(_stream: number, bytes: Uint8Array, start: number, end: number): void {
    const stream = this.#dataStream
    if (stream === undefined || stream.isClosed) return this.#consumed(end - start)
    if (stream.isDropping) return this.#drop(stream, end - start)
    stream.heldBytes += end - start
    stream.handler.data(bytes, start, end)
  }

  dataEnded(_stream: number, padding: number, isLast: boolean): void {
    const stream = this.#dataStream
    if (padding > 0) this.#consumed(padding)
    if (!isLast && this.#dataLength === padding) this.#countNoise(1)
    if (stream === undefined || stream.isClosed) return
    if (padding > 0) this.#giveBack(stream, padding)
    if (isLast) this.#requestEnded(stream, undefined)
  }

  headers(
    id: number,
    isLast: boolean,
    isMalformed: boolean,
    bytes: Uint8Array,
    start: number,
    end: number,
  ): void {
    const list = fields
    if (!this.#hpackDecoder.decode(bytes, start, end, list))
      return this.#decoder.fail(Code.COMPRESSION_ERROR, this.#hpackDecoder.problem)
    // Two bytes may name an entry of 4,000 that must be copied, so a long block is as much work as many frames.
    this.#decoder.framesLeft -= Math.floor((end - start) / BLOCK_BYTES_LIKE_A_FRAME)
    if (fields.isTooLarge) this.#countNoise(NOISE_OF_LARGE_HEAD)
    const stream = this.#streams.get(id)
    if (stream !== undefined) return this.#trailersCame(stream, isLast && !isMalformed)
    if (id <= this.#lastStream) return this.#lateHeaders(id)
    this.#lastStream = id
    if (id > this.#lastServed) return
    if (isMalformed) return this.#refuse(id, Code.PROTOCOL_ERROR)
    if (this.#streams.size >= this.#maxStreams) return this.#refuse(id, Code.REFUSED_STREAM)
    this.#noise.earn(NOISE_PER_REQUEST)
    const opened = new ServerStream(id, this, this.#peer.initialWindowSize, STREAM_WINDOW_BYTES)
    opened.isRequestEnded = isLast
    this.#streams.set(id, opened)
    this.#host.requested(opened, list, isLast)
  }

  #trailersCame(stream: ServerStream, isSound: boolean): void {
    if (stream.isRequestEnded) this.#refuse(stream.id, Code.STREAM_CLOSED)
    else if (!isSound || fields.isTooLarge) this.#refuse(stream.id, Code.PROTOCOL_ERROR)
    else this.#requestEnded(stream, fields)
  }

  #lateHeaders(id: number): void {
    this.#countNoise(1)
    if (this.#closedStreams.wasReset(id)) return
    if (this.#closedStreams.wasEnded(id)) this.#decoder.fail(Code.STREAM_CLOSED, 'a head on a closed stream')
    else this.#decoder.fail(Code.PROTOCOL_ERROR, 'a stream id below one that was used')
  }

  #requestEnded(stream: ServerStream, trailers: FieldList | undefined): void {
    stream.isRequestEnded = true
    stream.handler.ended(trailers)
    // curl 7.88 notices that both directions have ended only when another frame comes.
    if (stream.isDropping) this.#ping(stream)
    if (stream.isAnswerEnded) this.#remove(stream, false)
  }

  reset(id: number, _code: number): void {
    if (id > this.#lastStream)
      return this.#decoder.fail(Code.PROTOCOL_ERROR, 'a reset of a stream that is idle')
    const stream = this.#streams.get(id)
    if (stream === undefined) return
    this.#remove(stream, false)
    if (!stream.isAnswerEnded) this.#countReset()
    stream.handler.reset()
  }

  settings(bytes: Uint8Array, start: number, end: number): void {
    const peer = this.#peer
    const before = peer.initialWindowSize
    const code = peer.read(bytes, start, end)
    if (code !== 0) return this.#decoder.fail(code, peer.problem)
    this.sender.resizeTable(peer.leastHeaderTableSize, peer.headerTableSize)
    // Before anything that a larger window allows.
    this.sender.settingsAck()
    const growth = peer.initialWindowSize - before
    if (growth === 0) return
    for (const stream of this.#streams.values()) {
      if (!stream.sending.grow(growth))
        return this.#decoder.fail(Code.FLOW_CONTROL_ERROR, 'INITIAL_WINDOW_SIZE lets a window pass 2^31 - 1')
      this.sender.windowGrew(stream)
    }
  }

  settingsAcknowledged(): void {}

  ping(bytes: Uint8Array, start: number): void {
    this.sender.ping(true, bytes, start)
  }

  pong(bytes: Uint8Array, start: number): void {
    // Stream 0 means the PING of `shutDown`.
    const stream = this.#streams.get(Frame.readU32(bytes, start))
    if (stream !== undefined) stream.hasReplied = true
    if (this.#isShuttingDown && this.#lastServed === NO_LAST_STREAM) this.#host.sawGoaway()
  }

  /** Does nothing: open streams continue, and a client does not push streams. */
  goaway(): void {}

  windowUpdate(id: number, increment: number): void {
    if (id === 0) {
      if (!this.sender.window.grow(increment))
        return this.#decoder.fail(Code.FLOW_CONTROL_ERROR, 'the window of the connection passes 2^31 - 1')
      return this.#host.framed()
    }
    if (id > this.#lastStream)
      return this.#decoder.fail(Code.PROTOCOL_ERROR, 'a window of a stream that is idle')
    const stream = this.#streams.get(id)
    if (stream === undefined) return
    if (stream.sending.grow(increment)) this.sender.windowGrew(stream)
    else this.#refuse(id, Code.FLOW_CONTROL_ERROR)
  }

  streamFault(id: number, code: number, reason: string): void {
    // A stream that was never opened cannot be reset.
    if (id > this.#lastStream) this.#decoder.fail(code, reason)
    else this.#refuse(id, code)
  }

  // ── Streams ────────────────────────────────────────────────────────────────────────────────────────────────

  /** Resets the stream. Its handler gets no more calls. */
  resetStream(stream: ServerStream, code: number): void {
    if (stream.isClosed) return
    this.sender.reset(stream.id, code)
    this.#remove(stream, true)
  }

  /**
   * Drops the rest of a request whose response is complete. The peer gets RST_STREAM (RFC 9113 section 8.1) after it has read the
   * response and sent nothing for some time, or when it sends too much. If RST_STREAM came in one read with the response, clients
   * would lose the response. During an upload, curl 7.88 would take it for an error, and httpx 0.28 would wait without limit.
   */
  dropRequest(stream: ServerStream): void {
    if (stream.isClosed || stream.isDropping) return
    this.consumed(stream, stream.heldBytes)
    stream.isDropping = true
    this.#ping(stream)
  }

  /**
   * Ends a period of a dropped request. Returns whether, in each of the last periods, the peer replied to a PING and sent nothing
   * else. The caller sets the time between periods: while frames come, curl 7.88 reads before it sends the rest of its body.
   */
  endPeriod(stream: ServerStream): boolean {
    if (!stream.hasReplied) return false
    stream.hasReplied = false
    if (++stream.quietPeriods === QUIET_PERIODS) return true
    this.#ping(stream)
    return false
  }

  #ping(stream: ServerStream): void {
    const payload = new Uint8Array(8)
    Frame.writeU32(payload, 0, stream.id)
    this.sender.ping(false, payload, 0)
  }

  #drop(stream: ServerStream, count: number): void {
    this.#consumed(count)
    stream.droppedBytes += count
    // The period of these bytes does not count either.
    stream.quietPeriods = -1
    if (stream.droppedBytes < MAX_DROPPED_BYTES) this.#giveBack(stream, count)
    else {
      this.resetStream(stream, Code.NO_ERROR)
      stream.handler.reset()
    }
  }

  /** Resets a stream that breaks a rule, and counts it against peers that do so repeatedly. */
  refuse(stream: ServerStream, code: number): void {
    if (!stream.isClosed) this.#refuse(stream.id, code)
  }

  /** Gives credit for `count` bytes of a stream that were passed on. */
  consumed(stream: ServerStream, count: number): void {
    if (count === 0) return
    // The connection got the credit of a closed stream when the stream closed.
    if (stream.isClosed || stream.isDropping) return
    stream.heldBytes -= count
    this.#consumed(count)
    this.#giveBack(stream, count)
  }

  // ── The end ────────────────────────────────────────────────────────────────────────────────────────────────

  /** Asks the peer to open no more streams. Streams that it opens before it knows are served: `sawGoaway` follows. */
  shutDown(): void {
    if (this.#isShuttingDown || this.#isOver) return
    this.#isShuttingDown = true
    this.sender.goaway(NO_LAST_STREAM, Code.NO_ERROR, '')
    this.sender.ping(false, new Uint8Array(8), 0)
  }

  /** Stops serving new streams. */
  settle(): void {
    if (this.#isOver || this.#lastServed !== NO_LAST_STREAM) return
    this.#isShuttingDown = true
    this.#lastServed = this.#lastStream
    this.sender.goaway(this.#lastStream, Code.NO_ERROR, '')
  }

  /** Called when the peer sends no more: incomplete requests cannot complete. */
  endRequests(): void {
    for (const stream of [...this.#streams.values()])
      if (!stream.isRequestEnded) {
        this.#remove(stream, false)
        stream.handler.reset()
      }
  }

  /** Ends the connection. Every stream's handler is called. */
  close(): void {
    this.#isOver = true
    this.#decoder.stop()
    this.sender.close()
    const open = [...this.#streams.values()]
    this.#streams.clear()
    const unanswered = open.reduce((count, stream) => (stream.isAnswerEnded ? count : count + 1), 0)
    if (unanswered > 0) this.#host.leftUnanswered(unanswered)
    for (const stream of open) {
      stream.isClosed = true
      stream.handler.reset()
    }
  }

  /** Ends the connection with this fault, which GOAWAY reports. */
  fail(code: number, reason: string): void {
    if (!this.#isOver) this.#fail({ code, reason })
  }

  #fail(fault: Code.Fault): void {
    this.sender.goaway(this.#lastStream, fault.code, fault.reason)
    this.close()
    this.#host.failed(fault)
  }

  #remove(stream: ServerStream, isReset: boolean): void {
    if (stream.isClosed) return
    stream.isClosed = true
    this.#closedStreams.add(stream.id, isReset)
    this.sender.forget(stream)
    this.#streams.delete(stream.id)
    if (stream.heldBytes > 0) this.#consumed(stream.heldBytes)
    stream.heldBytes = 0
    if (this.#streams.size === 0 && !this.#isOver) this.#host.idle()
  }

  /** Handles an error of the peer; an open stream's handler is called. */
  #refuse(id: number, code: number): void {
    const stream = this.#streams.get(id)
    this.sender.reset(id, code)
    if (stream === undefined) this.#closedStreams.add(id, true)
    else this.#remove(stream, true)
    this.#countReset()
    stream?.handler.reset()
  }

  #countReset(): void {
    if (!this.#resets.spend(1, this.#tick) || !this.#host.mayReset())
      this.#decoder.fail(Code.ENHANCE_YOUR_CALM, 'too many streams are reset')
  }

  #countNoise(count: number): void {
    if (!this.#noise.spend(count, this.#tick))
      this.#decoder.fail(Code.ENHANCE_YOUR_CALM, 'too many frames that say nothing')
  }

  #consumed(count: number): void {
    const increment = this.#receiving.consume(count)
    if (increment > 0) this.sender.windowUpdate(0, increment)
  }

  #giveBack(stream: ServerStream, count: number): void {
    if (stream.isRequestEnded || stream.isClosed) return
    const increment = stream.receiving.consume(count)
    if (increment > 0) this.sender.windowUpdate(stream.id, increment)
  }
}
