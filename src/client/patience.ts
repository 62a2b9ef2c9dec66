// How long a client waits between its tries to reach the server.

import { calculateBackoff } from '../names.ts'

/** A server that restarts is back within seconds: for half a minute, 0.5 s being the mean pause, tries follow quickly. */
const QUICK_TRIES = 60
const QUICK_BASE_MS = 250
/** So are its clients: each asks within a second, spread over all of it, and has another second to dial and to register. */
const QUICK_MAX_MS = 1_000

/** Milliseconds before try number `attempt`, counted from 1: the first goes at once. */
export function pauseBefore(
  attempt: number,
  maxBackoffMs: number,
  random: () => number = Math.random,
): number {
  if (attempt <= QUICK_TRIES) {
    return calculateBackoff(attempt, {
      baseMs: QUICK_BASE_MS,
      maxMs: Math.min(QUICK_MAX_MS, maxBackoffMs),
      random,
    })
  }
  // From here on the server is down, and the bound doubles from a second up.
  return calculateBackoff(attempt - QUICK_TRIES + 2, { maxMs: maxBackoffMs, random })
}
