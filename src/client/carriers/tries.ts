// The tries of a client to connect again: how many there were, and the pause before the next.

import { deferred } from '../../deferred.ts'
import { calculateBackoff } from '../../names.ts'

/** A server that restarts is back within seconds: for half a minute, 0.5 s being the mean pause, tries follow quickly. */
const QUICK_TRIES = 60
const QUICK_BASE_MS = 250
/**
 * The time in milliseconds within which each client asks again after a restart, spread over all of it; it has another second to
 * dial and to register.
 */
const QUICK_MAX_MS = 1_000

/** Milliseconds before try number `attempt`, counted from 1: the first goes at once. */
export function pauseBefore(
  attempt: number,
  maxBackoffMs: number,
  random: () => number = Math.random,
): number {
  if (attempt <= QUICK_TRIES) {
    return calculateBackoff(attempt, {
      baseMs: QUICK_BASE_MS,
      maxMs: Math.min(QUICK_MAX_MS, maxBackoffMs),
      random,
    })
  }
  // After this number of tries the server counts as down, and the bound doubles from a second up.
  return calculateBackoff(attempt - QUICK_TRIES + 2, { maxMs: maxBackoffMs, random })
}

/** A connection that lasted this long is not a try that failed: the next loss is an outage of its own. */
const LASTING_MS = 1_000

export class Tries {
  readonly #maxBackoffMs: number
  /** The number of attempts since the last connection that lasted. */
  #count = 0
  #connectedAt = 0
  #endPause: (() => void) | undefined

  constructor(maxBackoffMs: number) {
    this.#maxBackoffMs = maxBackoffMs
  }

  restart(): void {
    this.#count = 0
  }

  connected(): void {
    this.#connectedAt = performance.now()
  }

  /** A server that grants and hangs up at once, again and again, is tried like one that is down. */
  lost(): void {
    const lastedMs = performance.now() - this.#connectedAt
    if (lastedMs > Math.min(LASTING_MS, this.#maxBackoffMs)) this.#count = 0
  }

  /** The number of the next try, from 1, and the milliseconds before it. */
  next(): { readonly attempt: number; readonly delayMs: number } {
    const attempt = ++this.#count
    return { attempt, delayMs: pauseBefore(attempt, this.#maxBackoffMs) }
  }

  /** Resolves after `ms`, or when `goOn` is called. */
  pause(ms: number): Promise<void> {
    if (ms === 0) return Promise.resolve()
    const { promise, resolve } = deferred<void>()
    const timer = setTimeout(resolve, ms)
    this.#endPause = () => {
      clearTimeout(timer)
      resolve()
    }
    return promise
  }

  /** Ends the pause: the machine woke up, or the client ends. */
  goOn(): void {
    this.#endPause?.()
  }
}
