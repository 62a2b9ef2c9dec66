// Waits for an exchange.

import { TunnelError } from '../../errors.ts'
import type { Entry } from './entry.ts'
import type { Inspector } from './inspector.ts'
import type { ExchangeStore } from './store.ts'

export const MAX_WAIT_MS = 600_000

export interface WaitFor {
  /** Returns whether this is the exchange; called once for each that has ended. */
  readonly takes: (entry: Entry) => boolean
  readonly timeoutMs: number
  /** The id of an exchange: later ones that have already ended also count. */
  readonly after?: number
  readonly signal?: AbortSignal
}

/**
 * Resolves with the first ended exchange that `takes` accepts. Rejects with `WAIT_TIMEOUT`, or `CANCELLED` by the
 * signal and at the inspector's end.
 */
export function waitForExchange(
  inspector: Inspector,
  { takes, timeoutMs, after, signal }: WaitFor,
): Promise<Entry> {
  const { store } = inspector
  return new Promise((resolve, reject) => {
    let isSettled = false
    const settle = (settled: () => void) => {
      isSettled = true
      for (const stop of stops) stop()
      clearTimeout(timer)
      signal?.removeEventListener('abort', abort)
      settled()
    }
    const abort = () =>
      settle(() => reject(new TunnelError('CANCELLED', 'The wait ended before anything matched.')))
    const look = (entry: Entry | undefined) => {
      if (entry !== undefined && takes(entry)) settle(() => resolve(entry))
    }
    /** The ids of ended exchanges that were not checked yet. Exchanges that end during the check are checked after them. */
    let behind: number[] | undefined = after === undefined ? undefined : endedBehind(store, after)
    const stops = [
      store.on('ended', entry => (behind === undefined ? look(entry) : void behind.push(entry.id))),
      inspector.on('closed', abort),
    ]
    const timer = setTimeout(() => settle(() => reject(new TunnelError('WAIT_TIMEOUT'))), timeoutMs)
    signal?.addEventListener('abort', abort)
    void (async () => {
      const slices = new Slices()
      for (const id of behind ?? []) {
        look(store.get(id))
        if (!isSettled && slices.isOver) await slices.rest()
        if (isSettled) return
      }
      behind = undefined
      // The stored text counts for an exchange that is over.
      if (signal?.aborted === true || inspector.isClosed) abort()
    })()
  })
}

function endedBehind(store: ExchangeStore, after: number): number[] {
  return [...store.entries()].flatMap(({ id, state }) => (id > after && state !== 'open' ? id : []))
}

const SLICE_MS = 4

export class Slices {
  #until = performance.now() + SLICE_MS

  get isOver(): boolean {
    return performance.now() > this.#until
  }

  /** Gives the event loop a turn before the next slice. */
  async rest(): Promise<void> {
    await new Promise(resolve => setImmediate(resolve))
    this.#until = performance.now() + SLICE_MS
  }
}
