// The values that the main thread and the threads of lanes share, in a file of their own so that the main thread does
// not load lanes.

import type { LaneOver } from './lane.ts'

/** The maximum number of trunks in a process: one for each client with visitors in lanes. Each has a send buffer of 320 KB. */
export const MAX_TRUNKS = 64

/** The number of values of an exchange in `LaneNews`. */
export const NUMBERS_OF_EXCHANGE = 5

/** The result of a lane whose state is unknown. */
export const TORN: LaneOver = {
  sentBytes: 0,
  receivedBytes: 0,
  hasFailed: false,
  isTorn: true,
  request: undefined,
  isAsked: false,
  unsent: undefined,
}
