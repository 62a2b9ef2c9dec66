// Takes the connections of other servers, which carry requests of their visitors after a greeting.

import type { RequestHead } from '../../http/head.ts'
import type { Arrival, Route } from '../../server/contracts/front.ts'
import type { WholeServer } from '../../server/contracts/part.ts'
import { VisitorHop } from '../../server/limits/visitor-hop.ts'
import type { Socket } from '../../socket.ts'
import { provedRoute } from './challenge.ts'
import type { Cluster } from './cluster.ts'
import { FramedSocket } from './framed-socket.ts'
import { answerTo, FRAMED_PROTOCOL, PEER_SILENCE_MS, takeVisitor } from './peer-wire.ts'

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
