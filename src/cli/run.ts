// What every command gets to run with.

import type { Output } from './output.ts'

export interface Run {
  readonly output: Output
  /** How many requests a second the server or the client reports one by one; `0`: all. */
  readonly reportRate: number
  /** Aborted when the user wants it to end. */
  readonly stop: AbortSignal
  /** There is something to visit: from now on Ctrl+C is a clean end. */
  readonly served: (this: void) => void
  /** From now on SIGHUP calls this, and ends nothing. */
  readonly onHangup: (hungUp: () => void) => void
  /** From now on SIGUSR2 calls this. */
  readonly onUpgrade: (upgrade: () => void) => void
  readonly environment: Record<string, string | undefined>
  /** Writes to the terminal itself, past the output; undefined when standard output is no terminal. */
  readonly terminal: ((sequence: string) => void) | undefined
}
