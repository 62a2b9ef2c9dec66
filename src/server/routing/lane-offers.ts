// Which visitors may have a lane, and what the server itself wants of it: counts, and the reports of the tunnel's client.

import type { RequestHead } from '../../http/head.ts'
import type { ServerContext } from '../context/server-context.ts'
import type { LaneClause, LaneOffer } from '../contracts/laning.ts'
import type { Tunnel } from '../tunnels/tunnel.ts'
import { toHundredth } from './exchanges.ts'
import { type RequestHost, RoutedRequest } from './routed-request.ts'

export class LaneOffers {
  readonly #context: ServerContext
  readonly #host: RequestHost

  constructor(context: ServerContext, host: RequestHost) {
    this.#context = context
    this.#host = host
  }

  /** Offers a lane for the visitor of this request, on a connection from `address`. `undefined` if none is possible. */
  offer(head: RequestHead, address: string): LaneOffer<RoutedRequest> | undefined {
    const context = this.#context
    // A lane cannot mark a response as the last on its connection.
    if (!context.isRunning) return undefined
    const destination = context.destinationOf(head.host)
    const tunnel = destination.kind === 'tunnel' ? context.tunnels.find(destination.name) : undefined
    // Clients of a pool get no lanes. If a client does not read its reports, requests stay on the main thread, where
    // they wait for it.
    const member = tunnel?.members[0]
    if (tunnel === undefined || member?.client?.reports.isBehind) return undefined
    const served = member?.served ?? {}
    const isProxy = context.isTrusted(address)
    const clauses = context.parts.clausesFor({ tunnel, head, address, isProxy, served })
    return (
      clauses && {
        tunnel,
        clauses: [...clauses, this.#books(tunnel, head.host)],
        resume: (arrival, upstream) => {
          const request = new RoutedRequest(arrival, this.#host)
          request.resumeAt(member, tunnel, upstream)
          return request
        },
      }
    )
  }

  #books(tunnel: Tunnel, host: string): LaneClause {
    const { counters } = this.#context
    const { books } = this.#host
    const [member] = tunnel.members
    const reports = member?.client?.reports
    return {
      // `Reports` follows the rate; this only limits the reports that lanes make for nothing.
      reportRate: () => (reports?.isWatching === true ? reports.reportRate || Number.POSITIVE_INFINITY : 0),
      began: () => member?.began(),
      ended({ requests, bytesIn, bytesOut }) {
        counters.requests += requests
        counters.bytesIn += bytesIn
        counters.bytesOut += bytesOut
        member?.finished()
        books.fewer()
      },
      tally: counts => reports?.counted(counts),
      exchanged({ method, target, status, durationMs, bytes }) {
        const report = reports?.begun(tunnel, { host, method, target }) ?? 0
        reports?.finished(tunnel, report, status, toHundredth(durationMs), bytes)
        if (reports?.isBehind) tunnel.routesChanged()
      },
    }
  }
}
