// Requests for names without a tunnel, in the first seconds of a server: after a restart their clients are on their way
// back, and many senders of webhooks do not try again after a 404.

import type { ErrorCode } from '../errors.ts'
import type { Deadline, Deadlines } from './deadlines.ts'
import type { Holding, TunnelRoute } from './front.ts'
import type { ServerLimits } from './options.ts'

type Held = Parameters<Holding['hold']>[0]

/** One request. */
interface Waiting {
  /** The name has a tunnel now, or `code` says why the wait is over. */
  finish(code?: ErrorCode): void
}

export class StartupHold implements Deadline {
  dueTick = 0
  readonly #limits: () => ServerLimits
  readonly #deadlines: Deadlines
  /** By the name of the tunnel that is missing. */
  readonly #waiting = new Map<string, Set<Waiting>>()
  /** Names that had a tunnel since the start. */
  readonly #seen = new Set<string>()
  #count = 0
  #isOpen = false

  constructor(limits: () => ServerLimits, deadlines: Deadlines) {
    this.#limits = limits
    this.#deadlines = deadlines
  }

  /** The server has started. */
  begin(): void {
    const { startupHoldMs } = this.#limits()
    if (startupHoldMs === 0) return
    this.#isOpen = true
    this.#deadlines.watch(this)
    this.#deadlines.arm(this, startupHoldMs)
  }

  /** Whether requests for this name still wait. Not if its client was here already: then it gave the name back. */
  isAwaited(name: string): boolean {
    return this.#isOpen && !this.#seen.has(name)
  }

  /** Holds a request until the name has a tunnel; `route` says then where it goes. */
  holding(name: string, route: () => TunnelRoute): Holding {
    return { hold: held => this.#hold(name, route, held) }
  }

  /** The name has a tunnel, whose client is there. */
  arrived(name: string): void {
    if (!this.#isOpen) return
    this.#seen.add(name)
    for (const waiting of [...(this.#waiting.get(name) ?? [])]) waiting.finish()
  }

  expired(): void {
    this.end('SERVER_STARTING')
  }

  /** Nothing waits from now on. */
  end(code: ErrorCode): void {
    this.#isOpen = false
    this.#seen.clear()
    this.#deadlines.forget(this)
    for (const waiting of [...this.#waiting.values()].flatMap(all => [...all])) waiting.finish(code)
  }

  #hold(name: string, route: () => TunnelRoute, held: Held): (() => void) | ErrorCode {
    if (this.#count >= this.#limits().maxStartupHeld) return 'SERVER_STARTING'
    let stopNext: (() => void) | undefined
    const waiting: Waiting = {
      finish: code => {
        this.#remove(name, waiting)
        const next = code ?? route()
        if (typeof next === 'string' || !('hold' in next)) return held(next)
        const outcome = next.hold(held)
        if (typeof outcome === 'string') held(outcome)
        else stopNext = outcome
      },
    }
    this.#add(name, waiting)
    return () => {
      this.#remove(name, waiting)
      stopNext?.()
    }
  }

  #add(name: string, waiting: Waiting): void {
    const all = this.#waiting.get(name) ?? new Set()
    this.#waiting.set(name, all.add(waiting))
    this.#count++
  }

  #remove(name: string, waiting: Waiting): void {
    const all = this.#waiting.get(name)
    if (all?.delete(waiting) !== true) return
    this.#count--
    if (all.size === 0) this.#waiting.delete(name)
  }
}
