// The public side, asked again and again through a proxy in front of the server that goes and comes back.

import { expect, test } from 'bun:test'
import type { AddressInfo } from 'node:net'
import { connect, createServer, type Socket } from 'node:net'
import { watchPublicSide } from '../../src/cli/sharing/public-watch.ts'
import { TunnelClient, TunnelServer } from '../../src/index.ts'
import { eventually } from '../support/events.ts'

test('when visitors do not get through any more it is told once, and once when they do again', async () => {
  let isOpen = true
  const sockets = new Set<Socket>()
  const proxy = createServer(visitor => {
    if (!isOpen) return void visitor.destroy()
    const inner = connect(server.port, '127.0.0.1')
    for (const one of [visitor, inner]) {
      sockets.add(one)
      one.on('error', () => {})
    }
    visitor.pipe(inner).pipe(visitor)
  }).listen(0, '127.0.0.1')
  const { port } = proxy.address() as AddressInfo
  const server = new TunnelServer({ port: 0, host: '127.0.0.1', publicUrl: `http://localhost:${port}` })
  await server.start()
  const client = new TunnelClient({
    server: `http://127.0.0.1:${server.port}`,
    subdomain: 'shop',
    fetch: () => new Response(),
  })
  await client.connect()
  const told: string[] = []
  let probes = 0
  const stop = watchPublicSide(
    {
      probe() {
        probes++
        return client.probe()
      },
      isConnected: () => client.isConnected(),
      told: code => void told.push(code),
    },
    10,
  )
  const more = (count: number) => {
    const from = probes
    return eventually(() => probes > from + count, 'more probes')
  }
  await more(3)
  expect(told).toEqual([])
  isOpen = false
  await eventually(() => told.length === 1, 'the news')
  await more(3)
  expect(told).toEqual(['UNPROVEN'])
  isOpen = true
  await eventually(() => told.length === 2, 'better news')
  expect(told).toEqual(['UNPROVEN', 'PROVEN'])
  stop()
  await client.disconnect()
  await server.stop()
  for (const socket of sockets) socket.destroy()
  proxy.close()
})
