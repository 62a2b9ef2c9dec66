// What every command gets to run with.

import type { Output } from './output.ts'

export interface Run {
  readonly output: Output
  /** Aborted when the user wants it to end. */
  readonly stop: AbortSignal
  /** From now on SIGHUP calls this, and ends nothing. */
  readonly onHangup: (hungUp: () => void) => void
  readonly environment: Readonly<Record<string, string | undefined>>
  /** Writes to the terminal itself, past the output; undefined when nobody sits there. */
  readonly terminal: ((sequence: string) => void) | undefined
}
