// One visitor that asks the same thing again and again, and how long its answers took.

import { ask } from './ask.ts'

/** By the clock that is given. */
export interface Latencies {
  readonly count: number
  readonly p50: number
  readonly p99: number
  readonly max: number
}

const PAUSE_MS = 5
/** An answer that takes longer is a failure. */
const DEADLINE_MS = 20_000

/** Asks for as long as told, each time on a new connection; rejects when an answer is not a 200, or is not complete. */
export async function visits(
  port: number,
  host: string,
  forMs: number,
  now: () => number,
): Promise<Latencies> {
  const took: number[] = []
  const until = performance.now() + forMs
  while (performance.now() < until) {
    const began = now()
    const { status, code } = await ask(port, host, { signal: AbortSignal.timeout(DEADLINE_MS) })
    if (status !== 200) throw new Error(`${host} answered ${status} ${code}`)
    took.push(now() - began)
    await Bun.sleep(PAUSE_MS)
  }
  took.sort((one, other) => one - other)
  const at = (part: number) => took[Math.min(took.length - 1, Math.floor(took.length * part))] ?? 0
  return { count: took.length, p50: at(0.5), p99: at(0.99), max: at(1) }
}
