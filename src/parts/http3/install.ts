// HTTP/3 for visitors of the server: a UDP port with the number of its own port.

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
