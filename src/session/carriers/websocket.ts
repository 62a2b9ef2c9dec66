// A carrier on one of our sockets: frames WebSocket messages in place, with one write per batch.
//
// The carrier begins after the HTTP upgrade. The JSON wire uses text messages on the same connection.

import { type Account, copyOf, free, SendQueue } from '../../bytes.ts'
import { TunnelError } from '../../errors.ts'
import type { Socket, SocketHandler } from '../../socket.ts'
import { maskInPlace } from '../../wire/mask.ts'
import {
  BINARY,
  CLOSE,
  CLOSE_NO_CODE,
  CLOSE_NORMAL,
  encodeClosePayload,
  encodeWebSocketMessage,
  MAX_WS_HEADER_BYTES,
  PING,
  PONG,
  WebSocketParser,
  writeWebSocketHeader,
} from '../../wire/websocket.ts'
import type { Carrier, CarrierHandler } from '../carrier.ts'
import type { Scheduler } from '../scheduler.ts'
import { MAX_PINGS_PER_SECOND, Tolerance } from '../tolerance.ts'
import type { Turns, Waiting } from '../turns.ts'
import { TextBatch } from './text-batch.ts'

export interface WebSocketCarrierOptions {
  readonly role: 'server' | 'client'
  readonly scheduler: Scheduler
  /** Returns 32 random bits for each message of a client (RFC 6455 section 5.3). A server does not mask. */
  readonly maskKey?: () => number
  /** The maximum length of a text message, read when one begins or continues. Default 0: text is refused. */
  readonly maxTextBytes?: number | (() => number)
  readonly text?: (message: string) => void
  /** Called when a portion of the read bytes was handled. */
  readonly taken?: () => void
  /** Divides time among carriers: bytes beyond a portion wait for a turn. Without it, all are handled at once. */
  readonly turns?: Turns
}

/** The number of WebSocket frames handled in one turn. Apart from its content, a frame costs about 60 ns. */
const FRAMES_AT_ONCE = 512
/** The size above which a read is handled only if there is time: 200 clients may each send a long message in the same turn. */
const SMALL_READ_BYTES = 4_096

/** The time in milliseconds for the far side to read the sent bytes and to close as well. */
const CLOSE_TIMEOUT_MS = 5_000

/** The length above which a text message leaves at once, from a buffer that all carriers share. */
const MAX_BATCHED_TEXT_CHARS = 16_384
const MAX_KEPT_TEXT_BYTES = 262_144
const MAX_KEPT_LARGE_TEXT_BYTES = 4_194_304
const largeTexts = new TextBatch(MAX_KEPT_LARGE_TEXT_BYTES)

const NO_HANDLER: CarrierHandler = { received() {}, drained() {}, closed() {} }
const NO_PAYLOAD = new Uint8Array(0)

export class WebSocketCarrier implements Carrier, Waiting {
  readonly headroom: number = MAX_WS_HEADER_BYTES
  /** The receiver of events. Set it before the next event: its owner can only be made after the carrier. */
  handler: CarrierHandler = NO_HANDLER
  /** The handler for the socket's events from now on. */
  readonly socketHandler: SocketHandler
  readonly #socket: Socket
  readonly #scheduler: Scheduler
  readonly #maskKey: (() => number) | undefined
  readonly #parser: WebSocketParser
  /** Messages that the socket did not take yet; the first may be in part. */
  readonly #unsent: SendQueue = new SendQueue()
  /** The text messages of this event-loop tick. */
  readonly #texts: TextBatch = new TextBatch(MAX_KEPT_TEXT_BYTES)
  readonly #turns: Turns | undefined
  readonly #taken: (() => void) | undefined
  /** Bytes that were read and wait for the carrier's turn, or because the reader has paused. */
  readonly #rest: Uint8Array[] = []
  #isHeld = false
  #isWaiting = false
  #endMeanwhile: (() => void) | undefined
  readonly #pings = new Tolerance(MAX_PINGS_PER_SECOND)
  /** The last received ping. Only that one needs a reply (section 5.5.3). */
  #unansweredPing: Uint8Array | undefined
  #owesDrained = false
  /** Whether a close frame was sent, or is queued as the last frame. */
  #isClosing = false
  #isClosed = false
  #cancelTimeout: (() => void) | undefined

  constructor(socket: Socket, options: WebSocketCarrierOptions) {
    this.#socket = socket
    socket.share?.()
    this.#scheduler = options.scheduler
    this.#maskKey = options.maskKey
    const { role, maxTextBytes = 0, text } = options
    this.#parser = new WebSocketParser(
      { role, maxTextBytes },
      {
        binary: (bytes, start, end) => this.handler.received(bytes, start, end),
        text: message => text?.(message),
        ping: payload => {
          if (this.#isTolerated()) this.#unansweredPing = copyOf(payload)
        },
        pong: () => void this.#isTolerated(),
        closed: (code, reason) => this.#peerClosed(code, reason),
        failed: (code, reason) => this.#peerFailed(code, reason),
      },
    )
    this.#turns = options.turns
    this.#taken = options.taken
    this.socketHandler = {
      received: bytes => {
        const isLarge = bytes.length > SMALL_READ_BYTES
        if (this.#isBusy) this.#rest.push(copyOf(bytes))
        else if (isLarge && this.#turns?.hasTime === false) this.#wait(copyOf(bytes))
        else this.#take(bytes)
      },
      drained: () => this.#drained(),
      ended: () => this.#inOrder(() => this.#ended()),
      closed: error => this.#inOrder(() => this.#socketClosed(error)),
    }
  }

  get unsentBytes(): number {
    return this.#unsent.length
  }

  send(batch: Uint8Array, start: number, end: number): boolean {
    // The other side no longer reads, so the array is free.
    if (this.#isClosing) return true
    const key = this.#maskKey?.()
    if (key !== undefined) maskInPlace(batch, start, end, key)
    const from = writeWebSocketHeader(batch, start, end - start, BINARY, key)
    if (this.#unsent.send(this.#socket, batch, from, end) === end - from) return true
    this.#owesDrained = true
    return false
  }

  /**
   * Sends a text message, together with all others of the same event-loop tick. Returns `false` if the socket is
   * full:
   * `drained` follows.
   */
  sendText(message: string): boolean {
    if (this.#isClosing) return true
    if (message.length > MAX_BATCHED_TEXT_CHARS) {
      this.#sendTexts()
      largeTexts.add(message, this.#maskKey?.())
      if (!this.#write(largeTexts.take())) this.#owesDrained = true
    } else {
      if (this.#texts.length === 0) this.#scheduler.soon(() => this.#sendTexts())
      this.#texts.add(message, this.#maskKey?.())
    }
    if (this.#unsent.length === 0) return true
    this.#owesDrained = true
    return false
  }

  /** Asks for a sign of life: every peer responds with a pong (RFC 6455 section 5.5.2). */
  ping(): void {
    if (!this.#isClosing && this.#unsent.length === 0) this.#write(this.#message(PING, NO_PAYLOAD))
  }

  pause(): void {
    if (this.#isHeld) return
    this.#isHeld = true
    this.#parser.pause()
    this.#socket.pause()
  }

  resume(): void {
    if (!this.#isHeld) return
    this.#isHeld = false
    this.#parser.resume()
    if (!this.#isWaiting) this.#goOn()
  }

  turn(): void {
    this.#isWaiting = false
    if (!this.#isHeld) this.#goOn()
  }

  close(code: number = CLOSE_NORMAL, reason = ''): void {
    if (this.#isClosing) return
    this.#sendTexts()
    this.#isClosing = true
    // Only the end of the connection still matters. Waiting and later bytes are dropped.
    if (this.#isBusy) {
      this.#stopReading()
      this.#socket.resume()
    }
    this.#cancelTimeout = this.#scheduler.after(CLOSE_TIMEOUT_MS, () => this.#socket.terminate())
    // 1005 is never sent: it is the API's way to say "no code".
    const payload = code === CLOSE_NO_CODE ? NO_PAYLOAD : encodeClosePayload(code, reason)
    if (this.#write(this.#message(CLOSE, payload))) this.#socket.end()
    this.#tellEndMeanwhile()
  }

  /** Sets the account that is charged for bytes that the far side does not read. */
  set account(account: Account) {
    this.#unsent.account = account
  }

  /** The size of an incomplete text message. */
  get unfinishedTextBytes(): number {
    return this.#parser.unfinishedTextBytes
  }

  terminate(): void {
    this.#isClosing = true
    this.#stopReading()
    this.#socket.terminate()
    this.#tellEndMeanwhile()
  }

  // ── What arrives ───────────────────────────────────────────────────────────────────────────────────────────

  /** Whether bytes wait, so that new ones must come after them. */
  get #isBusy(): boolean {
    return this.#isHeld || this.#isWaiting || this.#rest.length > 0
  }

  /** Handles a portion, and more if there is time. The rest waits. */
  #take(bytes: Uint8Array, isOwn = false): void {
    const most = this.#turns === undefined ? Number.POSITIVE_INFINITY : FRAMES_AT_ONCE
    let at = 0
    do at = this.#parser.receive(bytes, at, most)
    while (at < bytes.length && !this.#isHeld && this.#turns?.hasTime)
    this.#answerPing()
    this.#taken?.()
    if (at === bytes.length) {
      if (isOwn && bytes.byteOffset + at > SMALL_READ_BYTES) free(bytes)
      return
    }
    // Only the end of the connection still matters.
    if (this.#isClosing) return this.#parser.stop()
    const rest = isOwn ? bytes.subarray(at) : copyOf(bytes, at)
    if (this.#isHeld) this.#rest.unshift(rest)
    else this.#wait(rest)
  }

  #wait(first?: Uint8Array): void {
    if (first !== undefined) this.#rest.unshift(first)
    this.#isWaiting = true
    this.#socket.pause()
    this.#turns?.wait(this)
  }

  /** Handles a portion of the waiting bytes. If none are left, reads again. */
  #goOn(): void {
    const next = this.#rest.shift()
    if (next !== undefined) this.#take(next, true)
    if (this.#isHeld || this.#isWaiting) return
    if (this.#rest.length > 0) return this.#wait()
    if (this.#endMeanwhile === undefined) this.#socket.resume()
    else this.#tellEndMeanwhile()
  }

  /** Passes on the end that the socket reported, once. No other event follows. */
  #tellEndMeanwhile(): void {
    const ended = this.#endMeanwhile
    this.#endMeanwhile = undefined
    ended?.()
  }

  /** Reports an end after the bytes that were read before it. */
  #inOrder(end: () => void): void {
    if (!this.#isBusy || this.#isClosing) return end()
    const earlier = this.#endMeanwhile
    this.#endMeanwhile = () => {
      earlier?.()
      end()
    }
  }

  #stopReading(): void {
    this.#parser.stop()
    this.#rest.length = 0
    this.#isHeld = false
    this.#isWaiting = false
    this.#turns?.forget(this)
  }

  /** Counts a ping or a pong. Returns `false` if there are too many. */
  #isTolerated(): boolean {
    if (this.#pings.allows(this.#scheduler.now())) return true
    this.#unansweredPing = undefined
    this.#tellClosed(new TunnelError('FLOOD'))
    this.terminate()
    return false
  }

  // ── What is sent ───────────────────────────────────────────────────────────────────────────────────────────

  #sendTexts(): void {
    if (this.#texts.length === 0 || this.#isClosing) return
    if (!this.#write(this.#texts.take())) this.#owesDrained = true
  }

  #message(opcode: number, payload: Uint8Array): Uint8Array {
    return encodeWebSocketMessage(opcode, payload, this.#maskKey?.())
  }

  #write(message: Uint8Array): boolean {
    return this.#unsent.send(this.#socket, message) === message.length
  }

  #drained(): void {
    this.#unsent.flush(this.#socket)
    if (!this.#unsent.isEmpty) return
    if (this.#isClosing) return this.#socket.end()
    this.#answerPing()
    // The batches before it left, even if the pong filled the socket again.
    if (this.#owesDrained) {
      this.#owesDrained = false
      this.handler.drained()
    }
  }

  #answerPing(): void {
    const ping = this.#unansweredPing
    if (ping === undefined || this.#isClosing || !this.#unsent.isEmpty) return
    this.#unansweredPing = undefined
    this.#write(this.#message(PONG, ping))
  }

  #peerClosed(code: number, reason: string): void {
    this.close(code)
    const isNormal = code === CLOSE_NORMAL || code === CLOSE_NO_CODE
    const why = reason === '' ? '' : `: ${reason}`
    this.#tellClosed(isNormal ? undefined : lost(`closed with ${code}${why}`))
  }

  #peerFailed(code: number, reason: string): void {
    this.close(code, reason)
    this.#tellClosed(
      new TunnelError('PROTOCOL_ERROR', `The other side broke the WebSocket protocol: ${reason}.`),
    )
  }

  /** Called for FIN. The end is in good order only after a close frame. */
  #ended(): void {
    if (this.#isClosing) {
      // Waiting bytes are sent first; `drained` then ends the socket.
      if (this.#unsent.length === 0) this.#socket.end()
      return
    }
    this.#tellClosed(lost('ended the connection without closing the WebSocket'))
    this.terminate()
  }

  #socketClosed(error?: Error): void {
    this.#isClosing = true
    this.#cancelTimeout?.()
    this.#unsent.clear()
    this.#tellClosed(error)
  }

  #tellClosed(error?: Error): void {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#parser.stop()
    this.#rest.length = 0
    this.handler.closed(error)
  }
}

function lost(how: string): TunnelError {
  return new TunnelError('CARRIER_LOST', `The other side ${how}.`)
}
