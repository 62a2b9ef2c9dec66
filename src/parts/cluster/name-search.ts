// A request for a name that no tunnel here has: to the server that holds it, and what becomes of it when that server fails it, or
// when no server that holds the name can be reached.

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

/** A client moves from one server to another once; a request that meets three servers without the name is refused. */
const MAX_SERVERS_TRIED = 3

export class NameSearches {
  /** A request that is routed once more has tried servers, and waited. */
  readonly #searches = new WeakMap<SearchedRequest, NameSearch>()

  /** Routes a request to the server that has the name. `next`: no other server has it. `next`: no other server does. */
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
  /** The time since when it waits for a name, with pauses; 0: it does not. */
  #waitsSince = 0

  constructor(request: SearchedRequest) {
    this.#request = request
  }

  route(named: NamedRequest, servers: SearchedServers, next: NameRouter): Route {
    // The request came from a server that took this one for the owner.
    if (this.#request.arrival.from?.moved !== undefined) return named.kept() ?? this.#request.moved()
    const routeTo = (nodes: readonly Node[]): Route => {
      const upstream = servers.upstreamTo(nodes)
      if (upstream !== undefined) return this.#toServer(upstream, named, servers)
      const own = named.kept()
      if (nodes.length > 0 || servers.isComing(named.name)) return own ?? this.#awaiting(named, servers)
      if (own === undefined) return next(named)
      // One server keeps what comes for a name: so it has them in their order, and knows what it has.
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

  /** The server that holds the name does the rest: guards, counts and reports are its own. */
  #toServer(upstream: Upstream, named: NamedRequest, servers: SearchedServers): Route {
    // That server makes the id.
    this.#request.head.requestId = ''
    const instead = (code: ErrorCode) => this.#instead(code, named, servers)
    return { kind: 'upstream', upstream, isElsewhere: true, instead }
  }

  /**
   * The server that had it failed it, without harm: it waits for another, or for that one, as long as requests wait for a client.
   * `undefined`: too many servers did not have the name.
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

  /** No server that holds the name can be reached just now: it is routed once more when one can. */
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
