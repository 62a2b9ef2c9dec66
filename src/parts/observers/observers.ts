// Calls the observers of a server. An observer is foreign code: its exceptions are reported, and do not affect visitors.

import type { LineObserver, Observer, Outcome, Seen } from '../../plugin.ts'
import type { Ending, Follower } from '../../server/contracts/layer.ts'
import type { Faults } from '../../server/contracts/part.ts'
import { toHundredth } from '../../server/routing/exchanges.ts'
import { pluginsFor } from '../../server/settings/plugins-for.ts'

/** A pattern for `traceparent`, which goes into a header line. */
const TRACEPARENT = /^00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$/

export class Observers {
  readonly #observers: () => readonly Observer[]
  readonly #faults: Faults
  /** The last id, shared with other threads. */
  readonly ids: BigInt64Array<SharedArrayBuffer> = new BigInt64Array(new SharedArrayBuffer(8))
  /** The numbers of access logs, by which other threads distinguish them. */
  readonly #numbers = new WeakMap<Observer, number>()
  #lastNumber = 0

  /** Makes the observers. `observers` returns the current ones. */
  constructor(observers: () => readonly Observer[], faults: Faults) {
    this.#observers = observers
    this.#faults = faults
  }

  areFor(tunnel: string): boolean {
    return pluginsFor(this.#observers(), tunnel).length > 0
  }

  /** Returns the only observer of this tunnel and its number, if it only wants log lines. */
  linesOf(tunnel: string): { readonly observer: LineObserver; readonly log: number } | undefined {
    const [observer, ...others] = pluginsFor(this.#observers(), tunnel)
    if (observer === undefined || others.length > 0 || !isLineObserver(observer)) return undefined
    const log = this.#numbers.get(observer) ?? ++this.#lastNumber
    this.#numbers.set(observer, log)
    return { observer, log }
  }

  /** Whether each request of this tunnel belongs to a trace of an observer. */
  trace(tunnel: string): boolean {
    return pluginsFor(this.#observers(), tunnel).some(observer => observer.trace !== undefined)
  }

  /** Called for a new visitor. `undefined` if there is no observer. */
  began(tunnel: string, seen: () => Omit<Seen, 'id' | 'tunnel'>): Watched | undefined {
    const observers = pluginsFor(this.#observers(), tunnel)
    if (observers.length === 0) return undefined
    return new Watched(this, observers, { id: this.nextId(), tunnel, ...seen() })
  }

  nextId(): number {
    return Number(Atomics.add(this.ids, 0, 1n)) + 1
  }

  /** Called when a lane has served a whole request. Does the work of `began` and `Watched.ended` with fewer objects. */
  served(seen: Seen, outcome: Outcome): void {
    const observers = pluginsFor(this.#observers(), seen.tunnel)
    this.tell(observers, observer => observer.began?.(seen))
    this.tell(observers, observer => observer.responded?.(seen, outcome.status))
    this.tell(observers, observer => observer.ended?.(seen, outcome))
  }

  /** Calls each observer. Errors and rejections are reported. */
  tell(observers: readonly Observer[], call: (observer: Observer) => unknown): void {
    for (const observer of observers)
      try {
        const result = call(observer)
        // The type says void, which an async function also fits.
        if (result instanceof Promise) result.catch((cause: unknown) => this.#report(observer, cause))
      } catch (cause) {
        this.#report(observer, cause)
      }
  }

  #report(observer: Observer, cause: unknown): void {
    const text = `The observer "${observer.name}" failed: ${String(cause)}.`
    this.#faults.report(observer, 'PLUGIN_FAILED', text, cause)
  }
}

/** One visitor's request or connection, for its observers. */
export class Watched implements Follower {
  readonly #all: Observers
  readonly #observers: readonly Observer[]
  readonly #seen: Seen
  readonly #beganAt: number = performance.now()
  #sentAt = 0
  #answeredAt = 0

  constructor(all: Observers, observers: readonly Observer[], seen: Seen) {
    this.#all = all
    this.#observers = observers
    this.#seen = seen
    all.tell(observers, observer => observer.began?.(seen))
  }

  /** Returns the `traceparent` for the app. `undefined` for none. `parent`: that of the visitor. */
  trace(parent: () => string | undefined): string | undefined {
    let traced: string | undefined
    for (const observer of this.#observers)
      if (observer.trace !== undefined)
        this.#all.tell([observer], () => {
          const own = observer.trace?.(this.#seen, parent())
          if (own !== undefined && TRACEPARENT.test(own)) traced ??= own
        })
    return traced
  }

  /** Called when the request was sent to a client; the last call counts. */
  sent(): void {
    this.#sentAt = performance.now()
  }

  answered(status: number): void {
    this.#answeredAt = performance.now()
    this.#all.tell(this.#observers, observer => observer.responded?.(this.#seen, status))
  }

  left(): void {
    const status = { status: 0, code: 'CLUSTER_MOVED', reason: undefined } as const
    this.ended({ ...status, requestBytes: 0, responseBytes: 0, served: {} })
  }

  ended({ status, code, reason, requestBytes, responseBytes, served }: Ending): void {
    const durationMs = performance.now() - this.#beganAt
    const waitMs = this.#sentAt === 0 ? durationMs : this.#sentAt - this.#beganAt
    const appMs = this.#sentAt === 0 || this.#answeredAt === 0 ? 0 : this.#answeredAt - this.#sentAt
    const outcome = {
      status,
      durationMs: toHundredth(durationMs),
      waitMs: toHundredth(waitMs),
      appMs: toHundredth(appMs),
      requestBytes,
      responseBytes,
      ...(code !== undefined && { code }),
      ...(reason !== undefined && { reason }),
      ...served,
    }
    this.#all.tell(this.#observers, observer => observer.ended?.(this.#seen, outcome))
  }
}

function isLineObserver(observer: Observer): observer is LineObserver {
  return 'accessLines' in observer && (observer as LineObserver).accessLines.isOf(observer)
}
