// The HTTP/2 front of a server: takes connections on which ALPN chose `h2`. What they share with those of HTTP/1.1 is that front's.

import type { Socket } from '../../socket.ts'
import type { Seat } from '../admission.ts'
import type { HttpFront } from './http.ts'
import { Http2Connection } from './http2-connection.ts'
import type { Entrance } from './visitor-hop.ts'

/** Takes a connection, TLS taken away. */
export function acceptHttp2(
  front: HttpFront,
  socket: Socket,
  entrance: Entrance,
  seat: Seat | undefined,
): Http2Connection {
  const connection = new Http2Connection(socket, front, entrance, seat)
  front.entered(connection)
  connection.begin()
  return connection
}
