// Ctrl+C, SIGTERM and a closed terminal: the first asks for a clean end, the next one leaves at once.

import { deferred } from '../deferred.ts'
import { EXIT } from './exit-codes.ts'

// A runner such as bunx or npm passes on the signal that the terminal already sent to the whole process group: two
// arrive for one press. No hand presses twice in this time.
const SAME_PRESS_MS = 100

/** Aborted at the first signal. `leave` gets the exit code at a second one, and is not expected to return. */
export function stopSignal(leave: (exitCode: number) => void): AbortController {
  const stop = new AbortController()
  let stoppedAt = 0
  const onSignal = (signal: NodeJS.Signals, exitCode: number) => () => {
    if (!stop.signal.aborted) {
      stoppedAt = performance.now()
      // The reason is the signal: a command that is run gets it as well.
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

/** Sets the action for SIGHUP, which then reloads the configuration and does not end the program. */
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
