// What an operator says of the inbox.

import { TunnelError } from '../../errors.ts'
import type { InboxStore } from '../../inbox.ts'
import { LARGEST_TIMES } from '../../shares.ts'

export interface InboxOptions {
  /** Where webhooks wait: `await openInbox('inbox.db')`. The caller closes it after `server.stop()`. */
  readonly store: InboxStore
  /** Webhooks of one name. Default 10,000. Above: the sender gets 503 `INBOX_FULL`, and tries again as it does by itself. */
  readonly maxRequests?: number
  /** Bytes of heads and bodies of one name. Default 50 MiB; above likewise. */
  readonly maxBytes?: number
  /** Of all names. Default 1 GiB, of which one token has no more than it leaves free: at most half. Above likewise. */
  readonly maxAllBytes?: number
  /** Longest body, in bytes. Default 1 MiB, at most 64 MiB; above: 413 `BODY_TOO_LARGE`. */
  readonly maxBodyBytes?: number
  /**
   * Bytes of bodies in memory that are being read or written. Default 64 MiB, or five times `maxBodyBytes`: one address has
   * at most a fifth of them, one token half. Above: 503 `INBOX_FULL`. A body whose next bytes take longer than `headTimeoutMs`: 408 `BODY_TIMEOUT`.
   */
  readonly maxUnwrittenBytes?: number
  /**
   * In milliseconds. Default 3 days, as long as providers try again. Older webhooks are dropped, and a name whose client was
   * away for so long has no inbox any more.
   */
  readonly maxAgeMs?: number
  /** Answers of the app that ask for another try (408, 425, 429, 5xx), until the webhook is dropped. Default 15: about an hour. */
  readonly maxAttempts?: number
}

export type InboxSettings = Required<InboxOptions>

const MOST_BODY_BYTES = 67_108_864
const DAY_MS = 86_400_000

/** Throws `OPTION_INVALID` for what cannot be used. */
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
      throw new TunnelError('OPTION_INVALID', `inbox.${name} must be a whole number from 1 up.`)
  if (settings.maxBodyBytes > MOST_BODY_BYTES)
    throw new TunnelError('OPTION_INVALID', `inbox.maxBodyBytes must be at most ${MOST_BODY_BYTES}.`)
  return settings
}
