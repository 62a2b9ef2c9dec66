// Waiting for the events of a server or client in tests.

import type { Events } from '../../src/events.ts'
import { within } from './within.ts'

/** Failure only: a busy machine needs many times what is usual. */
const DEADLINE_MS = 20_000

/** The next `event`. */
export function next<EventMap extends object, Name extends keyof EventMap>(
  source: Events<EventMap>,
  event: Name,
): Promise<EventMap[Name]> {
  const { promise, resolve } = Promise.withResolvers<EventMap[Name]>()
  source.once(event, resolve)
  return within(promise, `the event ${String(event)}`)
}

/** Waits until `condition` holds after some `event`, or holds already. */
export async function until<EventMap extends object>(
  source: Events<EventMap>,
  event: keyof EventMap,
  condition: () => boolean,
): Promise<void> {
  while (!condition()) await next(source, event)
}

/** Waits for what nothing tells: looks again after every turn of the event loop. */
export async function eventually(condition: () => boolean, what: string): Promise<void> {
  const deadline = performance.now() + DEADLINE_MS
  while (!condition()) {
    if (performance.now() > deadline) throw new Error(`waited in vain: ${what}`)
    await Bun.sleep(1)
  }
}

/** The code of what `promise` rejects with. */
export async function codeOf(promise: Promise<unknown>): Promise<string> {
  try {
    await promise
  } catch (error) {
    return error instanceof Error && 'code' in error ? String(error.code) : String(error)
  }
  return 'resolved'
}
