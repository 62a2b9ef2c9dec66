// Waits for an exchange.

import { TunnelError } from '../../errors.ts'
import type { Entry } from './entry.ts'
import type { Inspector } from './inspector.ts'

export const MAX_WAIT_MS = 600_000

export interface WaitFor {
  /** Whether this is it; asked of each that has ended, once. */
  readonly takes: (entry: Entry) => boolean
  readonly timeoutMs: number
  /** Those that came behind this one are looked at, too. */
  readonly after?: number
  readonly signal?: AbortSignal
}

/** The first exchange that is taken and has ended. Rejects with `WAIT_TIMEOUT`, or `CANCELLED` by the signal and at the inspector's end. */
export function waitForExchange(
  inspector: Inspector,
  { takes, timeoutMs, after, signal }: WaitFor,
): Promise<Entry> {
  const { store } = inspector
  if (after !== undefined)
    for (const entry of store.entries())
      if (entry.id > after && entry.state !== 'open' && takes(entry)) return Promise.resolve(entry)
  return new Promise((resolve, reject) => {
    const settle = (settled: () => void) => {
      for (const stop of stops) stop()
      clearTimeout(timer)
      signal?.removeEventListener('abort', abort)
      settled()
    }
    const abort = () =>
      settle(() => reject(new TunnelError('CANCELLED', 'The wait ended before anything matched.')))
    const stops = [
      store.on('ended', entry => {
        if (takes(entry)) settle(() => resolve(entry))
      }),
      inspector.on('closed', abort),
    ]
    const timer = setTimeout(() => settle(() => reject(new TunnelError('WAIT_TIMEOUT'))), timeoutMs)
    signal?.addEventListener('abort', abort)
    if (signal?.aborted === true || inspector.isClosed) abort()
  })
}
