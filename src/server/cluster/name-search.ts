// A request for a name that another server of the cluster holds: what becomes of it when that server fails it, or when no
// server that holds the name can be reached.

import type { ErrorCode } from '../../errors.ts'
import { type Holding, type Route, refusal, routedLater } from '../front.ts'
import type { Upstream } from '../upstream.ts'

/** What a request asks of the cluster that it waits for a name of; see `Cluster`. */
export interface NameWait {
  awaitName(name: string, since: number, ready: () => void, tooLate: () => void): (() => void) | undefined
  forget(name: string): void
}

/** A client moves from one server to another once; a request that meets three servers without the name is refused. */
const MAX_SERVERS_TRIED = 3

export class NameSearch {
  /** Another server has it. */
  isElsewhere = false
  #awaiting: ((code: ErrorCode) => Holding<Route>) | undefined
  #tries = 0
  /** Since when it has waited for a name, with pauses; 0: it has not. */
  #waitsSince = 0

  /** It goes to another server. `again` says where it goes when that one does not have the name, `kept` who keeps it then. */
  toServer(
    upstream: Upstream,
    name: string,
    cluster: NameWait,
    again: () => Route,
    kept: () => Upstream | undefined,
  ): Route {
    this.isElsewhere = true
    this.#awaiting = code => {
      if (code === 'CLUSTER_MOVED') cluster.forget(name)
      const instead = kept()
      if (instead === undefined) return this.awaitingName(name, cluster, again)
      this.isElsewhere = false
      return routedLater(Promise.resolve(instead), one => ({ kind: 'upstream', upstream: one }))
    }
    return { kind: 'upstream', upstream }
  }

  /** No server that holds the name can be reached just now: `again` says where it goes once one can. */
  awaitingName(name: string, cluster: NameWait, again: () => Route): Holding<Route> {
    this.#waitsSince ||= performance.now()
    return {
      kind: 'holding',
      hold: held =>
        cluster.awaitName(
          name,
          this.#waitsSince,
          () => held(again()),
          () => held(refusal('CLIENT_RECONNECTING')),
        ) ?? 'CLIENT_RECONNECTING',
    }
  }

  /** The server that had it failed it, without harm. `retried`: it is sent once more. As `Booking.awaitingServer`. */
  awaitingServer(code: ErrorCode, retried: () => void): Holding<Route> | undefined {
    const awaiting = this.#awaiting
    if (awaiting === undefined) return undefined
    if (code === 'CLUSTER_MOVED') {
      if (++this.#tries > MAX_SERVERS_TRIED) return undefined
      retried()
    }
    this.#awaiting = undefined
    return awaiting(code)
  }
}
