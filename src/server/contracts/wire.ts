// Contract between the server and the connections of its clients. A wire besides that of streams is for clients that agree on no
// subprotocol.

import type { ErrorCode } from '../../errors.ts'
import type { Socket, SocketHandler } from '../../socket.ts'
import type { Register, Wishes } from '../../wire/control.ts'
import type { Quotas } from '../limits/quotas.ts'
import type { Rule } from '../settings/policy.ts'
import type { ServerSettings } from '../settings/settings.ts'
import type { Claiming, Wish } from '../tunnels/claims.ts'
import type { Connecting, Tunnel } from '../tunnels/tunnel.ts'
import type { Tunnels } from '../tunnels/tunnels.ts'
import type { ClientConnection } from './clients.ts'
import type { Claims } from './servers.ts'
import type { AppsTerms, StreamsApps, StreamsServer } from './streams-context.ts'
import type { TunnelUpstream } from './upstream.ts'

/** Makes the socket a client's connection, after the response to the upgrade. `handler` gets the events of the socket. */
export type Adopt = (
  socket: Socket,
  remoteAddress: string,
  host: ClientHost,
  rule: Rule,
) => { readonly client: ClientConnection; readonly handler: SocketHandler }

export interface ClientServer extends StreamsServer {
  readonly settings: ServerSettings
  readonly tunnels: Tunnels
  readonly quotas: Quotas
  /** The other servers. `undefined` if the server is alone. */
  readonly servers: Claims | undefined
  /** Members of `Part`. */
  readonly parts: {
    readonly appsOf: ((terms: AppsTerms) => StreamsApps) | undefined
    before(upstream: TunnelUpstream, wishes: Wishes | undefined): TunnelUpstream
    readonly connecting?: Connecting | undefined
  }
  /** Whether this is a proxy, whose address is that of all who come by it. */
  isTrusted(address: string): boolean
  /** Called with an unexpected error. The connection is closed because of it. */
  failed(error: Error): void
}

export interface ClientHost {
  readonly server: ClientServer
  /** Returns why this may not be granted, or not any longer. `undefined` if it may. */
  refusalOf(wish: Wish, rule: Rule): ErrorCode | undefined
  /** Returns what the client's user reads about a refusal: what happened, and the next step. */
  refusalText(code: ErrorCode, wish: Wish, claiming: Claiming): string
  urlOf(tunnel: Tunnel): string
  /** The client holds the tunnel now, with what it has asked for besides. */
  registered(
    client: ClientConnection,
    tunnel: Tunnel,
    rule: Rule,
    asked?: Pick<Register, 'inbox' | 'wishes'>,
  ): void
  refused(client: ClientConnection, wish: Pick<Register, 'kind' | 'name' | 'port'>, code: ErrorCode): void
  /** The client holds the tunnel no longer. */
  released(client: ClientConnection, tunnel: Tunnel, reason: ErrorCode | 'released'): void
  gone(client: ClientConnection): void
}
