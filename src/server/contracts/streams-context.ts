// Contract: ways to apps besides the session of a client.

import type { ResponseHead } from '../../http/head.ts'
import type { Session } from '../../session/session.ts'
import type { Turns } from '../../session/turns.ts'
import type { Bounds } from '../settings/bounds.ts'
import type { Clock } from './clock.ts'
import type { Visit } from './upstream.ts'

/** The terms for another server of the cluster, to which requests go unchanged. */
export interface PeerTerms {
  /** Writes the head as `writeRequestHead` does. */
  writeHead(visit: Visit): number
  /** The answer says that the other server does not hold the name any more. */
  isMoved(answer: ResponseHead): boolean
}

/** Apps of HTTP/2, or another server, in the place of a session. */
export interface StreamsApps extends Pick<Session, 'open' | 'isClosed'> {
  /** Whether WebSockets use HTTP/1.1, on streams of the session. */
  readonly sendsUpgradesApart?: boolean
}

export interface StreamsServer {
  readonly limits: Bounds
  readonly deadlines: Clock
  readonly turns: Turns
}

/** The means to reach HTTP/2 apps. */
export interface AppsTerms {
  readonly session: Pick<Session, 'open' | 'isClosed'>
  readonly server: StreamsServer
  readonly scheme: 'http' | 'https'
}
