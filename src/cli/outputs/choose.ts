// Chooses the output of a run, and the number of requests per second that it shows one by one.

import type { CliEvent, Output, OutputWish, Sink } from '../output.ts'
import { paletteFor } from '../terminal/palette.ts'
import { BoundedOutput } from './bounded.ts'
import { QuietOutput } from './quiet.ts'

/** The number of lines per second on a terminal or in a log: more than a person reads. A program gets every event. */
const TERMINAL_RATE = 30
const LOG_RATE = 200
/** The lowest rate that a server or client is asked for, because `0` would mean all. */
const LEAST_RATE = 1

export interface ChosenOutput {
  readonly output: Output
  /** The `reportRate` of the server and the client. */
  readonly reportRate: number
  /** Whether events are printed for programs. */
  readonly isJson: boolean
  /** Prints an event without a limit, even if the output is closed. */
  last(event: CliEvent): void
}

/** Loads only the chosen output. */
export async function chooseOutput(wish: OutputWish, out: Sink, log: Sink): Promise<ChosenOutput> {
  const { isJson, isQuiet } = wish
  const now = () => new Date()
  const isTerminal = !isJson && process.stdout.isTTY && process.env.TERM !== 'dumb'
  const rate = wish.logRate ?? (isJson ? 0 : isTerminal ? TERMINAL_RATE : LOG_RATE)
  const whole = isJson
    ? new (await import('./json.ts')).JsonOutput(out, now)
    : isTerminal
      ? new (await import('./terminal.ts')).TerminalOutput(out, paletteFor(true, process.env), now)
      : new (await import('./plain.ts')).PlainOutput(
          out,
          log,
          paletteFor(process.stderr.isTTY, process.env),
          now,
        )
  const shown = isQuiet ? new QuietOutput(whole) : whole
  const output = rate === 0 ? shown : new BoundedOutput(shown, rate, isJson)
  return { output, reportRate: isQuiet ? LEAST_RATE : rate, isJson, last: event => whole.event(event) }
}
