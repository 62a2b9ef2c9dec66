// Private services as a part of a server: tunnels with a name and without a public address. A client with a token for
// such a service is connected to it.
//
//   program ── client ── dial ──▶ server ── raw visitor ──▶ client ── service
//                     ◀── stream ──      ── stream ──▶

import { type ErrorCode, TunnelError } from '../../errors.ts'
import type { Install, Part, PartServer, WholeServer } from '../../server/contracts/part.ts'
import type { RawWish } from '../../server/contracts/raw-visit.ts'
import type { QuotaOwner } from '../../server/limits/quotas.ts'
import type { Rule } from '../../server/settings/policy.ts'
import { refusalOf } from '../../server/tunnels/claims.ts'
import type { Member } from '../../server/tunnels/member.ts'
import { Tunnel, type TunnelRegistry } from '../../server/tunnels/tunnel.ts'
import { labelOf, refusalOfName } from '../../server/tunnels/tunnels.ts'
import { Shares } from '../../shares.ts'
import type { SocketHandler } from '../../socket.ts'
import { StreamSocket } from './stream-socket.ts'

export const installPrivate: Install = server => {
  let whole: WholeServer | undefined
  /** The open connections to each service, by their owners. */
  const shares = new Map<string, Shares>()
  /** Opens a stream to the client, and treats it as the connection of a raw visitor. */
  const dial = (member: Member): void => {
    const { client, upstream, tunnel, holder } = member
    if (whole === undefined || client === undefined || upstream === undefined) return
    const { raw } = whole
    const { name } = tunnel
    const share = shares.get(name) ?? new Shares()
    shares.set(name, share)
    const hasRoom = share.take(holder.key, '', 1, server.limits.maxStreams)
    const over = () => {
      member.finished()
      if (hasRoom) share.give(holder.key, '', 1)
      if (share.taken === 0) shares.delete(name)
    }
    member.began()
    const isOpen = StreamSocket.open(
      handler => upstream.open(handler, client.remoteAddress, undefined),
      client.remoteAddress,
      socket => {
        if (hasRoom) return raw.accept(socket, wishFor(name, server))
        socket.terminate('TUNNEL_BUSY')
        return REFUSED
      },
      over,
    )
    if (!isOpen) over()
  }
  return {
    name: 'private',
    async start(started) {
      whole = started
    },
    connecting: {
      claim: (name, rule, holder) => claim(name, rule, holder, server),
      refusalText,
      dial(member, count) {
        for (let left = count; left > 0; left--) dial(member)
      },
    },
  } satisfies Part
}

/** Makes a tunnel that is not among those of the server: its name refers to the service, and it ends with its client. */
function claim(
  name: string,
  rule: Rule,
  holder: QuotaOwner,
  server: PartServer,
): Member | ErrorCode | Promise<Member | ErrorCode> {
  const refusal =
    refusalOfName(name, 'private') ?? refusalOf({ kind: 'connect', name }, rule, server.settings)
  if (refusal !== undefined) return refusal
  const { tunnels } = server
  const book: TunnelRegistry = {
    get limits() {
      return { ...server.limits, leaseMs: 0 }
    },
    deadlines: tunnels.deadlines,
    guards: tunnels.guards,
    lanes: tunnels.lanes,
    hostNames: tunnels.hostNames,
    get isDraining() {
      return tunnels.isDraining
    },
    remove() {},
  }
  const join = () => new Tunnel(book, 'private', name, 0, { holder }, true).join(holder)
  if (wishFor(name, server).find() !== undefined) return join()
  const places = server.servers?.find(name) ?? []
  if (!(places instanceof Promise)) return places.length > 0 ? join() : 'TUNNEL_NOT_FOUND'
  return places.then(
    found => (found.length > 0 ? join() : 'TUNNEL_NOT_FOUND'),
    () => 'CLUSTER_UNREACHABLE' as const,
  )
}

/** Returns the text of a refusal: what happened, and the next step. */
function refusalText(code: ErrorCode, name: string, { id }: Rule): string | undefined {
  const text = (detail: string, action: string) => new TunnelError(code, detail, { action }).message
  const service = labelOf(name)
  if (code === 'TUNNEL_NOT_FOUND')
    return text(
      `No client offers the private service "${name.replace(/^tcp:/, '')}" now.`,
      `Start the other client with --private ${service}, or check the name.`,
    )
  if (code !== 'NOT_ALLOWED') return undefined
  return id === undefined
    ? text(
        'Private services need a token, and the server has none: it cannot check who connects.',
        'Ask the operator to give the server tokens.',
      )
    : text(
        `The token does not list the private service "${service}" under connect.`,
        `Use another token, or ask the operator for one that lists it: localtunnels token add <name> --connect ${service}`,
      )
}

/** Returns a raw visitor's wish for a private service. */
function wishFor(name: string, { tunnels }: PartServer): RawWish {
  const find = () => {
    const tunnel = tunnels.find(name)
    return tunnel?.kind === 'private' ? tunnel : undefined
  }
  return { kind: 'private', wanted: name, name, find }
}

/** Handles a connection that is closed already. */
const REFUSED: SocketHandler = { received() {}, drained() {}, ended() {}, closed() {} }
