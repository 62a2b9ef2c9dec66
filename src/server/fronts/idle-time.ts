// How long a connection may wait: for a request, for the rest of its head, or for its visitor to leave.

import { type Deadline, type Deadlines, TICKS_PER_SECOND } from '../limits/deadlines.ts'
import type { Bounds } from '../settings/bounds.ts'

/** The parts that all connections share. */
interface IdleShare {
  readonly deadlines: Deadlines
  readonly limits: Bounds
  /** Each answer that begins now says that it is the last on its connection. */
  readonly isDraining: boolean
}

export class IdleTime implements Deadline {
  dueTick = 0
  readonly #share: IdleShare
  readonly #over: () => void
  /** The tick at which it started to wait for a request, or for the rest of its head. */
  #sinceTick: number

  /** Makes a timer. `over` is called when the time is over. */
  constructor(share: IdleShare, over: () => void) {
    this.#share = share
    this.#over = over
    const { deadlines, limits } = share
    this.#sinceTick = deadlines.tick
    deadlines.watch(this)
    // A connection whose TLS handshake ends after the server started to stop has not seen `drain`.
    deadlines.arm(this, share.isDraining ? Math.max(limits.drainIdleMs, 1) : limits.headTimeoutMs)
  }

  /** The connection waits for its next request. */
  awaitRequest(): void {
    const { deadlines, limits, isDraining } = this.#share
    this.#sinceTick = deadlines.tick
    deadlines.arm(this, isDraining ? Math.max(limits.drainIdleMs, 1) : limits.idleTimeoutMs)
  }

  /** The first byte of a head has come. */
  awaitHead(): void {
    const { deadlines, limits } = this.#share
    this.#sinceTick = deadlines.tick
    deadlines.arm(this, limits.headTimeoutMs)
  }

  /** The last response has left. */
  awaitLeave(ms: number): void {
    this.#share.deadlines.arm(this, ms)
  }

  /** Stops waiting for the visitor. */
  stop(): void {
    this.#share.deadlines.disarm(this)
  }

  /** The server stops: the wait is over once it has lasted for `drainIdleMs`. */
  drain(): void {
    const { deadlines, limits } = this.#share
    const waitedMs = ((deadlines.tick - this.#sinceTick) * 1_000) / TICKS_PER_SECOND
    const leftMs = limits.drainIdleMs - waitedMs
    if (leftMs > 0) deadlines.arm(this, leftMs)
    else this.#over()
  }

  /** Whether it has lasted for a second. */
  get isLong(): boolean {
    return this.#share.deadlines.tick - this.#sinceTick >= TICKS_PER_SECOND
  }

  /** The connection is gone. */
  close(): void {
    this.#share.deadlines.forget(this)
  }

  expired(): void {
    this.#over()
  }
}
