// Contract between the lanes of a server (parts/lanes/) and the rest of it: the connections that a lane borrows, and
// the conditions.

import type { Lane, LaneEnd, LaneExchange, LaneTerms } from '../../accelerator.ts'
import type { Socket } from '../../socket.ts'
import type { Exchange, Rewrite, Visit } from './upstream.ts'

/** A stream to the origin that is reserved for one visitor until it is released. */
export interface Reserved {
  /** The Host and Origin that the app gets in place of the visitor's. */
  readonly rewrite: Rewrite | undefined
  /** Whether it can take an exchange now, or after the open one. */
  readonly isOpen: boolean
  /** Whether it can be lent to a lane: it is idle, and on no link. */
  readonly isLendable: boolean
  /** Starts an exchange on the stream, as `Upstream.begin`. After a lane, continues the exchange that the lane started. */
  begin(visit: Visit): Exchange
  /** Lends the stream to a lane for the visitor's connection, later in this turn, if it is still possible. */
  lend(visitor: Socket, terms: LaneTerms, events: LaneEvents): void
  /** Returns the stream to the pool and ends a lane on it. */
  release(): void
}

export interface LaneEvents {
  /** Whether no bytes arrived that the lane would not see. */
  isUndisturbed(): boolean
  began(lane: Lane): void
  /** Called at the end of each exchange that the lane reports on its own. */
  exchanged(exchange: LaneExchange): void
  logged(lines: Uint8Array, count: number): void
  /** Called once, never at once, when the lane has ended. `undefined` if it never started. */
  ended(end: LaneEnd | undefined): void
}
