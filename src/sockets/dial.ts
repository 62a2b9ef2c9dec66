// Dials with the current runtime. The other runtime's implementation is never loaded.

import type { Address, Dial } from '../socket.ts'

let dialHere: Dial | undefined

/** Opens a connection on Bun or Node. Every name under `.localhost` means this machine. */
export const dial: Dial = async (address, handler, signal) => {
  dialHere ??= 'Bun' in globalThis ? (await import('./bun.ts')).dialBun : (await import('./node.ts')).dialNode
  return dialHere(onThisMachine(address), handler, signal)
}

/**
 * Returns the address with `.localhost` names as `localhost`. Browsers know these names (RFC 6761 section 6.3); many
 * resolvers do not.
 */
export function onThisMachine(address: Address): Address {
  const { host, tls } = address
  if (host?.endsWith('.localhost') !== true) return address
  return { ...address, host: 'localhost', ...(tls && { tls: { serverName: host, ...tls } }) }
}
