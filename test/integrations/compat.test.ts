// Programs written for `localtunnel` and `@ngrok/ngrok`, as their READMEs have them, over a tunnel of ours.

import { expect, test } from 'bun:test'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import * as compat from '../../src/integrations/compat.ts'
import localtunnel, {
  authtoken,
  disconnect,
  forward,
  getListener,
  getListenerByUrl,
  kill,
  type LocaltunnelTunnel,
  listeners,
  NgrokSessionBuilder,
  SessionBuilder,
} from '../../src/integrations/compat.ts'
import { guarding } from '../../src/plugins/guarding.ts'
import { ask } from '../support/ask.ts'
import { makeCertificate } from '../support/certificates.ts'
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
  const options = { host: server.url, subdomain: 'shop', local_host: '127.0.0.1' }
  const made = Promise.withResolvers<LocaltunnelTunnel | undefined>()
  const tunnel = localtunnel(origin.port ?? 0, options, (error, one) =>
    error ? made.reject(error) : made.resolve(one),
  )
  expect(await made.promise).toBe(tunnel)
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

test('ngrok: SessionBuilder, and the variable of the token is named', async () => {
  await using server = await startServer({ tokens: ['secret'] })
  const { TUNNEL_TOKEN } = process.env
  delete process.env.TUNNEL_TOKEN
  try {
    const words = expect.stringContaining('authtoken_from_env reads TUNNEL_TOKEN here, which is not set.')
    const refused = { code: 'TOKEN_REFUSED', message: words }
    expect(
      await forward({ addr: 9, authtoken_from_env: true, server_addr: server.url }).catch(error => error),
    ).toMatchObject(refused)
    const session = await new SessionBuilder().authtokenFromEnv().serverAddr(server.url).connect()
    expect(
      await session
        .httpEndpoint()
        .listen()
        .catch((error: unknown) => error),
    ).toMatchObject(refused)
  } finally {
    if (TUNNEL_TOKEN !== undefined) process.env.TUNNEL_TOKEN = TUNNEL_TOKEN
  }
})

test('ngrok: what is ours alone is not among its functions', () => {
  const { 'module.exports': required } = compat
  for (const all of [localtunnel, compat, required]) expect(all).not.toHaveProperty('listen')
  expect(required).toMatchObject({ forward, connect: forward, SessionBuilder })
})

test('ngrok: an option that protects the app is refused, and not left out', async () => {
  for (const more of [
    { traffic_policy: '{}' },
    { mutual_tls_cas: ['PEM'] },
    { allow_user_agent: '^mozilla' },
    { oauth_provider: 'github' },
    { oauth_allow_domains: 'example.com' },
    { basic_auth: ['a:long-enough', 'b:long-enough'] },
    { basic_auth: 'without-a-colon' },
    { proto: 'labeled' },
    { app_protocol: 'http3' },
    { proto: 'tcp', proxy_proto: '3' },
  ])
    expect([more, await codeOf(forward({ addr: 9, ...more } as never))]).toEqual([more, 'OPTION_INVALID'])
  for (const more of [{ local_cert: 'cert.pem' }, { local_key: 'key.pem' }, { local_ca: 'absent.pem' }])
    expect(await codeOf(localtunnel({ port: 9, local_https: true, ...more }))).toBe('OPTION_INVALID')
})

test('localtunnel: local_ca verifies the app, and another authority does not', async () => {
  await using server = await startServer()
  const [own, other] = await Promise.all([makeCertificate(['localhost']), makeCertificate(['localhost'])])
  using origin = Bun.serve({ port: 0, tls: own, fetch: () => new Response('by TLS') })
  const folder = await mkdtemp(join(tmpdir(), 'localtunnels-compat-'))
  for (const [{ cert }, wanted] of [
    [own, { status: 200, body: 'by TLS' }],
    [other, { status: 502, code: 'ORIGIN_TLS' }],
  ] as const) {
    const local_ca = join(folder, 'ca.pem')
    await Bun.write(local_ca, cert)
    const tunnel = await localtunnel({
      port: origin.port ?? 0,
      host: server.url,
      local_https: true,
      local_ca,
    })
    expect(await ask(server.port, `${tunnel.clientId}.localhost`)).toMatchObject(wanted)
    tunnel.close()
  }
  await rm(folder, { recursive: true })
})

test('ngrok: a unix socket, a password, allowed addresses, a list of listeners', async () => {
  await using server = await startServer({ guarding: guarding() })
  const folder = await mkdtemp(join(tmpdir(), 'localtunnels-compat-'))
  const unix = join(folder, 'app.sock')
  using _app = Bun.serve({ unix, fetch: () => new Response('by the socket') })
  const made = { addr: `unix:${unix}`, server_addr: server.url }
  const listener = await forward({ ...made, basic_auth: 'anna:online1line', metadata: 'mine' })
  const authorization = `Basic ${btoa('anna:online1line')}`
  const host = `${listener.id()}.localhost`
  expect(await ask(server.port, host)).toMatchObject({ status: 401 })
  expect(await ask(server.port, host, { headers: { authorization } })).toMatchObject({
    body: 'by the socket',
  })
  expect([listener.proto(), listener.metadata(), listener.forwardsTo()]).toEqual(['http', 'mine', made.addr])
  const walled = await forward({ ...made, ip_restriction_allow_cidrs: ['10.9.9.0/24'] })
  expect(await ask(server.port, `${walled.id()}.localhost`)).toMatchObject({ code: 'ADDRESS_REFUSED' })
  expect((await listeners()).map(one => one.url())).toEqual([listener.url(), walled.url()])
  expect(await getListenerByUrl(walled.url())).toBe(walled)
  expect(await getListener(listener.id())).toBe(listener)
  await disconnect(walled.url())
  await walled.join()
  expect(await getListenerByUrl(walled.url())).toBe(null)
  await kill()
  expect(await listeners()).toEqual([])
  await rm(folder, { recursive: true })
})

test('ngrok: proto tcp, with the port asked for', async () => {
  const asked = freePort()
  await using server = await startServer({ tcpPorts: `${asked}` })
  using echo = Bun.listen({
    hostname: '127.0.0.1',
    port: 0,
    socket: { data: (socket, bytes) => void socket.write(bytes) },
  })
  const listener = await forward({
    proto: 'tcp',
    addr: echo.port,
    server_addr: server.url,
    remote_addr: `tunnel.example:${asked}`,
  })
  expect([listener.proto(), new URL(listener.url()).port]).toEqual(['tcp', `${asked}`])
  const heard = Promise.withResolvers<string>()
  const visitor = await Bun.connect({
    hostname: '127.0.0.1',
    port: asked,
    socket: { data: (_, bytes) => heard.resolve(String(bytes)) },
  })
  visitor.write('hello')
  expect(await heard.promise).toBe('hello')
  visitor.end()
  await listener.close()
})

test('ngrok: an endpoint of a session listens first, and is told later where the app is', async () => {
  await using server = await startServer({ tokens: ['secret'] })
  using origin = app()
  await authtoken('secret')
  const session = await new NgrokSessionBuilder().authtoken('secret').serverAddr(server.url).connect()
  const listener = await session.httpEndpoint().domain('shop.tunnel.example').listen()
  expect(await ask(server.port, 'shop.localhost')).toMatchObject({ code: 'ORIGIN_REFUSED' })
  const over = listener.forward(`127.0.0.1:${origin.port}`)
  expect(await ask(server.port, 'shop.localhost')).toMatchObject({ body: 'at shop.localhost' })
  await session.close()
  await over
  const told: string[] = []
  const lost = Promise.withResolvers<void>()
  const onStatusChange = (word: string) => {
    told.push(word)
    if (word === 'closed') lost.resolve()
  }
  const other = await forward({ addr: 9, server_addr: server.url, onStatusChange })
  await server.stop()
  await lost.promise
  expect(told).toEqual(['connected', 'closed'])
  await other.close()
})
