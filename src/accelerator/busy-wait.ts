// How the thread of conversations waits: if the last changes came soon one after the other, it looks before it sleeps.

import type { Changes, Kernel } from './kernel.ts'

/**
 * The time that a thread polls for the next piece, in milliseconds: to wake a sleeping core takes as long as the rest of a
 * round trip on the same machine. Others who want the core get it between two looks. Over a network pieces come later, and
 * nothing is spent.
 */
const LOOK_MS = 0.05
/** A sleep and its turn that were no longer than this say that the next piece may come within a look. */
const SHORT_SLEEP_MS = 0.14
/** The score from which a thread polls: short sleeps and successful polls, less twice the others. */
const ENOUGH_SOON = 4

export class BusyWait {
  readonly #kernel: Kernel
  readonly #poll: number
  /** The score: how often the next piece came soon lately, less twice the other times. */
  #soon = 0
  #began = 0
  #hasLooked = false
  #hasSlept = false

  constructor(kernel: Kernel, poll: number) {
    this.#kernel = kernel
    this.#poll = poll
  }

  /** Returns how many changes there are. `now`: by `performance.now()`. `learn` follows, once they are served. */
  await(changes: Changes, timeoutMs: number, now: number): number {
    this.#began = now
    this.#hasLooked = this.#soon >= ENOUGH_SOON
    const found = this.#hasLooked ? this.#look(changes) : 0
    this.#hasSlept = found === 0
    return found > 0 ? found : this.#kernel.wait(this.#poll, changes, timeoutMs)
  }

  /**
   * Learns that `count` changes have come. Not before they are served: behind a sleep, all that the thread does first finds its
   * code and memory out of the processor's caches, and a look at the clock alone took 4 of the 17 to 30 µs until something was
   * sent.
   */
  learn(count: number, now: number): void {
    const cameSoon = count <= 1 && (this.#hasLooked ? !this.#hasSlept : now - this.#began < SHORT_SLEEP_MS)
    this.#soon = cameSoon ? Math.min(this.#soon + 1, 2 * ENOUGH_SOON) : Math.max(this.#soon - 2, 0)
  }

  #look(changes: Changes): number {
    const until = this.#began + LOOK_MS
    for (;;) {
      const found = this.#kernel.wait(this.#poll, changes, 0)
      if (found > 0 || performance.now() >= until) return found
      this.#kernel.yield()
    }
  }
}
