// Contract: connections to apps other than streams of a client's session.

import type { ResponseHead } from '../../http/head.ts'
import type { Session } from '../../session/session.ts'
import type { Turns } from '../../session/turns.ts'
import type { Bounds } from '../settings/bounds.ts'
import type { Clock } from './clock.ts'
import type { Visit } from './upstream.ts'

/** How requests go to another server of the cluster, unchanged. */
export interface PeerTerms {
  /** Writes the head as `writeRequestHead` does. */
  writeHead(visit: Visit): number
  /** Whether the response says that the other server no longer holds the name. */
  isMoved(answer: ResponseHead): boolean
}

/** Replaces a session: connections to HTTP/2 apps, or to another server. */
export interface StreamsApps extends Pick<Session, 'open' | 'isClosed'> {
  /** Whether WebSockets use HTTP/1.1 on streams of the session. */
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
