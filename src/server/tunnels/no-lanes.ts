// A server without lanes: each request takes the way through the program.

import type { Laning } from '../contracts/laning.ts'

export const NO_LANES: Laning = {
  count: 0,
  recall() {},
  harvest() {},
  addedTo: served => served,
  forVisitor: () => undefined,
  forSession: () => undefined,
}
