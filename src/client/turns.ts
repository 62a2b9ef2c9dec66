// The turns that all clients of this process share: they have one event loop.

import { eventLoop } from '../event-loop.ts'
import { Turns } from '../session/turns.ts'

export const turns: Turns = new Turns(eventLoop, error => {
  // A fault of this program. It is reported as one that is thrown anywhere else.
  queueMicrotask(() => {
    throw error
  })
})
