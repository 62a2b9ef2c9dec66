// Flags about what is printed, which every command that runs has.

import { Option } from 'commander'
import type { OutputWish } from '../output.ts'
import type { Flags } from '../settings/flags.ts'
import { under } from './help.ts'
import { wholeNumber } from './values.ts'

export const QUIET_OPTION = 'do not print requests, connections and clients'

export const LOG_RATE_OPTION =
  'maximum lines per second, 0 for no limit; the rest is counted (default: 30 in a terminal, 200 in a pipe, 0 with --json)'

export const JSON_OPTION = 'print one JSON event per line'

export const jsonOption = (): Option => new Option('--json', JSON_OPTION).env('TUNNEL_JSON')

export const printingOptions = (): Option[] =>
  under('Output:', [
    jsonOption(),
    new Option('--log-rate <lines>', LOG_RATE_OPTION).env('TUNNEL_LOG_RATE'),
    new Option('-q, --quiet', QUIET_OPTION).env('TUNNEL_QUIET'),
  ])

export function outputWish(flags: Flags): OutputWish {
  return { isJson: flags.isOn('json'), logRate: wholeNumber(flags, 'logRate'), isQuiet: flags.isOn('quiet') }
}
