// Contract between the lanes of a server (lanes/) and the rest of it: what is lent to one, and on what grant.

import type { Lane, LaneEnd, LaneExchange, LaneTerms } from '../../accelerator.ts'
import type { Socket } from '../../socket.ts'
import type { Exchange, Rewrite, Visit } from './upstream.ts'

/** A way to the origin that one visitor has to itself, until it releases it. */
export interface Reserved {
  /** What the origin gets instead of the visitor's Host and Origin. */
  readonly rewrite: Rewrite | undefined
  /** It is good for an exchange, now or after the one under way. */
  readonly isOpen: boolean
  /** It can be lent to a lane: it is idle, and on no link. */
  readonly isLendable: boolean
  /** Starts an exchange on it, as `Upstream.begin`. Behind a lane: continues the one that the lane began. */
  begin(visit: Visit): Exchange
  /** Lends it to a lane for the connection, in a moment, if that is possible then. */
  lend(visitor: Socket, terms: LaneTerms, events: LaneEvents): void
  /** It goes back to the pool; a lane on it ends. */
  release(): void
}

/** What happens to a lane that is about to begin. */
export interface LaneEvents {
  /** Nothing came meanwhile that it would miss. */
  isUndisturbed(): boolean
  began(lane: Lane): void
  /** One exchange is over; only those that are reported one by one. */
  exchanged(exchange: LaneExchange): void
  logged(lines: Uint8Array, count: number): void
  /** It is over, or never began: `undefined`. Called once, later. */
  ended(end: LaneEnd | undefined): void
}
