// Times of options.

import { TunnelError } from '../errors.ts'

/** What a timer can wait; more would fire at once. */
const MAX_TIMER_MS = 2_147_483_647

/** Throws `OPTION_INVALID` for what no timer can wait. */
export function positive(name: string, value: number): number {
  if (value > 0 && value <= MAX_TIMER_MS) return value
  throw new TunnelError('OPTION_INVALID', `${name} must be 1 to ${MAX_TIMER_MS} milliseconds, not ${value}.`)
}
