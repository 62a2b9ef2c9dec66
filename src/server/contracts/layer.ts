// Contract between the server and what is around its routing: a request for a tunnel passes the layers of that tunnel, each of
// which sends it on, answers it, or makes it wait.
//
//   arrival ── serving ──▶ layer ▶ layer ▶ … ▶ member of the tunnel ──▶ Route ──▶ visit

import type { RequestHead } from '../../http/head.ts'
import type { TunnelKind } from '../../wire/tunnel-kind.ts'
import type { Arrival, Route } from '../front.ts'

/** Says where a request goes. */
export type Router = (request: TunnelRequest) => Route

/**
 * Stands in front of `next` for all requests to one tunnel. Called once for the tunnel, and again when anything has changed that its
 * routes depend on (`routesChanged`, a reload): a layer keeps outside of it what is to outlive that. A layer that has nothing to do
 * for this tunnel returns `next` itself, and costs its requests nothing.
 */
export type Layer = (next: Router, tunnel: LayeredTunnel) => Router

/** What layers may know of a tunnel. */
export interface LayeredTunnel {
  readonly kind: TunnelKind
  readonly name: string
  /** The same for all tunnels of one token, or address. */
  readonly owner: string
  /** Its layers are made anew, and lanes to it end. */
  routesChanged(): void
}

/** A request that is for a tunnel. The same object to its end, also when it is routed once more. */
export interface TunnelRequest {
  readonly arrival: Arrival
  readonly head: RequestHead
  /** Of the visitor, also behind trusted proxies. */
  readonly address: string
  /** Another server, or the grant of a lane, has let it in: a layer that could refuse it lets it pass. */
  readonly isAdmitted: boolean
  /** Where it goes when every layer has let it pass. For the last router alone. */
  arrived(): Route
}
