// One request for all clients of a pool: those that are here, and those of other servers.

import type { Member } from './member.ts'
import type { Upstream } from './upstream.ts'
import { type CopyEnd, type CopyHost, CopyingUpstream } from './upstreams/copying.ts'

/** What copies need of the request's booking. */
export interface CopiedRequest extends Omit<CopyHost, 'recipients'> {
  /** As `Recipient.began`. */
  began(member: Member): CopyEnd
  /** As `Recipient.won`. */
  won(member: Member): void
}

/** `others`: the servers whose clients get it, too. */
export function copyTo(
  members: readonly Member[],
  others: readonly Upstream[],
  request: CopiedRequest,
): Upstream {
  const own = members.map(member => ({
    upstream: member.upstream,
    label: member.label,
    began: () => request.began(member),
    won: () => request.won(member),
  }))
  const servers = others.map(upstream => ({ upstream, isServer: true, began: () => () => {}, won() {} }))
  return new CopyingUpstream({ ...request, recipients: [...own, ...servers] })
}
