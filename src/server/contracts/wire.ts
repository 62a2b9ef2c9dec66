// Contract between the server and a wire for clients that agree on no WebSocket subprotocol.

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
  /** The other servers of the cluster. `undefined` if the server is alone. */
  readonly servers: Claims | undefined
  /** The combined members of all parts, as in `Part`. */
  readonly parts: {
    readonly appsOf: ((terms: AppsTerms) => StreamsApps) | undefined
    before(upstream: TunnelUpstream, wishes: Wishes | undefined): TunnelUpstream
    readonly connecting?: Connecting | undefined
  }
  /** Whether this address is a trusted proxy, so that many clients may share it. */
  isTrusted(address: string): boolean
  /** Called with an unexpected error, which closes the connection. */
  failed(error: Error): void
}

export interface ClientHost {
  readonly server: ClientServer
  /** Returns why this tunnel may not be granted, or not any longer. `undefined` if it may. */
  refusalOf(wish: Wish, rule: Rule): ErrorCode | undefined
  /** Returns the text about a refusal for the client's user: what happened, and the next step. */
  refusalText(code: ErrorCode, wish: Wish, claiming: Claiming): string
  urlOf(tunnel: Tunnel): string
  /** Called when the client got the tunnel, with its other wishes. */
  registered(
    client: ClientConnection,
    tunnel: Tunnel,
    rule: Rule,
    asked?: Pick<Register, 'inbox' | 'wishes'>,
  ): void
  refused(client: ClientConnection, wish: Pick<Register, 'kind' | 'name' | 'port'>, code: ErrorCode): void
  /** Called when the client lost the tunnel. */
  released(client: ClientConnection, tunnel: Tunnel, reason: ErrorCode | 'released'): void
  gone(client: ClientConnection): void
}
