// The JSON wire at the client, for servers that speak no other.

import type { Install } from '../../../client/contracts/part.ts'
import { JsonConnection, MAX_MESSAGE_BYTES } from './connection.ts'

export const installJsonWire: Install = () => ({
  textWire: {
    maxMessageBytes: MAX_MESSAGE_BYTES,
    connect: (settings, events, carrier) => new JsonConnection(settings, events, carrier),
  },
})
