// The context that the streams of one tunnel at one client share.

import type { ResponseHead } from '../../http/head.ts'
import type { Session } from '../../session/session.ts'
import type { Turns } from '../../session/turns.ts'
import type { Bounds } from '../settings/bounds.ts'
import type { IdleStreams } from '../upstreams/idle-streams.ts'
import type { Clock } from './clock.ts'
import type { SessionLanes } from './laning.ts'
import type { Rewrite, Visit } from './upstream.ts'

/** The terms for another server of the cluster, to which requests go unchanged. */
export interface PeerTerms {
  /** Writes the head as `forwarded.ts` does. */
  writeHead(visit: Visit): number
  /** The answer says that the other server does not hold the name any more. */
  isMoved(answer: ResponseHead): boolean
}

/** Apps of HTTP/2, or another server, in the place of a session. */
export interface StreamsApps extends Pick<Session, 'open' | 'isClosed'> {
  /** Whether WebSockets use HTTP/1.1, on streams of the session. */
  readonly sendsUpgradesApart?: boolean
}

/** The means to reach HTTP/2 apps. */
export interface AppsTerms {
  readonly session: Pick<Session, 'open' | 'isClosed'>
  readonly limits: Bounds
  readonly deadlines: Clock
  readonly turns: Turns
  readonly scheme: 'http' | 'https'
}

export interface StreamsContext {
  readonly session: Session
  /** The idle streams of all tunnels of the client. */
  readonly idle: IdleStreams
  /** The app speaks HTTP/2, or it is another server's: these are in the place of the session, and there are no lanes. */
  readonly apps?: StreamsApps | undefined
  /** The lanes of the session. `undefined` if it has none. `undefined`: none. */
  readonly lanes?: SessionLanes | undefined
  /** The tunnel's number on the session. */
  readonly tunnel: number
  readonly limits: Bounds
  readonly deadlines: Clock
  readonly turns: Turns
  /** Whether other clients also have the tunnel: a failed request may be tried there. */
  readonly isShared: boolean
  /** The values that the client wants instead of the visitor's Host and Origin. */
  readonly rewrite: Rewrite | undefined
  /** The PROXY header that each raw visitor's stream begins with. */
  readonly proxyProtocol: 1 | 2 | undefined
  /** The terms, if the session leads to another server. */
  readonly peer?: PeerTerms | undefined
  /** The tunnel was revoked: nothing more goes to it. */
  isStopped: boolean
}
