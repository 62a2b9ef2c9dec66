// The time limit for the head of an app's response: the client asks the server for it.

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
