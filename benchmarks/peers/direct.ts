// No tunnel at all: the ceiling of origin and load generator together.

import { endpoint, type Peer } from './peer.ts'

export const direct: Peer = {
  name: 'direct',
  kind: 'none',
  how: 'no tunnel: the load generator asks the origin',
  detect: () => Promise.resolve({ version: '-' }),
  start: origins =>
    Promise.resolve({
      endpoints: Object.fromEntries(Object.entries(origins).map(([name, port]) => [name, endpoint(port)])),
      processes: { server: [], client: [] },
      readyMs: { server: 0, client: 0 },
      stop: () => Promise.resolve(),
    }),
}
