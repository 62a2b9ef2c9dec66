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
  /** The request for the visitor's certificate, as `Socket.asked`. Default: none was requested. */
  readonly asked?: AskedCertificate | undefined
  /** The note of the server that sent the request, as `Visit.from`. */
  readonly from?: PeerNote | undefined
  /** The logins of the connection, as `Visit.logins`. */
  readonly logins?: ConnectionLogins | undefined
  /**
   * Whether only the control host may serve the request, because the server is full. Checks again on each call,
   * because visitors may have left.
   */
  isRefused(): boolean
  /** Fails the request: the visitor gets the page of the code if no response has begun. */
  breakOff(code: ErrorCode): void
  /** Cuts the connection, so that the visitor does not take a partial response for a complete one. */
  terminate(): void
}

export interface Result {
  /** The status of the response; 0 before there is one. */
  readonly answerStatus: number
  readonly responseBytes: number
  readonly requestBytes: number
  /** The reason of a failure, as in `Visit.fail`. */
  readonly reason?: string | undefined
}

/** A request that the server counts, as the front that brought it sees it. */
export interface AcceptedRequest {
  /** The first destination of the request. */
  readonly route: Route
  /** Whether another server or owner has the tunnel by now. The response is `CLUSTER_MOVED`. */
  readonly isMoved: boolean
  /** Called before the final head of the response is sent. */
  answered(status: number): void
  /** Called at the end of the request. `failure` is the reason if it failed. */
  finished(result: Result, failure: ErrorCode | undefined): void
}

export interface RequestRouter {
  /** Counts the request from now on, until `finished` of the result is called. Never throws. */
  accept(arrival: Arrival): AcceptedRequest
}

export type Route = Served | Refusal | Takeover | Holding<Route> | Again

export interface Served {
  readonly kind: 'upstream'
  readonly upstream: Upstream
  /** Whether the server itself responds, not an app. Default: an app. */
  readonly isOwn?: boolean
  /** Whether another server of the cluster responds. Default: this one. */
  readonly isElsewhere?: boolean
  /**
   * Called when the upstream failed and nothing of the request was processed. Returns another destination, possibly
   * after a wait. `undefined`: none.
   */
  instead?(code: ErrorCode): Route | undefined
}

/** The tunnel moved to another server or client: the request is routed once more, unchanged. */
export interface Again {
  readonly kind: 'again'
}

/** The visitor gets the error page of a code. */
export interface Refusal {
  readonly kind: 'refusal'
  readonly code: ErrorCode
}

/** The connection becomes a client's control connection or link. */
export interface Takeover {
  readonly kind: 'takeover'
  /** Sends the response to the upgrade, and handles the socket's events from then on. */
  takeOver(socket: Socket): SocketHandler
}

/** The result is known later: the tunnel's client is reconnecting, or a token is being checked. */
export interface Holding<Outcome> {
  readonly kind: 'holding'
  /**
   * Waits. Calls `held` once and never at once, unless the returned function is called first. Returns a code if too
   * many requests wait.
   */
  hold(held: (outcome: Outcome) => void): (() => void) | ErrorCode
}

export function refusal(code: ErrorCode): Refusal {
  return { kind: 'refusal', code }
}

/** Applies `change` to the destination of a request: now, or when its wait is over. */
export function changed(route: Route, change: (route: Route) => Route): Route {
  if (route.kind !== 'holding') return change(route)
  return { kind: 'holding', hold: held => route.hold(outcome => held(changed(outcome, change))) }
}

/**
 * Makes the request wait for `Outcome`, such as a guard's verdict. If that throws, this visitor gets 500 `INTERNAL`:
 * an unhandled rejection would end the process.
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
