// The client's side of the road: an origin, and a client for each server.

import { once } from 'node:events'
import { createServer } from 'node:http'
import { TunnelClient } from '../../src/index.ts'
import { SERVER_ADDRESS } from './road.ts'

const PIECE = Buffer.alloc(65_536, 'x')

const origin = createServer((request, response) => {
  const [, kind, ms] = request.url?.split('/') ?? []
  if (kind === 'down') {
    const until = performance.now() + Number(ms)
    const send = () => {
      while (!response.destroyed && performance.now() < until) {
        if (!response.write(PIECE)) return void once(response, 'drain').then(send)
      }
      response.end()
    }
    return send()
  }
  let received = 0
  request.on('data', (piece: Buffer) => (received += piece.length))
  request.on('end', () => response.end(String(received)))
})
origin.listen(3000)
await once(origin, 'listening')

for (const port of [8080, 8081]) {
  const client = new TunnelClient({
    server: `http://${SERVER_ADDRESS}:${port}`,
    host: '127.0.0.1',
    port: 3000,
    subdomain: 'app',
    wire: 'streams',
  })
  client.on('error', (error: Error) => console.error(error.message))
  await client.connect()
}
console.log('up')
