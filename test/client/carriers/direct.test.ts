// Carriers over our own sockets, on Bun's and on node:net.

import { describe, expect, test } from 'bun:test'
import { directCarriers } from '../../../src/client/carriers/direct.ts'
import { dialBun } from '../../../src/sockets/bun.ts'
import { dialNode } from '../../../src/sockets/node.ts'
import { BINARY, encodeWebSocketMessage } from '../../../src/wire/websocket.ts'
import { carrierSuite, openTo } from '../../suites/carrier.ts'
import { carrierServer } from '../../support/carrier-server.ts'

describe('a carrier over a Bun socket', () => carrierSuite(directCarriers(dialBun)))

describe('a carrier over a node:net socket', () => carrierSuite(directCarriers(dialNode)))

test('frames that come in one packet with the 101 are not lost', async () => {
  const greeting = encodeWebSocketMessage(BINARY, new TextEncoder().encode('hello'))
  const server = carrierServer({ greeting })
  const { carrier, events } = await openTo(directCarriers(dialBun), server)
  await events.happened('received')
  expect(events.text).toBe('hello')
  carrier.terminate()
  server.stop()
})
