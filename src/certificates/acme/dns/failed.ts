// The common error of DNS providers, with what was tried and why it failed.

import { messageOf, TunnelError } from '../../../errors.ts'

const MAX_REASON_CHARS = 1_000

export function dnsFailed(what: string, cause: unknown): TunnelError {
  if (cause instanceof TunnelError) return cause
  const words = messageOf(cause)
  // Has no control characters, because it is shown on terminals and in logs.
  const reason = words
    .replace(/[\p{Cc}\s]+/gu, ' ')
    .trim()
    .slice(0, MAX_REASON_CHARS)
  return new TunnelError('ACME_CHALLENGE_FAILED', `${what}: ${reason.replace(/\.$/, '')}.`, {
    cause,
    action: 'Check the DNS provider, its key and the zone.',
  })
}
