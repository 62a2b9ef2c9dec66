// Makes requests for names without a tunnel wait during the first seconds of a server: their clients may still be
// reconnecting, and many senders of webhooks do not retry after a 404.

import type { ErrorCode } from '../../errors.ts'
import { type Holding, type Route, refusal } from '../contracts/front.ts'
import type { Deadline, Deadlines } from '../limits/deadlines.ts'
import { type AddressBounds, AddressCounter } from '../settings/address-counter.ts'
import type { Bounds } from '../settings/bounds.ts'

type Held = (route: Route) => void

interface Waiting {
  /** The visitor's address, in the form that the address counter uses. */
  readonly key: string
  /** Ends the wait: the name has a tunnel, or `code` is the reason. */
  finish(code?: ErrorCode): void
}

/** The server members that it uses. */
interface StartupContext {
  readonly settings: { readonly startupBounds: AddressBounds }
  readonly limits: Bounds
  readonly deadlines: Deadlines
}

export class StartupHold implements Deadline {
  dueTick = 0
  readonly #context: StartupContext
  readonly #book: AddressCounter
  /** The waiting requests, by the requested name. */
  readonly #waiting = new Map<string, Set<Waiting>>()
  /** The names that had a tunnel since the start. */
  readonly #seen = new Set<string>()
  #count = 0
  #isOpen = false

  constructor(context: StartupContext) {
    this.#context = context
    this.#book = new AddressCounter(() => context.settings.startupBounds)
  }

  begin(): void {
    const { startupHoldMs } = this.#context.limits
    if (startupHoldMs === 0) return
    this.#isOpen = true
    this.#context.deadlines.watch(this)
    this.#context.deadlines.arm(this, startupHoldMs)
  }

  /**
   * Whether requests for this name still wait. They do not if its client was here since the start, because then it
   * released the name.
   */
  isAwaited(name: string): boolean {
    return this.#isOpen && !this.#seen.has(name)
  }

  /**
   * Makes a request wait until the name has a tunnel; `route` then gives its destination. `address` is the visitor's;
   * `''` if many visitors share it.
   */
  holding(name: string, address: string, route: () => Route): Holding<Route> {
    return { kind: 'holding', hold: held => this.#hold(name, address, route, held) }
  }

  /** Called when the name has a tunnel with a connected client. */
  arrived(name: string): void {
    if (!this.#isOpen) return
    this.#seen.add(name)
    for (const waiting of [...(this.#waiting.get(name) ?? [])]) waiting.finish()
  }

  /** Called when another server of the cluster has the name. If that server goes, requests wait here again. */
  isElsewhere(name: string): void {
    for (const waiting of [...(this.#waiting.get(name) ?? [])]) waiting.finish()
  }

  expired(): void {
    this.end('SERVER_STARTING')
  }

  end(code: ErrorCode): void {
    this.#isOpen = false
    this.#seen.clear()
    this.#context.deadlines.forget(this)
    for (const waiting of [...this.#waiting.values()].flatMap(all => [...all])) waiting.finish(code)
  }

  #hold(name: string, address: string, route: () => Route, held: Held): (() => void) | ErrorCode {
    if (this.#count >= this.#context.limits.maxStartupHeld) return 'SERVER_STARTING'
    const key = this.#book.enter(address)
    if (key === undefined) return 'SERVER_STARTING'
    const waiting: Waiting = {
      key,
      finish: code => {
        this.#remove(name, waiting)
        held(code === undefined ? route() : refusal(code))
      },
    }
    this.#add(name, waiting)
    return () => this.#remove(name, waiting)
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
    this.#book.leave(waiting.key)
    if (all.size === 0) this.#waiting.delete(name)
  }
}
