// Copies to all clients of a pool as a part of a server: the last layer of such tunnels. It sends copies to the
// clients here and, from the server with the visitor, to those at other servers.

import { KeptBodies } from '../../kept-bodies.ts'
import { type Route, routedLater } from '../../server/contracts/front.ts'
import type { LayeredTunnel, TunnelRequest } from '../../server/contracts/layer.ts'
import type { Install } from '../../server/contracts/part.ts'
import type { Upstream } from '../../server/contracts/upstream.ts'
import { LARGEST_TIMES } from '../../shares.ts'
import { CopyingUpstream, type Recipient } from './copying.ts'

export const installCopies: Install = server => {
  const bodies = new KeptBodies(server.deadlines, () => {
    const { maxCopyBodyBytes, maxCopiedBytes, headTimeoutMs } = server.limits
    const maxBytes = Math.max(maxCopiedBytes, LARGEST_TIMES * maxCopyBodyBytes)
    return { maxBodyBytes: maxCopyBodyBytes, maxBytes, pauseMs: headTimeoutMs }
  })
  return {
    name: 'copies',
    // Has no `lane`, because a lane serves one client.
    layer(next, tunnel) {
      const { name, pool } = tunnel
      if (pool?.affinity !== 'all') return next
      const copied = (request: TunnelRequest, others: readonly Upstream[]): Route => {
        request.sent()
        const upstream = new CopyingUpstream({
          answer: pool.response,
          isForServer: request.arrival.from?.isCopy === true,
          maxBodyBytes: bodies.maxBodyBytes,
          recipients: recipientsOf(request, tunnel, others),
          keep: failed => bodies.begin(tunnel.owner, request.address, failed),
        })
        return { kind: 'upstream', upstream }
      }
      return request => {
        // A request that switches protocols goes to one client only.
        if (request.head.upgrade !== '') return next(request)
        if (request.arrival.from?.isCopy === true) return copied(request, [])
        const toAll = (others: readonly Upstream[]): Route =>
          others.length > 0 ? copied(request, others) : request.arrived(() => copied(request, []))
        const others = server.servers?.othersWith(name) ?? []
        return others instanceof Promise ? routedLater(others, toAll) : toAll(others)
      }
    },
  }
}

function recipientsOf(
  request: TunnelRequest,
  { able }: LayeredTunnel,
  others: readonly Upstream[],
): readonly Recipient[] {
  const own = able.map(member => ({
    upstream: member.upstream,
    label: member.label,
    began: () => request.copyTo(member),
    won: () => request.answeredBy(member),
  }))
  const servers = others.map(upstream => ({ upstream, isServer: true, began: () => () => {}, won() {} }))
  return [...own, ...servers]
}
