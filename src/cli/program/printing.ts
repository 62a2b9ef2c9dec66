// The flags about the output, which every command that runs has.

import type { OutputWish } from '../output.ts'
import type { Flags } from '../settings/flags.ts'
import { type Texts, wholeNumber } from './values.ts'

export const JSON_FLAG: Texts = { '--json': 'print one JSON event per line' }

export const PRINTING_FLAGS: Texts = {
  ...JSON_FLAG,
  '--log-rate <lines>':
    'maximum lines per second, 0 for no limit; the rest is counted (default: 30 in a terminal, 200 in a pipe, 0 with --json)',
  '-q, --quiet': 'do not print requests, connections and clients',
}

export function outputWish(flags: Flags): OutputWish {
  return { isJson: flags.isOn('json'), logRate: wholeNumber(flags, 'logRate'), isQuiet: flags.isOn('quiet') }
}
