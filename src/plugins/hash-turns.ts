// The order of password hashes. Each takes about 40 ms of a core and 16 MB, and any stranger can cause one.

import { deferred } from '../deferred.ts'

/** The maximum number of hashes at once, for all tunnels of the process. */
const MAX_AT_ONCE = 2
/** The maximum number of waiting hashes of one guard. If exceeded: 429 `RATE_LIMITED`. */
const MAX_WAITING = 50

/** Lets guards take turns, so that guesses at one tunnel do not keep out the visitors of another. */
export class HashTurns {
  #running = 0
  /** The waiting hashes by guard, the guard with the next turn first. */
  readonly #waiting = new Map<object, (() => void)[]>()

  /** Runs `hash` when it has its turn. `undefined` if too many wait. */
  async take<Hash>(guard: object, hash: () => Promise<Hash>): Promise<Hash | undefined> {
    if (this.#running >= MAX_AT_ONCE) {
      const waiting = this.#waiting.get(guard) ?? []
      if (waiting.length >= MAX_WAITING) return undefined
      const turn = deferred()
      waiting.push(turn.resolve)
      this.#waiting.set(guard, waiting)
      // The next one takes the place of the hash that ends.
      await turn.promise
    } else this.#running++
    try {
      return await hash()
    } finally {
      this.#next()
    }
  }

  #next(): void {
    const [first] = this.#waiting
    if (first === undefined) {
      this.#running--
      return
    }
    const [guard, waiting] = first
    this.#waiting.delete(guard)
    const turn = waiting.shift()
    // Moves the guard to the end of the queue.
    if (waiting.length > 0) this.#waiting.set(guard, waiting)
    turn?.()
  }
}
