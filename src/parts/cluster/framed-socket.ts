// A connection between two servers with explicit ends. Its bytes come in frames, each with its length (u16) before it; an empty
// frame ends a direction. A connection that closes before both ends was cut: TLS and unix sockets have no reset.

import { UNHEARD } from '../../server/contracts/raw-visit.ts'
import type { Endpoints, Socket, SocketHandler } from '../../socket.ts'

const HEADER_BYTES = 2
const MAX_FRAME_BYTES = 0xffff
const END = Uint8Array.of(0, 0)
const frame = new Uint8Array(HEADER_BYTES + MAX_FRAME_BYTES)

/** A socket that handles the events of the connection below, and passes their meaning to `handler`. */
export class FramedSocket implements Socket, SocketHandler {
  handler: SocketHandler
  readonly #socket: Socket
  /** The rest of a header, or of the end, for which the connection had no room. */
  #unsentHeader: Uint8Array = new Uint8Array(0)
  /** The number of bytes missing in the current frame. The next bytes written belong to it. */
  #owedBytes = 0
  #hasEnded = false
  /** The number of bytes of the header read so far, and their value. */
  #headerBytes = 0
  #length = 0
  #expectedBytes = 0
  #hasPeerEnded = false
  #isClosed = false

  constructor(socket: Socket, handler: SocketHandler) {
    this.#socket = socket
    this.handler = handler
  }

  /** Frames a socket. `accept` gets the framed socket, and returns its handler. */
  static over(socket: Socket, accept: (framed: Socket) => SocketHandler): SocketHandler {
    const framed = new FramedSocket(socket, UNHEARD)
    framed.handler = accept(framed)
    return framed
  }

  // ── To the connection ──────────────────────────────────────────────────────────────────────────────────────

  write(bytes: Uint8Array, start = 0, end: number = bytes.length): number {
    if (!this.#sendHeader()) return 0
    let at = start
    while (at < end) {
      const count = Math.min(end - at, this.#owedBytes || MAX_FRAME_BYTES)
      const taken =
        this.#owedBytes > 0 ? this.#goOn(bytes, at, at + count) : this.#begin(bytes, at, at + count)
      at += taken
      if (taken < count) break
    }
    return at - start
  }

  #begin(bytes: Uint8Array, from: number, to: number): number {
    const count = to - from
    frame[0] = count >>> 8
    frame[1] = count
    frame.set(bytes.subarray(from, to), HEADER_BYTES)
    const written = this.#socket.write(frame, 0, HEADER_BYTES + count)
    if (written === 0) return 0
    const taken = Math.max(0, written - HEADER_BYTES)
    this.#owedBytes = count - taken
    if (written < HEADER_BYTES) this.#unsentHeader = Uint8Array.of(count)
    return taken
  }

  #goOn(bytes: Uint8Array, from: number, to: number): number {
    const taken = this.#socket.write(bytes, from, to)
    this.#owedBytes -= taken
    return taken
  }

  /** Sends the header. Returns `false` if the connection is full. */
  #sendHeader(): boolean {
    if (this.#unsentHeader.length === 0) return true
    const taken = this.#socket.write(this.#unsentHeader)
    this.#unsentHeader = this.#unsentHeader.subarray(taken)
    return this.#unsentHeader.length === 0
  }

  /** Ends the direction after all bytes were written. */
  end(): void {
    if (this.#hasEnded) return
    this.#hasEnded = true
    this.#unsentHeader = Buffer.concat([this.#unsentHeader, END])
    if (this.#sendHeader()) this.#leaveIfOver()
  }

  #leaveIfOver(): void {
    if (this.#hasEnded && this.#hasPeerEnded && this.#unsentHeader.length === 0) this.#socket.end()
  }

  terminate(): void {
    this.#socket.terminate()
  }

  pause(): void {
    this.#socket.pause()
  }

  resume(): void {
    this.#socket.resume()
  }

  keepAlive(idleMs: number): void {
    this.#socket.keepAlive?.(idleMs)
  }

  get remoteAddress(): string {
    return this.#socket.remoteAddress
  }

  endpoints(): Endpoints | undefined {
    return this.#socket.endpoints()
  }

  // ── From the connection ────────────────────────────────────────────────────────────────────────────────────

  received(bytes: Uint8Array): void {
    let at = 0
    while (at < bytes.length && !this.#isClosed && !this.#hasPeerEnded) {
      if (this.#expectedBytes === 0) this.#readHeader(bytes[at++] ?? 0)
      else {
        const end = Math.min(bytes.length, at + this.#expectedBytes)
        this.#expectedBytes -= end - at
        this.handler.received(bytes.subarray(at, end))
        at = end
      }
    }
  }

  #readHeader(byte: number): void {
    this.#length = (this.#length << 8) | byte
    if (++this.#headerBytes < HEADER_BYTES) return
    const length = this.#length
    this.#headerBytes = 0
    this.#length = 0
    if (length > 0) {
      this.#expectedBytes = length
      return
    }
    this.#hasPeerEnded = true
    this.handler.ended()
    this.#leaveIfOver()
  }

  drained(): void {
    if (!this.#sendHeader()) return
    if (this.#hasEnded) this.#leaveIfOver()
    else this.handler.drained()
  }

  /** Called for an end of the connection that no frame announced. */
  ended(): void {
    if (!this.#hasPeerEnded) this.#socket.terminate()
  }

  closed(error?: Error): void {
    if (this.#isClosed) return
    this.#isClosed = true
    const isWhole = this.#hasEnded && this.#hasPeerEnded && this.#unsentHeader.length === 0
    this.handler.closed(isWhole ? undefined : (error ?? new Error('the other server has cut the connection')))
  }
}
