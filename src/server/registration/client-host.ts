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
import type { Connecting, Tunnel } from '../tunnels/tunnel.ts'
import type { Tunnels } from '../tunnels/tunnels.ts'
import type { LinkGate } from './links.ts'

/** What a client's connection may ask of the server. */
export interface ClientHost {
  readonly limits: Bounds
  readonly deadlines: Deadlines
  readonly turns: Turns
  readonly tunnels: Tunnels
  readonly linkGate: LinkGate
  readonly tokenGate: TokenGate
  /** As `Part.appsOf`. */
  readonly appsOf?: ((terms: AppsTerms) => StreamsApps) | undefined
  /** As `Part.connecting`. */
  readonly connecting?: Connecting | undefined
  /** `undefined`: the server is alone. */
  readonly servers: Claims | undefined
  /** Whether this is a proxy, whose address is that of all who come by it. */
  isTrusted(address: string): boolean
  /** What a token opens now that opened `rule` before the server reloaded; `undefined`: nothing. */
  ruleNow(rule: Rule): Rule | undefined
  /** Why this may not be granted, or not any longer; `undefined`: it may. */
  refusalOf(wish: Wish, rule: Rule): ErrorCode | undefined
  /** Whose a client is that has this rule and comes from this address. */
  holderOf(rule: Rule, address: string): Holder
  /** Whether one more link of it leaves enough descriptors for others. */
  hasRoomForLink(holder: Holder): boolean
  /** Takes what a client asks for, within what its token opens; or says with a code why not. */
  claim(wish: Register, claiming: Claiming): Member | ErrorCode | Promise<Member | ErrorCode>
  /** What a refusal is about, for the client to read; `undefined`: what the code means says all there is. */
  detailOf(code: ErrorCode, wish: Wish, claiming: Claiming): string | undefined
  /** The public URL of a tunnel. */
  urlOf(tunnel: Tunnel): string
  /** The client holds the tunnel now. `inbox`: what is to be kept for it while it is away. */
  registered(client: ClientConnection, tunnel: Tunnel, rule: Rule, inbox?: InboxWish): void
  /** A registration of the client was refused. */
  refused(client: ClientConnection, wish: Pick<Register, 'kind' | 'name' | 'port'>, code: ErrorCode): void
  /** It does so no longer. */
  released(client: ClientConnection, tunnel: Tunnel, reason: ErrorCode | 'released'): void
  /** The connection is closed. */
  gone(client: ClientConnection): void
  /** Something threw that should not have; the connection is closed for it. */
  failed(error: Error): void
}
