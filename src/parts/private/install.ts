// Private services as a part of a server: they have a name and no public address. A client with a token for that is connected to them.
//
//   app beside the other end ── client ── dial ──▶ server ── raw visitor ──▶ client of the service ── service
//                                      ◀── stream ──        ── stream ──▶

import type { ErrorCode } from '../../errors.ts'
import type { Install, Part, PartServer, WholeServer } from '../../server/contracts/part.ts'
import type { RawWish } from '../../server/contracts/raw-visit.ts'
import type { Claiming } from '../../server/tunnels/claims.ts'
import { refusalOf } from '../../server/tunnels/claims.ts'
import type { Member } from '../../server/tunnels/member.ts'
import { Tunnel, type TunnelBook } from '../../server/tunnels/tunnel.ts'
import type { Register } from '../../wire/control.ts'
import { StreamSocket } from './stream-socket.ts'

export const installPrivate: Install = server => {
  let whole: WholeServer | undefined
  return {
    name: 'private',
    async start(started) {
      whole = started
    },
    connecting: {
      claim: (wish, claiming) => (wish.kind === 'connect' ? claim(wish, claiming, server) : undefined),
      dial(member, count) {
        if (whole === undefined) return
        const wish = wishFor(member.tunnel.name, server)
        for (let left = count; left > 0; left--) dial(member, wish, whole)
      },
    },
  } satisfies Part
}

/** No tunnel of this kind is in the book of the server: nobody finds it by its name, and it ends with its client. */
function claim(
  wish: Register,
  claiming: Claiming,
  server: PartServer,
): Member | ErrorCode | Promise<Member | ErrorCode> {
  const { name = '' } = wish
  const { tunnels } = server
  const refusal = refusalOf(wish, claiming.rule, server.settings)
  if (refusal !== undefined) return refusal
  const book: TunnelBook = {
    get limits() {
      return { ...server.limits, leaseMs: 0 }
    },
    deadlines: tunnels.deadlines,
    guards: tunnels.guards,
    lanes: tunnels.lanes,
    hostNames: tunnels.hostNames,
    remove() {},
  }
  const join = () => new Tunnel(book, 'private', name, 0, claiming, true).join(claiming.holder)
  if (wishFor(name, server).find() !== undefined) return join()
  const places = server.servers?.find(name) ?? []
  if (!(places instanceof Promise)) return places.length > 0 ? join() : 'SERVICE_NOT_FOUND'
  return places.then(
    found => (found.length > 0 ? join() : 'SERVICE_NOT_FOUND'),
    () => 'CLUSTER_UNREACHABLE' as const,
  )
}

/** Private services alone have such names. */
function wishFor(name: string, { tunnels }: PartServer): RawWish {
  const find = () => {
    const tunnel = tunnels.find(name)
    return tunnel?.kind === 'private' ? tunnel : undefined
  }
  return { kind: 'private', wanted: name, name, find }
}

/** Opens a stream to the client that connects, and treats what comes on it as the connection of a raw visitor. */
function dial(member: Member, wish: RawWish, whole: WholeServer): void {
  const { client, upstream } = member
  if (client === undefined || upstream === undefined) return
  member.began()
  const isOpen = StreamSocket.open(
    handler => upstream.open(handler, client.remoteAddress, undefined),
    client.remoteAddress,
    socket => whole.raw.accept(socket, wish),
    () => member.finished(),
  )
  if (!isOpen) member.finished()
}
