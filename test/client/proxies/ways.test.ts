// A client behind a company proxy, end to end: carrier, links and probe go through it, whatever it speaks.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { createHash } from 'node:crypto'
import { TunnelClient, type TunnelServer } from '../../../src/index.ts'
import { eventually, next } from '../../support/events.ts'
import { OutboundProxy, type OutboundProxyOptions } from '../../support/outbound-proxy.ts'
import { TEST_CERT, TEST_KEY } from '../../support/tls.ts'
import { startServer } from '../../support/tunnel.ts'
import { within } from '../../support/within.ts'

const BULK = Buffer.alloc(5_000_000, 'not the same byte again and again')
const sha256 = (data: Uint8Array) => createHash('sha256').update(data).digest('hex')
const login = { user: 'anna', password: 'p@ss:w/örd%' }

let origin: Bun.Server<undefined>
/** `named`: by TLS, at a name that its URLs are below. */
type To = 'ws' | 'wss' | 'named'
const servers: Partial<Record<To, TunnelServer>> = {}

beforeAll(async () => {
  origin = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    async fetch(request, server) {
      if (server.upgrade(request)) return undefined
      if (request.method === 'POST') return new Response(sha256(await request.bytes()))
      return new Response(new URL(request.url).pathname === '/bulk' ? new Uint8Array(BULK) : 'small')
    },
    websocket: { message: (socket, message) => void socket.send(message) },
  })
  const domains = ['localhost', 'tunnel.test']
  servers.ws = await startServer({ domains })
  const tls = { cert: TEST_CERT, key: TEST_KEY }
  servers.wss = await startServer({ domains, tls })
  servers.named = await startServer({ domains: domains.toReversed(), tls })
})
afterAll(async () => {
  await servers.ws?.stop()
  await servers.wss?.stop()
  await servers.named?.stop()
  await origin.stop(true)
})

interface Way {
  readonly name: string
  readonly proxy: OutboundProxyOptions
  /** Scheme of the URL, if not the proxy's kind. */
  readonly scheme?: string
  readonly to: To
  /** What the client calls the server. Default 127.0.0.1. */
  readonly host?: string
  readonly wire?: 'json'
  /** How the proxy is asked. */
  readonly asked: string
}

const names = ['tunnel.test', 'app.tunnel.test']
const WAYS: readonly Way[] = [
  { name: 'CONNECT', proxy: { kind: 'http' }, to: 'ws', asked: '127.0.0.1:' },
  { name: 'CONNECT with Basic', proxy: { kind: 'http', login }, to: 'ws', asked: '127.0.0.1:' },
  { name: 'CONNECT on the JSON wire', proxy: { kind: 'http' }, to: 'ws', wire: 'json', asked: '127.0.0.1:' },
  {
    name: 'CONNECT to a name that only the proxy knows, with TLS',
    proxy: { kind: 'http', login, names },
    to: 'named',
    host: 'tunnel.test',
    asked: 'tunnel.test:',
  },
  { name: 'CONNECT to an IPv4 address, with TLS', proxy: { kind: 'http' }, to: 'wss', asked: '127.0.0.1:' },
  { name: 'CONNECT over TLS', proxy: { kind: 'http', tls: true, login }, to: 'ws', asked: '127.0.0.1:' },
  {
    name: 'CONNECT over TLS, TLS in TLS',
    proxy: { kind: 'http', tls: true },
    to: 'wss',
    asked: '127.0.0.1:',
  },
  { name: 'SOCKS5', proxy: { kind: 'socks5' }, to: 'ws', asked: '127.0.0.1:' },
  { name: 'SOCKS5 with a password', proxy: { kind: 'socks5', login }, to: 'wss', asked: '127.0.0.1:' },
  {
    name: 'SOCKS5 with names resolved by the proxy',
    proxy: { kind: 'socks5', login, names },
    scheme: 'socks5h',
    to: 'named',
    host: 'tunnel.test',
    asked: 'tunnel.test:',
  },
]

function clientFor(
  way: Pick<Way, 'to' | 'host' | 'wire'>,
  options: { proxy?: string | false; subdomain?: string },
): TunnelClient {
  const host = `${way.host ?? '127.0.0.1'}:${servers[way.to]?.port}`
  return new TunnelClient({
    server: `${way.to === 'ws' ? 'ws' : 'wss'}://${host}`,
    ca: TEST_CERT,
    host: '127.0.0.1',
    port: origin.port ?? 0,
    subdomain: 'app',
    wire: way.wire ?? 'streams',
    maxBackoffMs: 50,
    ...options,
  })
}

function visit(to: To, path: string, init: RequestInit = {}): Promise<Response> {
  const scheme = to === 'ws' ? 'http' : 'https'
  return fetch(`${scheme}://127.0.0.1:${servers[to]?.port}${path}`, {
    ...init,
    headers: { host: 'app.localhost' },
    tls: { rejectUnauthorized: false },
  })
}

describe.each(WAYS)('through a proxy: $name', way => {
  const { to, scheme, wire } = way

  test('requests, a WebSocket and bulk over links pass, and all of it goes through the proxy', async () => {
    using proxy = await OutboundProxy.start(way.proxy)
    await using client = clientFor(way, { proxy: proxy.url(scheme) })
    await within(client.connect(), 'the client')
    expect(await (await visit(to, '/')).text()).toBe('small')
    if (wire !== 'json') expect(await echo(to, 'hello')).toBe('hello')
    for (let round = 0; round < 2; round++) {
      expect(sha256(await (await visit(to, '/bulk')).bytes())).toBe(sha256(BULK))
      const answer = await visit(to, '/', { method: 'POST', body: BULK })
      expect(await answer.text()).toBe(sha256(BULK))
    }
    expect(await client.probe()).toBe(true)
    expect(proxy.targets.length).toBeGreaterThan(wire === 'json' ? 0 : 2)
    for (const target of proxy.targets) {
      expect(target).toMatch(/^(127\.0\.0\.1|(app\.)?tunnel\.test|localhost):/)
      expect(target).toContain(`:${servers[to]?.port}`)
    }
    expect(proxy.targets[0]).toStartWith(way.asked)
    expect(proxy.refused).toBe(0)
  })
})

test('a proxy that goes away and comes back costs a reconnect, through it again, under the same name', async () => {
  using proxy = await OutboundProxy.start({ kind: 'http', login })
  await using client = clientFor({ to: 'wss' }, { proxy: proxy.url() })
  await client.connect()
  const url = client.getTunnelUrl()
  const errors: Error[] = []
  client.on('error', error => errors.push(error))
  const back = next(client, 'connected')
  await proxy.restart(async () => {
    await eventually(() => errors.length > 0, 'a try that fails')
  })
  expect((await back).url).toBe(url)
  expect(await (await visit('wss', '/')).text()).toBe('small')
  const [first] = errors
  expect(first).toMatchObject({ code: 'PROXY_FAILED' })
  expect(first?.message).toContain(`http://127.0.0.1:${proxy.port}`)
  expect(String(first?.message)).not.toContain('anna')
})

test('a proxy that no longer accepts the password ends the client: more tries would lock the account', async () => {
  using proxy = await OutboundProxy.start({ kind: 'socks5', login })
  await using client = clientFor({ to: 'ws' }, { proxy: proxy.url(), subdomain: 'locked' })
  await client.connect()
  const closed = next(client, 'close')
  // Its name stays leased: no other test asks for this one.
  proxy.login = { user: 'anna', password: 'another' }
  proxy.cutAll()
  expect((await closed).error).toMatchObject({ code: 'PROXY_AUTH_REFUSED' })
  expect(proxy.refused).toBe(1)
})

test('a link that the proxy does not let pass costs speed and nothing else', async () => {
  using proxy = await OutboundProxy.start({ kind: 'http' })
  await using client = clientFor({ to: 'ws' }, { proxy: proxy.url() })
  await client.connect()
  proxy.login = login
  for (let round = 0; round < 2; round++) {
    expect(sha256(await (await visit('ws', '/bulk')).bytes())).toBe(sha256(BULK))
  }
  expect(proxy.targets.length).toBe(1)
  expect(proxy.refused).toBeGreaterThan(0)
  expect(client.isConnected()).toBe(true)
})

test('what the environment says holds for everything but this machine', async () => {
  const before = { ...process.env }
  using proxy = await OutboundProxy.start({ kind: 'http', names })
  Object.assign(process.env, { HTTPS_PROXY: proxy.url(), NO_PROXY: '' })
  try {
    await using away = clientFor({ to: 'wss', host: 'tunnel.test' }, {})
    await away.connect()
    expect(proxy.targets).toEqual([`tunnel.test:${servers.wss?.port}`])
    await using here = clientFor({ to: 'wss' }, {})
    await here.connect()
    expect(proxy.targets.length).toBe(1)
  } finally {
    for (const name of ['HTTPS_PROXY', 'NO_PROXY']) {
      if (before[name] === undefined) delete process.env[name]
      else process.env[name] = before[name]
    }
  }
})

function echo(to: To, message: string): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>()
  const socket = new WebSocket(`${to === 'ws' ? 'ws' : 'wss'}://127.0.0.1:${servers[to]?.port}/`, {
    headers: { host: 'app.localhost' },
    tls: { rejectUnauthorized: false },
  })
  socket.onopen = () => socket.send(message)
  socket.onmessage = ({ data }) => {
    resolve(String(data))
    socket.close()
  }
  socket.onerror = () => reject(new Error('the WebSocket failed'))
  return within(promise, 'the echo')
}
