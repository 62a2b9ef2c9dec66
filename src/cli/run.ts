// The environment of every command.

import type { Output } from './output.ts'

export interface Run {
  readonly output: Output
  /** The number of requests per second that the server or the client reports one by one; `0`: all. */
  readonly reportRate: number
  /** The signal that is aborted when the user wants the command to end. */
  readonly stop: AbortSignal
  /** Called when the first URL works: from now on, Ctrl+C is a clean end. */
  readonly served: (this: void) => void
  /** Makes SIGHUP call this function in place of ending the process. */
  readonly onHangup: (hungUp: () => void) => void
  /** Makes SIGUSR2 call this function. */
  readonly onUpgrade: (upgrade: () => void) => void
  readonly environment: Record<string, string | undefined>
  /** Writes directly to the terminal, past the output. `undefined` if standard output is not a terminal. */
  readonly terminal: ((sequence: string) => void) | undefined
}

/** The environment of a command that only reads and writes. */
export interface CommandIo {
  readonly environment: Readonly<Record<string, string | undefined>>
  readonly write: (text: string) => void
  /** Writes to standard error. */
  readonly log: (text: string) => void
  /** The signal that is aborted when the user wants the command to end. */
  readonly stop: AbortSignal
}
