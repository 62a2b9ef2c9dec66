// Webhooks that wait for their clients, as a part of a server: it keeps what comes while a client is away, and a layer takes out of
// other requests what would mark them as kept.

import type { LayeredTunnel } from '../../server/contracts/layer.ts'
import type { Install } from '../../server/contracts/part.ts'
import type { Inbox } from './inbox.ts'
import { withoutMarks } from './marks.ts'
import { inboxSettings } from './options.ts'

/** Names with an inbox, with those that were given up in the last 90 days, of about 200 bytes. If exceeded: only the server where its client was knows of it. */
const MAX_BOXES = 100_000

export const installInbox: Install = server => {
  const settings = server.settings.inbox && inboxSettings(server.settings.inbox)
  /** Webhooks for them are marked when they are delivered. */
  const boxed = new WeakSet<LayeredTunnel>()
  let inbox: Inbox | undefined
  const stop = (): void => inbox?.stop()
  return {
    name: 'inbox',
    // Without `lane`: lanes take no lines out.
    layer(next, tunnel) {
      // Other servers believe what this one copies to them.
      if (!boxed.has(tunnel) && tunnel.pool?.affinity !== 'all') return next
      return request => {
        if (request.arrival.from?.keptFor === undefined && !request.isAdmitted) withoutMarks(request.head)
        return next(request)
      }
    },
    kept: (name, token, head, address) => inbox?.upstreamFor(name, token, head, address),
    registered(tunnel, { rule, inbox: wish }) {
      if (wish !== undefined && !boxed.has(tunnel)) {
        boxed.add(tunnel)
        tunnel.routesChanged()
      }
      inbox?.registered(tunnel.name, rule.id ?? '', wish, tunnel.pool !== undefined)
    },
    claimedElsewhere: name => inbox?.claimedElsewhere(name),
    async load({ inbox: next }) {
      if (next !== undefined) inboxSettings(next)
    },
    async start({ router }) {
      if (settings === undefined) return
      const { Inbox } = await import('./inbox.ts')
      inbox = new Inbox(settings, server, router)
    },
    share(open) {
      const table = open('boxes', MAX_BOXES)
      return () => inbox?.share(table)
    },
    // Undelivered webhooks wait for the next start.
    drain: stop,
    stop,
  }
}
