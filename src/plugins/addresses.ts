// A wall: which addresses may visit, by CIDR.

import { BlockList, isIP } from 'node:net'
import { TunnelError } from '../errors.ts'
import type { Admittance, Guard, Refusal } from '../plugin.ts'

/** Entries of one list. A longer one: `GUARD_INVALID`. */
const MAX_ENTRIES = 1_000

const REFUSED: Refusal = { code: 'ADDRESS_REFUSED' }

/** Lets visitors from these addresses pass. An address in both lists is refused; without `allow`, all others pass. */
export class Addresses implements Guard {
  readonly name = 'addresses'
  readonly #allow: AddressList | undefined
  readonly #deny: AddressList | undefined

  /** Throws `GUARD_INVALID` for what is neither an address nor a range. */
  constructor(allow: readonly string[] | undefined, deny: readonly string[] | undefined) {
    this.#allow = listOf('allow', allow)
    this.#deny = listOf('deny', deny)
  }

  allot(): 'all' {
    return 'all'
  }

  admit({ address }: Pick<Admittance, 'address'>): Refusal | undefined {
    const plain = plainAddress(address)
    const family = isIP(plain)
    // An address that is not known is in no list: where there is one, it is refused.
    if (family === 0) return REFUSED
    const kind = family === 6 ? 'ipv6' : 'ipv4'
    if (this.#deny?.[kind].check(plain, kind)) return REFUSED
    return this.#allow === undefined || this.#allow[kind].check(plain, kind) ? undefined : REFUSED
  }
}

/** A list for each family: in one of both, an IPv4 address is in `::/0`, as that IPv6 address that it can be written as. */
interface AddressList {
  readonly ipv4: BlockList
  readonly ipv6: BlockList
}

function listOf(option: string, entries: readonly string[] | undefined): AddressList | undefined {
  if (entries === undefined) return undefined
  if (entries.length > MAX_ENTRIES)
    throw new TunnelError('GUARD_INVALID', `guard.${option} has more than ${MAX_ENTRIES} entries.`)
  const list = { ipv4: new BlockList(), ipv6: new BlockList() }
  for (const entry of entries) if (!add(list, entry)) throw notAnAddress(option, entry)
  return list
}

function notAnAddress(option: string, entry: string): TunnelError {
  const text = `guard.${option}: "${entry.slice(0, 64)}" is neither an address nor a range such as 10.0.0.0/8.`
  return new TunnelError('GUARD_INVALID', text)
}

function add(list: AddressList, entry: string): boolean {
  const [given = '', bits, more] = entry.split('/')
  const address = plainAddress(given)
  const family = isIP(address)
  if (family === 0 || more !== undefined || given.includes('%')) return false
  const kind = family === 6 ? 'ipv6' : 'ipv4'
  if (bits === undefined) {
    list[kind].addAddress(address, kind)
    return true
  }
  // ::ffff:10.0.0.0/104 is 10.0.0.0/8.
  const prefix = /^\d{1,3}$/.test(bits) ? Number(bits) - (isIP(given) === 6 && family === 4 ? 96 : 0) : -1
  if (prefix < 0 || prefix > (family === 6 ? 128 : 32)) return false
  list[kind].addSubnet(address, prefix, kind)
  return true
}

/** An IPv4 address that came through an IPv6 socket is that IPv4 address, however it is written; a zone means nothing here. */
export function plainAddress(address: string): string {
  if (!address.includes(':')) return address
  const zone = address.indexOf('%')
  const bare = zone < 0 ? address : address.slice(0, zone)
  if (isIP(bare) !== 6) return bare
  const [, dotted] = /^(?:0{0,4}:){2,6}ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(bare) ?? []
  if (dotted !== undefined) return dotted
  const [, high, low] = /^(?:0{0,4}:){2,6}ffff:([0-9a-f]{1,4}):([0-9a-f]{1,4})$/i.exec(bare) ?? []
  if (high === undefined || low === undefined) return bare.toLowerCase()
  const number = Number.parseInt(high, 16) * 0x1_0000 + Number.parseInt(low, 16)
  return [24, 16, 8, 0].map(shift => (number >>> shift) & 0xff).join('.')
}

/** Whom a rate is counted for: an IPv4 address, or the /64 that an IPv6 visitor can choose addresses from. */
export function sourceOf(address: string): string {
  const plain = plainAddress(address)
  if (!plain.includes(':')) return plain
  const [head = '', tail] = plain.split('::')
  const groups = head === '' ? [] : head.split(':')
  const behind = tail === undefined || tail === '' ? [] : tail.split(':')
  const zeros = tail === undefined ? 0 : Math.max(0, 8 - groups.length - behind.length)
  const all = [...groups, ...Array.from({ length: zeros }, () => '0'), ...behind]
  return `${all
    .slice(0, 4)
    .map(group => group.replace(/^0+(?=.)/, ''))
    .join(':')}::/64`
}
