// One HTTP/2 connection to an app, on a stream of the session, for many exchanges at once. The app is not trusted:
// what it may cause is limited.

import type { ErrorCode } from '../../errors.ts'
import { Allowance } from '../../http/allowance.ts'
import type { RequestHead } from '../../http/head.ts'
import * as Code from '../../http2/error-codes.ts'
import { FieldList } from '../../http2/field-list.ts'
import * as Frame from '../../http2/frame.ts'
import { FrameDecoder, type FrameHandler } from '../../http2/frame-decoder.ts'
import {
  encodeRequestHead,
  encodeTrailers,
  maxHeadBlockBytes,
  maxTrailerBlockBytes,
} from '../../http2/head-block.ts'
import { HpackDecoder } from '../../http2/hpack-decoder.ts'
import { HpackEncoder } from '../../http2/hpack-encoder.ts'
import { Outbox } from '../../http2/outbox.ts'
import * as Settings from '../../http2/settings.ts'
import { INITIAL_WINDOW_BYTES, ReceiveWindow, SendWindow } from '../../http2/windows.ts'
import type { Deadline } from '../../server/contracts/clock.ts'
import type { StreamsServer } from '../../server/contracts/streams-context.ts'
import { AnswerQueue } from '../../server/upstreams/answer-queue.ts'
import type { ByteStream, StreamHandler } from '../../session/byte-stream.ts'
import type { Begun, Http2Channel } from './app-channel.ts'

/** The bytes of a response that may arrive before its visitor reads them: 20 Mbit/s over 100 ms. */
export const STREAM_WINDOW_BYTES = 262_144
/** The window of all responses of a connection. Credit is given at once, because one slow visitor must not stop the others. */
const CONNECTION_WINDOW_BYTES = 4_194_304
/** The number of exchanges at once on one connection, whatever the app allows, and before its settings arrive. */
export const MAX_EXCHANGES = 100
/** The maximum number of CONTINUATION frames in a head. */
const MAX_CONTINUATIONS = 16
/** The number of frames without use that the app may send at once, and again in each quarter of a second. Responses add to it. */
export const MAX_NOISE = 1_024
const NOISE_PER_TICK = 64
const NOISE_OF_WORK = 8
/** The cost of a head above the limits, which is decoded only for the table. */
const NOISE_OF_LARGE_HEAD = 64
/** The number of frames handled at once: as many of maximum size as a read of 512 KB contains. */
const FRAMES_AT_ONCE = 32
/** The bytes of frames that may wait while the app reads nothing. If exceeded, the connection ends. */
const MAX_WAITING_BYTES = 1_048_576
/** The time in milliseconds after which a connection without exchanges closes, shorter than that of HTTP/2 servers. */
const IDLE_MS = 60_000

const fields = new FieldList()

export interface AppHost {
  readonly server: StreamsServer
  readonly scheme: 'http' | 'https'
  /** Called when the connection takes no more requests. */
  left(connection: Http2App): void
  /** Called with the app's settings: whether it accepts WebSockets on streams (RFC 8441). */
  known(takesUpgrades: boolean): void
}

export class Http2Side {
  readonly id: number
  readonly channel: Http2Channel
  readonly sending: SendWindow
  readonly receiving: ReceiveWindow = new ReceiveWindow(STREAM_WINDOW_BYTES)

  constructor(id: number, channel: Http2Channel, windowBytes: number) {
    this.id = id
    this.channel = channel
    this.sending = new SendWindow(windowBytes)
  }
}

export class Http2App implements FrameHandler, Deadline {
  dueTick = 0
  readonly #host: AppHost
  readonly #stream: ByteStream
  readonly #decoder: FrameDecoder
  readonly #queue: AnswerQueue
  readonly #hpackDecoder: HpackDecoder
  readonly #encoder: HpackEncoder = new HpackEncoder()
  readonly #peer: Settings.PeerSettings = new Settings.PeerSettings('server')
  readonly #outbox: Outbox = new Outbox()
  readonly #window: SendWindow = new SendWindow(INITIAL_WINDOW_BYTES)
  readonly #receiving: ReceiveWindow = new ReceiveWindow(INITIAL_WINDOW_BYTES)
  readonly #sides = new Map<number, Http2Side>()
  /** The channels that wait for room, the next one first. */
  readonly #waiting = new Set<Http2Channel>()
  /** The WebSockets that wait for the settings of the app. */
  readonly #undecided = new Set<Http2Channel>()
  readonly #noise: Allowance = new Allowance(MAX_NOISE, NOISE_PER_TICK)
  #nextId = 1
  /** Whether the session takes no more for now. */
  #isBlocked = false
  /** Whether frames are being read. Replies to them are collected. */
  #isReading = false
  #isLeaving = false
  isKnown = false
  #isOver = false

  /** Makes a connection. `stream`: a new one of the session. */
  constructor(host: AppHost, stream: ByteStream) {
    const { limits, deadlines } = host.server
    this.#host = host
    this.#stream = stream
    this.#decoder = new FrameDecoder(this, {
      role: 'client',
      maxBlockBytes: limits.maxHeadBytes,
      maxContinuations: MAX_CONTINUATIONS,
    })
    this.#hpackDecoder = new HpackDecoder({ maxListBytes: limits.maxHeadBytes })
    this.#queue = new AnswerQueue(host.server.turns, (bytes, start, end) =>
      this.#takePortion(bytes, start, end),
    )
    stream.handler = this.#streamHandler()
    deadlines.watch(this)
    deadlines.arm(this, IDLE_MS)
    const into = this.#outbox.reserve(128)
    into.set(Frame.PREFACE)
    const end = Frame.writeSettings(into, Frame.PREFACE.length, [
      [Settings.ENABLE_PUSH, 0],
      [Settings.INITIAL_WINDOW_SIZE, STREAM_WINDOW_BYTES],
      [Settings.MAX_HEADER_LIST_SIZE, limits.maxHeadBytes],
    ])
    const increment = this.#receiving.enlarge(CONNECTION_WINDOW_BYTES)
    this.#outbox.end = Frame.writeWindowUpdate(into, end, 0, increment)
  }

  /** Whether another exchange may begin here. */
  get hasRoom(): boolean {
    const most = Math.min(this.#peer.maxConcurrentStreams, MAX_EXCHANGES)
    return !this.#isLeaving && this.#sides.size < most && this.#nextId < Frame.MAX_U31
  }

  // ── Requests ───────────────────────────────────────────────────────────────────────────────────────────────

  request(channel: Http2Channel, head: RequestHead, isLast: boolean): Begun {
    const side = new Http2Side(this.#nextId, channel, this.#peer.initialWindowSize)
    this.#nextId += 2
    this.#sides.set(side.id, side)
    this.#host.server.deadlines.disarm(this)
    const { maxFrameSize } = this.#peer
    const outbox = this.#outbox
    const at = outbox.end
    const into = outbox.reserve(Frame.maxHeadersBytes(maxHeadBlockBytes(head), maxFrameSize))
    const terms = { scheme: this.#host.scheme, upgrades: true }
    const end = encodeRequestHead(this.#encoder, head, terms, into, at + Frame.FRAME_HEADER_BYTES)
    outbox.end = Frame.frameHeaders(into, at, end, side.id, isLast, maxFrameSize)
    this.#send()
    return { connection: this, side }
  }

  /** Whether WebSockets may be opened on streams. `undefined` until it is known. */
  get takesUpgrades(): boolean {
    return this.#peer.enableConnectProtocol
  }

  /** Notifies the channel when the settings come. */
  decideLater(channel: Http2Channel): this {
    this.#undecided.add(channel)
    this.#send()
    return this
  }

  forget(channel: Http2Channel): void {
    this.#undecided.delete(channel)
  }

  /** Sends as much of bytes[start, end) as there is room for, and returns how much. */
  sendData(side: Http2Side, bytes: Uint8Array, start: number, end: number, isLast: boolean): number {
    let from = start
    while (from < end && !this.#isBlocked) {
      const count = Math.min(
        end - from,
        side.sending.available,
        this.#window.available,
        this.#peer.maxFrameSize,
        Frame.LEAST_MAX_FRAME_BYTES,
      )
      if (count <= 0) break
      const isEnd = isLast && from + count === end
      const into = this.#outbox.reserve(Frame.FRAME_HEADER_BYTES + count)
      const flags = isEnd ? Frame.END_STREAM : 0
      const at = Frame.writeFrameHeader(into, this.#outbox.end, Frame.DATA, flags, side.id, count)
      into.set(bytes.subarray(from, from + count), at)
      this.#outbox.end = at + count
      side.sending.sent(count)
      this.#window.sent(count)
      this.#noise.earn(NOISE_OF_WORK)
      from += count
      this.#send()
    }
    return from - start
  }

  sendEnd({ id }: Http2Side): void {
    const into = this.#outbox.reserve(Frame.FRAME_HEADER_BYTES)
    this.#outbox.end = Frame.writeFrameHeader(into, this.#outbox.end, Frame.DATA, Frame.END_STREAM, id, 0)
    this.#send()
  }

  sendTrailers({ id }: Http2Side, bytes: Uint8Array): void {
    const { maxFrameSize } = this.#peer
    const outbox = this.#outbox
    const at = outbox.end
    const into = outbox.reserve(Frame.maxHeadersBytes(maxTrailerBlockBytes(bytes.length), maxFrameSize))
    const end = encodeTrailers(this.#encoder, bytes, 0, bytes.length, into, at + Frame.FRAME_HEADER_BYTES)
    outbox.end = Frame.frameHeaders(into, at, end, id, true, maxFrameSize)
    this.#send()
  }

  /** Makes the channel wait for room: `flush` follows. */
  wait(channel: Http2Channel): void {
    this.#waiting.add(channel)
  }

  consumed(side: Http2Side, count: number): void {
    if (!this.#sides.has(side.id)) return
    this.#giveWindow(side.id, side.receiving.consume(count))
  }

  /** Ends the stream; with `code`, resets it. */
  leave(side: Http2Side, code: number | undefined): void {
    const known = this.#sides.get(side.id)
    if (known === undefined) return
    this.#sides.delete(side.id)
    this.#waiting.delete(known.channel)
    if (code !== undefined && !this.#isOver) {
      const into = this.#outbox.reserve(16)
      this.#outbox.end = Frame.writeReset(into, this.#outbox.end, side.id, code)
      this.#send()
    }
    if (this.#sides.size > 0) return
    if (this.#isLeaving) this.#close(Code.NO_ERROR, '', 'ORIGIN_CLOSED')
    else this.#host.server.deadlines.arm(this, IDLE_MS)
  }

  /** Called when the connection had no exchanges for a long time. */
  expired(): void {
    if (this.#sides.size === 0) this.#close(Code.NO_ERROR, '', 'ORIGIN_CLOSED')
  }

  // ── The stream of the session ──────────────────────────────────────────────────────────────────────────────

  #streamHandler(): StreamHandler {
    return {
      received: (bytes, start, end) => {
        if (this.#queue.isEmpty) this.#takePortion(bytes, start, end)
        else this.#queue.add(bytes, start, end)
      },
      writable: () => {
        this.#isBlocked = false
        this.#flushWaiting()
      },
      ended: () => this.#ended('ORIGIN_CLOSED'),
      reset: code => this.#ended(code),
    }
  }

  #ended(code: ErrorCode): void {
    if (this.#queue.isEmpty) this.#lose(code)
    else this.#queue.endWith(() => this.#lose(code))
  }

  /** Handles some frames. The rest follows now if there is time, otherwise in the next turn. */
  #takePortion(bytes: Uint8Array, start: number, end: number): void {
    let at = start
    do {
      this.#decoder.framesLeft = FRAMES_AT_ONCE
      this.#isReading = true
      const fault = this.#decoder.receive(bytes, at, end)
      this.#isReading = false
      // The windows of HTTP/2 limit the bytes that wait for visitors.
      this.#stream.consumed(this.#decoder.at - at)
      at = this.#decoder.at
      if (fault !== undefined) return this.#close(fault.code, fault.reason, 'ORIGIN_INVALID')
      this.#send()
      if (this.#isOver) return
    } while (at < end && this.#host.server.turns.hasTime)
    if (at < end) this.#queue.putBack(bytes, at, end)
  }

  #send(): void {
    const outbox = this.#outbox
    if (this.#isReading || this.#isOver || outbox.isEmpty) return
    const { bytes, end } = outbox
    if (!this.#stream.write(bytes, 0, end)) this.#isBlocked = true
    outbox.clear()
    if (this.#isBlocked && this.#stream.waitingBytes > MAX_WAITING_BYTES)
      this.#close(Code.ENHANCE_YOUR_CALM, 'too much waits for the app', 'ORIGIN_INVALID')
  }

  #flushWaiting(): void {
    for (const channel of [...this.#waiting]) {
      if (this.#isBlocked || this.#window.available <= 0) return
      this.#waiting.delete(channel)
      channel.resume()
    }
  }

  #lose(code: ErrorCode, reason?: string): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#isLeaving = true
    this.#decoder.stop()
    this.#queue.clear()
    this.#host.server.deadlines.forget(this)
    this.#host.left(this)
    const sides = [...this.#sides.values()]
    this.#sides.clear()
    this.#waiting.clear()
    for (const { channel } of sides) channel.lost(code, false, reason)
    const undecided = [...this.#undecided]
    this.#undecided.clear()
    for (const channel of undecided) channel.lost(code, false, reason)
    this.#stream.end()
  }

  #close(code: number, reason: string, error: ErrorCode): void {
    if (this.#isOver) return
    const into = this.#outbox.reserve(32 + reason.length)
    this.#outbox.end = Frame.writeGoaway(into, this.#outbox.end, 0, code, reason)
    this.#isReading = false
    this.#stream.write(this.#outbox.bytes, 0, this.#outbox.end)
    this.#outbox.clear()
    this.#lose(error, reason === '' ? undefined : `the app broke HTTP/2: ${reason}`)
    if (code !== Code.NO_ERROR) this.#stream.reset('PROTOCOL_ERROR')
  }

  // ── Frames of the app ──────────────────────────────────────────────────────────────────────────────────────

  frame(type: number, _flags: number, stream: number, length: number): void {
    // Responses and their bodies are useful; all other frames, and DATA without data, are not.
    const isWork = type === Frame.HEADERS || (type === Frame.DATA && length > 0)
    if (isWork) {
      // Much of an exchange that has ended may be in transit: it neither earns nor costs anything.
      if (this.#sides.has(stream)) this.#noise.earn(1)
    } else if (!this.#noise.spend(1, this.#host.server.deadlines.tick))
      this.#decoder.fail(Code.ENHANCE_YOUR_CALM, 'too many frames that say nothing')
    if (type !== Frame.DATA) return
    if (!this.#receiving.take(length))
      return this.#decoder.fail(Code.FLOW_CONTROL_ERROR, 'DATA beyond the window of the connection')
    this.#giveWindow(0, this.#receiving.consume(length))
    const side = this.#sides.get(stream)
    if (side !== undefined && !side.receiving.take(length))
      this.#refuse(side, Code.FLOW_CONTROL_ERROR, 'its body is beyond the window')
  }

  data(stream: number, bytes: Uint8Array, start: number, end: number): void {
    const side = this.#sides.get(stream)
    if (side !== undefined) this.#judge(side, side.channel.received(bytes, start, end))
  }

  dataEnded(stream: number, padding: number, isLast: boolean): void {
    const side = this.#sides.get(stream)
    if (side === undefined) return
    if (isLast) this.#judge(side, side.channel.ended())
    else if (padding > 0) this.#giveWindow(stream, side.receiving.consume(padding))
  }

  headers(
    stream: number,
    isLast: boolean,
    isMalformed: boolean,
    bytes: Uint8Array,
    start: number,
    end: number,
  ): void {
    if (!this.#hpackDecoder.decode(bytes, start, end, fields))
      return this.#decoder.fail(Code.COMPRESSION_ERROR, this.#hpackDecoder.problem)
    const side = this.#sides.get(stream)
    // The cost of a head in the allowance: more if it is too large or unexpected.
    const noise = fields.isTooLarge ? NOISE_OF_LARGE_HEAD : side === undefined ? 1 : 0
    if (noise > 0 && !this.#noise.spend(noise, this.#host.server.deadlines.tick))
      return this.#decoder.fail(Code.ENHANCE_YOUR_CALM, 'too many heads that are no answers')
    if (side !== undefined)
      this.#judge(side, isMalformed ? 'its stream depends on itself' : side.channel.answered(fields, isLast))
    else if (stream >= this.#nextId) this.#decoder.fail(Code.PROTOCOL_ERROR, 'an answer to no request')
  }

  reset(stream: number, code: number): void {
    const side = this.#sides.get(stream)
    if (side === undefined) return
    this.leave(side, undefined)
    side.channel.lost('ORIGIN_CLOSED', code === Code.REFUSED_STREAM)
  }

  settings(bytes: Uint8Array, start: number, end: number): void {
    const peer = this.#peer
    const before = peer.initialWindowSize
    const code = this.#noise.spend(NOISE_OF_WORK, this.#host.server.deadlines.tick)
      ? peer.read(bytes, start, end)
      : Code.ENHANCE_YOUR_CALM
    if (code !== 0) return this.#decoder.fail(code, peer.problem || 'too many SETTINGS')
    this.#encoder.setPeerLimit(peer.leastHeaderTableSize)
    this.#encoder.setPeerLimit(peer.headerTableSize)
    const growth = peer.initialWindowSize - before
    for (const side of this.#sides.values())
      if (!side.sending.grow(growth))
        return this.#decoder.fail(Code.FLOW_CONTROL_ERROR, 'INITIAL_WINDOW_SIZE lets a window pass 2^31 - 1')
    const into = this.#outbox.reserve(Frame.FRAME_HEADER_BYTES)
    this.#outbox.end = Frame.writeSettingsAck(into, this.#outbox.end)
    if (growth > 0) this.#flushWaiting()
    this.isKnown = true
    this.#host.known(peer.enableConnectProtocol)
    const undecided = [...this.#undecided]
    this.#undecided.clear()
    for (const channel of undecided) channel.upgradeKnown()
  }

  settingsAcknowledged(): void {}

  ping(bytes: Uint8Array, start: number): void {
    const into = this.#outbox.reserve(32)
    this.#outbox.end = Frame.writePing(into, this.#outbox.end, true, bytes, start)
  }

  pong(): void {}

  /** Called when the app takes no more requests here. It has not looked at those above the last one. */
  goaway(lastStream: number): void {
    this.#isLeaving = true
    this.#host.left(this)
    for (const side of [...this.#sides.values()]) {
      if (side.id <= lastStream) continue
      this.#sides.delete(side.id)
      this.#waiting.delete(side.channel)
      side.channel.lost('ORIGIN_CLOSED', true)
    }
    if (this.#sides.size === 0) this.#decoder.fail(Code.NO_ERROR, '')
  }

  windowUpdate(stream: number, increment: number): void {
    if (stream === 0) {
      if (!this.#window.grow(increment))
        return this.#decoder.fail(Code.FLOW_CONTROL_ERROR, 'the window of the connection passes 2^31 - 1')
      return this.#flushWaiting()
    }
    const side = this.#sides.get(stream)
    if (side === undefined) return
    if (!side.sending.grow(increment))
      this.#refuse(side, Code.FLOW_CONTROL_ERROR, 'the window of its request passes 2^31 - 1')
    else if (this.#waiting.delete(side.channel)) side.channel.resume()
  }

  streamFault(stream: number, code: number, reason: string): void {
    const side = this.#sides.get(stream)
    if (side !== undefined) this.#refuse(side, code, reason)
    else if (stream >= this.#nextId) this.#decoder.fail(code, reason)
  }

  #judge(side: Http2Side, fault: string | undefined): void {
    if (fault !== undefined) this.#refuse(side, Code.PROTOCOL_ERROR, fault)
  }

  #refuse(side: Http2Side, code: number, reason: string): void {
    this.leave(side, code)
    side.channel.lost('ORIGIN_INVALID', false, reason)
  }

  #giveWindow(stream: number, increment: number): void {
    if (increment === 0 || this.#isOver) return
    const into = this.#outbox.reserve(16)
    this.#outbox.end = Frame.writeWindowUpdate(into, this.#outbox.end, stream, increment)
    this.#send()
  }
}
