// Waits for an exchange.

import { TunnelError } from '../../errors.ts'
import type { Entry } from './entry.ts'
import type { Filter } from './filter.ts'
import type { Inspector } from './inspector.ts'

export interface WaitFor {
  readonly filter: Filter
  readonly timeoutMs: number
  /** Those that came behind this one are looked at, too. */
  readonly after?: number
  readonly signal?: AbortSignal
}

/** The first exchange that matches and has ended. Rejects with `WAIT_TIMEOUT`, or `CANCELLED` by the signal. */
export function waitForExchange(
  inspector: Inspector,
  { filter, timeoutMs, after, signal }: WaitFor,
): Promise<Entry> {
  const { store } = inspector
  if (after !== undefined)
    for (const entry of store.entries())
      if (entry.id > after && entry.state !== 'open' && inspector.matches(filter, entry))
        return Promise.resolve(entry)
  return new Promise((resolve, reject) => {
    const settle = (settled: () => void) => {
      stop()
      clearTimeout(timer)
      signal?.removeEventListener('abort', abort)
      settled()
    }
    const stop = store.on('ended', entry => {
      if (inspector.matches(filter, entry)) settle(() => resolve(entry))
    })
    const timer = setTimeout(() => settle(() => reject(new TunnelError('WAIT_TIMEOUT'))), timeoutMs)
    const abort = () => settle(() => reject(new TunnelError('CANCELLED')))
    signal?.addEventListener('abort', abort)
    if (signal?.aborted === true) abort()
  })
}
