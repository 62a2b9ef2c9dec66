// Makes a server a member of a cluster: from then on, the others send it requests.

import type { RequestHead } from '../../http/head.ts'
import { type Arrival, type Route, refusal } from '../../server/contracts/front.ts'
import type { PartServer, WholeServer } from '../../server/contracts/part.ts'
import { VisitorHop } from '../../server/limits/visitor-hop.ts'
import type { ClusterOptions } from '../../server/settings/part-options.ts'
import type { Socket } from '../../socket.ts'
import { provedRoute } from './challenge.ts'
import { Cluster, peerUrlOf } from './cluster.ts'
import { FramedSocket } from './framed-socket.ts'
import { answerTo, FRAMED_PROTOCOL, PEER_SILENCE_MS, RAW_PROTOCOL, takeVisitor } from './peer-wire.ts'
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
  const { hostname, isTls, admin } = server.settings
  const cluster = new Cluster(options, server, whole)
  const { tables, node } = cluster
  const sharing = tables && new Sharing(node, tables, options.tokens ?? admin?.tokens, server, whole)
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

/** Takes the connection of a server of the same cluster; others are refused. */
export function peerRoute(arrival: Arrival, cluster: Cluster, whole: WholeServer): Route {
  const protocol = arrival.head.upgrade
  const isFramed = protocol === FRAMED_PROTOCOL
  const entrances = { http: whole.entranceOf('http'), https: whole.entranceOf('https') }
  const visitorOf = (request: RequestHead): VisitorHop | undefined => {
    const visitor = takeVisitor(request)
    if (visitor === undefined) return undefined
    return new VisitorHop(entrances[visitor.proto], visitor.address, visitor)
  }
  return provedRoute(arrival, cluster, socket => {
    socket.keepAlive?.(PEER_SILENCE_MS)
    socket.write(answerTo(protocol))
    const accept = (own: Socket) => whole.accept(own, { ...entrances.http, visitorOf })
    return isFramed ? FramedSocket.over(socket, accept) : accept(socket)
  })
}
