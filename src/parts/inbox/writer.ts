// Writes webhooks to the disk. Webhooks that arrive during one transaction go into the next.

import { errorOf } from '../../errors.ts'
import { eventLoop } from '../../event-loop.ts'
import type { BoxBounds, InboxStore, Keeping, NewWebhook } from '../../inbox.ts'

/** The pause after a write, as a multiple of its duration: a slow disk then takes at most a fifth of the event loop. */
const PAUSE_FACTOR = 4
const MIN_PAUSE_MS = 1
/** The maximum number of webhooks in one transaction: about 10 ms of work. */
const MAX_AT_ONCE = 200

interface Waiting {
  readonly webhook: NewWebhook
  readonly kept: (outcome: Keeping | Error) => void
}

export class Writer {
  readonly #store: InboxStore
  readonly #bounds: BoxBounds
  #waiting: Waiting[] = []
  #isScheduled = false

  constructor(store: InboxStore, bounds: BoxBounds) {
    this.#store = store
    this.#bounds = bounds
  }

  /** Resolves once the webhook is on the disk, or could not be written. */
  keep(webhook: NewWebhook): Promise<Keeping | Error> {
    return new Promise(kept => {
      this.#waiting.push({ webhook, kept })
      this.#schedule(0)
    })
  }

  #schedule(ms: number): void {
    if (this.#isScheduled) return
    this.#isScheduled = true
    const write = (): void => {
      this.#isScheduled = false
      this.#write()
    }
    if (ms === 0) eventLoop.soon(write)
    else eventLoop.after(ms, write)
  }

  #write(): void {
    const batch = this.#waiting.splice(0, MAX_AT_ONCE)
    const startedAt = performance.now()
    try {
      const outcomes = this.#store.keep(
        batch.map(({ webhook }) => webhook),
        this.#bounds,
      )
      for (const [index, { kept }] of batch.entries()) kept(outcomes[index] ?? 'full')
    } catch (cause) {
      const error = errorOf(cause)
      for (const { kept } of batch) kept(error)
    }
    const pauseMs = Math.max(MIN_PAUSE_MS, (performance.now() - startedAt) * PAUSE_FACTOR)
    if (this.#waiting.length > 0) this.#schedule(pauseMs)
  }
}
