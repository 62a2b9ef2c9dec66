// A carrier over a socket of ours: WebSocket messages framed by hand, in place, one write per batch.
//
// It begins where the HTTP upgrade ended. The same connection carries the JSON wire: that is its text messages.

import { copyOf } from '../../bytes.ts'
import { TunnelError } from '../../errors.ts'
import type { Socket, SocketHandler } from '../../socket.ts'
import { type Account, Unsent } from '../../unsent.ts'
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
import { TextBatch } from './text-batch.ts'

export interface WebSocketCarrierOptions {
  readonly role: 'server' | 'client'
  readonly scheduler: Scheduler
  /** 32 random bits for each message of a client (RFC 6455 section 5.3). A server does not mask. */
  readonly maskKey?: () => number
  /** Longest text message. Default 0: text is refused. */
  readonly maxTextBytes?: number
  /** A text message arrived. */
  readonly text?: (message: string) => void
}

/** How long the far side may take to read what was sent and to close too. */
const CLOSE_TIMEOUT_MS = 5_000

/** A text message above this leaves at once, made in a buffer that all carriers share. */
const MAX_BATCHED_TEXT_CHARS = 16_384
const MAX_KEPT_TEXT_BYTES = 262_144
const MAX_KEPT_LARGE_TEXT_BYTES = 4_194_304
const largeTexts = new TextBatch(MAX_KEPT_LARGE_TEXT_BYTES)

const NOBODY: CarrierHandler = { received() {}, drained() {}, closed() {} }
const NO_PAYLOAD = new Uint8Array(0)

export class WebSocketCarrier implements Carrier {
  readonly headroom: number = MAX_WS_HEADER_BYTES
  /** Who hears of it. To be set before the next event, since its owner needs the carrier to be made. */
  handler: CarrierHandler = NOBODY
  /** Where the events of the socket go from now on. */
  readonly socketHandler: SocketHandler
  readonly #socket: Socket
  readonly #scheduler: Scheduler
  readonly #maskKey: (() => number) | undefined
  readonly #parser: WebSocketParser
  /** Messages, the first one perhaps in part, that the socket did not take yet. */
  readonly #unsent: Unsent = new Unsent()
  /** Text messages of this event-loop tick. */
  readonly #texts: TextBatch = new TextBatch(MAX_KEPT_TEXT_BYTES)
  /** Only the last ping needs an answer (section 5.5.3): while the socket is full no others are kept. */
  #unansweredPing: Uint8Array | undefined
  #owesDrained = false
  /** A close frame went out, or is the last one in line. */
  #isClosing = false
  #isClosed = false
  #cancelTimeout: (() => void) | undefined

  constructor(socket: Socket, options: WebSocketCarrierOptions) {
    this.#socket = socket
    this.#scheduler = options.scheduler
    this.#maskKey = options.maskKey
    const { role, maxTextBytes = 0, text } = options
    this.#parser = new WebSocketParser(
      { role, maxTextBytes },
      {
        binary: (bytes, start, end) => this.handler.received(bytes, start, end),
        text: message => text?.(message),
        ping: payload => this.#answerPing(payload),
        pong: () => {},
        closed: (code, reason) => this.#peerClosed(code, reason),
        failed: (code, reason) => this.#peerFailed(code, reason),
      },
    )
    this.socketHandler = {
      received: bytes => this.#parser.receive(bytes),
      drained: () => this.#drained(),
      ended: () => this.#ended(),
      closed: error => this.#socketClosed(error),
    }
  }

  /** Bytes that wait for the socket. */
  get unsentBytes(): number {
    return this.#unsent.length
  }

  send(batch: Uint8Array, start: number, end: number): boolean {
    // Nobody will read it: the array is free again.
    if (this.#isClosing) return true
    const key = this.#maskKey?.()
    if (key !== undefined) maskInPlace(batch, start, end, key)
    const from = writeWebSocketHeader(batch, start, end - start, BINARY, key)
    if (this.#unsent.send(this.#socket, batch, false, from, end) === end - from) return true
    this.#owesDrained = true
    return false
  }

  /**
   * Sends a text message, together with all others of the same event-loop tick. `false`: the socket is full, and
   * `drained` follows.
   */
  sendText(message: string): boolean {
    if (this.#isClosing) return true
    if (message.length > MAX_BATCHED_TEXT_CHARS) {
      this.#sendTexts()
      largeTexts.add(message, this.#maskKey?.())
      this.#writeReused(largeTexts.take())
    } else {
      if (this.#texts.length === 0) this.#scheduler.soon(() => this.#sendTexts())
      this.#texts.add(message, this.#maskKey?.())
    }
    if (this.#unsent.length === 0) return true
    this.#owesDrained = true
    return false
  }

  /** Asks for a sign of life: any peer answers with a pong (RFC 6455 section 5.5.2). */
  ping(): void {
    if (!this.#isClosing && this.#unsent.length === 0) this.#write(this.#message(PING, NO_PAYLOAD))
  }

  close(code: number = CLOSE_NORMAL, reason = ''): void {
    if (this.#isClosing) return
    this.#sendTexts()
    this.#isClosing = true
    this.#cancelTimeout = this.#scheduler.after(CLOSE_TIMEOUT_MS, () => this.#socket.terminate())
    // Never answered with 1005 itself: that is how "no code" is told.
    const payload = code === CLOSE_NO_CODE ? NO_PAYLOAD : encodeClosePayload(code, reason)
    if (this.#write(this.#message(CLOSE, payload))) this.#socket.end()
  }

  /** Is charged for what the far side does not take. */
  set account(account: Account) {
    this.#unsent.account = account
  }

  /** Of a text message whose end has not come yet. */
  get unfinishedTextBytes(): number {
    return this.#parser.unfinishedTextBytes
  }

  terminate(): void {
    this.#isClosing = true
    this.#parser.stop()
    this.#socket.terminate()
  }

  #sendTexts(): void {
    if (this.#texts.length === 0 || this.#isClosing) return
    this.#writeReused(this.#texts.take())
  }

  /** Writes what lies in a buffer that others use next: what the socket does not take is copied. */
  #writeReused(frames: Uint8Array): void {
    const taken = this.#unsent.send(this.#socket, frames, true)
    if (taken < frames.length) this.#owesDrained = true
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
    if (this.#unansweredPing !== undefined) {
      const ping = this.#unansweredPing
      this.#unansweredPing = undefined
      this.#write(this.#message(PONG, ping))
    }
    // Even if the pong filled the socket again: the batches before it left.
    if (this.#owesDrained) {
      this.#owesDrained = false
      this.handler.drained()
    }
  }

  #answerPing(payload: Uint8Array): void {
    if (this.#isClosing) return
    if (!this.#unsent.isEmpty) this.#unansweredPing = copyOf(payload)
    else this.#write(this.#message(PONG, payload))
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

  /** FIN: in good order only after a close frame. */
  #ended(): void {
    if (this.#isClosing) {
      // What still waits goes out first; `drained` ends the socket then.
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
    this.handler.closed(error)
  }
}

function lost(how: string): TunnelError {
  return new TunnelError('CARRIER_LOST', `The other side ${how}.`)
}
