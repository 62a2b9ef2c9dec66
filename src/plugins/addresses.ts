// A wall: which addresses may visit, by CIDR.

import { isIP } from 'node:net'
import { TunnelError } from '../errors.ts'
import { Networks, plainAddress } from '../networks.ts'
import type { Admittance, Guard, Refusal } from '../plugin.ts'

/** Entries of both lists together; more: `OPTION_INVALID`. A client can send them without pause, and this many take 1.2 ms. */
const MAX_ENTRIES = 1_000

const REFUSED: Refusal = { code: 'ADDRESS_REFUSED' }

/** Lets visitors from these addresses pass. An address in both lists is refused; without `allow`, all others pass. */
export class Addresses implements Guard {
  readonly name = 'addresses'
  readonly #allow: Networks | undefined
  readonly #deny: Networks | undefined

  /** Throws `OPTION_INVALID` for what is neither an address nor a range. */
  constructor(allow: readonly string[] | undefined, deny: readonly string[] | undefined) {
    if ((allow?.length ?? 0) + (deny?.length ?? 0) > MAX_ENTRIES)
      throw new TunnelError(
        'OPTION_INVALID',
        `guard.allow and guard.deny have more than ${MAX_ENTRIES} entries.`,
      )
    this.#allow = listOf('allow', allow)
    this.#deny = listOf('deny', deny)
  }

  allot(): 'all' {
    return 'all'
  }

  admit({ address }: Pick<Admittance, 'address'>): Refusal | undefined {
    // An address that is not known is in no list: where there is one, it is refused.
    if (isIP(plainAddress(address)) === 0 || this.#deny?.has(address)) return REFUSED
    return this.#allow === undefined || this.#allow.has(address) ? undefined : REFUSED
  }
}

function listOf(option: string, entries: readonly string[] | undefined): Networks | undefined {
  if (entries === undefined) return undefined
  const list = new Networks()
  for (const entry of entries) if (!list.add(entry)) throw notAnAddress(option, entry)
  return list
}

function notAnAddress(option: string, entry: string): TunnelError {
  const text = `guard.${option}: "${entry.slice(0, 64)}" is neither an address nor a range such as 10.0.0.0/8.`
  return new TunnelError('OPTION_INVALID', text)
}

/** Returns the source for which a rate counts: an IPv4 address, or the /64 that an IPv6 visitor can choose addresses from. */
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
