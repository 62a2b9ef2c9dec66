// The clients behind one name, and the choice of one for each visitor.

import { latin1 } from '../../http/characters.ts'
import { findCookie } from '../../http/cookie.ts'
import type { RequestHead } from '../../http/head.ts'
import type { Affinity, PoolResponse } from '../../wire/control.ts'
import type { ConnectionLogins } from '../limits/connection-logins.ts'
import type { Member } from './member.ts'

/** The maximum number of clients behind one name, including those that are reconnecting. */
export const MAX_MEMBERS = 64
/** The cookie that names the member which served a visitor before. */
export const MEMBER_COOKIE = 'lt_member'

/** The member for a visitor; a code if all are unhealthy; `undefined` if none is connected. */
export type Choice = Member | 'ORIGIN_UNHEALTHY' | undefined

/** The visitor for whom a member is chosen. */
export interface Asking {
  /** Address of the visitor, without port. */
  readonly address: string
  /** The head. `undefined` for a raw visitor, which has no cookies. */
  readonly head?: RequestHead
  readonly logins?: ConnectionLogins | undefined
}

export class Pool {
  readonly affinity: Affinity
  /** Which response the visitor gets if all members get a copy. */
  readonly response: PoolResponse
  /** The position where the next search for the least busy member begins, so that equally busy members take turns. */
  #turn = 0

  constructor(affinity: Affinity, response: PoolResponse = 'first') {
    this.affinity = affinity
    this.response = response
  }

  /** Chooses a connected, healthy member that is not in `tried`. */
  pick(members: readonly Member[], asking: Asking, tried?: ReadonlySet<Member>): Choice {
    const present = members.filter(member => member.upstream !== undefined && tried?.has(member) !== true)
    if (present.length === 0) return undefined
    const able = present.filter(member => member.isHealthy)
    if (able.length === 0) return 'ORIGIN_UNHEALTHY'
    const { hasBegun = false, member } = asking.logins ?? {}
    const own = hasBegun ? able.find(one => one === member) : undefined
    if (own !== undefined) return own
    if (this.affinity === 'address') return nearest(able, asking.address)
    return this.#ofCookie(able, asking.head) ?? this.#leastBusy(able)
  }

  /** Returns the member that the visitor's cookie names, if it is able. */
  #ofCookie(able: readonly Member[], head: RequestHead | undefined): Member | undefined {
    if (this.affinity !== 'cookie' || head === undefined) return undefined
    // Another app under the same domain can set a cookie of this name. The first value that names one of our members counts.
    return findCookie(head, MEMBER_COOKIE, (bytes, start, end) => {
      const tag = latin1(bytes, start, end)
      return able.find(member => member.tag === tag)
    })
  }

  /** Whether a visitor has the cookie of this member already. */
  isShown(member: Member, head: RequestHead): boolean {
    const isTag = (bytes: Uint8Array, start: number, end: number) =>
      latin1(bytes, start, end) === member.tag || undefined
    return findCookie(head, MEMBER_COOKIE, isTag) !== undefined
  }

  #leastBusy(able: readonly Member[]): Member | undefined {
    const first = this.#turn++ % able.length
    let best = able[first]
    for (let step = 1; step < able.length; step++) {
      const member = able[(first + step) % able.length]
      if (member !== undefined && best !== undefined && member.inFlight < best.inFlight) best = member
    }
    return best
  }
}

/** Returns the Set-Cookie line that sends a visitor's browser to the same member until the browser closes. */
export function memberCookie(member: Member, isSecure: boolean): Uint8Array {
  const secure = isSecure ? '; Secure' : ''
  return Buffer.from(
    `Set-Cookie: ${MEMBER_COOKIE}=${member.tag}; Path=/; HttpOnly; SameSite=Lax${secure}\r\n`,
  )
}

/**
 * Rendezvous hashing: each member gets a hash with the address, and the highest wins. A member that joins or leaves moves only
 * its own share of addresses. Visitors do not know the tags, so they cannot choose an address for a member.
 */
function nearest(able: readonly Member[], address: string): Member | undefined {
  let best: Member | undefined
  let highest = -1
  for (const member of able) {
    const lot = hash(`${member.tag} ${address}`)
    if (lot <= highest) continue
    highest = lot
    best = member
  }
  return best
}

/** Returns an FNV-1a hash, mixed once more at the end as in MurmurHash3: FNV-1a alone spreads short texts badly. */
export function hash(text: string): number {
  let value = 0x811c9dc5
  for (let at = 0; at < text.length; at++) value = Math.imul(value ^ text.charCodeAt(at), 0x01000193)
  value = Math.imul(value ^ (value >>> 16), 0x85ebca6b)
  value = Math.imul(value ^ (value >>> 13), 0xc2b2ae35)
  return (value ^ (value >>> 16)) >>> 0
}
