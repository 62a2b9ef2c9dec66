// What a server on the JSON wire sends right behind its 101, before the client has loaded the code that reads it.

import { expect, test } from 'bun:test'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { TunnelClient } from '../../src/index.ts'
import { codeOf } from '../support/events.ts'

const GUID = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11'
const frame = (text: string) => Buffer.concat([Buffer.of(0x81, text.length), Buffer.from(text)])

/** A server that answers any upgrade with `messages` in the same write, and grants the name it is asked for. */
async function serverWith(messages: readonly string[]) {
  const server = createServer(socket => {
    socket.on('error', () => {})
    socket.once('data', head => {
      const [, key = ''] = /^sec-websocket-key: (\S+)/im.exec(String(head)) ?? []
      const accept = createHash('sha1')
        .update(key + GUID)
        .digest('base64')
      const answer = `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${accept}\r\n\r\n`
      socket.write(Buffer.concat([Buffer.from(answer), ...messages.map(frame)]))
      socket.once('data', () => {
        const url = 'http://app.localhost'
        socket.write(frame(JSON.stringify({ type: 'registered', subdomain: 'app', url })))
      })
    })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as { port: number }
  return { url: `http://127.0.0.1:${port}`, [Symbol.dispose]: () => void server.close() }
}

test('its greeting is read', async () => {
  using server = await serverWith(['{"type":"connected","originTimeoutMs":1000}'])
  await using client = new TunnelClient({ server: server.url, port: 1 })
  await client.connect()
  // Only a server that greets is believed.
  expect(client.getTunnelUrl()).toBe('http://app.localhost')
})

test('a flood of messages ends the connection', async () => {
  using server = await serverWith(Array<string>(17).fill('{"type":"pong"}'))
  const client = new TunnelClient({ server: server.url, port: 1, reconnect: false })
  expect(await codeOf(client.connect())).toBe('CARRIER_LOST')
})
