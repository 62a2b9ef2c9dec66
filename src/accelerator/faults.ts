// Reports failures of the threads that move bytes to the servers and clients of this process.

import type { Fault } from '../accelerator.ts'

/** The shortest time in milliseconds between two reports: a lasting fault would otherwise be reported for each connection. */
const THROWN_EVERY_MS = 1_000
const SHORTAGE_EVERY_MS = 60_000

const listeners = new Set<(fault: Fault) => void>()
let thrownAt = Number.NEGATIVE_INFINITY
let unreported = 0
let shortAt = Number.NEGATIVE_INFINITY

/** Calls `listener` for every fault from now on. Returns the function that stops it. */
export function watchFaults(listener: (fault: Fault) => void): () => void {
  listeners.add(listener)
  return () => listeners.delete(listener)
}

/** Reports that a thread died and will be started again. */
export function reportDeath(pace: string, pauseMs: number, cause: Error | undefined): void {
  const reason = cause === undefined ? '' : `: ${cause.message}`
  const detail = `The thread that moves ${pace} bytes died${reason}. Its connections are cut; it starts again after ${pauseMs / 1_000} s.`
  report({ kind: 'failed', detail, cause })
}

/** Reports that one connection ended because of an error: at most once a second, with the number of the others. */
export function reportThrown(cause: unknown): void {
  const now = performance.now()
  if (now - thrownAt < THROWN_EVERY_MS) {
    unreported++
    return
  }
  const others = unreported === 0 ? '' : `, and ${unreported} before it`
  thrownAt = now
  unreported = 0
  const reason = cause instanceof Error ? cause.message : String(cause)
  report({
    kind: 'failed',
    detail: `A connection was cut${others}, because a thread failed: ${reason}.`,
    cause,
  })
}

/**
 * Reports that bytes stay on the main thread, because a thread or its descriptors would use up the last ones. At most
 * once a minute.
 */
export function reportShortage(): void {
  const now = performance.now()
  if (now - shortAt < SHORTAGE_EVERY_MS) return
  shortAt = now
  report({ kind: 'scarce', detail: 'Bytes take the slower way, because hardly any descriptors are free.' })
}

function report(fault: Fault): void {
  for (const listener of [...listeners]) listener(fault)
}
