// A decorator of an origin: webhooks reach it only with a valid signature. Other requests pass as they come.

import type { Socket, SocketHandler } from '../../socket.ts'
import type { Origin } from '../origin.ts'
import type { VerifySettings } from './verify-options.ts'

/** The same origin; its code is loaded with the first connection. */
export function verified(origin: Origin, settings: VerifySettings): Origin {
  return {
    label: origin.label,
    url: origin.url,
    async connect(handler: SocketHandler): Promise<Socket> {
      const { connectVerified } = await import('./verified-connection.ts')
      return await connectVerified(origin, handler, settings)
    },
  }
}
