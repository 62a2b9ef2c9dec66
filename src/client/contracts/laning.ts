// Contract: lanes at the client, where a worker thread borrows the connection to the origin. Implementation: parts/lanes/client/.

import type { StreamHandler } from '../../session/byte-stream.ts'
import type { Link } from '../../session/link.ts'
import type { Session } from '../../session/session.ts'

export interface Laning {
  forSession(session: Session, links: TrunkLinks): SessionLanes
}

export interface SessionLanes {
  /** Called when the server asks for a link that lanes share. */
  wanted(): void
  begin(handler: StreamHandler | undefined, link: number, lane: number): void
}

export interface TrunkLinks {
  /** Whether threads can move the bytes of connections to the app, which they cannot with TLS. */
  readonly isPlain: boolean
  /** Dials a link. Returns `false` if it does not dial now. `opened`, if the dial succeeds, and then `done` are called later. */
  dial(opened: (link: Link) => void, done: () => void): boolean
  add(link: Link, isTrunk: boolean): void
}
