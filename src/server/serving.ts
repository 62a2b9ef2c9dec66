// Who serves a request: the tunnel's client, or one of a pool; and another one, when that one failed without harm.

import { ERRORS, type ErrorCode } from '../errors.ts'
import { clientAddress } from './client-address.ts'
import type { Holding, TunnelRoute } from './front.ts'
import type { Member } from './member.ts'
import { type Asking, type Choice, memberCookie } from './pool.ts'
import type { Tunnel } from './tunnels.ts'
import type { Upstream } from './upstream.ts'
import type { VisitorConnection } from './visitor.ts'

/** What serving needs of the server. */
export interface ServingHost {
  /** Whether visitors reach tunnels by https. */
  isSecure(): boolean
  /** Whether this is a proxy whose X-Forwarded-For is believed. */
  isTrusted(address: string): boolean
  /** The server stops: it grants no tunnels any more. */
  isDraining(): boolean
}

/** Where there is no choice, the address of the visitor is not looked for. */
const ANYBODY: Asking = { address: '' }

export class Serving {
  readonly #host: ServingHost

  constructor(host: ServingHost) {
    this.#host = host
  }

  /** Where a request for the tunnel goes. */
  route(tunnel: Tunnel, visitor: VisitorConnection): TunnelRoute {
    const chosen = tunnel.pool === undefined ? tunnel.choose(ANYBODY) : this.#choose(tunnel, visitor)
    if (chosen === 'ORIGIN_UNHEALTHY') return chosen
    // A server that stops grants no tunnel: a request that waited for the client would wait in vain.
    if (chosen?.upstream === undefined)
      return this.#host.isDraining() ? 'SERVER_DRAINING' : holdAt(tunnel, visitor)
    serve(chosen, visitor)
    return chosen.upstream
  }

  /** The request failed at the member that had it, and may go to another one: each is asked once. */
  elsewhere(visitor: VisitorConnection, code: ErrorCode): Upstream | undefined {
    const { record } = visitor
    const { tunnel, member, client, report } = record
    if (tunnel?.pool === undefined || member === undefined) return undefined
    record.tried ??= new Set()
    record.tried.add(member)
    const chosen = this.#choose(tunnel, visitor)
    if (typeof chosen !== 'object' || chosen.upstream === undefined) return undefined
    // To the one that had it, it is over.
    client?.finished(tunnel, report, ERRORS[code].status, msSince(record.startedAt), 0, code)
    member.finished()
    serve(chosen, visitor)
    return chosen.upstream
  }

  #choose(tunnel: Tunnel, visitor: VisitorConnection): Choice {
    const { head, record } = visitor
    const address = clientAddress(visitor.remoteAddress, head, one => this.#host.isTrusted(one))
    const chosen = tunnel.choose({ address, head }, record.tried)
    visitor.answerLines = undefined
    if (tunnel.pool?.affinity !== 'cookie' || typeof chosen !== 'object') return chosen
    if (!tunnel.pool.isShown(chosen, head)) visitor.answerLines = memberCookie(chosen, this.#host.isSecure())
    return chosen
  }
}

/** The request is this member's, whose client gets a report. */
function serve(member: Member, visitor: VisitorConnection): void {
  const { record } = visitor
  member.began()
  record.member = member
  record.client = member.client
  record.report = member.client?.begun(member.tunnel, visitor.head) ?? 0
}

/** A client gets its report of a request that waited for it when it is back. */
function holdAt(tunnel: Tunnel, visitor: VisitorConnection): Holding {
  return {
    hold: held =>
      tunnel.hold(outcome => {
        const member = typeof outcome === 'string' ? undefined : tunnel.memberOf(outcome)
        if (member !== undefined) serve(member, visitor)
        held(outcome)
      }),
  }
}

/** Until now, to the hundredth. */
export function msSince(startedAt: number): number {
  return toHundredth(performance.now() - startedAt)
}

export function toHundredth(ms: number): number {
  return Math.round(ms * 100) / 100
}
