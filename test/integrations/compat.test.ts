// Programs written for `localtunnel` and `@ngrok/ngrok`, as their READMEs have them, over a tunnel of ours.

import { expect, test } from 'bun:test'
import localtunnel, { disconnect, forward, type LocaltunnelTunnel } from '../../src/integrations/compat.ts'
import { ask } from '../support/ask.ts'
import { codeOf } from '../support/events.ts'
import { freePort } from '../support/ports.ts'
import { startServer } from '../support/tunnel.ts'

const app = () =>
  Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    fetch: ({ headers }) => new Response(`at ${headers.get('host')}`, { headers: { connection: 'close' } }),
  })

test('localtunnel: a promise, its url, its events, close', async () => {
  await using server = await startServer()
  using origin = app()
  const tunnel = await localtunnel({ port: origin.port ?? 0, host: server.url, subdomain: 'shop' })
  expect(tunnel.url).toBe(`http://shop.localhost:${server.port}`)
  const seen = new Promise(resolve => tunnel.on('request', resolve))
  expect(await ask(server.port, 'shop.localhost', { path: '/hats' })).toMatchObject({
    body: 'at shop.localhost',
  })
  expect(await seen).toEqual({ method: 'GET', path: '/hats' })
  const closed = new Promise<void>(resolve => tunnel.on('close', resolve))
  tunnel.close()
  await closed
})

test('localtunnel: a port, options and a callback; a host of the app', async () => {
  await using server = await startServer()
  using origin = app()
  const tunnel = await new Promise<LocaltunnelTunnel>((resolve, reject) => {
    const options = { host: server.url, subdomain: 'shop', local_host: '127.0.0.1' }
    void localtunnel(origin.port ?? 0, options, (error, made) => (made ? resolve(made) : reject(error)))
  })
  expect(await ask(server.port, 'shop.localhost')).toMatchObject({ body: 'at 127.0.0.1' })
  tunnel.close()
  expect(await codeOf(localtunnel({ port: 1, host: `http://127.0.0.1:${freePort()}` }))).toBe(
    'SERVER_UNREACHABLE',
  )
})

test('ngrok: forward, url(), close() and disconnect()', async () => {
  await using server = await startServer({ tokens: ['secret'] })
  using origin = app()
  const addr = `127.0.0.1:${origin.port}`
  const made = { addr, authtoken: 'secret', server_addr: server.url }
  const listener = await forward({ ...made, domain: 'shop.tunnel.example' })
  expect(listener.url()).toBe(`http://shop.localhost:${server.port}`)
  expect(await ask(server.port, 'shop.localhost')).toMatchObject({ status: 200 })
  // A domain is wanted, or none.
  expect(await codeOf(forward({ ...made, domain: 'shop.tunnel.example' }))).toBe('NAME_TAKEN')
  const other = await forward(made)
  await listener.close()
  expect(await ask(server.port, 'shop.localhost')).toMatchObject({ code: 'TUNNEL_NOT_FOUND' })
  await disconnect()
  expect(await ask(server.port, `${other.id()}.localhost`)).toMatchObject({ code: 'TUNNEL_NOT_FOUND' })
})

test('ngrok: an option that protects the app is refused, and not left out', async () => {
  for (const more of [
    { basic_auth: 'a:b' },
    { ip_restriction_allow_cidrs: ['10.0.0.0/8'] },
    { proto: 'tcp' },
  ])
    expect(await codeOf(forward({ addr: 9, ...more } as never))).toBe('OPTION_INVALID')
})
