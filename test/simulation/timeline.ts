// What happens when: events of all machines in the order of a clock that only they move.

import { drainMicrotasks } from 'bun:jsc'
import type { Process } from './process.ts'

export interface Event {
  at: number
  order: number
  /** Whose program runs it; `undefined`: the network or the world itself. */
  readonly process: Process | undefined
  readonly run: () => void
  isCancelled: boolean
}

export class Timeline {
  /** Milliseconds since the simulation began. */
  now = 0
  /** The program that runs just now. */
  current: Process | undefined
  /** Calls `failed` with what an event throws: in a real process it would end it. */
  failed: (process: Process | undefined, error: unknown) => void = () => {}
  /** Called before each event. */
  noted: (process: Process | undefined) => void = () => {}
  #order = 0
  /** A binary heap, the next event first. */
  readonly #heap: Event[] = []

  /** Plans `run` in `ms`, for a program that may be frozen by then, or gone. Returns what takes it back. */
  after(ms: number, process: Process | undefined, run: () => void): () => void {
    const event = { at: this.now + Math.max(0, ms), order: this.#order++, process, run, isCancelled: false }
    this.#push(event)
    return () => {
      event.isCancelled = true
    }
  }

  /** Runs what is due until `until`. */
  run(until: number): void {
    for (let [next] = this.#heap; next !== undefined && next.at <= until; [next] = this.#heap) {
      this.#pop()
      if (next.isCancelled) continue
      this.now = Math.max(this.now, next.at)
      this.#step(next)
    }
    this.now = until
  }

  /** Runs something as a program does, and all that follows from it at once. */
  as(process: Process | undefined, run: () => void): void {
    const before = this.current
    this.current = process
    try {
      run()
    } catch (error) {
      this.failed(process, error)
    }
    // Promises that are settled by now; nothing here waits for the real event loop.
    drainMicrotasks()
    this.current = before
  }

  /** What a frozen program missed comes now, unless it was taken back meanwhile. */
  again(events: readonly Event[]): void {
    for (const event of events) {
      event.at = this.now
      event.order = this.#order++
      this.#push(event)
    }
  }

  #step(event: Event): void {
    const { process, run } = event
    if (process?.isDead === true) return
    if (process?.isFrozen === true) {
      process.late.push(event)
      return
    }
    this.noted(process)
    this.as(process, run)
  }

  #push(event: Event): void {
    const heap = this.#heap
    let at = heap.push(event) - 1
    while (at > 0) {
      const parent = (at - 1) >> 1
      if (!isBefore(event, heap[parent]!)) break
      heap[at] = heap[parent]!
      at = parent
    }
    heap[at] = event
  }

  #pop(): void {
    const heap = this.#heap
    const last = heap.pop()
    if (last === undefined || heap.length === 0) return
    let at = 0
    for (;;) {
      let child = 2 * at + 1
      if (child >= heap.length) break
      if (child + 1 < heap.length && isBefore(heap[child + 1]!, heap[child]!)) child++
      if (!isBefore(heap[child]!, last)) break
      heap[at] = heap[child]!
      at = child
    }
    heap[at] = last
  }
}

function isBefore(a: Event, b: Event): boolean {
  return a.at === b.at ? a.order < b.order : a.at < b.at
}
