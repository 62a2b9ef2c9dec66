// Whether an exchange can be sent again.

import type { ErrorCode } from '../../errors.ts'
import type { Entry } from './entry.ts'

/** `undefined`: it can be. */
export function whyNotReplayable(entry: Entry): ErrorCode | undefined {
  const isHttp = entry.kind === 'http' || entry.kind === 'sse'
  if (entry.place.isHttp2 === true) return 'REPLAY_IMPOSSIBLE'
  if (!isHttp || entry.requestHead.length === 0 || !entry.requestBody.isComplete) return 'REPLAY_IMPOSSIBLE'
  return entry.requestBody.isCut ? 'BODY_TRUNCATED' : undefined
}
