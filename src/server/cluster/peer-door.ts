// Where the connections of other servers come in: behind their greeting they bring requests of their visitors.

import type { RequestHead } from '../../http/head.ts'
import type { Socket } from '../../socket.ts'
import { type Arrival, type Route, refusal } from '../front.ts'
import type { HttpFront } from '../fronts/http.ts'
import { type Entrance, VisitorHop } from '../fronts/visitor-hop.ts'
import { provedRoute } from './challenge.ts'
import type { Cluster } from './cluster.ts'
import { FramedSocket } from './framed-socket.ts'
import { answerTo, FRAMED_PROTOCOL, PEER_SILENCE_MS, takeVisitor } from './peer-wire.ts'

/** What the door needs of its server. */
export interface PeerDoorHost {
  readonly cluster: Cluster | undefined
  readonly httpFront: HttpFront
  /** How connections from outside come in that speak this. */
  entranceOf(proto: Entrance['proto']): Entrance
}

/** Takes the connection of a server of the same cluster; a stranger's is refused. */
export function peerRoute(arrival: Arrival, host: PeerDoorHost): Route {
  const { head } = arrival
  const { cluster, httpFront } = host
  if (cluster === undefined || head.method !== 'GET' || head.body !== 'none') return refusal('BAD_REQUEST')
  const protocol = head.upgrade
  const isFramed = protocol === FRAMED_PROTOCOL
  const entrances = { http: host.entranceOf('http'), https: host.entranceOf('https') }
  const visitorOf = (request: RequestHead): VisitorHop | undefined => {
    const visitor = takeVisitor(request)
    if (visitor === undefined) return undefined
    return new VisitorHop(entrances[visitor.proto], visitor.address, visitor)
  }
  return provedRoute(arrival, cluster, socket => {
    socket.keepAlive?.(PEER_SILENCE_MS)
    socket.write(answerTo(protocol))
    const accept = (own: Socket) => httpFront.accept(own, { ...entrances.http, visitorOf }, undefined)
    return isFramed ? FramedSocket.over(socket, accept) : accept(socket)
  })
}
