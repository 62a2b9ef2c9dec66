// Notices that the machine slept: a timer that should fire every second fires much later.

const TICK_MS = 1_000
/** Late by more than this is sleep, not load. */
const JUMP_MS = 5_000

/** Calls `woke` after each sleep, until the returned function is called. */
export function watchForWake(woke: () => void): () => void {
  let last = Date.now()
  const timer = setInterval(() => {
    const now = Date.now()
    // The wall clock goes on while the machine sleeps; the monotonic one of some systems does not.
    if (now - last > TICK_MS + JUMP_MS) woke()
    last = now
  }, TICK_MS)
  timer.unref()
  return () => clearInterval(timer)
}
