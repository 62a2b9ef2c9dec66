// The JSON wire at the server, for clients that speak no other.

import type { Install } from '../../server/contracts/part.ts'
import { JsonConnection } from './connection.ts'
import { UnfinishedMessages } from './unfinished-messages.ts'

export const installJsonWire: Install = () => {
  const unfinished = new UnfinishedMessages()
  return {
    name: 'json-wire',
    adopt(socket, remoteAddress, host, rule) {
      const client = new JsonConnection(socket, remoteAddress, host, rule, unfinished)
      return { client, handler: client.socketHandler }
    },
  }
}
