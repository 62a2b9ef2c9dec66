// Who is kept away by the operator. Asked for each visitor, so an empty list costs a comparison.

import { BlockList, isIP } from 'node:net'
import { TunnelError } from '../../errors.ts'
import type { Ban, OperationsStore } from '../../operations.ts'

/** Bans at once. Above: `OPTION_INVALID`. */
export const MAX_BANS = 10_000

export class Bans {
  readonly #store: OperationsStore | undefined
  readonly #changed: () => void
  readonly #bans = new Map<number, Ban>()
  #addresses = new BlockList()
  #tunnels = new Set<string>()
  #lastId = 0
  #version: number | undefined
  #hasAddresses = false
  /** The earliest end of one that ends. */
  #nextEndMs = Number.POSITIVE_INFINITY

  /** `changed`: another visitor may be refused, or let in. */
  constructor(store: OperationsStore | undefined, changed: () => void) {
    this.#store = store
    this.#changed = changed
    this.refresh()
    this.#rebuild()
  }

  /** Takes over what other programs with the same store have changed. Returns the bans that are new. */
  refresh(): readonly Ban[] {
    const version = this.#store?.version()
    if (this.#store === undefined || version === this.#version) return []
    this.#version = version
    const kept = this.#store.bans()
    const added = kept.filter(({ id }) => !this.#bans.has(id))
    if (added.length === 0 && kept.length === this.#bans.size) return []
    this.#bans.clear()
    for (const ban of kept) this.#bans.set(ban.id, ban)
    this.#rebuild()
    return added
  }

  get all(): readonly Ban[] {
    this.#expire()
    return [...this.#bans.values()]
  }

  get hasAddresses(): boolean {
    return this.#hasAddresses
  }

  isAddressBanned(address: string): boolean {
    if (!this.#hasAddresses) return false
    this.#expire()
    // `BlockList` knows IPv4 addresses in IPv6 clothes.
    return this.#addresses.check(address, isIP(address) === 6 ? 'ipv6' : 'ipv4')
  }

  isTunnelBanned(name: string): boolean {
    if (this.#tunnels.size === 0) return false
    this.#expire()
    return this.#tunnels.has(name)
  }

  /** Throws `OPTION_INVALID` for what cannot be banned. */
  add(ban: Omit<Ban, 'id'>): Ban {
    this.#expire()
    const { kind, value } = ban
    if (kind === 'address' && !isNetwork(value))
      throw new TunnelError('OPTION_INVALID', `"${value}" is not an address or a network.`)
    if (this.#bans.size >= MAX_BANS)
      throw new TunnelError('OPTION_INVALID', `There are ${MAX_BANS} bans already.`)
    const id = this.#store?.saveBan(ban) ?? this.#lastId + 1
    this.#lastId = id
    const added = { id, ...ban }
    this.#bans.set(id, added)
    this.#rebuild()
    return added
  }

  /** `false`: there is none with this id. */
  remove(id: number): boolean {
    if (!this.#bans.delete(id)) return false
    this.#store?.removeBan(id)
    this.#rebuild()
    return true
  }

  #expire(): void {
    const now = Date.now()
    if (now < this.#nextEndMs) return
    for (const { id, untilMs } of this.#bans.values())
      if (untilMs !== undefined && untilMs <= now) {
        this.#bans.delete(id)
        this.#store?.removeBan(id)
      }
    this.#rebuild()
  }

  #rebuild(): void {
    const addresses = new BlockList()
    const tunnels = new Set<string>()
    this.#hasAddresses = false
    this.#nextEndMs = Number.POSITIVE_INFINITY
    for (const { kind, value, untilMs } of this.#bans.values()) {
      this.#nextEndMs = Math.min(this.#nextEndMs, untilMs ?? Number.POSITIVE_INFINITY)
      if (kind === 'tunnel') tunnels.add(value)
      else {
        this.#hasAddresses = true
        const [address = '', bits] = value.split('/')
        const family = isIP(address) === 6 ? 'ipv6' : 'ipv4'
        if (bits === undefined) addresses.addAddress(address, family)
        else addresses.addSubnet(address, Number(bits), family)
      }
    }
    this.#addresses = addresses
    this.#tunnels = tunnels
    this.#changed()
  }
}

function isNetwork(text: string): boolean {
  const [address = '', bits, more] = text.split('/')
  const family = isIP(address)
  if (family === 0 || more !== undefined || address.includes('%')) return false
  return bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) <= (family === 6 ? 128 : 32))
}
