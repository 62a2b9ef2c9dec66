// Waiting for the end of an attack, or of a connection.

import type { Socket } from 'node:net'

/** Resolves when the signal is aborted, or at once if it already is. */
export function aborted(signal: AbortSignal): Promise<void> {
  return new Promise(resolve => {
    if (signal.aborted) resolve()
    else signal.addEventListener('abort', () => resolve(), { once: true })
  })
}

/** Resolves when the connection is closed, or the attack is over. */
export function closed(socket: Socket, until: AbortSignal): Promise<void> {
  if (socket.destroyed) return Promise.resolve()
  return Promise.race([new Promise<void>(resolve => socket.once('close', () => resolve())), aborted(until)])
}
