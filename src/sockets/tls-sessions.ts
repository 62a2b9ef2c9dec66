// TLS sessions that later dials resume, which saves the server a signature and both a round of certificates.

import type { Address, TlsOptions } from '../socket.ts'

/** The last session with one address. */
export interface SessionSlot {
  /** The session as the runtime wrote it. */
  session: Uint8Array | undefined
}

interface Known extends SessionSlot {
  readonly endpoint: string
}

/**
 * The sessions by the object of the options: the checks of a certificate also hold for its sessions, so dials with other
 * options must not resume them. One address each, as callers have it; another one begins again.
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
