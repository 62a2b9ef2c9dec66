// Contract between the server and what is around its routing: a request for a tunnel passes the layers of that tunnel, each of
// which forwards it, responds to it, or makes it wait.
//
//   arrival ── serving ──▶ layer ▶ layer ▶ … ▶ member of the tunnel ──▶ Route ──▶ visit

import type { Account } from '../../bytes.ts'
import type { ErrorCode } from '../../errors.ts'
import type { ErrorAnswerOptions } from '../../http/error-answer.ts'
import type { RequestHead } from '../../http/head.ts'
import type { Guard, Middleware, Outcome, Reading, Refusal } from '../../plugin.ts'
import type { Affinity, PoolResponse } from '../../wire/control.ts'
import type { GrantedKind } from '../../wire/tunnel-kind.ts'
import type { Arrival, Route } from './front.ts'
import type { OwnGuard } from './guarding.ts'
import type { Upstream } from './upstream.ts'

/** A function that decides where a request goes. */
export type Router = (request: TunnelRequest) => Route

/**
 * Wraps `next`, the routing behind this layer, for all requests to one tunnel. Called once for a tunnel, and again
 * after every change that its routes depend on (`routesChanged`, a reload): state that must outlive such a change
 * belongs outside of the layer. A layer without work for this tunnel returns `next` itself, which costs nothing.
 *
 * State of a single request belongs in the closure that is passed to `TunnelRequest.follow`.
 */
export type Layer = (next: Router, tunnel: LayeredTunnel) => Router

/** Wraps `next` for all requests to names without a tunnel on this server. Called once. */
export type NameLayer = (next: NameRouter) => NameRouter

/** A function that decides where a request goes whose tunnel is not here. */
export type NameRouter = (named: NamedRequest) => Route

export interface NamedRequest {
  readonly request: SearchedRequest
  /** The requested name: a label under a domain, or a whole host. */
  readonly name: string
  /** Routes the request on this server, because no other server has the name. Only the last router calls it. */
  here(): Route
  /** Routes the request again from the beginning, after a change such as a client that connected. */
  again(): Route
  /** Routes the request to the part that stores it while no client can be reached. `undefined` if none does. */
  kept(): Route | undefined
}

/** A request whose tunnel is searched in the cluster. It stays the same object until it ends, also when it is routed again. */
export interface SearchedRequest {
  readonly arrival: Arrival
  readonly head: RequestHead
  /** Refuses a request that another server sent here by mistake: that server then searches for the name again. */
  moved(): Route
  /** Called when the request is sent once more. */
  retried(): void
  /** Sets the error page that visitors get if the request fails. */
  useErrorPage(page: OwnErrorPage): void
}

/** Returns the fields of the error response that differ for this code. `undefined` if none do. */
export type OwnErrorPage = (code: ErrorCode) => Partial<ErrorAnswerOptions> | undefined

export interface LayeredTunnel {
  readonly kind: GrantedKind
  readonly name: string
  /** Whether hosts below its own are also its. */
  readonly isWildcard: boolean
  /** The owner: the same text for all tunnels of one token, or of one address without a token. */
  readonly owner: string
  /** The quota owner; in a pool, that of the first client. All tunnels of one token or address have the same object. */
  readonly holder:
    | { readonly rule: { readonly id?: string | undefined; readonly bandwidth?: number | undefined } }
    | undefined
  /** The upstream if no choice between clients is needed. `undefined` while every client is away. */
  readonly upstream: Upstream | undefined
  /** The guard that its client asked for. `undefined` if all may visit. */
  readonly guard: OwnGuard | undefined
  /** The limits that the rule of its token sets for visitors. */
  readonly tokenRate: Guard | undefined
  /** Whether every visitor must be checked by a guard. */
  readonly isGuarded: boolean
  /** The kind of its pool. `undefined` if it belongs to one client. */
  readonly pool: { readonly affinity: Affinity; readonly response: PoolResponse } | undefined
  /** The clients that can take requests now. */
  readonly able: readonly TunnelMember[]
  /** Builds the tunnel's layers again, and ends its lanes. */
  routesChanged(): void
}

/** One client that serves a tunnel. */
export interface TunnelMember {
  readonly upstream: Upstream | undefined
  /** The name that the client chose for itself in a pool. */
  readonly label: string | undefined
}

/** A request for a tunnel. It stays the same object until it ends, also when it is routed again. */
export interface TunnelRequest {
  readonly arrival: Arrival
  readonly head: RequestHead
  /** The address of the visitor, even if trusted proxies are in front of the server. */
  readonly address: string
  /** Whether the visitor used HTTPS, even if a proxy in front of this server ended it. */
  readonly isSecure: boolean
  /** Whether another server, or the permission of a lane, admitted the request already. Layers do not check it again. */
  readonly isAdmitted: boolean
  /** The time of the beginning, on the clock of `performance.now()`. */
  readonly startedAt: number
  /** The middlewares for this request alone, run inside of the server's own. Guards add them. */
  middlewares: readonly Middleware[]
  /** Adds a follower, which gets the events of the request. The first follower is called first; for `left`, last. */
  follow(follower: Follower): void
  /** Responds here in place of the app. `failed` makes a refusal if the response cannot be sent. */
  answer(answer: Refusal | Reading, failed?: (cause: unknown) => Refusal): Route
  checkBody(check: BodyCheck): void
  /** Adds header lines to the final response, each with its CRLF. `lines` is called when its head is sent. */
  addAnswerLines(lines: () => Uint8Array | undefined): void
  /** The time limit for the head of the response, in milliseconds. `undefined`: `originTimeoutMs` of the limits. */
  originTimeoutMs: number | undefined
  /** Sets the error page, as `SearchedRequest.useErrorPage`. */
  useErrorPage(page: OwnErrorPage): void
  /**
   * Passes the bytes of the request through a valve, which `open` makes when an upstream begins. `open` returns
   * `undefined` for no valve.
   */
  useValve(open: OpenValve): void
  /** Records that the response is a refusal with this code. */
  refused(code: ErrorCode, reason?: string): void
  /** Sends a copy to this client. Returns the function to call at the end of the copy. */
  copyTo(member: TunnelMember): CopyEnd
  /** Records which of the clients that got a copy gave the response for the visitor. */
  answeredBy(member: TunnelMember): void
  /** Records that the request was sent to clients. Only for a layer that does not call `arrived`. */
  sent(): void
  /**
   * Routes the request to a client of its tunnel, possibly after a wait; with `instead`, to the destination that it
   * returns. Only the last layer calls it.
   */
  arrived(instead?: () => Route): Route
}

/** Called at the end of a copy. `status` is 0 if there was no response. */
export type CopyEnd = (status: number, responseBytes: number, code: ErrorCode | undefined) => void

/**
 * Checks a piece of a body, framing included, before the app gets it. `bodyBytes` is the size of the body so far,
 * without framing. A returned code ends the request.
 */
export type BodyCheck = (piece: Uint8Array, bodyBytes: number) => ErrorCode | undefined

/** The events of one request for a layer. None of the functions may throw. */
export interface Follower {
  /** Called when the request waits for the tunnel's client. */
  held?(): void
  /** Called when the request is sent to a client, also when it is sent again. */
  sent?(): void
  /** Called before the head of the final response is sent. */
  answered?(status: number, code: ErrorCode | undefined): void
  /** Called when the request became a WebSocket. */
  switched?(): void
  /**
   * Called when the request goes to another server or tunnel unchanged. The layer undoes what it did, and gets no more events.
   */
  left?(): void
  /** Called once at the end of the request, unless `left` was called. */
  ended?(ending: Ending): void
}

export interface Ending {
  /** The status that the visitor got; 0 if it got none. */
  readonly status: number
  readonly code: ErrorCode | undefined
  /** The details of the reason that the code does not have: what a guard says, or what was wrong with the app's response. */
  readonly reason: string | undefined
  readonly requestBytes: number
  readonly responseBytes: number
  /** The client whose app responded. */
  readonly served: ServedBy
}

export type ServedBy = Pick<Outcome, 'client' | 'token'>

/** The side of a valve that takes bytes of the visitor, as in `VisitChannel`. */
export interface ValveInput {
  pause(): void
  resume(): void
}

/** The side of a valve that takes bytes for the visitor, as in `VisitChannel`. */
export interface ValveOutput {
  /** Sends bytes, like `Visit.write`. */
  write(bytes: Uint8Array, start: number, end: number): boolean
}

/** The two neighbours of a valve: the visit, and the channel to its visitor. */
export interface ValveEnds {
  readonly input: ValveInput
  readonly output: ValveOutput
  /** Called when the upstream may write again. */
  readonly drained: () => void
}

/** Delays the bytes of a visit. While a visit has a valve, its bytes stay on the main thread. */
export interface Valve extends ValveInput, ValveOutput {
  /** Called when `bytes` of the visitor were passed on. */
  took(bytes: number): void
  /** Called when the visitor can take bytes again. */
  drained(): void
  /** Calls `last` once no bytes wait in the valve. */
  behind(last: () => void): void
  charge(account: Account | undefined): void
  /** Called when the visit is over. */
  close(): void
}

export type OpenValve = (ends: ValveEnds) => Valve | undefined
