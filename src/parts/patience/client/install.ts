// The time that an app has for the head of a response: its server is asked for it.

import type { Install } from '../../../client/contracts/part.ts'
import { whole } from '../../../option-names.ts'

export const installPatience: Install = () => ({
  follow({ options }) {
    const { responseTimeoutMs } = options ?? {}
    if (responseTimeoutMs === undefined) return undefined
    whole('responseTimeoutMs', responseTimeoutMs, 1)
    return { wishes: () => ({ responseTimeoutMs }) }
  },
})
