// HTTP/2 at the client: health checks of apps that speak it.

import type { Install } from '../../../client/contracts/part.ts'

export const installHttp2: Install = () => ({
  loadHttp2Probing: async () => (await import('./health.ts')).probeHttp2,
})
