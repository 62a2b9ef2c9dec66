// One client with thousands of tunnels, on one connection.

import { expect, test } from 'bun:test'
import { TunnelClient } from '../../src/index.ts'
import { ask } from '../support/ask.ts'
import { codeOf, eventually, next } from '../support/events.ts'
import { control, SpeakingClient } from '../support/speaker.ts'
import { TcpProxy } from '../support/tcp-proxy.ts'
import { startServer } from '../support/tunnel.ts'

const TUNNELS = 5_000
const limits = { maxTunnels: TUNNELS, maxTokenTunnels: TUNNELS + 1 }

test('5,000 tunnels of one client are registered, answer, and come back after a lost connection', async () => {
  await using server = await startServer({ limits })
  using network = new TcpProxy(server.port)
  await using client = new TunnelClient({
    server: `127.0.0.1:${network.port}`,
    subdomain: 'first',
    fetch: () => new Response('first'),
    connectTimeoutMs: 30_000,
  })
  const added = Array.from({ length: TUNNELS - 1 }, (_, n) =>
    client.http({ subdomain: `tunnel-${n}`, fetch: () => new Response(`${n}`) }),
  )
  const tunnels = await Promise.all(added)
  expect(server.getStats()).toMatchObject({ connections: 1, activeSubdomains: TUNNELS })
  expect(new Set(tunnels.map(({ url }) => url)).size).toBe(TUNNELS - 1)
  for (const n of [0, 2_500, 4_998])
    expect(await ask(server.port, `tunnel-${n}.localhost`)).toMatchObject({ status: 200, body: `${n}` })
  const refused = client.http({ subdomain: 'one-more', fetch: () => new Response() })
  expect(await codeOf(refused)).toBe('CLIENT_LIMIT')
  const back = next(client, 'connected')
  network.cutAll()
  await back
  expect(server.getStats()).toMatchObject({ connections: 1, activeSubdomains: TUNNELS })
  expect(await ask(server.port, 'tunnel-4998.localhost')).toMatchObject({ status: 200, body: '4998' })
}, 60_000)

test('a client that asks for all of them at once, as older ones do, gets them', async () => {
  await using server = await startServer({ limits })
  const client = await SpeakingClient.connect(server.port)
  client.say(
    ...Array.from({ length: TUNNELS }, (_, ref) =>
      control({ type: 'register', ref, kind: 'http', name: `tunnel-${ref}` }),
    ),
  )
  await eventually(() => server.getStats().activeSubdomains === TUNNELS, 'all tunnels')
  // Their health too, and their end.
  for (const message of [{ type: 'health', isHealthy: false }, { type: 'release' }])
    client.say(...Array.from({ length: TUNNELS }, (_, n) => control({ ...message, tunnel: n + 1 })))
  await eventually(() => server.getStats().activeSubdomains === 0, 'all tunnels to be gone')
  expect(client.isClosed).toBe(false)
  client.close()
  await client.closed
})

test('a client that was granted little and says much is still a flood', async () => {
  await using server = await startServer({ limits })
  const client = await SpeakingClient.connect(server.port)
  client.say(control({ type: 'register', ref: 1, kind: 'http', name: 'only' }))
  client.say(...Array.from({ length: 3_000 }, () => control({ type: 'health', tunnel: 1, isHealthy: true })))
  await client.closed
})
