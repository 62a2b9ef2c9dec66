// The judge of webhooks whose signatures are required.

import type { Judge } from './judged-origin.ts'
import { verdictOf } from './signatures.ts'
import { receivedAt, type VerifySettings } from './verify-settings.ts'

export function signatureJudge(settings: VerifySettings): Judge {
  const { provider, secrets, toleranceS, maxBodyBytes } = settings
  return {
    readsBody: true,
    maxBodyBytes,
    matches: target => settings.matches(target),
    refusalOf(head, body) {
      const header = (name: string) => head.header(name)
      const now = receivedAt(header, settings)
      const verdict = verdictOf(provider, secrets, { header, body }, { now, toleranceS })
      if (verdict.isValid) return undefined
      return { code: 'SIGNATURE_INVALID', detail: `The webhook is refused: ${verdict.reason}.` }
    },
  }
}
