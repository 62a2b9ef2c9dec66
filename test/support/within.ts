// A deadline, as a failure only: tests wait for events, never for time.

const DEADLINE_MS = 10_000

/** Rejects when `promise` takes longer than any working code would. */
export async function within<Value>(promise: Promise<Value>, what: string): Promise<Value> {
  const { promise: late, reject } = Promise.withResolvers<never>()
  const timer = setTimeout(() => reject(new Error(`still waiting for ${what}`)), DEADLINE_MS)
  try {
    return await Promise.race([promise, late])
  } finally {
    clearTimeout(timer)
  }
}
