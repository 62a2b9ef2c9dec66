// A connection to another server of the cluster as a stream: sends the written bytes, and receives the response. It
// belongs to the pool for requests, or to one raw visitor.

import { copyOf } from '../../bytes.ts'
import { type ErrorCode, errorOf } from '../../errors.ts'
import { eventLoop } from '../../event-loop.ts'
import { latin1 } from '../../http/characters.ts'
import type { RawOpening } from '../../server/contracts/servers.ts'
import type { StreamHandler } from '../../session/byte-stream.ts'
import { QueuedStream } from '../../session/queued-stream.ts'
import type { Address, Socket, SocketHandler } from '../../socket.ts'
import { dial } from '../../sockets/dial.ts'
import { FramedSocket } from './framed-socket.ts'
import { MAX_GREETING_BYTES, numberIn, PEER_SILENCE_MS } from './peer-wire.ts'

/** The number of bytes that the visitor has not taken at which reading stops: the initial credit of a session's stream. */
const MAX_WAITING_BYTES = 262_144

/**
 * The time in milliseconds for the other server to connect and greet. A frozen server accepts connections and sends
 * nothing. No request was sent by then, so it may go to another server.
 */
const GREETING_MS = 2_000

export interface PeerChannelHost {
  readonly address: Address
  /** Whether the bytes after the greeting are framed. */
  readonly isFramed: boolean
  /** Called when the other server cannot be reached, or refuses this one. `isSilent`: it sent nothing for `GREETING_MS`. */
  failed(error: Error | undefined, isSilent: boolean): void
  /** Called when the other server has accepted this one. */
  greeted(): void
  gone(channel: PeerChannel): void
}

/** The silence in milliseconds before keepalive probes, as for raw visitors, which may be silent. */
const KEEP_ALIVE_MS = 60_000

export class PeerChannel extends QueuedStream implements SocketHandler {
  readonly #host: PeerChannelHost
  readonly #greet: (number: string) => Uint8Array
  /** Whether the other server has sent the number of this connection. */
  #isNumbered = false
  readonly #raw: RawOpening | undefined
  #framed: FramedSocket | undefined
  /** Whether the other server has accepted this one. */
  #isTaken = false
  #socket: Socket | undefined
  #isGreeted = false
  #answer: Uint8Array = new Uint8Array(0)
  /** The number of bytes passed on since the connection was paused. */
  #consumedBytes = 0
  #isPaused = false
  readonly #dialling = new AbortController()
  #stopTimer: () => void
  #waitingBytes = 0

  /** Makes a channel. `greet` returns the greeting of this server; `number` is `''` at first. */
  constructor(
    host: PeerChannelHost,
    greet: (number: string) => Uint8Array,
    handler: StreamHandler,
    raw?: RawOpening,
  ) {
    super(handler)
    this.#host = host
    this.#greet = greet
    this.#raw = raw
    this.#stopTimer = eventLoop.after(GREETING_MS, () => {
      this.#socket?.terminate()
      this.#lose(new Error('it does not answer'), 'CLIENT_GONE', true)
    })
    void this.#dial()
  }

  async #dial(): Promise<void> {
    try {
      const socket = await dial(this.#host.address, this, this.#dialling.signal)
      if (this.isClosed) return socket.terminate()
      this.#socket = socket
      socket.keepAlive?.(PEER_SILENCE_MS)
      socket.write(this.#greet(''))
    } catch (error) {
      this.#lose(errorOf(error))
    }
  }

  cut(): void {
    this.#socket?.terminate()
    this.#lose(undefined)
  }

  // ── From the pool ──────────────────────────────────────────────────────────────────────────────────────────

  protected send(bytes: Uint8Array, start: number, end: number): boolean {
    const isFree = this.#isGreeted && this.queue.length === 0
    const taken = isFree ? (this.#socket?.write(bytes, start, end) ?? 0) : 0
    if (taken === end - start) return true
    this.queue.push(copyOf(bytes, start + taken, end))
    return false
  }

  protected sendEnd(): void {
    this.#flush()
  }

  protected sendReset(): void {
    this.isClosed = true
    this.queue.length = 0
    this.#stopTimer()
    this.#dialling.abort()
    this.#socket?.terminate()
    this.#host.gone(this)
  }

  protected giveCredit(count: number): void {
    this.#consumedBytes += count
    // Reading continues after half of the room is free: few pauses, and the connection does not run out.
    if (this.#consumedBytes * 2 < MAX_WAITING_BYTES) return
    this.#waitingBytes -= this.#consumedBytes
    this.#consumedBytes = 0
    if (!this.#isPaused || this.#waitingBytes >= MAX_WAITING_BYTES) return
    this.#isPaused = false
    this.#socket?.resume()
  }

  // ── From the connection ────────────────────────────────────────────────────────────────────────────────────

  received(bytes: Uint8Array): void {
    if (this.isClosed) return
    if (!this.#isGreeted) return this.#takeGreeting(bytes)
    if (this.#framed !== undefined) return this.#framed.received(bytes)
    this.#hand(bytes)
  }

  #takeGreeting(bytes: Uint8Array): void {
    const answer = Buffer.concat([this.#answer, bytes])
    const end = answer.indexOf('\r\n\r\n')
    if (end < 0 && answer.length < MAX_GREETING_BYTES) {
      this.#answer = answer
      return
    }
    const line = latin1(answer, 0, Math.min(answer.length, 12))
    if (line === 'HTTP/1.1 401' && !this.#isNumbered) {
      const number = numberIn(latin1(answer, 0, answer.length))
      this.#isNumbered = true
      this.#answer = new Uint8Array(0)
      if (number !== '') return void this.#socket?.write(this.#greet(number))
    }
    if (line === 'HTTP/1.1 102' && this.#raw !== undefined && !this.#isTaken) {
      // Reading continues once, when the guards have admitted the visitor and the tunnel's client is connected. With
      // a call for each, a megabyte took 10 s.
      this.#taken()
      this.#answer = new Uint8Array(0)
      if (answer.length > end + 4) this.#takeGreeting(answer.subarray(end + 4))
      return
    }
    if (line !== 'HTTP/1.1 101') {
      this.#socket?.terminate()
      const code = !this.#isTaken
        ? 'CLIENT_GONE'
        : line === 'HTTP/1.1 421'
          ? 'CLUSTER_MOVED'
          : 'GUARD_REFUSED'
      return this.#lose(new Error(`it answers ${line} to a server of its cluster`), code)
    }
    this.#isGreeted = true
    this.#taken()
    this.#begin(answer.subarray(end + 4))
  }

  #taken(): void {
    this.#isTaken = true
    this.#stopTimer()
    this.#host.greeted()
  }

  /** Begins after the greeting, with the bytes that follow it. */
  #begin(rest: Uint8Array): void {
    const socket = this.#socket
    const isFramed = this.#host.isFramed || this.#raw !== undefined
    if (!isFramed || socket === undefined) {
      this.#flush()
      if (rest.length > 0) this.#hand(rest)
      return
    }
    if (this.#raw !== undefined) socket.keepAlive?.(KEEP_ALIVE_MS)
    this.#framed = new FramedSocket(socket, {
      received: bytes => this.#hand(bytes),
      drained: () => this.#flush(),
      ended: () => this.#answerEnded(),
      closed: error => this.#closed(error),
    })
    this.#socket = this.#framed
    this.#raw?.opened()
    this.#flush()
    if (rest.length > 0) this.#framed.received(rest)
  }

  #hand(bytes: Uint8Array): void {
    this.#waitingBytes += bytes.length
    this.handler.received(bytes, 0, bytes.length)
    if (this.#waitingBytes < MAX_WAITING_BYTES || this.#isPaused || this.isClosed) return
    this.#isPaused = true
    this.#socket?.pause()
  }

  drained(): void {
    if (this.#framed !== undefined) this.#framed.drained()
    else if (this.#isGreeted) this.#flush()
  }

  /** Sends the waiting bytes. Then the pool may write again. */
  #flush(): void {
    const { queue } = this
    const socket = this.#socket
    if (socket === undefined || !this.#isGreeted) return
    const hadQueue = queue.length > 0
    for (let [piece] = queue; piece !== undefined; [piece] = queue) {
      this.queueOffset += socket.write(piece, this.queueOffset)
      if (this.queueOffset < piece.length) return
      queue.shift()
      this.queueOffset = 0
    }
    if (this.hasEnded) socket.end()
    else if (hadQueue) this.handler.writable()
  }

  ended(): void {
    if (this.#framed !== undefined) this.#framed.ended()
    else this.#answerEnded()
  }

  #answerEnded(): void {
    if (this.isClosed) return
    this.peerEnded = true
    if (!this.#isGreeted) return this.#lose(new Error('it closed the connection'))
    this.handler.ended(this.sentBytes)
  }

  closed(error?: Error): void {
    if (this.#framed !== undefined) this.#framed.closed(error)
    else this.#closed(error)
  }

  #closed(error: Error | undefined): void {
    if (!this.isClosed && this.peerEnded && this.hasEnded && error === undefined) {
      this.isClosed = true
      return this.#host.gone(this)
    }
    this.#lose(error)
  }

  #lose(error: Error | undefined, code: ErrorCode = 'CLIENT_GONE', isSilent = false): void {
    if (this.isClosed) return
    this.isClosed = true
    this.queue.length = 0
    this.#stopTimer()
    this.#dialling.abort()
    this.#host.gone(this)
    // Nothing was sent before the greeting, so the request may go to any other server.
    const delivered = this.#isGreeted ? this.sentBytes : 0
    if (!this.#isTaken) this.#host.failed(error, isSilent)
    this.handler.reset(code, delivered)
  }
}
