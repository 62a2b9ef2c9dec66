// Routes a request for a name without a tunnel here: to the server that holds the name, to another one if that fails,
// or into a wait if none can be reached.

import type { Node } from '../../directory.ts'
import type { ErrorCode } from '../../errors.ts'
import { type Holding, type Route, refusal, routedLater } from '../../server/contracts/front.ts'
import type { NamedRequest, NameRouter, SearchedRequest } from '../../server/contracts/layer.ts'
import type { Upstream } from '../../server/contracts/upstream.ts'

/** The operations of the other servers for a request; see `Cluster`. */
export interface SearchedServers {
  find(name: string): readonly Node[] | Promise<readonly Node[]> | undefined
  upstreamTo(nodes: readonly Node[]): Upstream | undefined
  isComing(name: string): boolean
  keeperOf(name: string): Promise<Upstream | undefined>
  awaitName(name: string, since: number, ready: () => void, tooLate: () => void): (() => void) | undefined
  forget(name: string): void
}

/**
 * The number of servers tried for one request. A client moves from one server to another once, so a request that
 * finds no tunnel on three is refused.
 */
const MAX_SERVERS_TRIED = 3

export class NameSearches {
  /** The searches of requests that are routed again, with the servers tried and the wait so far. */
  readonly #searches = new WeakMap<SearchedRequest, NameSearch>()

  /** Routes a request to the server that has the name. `next`: the routing if no other server has it. */
  route(named: NamedRequest, servers: SearchedServers, next: NameRouter): Route {
    const { request } = named
    const search = this.#searches.get(request) ?? new NameSearch(request)
    this.#searches.set(request, search)
    return search.route(named, servers, next)
  }
}

class NameSearch {
  readonly #request: SearchedRequest
  #tries = 0
  /** The time since when it waits for a name, with pauses; 0 if it does not. */
  #waitsSince = 0

  constructor(request: SearchedRequest) {
    this.#request = request
  }

  route(named: NamedRequest, servers: SearchedServers, next: NameRouter): Route {
    // The sending server believed that the name is here.
    if (this.#request.arrival.from?.moved !== undefined) return named.kept() ?? this.#request.moved()
    const routeTo = (nodes: readonly Node[]): Route => {
      const upstream = servers.upstreamTo(nodes)
      if (upstream !== undefined) return this.#toServer(upstream, named, servers)
      const own = named.kept()
      if (nodes.length > 0 || servers.isComing(named.name)) return own ?? this.#awaiting(named, servers)
      if (own === undefined) return next(named)
      // One server stores all webhooks of a name, so that their order and number are known.
      return routedLater(servers.keeperOf(named.name), keeper =>
        keeper === undefined ? own : this.#toServer(keeper, named, servers),
      )
    }
    const found = servers.find(named.name)
    if (found === undefined) return refusal('TUNNEL_BUSY')
    if (!(found instanceof Promise)) return routeTo(found)
    const routed = found.then(routeTo, () => named.kept() ?? refusal('CLUSTER_UNREACHABLE'))
    return routedLater(routed, route => route)
  }

  /** Sends the request to the server that holds the name, which applies guards, counts and reports. */
  #toServer(upstream: Upstream, named: NamedRequest, servers: SearchedServers): Route {
    // That server makes the request id.
    this.#request.head.requestId = ''
    const instead = (code: ErrorCode) => this.#instead(code, named, servers)
    return { kind: 'upstream', upstream, isElsewhere: true, instead }
  }

  /**
   * Finds another way after the server with the name failed without harm: waits for another server, or for the same
   * one, as long as requests wait for a client. `undefined` if too many servers did not have the name.
   */
  #instead(code: ErrorCode, named: NamedRequest, servers: SearchedServers): Holding<Route> | undefined {
    if (code === 'CLUSTER_MOVED') {
      if (++this.#tries > MAX_SERVERS_TRIED) return undefined
      this.#request.retried()
      servers.forget(named.name)
    }
    const kept = named.kept()
    return kept === undefined
      ? this.#awaiting(named, servers)
      : routedLater(Promise.resolve(kept), route => route)
  }

  /** Waits, because no server with the name can be reached now. The request is routed again when one can. */
  #awaiting(named: NamedRequest, servers: SearchedServers): Holding<Route> {
    this.#waitsSince ||= performance.now()
    return {
      kind: 'holding',
      hold: held =>
        servers.awaitName(
          named.name,
          this.#waitsSince,
          () => held(named.again()),
          () => held(refusal('CLIENT_RECONNECTING')),
        ) ?? 'CLIENT_RECONNECTING',
    }
  }
}
