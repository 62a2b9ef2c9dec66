// How many connections each address has open, and how many it opens in a second.

import { Gcra } from '../../gcra.ts'
import { networkOf } from '../../wire/ip-address.ts'

/** Bounds for each address. `0`: none. */
export interface AddressBounds {
  readonly maxOpen: number
  readonly maxPerSecond: number
  readonly includesLoopback: boolean
}

/** The same, with `maxOpen` at most this. */
export function narrowed(bounds: AddressBounds, most: number): AddressBounds {
  return bounds.maxOpen <= most ? bounds : { ...bounds, maxOpen: most }
}

const SECOND_MS = 1_000
/** Addresses whose rate is known at once: some 6 MB. Above, the one that has been quiet for longest is forgotten. */
const MAX_RATED = 65_536

export class AddressCounter {
  readonly #bounds: () => AddressBounds
  readonly #open = new Map<string, number>()
  /** The counter for `#perSecond`, which a reload changes. */
  #opened: Gcra | undefined
  #perSecond = 0

  constructor(bounds: () => AddressBounds) {
    this.#bounds = bounds
  }

  /** Counts one more. Returns what to call `leave` with; `undefined`: too many. `''` is an address without bounds. */
  enter(address: string): string | undefined {
    const { maxOpen, maxPerSecond, includesLoopback } = this.#bounds()
    if (address === '' || (maxOpen === 0 && maxPerSecond === 0)) return ''
    const key = networkOf(address)
    if (!includesLoopback && isLoopback(key)) return ''
    const open = this.#open.get(key) ?? 0
    if (maxOpen > 0 && open >= maxOpen) return undefined
    if (!this.mayDoAgain(key)) return undefined
    this.#open.set(key, open + 1)
    return key
  }

  /** Whether an address may do now what costs as much as a new connection. `key`: as `enter` returned it. */
  mayDoAgain(key: string): boolean {
    const rates = key === '' ? undefined : this.#rates
    return rates === undefined || rates.take(key, performance.now()) === 0
  }

  /**
   * Counts work that cost as much as `count` new connections and could not be refused: the address opens fewer for a second or
   * two.
   */
  didAgain(key: string, count: number): void {
    const rates = key === '' ? undefined : this.#rates
    if (rates === undefined) return
    const now = performance.now()
    const most = this.#perSecond + rates.availableOf(key, now)
    rates.count(key, now, Math.min(count, most))
  }

  leave(key: string): void {
    const open = this.#open.get(key)
    if (open === undefined) return
    if (open > 1) this.#open.set(key, open - 1)
    else this.#open.delete(key)
  }

  get #rates(): Gcra | undefined {
    const { maxPerSecond } = this.#bounds()
    if (maxPerSecond !== this.#perSecond) {
      this.#perSecond = maxPerSecond
      const allowance = { limit: maxPerSecond, windowMs: SECOND_MS }
      this.#opened = maxPerSecond === 0 ? undefined : new Gcra(allowance, MAX_RATED)
    }
    return this.#opened
  }
}

/** Whether a network, as `networkOf` writes it, is the loopback. */
export function isLoopback(network: string): boolean {
  return network === '::1' || network.startsWith('127.')
}
