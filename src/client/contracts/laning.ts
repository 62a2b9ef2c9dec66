// Contract: lanes at the client, where a worker thread has the origin's connection for a while. Implementation: parts/lanes/client/.

import type { StreamHandler } from '../../session/byte-stream.ts'
import type { Link } from '../../session/link.ts'
import type { Session } from '../../session/session.ts'

export interface Laning {
  forSession(session: Session, links: TrunkLinks): SessionLanes
}

export interface SessionLanes {
  /** The server asks for a link that lanes share. */
  wanted(): void
  begin(handler: StreamHandler | undefined, link: number, lane: number): void
}

export interface TrunkLinks {
  /** Threads can move their bytes: they are not TLS. */
  readonly isPlain: boolean
  /** Dials a link. `false`: not now. `opened`, if it succeeds, and `done` are called later. */
  dial(opened: (link: Link) => void, done: () => void): boolean
  add(link: Link, isTrunk: boolean): void
}
