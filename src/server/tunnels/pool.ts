// The clients behind one name, and which of them takes a visitor.

import { latin1 } from '../../http/characters.ts'
import { findCookie } from '../../http/cookie.ts'
import type { RequestHead } from '../../http/head.ts'
import type { Affinity, PoolResponse } from '../../wire/control.ts'
import type { ConnectionLogins } from '../limits/connection-logins.ts'
import type { Member } from './member.ts'

/** Clients behind one name, those that are reconnecting included. */
export const MAX_MEMBERS = 64
/** Finds the member that served a visitor before. */
export const MEMBER_COOKIE = 'lt_member'

/** A member that takes a visitor; a code when all are unhealthy; `undefined` when none is there. */
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
  /** The response that the visitor gets, with `all`. */
  readonly response: PoolResponse
  /** The place where the search for the least busy one begins: among equals each gets its turn. */
  #turn = 0

  constructor(affinity: Affinity, response: PoolResponse = 'first') {
    this.affinity = affinity
    this.response = response
  }

  /** Picks one that is there, healthy and not `tried` yet. */
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

  /** The one that the visitor had before, if it can show that. */
  #ofCookie(able: readonly Member[], head: RequestHead | undefined): Member | undefined {
    if (this.affinity !== 'cookie' || head === undefined) return undefined
    // Another app under the same domain can set a cookie of this name as well: the first that is one of ours counts.
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

/** The line that makes a visitor's browser come back to the same member, until it closes. */
export function memberCookie(member: Member, isSecure: boolean): Uint8Array {
  const secure = isSecure ? '; Secure' : ''
  return Buffer.from(
    `Set-Cookie: ${MEMBER_COOKIE}=${member.tag}; Path=/; HttpOnly; SameSite=Lax${secure}\r\n`,
  )
}

/**
 * Rendezvous hashing: each member draws a lot for the address, and the highest has it. A member that joins or leaves moves only
 * its own share. Visitors do not know the tags, so they cannot choose an address for a member.
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

/** Returns FNV-1a, its bits mixed once more at the end as MurmurHash3 does: alone it spreads short texts badly. */
export function hash(text: string): number {
  let value = 0x811c9dc5
  for (let at = 0; at < text.length; at++) value = Math.imul(value ^ text.charCodeAt(at), 0x01000193)
  value = Math.imul(value ^ (value >>> 16), 0x85ebca6b)
  value = Math.imul(value ^ (value >>> 13), 0xc2b2ae35)
  return (value ^ (value >>> 16)) >>> 0
}
