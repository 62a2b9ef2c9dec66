// Contract between the lanes of a server (lanes/) and the rest of it: what is lent to one, and on what grant.

import type { Lane, LaneEnd, LaneExchange, LaneTerms } from '../../accelerator.ts'
import type { Socket } from '../../socket.ts'
import type { Exchange, Rewrite, Visit } from './upstream.ts'

/** A way to the origin that one visitor has to itself, until it releases it. */
export interface Reserved {
  /** The values for the origin in place of the visitor's Host and Origin. */
  readonly rewrite: Rewrite | undefined
  /** Whether it can take an exchange, now or after the open one. */
  readonly isOpen: boolean
  /** Whether it can be lent to a lane: it is idle, and on no link. */
  readonly isLendable: boolean
  /** Starts an exchange on it, as `Upstream.begin`. Behind a lane: continues the one that the lane started. */
  begin(visit: Visit): Exchange
  /** Lends it to a lane for the connection, in a moment, if that is possible then. */
  lend(visitor: Socket, terms: LaneTerms, events: LaneEvents): void
  /** Returns the stream to the pool; a lane on it ends. */
  release(): void
}

export interface LaneEvents {
  /** Whether nothing has arrived that the lane would miss. */
  isUndisturbed(): boolean
  began(lane: Lane): void
  /** Called at the end of each exchange that is reported one by one. */
  exchanged(exchange: LaneExchange): void
  logged(lines: Uint8Array, count: number): void
  /** Called once, later, when the lane is over. `undefined` if it never started. Called once, later. */
  ended(end: LaneEnd | undefined): void
}
