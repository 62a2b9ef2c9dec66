// Dials with what the runtime offers. The other implementation is never loaded.

import type { Dial } from '../socket.ts'

let dialHere: Dial | undefined

/** Opens a connection on Bun or Node. */
export const dial: Dial = async (address, handler, signal) => {
  dialHere ??= 'Bun' in globalThis ? (await import('./bun.ts')).dialBun : (await import('./node.ts')).dialNode
  return dialHere(address, handler, signal)
}
