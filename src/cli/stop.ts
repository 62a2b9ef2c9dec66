// Ctrl+C, SIGTERM and a closed terminal: the first signal asks for a clean end, the next one ends the program at once.

import { deferred } from '../deferred.ts'
import { EXIT } from './exit-codes.ts'

// A runner such as bunx or npm passes on the signal that the terminal already sent to the whole process group, so two
// arrive for one press. A user does not press twice within this time, in milliseconds.
const SAME_PRESS_MS = 100

/**
 * Returns a controller that is aborted at the first signal. `leave` gets the exit code at a second one, and should not return.
 */
export function stopSignal(leave: (exitCode: number) => void): AbortController {
  const stop = new AbortController()
  let stoppedAt = 0
  const onSignal = (signal: NodeJS.Signals, exitCode: number) => () => {
    if (!stop.signal.aborted) {
      stoppedAt = performance.now()
      // The reason is the signal, which a started command gets as well.
      stop.abort(signal)
    } else if (performance.now() - stoppedAt > SAME_PRESS_MS) {
      leave(exitCode)
    }
  }
  process.on('SIGINT', onSignal('SIGINT', EXIT.interrupted))
  process.on('SIGTERM', onSignal('SIGTERM', EXIT.terminated))
  process.on('SIGHUP', () => (hungUp === undefined ? onSignal('SIGHUP', EXIT.terminated)() : hungUp()))
  return stop
}

let hungUp: (() => void) | undefined

/** Sets the action for SIGHUP, which then reloads the configuration in place of ending the program. */
export function onHangup(handler: () => void): void {
  hungUp = handler
}

/** Sets the action for SIGUSR2. */
export function onUpgrade(handler: () => void): void {
  process.on('SIGUSR2', handler)
}

export function aborted(signal: AbortSignal): Promise<void> {
  const { promise, resolve } = deferred()
  if (signal.aborted) resolve()
  signal.addEventListener('abort', () => resolve(), { once: true })
  return promise
}
