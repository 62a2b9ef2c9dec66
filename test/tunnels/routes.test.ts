// Paths with origins of their own: which path goes where, what the apps see, and what is refused.

import { afterAll, expect, test } from 'bun:test'
import { once } from 'node:events'
import { createServer as createHttp1Server, type RequestListener } from 'node:http'
import { createSecureServer, createServer } from 'node:http2'
import type { AddressInfo } from 'node:net'
import { parseRoutes } from '../../src/cli/settings/target.ts'
import { parseRequestHead, RequestHead } from '../../src/http/head.ts'
import { type HttpTunnelOptions, TunnelClient } from '../../src/index.ts'
import type { Exchange, TunnelUpstream } from '../../src/server/contracts/upstream.ts'
import { DEFAULT_LIMITS } from '../../src/server/settings/options.ts'
import { RoutedUpstream } from '../../src/server/upstreams/routed.ts'
import { ask } from '../support/ask.ts'
import { codeOf, next } from '../support/events.ts'
import { headerOf, ok, readAnswer, readRequest, statusOf } from '../support/exchange.ts'
import { FUZZ, Random } from '../support/random.ts'
import { RawOrigin, rawDial } from '../support/raw.ts'
import { control, speakingServer } from '../support/speaker.ts'
import { TcpProxy } from '../support/tcp-proxy.ts'
import { TEST_CERT, TEST_KEY } from '../support/tls.ts'
import { startServer, startTunnel } from '../support/tunnel.ts'

const app = (name: string) =>
  Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    fetch: request => new Response(`${name} ${new URL(request.url).pathname} ${request.headers.get('host')}`),
  })
const [main, api, deep] = [app('main'), app('api'), app('deep')]
afterAll(() => Promise.all([main, api, deep].map(one => one.stop(true))))

const local = (server: { readonly port: number | undefined }) => ({
  port: server.port ?? 0,
  host: '127.0.0.1',
})
const routes = { '/api': local(api), '/api/v2/': { ...local(deep), hostHeader: 'rewrite' } }

test.each([
  ['/', 'main / app.localhost'],
  ['/api', 'api /api app.localhost'],
  ['/api?x=/api/v2', 'api /api app.localhost'],
  ['/api/', 'api /api/ app.localhost'],
  ['/api/v1', 'api /api/v1 app.localhost'],
  ['/api/v2', `deep /api/v2 127.0.0.1:${deep.port}`],
  ['/api/v2?x', `deep /api/v2 127.0.0.1:${deep.port}`],
  ['/api/v2/x', `deep /api/v2/x 127.0.0.1:${deep.port}`],
  ['/api/v20', 'api /api/v20 app.localhost'],
  ['/apix', 'main /apix app.localhost'],
  ['/API', 'main /API app.localhost'],
  ['/%61pi', 'main /%61pi app.localhost'],
  ['/x/api', 'main /x/api app.localhost'],
])('%s is answered by %s', async (path, answer) => {
  await using tunnel = await startTunnel({ ...local(main), routes })
  expect((await ask(tunnel.port, tunnel.host, { path })).body).toBe(answer)
})

test('an absolute target is parted by its path, and the app sees the path alone', async () => {
  await using tunnel = await startTunnel({ ...local(main), routes })
  for (const [target, body] of [
    [`http://${tunnel.host}/api/x?y`, 'api /api/x app.localhost'],
    [`http://${tunnel.host}`, 'main / app.localhost'],
    [`http://${tunnel.host}?/api`, 'main / app.localhost'],
  ]) {
    const visitor = await rawDial(tunnel.port)
    await visitor.send(`GET ${target} HTTP/1.1\r\nHost: ${tunnel.host}\r\nConnection: close\r\n\r\n`)
    expect((await readAnswer(visitor)).payload).toBe(body!)
    visitor.socket.end()
  }
})

test('dots and escapes reach the app of the path as it was sent, byte for byte', async () => {
  using own = new RawOrigin()
  using other = new RawOrigin()
  await using tunnel = await startTunnel({ port: own.port, routes: { '/api': local(other) } })
  for (const [path, origin] of [
    ['/api/../admin', other],
    ['/api/%2e%2e/admin', other],
    ['//api/x', own],
    ['/./api', own],
    ['/x/../api', own],
    ['/api%2Fx', own],
    ['/api;v=1', own],
    ['*', own],
  ] as const) {
    const visitor = await rawDial(tunnel.port)
    await visitor.send(`OPTIONS ${path} HTTP/1.1\r\nHost: ${tunnel.host}\r\nConnection: close\r\n\r\n`)
    const connection = await origin.accept()
    expect((await readRequest(connection)).head).toStartWith(`OPTIONS ${path} HTTP/1.1\r\n`)
    await connection.send(ok('', 'Connection: close\r\n'))
    expect(statusOf((await readAnswer(visitor)).head)).toBe(200)
    visitor.socket.end()
  }
})

test('each route keeps connections of its own; one whose app is down leaves the others alone', async () => {
  using own = new RawOrigin()
  using other = new RawOrigin()
  await using tunnel = await startTunnel({
    port: own.port,
    routes: { '/other': local(other), '/gone': { port: 1, host: '127.0.0.1' } },
  })
  const visitor = await rawDial(tunnel.port)
  const send = (path: string) => visitor.send(`GET ${path} HTTP/1.1\r\nHost: ${tunnel.host}\r\n\r\n`)
  for (let round = 0; round < 3; round++) {
    for (const [path, origin] of [
      ['/', own],
      ['/other', other],
    ] as const) {
      await send(path)
      const connection = origin.connections[0] ?? (await origin.accept())
      expect((await readRequest(connection)).head).toStartWith(`GET ${path} `)
      await connection.send(ok(path))
      expect((await readAnswer(visitor)).payload).toBe(path)
    }
    await send('/gone')
    const { head } = await readAnswer(visitor)
    expect(headerOf(head, 'x-localtunnels-error')).toBe('ORIGIN_REFUSED')
  }
  expect([own.connections.length, other.connections.length]).toEqual([1, 1])
  visitor.socket.end()
})

test('a WebSocket goes where its path does', async () => {
  using echo = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    fetch: (request, server) => (server.upgrade(request) ? undefined : new Response('', { status: 400 })),
    websocket: { message: (socket, message) => void socket.send(`echo ${String(message)}`) },
  })
  await using tunnel = await startTunnel({ ...local(main), routes: { '/ws': local(echo) } })
  const { promise, resolve, reject } = Promise.withResolvers<unknown>()
  // Bun's own WebSocket takes headers, which the standard one does not.
  const socket = new WebSocket(`ws://127.0.0.1:${tunnel.port}/ws/chat`, {
    headers: { Host: tunnel.host },
  } as unknown as string[])
  socket.onopen = () => socket.send('hello')
  socket.onmessage = ({ data }) => resolve(data)
  socket.onclose = () => reject(new Error('it closed'))
  expect(await promise).toBe('echo hello')
  socket.close()
})

test('two tunnels of a client have routes of their own, also after a reconnect and after one is closed', async () => {
  await using server = await startServer()
  using proxy = new TcpProxy(server.port)
  await using client = new TunnelClient({ server: `http://127.0.0.1:${proxy.port}`, maxBackoffMs: 20 })
  const one = await client.http({
    subdomain: 'one',
    ...local(main),
    routes: { '/x': local(api), '/y': local(deep) },
  })
  await client.http({ subdomain: 'two', ...local(deep), routes: { '/x': local(main) } })
  const nameAt = async (host: string, path: string) =>
    (await ask(server.port, `${host}.localhost`, { path })).body.split(' ')[0]
  const look = async () => [
    await nameAt('one', '/'),
    await nameAt('one', '/x'),
    await nameAt('one', '/y'),
    await nameAt('two', '/'),
    await nameAt('two', '/x'),
  ]
  expect(await look()).toEqual(['main', 'api', 'deep', 'deep', 'main'])
  const connected = next(client, 'connected')
  proxy.cutAll('reset')
  await connected
  expect(await look()).toEqual(['main', 'api', 'deep', 'deep', 'main'])
  await one.close()
  expect(await nameAt('two', '/x')).toBe('main')
})

test('reports are those of the tunnel, whatever the route', async () => {
  await using tunnel = await startTunnel({ ...local(main), routes })
  const seen = next(tunnel.client, 'response')
  tunnel.client.on('request', () => {})
  await ask(tunnel.port, tunnel.host, { path: '/api/x' })
  expect(await seen).toMatchObject({ tunnel: 'app', path: '/api/x', status: 200 })
})

test('a route speaks what its own app speaks, whatever that of the tunnel does; replies and reports are as ever', async () => {
  const version: RequestListener = (request, response) => response.end(request.httpVersion)
  // Of HTTP/2 these requests have what `version` uses.
  const http2Version = version as never
  const apps = [
    createHttp1Server(version),
    createServer(http2Version),
    createSecureServer({ cert: TEST_CERT, key: TEST_KEY }, http2Version),
  ]
  const ports = await Promise.all(
    apps.map(async one => {
      await once(one.listen(0, '127.0.0.1'), 'listening')
      return (one.address() as AddressInfo).port
    }),
  )
  const at = (index: number) => ({ port: ports[index] ?? 0, host: '127.0.0.1' })
  const secure = { url: `https://127.0.0.1:${ports[2]}`, appInsecure: true, protocol: 'h2' } as const
  const clear = { ...at(1), protocol: 'h2c' } as const
  const look = async (options: HttpTunnelOptions) => {
    await using tunnel = await startTunnel(options)
    const answers = ['/', '/a/x', '/b/x'].map(path => ask(tunnel.port, tunnel.host, { path }))
    return (await Promise.all(answers)).map(({ body }) => body)
  }
  expect(await look({ ...at(0), routes: { '/a': clear, '/b': secure } })).toEqual(['1.1', '2.0', '2.0'])
  expect(await look({ ...clear, routes: { '/a': at(0), '/b': { ...at(0), protocol: 'http/1.1' } } })).toEqual(
    ['2.0', '1.1', '1.1'],
  )
  for (const one of apps) one.close()
})

test('a server that does not know protocols of routes would speak HTTP/1.1: the tunnel is given back', async () => {
  const { promise: released, resolve } = Promise.withResolvers<unknown>()
  let granted = 0
  using old = speakingServer(({ type, ref, tunnel, name }, say) => {
    if (type === 'release') resolve(tunnel)
    const grant = {
      type: 'granted',
      ref,
      tunnel: ++granted * 3,
      name,
      url: 'http://app.localhost',
      resume: 'secret',
    }
    if (type === 'register') say(control(grant))
  })
  await using client = new TunnelClient({ server: `http://127.0.0.1:${old.port}`, reconnect: false })
  await client.http({ port: 1, subdomain: 'other', routes: { '/a': 1 } })
  const wish = client.http({ port: 1, subdomain: 'app', routes: { '/a': { port: 1, protocol: 'h2c' } } })
  expect(await codeOf(wish)).toBe('KIND_REFUSED')
  expect(await released).toBe(6)
})

test('the JSON wire carries no routes, and says so', async () => {
  await using server = await startServer()
  const client = new TunnelClient({
    server: `http://127.0.0.1:${server.port}`,
    wire: 'json',
    port: 1,
    routes: { '/api': 1 },
  })
  const refusal = await client.connect().catch((error: unknown) => error)
  expect(refusal).toMatchObject({ code: 'KIND_REFUSED' })
  expect(String(refusal)).toContain('no routes')
})

test.each([
  [{ api: 1 }, 'OPTION_INVALID'],
  [{ '/': 1 }, 'OPTION_INVALID'],
  [{ '/a b': 1 }, 'OPTION_INVALID'],
  [{ '/a?b': 1 }, 'OPTION_INVALID'],
  [{ '/a/../b': 1 }, 'OPTION_INVALID'],
  [{ '/a//b': 1 }, 'OPTION_INVALID'],
  [{ '/a': 1, '/a/': 2 }, 'OPTION_INVALID'],
  [{ '/a': 99_999 }, 'OPTION_INVALID'],
  [{ '/a': {} }, 'OPTION_INVALID'],
  [{ '/a': { port: 1, url: 'http://x' } }, 'OPTION_INVALID'],
  [{ '/a': { port: 1, protocol: 'h2' as const } }, 'OPTION_INVALID'],
  [{ '/a': { url: 'https://x', protocol: 'h2c' as const } }, 'OPTION_INVALID'],
  [{ '/a': { port: 1, protocol: 'h3' as 'h2' } }, 'OPTION_INVALID'],
  [Object.fromEntries(Array.from({ length: 33 }, (_, n) => [`/${n}`, 1])), 'OPTION_INVALID'],
])('%j is refused with %s', async (given, code) => {
  const make = async () => new TunnelClient({ port: 3000, routes: given })
  expect(await codeOf(make())).toBe(code)
})

test('the command line: a path and an app, in all the ways an app can be said', () => {
  expect(parseRoutes([])).toBeUndefined()
  expect(parseRoutes(['/api=8080', '/ws=https://app.lan', '/s=unix:/run/a=b'])).toEqual({
    '/api': { port: 8080, host: 'localhost' },
    '/ws': { url: 'https://app.lan' },
    '/s': { unix: '/run/a=b' },
  })
  expect(
    parseRoutes([
      '/a=8080,strip-prefix=/a',
      '/b=h2://a.lan,add-prefix=/v2/,strip-prefix=/b',
      '/c=unix:/run/a,b',
    ]),
  ).toEqual({
    '/a': { host: 'localhost', port: 8080, stripPrefix: '/a' },
    '/b': { url: 'https://a.lan', protocol: 'h2', addPrefix: '/v2/', stripPrefix: '/b' },
    '/c': { unix: '/run/a,b' },
  })
  expect(
    parseRoutes(['/a=h2c://app:50051', '/b=h2://localhost:8443', '/c=h2c+unix:/run/a', '/d=h2c:1']),
  ).toEqual({
    '/a': { url: 'http://app:50051', protocol: 'h2c' },
    '/b': { url: 'https://localhost:8443', appInsecure: true, protocol: 'h2' },
    '/c': { unix: '/run/a', protocol: 'h2c' },
    '/d': { port: 1, host: 'h2c' },
  })
  for (const bad of [['api=1'], ['=1'], ['/api'], ['/a=1', '/a=2'], ['/a='], ['/a=:']])
    expect(() => parseRoutes(bad)).toThrow()
})

test('the longest path wins, against a naive search', () => {
  const random = new Random(7)
  const segments = ['a', 'b', 'aa', 'ab', 'a%2Fb', '..', '']
  const randomPath = (most: number) =>
    `/${Array.from({ length: 1 + random.below(most) }, () => random.pick(segments)).join('/')}`
  for (let round = 0; round < 2_000 * FUZZ; round++) {
    const paths = [
      ...new Set(Array.from({ length: random.below(6) }, () => randomPath(3).replace(/\/+$/, ''))),
    ]
    let picked: string | undefined
    const upstreamOf = (name: string): TunnelUpstream => ({
      wire: 'streams',
      inFlight: 1,
      begin() {
        picked = name
        return {} as Exchange // nobody calls it
      },
      open: () => 'TUNNEL_BUSY',
    })
    const kept = paths.filter(path => path !== '')
    const routed = new RoutedUpstream(
      upstreamOf(''),
      kept.map(path => ({ path, upstream: upstreamOf(path) })),
    )
    expect(routed.inFlight).toBe(1 + kept.length)
    const query = random.chance(0.3) ? `?${random.pick(['', 'a/b', '/a'])}` : ''
    const path = randomPath(4)
    const prefix = random.chance(0.3) ? 'http://h' : ''
    const head = new RequestHead()
    const bytes = Buffer.from(`GET ${prefix}${path}${query} HTTP/1.1\r\nHost: h\r\n\r\n`)
    expect(parseRequestHead(head, bytes, 0, bytes.length, DEFAULT_LIMITS)).toBe(bytes.length)
    // The visit is only asked for its head.
    routed.begin({ head } as never)
    const wanted = kept
      .filter(one => path === one || path.startsWith(`${one}/`))
      .reduce((best, one) => (one.length > best.length ? one : best), '')
    expect(picked).toBe(wanted)
  }
})
