// HTTP/3 at the server, for visitors: a UDP port next to its own.

import type { Install } from '../../server/contracts/part.ts'

export const installHttp3: Install = () => ({
  name: 'http3',
  async open(terms) {
    if (!terms.settings.http3) return undefined
    const { Http3Front } = await import('./front.ts')
    const front = new Http3Front(terms)
    await front.open()
    return front
  },
})
