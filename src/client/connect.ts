// Dials the server and settles which wire to speak.

import { TunnelError } from '../errors.ts'
import { dialCarrier } from './carriers/dial.ts'
import type { Connect, Connection, ConnectionEvents } from './connection.ts'
import { connectJson } from './json-connection.ts'
import type { ClientSettings } from './settings.ts'
import { StreamsConnection } from './streams-connection.ts'

/** Streams where the server negotiates them; JSON when it negotiates nothing, or when it is forced. */
export function connector(settings: ClientSettings): Connect {
  return async (events, signal) => {
    if (settings.wire === 'json') return connectJson(settings, events, signal)
    const connection = await connectStreams(settings, events, signal)
    if (connection !== undefined) return connection
    if (settings.wire === 'streams') {
      throw new TunnelError('SERVER_REFUSED', 'The server does not speak the streams wire.')
    }
    return connectJson(settings, events, signal)
  }
}

async function connectStreams(
  settings: ClientSettings,
  events: ConnectionEvents,
  signal: AbortSignal,
): Promise<Connection | undefined> {
  let connection: StreamsConnection | undefined
  const hasNegotiated = await dialCarrier(settings, signal, carrier => {
    connection = new StreamsConnection(settings, events, carrier)
    return connection.carrierHandler
  })
  return hasNegotiated ? connection : undefined
}
