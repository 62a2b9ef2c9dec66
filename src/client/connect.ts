// Dials the server and settles which wire to speak, on one connection for either.

import { TunnelError } from '../errors.ts'
import { STREAMS_SUBPROTOCOL } from '../wire/frame.ts'
import { JSON_SUBPROTOCOL } from '../wire/json.ts'
import { dialCarrier } from './carriers/dial.ts'
import type { Connect, Connection } from './connection.ts'
import { JsonConnection } from './json-connection.ts'
import type { ClientSettings } from './settings.ts'
import { StreamsConnection } from './streams-connection.ts'

/** Streams where the server negotiates them; JSON when it negotiates nothing, or when it is forced. */
export function connector(settings: ClientSettings): Connect {
  const protocols = protocolsOf(settings)
  return async (events, signal) => {
    let connection: Connection | undefined
    let json: JsonConnection | undefined
    await dialCarrier(settings, signal, {
      protocols,
      text: message => json?.take(message),
      heard: () => json?.heard(),
      accept(carrier, protocol) {
        if (protocol === STREAMS_SUBPROTOCOL) {
          const streams = new StreamsConnection(settings, events, carrier)
          connection = streams
          return streams.carrierHandler
        }
        if (settings.wire === 'streams') return undefined
        json = new JsonConnection(settings, events, carrier)
        connection = json
        return json.carrierHandler
      },
    })
    if (connection !== undefined) return connection
    throw new TunnelError('SERVER_REFUSED', 'The server does not speak the streams wire.')
  }
}

/** What is offered to the server. Existing servers answer with the first: see JSON_SUBPROTOCOL. */
export function protocolsOf({ wire }: ClientSettings): readonly string[] {
  return wire === 'json' ? [] : [JSON_SUBPROTOCOL, STREAMS_SUBPROTOCOL]
}
