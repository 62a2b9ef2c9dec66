// The other servers of a cluster as a part of a server: a name without a tunnel here may be theirs.

import { refusal } from '../../server/contracts/front.ts'
import type { Install } from '../../server/contracts/part.ts'
import { untilOver } from '../../server/draining.ts'
import type { ServerSettings } from '../../server/settings/settings.ts'
import type { Joined } from './joining.ts'
import { NameSearches } from './name-search.ts'
import { checkCluster } from './options.ts'
import { isPeerProtocol } from './peer-wire.ts'

export const installCluster: Install = server => {
  let joined: Joined | undefined
  let join: () => Promise<Joined>
  const searches = new NameSearches()
  const check = ({ cluster, port }: ServerSettings): void => cluster && checkCluster(cluster, port)
  check(server.settings)
  return {
    name: 'cluster',
    nameLayer: next => named =>
      joined === undefined ? next(named) : searches.route(named, joined.cluster, next),
    enter(arrival) {
      if (!isPeerProtocol(arrival.head.upgrade)) return undefined
      return joined?.enter(arrival) ?? refusal('BAD_REQUEST')
    },
    async load(settings) {
      check(settings)
    },
    async start(whole) {
      const { cluster, port } = server.settings
      if (cluster === undefined) return
      join = async () => (await import('./joining.ts')).join(server, whole, cluster)
      // Visitors of an inherited socket can arrive at once, so the server joins first. Only with a free port must it
      // listen first, to know its URL.
      if (port !== 0 || cluster.peerUrl !== undefined) joined = await join()
    },
    async listening() {
      if (server.settings.cluster === undefined) return
      joined ??= await join()
      await joined.cluster.openPorts()
    },
    drain() {
      if (server.settings.cluster?.othersIdle === undefined) joined?.cluster.leave()
    },
    async idle(ms) {
      const { othersIdle } = server.settings.cluster ?? {}
      if (othersIdle !== undefined) await untilOver(othersIdle(), ms)
      joined?.cluster.leave()
    },
    stop() {
      joined?.sharing?.stop()
      joined?.cluster.stop()
      joined = undefined
    },
    reloaded: () => joined?.sharing?.useInPolicy(),
  }
}
