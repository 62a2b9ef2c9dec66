// The options of the inbox, with the defaults.

import { optionInvalid } from '../../errors.ts'
import type { InboxOptions } from '../../server/settings/part-options.ts'
import { LARGEST_TIMES } from '../../shares.ts'

export type InboxSettings = Required<InboxOptions>

const MOST_BODY_BYTES = 67_108_864
const DAY_MS = 86_400_000

/** Checks the options. Throws `OPTION_INVALID`. */
export function inboxSettings(options: InboxOptions): InboxSettings {
  const settings: InboxSettings = {
    maxRequests: 10_000,
    maxBytes: 52_428_800,
    maxAllBytes: 1_073_741_824,
    maxBodyBytes: 1_048_576,
    maxUnwrittenBytes: Math.max(MOST_BODY_BYTES, LARGEST_TIMES * (options.maxBodyBytes ?? 0)),
    maxAgeMs: 3 * DAY_MS,
    maxAttempts: 15,
    ...options,
  }
  for (const [name, value] of Object.entries(settings))
    if (name !== 'store' && !(Number.isSafeInteger(value) && Number(value) >= 1))
      throw optionInvalid(`inbox.${name} must be a whole number from 1 up.`)
  if (settings.maxBodyBytes > MOST_BODY_BYTES)
    throw optionInvalid(`inbox.maxBodyBytes must be at most ${MOST_BODY_BYTES}.`)
  return settings
}
