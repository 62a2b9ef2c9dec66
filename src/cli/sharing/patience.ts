// Retries the first connection until the server is there, and handles the end of the last one.

import { pauseBefore } from '../../client/carriers/tries.ts'
import { deferred } from '../../deferred.ts'
import { type ErrorCode, TunnelError } from '../../errors.ts'
import type { ClientEnd } from '../ends.ts'
import type { Output } from '../output.ts'

/** The longest pause in milliseconds, as `maxBackoffMs` of the client. */
export const MAX_PAUSE_MS = 5_000

/** The codes of failures that end when a server starts, or the network works again. */
const PASSING: ReadonlySet<ErrorCode> = new Set([
  'SERVER_UNREACHABLE',
  'SERVER_DRAINING',
  'CARRIER_LOST',
  'CLUSTER_UNREACHABLE',
])

export function passes(error: unknown): error is TunnelError {
  return error instanceof TunnelError && PASSING.has(error.code)
}

/** Resolves when `connect` does, or when the command must stop. Rejects with an error that is not temporary. */
export async function connectPatiently(
  connect: () => Promise<void>,
  { output, stop }: { readonly output: Output; readonly stop: AbortSignal },
): Promise<void> {
  for (let attempt = 1; !stop.aborted; ) {
    try {
      return await connect()
    } catch (error) {
      if (stop.aborted) return
      if (!passes(error)) throw error
      output.event({ type: 'error', code: error.code, message: error.message })
      attempt++
      const delayMs = pauseBefore(attempt, MAX_PAUSE_MS)
      output.event({ type: 'reconnecting', attempt, delayMs })
      await pauseUntil(stop, delayMs)
    }
  }
}

/**
 * Calls `ended` when the client has closed, with the error if there is one. With `reconnect: false`, a lost
 * connection is `DISCONNECTED`.
 */
export function onEnd(client: ClientEnd, ended: (error: Error | undefined) => void): void {
  let lost: Error | undefined
  client.on('disconnected', ({ error }) => {
    lost = error
  })
  client.on('close', ({ error }) => {
    const isLost = error !== undefined && error === lost
    ended(isLost ? new TunnelError('DISCONNECTED', undefined, { cause: error }) : error)
  })
}

/** Waits and keeps the process alive, which nothing else does at this time. */
export async function pauseUntil(stop: AbortSignal, ms: number): Promise<void> {
  const { promise, resolve } = deferred()
  const timer = setTimeout(resolve, ms)
  const end = () => resolve()
  stop.addEventListener('abort', end, { once: true })
  await promise
  stop.removeEventListener('abort', end)
  clearTimeout(timer)
}
