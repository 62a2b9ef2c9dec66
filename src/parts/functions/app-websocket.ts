// One WebSocket of an app that is a function, with the interfaces of the web and of Bun.

import type { AppWebSocket, Message, WebSocketHandlers } from '../../client/contracts/handler.ts'
import type { HandlerSink, Switched } from '../../handler/connection.ts'
import {
  BINARY,
  CLOSE,
  CLOSE_NO_CODE,
  CLOSE_NORMAL,
  CLOSE_TOO_LARGE,
  encodeClosePayload,
  encodeWebSocketMessage,
  PONG,
  TEXT,
  type WebSocketHandler,
  WebSocketParser,
} from '../../wire/websocket.ts'

/** The maximum size of a message, and of waiting bytes: Bun's `maxPayloadLength` and `backpressureLimit`. */
const MAX_MESSAGE_BYTES = 16_777_216
const MAX_WAITING_BYTES = 16_777_216
/** The code for a connection that ended without a close frame (RFC 6455 section 7.4.1). */
const CLOSE_ABNORMAL = 1006
/** The time in milliseconds for the other side's close frame. */
const CLOSING_MS = 5_000

type State = 0 | 1 | 2 | 3
const [CONNECTING, OPEN, CLOSING, CLOSED] = [0, 1, 2, 3] as const

/** A visitor's WebSocket, as an `AppWebSocket`. */
export class HandlerWebSocket<Data = unknown>
  extends EventTarget
  implements AppWebSocket<Data>, Switched, WebSocketHandler
{
  static readonly CONNECTING: 0 = CONNECTING
  static readonly OPEN: 1 = OPEN
  static readonly CLOSING: 2 = CLOSING
  static readonly CLOSED: 3 = CLOSED
  data: Data
  /** The subprotocol that the response named; `''` for none. */
  readonly protocol: string
  readonly extensions = ''
  binaryType: 'arraybuffer' | 'blob' = 'arraybuffer'
  onopen: ((event: Event) => unknown) | null = null
  onmessage: ((event: MessageEvent) => unknown) | null = null
  onclose: ((event: Event & { readonly code: number; readonly reason: string }) => unknown) | null = null
  onerror: ((event: Event) => unknown) | null = null
  readonly #handlers: WebSocketHandlers<Data> | undefined
  readonly #failed: (cause: unknown) => void
  readonly #parser = new WebSocketParser({ role: 'server', maxTextBytes: MAX_MESSAGE_BYTES }, this)
  #sink: HandlerSink | undefined
  #state: State = CONNECTING
  #pieces: Uint8Array[] = []
  #pieceBytes = 0
  #waiting: Uint8Array[] = []
  #waitingBytes = 0
  #isFull = false
  #timer: ReturnType<typeof setTimeout> | undefined

  /** Makes the socket. `failed` is called if the app's code threw. */
  constructor(
    data: Data,
    protocol: string,
    handlers: WebSocketHandlers<Data> | undefined,
    failed: (cause: unknown) => void,
  ) {
    super()
    this.data = data
    this.protocol = protocol
    this.#handlers = handlers
    this.#failed = failed
  }

  // ── For the app ────────────────────────────────────────────────────────────────────────────────────────────

  get readyState(): State {
    return this.#state
  }

  /** The number of bytes that wait for the visitor. */
  get bufferedAmount(): number {
    return this.#waitingBytes
  }

  /**
   * Sends a message. Returns its size in bytes; -1 if it waits after others; 0 if the connection is not open, or was
   * cut because of it.
   */
  send(message: Message): number {
    if (this.#state !== OPEN) return 0
    const isText = typeof message === 'string'
    const payload = isText ? Buffer.from(message) : bytesOf(message)
    const isSent = this.#write(encodeWebSocketMessage(isText ? TEXT : BINARY, payload))
    if ((this.#state as State) !== OPEN) return 0
    return isSent ? payload.length : -1
  }

  /** Closes the WebSocket once the waiting bytes are sent. `code`: 1000, or 3000 to 4999. */
  close(code: number = CLOSE_NORMAL, reason = ''): void {
    if (code !== CLOSE_NORMAL && !(code >= 3_000 && code <= 4_999))
      throw new RangeError(`the code of a close is 1000, or 3000 to 4999, not ${code}`)
    if (this.#state === OPEN) this.#sayClose(code, reason)
  }

  terminate(): void {
    if (this.#state === CLOSED) return
    this.#over(CLOSE_ABNORMAL, '')
    this.#sink?.terminate()
  }

  // ── Switched ───────────────────────────────────────────────────────────────────────────────────────────────

  /** Called after the response that switched protocols. */
  begin(sink: HandlerSink): void {
    this.#sink = sink
    this.#state = OPEN
    this.#call(() => this.#handlers?.open?.(this))
    this.#emit(new Event('open'), this.onopen)
  }

  received(bytes: Uint8Array): void {
    if (this.#state !== CLOSED) this.#parser.receive(bytes)
  }

  /** Called when the visitor sent FIN without a close frame before it. */
  ended(): void {
    this.#over(CLOSE_ABNORMAL, '')
    this.#sink?.end()
  }

  aborted(): void {
    this.#over(CLOSE_ABNORMAL, '')
  }

  drained(): void {
    this.#isFull = false
    while (!this.#isFull) {
      const piece = this.#waiting.shift()
      if (piece === undefined) break
      this.#waitingBytes -= piece.length
      this.#isFull = this.#sink?.write(piece) === false
    }
    if (this.#waiting.length === 0) this.#call(() => this.#handlers?.drain?.(this))
  }

  // ── From the visitor ───────────────────────────────────────────────────────────────────────────────────────

  text(message: string): void {
    this.#message(message)
  }

  binary(bytes: Uint8Array, start: number, end: number): void {
    this.#pieceBytes += end - start
    if (this.#pieceBytes > MAX_MESSAGE_BYTES) {
      this.#parser.stop()
      return this.failed(CLOSE_TOO_LARGE, 'a message over the limit')
    }
    this.#pieces.push(bytes.slice(start, end))
  }

  binaryEnded(): void {
    const whole = Buffer.concat(this.#pieces)
    this.#pieces = []
    this.#pieceBytes = 0
    this.#message(whole)
  }

  ping(payload: Uint8Array): void {
    if (this.#state === OPEN) this.#write(encodeWebSocketMessage(PONG, payload))
  }

  pong(): void {}

  /** Called for the visitor's close frame: the first, or the reply to ours. */
  closed(code: number, reason: string): void {
    if (this.#state === OPEN) this.#sayClose(code, reason)
    this.#over(code, reason)
    this.#sink?.end()
  }

  failed(code: number, reason: string): void {
    if (this.#state === OPEN) this.#sayClose(code, reason)
    this.#emit(new Event('error'), this.onerror)
    this.#over(code, reason)
    this.#sink?.end()
  }

  #message(message: string | Uint8Array): void {
    if (this.#state !== OPEN) return
    this.#call(() => this.#handlers?.message(this, message))
    if (this.#handlers !== undefined) return
    const bytes = typeof message === 'string' ? undefined : new Uint8Array(message)
    const data = bytes === undefined ? message : this.binaryType === 'blob' ? new Blob([bytes]) : bytes.buffer
    this.#emit(new MessageEvent('message', { data }), this.onmessage)
  }

  // ── To the visitor ─────────────────────────────────────────────────────────────────────────────────────────

  #sayClose(code: number, reason: string): void {
    this.#state = CLOSING
    const payload = code === CLOSE_NO_CODE ? new Uint8Array(0) : encodeClosePayload(code, reason)
    this.#write(encodeWebSocketMessage(CLOSE, payload))
    this.#timer = setTimeout(() => this.terminate(), CLOSING_MS)
  }

  /** Writes a frame. Returns `false` if it waits. */
  #write(frame: Uint8Array): boolean {
    if (!this.#isFull && this.#waiting.length === 0) {
      this.#isFull = this.#sink?.write(frame) === false
      return true
    }
    this.#waitingBytes += frame.length
    this.#waiting.push(frame)
    if (this.#waitingBytes > MAX_WAITING_BYTES) this.terminate()
    return false
  }

  #over(code: number, reason: string): void {
    if (this.#state === CLOSED) return
    this.#state = CLOSED
    clearTimeout(this.#timer)
    this.#parser.stop()
    this.#pieces = []
    // Waiting bytes are sent before the end of the connection.
    for (const piece of this.#waiting) this.#sink?.write(piece)
    this.#waiting = []
    this.#waitingBytes = 0
    this.#call(() => this.#handlers?.close?.(this, code, reason))
    const event = Object.assign(new Event('close'), { code, reason, wasClean: code !== CLOSE_ABNORMAL })
    this.#emit(event, this.onclose)
  }

  #emit<Kind extends Event>(event: Kind, on: ((event: Kind) => unknown) | null): void {
    if (on !== null) this.#call(() => on.call(this, event))
    this.dispatchEvent(event)
  }

  /** Calls code of the app. Its errors and rejections are reported, and end only this connection. */
  #call(code: () => unknown): void {
    const failed = (cause: unknown) => {
      this.#failed(cause)
      this.terminate()
    }
    try {
      const outcome = code()
      if (outcome instanceof Promise) outcome.catch(failed)
    } catch (cause) {
      failed(cause)
    }
  }
}

function bytesOf(message: Exclude<Message, string>): Uint8Array {
  if (!ArrayBuffer.isView(message)) return new Uint8Array(message)
  return new Uint8Array(message.buffer, message.byteOffset, message.byteLength)
}
