// Contract between the server and the connections of its clients, whatever wire they speak.

import type { ErrorCode } from '../errors.ts'
import type { Turns } from '../session/turns.ts'
import type { Endpoint } from '../socket.ts'
import type { Register } from '../wire/control.ts'
import type { Claiming } from './claims.ts'
import type { Deadlines } from './deadlines.ts'
import type { Holder } from './holdings.ts'
import type { LinkGate } from './links.ts'
import type { Member } from './member.ts'
import type { ServerLimits } from './options.ts'
import type { Rule } from './policy.ts'
import type { TokenGate } from './token-gate.ts'
import type { Tunnel, Tunnels } from './tunnels.ts'
import type { UnfinishedMessages } from './unfinished-messages.ts'

/** How a raw visitor's connection ended. */
export interface RawEnd {
  readonly durationMs: number
  /** Bytes of the visitor that went on their way. */
  readonly bytesIn: number
  /** Bytes that the visitor was sent. */
  readonly bytesOut: number
  readonly error?: ErrorCode
}

/** What a client is told of a request. */
export interface Asked {
  /** Lower-case, without port. */
  readonly host: string
  readonly method: string
  readonly target: string
}

/** One connected client. */
export interface ClientConnection {
  readonly wire: 'streams' | 'json'
  /** Where it dials from: behind trusted proxies, as they say. */
  readonly remoteAddress: string
  /** Whose connection it is. */
  readonly holder: Holder
  /** Resolves with whether the client gave a sign of life in time. */
  checkAlive(): Promise<boolean>
  /** The server stops: tells the client, which finishes what is under way. */
  drain(): void
  /** Tells the client why, and closes. */
  close(code: ErrorCode): void
  /** The server works by other settings now: gives up what they do not allow, and tells the client what changed. */
  reloaded(): void
  /** It wants to know of each. */
  readonly isWatching: boolean
  /** It does not read what it is told. */
  readonly isBehind: boolean
  /** This was asked of the tunnel. Returns the number for `finished`; 0 when the client does not want to know, or not read. */
  begun(tunnel: Tunnel, asked: Asked): number
  /** It became a WebSocket; `id` as `begun` returned it. */
  switched(tunnel: Tunnel, id: number): void
  /** It is over: `durationMs` since it began, `bytes` of the answer; `id` as `begun` returned it. */
  finished(
    tunnel: Tunnel,
    id: number,
    status: number,
    durationMs: number,
    bytes: number,
    error?: ErrorCode,
  ): void
  /** A raw visitor of the tunnel is on its way to the origin. Returns the number for `rawEnded`, likewise. */
  rawBegan(tunnel: Tunnel, source: Endpoint): number
  /** Its connection is closed. */
  rawEnded(tunnel: Tunnel, id: number, end: RawEnd): void
}

/** What a client's connection may ask of the server. */
export interface ClientHost {
  readonly limits: ServerLimits
  readonly deadlines: Deadlines
  readonly turns: Turns
  readonly tunnels: Tunnels
  readonly linkGate: LinkGate
  readonly unfinishedMessages: UnfinishedMessages
  readonly tokenGate: TokenGate
  /** Whether this is a proxy, whose address is that of all who come by it. */
  isTrusted(address: string): boolean
  /** What a token opens now that opened `rule` before the server reloaded; `undefined`: nothing. */
  ruleNow(rule: Rule): Rule | undefined
  /** Why this may not be granted, or not any longer; `undefined`: it may. */
  refusalOf(wish: Pick<Register, 'kind' | 'name' | 'port'>, rule: Rule): ErrorCode | undefined
  /** Whose a client is that has this rule and comes from this address. */
  holderOf(rule: Rule, address: string): Holder
  /** Takes what a client asks for, within what its token opens; or says with a code why not. */
  claim(wish: Register, claiming: Claiming): Member | ErrorCode | Promise<Member | ErrorCode>
  /** What a refusal is about, for the client to read; `undefined`: what the code means says all there is. */
  detailOf(
    code: ErrorCode,
    wish: Pick<Register, 'kind' | 'name' | 'port'>,
    claiming: Claiming,
  ): string | undefined
  /** The public URL of a tunnel. */
  urlOf(tunnel: Tunnel): string
  /** The client holds the tunnel now. */
  registered(client: ClientConnection, tunnel: Tunnel): void
  /** A registration of the client was refused. */
  refused(client: ClientConnection, wish: Pick<Register, 'kind' | 'name' | 'port'>, code: ErrorCode): void
  /** It does so no longer. */
  released(client: ClientConnection, tunnel: Tunnel, reason: ErrorCode | 'released'): void
  /** The connection is closed. */
  gone(client: ClientConnection): void
  /** Something threw that should not have; the connection is closed for it. */
  failed(error: Error): void
}
