// Contract: the time of day and timers, as a parameter, so that tests need not wait for days.

export interface Clock {
  /** Returns milliseconds since 1970, because certificates use calendar time. */
  now(): number
  /** Runs the task after a while, without keeping the process alive. Returns the function that cancels it. */
  after(ms: number, task: () => void): () => void
}

/** The longest time of a timer in JavaScript; with a longer one it would fire at once. */
const MAX_TIMER_MS = 2_147_483_647

export const systemClock: Clock = {
  now: () => Date.now(),
  after(ms, task) {
    const timer = setTimeout(task, Math.min(Math.max(ms, 0), MAX_TIMER_MS))
    timer.unref()
    return () => clearTimeout(timer)
  },
}

/** Resolves after a while. Rejects with the reason of `signal` if that aborts first. */
export function pause(clock: Clock, ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) return reject(signal.reason)
    const abort = () => {
      cancel()
      reject(signal.reason)
    }
    const cancel = clock.after(ms, () => {
      signal.removeEventListener('abort', abort)
      resolve()
    })
    signal.addEventListener('abort', abort, { once: true })
  })
}
