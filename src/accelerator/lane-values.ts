// Values that the main thread and the threads of lanes need: apart from the lanes, so that the main thread does not load those.

import type { LaneOver } from './lane.ts'

/** Trunks at once in a process: one for each client whose visitors are in lanes. Each has 320 KB to send from. */
export const MAX_TRUNKS = 64

/** The number of values of an exchange in `LaneNews`. */
export const NUMBERS_OF_EXCHANGE = 5

/** The end of a lane of which nothing is known. */
export const TORN: LaneOver = {
  sentBytes: 0,
  receivedBytes: 0,
  hasFailed: false,
  isTorn: true,
  request: undefined,
  isAsked: false,
  unsent: undefined,
}
