// The Scheduler of sessions, on the event loop of Bun and Node.

import type { Scheduler } from './session/scheduler.ts'

export const eventLoop: Scheduler = {
  soon(task) {
    setImmediate(task)
  },
  after(ms, task) {
    const timer = setTimeout(task, ms)
    // Only the carrier's socket keeps a process alive.
    timer.unref()
    return () => clearTimeout(timer)
  },
  now: () => performance.now(),
}
