// An access rule: the addresses that may visit, by CIDR and by country.

import { isIP } from 'node:net'
import { type Countries, countryOf, isInCountry } from '../countries.ts'
import { optionInvalid, TunnelError } from '../errors.ts'
import { Networks, plainAddress } from '../networks.ts'
import type { Admittance, Guard, Refusal } from '../plugin.ts'

/**
 * The maximum number of entries in both lists together. If exceeded: `OPTION_INVALID`. A client can send lists
 * without pause, and this many entries take 1.2 ms.
 */
const MAX_ENTRIES = 1_000

const REFUSED: Refusal = { code: 'ADDRESS_REFUSED' }

/** Admits visitors from these addresses. An address in both lists is refused; without `allow`, all others pass. */
export class Addresses implements Guard {
  readonly name = 'addresses'
  readonly #allow: Places | undefined
  readonly #deny: Places | undefined

  /** Makes the rule. Throws `OPTION_INVALID` for an invalid entry, and `GUARD_UNAVAILABLE` for a country without `countries`. */
  constructor(
    allow: readonly string[] | undefined,
    deny: readonly string[] | undefined,
    countries?: Countries,
  ) {
    if ((allow?.length ?? 0) + (deny?.length ?? 0) > MAX_ENTRIES)
      throw optionInvalid(`guard.allow and guard.deny have more than ${MAX_ENTRIES} entries.`)
    this.#allow = placesOf('allow', allow, countries)
    this.#deny = placesOf('deny', deny, countries)
  }

  allot(): 'all' {
    return 'all'
  }

  admit({ address }: Pick<Admittance, 'address'>): Refusal | undefined {
    // An unknown address is in no list, so it is refused if there is one.
    if (isIP(plainAddress(address)) === 0 || this.#deny?.has(address)) return REFUSED
    return this.#allow === undefined || this.#allow.has(address) ? undefined : REFUSED
  }
}

type Places = Pick<Networks, 'has'>

const NO_COUNTRIES = 'The server has no file of countries, so it cannot enforce access rules by country.'
const NO_COUNTRIES_ACTION =
  'Remove the rules with country:, or ask the operator to set --countries (countries).'

function placesOf(
  option: string,
  entries: readonly string[] | undefined,
  countries: Countries | undefined,
): Places | undefined {
  if (entries === undefined) return undefined
  const list = new Networks()
  const codes = new Set<string>()
  for (const entry of entries) {
    const code = countryOf(entry)
    if (code !== undefined) codes.add(code)
    else if (!list.add(entry)) throw notAnAddress(option, entry)
  }
  if (codes.size === 0) return list
  if (countries === undefined)
    throw new TunnelError('GUARD_UNAVAILABLE', NO_COUNTRIES, { action: NO_COUNTRIES_ACTION })
  return {
    has: address => list.has(address) || isInCountry(plainAddress(address), codes, countries),
  }
}

function notAnAddress(option: string, entry: string): TunnelError {
  const text = `guard.${option}: "${entry.slice(0, 64)}" is not an address, a range such as 10.0.0.0/8, or a country such as country:DE.`
  return optionInvalid(text)
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
