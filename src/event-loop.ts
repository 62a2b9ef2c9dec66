// The Scheduler of sessions on the event loop of Bun and Node.

import type { Scheduler } from './session/scheduler.ts'

export const eventLoop: Scheduler = {
  soon(task) {
    setImmediate(task)
  },
  after(ms, task) {
    const timer = setTimeout(task, ms)
    // The carrier's socket keeps a process alive for as long as there is something to keep it for.
    timer.unref()
    return () => clearTimeout(timer)
  },
  now: () => performance.now(),
}
