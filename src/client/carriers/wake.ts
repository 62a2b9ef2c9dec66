// Notices that the machine slept: a timer of one second then fires much later.

const TICK_MS = 1_000
/** The delay in milliseconds above which a late timer means sleep rather than load. */
const JUMP_MS = 5_000

/** The system time, which advances while the machine sleeps. The monotonic clock of some systems does not. */
export interface WallClock {
  now(): number
  /** Calls `tick` every `ms`, until the returned function is called. Does not keep the process alive. */
  every(ms: number, tick: () => void): () => void
}

const WALL_CLOCK: WallClock = {
  now: () => Date.now(),
  every(ms, tick) {
    const timer = setInterval(tick, ms)
    timer.unref()
    return () => clearInterval(timer)
  },
}

/** Calls `woke` after each sleep, until the returned function is called. */
export function watchForWake(woke: () => void, clock: WallClock = WALL_CLOCK): () => void {
  let last = clock.now()
  return clock.every(TICK_MS, () => {
    const now = clock.now()
    const elapsed = now - last
    last = now
    if (elapsed > TICK_MS + JUMP_MS) woke()
  })
}
