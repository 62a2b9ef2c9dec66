// Stops a server: waits for open requests, then for visitors to leave. Each wait has a time limit.

import { deferred } from '../deferred.ts'
import { eventLoop } from '../event-loop.ts'
import type { ServerContext } from './context/server-context.ts'
import type { RawVisits } from './fronts/raw-visits.ts'
import type { Visitors } from './fronts/visitors.ts'
import type { Exchanges } from './routing/exchanges.ts'

/** The time in milliseconds for connections to close by themselves at the very end of `stop()`. */
const LAST_WORDS_MS = 1_000

interface Parts {
  readonly visitors: Visitors
  readonly exchanges: Exchanges
  readonly rawVisits: RawVisits
}

export class Draining {
  readonly #context: ServerContext
  readonly #parts: Parts
  #whenIdle: (() => void) | undefined
  #whenEmpty: (() => void) | undefined

  constructor(context: ServerContext, parts: Parts) {
    this.#context = context
    this.#parts = parts
  }

  /** Whether no request or connection is in progress and no visitor can bring another request. */
  get #isIdle(): boolean {
    const { exchanges, rawVisits, visitors } = this.#parts
    return exchanges.isIdle && rawVisits.isIdle && visitors.areSettled
  }

  /** Whether all connections of visitors have closed. */
  get #isEmpty(): boolean {
    return this.#parts.visitors.isEmpty
  }

  #somethingEnded(): void {
    if (this.#whenIdle !== undefined && this.#isIdle) this.#whenIdle()
    if (this.#whenEmpty !== undefined && this.#isEmpty) this.#whenEmpty()
  }

  /** Resolves when no request or connection is in progress, or after `timeoutMs`. */
  async untilIdle(timeoutMs: number): Promise<void> {
    if (this.#isIdle) return
    this.#context.whileDraining = () => this.#somethingEnded()
    await bounded(timeoutMs, resolve => {
      this.#whenIdle = resolve
    })
  }

  /**
   * Resolves when all visitors have closed their connections, or after `LAST_WORDS_MS`. Closing a connection earlier
   * could send a RST, which destroys the last bytes of a response.
   */
  async untilEmpty(): Promise<void> {
    if (this.#isEmpty) return
    this.#context.whileDraining = () => this.#somethingEnded()
    await bounded(LAST_WORDS_MS, resolve => {
      this.#whenEmpty = resolve
    })
  }
}

/** Resolves after the next turn of the event loop, when all events that the kernel had for this process were handled. */
export function nextTurn(): Promise<void> {
  const { promise, resolve } = deferred<void>()
  eventLoop.soon(() => eventLoop.soon(resolve))
  return promise
}

/** Resolves when `over` does, or after `timeoutMs`. */
export function untilOver(over: Promise<void>, timeoutMs: number): Promise<void> {
  return bounded(timeoutMs, resolve => void over.then(resolve, resolve))
}

/** Resolves when `begin` calls its callback, or after `ms`. */
function bounded(ms: number, begin: (resolve: () => void) => void): Promise<void> {
  const { promise, resolve } = deferred<void>()
  const timer = setTimeout(resolve, ms)
  begin(() => {
    clearTimeout(timer)
    resolve()
  })
  return promise
}
