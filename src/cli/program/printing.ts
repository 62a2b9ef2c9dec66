// Flags about what is printed, which every command that runs has.

import { Option } from 'commander'
import type { OutputWish } from '../output.ts'
import type { Flags } from '../settings/flags.ts'
import { wholeNumber } from './values.ts'

export const QUIET_OPTION = 'no lines for requests, connections and clients'

export const LOG_RATE_OPTION =
  'lines a second, 0 for all; the rest is counted (default: 30 on a terminal, 200 in a pipe, all with --json)'

export const quietOption = (): Option => new Option('-q, --quiet', QUIET_OPTION).env('TUNNEL_QUIET')

export const logRateOption = (): Option =>
  new Option('--log-rate <lines>', LOG_RATE_OPTION).env('TUNNEL_LOG_RATE')

export const jsonOption = (): Option => new Option('--json', 'print one JSON event a line').env('TUNNEL_JSON')

export function outputWish(flags: Flags): OutputWish {
  return { isJson: flags.isOn('json'), logRate: wholeNumber(flags, 'logRate'), isQuiet: flags.isOn('quiet') }
}
