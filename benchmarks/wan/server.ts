// The server's side of the road: one server that takes links (8080), and one that does not (8081).

import { TunnelServer } from '../../src/index.ts'
import { SERVER_ADDRESS } from './road.ts'

for (const [port, maxLinks] of [
  [8080, 32],
  [8081, 0],
] as const) {
  await new TunnelServer({ port, host: SERVER_ADDRESS, domains: ['localhost'], limits: { maxLinks } }).start()
}
console.log('up')
