// Requests for names without a tunnel, in the first seconds of a server: after a restart their clients are in transit
// back, and many senders of webhooks do not try again after a 404.

import type { ErrorCode } from '../../errors.ts'
import { type Holding, type Route, refusal } from '../contracts/front.ts'
import type { Deadline, Deadlines } from '../limits/deadlines.ts'
import { type AddressBounds, AddressCounter } from '../settings/address-counter.ts'
import type { Bounds } from '../settings/bounds.ts'

type Held = (route: Route) => void

interface Waiting {
  /** The owner of the request, as the address book has it. */
  readonly key: string
  /** The name has a tunnel now, or `code` is the reason for the end of the wait. */
  finish(code?: ErrorCode): void
}

/** The parts of the server that it needs. */
interface StartupContext {
  readonly settings: { readonly startupBounds: AddressBounds }
  readonly limits: Bounds
  readonly deadlines: Deadlines
}

export class StartupHold implements Deadline {
  dueTick = 0
  readonly #context: StartupContext
  readonly #book: AddressCounter
  /** The waiting requests by the name of the missing tunnel. */
  readonly #waiting = new Map<string, Set<Waiting>>()
  /** Names that had a tunnel since the start. */
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

  /** Whether requests for this name still wait. Not if its client was here already: then it gave the name back. */
  isAwaited(name: string): boolean {
    return this.#isOpen && !this.#seen.has(name)
  }

  /**
   * Holds a request until the name has a tunnel; `route` says then where it goes. `address` is the visitor's; `''` when many
   * visitors share it.
   */
  holding(name: string, address: string, route: () => Route): Holding<Route> {
    return { kind: 'holding', hold: held => this.#hold(name, address, route, held) }
  }

  /** The name has a tunnel, whose client is there. */
  arrived(name: string): void {
    if (!this.#isOpen) return
    this.#seen.add(name)
    for (const waiting of [...(this.#waiting.get(name) ?? [])]) waiting.finish()
  }

  /** Called when another server of the cluster has the name. Not seen here: when that server is gone, requests wait again. */
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
