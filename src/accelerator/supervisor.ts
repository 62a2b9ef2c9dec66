// Supervises one thread: starts it when it is first needed and descriptors are free, and again some time after it died.

import type { Pace } from '../accelerator.ts'
import { freeDescriptors } from '../descriptors.ts'
import { reportDeath, reportShortage } from './faults.ts'
import type { Kernel } from './kernel.ts'
import { type SpliceCounts, WorkerThread } from './worker-thread.ts'

/**
 * The minimum number of free descriptors to start a thread. It needs two for its event loop, one to read its program,
 * three of ours and a pipe. Without the first two, Bun 1.4.5 ends the process, and nothing can catch that.
 */
const THREAD_DESCRIPTORS = 12
/**
 * The longest wait for a thread's event loop, in milliseconds. It starts 1 to 2 ms after the thread, usually before
 * `new Worker` returns.
 */
const MAX_LOOP_WAIT_MS = 100
const SHORTAGE_PAUSE_MS = 1_000
/**
 * The first pause after a thread died, in milliseconds. It doubles each time, until a thread has lived longer than
 * the longest pause.
 */
const FIRST_PAUSE_MS = 500
const MAX_PAUSE_MS = 60_000

/** A number that never changes, so that waiting for a change of it is a pause. */
const NOTHING = new Int32Array(new SharedArrayBuffer(4))

export class Supervisor {
  readonly #kernel: Kernel
  readonly #pace: Pace
  readonly #program: () => URL
  #current: WorkerThread | undefined
  #startedAt = 0
  #notBefore = Number.NEGATIVE_INFINITY
  #pauseMs = FIRST_PAUSE_MS
  /** The counts of threads that died. */
  #past: SpliceCounts | undefined

  /** Makes a supervisor. `program` is the file that the thread runs. */
  constructor(kernel: Kernel, pace: Pace, program: () => URL) {
    this.#kernel = kernel
    this.#pace = pace
    this.#program = program
  }

  /** The thread, if it takes commands. If not, it is started as soon as possible. */
  get thread(): WorkerThread | undefined {
    if (this.#current === undefined && performance.now() >= this.#notBefore) this.#start()
    return this.#current?.isUp ? this.#current : undefined
  }

  /** Starts the thread and waits for it. Resolves with `false` if it cannot start now. */
  ready(): Promise<boolean> {
    if (this.thread !== undefined) return Promise.resolve(true)
    return this.#current?.up ?? Promise.resolve(false)
  }

  get counts(): SpliceCounts | undefined {
    const now = this.#current?.counts
    const past = this.#past
    if (now === undefined || past === undefined) return now ?? past
    return { ...now, begun: now.begun + past.begun, movedBytes: now.movedBytes + past.movedBytes }
  }

  #start(): void {
    const free = freeDescriptors(THREAD_DESCRIPTORS) ?? THREAD_DESCRIPTORS
    const wakeup = free < THREAD_DESCRIPTORS ? -1 : this.#kernel.wakeup()
    if (wakeup < 0) return this.#wait(SHORTAGE_PAUSE_MS, reportShortage)
    this.#startedAt = performance.now()
    const numbers = this.#kernel.nextNumbers(wakeup, 2)
    try {
      const thread: WorkerThread = new WorkerThread(
        this.#kernel,
        wakeup,
        this.#pace,
        this.#program(),
        cause => this.#died(thread, cause),
      )
      this.#current = thread
    } catch (error) {
      this.#kernel.close(wakeup)
      return this.#died(undefined, error instanceof Error ? error : new Error(String(error)))
    }
    this.#awaitLoop(numbers)
  }

  /**
   * Waits until the thread has its event loop. Until then the main thread must not accept connections that would take
   * the last descriptors.
   */
  #awaitLoop(numbers: readonly number[]): void {
    const until = this.#startedAt + MAX_LOOP_WAIT_MS
    while (!numbers.every(one => this.#kernel.isOpen(one)) && performance.now() < until)
      Atomics.wait(NOTHING, 0, 0, 1)
  }

  #died(thread: WorkerThread | undefined, cause: Error | undefined): void {
    this.#past = thread === undefined ? this.#past : { ...(this.counts ?? thread.counts), ...NONE_NOW }
    this.#current = undefined
    if (performance.now() - this.#startedAt >= MAX_PAUSE_MS) this.#pauseMs = FIRST_PAUSE_MS
    const pauseMs = this.#pauseMs
    this.#pauseMs = Math.min(2 * pauseMs, MAX_PAUSE_MS)
    this.#wait(pauseMs, () => reportDeath(this.#pace, pauseMs, cause))
  }

  #wait(pauseMs: number, report: () => void): void {
    this.#notBefore = performance.now() + pauseMs
    report()
  }
}

const NONE_NOW = { threads: 0, running: 0, lanes: 0, laneEnds: 0 }
