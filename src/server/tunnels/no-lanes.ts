// Replaces the lanes part on a server without it: every request goes through the main thread.

import type { Laning } from '../contracts/laning.ts'

export const NO_LANES: Laning = {
  count: 0,
  recall() {},
  harvest() {},
  addedTo: served => served,
  forVisitor: () => undefined,
  forSession: () => undefined,
}
