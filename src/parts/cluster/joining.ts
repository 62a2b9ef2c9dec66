// Makes a server a member of a cluster: from then on, the others send it requests.

import { type Arrival, type Route, refusal } from '../../server/contracts/front.ts'
import type { PartServer, WholeServer } from '../../server/contracts/part.ts'
import type { ClusterOptions } from '../../server/settings/part-options.ts'
import { Cluster, peerUrlOf } from './cluster.ts'
import { peerRoute } from './peer-door.ts'
import { RAW_PROTOCOL } from './peer-wire.ts'
import { rawRoute } from './raw-door.ts'
import { Sharing } from './sharing.ts'

export interface Joined {
  readonly cluster: Cluster
  /** The shared data. `undefined` if the servers share files instead. */
  readonly sharing: Sharing | undefined
  /** Takes a connection of another server. */
  enter(arrival: Arrival): Route
}

/** Joins the cluster. Rejects with `CLUSTER_UNREACHABLE`. */
export async function join(server: PartServer, whole: WholeServer, options: ClusterOptions): Promise<Joined> {
  const { domains, hostname, isTls, admin } = server.settings
  const cluster = new Cluster(options, {
    get limits() {
      return server.limits
    },
    deadlines: server.deadlines,
    turns: server.turns,
    controlHost: domains[0] ?? 'localhost',
    lost: name => server.lost(name),
    claimedElsewhere: name => whole.claimedElsewhere(name),
    isServedHere: name => server.isServedHere(name),
    // The servers of one machine have the same ports: the one with the tunnel listens.
    ports: options.peerUrl?.startsWith('unix:')
      ? undefined
      : {
          isOffered: (kind, port) => server.settings.ports[kind].includes(port),
          open: (kind, port) => whole.ports.openElsewhere(kind, port),
          close: (kind, port) => whole.ports.closeElsewhere(kind, port),
        },
    failed: error => server.failed(error),
  })
  const { tables, node } = cluster
  const sharing =
    tables &&
    new Sharing(node, tables, {
      store: options.tokens ?? admin?.tokens,
      guards: server.tunnels.guards,
      get policy() {
        return server.settings.policy
      },
      share: open => server.parts.share(open),
      changed: () => whole.allowanceChanged(),
      stats: () => whole.stats(),
      recent: () => server.parts.recent(),
      failed: error => server.failed(error),
    })
  await cluster.start(options.peerUrl ?? peerUrlOf(hostname, whole.port, isTls))
  cluster.shared = sharing
  server.servers = cluster
  sharing?.begin()
  return { cluster, sharing, enter: arrival => enter(arrival, cluster, whole) }
}

function enter(arrival: Arrival, cluster: Cluster, whole: WholeServer): Route {
  const { method, body, upgrade } = arrival.head
  if (method !== 'GET' || body !== 'none') return refusal('BAD_REQUEST')
  return upgrade === RAW_PROTOCOL ? rawRoute(arrival, cluster, whole) : peerRoute(arrival, cluster, whole)
}
