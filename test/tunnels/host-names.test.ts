// Custom domains: hosts of customers that a tunnel answers, who may have them, and when they are free again.

import { expect, test } from 'bun:test'
import type { HttpTunnelOptions } from '../../src/client/options.ts'
import { TunnelClient, type TunnelServer } from '../../src/index.ts'
import type { TokenRule } from '../../src/server/settings/options.ts'
import { encodeControl, parseClientMessage, type Register } from '../../src/wire/control.ts'
import { ask } from '../support/ask.ts'
import type { BoundedOptions } from '../support/bounded-server.ts'
import { rejection } from '../support/rejection.ts'
import { TcpProxy } from '../support/tcp-proxy.ts'
import { startServer } from '../support/tunnel.ts'
import { within } from '../support/within.ts'

const HOST = 'www.customer.example'
const echo = (request: Request) => new Response(`${request.headers.get('host')}`)

interface Ends extends AsyncDisposable {
  readonly server: TunnelServer
  clientOf(token?: string): TunnelClient
}

async function start(
  rules: readonly (string | TokenRule)[] = ['mine'],
  options: BoundedOptions = {},
): Promise<Ends> {
  const server = await startServer({ tokens: rules, ...options })
  const clients: TunnelClient[] = []
  return {
    server,
    clientOf(token = 'mine') {
      const client = new TunnelClient({ server: `http://127.0.0.1:${server.port}`, token, reconnect: false })
      clients.push(client)
      return client
    },
    async [Symbol.asyncDispose]() {
      for (const client of clients) await client.disconnect()
      await server.stop()
    },
  }
}

const codeOf = (options: HttpTunnelOptions, client: TunnelClient): Promise<unknown> =>
  client.http({ fetch: echo, ...options }).then(
    () => 'granted',
    (error: unknown) => (error instanceof Error && 'code' in error ? error.code : error),
  )

test('a host of the customer reaches the tunnel, whatever its case and port, and nothing below it does', async () => {
  await using ends = await start()
  const tunnel = await ends
    .clientOf()
    .http({ subdomain: 'shop', hosts: ['WWW.Customer.example.'], fetch: echo })
  const { port } = ends.server
  for (const host of [HOST, 'WWW.CUSTOMER.EXAMPLE', `${HOST}:8443`, `${HOST}.`, 'shop.localhost'])
    expect(await ask(port, host)).toMatchObject({ status: 200, body: host })
  for (const host of ['customer.example', `a.${HOST}`, 'other.example'])
    expect(await ask(port, host)).toMatchObject({ status: 404, code: 'HOST_UNKNOWN' })
  expect(ends.server.isKnownHost(HOST)).toBe(true)
  await tunnel.close()
  expect(await ask(port, HOST)).toMatchObject({ status: 404, code: 'HOST_UNKNOWN' })
  expect(ends.server.isKnownHost(HOST)).toBe(false)
})

test('many requests of one visitor, lanes included, reach it by either name', async () => {
  await using ends = await start()
  await ends.clientOf().http({ subdomain: 'shop', hosts: [HOST], fetch: echo })
  const base = `http://127.0.0.1:${ends.server.port}`
  for (let round = 0; round < 40; round++) {
    const host = round % 3 === 0 ? 'shop.localhost' : HOST
    expect(await (await fetch(base, { headers: { host } })).text()).toBe(host)
  }
})

test('what the token does not name is refused, and so are hosts of the server', async () => {
  await using ends = await start([
    'mine',
    { token: 'one', hosts: ['*.customer.example', 'bare.example'] },
    { token: 'none' },
  ])
  const outcome = (token: string, host: string) =>
    codeOf({ hosts: [host], subdomain: 'shop', exact: true }, ends.clientOf(token))
  expect(await outcome('none', HOST)).toBe('NOT_ALLOWED')
  expect(await outcome('one', 'customer.example')).toBe('NOT_ALLOWED')
  expect(await outcome('one', 'wwwXcustomer.example')).toBe('NOT_ALLOWED')
  for (const host of ['shop.localhost', 'api.localhost', 'a.b.localhost'])
    expect(await outcome('mine', host)).toBe('NOT_ALLOWED')
  for (const host of [
    '10.0.0.1',
    'intranet',
    'a b.example',
    '*.customer.example',
    `${'a'.repeat(64)}.example`,
  ])
    expect(await outcome('mine', host)).toBe('OPTION_INVALID')
  expect(await outcome('one', HOST)).toBe('granted')
  await using open = await start([])
  const refusal = await rejection(open.clientOf().http({ hosts: [HOST], fetch: echo }))
  expect(refusal).toMatchObject({ code: 'NOT_ALLOWED', message: expect.stringContaining(HOST) })
})

test('one host is one tunnel: taken until it is given back; the same client may ask for others of its own', async () => {
  await using ends = await start(['mine', 'other'])
  const [one, two] = [ends.clientOf(), ends.clientOf('other')]
  const tunnel = await one.http({ subdomain: 'one', hosts: [HOST, 'b.example'], fetch: echo })
  expect(await codeOf({ subdomain: 'two', hosts: ['c.example', HOST] }, two)).toBe('HOST_TAKEN')
  expect(await codeOf({ subdomain: 'one', exact: true, hosts: [HOST] }, two)).toBe('NAME_TAKEN')
  // Nothing of the refused one is kept.
  expect(await ask(ends.server.port, 'c.example')).toMatchObject({ code: 'HOST_UNKNOWN' })
  expect(await codeOf({ subdomain: 'three', hosts: [HOST] }, one)).toBe('HOST_TAKEN')
  await tunnel.close()
  expect(await codeOf({ subdomain: 'two', hosts: ['c.example', HOST] }, two)).toBe('granted')
})

test('a lost client keeps its hosts for the lease; then they are free', async () => {
  await using ends = await start(['mine'], { limits: { leaseMs: 1_000, holdTimeoutMs: 60_000 } })
  const { port } = ends.server
  using proxy = new TcpProxy(port)
  const client = new TunnelClient({
    server: `http://127.0.0.1:${proxy.port}`,
    token: 'mine',
    reconnect: false,
  })
  await client.http({ subdomain: 'one', hosts: [HOST], fetch: echo })
  const gone = Promise.withResolvers<string>()
  ends.server.on('disconnection', ({ reason }) => gone.resolve(reason))
  proxy.cutAll()
  await within(gone.promise, 'the loss')
  // It waits for the client, so the host is still the tunnel's; when the lease is over, so is the wait.
  expect(await codeOf({ subdomain: 'two', hosts: [HOST] }, ends.clientOf())).toBe('HOST_TAKEN')
  expect(await within(ask(port, HOST), 'the end of the lease')).toMatchObject({ code: 'CLIENT_GONE' })
  expect(await codeOf({ subdomain: 'two', hosts: [HOST] }, ends.clientOf())).toBe('granted')
  await client.disconnect()
})

test('clients of a pool share a host, and the last one gives it back', async () => {
  await using ends = await start()
  const options = { subdomain: 'pool', pool: true, hosts: [HOST], fetch: echo }
  const [one, two] = [ends.clientOf(), ends.clientOf()]
  const first = await one.http(options)
  const second = await two.http(options)
  await first.close()
  expect(await ask(ends.server.port, HOST)).toMatchObject({ status: 200 })
  await second.close()
  expect(await ask(ends.server.port, HOST)).toMatchObject({ code: 'HOST_UNKNOWN' })
})

test('hosts are counted: for a rule, for a token, in total; what is given back counts no more', async () => {
  await using ends = await start(['mine', { token: 'two', hosts: ['*'], maxHosts: 2 }], {
    limits: { maxTokenHosts: 3, maxAllHosts: 4 },
  })
  const two = ends.clientOf('two')
  expect(await codeOf({ hosts: ['a.example', 'b.example', 'c.example'] }, two)).toBe('CLIENT_LIMIT')
  const held = await two.http({ hosts: ['a.example', 'b.example'], fetch: echo })
  expect(await codeOf({ hosts: ['c.example'] }, two)).toBe('CLIENT_LIMIT')
  const mine = ends.clientOf()
  expect(await codeOf({ hosts: ['c.example', 'd.example', 'e.example'] }, mine)).toBe('CLIENT_LIMIT')
  expect(await codeOf({ hosts: ['c.example', 'd.example'] }, mine)).toBe('granted')
  await held.close()
  expect(await codeOf({ hosts: ['e.example', 'f.example'] }, mine)).toBe('CLIENT_LIMIT')
  expect(await codeOf({ hosts: ['e.example'] }, mine)).toBe('granted')
})

test('a reload takes tunnels back whose hosts the token does not open any more', async () => {
  await using ends = await start([{ token: 'mine', hosts: ['*'] }])
  const client = ends.clientOf()
  const taken = Promise.withResolvers<string>()
  ends.server.on('disconnection', ({ reason }) => taken.resolve(reason))
  await client.http({ subdomain: 'one', hosts: [HOST], fetch: echo })
  await ends.server.reload({ tokens: [{ token: 'mine', hosts: ['other.example'] }] })
  expect(await within(taken.promise, 'the refusal')).toBe('NOT_ALLOWED')
  expect(await ask(ends.server.port, HOST)).toMatchObject({ code: 'HOST_UNKNOWN' })
})

test('after a restart requests for a host wait for its client, where tokens open hosts', async () => {
  await using ends = await start(['mine'], { limits: { startupHoldMs: 60_000 } })
  const { port } = ends.server
  const answer = ask(port, HOST)
  await ask(port, 'localhost', { path: '/health' })
  await ends.clientOf().http({ hosts: [HOST], fetch: echo })
  expect(await within(answer, 'the answer')).toMatchObject({ status: 200, body: HOST })
})

test('the JSON wire has no hosts, and says so', async () => {
  await using ends = await start()
  const { port } = ends.server
  const client = new TunnelClient({
    server: `http://127.0.0.1:${port}`,
    token: 'mine',
    wire: 'json',
    hosts: [HOST],
    fetch: echo,
  })
  expect(await rejection(client.connect())).toMatchObject({ code: 'KIND_REFUSED' })
  await client.disconnect()
})

test('a registration with broken hosts breaks the protocol', () => {
  const message = { type: 'register', ref: 1, kind: 'http', name: 'app' } as const
  const parsed = (fields: object) => parseClientMessage(encodeControl({ ...message, ...fields } as Register))
  expect(parsed({ hostNames: [HOST] })).toMatchObject({ hostNames: [HOST] })
  for (const hostNames of [
    'a.example',
    ['A.example'],
    ['intranet'],
    ['10.0.0.1'],
    ['a.example', 'a.example'],
    Array.from({ length: 33 }, (_, index) => `h${index}.example`),
  ])
    expect(parsed({ hostNames })).toBeUndefined()
  expect(parsed({ kind: 'tcp', name: undefined, hostNames: [HOST] })).toBeUndefined()
})
