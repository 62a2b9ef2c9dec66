// Bans of the operator as a part of a server: a layer while addresses are banned, and a check of each address and name.

import type { Ban } from '../../operations.ts'
import type { Install, WholeServer } from '../../server/contracts/part.ts'
import { Bans, MAX_SHARED, SharedBans } from './bans.ts'

export const installBans: Install = server => {
  let bans: Bans | undefined
  let clients: WholeServer['clients'] = new Set()
  const isBanned = (address: string): boolean => bans?.isAddressBanned(address) === true
  /** Cuts the visitors and clients that the ban names, as far as the server knows them. */
  const added = ({ kind, value }: Ban): void => {
    if (kind === 'tunnel') {
      server.closeTunnel(value)
      // The connecting ends of a private service.
      for (const client of [...clients]) client.reloaded()
    } else for (const client of [...clients]) if (isBanned(client.remoteAddress)) client.close('BLOCKED')
  }
  const host = { added, changed: () => server.tunnels.routesChanged() }
  return {
    name: 'bans',
    layer(next) {
      if (bans?.hasAddresses !== true) return next
      return request =>
        !request.isAdmitted && isBanned(request.address) ? request.answer({ code: 'BLOCKED' }) : next(request)
    },
    judge: address => (isBanned(address) ? 'BLOCKED' : undefined),
    isBlocked: name => bans?.isTunnelBanned(name) === true,
    // Each request on a proxy's connection may come from another visitor.
    lane: ({ isProxy, address }) =>
      bans?.hasAddresses === true && (isProxy || isBanned(address)) ? 'none' : undefined,
    async start(whole) {
      clients = whole.clients
      const { admin } = server.settings
      if (admin === undefined) return
      bans = new Bans(admin.store, host)
      server.bans = bans
    },
    share(open) {
      const table = open('bans', MAX_SHARED)
      return () => {
        // Even without an operator of its own, a server applies the others' bans.
        bans ??= new Bans(undefined, host)
        bans.share(new SharedBans(table))
      }
    },
  }
}
