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

/** Says where a request goes. */
export type Router = (request: TunnelRequest) => Route

/**
 * Runs before `next` for all requests to one tunnel. Called once for the tunnel, and again when anything has changed that its
 * routes depend on (`routesChanged`, a reload): a layer keeps outside of it what is to outlive that. A layer that has nothing to do
 * for this tunnel returns `next` itself, and costs its requests nothing.
 *
 * Its state of one request is in the closure that it passes to `TunnelRequest.follow`.
 */
export type Layer = (next: Router, tunnel: LayeredTunnel) => Router

/** Runs before `next` for all requests for names that no tunnel here has. Made once. */
export type NameLayer = (next: NameRouter) => NameRouter

/** Says where a request goes whose tunnel is not known. */
export type NameRouter = (named: NamedRequest) => Route

export interface NamedRequest {
  readonly request: SearchedRequest
  /** A label, or a whole host. */
  readonly name: string
  /** Routes the request to this server if no other server has the name. For the last router alone. */
  here(): Route
  /** Routes the request again from the beginning, after a change. */
  again(): Route
  /** Routes the request to what stores it while no client can be reached. `undefined` if nothing does. */
  kept(): Route | undefined
}

/** The same object from its arrival to its end, also when it is routed once more. */
export interface SearchedRequest {
  readonly arrival: Arrival
  readonly head: RequestHead
  /** Refuses a request that another server sent here although the name is not here, so that it searches for the name again. */
  moved(): Route
  /** Called when the request is sent once more. */
  retried(): void
  /** Visitors get this where the request fails. */
  useErrorPage(page: OwnErrorPage): void
}

/** The differences of the response for this code; `undefined`: there are none. */
export type OwnErrorPage = (code: ErrorCode) => Partial<ErrorAnswerOptions> | undefined

export interface LayeredTunnel {
  readonly kind: GrantedKind
  readonly name: string
  /** Whether hosts below its own are also its. */
  readonly isWildcard: boolean
  /** The same for all tunnels of one token, or address. */
  readonly owner: string
  /** The owner; that of the first client, in a pool. The same object for all tunnels of one token, or address. */
  readonly holder:
    | { readonly rule: { readonly id?: string | undefined; readonly bandwidth?: number | undefined } }
    | undefined
  /** The upstream for visitors that need no choice. `undefined` while every client is away. */
  readonly upstream: Upstream | undefined
  /** The guard that its client asked for. `undefined` if all may visit. */
  readonly guard: OwnGuard | undefined
  /** The limits that the rule of its token sets for visitors. */
  readonly tokenRate: Guard | undefined
  /** Each of its visitors has to be asked about. */
  readonly isGuarded: boolean
  /** The kind of its pool. `undefined` if it belongs to one client. */
  readonly pool: { readonly affinity: Affinity; readonly response: PoolResponse } | undefined
  /** The clients that can take requests now. */
  readonly able: readonly TunnelMember[]
  /** Makes its layers again, and ends its lanes. */
  routesChanged(): void
}

/** A client's hold on a tunnel. */
export interface TunnelMember {
  readonly upstream: Upstream | undefined
  /** The name that its client gives itself. */
  readonly label: string | undefined
}

/** A request that is for a tunnel. The same object to its end, also when it is routed once more. */
export interface TunnelRequest {
  readonly arrival: Arrival
  readonly head: RequestHead
  /** The address of the visitor, also behind trusted proxies. */
  readonly address: string
  /** The visitor came with https, also when that ends in front of this server. */
  readonly isSecure: boolean
  /** Whether another server, or the grant of a lane, has admitted it: layers let it pass. */
  readonly isAdmitted: boolean
  /** The time of its beginning on the clock of `performance.now()`. */
  readonly startedAt: number
  /** The middlewares that wrap its exchange, inside of the server's: guards may want some for this request only. */
  middlewares: readonly Middleware[]
  /** Learns what becomes of it. Followers that follow first are called first; at `left`, last. */
  follow(follower: Follower): void
  /** Responds here in place of the app. `failed`: makes a refusal of what cannot be said. */
  answer(answer: Refusal | Reading, failed?: (cause: unknown) => Refusal): Route
  checkBody(check: BodyCheck): void
  /** Adds header lines to the final response, each with its CRLF; asked when its head goes out. */
  addAnswerLines(lines: () => Uint8Array | undefined): void
  /** The time for the head of the response, in milliseconds; `undefined`: `originTimeoutMs` of the limits. */
  originTimeoutMs: number | undefined
  /** Sets the page, as that of `SearchedRequest`. */
  useErrorPage(page: OwnErrorPage): void
  /** Passes its bytes through a valve, which opens when an upstream begins. `undefined`: there is to be none. */
  useValve(open: OpenValve): void
  /** Records the code of a refusal that is the response. */
  refused(code: ErrorCode, reason?: string): void
  /** Sends a copy to this client. Returns what is called when that is over. */
  copyTo(member: TunnelMember): CopyEnd
  /** Records whose response the visitor gets, of the clients that got a copy. */
  answeredBy(member: TunnelMember): void
  /** Records that it was sent to clients. For a layer that does not call `arrived`. */
  sent(): void
  /**
   * Routes the request after the last layer: to a client of its tunnel, possibly after a wait. `instead`: where it goes then.
   * For the last layer alone.
   */
  arrived(instead?: () => Route): Route
}

/** Called at the end of a copy. `status` is 0 if there was no response. */
export type CopyEnd = (status: number, responseBytes: number, code: ErrorCode | undefined) => void

/**
 * Looks at a piece of a body, framing included, before the app gets it. `bodyBytes`: how much of it came so far, without framing.
 * A code ends the request with it.
 */
export type BodyCheck = (piece: Uint8Array, bodyBytes: number) => ErrorCode | undefined

/** The events of a request for a layer. Nothing here may throw. */
export interface Follower {
  /** Called when it waits for the tunnel's client. */
  held?(): void
  /** Called when it is sent to a client, also when it is sent again. */
  sent?(): void
  /** The head of the final response is about to go out. */
  answered?(status: number, code: ErrorCode | undefined): void
  /** Called when it became a WebSocket. */
  switched?(): void
  /** Called when it goes unchanged to another server, or another tunnel here: undo what the layer has done. Nothing follows. */
  left?(): void
  /** Called at its end, once, unless `left` was called. Called once, unless it left. */
  ended?(ending: Ending): void
}

export interface Ending {
  /** The status that the visitor got; 0: none. */
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

/** The input of a valve, with members as those of `VisitChannel`. */
export interface ValveInput {
  pause(): void
  resume(): void
}

/** The output of a valve, with members as those of `VisitChannel`. */
export interface ValveOutput {
  /** Sends bytes, like `Visit.write`. */
  write(bytes: Uint8Array, start: number, end: number): boolean
}

/** The two sides of a valve: the visit, and the channel to its visitor. */
export interface ValveEnds {
  readonly input: ValveInput
  readonly output: ValveOutput
  /** The upstream may write again. */
  readonly drained: () => void
}

/** Delays the bytes of a visit. While there is one, no other thread moves them. */
export interface Valve extends ValveInput, ValveOutput {
  /** Called when `bytes` came from the visitor and were passed on. */
  took(bytes: number): void
  /** The visitor has room again. */
  drained(): void
  /** Calls `last` once nothing waits here. */
  behind(last: () => void): void
  charge(account: Account | undefined): void
  /** The visit is over. */
  close(): void
}

export type OpenValve = (ends: ValveEnds) => Valve | undefined
