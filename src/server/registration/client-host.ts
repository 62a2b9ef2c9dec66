// Contract: what the connection of a client may ask of the server.

import type { ErrorCode } from '../../errors.ts'
import type { Turns } from '../../session/turns.ts'
import type { InboxWish, Register } from '../../wire/control.ts'
import type { ClientConnection } from '../contracts/clients.ts'
import type { Claims } from '../contracts/servers.ts'
import type { AppsTerms, StreamsApps } from '../contracts/streams-context.ts'
import type { Deadlines } from '../limits/deadlines.ts'
import type { Holder } from '../limits/holdings.ts'
import type { TokenGate } from '../limits/token-gate.ts'
import type { Bounds } from '../settings/bounds.ts'
import type { Rule } from '../settings/policy.ts'
import type { Claiming, Wish } from '../tunnels/claims.ts'
import type { Member } from '../tunnels/member.ts'
import type { Tunnel } from '../tunnels/tunnel.ts'
import type { Tunnels } from '../tunnels/tunnels.ts'
import type { LinkGate } from './links.ts'

/** The operations of the server for a client's connection. */
export interface ClientHost {
  readonly limits: Bounds
  readonly deadlines: Deadlines
  readonly turns: Turns
  readonly tunnels: Tunnels
  readonly linkGate: LinkGate
  readonly tokenGate: TokenGate
  /** The way to HTTP/2 apps, as `Part.appsOf`. */
  readonly appsOf?: ((terms: AppsTerms) => StreamsApps) | undefined
  /** The claims. `undefined` if the server is alone. */
  readonly servers: Claims | undefined
  /** Whether this is a proxy, whose address is that of all who come by it. */
  isTrusted(address: string): boolean
  /** Returns the rule now of a token that had `rule` before the server reloaded. `undefined` if it has none. */
  ruleNow(rule: Rule): Rule | undefined
  /** Returns why this may not be granted, or not any longer. `undefined` if it may. */
  refusalOf(wish: Wish, rule: Rule): ErrorCode | undefined
  /** Returns the owner of a client with this rule and address. */
  holderOf(rule: Rule, address: string): Holder
  /** Whether one more link of it leaves enough descriptors for others. */
  hasRoomForLink(holder: Holder): boolean
  /** Takes what a client asks for, within what its token opens; or says with a code why not. */
  claim(wish: Register, claiming: Claiming): Member | ErrorCode | Promise<Member | ErrorCode>
  /** Returns the detail of a refusal, for the client to read. `undefined` if the meaning of the code is enough. */
  detailOf(code: ErrorCode, wish: Wish, claiming: Claiming): string | undefined
  /** The public URL of a tunnel. */
  urlOf(tunnel: Tunnel): string
  /** The client holds the tunnel now. `inbox`: what is to be kept for it while it is away. */
  registered(client: ClientConnection, tunnel: Tunnel, rule: Rule, inbox?: InboxWish): void
  /** A registration of the client was refused. */
  refused(client: ClientConnection, wish: Pick<Register, 'kind' | 'name' | 'port'>, code: ErrorCode): void
  /** Called when a client has released or lost a tunnel. */
  released(client: ClientConnection, tunnel: Tunnel, reason: ErrorCode | 'released'): void
  /** The connection is closed. */
  gone(client: ClientConnection): void
  /** Reports an unexpected error; the connection is closed for it. */
  failed(error: Error): void
}
