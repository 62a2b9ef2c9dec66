// The inbox as a part of a server: stores webhooks while a client is away. A layer removes headers from other
// requests that would mark them as stored.

import type { LayeredTunnel } from '../../server/contracts/layer.ts'
import type { Install } from '../../server/contracts/part.ts'
import type { Inbox } from './inbox.ts'
import { withoutMarks } from './marks.ts'
import { inboxSettings } from './options.ts'

/**
 * The maximum number of names with an inbox, including those given up in the last 90 days, of about 200 bytes. If
 * exceeded: only the server to which the client was connected knows of the inbox.
 */
const MAX_BOXES = 100_000

export const installInbox: Install = server => {
  const settings = server.settings.inbox && inboxSettings(server.settings.inbox)
  /** The tunnels with an inbox, whose webhooks are marked at their delivery. */
  const boxed = new WeakSet<LayeredTunnel>()
  let inbox: Inbox | undefined
  const stop = (): void => inbox?.stop()
  return {
    name: 'inbox',
    // Has no `lane`, because lanes remove no lines.
    layer(next, tunnel) {
      // Other servers trust the headers of copies from this one.
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
