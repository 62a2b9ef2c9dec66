// Counts a client's attempts to reconnect, and decides the pause before the next one.

import { deferred } from '../../deferred.ts'
import { calculateBackoff } from '../../names.ts'

/**
 * The number of quick attempts. A server that restarts is back within seconds, so for half a minute attempts follow
 * each other after 0.5 s on average.
 */
const QUICK_TRIES = 60
const QUICK_BASE_MS = 250
/**
 * The longest pause in milliseconds between quick attempts. Clients spread over this time after a restart, and then
 * have another second to connect and register.
 */
const QUICK_MAX_MS = 1_000

/** Returns the pause in milliseconds before attempt number `attempt`, counted from 1. The first has none. */
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
  // After the quick attempts the server counts as down, and the longest pause doubles from a second up.
  return calculateBackoff(attempt - QUICK_TRIES + 2, { maxMs: maxBackoffMs, random })
}

/** The time in milliseconds after which a connection counts as established, so that its loss begins a new count. */
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

  /**
   * Called when a connection was lost. A server that grants and closes at once, again and again, is treated like one
   * that is down.
   */
  lost(): void {
    const lastedMs = performance.now() - this.#connectedAt
    if (lastedMs > Math.min(LASTING_MS, this.#maxBackoffMs)) this.#count = 0
  }

  /** Returns the number of the next attempt, from 1, and the pause before it in milliseconds. */
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

  /** Ends the pause, because the machine woke up or the client ends. */
  goOn(): void {
    this.#endPause?.()
  }
}
