// How many connections each address has open, and how many it opened in this second.

import { formatIp, parseIp } from '../wire/ip-address.ts'

/** Bounds for each address. `0`: none. */
export interface AddressBounds {
  readonly maxOpen: number
  readonly maxPerSecond: number
  /** Whether they are for addresses of the loopback, too. */
  readonly includesLoopback: boolean
}

/** The same, with `maxOpen` at most this. */
export function narrowed(bounds: AddressBounds, most: number): AddressBounds {
  return bounds.maxOpen <= most ? bounds : { ...bounds, maxOpen: most }
}

export class AddressBook {
  readonly #bounds: () => AddressBounds
  readonly #open = new Map<string, number>()
  /** Of the second `#second`. Forgotten with it: what it needs is bounded by what can come in a second. */
  readonly #opened = new Map<string, number>()
  #second = 0

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
    if (maxPerSecond > 0 && !this.#mayOpen(key, maxPerSecond)) return undefined
    this.#open.set(key, open + 1)
    return key
  }

  /** What it does on a connection costs as much as a new one would: whether it may, in this second. `key`: as `enter` returned it. */
  mayDoAgain(key: string): boolean {
    const { maxPerSecond } = this.#bounds()
    return key === '' || maxPerSecond === 0 || this.#mayOpen(key, maxPerSecond)
  }

  leave(key: string): void {
    const open = this.#open.get(key)
    if (open === undefined) return
    if (open > 1) this.#open.set(key, open - 1)
    else this.#open.delete(key)
  }

  #mayOpen(key: string, maxPerSecond: number): boolean {
    const second = Math.floor(performance.now() / 1_000)
    if (second !== this.#second) this.#opened.clear()
    this.#second = second
    const opened = (this.#opened.get(key) ?? 0) + 1
    // Refused ones count too: an address that never stops gets in at the beginning of each second only.
    this.#opened.set(key, opened)
    return opened <= maxPerSecond
  }
}

/**
 * An IPv4 address, also where IPv6 carries it, or the first 64 bits of an IPv6 one: a host that has one address with these
 * 64 bits has all of them.
 */
export function networkOf(address: string): string {
  if (!address.includes(':')) return address
  const bytes = parseIp(address.split('%', 1)[0] ?? '')
  if (bytes === undefined) return address
  const text = formatIp(bytes)
  if (text === '::1' || !text.includes(':')) return text
  return `${formatIp(bytes.fill(0, 8))}/64`
}

function isLoopback(network: string): boolean {
  return network === '::1' || network.startsWith('127.')
}
