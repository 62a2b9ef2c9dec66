// Deadlines by the thousand: one timer sweeps them all, so that arming one costs an assignment and no timer. Progress is a deadline
// that each moved byte puts off; idle time bounds the waits of a visitor's connection.

import { errorOf } from '../../errors.ts'
import type { Clock, Deadline } from '../contracts/clock.ts'
import type { Bounds } from '../settings/bounds.ts'

export type { Deadline } from '../contracts/clock.ts'

const TICK_MS = 250
export const TICKS_PER_SECOND: number = 1_000 / TICK_MS

/** Calls `expired` up to two ticks (half a second) after the time given: good enough for timeouts of seconds. */
export class Deadlines implements Clock {
  readonly #watched = new Set<Deadline>()
  #timer: ReturnType<typeof setInterval> | undefined
  #tick = 1
  readonly #failed: (error: Error) => void

  /**
   * Makes the deadlines. `failed` is called with an error of `expired`, which must not reach the event loop, where it would end
   * the process.
   */
  constructor(failed: (error: Error) => void) {
    this.#failed = failed
  }

  /** Counts up, `TICKS_PER_SECOND` times a second: the time, for those who can do with so little. */
  get tick(): number {
    return this.#tick
  }

  start(): void {
    this.#timer = setInterval(() => this.#sweep(), TICK_MS)
    // The listener keeps the process alive, not its housekeeping.
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

/** Bytes in transit to one side. */
export interface Movement {
  /** Another number than before when bytes have moved. */
  readonly movedBytes: number
  /** Whether bytes wait for the side that has to take or send them. */
  readonly isWaiting: boolean
  /** Bytes wait, and none was sent in time. */
  stalled(): void
}

/** Watched by `Deadlines` only while bytes are expected to move, so that one costs nothing as long as all is well. */
export class Progress implements Deadline {
  dueTick = 0
  readonly #deadlines: Clock
  readonly #movement: Movement
  /** 0: nothing is expected. */
  #timeoutMs = 0
  #movedAtLook = 0

  constructor(deadlines: Clock, movement: Movement) {
    this.#deadlines = deadlines
    this.#movement = movement
  }

  /** From now on bytes have to move within each `timeoutMs`; 0: they may wait without limit. */
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

/** The parts that all connections share. */
interface IdleContext {
  readonly deadlines: Deadlines
  readonly limits: Bounds
  /** Marks each response that begins now as the last on its connection. */
  readonly isShut: boolean
}

export class IdleTime implements Deadline {
  dueTick = 0
  readonly #context: IdleContext
  readonly #over: () => void
  /** The tick at which it started to wait for a request, or for the rest of its head. */
  #sinceTick: number

  /** Makes a timer. `over` is called when the time is over. */
  constructor(context: IdleContext, over: () => void) {
    this.#context = context
    this.#over = over
    const { deadlines, limits } = context
    this.#sinceTick = deadlines.tick
    deadlines.watch(this)
    // A connection whose TLS handshake ends after the server started to stop has not seen `drain`. A visitor that says nothing yet may
    // be a program that gets no processor time.
    deadlines.arm(this, context.isShut ? Math.max(limits.drainIdleMs, 1) : limits.idleTimeoutMs)
  }

  /** The connection waits for its next request. */
  awaitRequest(): void {
    const { deadlines, limits, isShut } = this.#context
    this.#sinceTick = deadlines.tick
    deadlines.arm(this, isShut ? Math.max(limits.drainIdleMs, 1) : limits.idleTimeoutMs)
  }

  /** The first byte of a head has come. */
  awaitHead(): void {
    const { deadlines, limits } = this.#context
    this.#sinceTick = deadlines.tick
    deadlines.arm(this, limits.headTimeoutMs)
  }

  /** The last response has left. */
  awaitLeave(ms: number): void {
    this.#context.deadlines.arm(this, ms)
  }

  stop(): void {
    this.#context.deadlines.disarm(this)
  }

  /** The server stops: the wait is over once it has lasted for `drainIdleMs`. */
  drain(): void {
    const { deadlines, limits } = this.#context
    const waitedMs = ((deadlines.tick - this.#sinceTick) * 1_000) / TICKS_PER_SECOND
    const leftMs = limits.drainIdleMs - waitedMs
    if (leftMs > 0) deadlines.arm(this, leftMs)
    else this.#over()
  }

  /** Whether it has lasted for a second. */
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
