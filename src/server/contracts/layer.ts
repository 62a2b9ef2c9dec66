// Contract between the server and what is around its routing: a request for a tunnel passes the layers of that tunnel, each of
// which sends it on, answers it, or makes it wait.
//
//   arrival ── serving ──▶ layer ▶ layer ▶ … ▶ member of the tunnel ──▶ Route ──▶ visit

import type { ErrorCode } from '../../errors.ts'
import type { RequestHead } from '../../http/head.ts'
import type { Guard, Middleware, Outcome, Reading, Refusal } from '../../plugin.ts'
import type { Account } from '../../unsent.ts'
import type { Affinity, PoolAnswer } from '../../wire/control.ts'
import type { GrantedKind } from '../../wire/tunnel-kind.ts'
import type { Arrival, Route } from './front.ts'
import type { OwnGuard } from './guarding.ts'
import type { Upstream } from './upstream.ts'

/** Says where a request goes. */
export type Router = (request: TunnelRequest) => Route

/**
 * Stands in front of `next` for all requests to one tunnel. Called once for the tunnel, and again when anything has changed that its
 * routes depend on (`routesChanged`, a reload): a layer keeps outside of it what is to outlive that. A layer that has nothing to do
 * for this tunnel returns `next` itself, and costs its requests nothing.
 *
 * What it keeps of one request is in the closure that it gives to `TunnelRequest.follow`.
 */
export type Layer = (next: Router, tunnel: LayeredTunnel) => Router

/** Stands in front of `next` for all requests for names that no tunnel here has. Made once. */
export type NameLayer = (next: NameRouter) => NameRouter

/** Says where a request goes whose tunnel is not known. */
export type NameRouter = (named: NamedRequest) => Route

/** A request that asks for a name. */
export interface NamedRequest {
  readonly request: SearchedRequest
  /** A label, or a whole host. */
  readonly name: string
  /** Where it goes when no other server has the name. For the last router alone. */
  here(): Route
  /** Where it goes from the beginning, once that may have changed. */
  again(): Route
  /** Where it goes when no client of the name can be reached; `undefined`: nothing keeps it. */
  kept(): Route | undefined
}

/** The same object from its arrival to its end, also when it is routed once more. */
export interface SearchedRequest {
  readonly arrival: Arrival
  readonly head: RequestHead
  /** Another server has sent it here in vain: it is answered so that that server looks for the name once more. */
  moved(): Route
  /** It is sent once more. */
  retried(): void
}

/** What layers may know of a tunnel. */
export interface LayeredTunnel {
  readonly kind: GrantedKind
  readonly name: string
  /** The same for all tunnels of one token, or address. */
  readonly owner: string
  /** Whose it is; of a pool, of the first that is there. The same object for all tunnels of one token, or address. */
  readonly holder:
    | { readonly rule: { readonly id?: string | undefined; readonly bandwidth?: number | undefined } }
    | undefined
  /** Where visitors go that need no choice; `undefined` while every client is away. */
  readonly upstream: Upstream | undefined
  /** Who may visit, as its client asked for; `undefined`: all visitors may. */
  readonly guard: OwnGuard | undefined
  /** What the rule of its token allows visitors. */
  readonly wall: Guard | undefined
  /** Each of its visitors has to be asked about. */
  readonly isGuarded: boolean
  /** How its clients share it; `undefined`: it is one client's. */
  readonly pool: { readonly affinity: Affinity; readonly answer: PoolAnswer } | undefined
  /** Those of its clients that can take requests now. */
  readonly able: readonly TunnelMember[]
  /** Its layers are made anew, and lanes to it end. */
  routesChanged(): void
}

/** A client's hold on a tunnel. */
export interface TunnelMember {
  readonly upstream: Upstream | undefined
  /** What its client calls itself. */
  readonly label: string | undefined
}

/** A request that is for a tunnel. The same object to its end, also when it is routed once more. */
export interface TunnelRequest {
  readonly arrival: Arrival
  readonly head: RequestHead
  /** Of the visitor, also behind trusted proxies. */
  readonly address: string
  /** The visitor came by https, also when that ends in front of this server. */
  readonly isSecure: boolean
  /** Another server, or the grant of a lane, has let it in: a layer that could refuse it lets it pass. */
  readonly isAdmitted: boolean
  /** On the clock of `performance.now()`. */
  readonly startedAt: number
  /** Wrap its exchange, inside of the server's: guards may want some for this one alone. */
  middlewares: readonly Middleware[]
  /** Learns what becomes of it. Those that follow first are called first; at `left`, last. */
  follow(follower: Follower): void
  /** It is answered here in place of the app. `failed`: makes a refusal of what cannot be said. */
  answer(answer: Refusal | Reading, failed?: (cause: unknown) => Refusal): Route
  /** Looks at its body. */
  checkBody(check: BodyCheck): void
  /** Header lines for the final answer, each with its CRLF; asked when its head goes out. */
  addAnswerLines(lines: () => Uint8Array | undefined): void
  /** Has its bytes pass a valve, opened once it begins at an upstream. `undefined`: there is to be none. */
  useValve(open: OpenValve): void
  /** What is answered is a refusal with this code. */
  refused(code: ErrorCode, reason?: string): void
  /** This client gets a copy. Returns what is called when that is over. */
  copyTo(member: TunnelMember): CopyEnd
  /** Of those that got a copy, this one answers the visitor. */
  answeredBy(member: TunnelMember): void
  /** It is on its way to clients. For a layer that does not let it arrive. */
  sent(): void
  /**
   * Where it goes when every layer has let it pass: to a client of its tunnel, perhaps once one is there. `instead`: where it goes
   * then. For the last layer alone.
   */
  arrived(instead?: () => Route): Route
}

/** `status` 0: there was no answer. */
export type CopyEnd = (status: number, responseBytes: number, code: ErrorCode | undefined) => void

/**
 * Looks at a piece of a body, framing included, before the app gets it. `bodyBytes`: how much of it came so far, without framing.
 * A code ends the request with it.
 */
export type BodyCheck = (piece: Uint8Array, bodyBytes: number) => ErrorCode | undefined

/** What becomes of a request. Nothing here may throw. */
export interface Follower {
  /** It waits for the tunnel's client. */
  held?(): void
  /** It is on its way to a client; again when it is sent once more. */
  sent?(): void
  /** The head of the final answer is about to go out. */
  answered?(status: number, code: ErrorCode | undefined): void
  /** It became a WebSocket. */
  switched?(): void
  /** It goes to another server, or another tunnel here, as it came: what the layer has done to it is undone. Nothing follows. */
  left?(): void
  /** It is over. Called once, unless it left. */
  ended?(ending: Ending): void
}

export interface Ending {
  /** What the visitor was answered; 0: nothing. */
  readonly status: number
  readonly code: ErrorCode | undefined
  /** More of why, where the code does not say it all. */
  readonly reason: string | undefined
  readonly requestBytes: number
  readonly responseBytes: number
  /** Whose app answered. */
  readonly served: ServedBy
}

/** Who served a visitor, for its books. */
export type ServedBy = Pick<Outcome, 'client' | 'token'>

/** As the members of `VisitChannel`. */
export interface ValveInput {
  pause(): void
  resume(): void
}

/** Likewise. */
export interface ValveOutput {
  /** As `Visit.write`. */
  write(bytes: Uint8Array, isScratch: boolean, start: number, end: number): boolean
}

/** What a valve stands between: the visit, and the channel to its visitor. */
export interface ValveEnds {
  readonly input: ValveInput
  readonly output: ValveOutput
  /** The upstream may write again. */
  readonly drained: () => void
}

/** Delays the bytes of a visit. While there is one, no other thread moves them. */
export interface Valve extends ValveInput, ValveOutput {
  /** So many bytes came from the visitor, and went on their way. */
  took(bytes: number): void
  /** The visitor has room again. */
  drained(): void
  /** Calls `last` once nothing waits here. */
  behind(last: () => void): void
  /** Whose bytes wait. */
  charge(account: Account | undefined): void
  /** The visit is over. */
  close(): void
}

export type OpenValve = (ends: ValveEnds) => Valve | undefined
