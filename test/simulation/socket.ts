// One end of a connection, as Bun 1.4.5 shows it to src/sockets/bun-events.ts; the top of src/sockets/bun.ts says what Bun does.

import { copyOf } from '../../src/bytes.ts'
import type { Random } from '../support/random.ts'
import type { Process } from './process.ts'
import type { Timeline } from './timeline.ts'
import type { Wire } from './wire.ts'

/** What the code under test gives Bun for a socket. */
export interface SocketEvents {
  open?(socket: Socket): void
  data?(socket: Socket, bytes: Uint8Array): void
  drain?(socket: Socket): void
  end?(socket: Socket): void
  error?(socket: Socket, error: Error): void
  close?(socket: Socket, error?: Error): void
}

/** Bytes that the kernels of both sides keep for one way. */
const KERNEL_BYTES = 100_000

export class Socket {
  data: unknown
  readonly process: Process
  readonly remoteAddress: string
  readonly localAddress: string
  readonly remotePort: number
  readonly localPort: number
  readonly alpnProtocol: null = null
  peer!: Socket // set by the network, before either is used
  isClosed = false
  readonly #events: SocketEvents
  readonly #isNear: boolean
  readonly #wire: Wire
  readonly #timeline: Timeline
  readonly #random: Random
  readonly #closed: () => void
  /** The program knows of it: nothing is read before. */
  #isOpen = false
  #isPaused = false
  #hasEnded = false
  #wantsDrain = false
  /** Sent, and not read by the far side yet. */
  #unread = 0
  /** Arrived, and not read yet. */
  #arrived: Uint8Array[] = []
  #hasFarEndArrived = false
  #hasFarEndRead = false
  #isReadPlanned = false
  #isReset = false
  #heardAt = 0

  constructor(
    end: {
      readonly process: Process
      readonly events: SocketEvents
      readonly data: unknown
      readonly isNear: boolean
      readonly localPort: number
      readonly remotePort: number
      readonly closed: () => void
    },
    wire: Wire,
    timeline: Timeline,
    random: Random,
  ) {
    this.process = end.process
    this.data = end.data
    this.#events = end.events
    this.#isNear = end.isNear
    this.#closed = end.closed
    this.localPort = end.localPort
    this.remotePort = end.remotePort
    const [own, other] = end.isNear ? [wire.near, wire.far] : [wire.far, wire.near]
    this.localAddress = own.address
    this.remoteAddress = other.address
    this.#wire = wire
    this.#timeline = timeline
    this.#random = random
  }

  // ── What the code under test calls ─────────────────────────────────────────────────────────────────────────

  write(bytes: Uint8Array, offset = 0, length: number = bytes.length - offset): number {
    if (this.isClosed || this.#hasEnded || this.#isReset) return -1
    const count = Math.min(length, KERNEL_BYTES - this.#unread)
    if (count < length) this.#wantsDrain = true
    if (count === 0) return 0
    this.#unread += count
    const copy = copyOf(bytes, offset, offset + count)
    this.#send(() => this.peer.#arrive(copy))
    return count
  }

  shutdown(): void {
    if (this.isClosed || this.#hasEnded) return
    this.#hasEnded = true
    this.#send(() => this.peer.#farEndArrived())
    if (this.#hasFarEndRead) this.#later(() => this.#close())
  }

  /** Closes; the kernel sends what it has. */
  end(): void {
    this.shutdown()
    this.#close()
  }

  terminate(): void {
    if (this.isClosed) return
    this.#send(() => this.peer.reset())
    this.#close()
  }

  pause(): void {
    this.#isPaused = true
  }

  resume(): void {
    this.#isPaused = false
    this.#planRead()
  }

  /** The kernel asks after so much silence, and each second again, ten times. */
  setKeepAlive(_: boolean, idleMs: number): boolean {
    this.#heardAt = this.#timeline.now
    const look = (): void => {
      if (this.isClosed) return
      const silentMs = this.#timeline.now - this.#heardAt
      if (silentMs > idleMs + 10_000) return this.#fail('ETIMEDOUT')
      if (silentMs >= idleMs)
        this.#send(() => {
          if (this.peer.isClosed) this.peer.#send(() => this.reset())
          else
            this.peer.#send(() => {
              this.#heardAt = this.#timeline.now
            })
        })
      this.#timeline.after(silentMs >= idleMs ? 1_000 : idleMs - silentMs + 1, undefined, look)
    }
    look()
    return true
  }

  timeout(): void {}

  // ── What happens to it ─────────────────────────────────────────────────────────────────────────────────────

  /** `isWanted`: whether it still is when the program comes to it. */
  opened(isWanted: () => boolean = () => true): void {
    this.#later(() => {
      if (!isWanted()) return this.abandon(false)
      this.#isOpen = true
      this.#attempt(() => this.#events.open?.(this))
      this.#planRead()
    })
  }

  /** The far side has cut it, or is not there any more. */
  reset(): void {
    this.#fail('ECONNRESET')
  }

  #fail(code: string): void {
    if (this.isClosed) return
    this.#isReset = true
    this.#arrived = []
    this.#later(() => this.#close(Object.assign(new Error(`${code}: simulated`), { code })))
  }

  /** Its program is gone: the kernel tells the far side, with FIN or, where something was not read, RST. */
  abandon(isClean: boolean): void {
    if (this.isClosed) return
    const isReset = !isClean || this.#arrived.length > 0
    this.#send(() => (isReset ? this.peer.reset() : this.peer.#farEndArrived()))
    this.isClosed = true
    this.#closed()
  }

  /** Its machine has lost its power. */
  vanish(): void {
    this.isClosed = true
    this.#closed()
  }

  #arrive(bytes: Uint8Array): void {
    // Nothing here knows the connection any more.
    if (this.isClosed) return this.#send(() => this.peer.reset())
    if (this.#isReset) return
    this.#heardAt = this.#timeline.now
    this.#arrived.push(bytes)
    this.#planRead()
  }

  #farEndArrived(): void {
    if (this.isClosed || this.#isReset) return
    this.#hasFarEndArrived = true
    this.#planRead()
  }

  #planRead(): void {
    if (!this.#isOpen || this.#isReadPlanned || this.#isPaused || this.isClosed) return
    if (this.#arrived.length === 0 && (!this.#hasFarEndArrived || this.#hasFarEndRead)) return
    this.#isReadPlanned = true
    this.#later(() => {
      this.#isReadPlanned = false
      this.#read()
    })
  }

  #read(): void {
    if (this.#isPaused || this.isClosed) return
    const piece = this.#arrived.shift()
    if (piece !== undefined) {
      // Any cut is possible: TCP knows no messages.
      const count = this.#random.chance(0.8) ? piece.length : 1 + this.#random.below(piece.length)
      if (count < piece.length) this.#arrived.unshift(copyOf(piece, count))
      this.#send(() => this.peer.#wasRead(count))
      this.#attempt(() => this.#events.data?.(this, copyOf(piece, 0, count)))
    } else if (this.#hasFarEndArrived && !this.#hasFarEndRead) {
      this.#hasFarEndRead = true
      // Behind our own FIN, Bun reports the other one only by closing.
      if (this.#hasEnded) this.#close()
      else this.#attempt(() => this.#events.end?.(this))
    }
    this.#planRead()
  }

  #wasRead(count: number): void {
    this.#unread -= count
    if (this.isClosed || !this.#wantsDrain) return
    this.#wantsDrain = false
    this.#later(() => {
      if (!this.isClosed) this.#attempt(() => this.#events.drain?.(this))
    })
  }

  #close(error?: Error): void {
    if (this.isClosed) return
    this.isClosed = true
    this.#closed()
    this.#attempt(() => this.#events.close?.(this, error))
  }

  /** Bun gives what a handler throws to `error`. */
  #attempt(call: () => void): void {
    try {
      call()
    } catch (error) {
      this.#events.error?.(this, error instanceof Error ? error : new Error(String(error)))
    }
  }

  #send(arrive: () => void): void {
    this.#wire.send(this.#isNear, arrive)
  }

  #later(run: () => void): void {
    this.#timeline.after(0, this.process, run)
  }
}
