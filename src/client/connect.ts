// Dials the server and settles which wire to speak, on one connection for either.

import { TunnelError } from '../errors.ts'
import { STREAMS_SUBPROTOCOL, TEXT_SUBPROTOCOL } from '../wire/frame.ts'
import { dialCarrier } from './carriers/dial.ts'
import type { Connect, Connection } from './connection.ts'
import type { TextConnecting, TextWire } from './contracts/wire.ts'
import type { ClientSettings } from './settings.ts'
import { StreamsConnection } from './streams-connection.ts'

/** Streams where the server negotiates them; text messages when it negotiates nothing, or when they are forced. */
export function connector(settings: ClientSettings, textWire: TextWire | undefined): Connect {
  const protocols = protocolsOf(settings)
  return async (events, signal) => {
    let connection: Connection | undefined
    let text: TextConnecting | undefined
    await dialCarrier(settings, signal, {
      protocols,
      maxTextBytes: textWire?.maxMessageBytes,
      text: message => text?.take(message),
      heard: () => text?.heard(),
      accept(carrier, protocol) {
        if (protocol === STREAMS_SUBPROTOCOL) {
          const streams = new StreamsConnection(settings, events, carrier)
          connection = streams
          return streams.carrierHandler
        }
        if (settings.wire === 'streams') return undefined
        text = textWire?.connect(settings, events, carrier)
        return text?.carrierHandler
      },
    })
    connection ??= await text?.ready
    if (connection !== undefined) return connection
    throw new TunnelError('SERVER_REFUSED', 'The server does not speak the streams wire.')
  }
}

/** What is offered to the server. Existing servers answer with the first: see TEXT_SUBPROTOCOL. */
export function protocolsOf({ wire }: ClientSettings): readonly string[] {
  return wire === 'json' ? [] : [TEXT_SUBPROTOCOL, STREAMS_SUBPROTOCOL]
}
