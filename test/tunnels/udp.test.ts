// UDP tunnels on real sockets: boundaries, who gets which answer, what is dropped and counted, flows that end.

import { expect, test } from 'bun:test'
import { TunnelClient } from '../../src/index.ts'
import { DatagramVisitor, datagramApp } from '../support/datagrams.ts'
import { startServer } from '../support/tunnel.ts'

const client = (serverPort: number): TunnelClient =>
  new TunnelClient({ server: `http://127.0.0.1:${serverPort}` })

test('datagrams of every size keep their boundaries, empty ones too, both ways and in order', async () => {
  await using app = await datagramApp()
  const server = await startServer()
  await using tunnels = client(server.port)
  const tunnel = await tunnels.udp({ port: app.port })
  expect(tunnel.url).toBe(`udp://localhost:${tunnel.port}`)
  await using visitor = await DatagramVisitor.to(tunnel.port ?? 0)
  const sizes = [
    0, 1, 2, 3, 255, 256, 257, 1_399, 1_472, 1_473, 4_095, 9_000, 32_768, 61_439, 61_440, 65_506, 65_507, 0,
  ]
  for (const [index, size] of sizes.entries()) {
    await visitor.send(new Uint8Array(size).fill(index + 1))
    await visitor.received(index + 1)
  }
  expect(visitor.got.map(({ length }) => length)).toEqual(sizes)
  for (const [index, bytes] of visitor.got.entries())
    expect(bytes.every(byte => byte === index + 1)).toBe(true)
  await tunnels.disconnect()
  await server.stop()
})
