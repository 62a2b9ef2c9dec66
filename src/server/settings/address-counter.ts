// Counts the open connections of each address, and those that it opens in a second.

import { Gcra } from '../../gcra.ts'
import { networkOf } from '../../wire/ip-address.ts'

/** Limits for each address. `0`: no limit. */
export interface AddressBounds {
  readonly maxOpen: number
  readonly maxPerSecond: number
  readonly includesLoopback: boolean
}

/** Returns the same limits, with `maxOpen` at most `most`. */
export function narrowed(bounds: AddressBounds, most: number): AddressBounds {
  return bounds.maxOpen <= most ? bounds : { ...bounds, maxOpen: most }
}

const SECOND_MS = 1_000
/**
 * The number of addresses whose rate is tracked, about 6 MB in total. If exceeded, the one that was quiet longest is forgotten.
 */
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

  /**
   * Counts a connection. Returns the value to pass to `leave`; `undefined` if the address has too many. `''` is an
   * address without limits.
   */
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

  /** Whether an address may now cause work that costs as much as a new connection. `key`: the result of `enter`. */
  mayDoAgain(key: string): boolean {
    const rates = key === '' ? undefined : this.#rates
    return rates === undefined || rates.take(key, performance.now()) === 0
  }

  /**
   * Counts work that cost as much as `count` new connections and could not be refused. The address may then open
   * fewer for a second or two.
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

/** Whether a network, in the form of `networkOf`, is the loopback. */
export function isLoopback(network: string): boolean {
  return network === '::1' || network.startsWith('127.')
}
