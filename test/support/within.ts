// Waiting in tests: for events, never for time. The deadline is a failure only.

const DEADLINE_MS = 20_000

export interface Deferred<Value> {
  readonly promise: Promise<Value>
  readonly resolve: (value: Value) => void
  readonly reject: (error: Error) => void
}

/** `Promise.withResolvers`, which Node 20 does not have. */
export function deferred<Value = void>(): Deferred<Value> {
  const parts: Partial<Deferred<Value>> = {}
  const promise = new Promise<Value>((resolve, reject) => Object.assign(parts, { resolve, reject }))
  // The executor above has run.
  return Object.assign(parts as Deferred<Value>, { promise })
}

/** Milliseconds that this thread has worked so far: what something takes, whatever else keeps the machine busy. */
export function workedMs(): number {
  const { user, system } = process.threadCpuUsage()
  return (user + system) / 1_000
}

/** Rejects when `promise` takes longer than any working code would. */
export async function within<Value>(
  promise: Promise<Value>,
  what: string,
  deadlineMs: number = DEADLINE_MS,
): Promise<Value> {
  const late = deferred<never>()
  const timer = setTimeout(() => late.reject(new Error(`still waiting for ${what}`)), deadlineMs)
  try {
    return await Promise.race([promise, late.promise])
  } finally {
    clearTimeout(timer)
  }
}
