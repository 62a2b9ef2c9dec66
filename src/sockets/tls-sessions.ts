// TLS sessions that later dials resume, which saves both sides the certificates and the server a signature.

import type { Address, TlsOptions } from '../socket.ts'

/** The last session with one address. */
export interface SessionSlot {
  /** The session in the runtime's own format. */
  session: Uint8Array | undefined
}

interface Known extends SessionSlot {
  readonly endpoint: string
}

/**
 * The sessions by the options object: certificate checks also apply to sessions, so dials with other options must not
 * resume them. Each options object has one address; another address starts again.
 */
const slots = new WeakMap<TlsOptions, Known>()

/** Returns the slot for an address. `undefined` if the address has no TLS. */
export function sessionSlot({ host, port, unix, tls }: Address): SessionSlot | undefined {
  if (tls === undefined) return undefined
  const endpoint = unix ?? `${host ?? 'localhost'}:${port}`
  const known = slots.get(tls)
  if (known?.endpoint === endpoint) return known
  const slot = { endpoint, session: undefined }
  slots.set(tls, slot)
  return slot
}
