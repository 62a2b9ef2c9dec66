// Contract: lanes at the client, where a worker thread has the origin's connection for a while. Implementation: parts/lanes/client/.

import type { StreamHandler } from '../../session/byte-stream.ts'
import type { Link } from '../../session/link.ts'
import type { Session } from '../../session/session.ts'

export interface Laning {
  forSession(session: Session, links: TrunkLinks): SessionLanes
}

/** Lanes of one session. */
export interface SessionLanes {
  /** The server asks for a link that lanes share. */
  wanted(): void
  /** Begins the lane of this number on the link with that number, for the stream of this handler. */
  begin(handler: StreamHandler | undefined, link: number, lane: number): void
}

/** Links to the server, as lanes need them. */
export interface TrunkLinks {
  /** Threads can move their bytes: they are not TLS. */
  readonly isPlain: boolean
  /** Dials a link. `false`: not now. `opened`, if it succeeds, and `done` are called later. */
  dial(opened: (link: Link) => void, done: () => void): boolean
  /** Takes the link into use. */
  add(link: Link, isTrunk: boolean): void
}
