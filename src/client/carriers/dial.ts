// Dials the server for the streams wire.

import type { Carrier, CarrierHandler } from '../../session/carrier.ts'
import { dial } from '../../sockets/dial.ts'
import { STREAMS_SUBPROTOCOL } from '../../wire/frame.ts'
import type { ClientSettings } from '../settings.ts'
import { directCarriers } from './direct.ts'

const open = directCarriers(dial)

/** `true`: the server speaks streams, and `accept` was called. `false`: it does not; the connection is closed again. */
export async function dialCarrier(
  settings: ClientSettings,
  signal: AbortSignal,
  accept: (carrier: Carrier) => CarrierHandler,
): Promise<boolean> {
  const { server, name, token, connectTimeoutMs } = settings
  const protocol = await open(
    {
      address: server.address,
      host: server.host,
      // Servers on the JSON wire are dialled like this too.
      target: `/?subdomain=${encodeURIComponent(name)}`,
      token,
      protocols: [STREAMS_SUBPROTOCOL],
      timeoutMs: connectTimeoutMs,
      signal,
    },
    (carrier, picked) => (picked === STREAMS_SUBPROTOCOL ? accept(carrier) : undefined),
  )
  return protocol === STREAMS_SUBPROTOCOL
}
