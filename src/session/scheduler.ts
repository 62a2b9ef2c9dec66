// Contract: the time, as a parameter, so that a session can be tested without waiting and runs on any platform.

/** Time and turns, as a session sees them. */
export interface Scheduler {
  /** Runs the task once the events that are ready now have been handled (`setImmediate`). */
  soon(task: () => void): void
  /** Runs the task after a while, without keeping the process alive. Returns the function that cancels it. */
  after(ms: number, task: () => void): () => void
  /** A monotonic clock in milliseconds. */
  now(): number
}
