// Opens UDP sockets with the current runtime. The other runtime's implementation is never loaded.

import { lookup } from 'node:dns/promises'
import { isIP } from 'node:net'
import type { Associate } from '../datagram-socket.ts'

let associateHere: Associate | undefined

/** Opens a UDP socket on Bun or Node. */
export const associate: Associate = async ({ host, port }, handler) => {
  associateHere ??=
    'Bun' in globalThis
      ? (await import('./bun-datagrams.ts')).associateBun
      : (await import('./node-datagrams.ts')).associateNode
  return associateHere({ host: await addressOf(host), port }, handler)
}

/**
 * Returns the address for a host. No response shows which address family works, so `localhost` is IPv4, which every machine has.
 */
async function addressOf(host: string): Promise<string> {
  if (host === 'localhost') return '127.0.0.1'
  return isIP(host) === 0 ? (await lookup(host)).address : host
}
