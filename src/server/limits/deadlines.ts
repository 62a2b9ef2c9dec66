// Timeouts by the thousand: one timer checks them all, so that setting one is an assignment. `Progress` is a timeout
// that each moved byte extends; the idle timer limits the waits of a visitor's connection.

import { errorOf } from '../../errors.ts'
import type { Clock, Deadline } from '../contracts/clock.ts'
import type { Bounds } from '../settings/bounds.ts'

export type { Deadline } from '../contracts/clock.ts'

const TICK_MS = 250
export const TICKS_PER_SECOND: number = 1_000 / TICK_MS

/** Calls `expired` up to two ticks (half a second) late, which is exact enough for timeouts of seconds. */
export class Deadlines implements Clock {
  readonly #watched = new Set<Deadline>()
  #timer: ReturnType<typeof setInterval> | undefined
  #tick = 1
  readonly #failed: (error: Error) => void

  /** Makes the clock. `failed` is called with errors of `expired`: in the event loop they would end the process. */
  constructor(failed: (error: Error) => void) {
    this.#failed = failed
  }

  /** Counts up `TICKS_PER_SECOND` times a second: a clock for code that needs no better one. */
  get tick(): number {
    return this.#tick
  }

  start(): void {
    this.#timer = setInterval(() => this.#sweep(), TICK_MS)
    // Only listeners keep the process alive.
    this.#timer.unref()
  }

  watch(deadline: Deadline): void {
    this.#watched.add(deadline)
  }

  forget(deadline: Deadline): void {
    this.#watched.delete(deadline)
  }

  arm(deadline: Deadline, ms: number): void {
    deadline.dueTick = ms === 0 ? 0 : this.#tick + Math.ceil(ms / TICK_MS) + 1
  }

  disarm(deadline: Deadline): void {
    deadline.dueTick = 0
  }

  stop(): void {
    clearInterval(this.#timer)
    this.#watched.clear()
  }

  #sweep(): void {
    this.#tick++
    for (const deadline of this.#watched) {
      if (deadline.dueTick === 0 || deadline.dueTick > this.#tick) continue
      deadline.dueTick = 0
      try {
        deadline.expired()
      } catch (error) {
        this.#failed(errorOf(error))
      }
    }
  }
}

/** Bytes that move to or from one side. */
export interface Movement {
  /** The number of bytes moved so far: a different value means progress. */
  readonly movedBytes: number
  /** Whether bytes wait that the watched side should take or send. */
  readonly isWaiting: boolean
  /** Called when bytes waited and none moved in time. */
  stalled(): void
}

/**
 * Limits how long bytes may wait without progress. `Deadlines` watches only while bytes should move, so an idle one
 * costs nothing.
 */
export class Progress implements Deadline {
  dueTick = 0
  readonly #deadlines: Clock
  readonly #movement: Movement
  /** The time limit in milliseconds; 0: no bytes are expected to move. */
  #timeoutMs = 0
  #movedAtLook = 0

  constructor(deadlines: Clock, movement: Movement) {
    this.#deadlines = deadlines
    this.#movement = movement
  }

  /** Requires bytes to move within each `timeoutMs` from now on; 0: they may wait without limit. */
  expect(timeoutMs: number): void {
    if (timeoutMs === 0) return this.stop()
    if (this.#timeoutMs === 0) this.#deadlines.watch(this)
    this.#timeoutMs = timeoutMs
    this.#movedAtLook = this.#movement.movedBytes
    this.#deadlines.arm(this, timeoutMs)
  }

  stop(): void {
    if (this.#timeoutMs === 0) return
    this.#timeoutMs = 0
    this.#deadlines.forget(this)
    this.#deadlines.disarm(this)
  }

  expired(): void {
    const { isWaiting, movedBytes } = this.#movement
    if (!isWaiting || movedBytes !== this.#movedAtLook) return this.expect(this.#timeoutMs)
    this.stop()
    this.#movement.stalled()
  }
}

/** The server members that all connections use. */
interface IdleContext {
  readonly deadlines: Deadlines
  readonly limits: Bounds
  /** Whether each response that begins now is the last on its connection. */
  readonly isShut: boolean
}

export class IdleTime implements Deadline {
  dueTick = 0
  readonly #context: IdleContext
  readonly #over: () => void
  /** The tick at which the wait for a request, or for the rest of its head, started. */
  #sinceTick: number

  /** Makes a timer. `over` is called when the time is over. */
  constructor(context: IdleContext, over: () => void) {
    this.#context = context
    this.#over = over
    const { deadlines, limits } = context
    this.#sinceTick = deadlines.tick
    deadlines.watch(this)
    // A TLS handshake that ends after the server has started to stop missed `drain`. A visitor that is silent so far may be
    // a program that gets no processor time.
    deadlines.arm(this, context.isShut ? Math.max(limits.drainIdleMs, 1) : limits.idleTimeoutMs)
  }

  /** Waits for the next request of the connection. */
  awaitRequest(): void {
    const { deadlines, limits, isShut } = this.#context
    this.#sinceTick = deadlines.tick
    deadlines.arm(this, isShut ? Math.max(limits.drainIdleMs, 1) : limits.idleTimeoutMs)
  }

  /** Waits for the rest of a head, whose first byte has arrived. */
  awaitHead(): void {
    const { deadlines, limits } = this.#context
    this.#sinceTick = deadlines.tick
    deadlines.arm(this, limits.headTimeoutMs)
  }

  /** Waits for the visitor to close, after the last response was sent. */
  awaitLeave(ms: number): void {
    this.#context.deadlines.arm(this, ms)
  }

  stop(): void {
    this.#context.deadlines.disarm(this)
  }

  /** Called when the server stops: the wait ends after `drainIdleMs`, counted from its beginning. */
  drain(): void {
    const { deadlines, limits } = this.#context
    const waitedMs = ((deadlines.tick - this.#sinceTick) * 1_000) / TICKS_PER_SECOND
    const leftMs = limits.drainIdleMs - waitedMs
    if (leftMs > 0) deadlines.arm(this, leftMs)
    else this.#over()
  }

  /** Whether the wait has lasted for a second. */
  get isLong(): boolean {
    return this.#context.deadlines.tick - this.#sinceTick >= TICKS_PER_SECOND
  }

  close(): void {
    this.#context.deadlines.forget(this)
  }

  expired(): void {
    this.#over()
  }
}
