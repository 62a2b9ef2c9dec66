// Contract between the public fronts and the rest of the server: a request, and where it goes.
//
//   front ── Arrival ──▶ serving ── request ──▶ visit ──▶ upstream

import type { ErrorCode } from '../../errors.ts'
import type { RequestHead } from '../../http/head.ts'
import type { AskedCertificate, Socket, SocketHandler } from '../../socket.ts'
import type { ConnectionLogins } from '../limits/connection-logins.ts'
import type { PeerNote } from './peer-note.ts'
import type { Upstream } from './upstream.ts'

/** A request whose head is complete. */
export interface Arrival {
  readonly head: RequestHead
  /** Address of the visitor's connection, without port. */
  readonly remoteAddress: string
  /** Whether the connection showed a client's certificate, and it was verified. */
  readonly isCertified: boolean
  /** The certificate request, as `Socket.asked`. Default: nothing was asked. */
  readonly asked?: AskedCertificate | undefined
  /** The note of another server, as that of `Visit`. */
  readonly from?: PeerNote | undefined
  /** The logins of the connection, as that of `Visit`. */
  readonly logins?: ConnectionLogins | undefined
  /** Whether only the control host may serve it, because the server is full. Asks again: some visitors may have left. */
  isRefused(): boolean
  /** The request fails: the visitor gets the reason, if no response has begun. */
  breakOff(code: ErrorCode): void
  /** Cuts the connection, so that the visitor does not take a part for the whole. */
  terminate(): void
}

export interface Result {
  /** The status of the response. 0 if there was none. */
  readonly answerStatus: number
  readonly responseBytes: number
  readonly requestBytes: number
  /** The reason, with the meaning of that of `Visit.fail`. */
  readonly reason?: string | undefined
}

/** A request that the server counts, for who brought it. */
export interface AcceptedRequest {
  /** The first destination of the request. */
  readonly route: Route
  /** The request was for a tunnel of another server or owner: the response is `CLUSTER_MOVED`. */
  readonly isMoved: boolean
  /** The final head of its response is about to go out. */
  answered(status: number): void
  /** The request is over; `failure` is the reason if it failed. */
  finished(result: Result, failure: ErrorCode | undefined): void
}

export interface RequestRouter {
  /** The request counts from now on, until what is returned is `finished`: it never throws. */
  accept(arrival: Arrival): AcceptedRequest
}

export type Route = Served | Refusal | Takeover | Holding<Route> | Again

export interface Served {
  readonly kind: 'upstream'
  readonly upstream: Upstream
  /** Whether the response is the server's own. Default: it is an app's. */
  readonly isOwn?: boolean
  /** Whether another server of the cluster responds. Default: this one does. */
  readonly isElsewhere?: boolean
  /** The upstream failed the request without harm: where it goes instead, now or later. `undefined`: nowhere. */
  instead?(code: ErrorCode): Route | undefined
}

/** The tunnel is another server's by now, or has another client: the request is routed once more, unchanged. */
export interface Again {
  readonly kind: 'again'
}

/** The visitor gets the page of the code. */
export interface Refusal {
  readonly kind: 'refusal'
  readonly code: ErrorCode
}

/** The connection changes hands: a control connection or a link. */
export interface Takeover {
  readonly kind: 'takeover'
  /** Responds on the socket, and takes its events. */
  takeOver(socket: Socket): SocketHandler
}

/** The outcome is known later: the tunnel's client is reconnecting, or a token is not looked at yet. */
export interface Holding<Outcome> {
  readonly kind: 'holding'
  /** Waits. Calls `held` once and later, unless the returned function is called before. A code: there is no room to wait. */
  hold(held: (outcome: Outcome) => void): (() => void) | ErrorCode
}

export function refusal(code: ErrorCode): Refusal {
  return { kind: 'refusal', code }
}

/** Applies `change` to the final destination of a request, now or when its wait is over. */
export function changed(route: Route, change: (route: Route) => Route): Route {
  if (route.kind !== 'holding') return change(route)
  return { kind: 'holding', hold: held => route.hold(outcome => held(changed(outcome, change))) }
}

/**
 * The request waits for what decides where it goes, such as a guard, and then possibly for more. A fault on the way is 500 `INTERNAL`
 * for this visitor: without a handler the rejection would end the process.
 */
export function routedLater<Outcome>(
  outcome: Promise<Outcome>,
  routeOf: (outcome: Outcome) => Route,
): Holding<Route> {
  return {
    kind: 'holding',
    hold(held) {
      let isOver = false
      let stop: (() => void) | undefined
      const go = (route: Route): void => {
        if (isOver) return
        if (route.kind !== 'holding') return held(route)
        const waiting = route.hold(go)
        if (typeof waiting === 'string') held(refusal(waiting))
        else stop = waiting
      }
      void outcome
        .then(one => (isOver ? undefined : routeOf(one)))
        .catch(() => refusal('INTERNAL'))
        .then(route => route && go(route))
      return () => {
        isOver = true
        stop?.()
      }
    },
  }
}
