// A URL before there is an app.

import { expect, test } from 'bun:test'
import { connectTunnel, reserve, TunnelClient } from '../../src/index.ts'
import { ask } from '../support/ask.ts'
import { codeOf } from '../support/events.ts'
import { startServer } from '../support/tunnel.ts'

const app = (text: string) =>
  Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    fetch: () => new Response(text, { headers: { connection: 'close' } }),
  })

for (const wire of ['streams', 'json'] as const)
  test(`${wire}: visitors get 502 until the app is there, and follow it`, async () => {
    await using server = await startServer()
    await using reserved = await reserve({ server: server.url, subdomain: 'app', wire })
    expect(reserved.url).toBe(`http://app.localhost:${server.port}`)
    expect(reserved.host).toBe('app.localhost')
    expect(await ask(server.port, reserved.host)).toMatchObject({ status: 502 })
    for (const text of ['first', 'second']) {
      using origin = app(text)
      reserved.connect({ port: origin.port ?? 0, host: '127.0.0.1' })
      expect(await ask(server.port, reserved.host)).toMatchObject({ status: 200, body: text })
      await origin.stop(true)
    }
    await reserved.close()
    expect(await ask(server.port, reserved.host)).toMatchObject({ status: 404, code: 'TUNNEL_NOT_FOUND' })
  })

test('a number is a port, and the client has the URL', async () => {
  await using server = await startServer()
  using origin = app('here')
  const before = process.env.TUNNEL_SERVER
  process.env.TUNNEL_SERVER = server.url
  try {
    await using client = await connectTunnel(origin.port ?? 0)
    expect(client.url).toBe(client.getTunnelUrl())
    expect(await ask(server.port, new URL(client.url).hostname)).toMatchObject({ status: 200, body: 'here' })
  } finally {
    if (before === undefined) delete process.env.TUNNEL_SERVER
    else process.env.TUNNEL_SERVER = before
  }
})

test('what cannot be used is refused', async () => {
  const client = new TunnelClient({ port: 3000 })
  expect(() => client.forward(4000)).toThrow('not made with later')
  const later = new TunnelClient({ later: true })
  expect(() => later.forward(70_000)).toThrow('port 70000: a port is a number from 1 to 65535.')
  expect(() => later.forward({ later: true })).toThrow('says where the app is')
  expect(await codeOf(client.http({ later: true }))).toBe('OPTION_INVALID')
  expect(() => new TunnelClient({ port: 3000, later: true })).toThrow('Exactly one of')
  expect(() => new TunnelClient({ port: 3000, routes: { '/api': { later: true } } })).toThrow(
    'cannot come later',
  )
})
