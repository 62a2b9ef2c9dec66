// Hosts below a tunnel's name: whose they are, what is told of them, and which may have a certificate.

import { expect, test } from 'bun:test'
import { type HttpTunnelOptions, TunnelClient } from '../../src/index.ts'
import type { Bounds } from '../../src/server/settings/bounds.ts'
import { HostsBelow } from '../../src/server/tunnels/hosts-below.ts'
import { destinationOf } from '../../src/server/tunnels/tunnels.ts'
import { ask } from '../support/ask.ts'
import { DEFAULT_BOUNDS } from '../support/bounded-server.ts'
import { next } from '../support/events.ts'
import { FUZZ, Random } from '../support/random.ts'
import { TcpProxy } from '../support/tcp-proxy.ts'
import { startServer, startTunnel } from '../support/tunnel.ts'

const echo = (request: Request) => new Response(request.headers.get('host'))

test('hosts below the name reach a wildcard tunnel, whatever their case, port and number of labels', async () => {
  await using tunnel = await startTunnel({ fetch: echo, wildcard: true })
  for (const host of [
    'app.localhost',
    'a.app.localhost',
    'a.b.app.localhost:81',
    'A_1.APP.localhost.',
    'xn--a.app.localhost',
  ])
    expect(await ask(tunnel.port, host)).toMatchObject({ status: 200, body: host })
  expect(await ask(tunnel.port, 'a.app2.localhost')).toMatchObject({ code: 'HOST_UNKNOWN' })
})

test('without the option, and for names that nobody holds, they are unknown as before', async () => {
  await using tunnel = await startTunnel({ fetch: echo })
  for (const host of ['a.app.localhost', 'a.other.localhost', 'a.api.localhost', 'app.www.localhost'])
    expect(await ask(tunnel.port, host)).toMatchObject({ status: 404, code: 'HOST_UNKNOWN' })
  expect(await ask(tunnel.port, 'other.localhost')).toMatchObject({ code: 'TUNNEL_NOT_FOUND' })
})

test('of two domains, one below the other, the longer one counts; control labels stay control', async () => {
  await using server = await startServer({ domains: ['example.test', 'eu.example.test'] })
  await using client = new TunnelClient({ server: `127.0.0.1:${server.port}` })
  await client.http({ subdomain: 'eu', wildcard: true, fetch: () => new Response('eu') })
  await client.http({ subdomain: 'app', wildcard: true, fetch: () => new Response('app') })
  const bodyOf = async (host: string, path = '/') => (await ask(server.port, host, { path })).body
  expect(await bodyOf('a.app.example.test')).toBe('app')
  expect(await bodyOf('a.app.eu.example.test')).toBe('app')
  expect(await bodyOf('x.eu.eu.example.test')).toBe('eu')
  expect(await bodyOf('eu.example.test', '/health')).toBe('OK')
  // Below the other domain this is the name "x", which nobody has: not a host below "eu".
  expect(await ask(server.port, 'x.eu.example.test')).toMatchObject({ code: 'TUNNEL_NOT_FOUND' })
  expect(await bodyOf('api.example.test', '/health')).toBe('OK')
  expect(await ask(server.port, 'x.api.example.test', { path: '/health' })).toMatchObject({
    code: 'HOST_UNKNOWN',
  })
})

test('reports of a wildcard tunnel, and of no other, say which host was asked for', async () => {
  await using tunnel = await startTunnel({ fetch: echo, wildcard: true })
  const heard = [
    next(tunnel.client, 'request'),
    next(tunnel.client, 'response'),
    next(tunnel.server, 'request'),
  ]
  await ask(tunnel.port, 'A.app.localhost:99')
  for (const report of await Promise.all(heard))
    expect(report).toMatchObject({ host: 'a.app.localhost', path: '/' })
  await using plain = await startTunnel({ fetch: echo })
  const seen = next(plain.client, 'request')
  await ask(plain.port, plain.host)
  expect(await seen).not.toHaveProperty('host')
})

test('a host below waits for a client that reconnects', async () => {
  await using server = await startServer()
  using proxy = new TcpProxy(server.port)
  await using client = new TunnelClient({
    server: `127.0.0.1:${proxy.port}`,
    subdomain: 'app',
    wildcard: true,
    fetch: echo,
    maxBackoffMs: 10,
  })
  await client.connect()
  const lost = next(server, 'disconnection')
  proxy.cutAll('reset')
  await lost
  expect(await ask(server.port, 'a.app.localhost')).toMatchObject({ status: 200 })
})

async function certifying(limits: Partial<Bounds>, options: HttpTunnelOptions) {
  const server = await startServer({ domains: ['example.test'], limits })
  const client = new TunnelClient({ server: `127.0.0.1:${server.port}` })
  const wild = await client.http({ subdomain: 'wild', wildcard: true, ...options })
  return {
    server,
    client,
    wild,
    check: async (domain: string) =>
      (await ask(server.port, 'example.test', { path: `/tls-check?domain=${encodeURIComponent(domain)}` }))
        .status,
    visit: async (host: string) => (await ask(server.port, host)).status,
    async [Symbol.asyncDispose]() {
      await client.disconnect()
      await server.stop()
    },
  }
}

test('/tls-check confirms hosts below a wildcard tunnel that its app answered for, and questions use up nothing', async () => {
  const tenants = ['anna', 'bert', 'carl']
  const fetch = (request: Request) => {
    const [tenant = ''] = new URL(request.url).hostname.split('.')
    return new Response(null, { status: tenants.includes(tenant) ? 200 : 404 })
  }
  await using tunnel = await certifying({ maxHostsBelow: 2 }, { fetch })
  const { check, visit } = tunnel
  await tunnel.client.http({ subdomain: 'tame', fetch })
  for (let stranger = 0; stranger < 50; stranger++) {
    expect(await check(`made-up-${stranger}.wild.example.test`)).toBe(404)
    expect(await visit(`made-up-${stranger}.wild.example.test`)).toBe(404)
  }
  expect(await check('wild.example.test')).toBe(200)
  expect(await check('anna.wild.example.test')).toBe(404)
  expect(await visit('anna.wild.example.test')).toBe(200)
  expect(await check('Anna.wild.example.test')).toBe(200)
  expect(await visit('wild.example.test')).toBe(404)
  expect(await visit('bert.wild.example.test')).toBe(200)
  expect(await check('bert.wild.example.test')).toBe(200)
  // Two are there.
  expect(await visit('carl.wild.example.test')).toBe(200)
  expect(await check('carl.wild.example.test')).toBe(404)
  expect(await check('anna.wild.example.test')).toBe(200)
  expect(await check('a.tame.example.test')).toBe(404)
  expect(await check('a.nobody.example.test')).toBe(404)
  expect(await check('a.api.example.test')).toBe(404)
  await tunnel.wild.close()
  expect(await check('anna.wild.example.test')).toBe(404)
})

test('/tls-check confirms the hosts that the client names, also when strangers took all other places', async () => {
  const wildcardHosts = ['Shop', 'a.b', 'third']
  await using tunnel = await certifying({ maxHostsBelow: 2 }, { fetch: echo, wildcardHosts })
  const { check, visit } = tunnel
  for (let stranger = 0; stranger < 5; stranger++)
    expect(await visit(`made-up-${stranger}.wild.example.test`)).toBe(200)
  expect(await check('made-up-1.wild.example.test')).toBe(200)
  expect(await check('made-up-2.wild.example.test')).toBe(404)
  expect(await check('shop.wild.example.test')).toBe(200)
  expect(await check('a.b.wild.example.test')).toBe(200)
  expect(await check('b.wild.example.test')).toBe(404)
  // More than the server takes.
  expect(await check('third.wild.example.test')).toBe(404)
})

test('/tls-check confirms nothing that no authority would', async () => {
  await using tunnel = await certifying({ maxHostsBelow: 1 }, { fetch: echo })
  for (const odd of ['a_b', '-', 'a-', 'a'.repeat(64), `${'a.'.repeat(120)}b`]) {
    const host = `${odd}.wild.example.test`
    await tunnel.visit(host)
    expect([odd, await tunnel.check(host)]).toEqual([odd, 404])
  }
  // They take no place.
  expect(await tunnel.visit('good.wild.example.test')).toBe(200)
  expect(await tunnel.check('good.wild.example.test')).toBe(200)
  for (const odd of ['.wild.example.test', 'a..wild.example.test', 'a b.wild.example.test'])
    expect([odd, await tunnel.check(odd)]).toEqual([odd, 404])
})

test('a host below is forgotten a day after its last answer', () => {
  let now = 1
  const DAY_MS = 86_400_000
  const hosts = new HostsBelow(
    () => ({ ...DEFAULT_BOUNDS, maxHostsBelow: 1 }),
    () => now,
  )
  hosts.answered('a')
  now += DAY_MS - 1
  expect(hosts.has('a', false)).toBe(true)
  hosts.answered('b')
  expect(hosts.has('b', false)).toBe(false)
  now += 1
  expect(hosts.has('a', false)).toBe(false)
  hosts.answered('b')
  expect(hosts.has('b', false)).toBe(true)
})

test.each([
  [['anna'], false],
  [['a_b'], true],
  [['a..b'], true],
  [[''], true],
  [Array.from({ length: 101 }, (_, index) => `a${index}`), true],
])('wildcardHosts %p with wildcard %p cannot be used', async (wildcardHosts, wildcard) => {
  const client = new TunnelClient({ server: '127.0.0.1:9' })
  const refusal = await client.http({ wildcard, wildcardHosts, fetch: echo }).catch((error: unknown) => error)
  expect(refusal).toMatchObject({ code: 'OPTION_INVALID' })
})

test('the JSON wire has no wildcards, and says so', async () => {
  await using server = await startServer()
  const client = new TunnelClient({
    server: `127.0.0.1:${server.port}`,
    wire: 'json',
    fetch: echo,
    wildcard: true,
  })
  const refusal = await client.connect().catch((error: unknown) => error)
  expect(refusal).toMatchObject({ code: 'KIND_REFUSED' })
  expect(String(refusal)).toContain('no wildcard')
})

test('destinationOf, against one that takes labels apart', () => {
  const random = new Random(11)
  const labels = ['a', 'b', 'api', 'www', 'app', 'eu', 'x_y', 'localhost', 'test']
  const nameOf = (most: number) =>
    Array.from({ length: 1 + random.below(most) }, () => random.pick(labels)).join('.')
  const naive = (host: string, domains: readonly string[]) => {
    const parts = host.split('.')
    const fitting = domains
      .map(domain => domain.split('.'))
      .filter(
        domain => domain.join('.') === parts.slice(-domain.length).join('.') && parts.length >= domain.length,
      )
      .sort((one, other) => other.length - one.length)[0]
    if (fitting === undefined) return host === 'localhost' ? { kind: 'control' } : { kind: 'unknown' }
    const left = parts.slice(0, parts.length - fitting.length)
    const name = left.at(-1)
    if (name === undefined) return { kind: 'control' }
    const isControl = name === 'api' || name === 'www'
    if (isControl) return { kind: left.length === 1 ? 'control' : 'unknown' }
    return { kind: 'tunnel', name, isBelow: left.length > 1 }
  }
  for (let round = 0; round < 20_000 * FUZZ; round++) {
    const domains = [...new Set(Array.from({ length: 1 + random.below(3) }, () => nameOf(3)))]
    const sorted = domains.toSorted((one, other) => other.length - one.length)
    const host = random.chance(0.7) ? `${nameOf(3)}.${random.pick(domains)}` : nameOf(5)
    const found: unknown = destinationOf(host, sorted)
    expect([host, domains, found]).toEqual([host, domains, naive(host, domains)])
  }
})
