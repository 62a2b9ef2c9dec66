// Options of parts, as the operator gives them: each part checks its own.

import type { InboxStore } from '../inbox.ts'

export interface InboxOptions {
  /** Where webhooks wait: `await openInbox('inbox.db')`. The caller closes it after `server.stop()`. */
  readonly store: InboxStore
  /**
   * Webhooks of one name, of which one address has no more than it leaves free: half. An IPv6 address counts by its first 64 bits; the
   * loopback, where a proxy may be, is not counted. Default 10,000. Above: the sender gets 503 `INBOX_FULL`, and tries again as it does by itself.
   */
  readonly maxRequests?: number
  /** Bytes of heads and bodies of one name, shared as `maxRequests`. Default 50 MiB; above likewise. */
  readonly maxBytes?: number
  /** Of all names. Default 1 GiB, of which one token, and one address, has no more than it leaves free: at most half. Above likewise. */
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
