// Replaces the guards part on a server without it, and reads from a guard's definition whether it can refuse visitors.

import { TunnelError } from '../../errors.ts'
import type { Refusal, UsedMarks } from '../../plugin.ts'
import type { Guarding, Judgement } from '../contracts/guarding.ts'

/** The guarding of a server without guards: a tunnel whose client asks for one is refused. */
export class NoGuards implements Guarding {
  marks: UsedMarks | undefined
  asksCertificates = false

  isAsked(): boolean {
    return false
  }

  askingFor(): undefined {
    return undefined
  }

  judge(): Judgement {
    return { kind: 'pass', passes: [] }
  }

  async make(): Promise<TunnelError> {
    return new TunnelError('GUARD_UNAVAILABLE')
  }

  close(): void {}

  fail(): Refusal {
    return { code: 'INTERNAL' }
  }
}

/** Whether a guard, or the request for one, has an access rule or a sign-in method. */
export function isRefusing(guard: object | undefined): boolean {
  if (guard === undefined) return false
  return 'isRefusing' in guard
    ? guard.isRefusing === true
    : Object.keys(guard).some(key => !PERMISSIVE.has(key))
}

/** The fields of a guard that refuse no visitor. */
const PERMISSIVE: ReadonlySet<string> = new Set([
  'key',
  'sessionMs',
  'revoked',
  'open',
  'cors',
  'requestHeaders',
  'responseHeaders',
])
