// What visitors get while an app or its client is away: the page that the client has given, and nobody else's.

import { expect, test } from 'bun:test'
import { join } from 'node:path'
import {
  type AwayOptions,
  type TokenRule,
  TunnelClient,
  type TunnelClientOptions,
  type TunnelServer,
} from '../../src/index.ts'
import { KeptPages } from '../../src/parts/pages/kept-pages.ts'
import { adminOptions, askAdmin } from '../support/admin.ts'
import { ask } from '../support/ask.ts'
import { next } from '../support/events.ts'
import { closedAfterEach } from '../support/opened.ts'
import { freePort } from '../support/ports.ts'
import { folder } from '../support/programs.ts'
import { rejection } from '../support/rejection.ts'
import { TcpProxy } from '../support/tcp-proxy.ts'
import { startServer } from '../support/tunnel.ts'

const { open, defer } = closedAfterEach()
const BROWSER = { 'sec-fetch-mode': 'navigate', accept: 'text/html' }
const HTML = '<!doctype html><title>Away</title><script>alert(1)</script>Back at nine'

const serve = async (limits = {}, more = {}) =>
  open(await startServer({ tokens: ['token-one', 'token-two'], limits: { leaseMs: 50, ...limits }, ...more }))

async function share(server: TunnelServer, options: TunnelClientOptions): Promise<TunnelClient> {
  const client = open(
    new TunnelClient({
      server: `http://127.0.0.1:${server.port}`,
      subdomain: 'shop',
      exact: true,
      token: 'token-one',
      port: freePort(),
      ...options,
    }),
  )
  client.on('error', () => {})
  await client.connect()
  return client
}

async function page(name: string, text: string) {
  const dir = open(await folder('away'))
  const path = join(dir.path, name)
  await Bun.write(path, text)
  return path
}

const visit = (server: TunnelServer, headers: Readonly<Record<string, string>> = BROWSER) =>
  ask(server.port, 'shop.localhost', { headers })

/** Until the name has no client. */
async function leaves(server: TunnelServer): Promise<void> {
  for (;;) if ((await visit(server, {})).code === 'TUNNEL_NOT_FOUND') return
}

test('while the app is away, and after the client has left: a browser gets the page, a program the code', async () => {
  const server = await serve()
  const client = await share(server, { away: { file: await page('away.html', HTML), status: 503 } })
  expect(await visit(server)).toEqual({ status: 503, body: HTML, code: 'ORIGIN_REFUSED' })
  expect(await visit(server, {})).toMatchObject({ status: 502, code: 'ORIGIN_REFUSED' })
  const response = await fetch(`http://127.0.0.1:${server.port}/`, {
    headers: { host: 'shop.localhost', ...BROWSER },
  })
  expect(response.headers.get('content-type')).toBe('text/html; charset=utf-8')
  // Nothing of it runs.
  expect(response.headers.get('content-security-policy')).toStartWith(
    "default-src 'none'; style-src 'unsafe-inline'",
  )
  expect(response.headers.get('content-security-policy')).toContain('; sandbox allow-top-navigation-by')
  await client.disconnect()
  await leaves(server)
  expect(await visit(server)).toEqual({ status: 503, body: HTML, code: 'TUNNEL_NOT_FOUND' })
  expect((await ask(server.port, 'other.localhost', { headers: BROWSER })).body).not.toBe(HTML)
})

test('with a lost connection visitors wait for the client, and get the page when its time is over', async () => {
  const server = await serve({ leaseMs: 1_000 })
  const relay = new TcpProxy(server.port)
  defer(() => relay[Symbol.dispose]())
  const url = `http://127.0.0.1:${relay.port}`
  await share(server, { server: url, away: { text: 'Back at nine' }, reconnect: false })
  relay.cutAll()
  expect(await visit(server)).toMatchObject({ body: 'Back at nine', code: 'CLIENT_GONE' })
})

test('text and JSON are for programs as well, HEAD has no body, and the status is that of the code by default', async () => {
  const server = await serve()
  await share(server, { away: { text: 'Back at nine' } })
  expect(await visit(server, {})).toEqual({ status: 502, body: 'Back at nine', code: 'ORIGIN_REFUSED' })
  const head = await ask(server.port, 'shop.localhost', { method: 'HEAD' })
  expect(head).toEqual({ status: 502, body: '', code: 'ORIGIN_REFUSED' })
})

test('an app that is there answers for itself, and its faults are no absence', async () => {
  const server = await serve()
  const fetch = () => {
    throw new Error('broken')
  }
  await share(server, { away: { text: 'Back at nine' }, port: undefined, fetch })
  expect(await visit(server, {})).toMatchObject({ code: 'HANDLER_FAILED' })
})

test('the file is read at each registration, and a tunnel without a page, or of another token, has none', async () => {
  const server = await serve()
  const file = await page('away.txt', 'first')
  const away: AwayOptions = { file }
  const first = await share(server, { away })
  await Bun.write(file, 'second')
  expect((await visit(server)).body).toBe('first')
  await first.disconnect()
  await leaves(server)
  await first.connect()
  expect((await visit(server)).body).toBe('second')
  await first.disconnect()
  await leaves(server)
  const other = await share(server, { token: 'token-two' })
  expect((await visit(server, {})).body).toContain('ORIGIN_REFUSED')
  await other.disconnect()
  await leaves(server)
  expect((await visit(server, {})).body).toContain('TUNNEL_NOT_FOUND')
})

test('over HTTP/2 it is the same page, and a guard asks first', async () => {
  const server = await serve()
  const guard = { bearer: 'a-token-of-a-machine' }
  const guarded = open(
    await startServer({ tokens: ['token-one'], guarding: (await import('../../src/index.ts')).guarding() }),
  )
  await share(guarded, { away: { text: 'Back at nine' }, guard })
  expect(await visit(guarded, {})).toMatchObject({ status: 401, code: 'ACCESS_REQUIRED' })
  expect((await visit(guarded, { authorization: `Bearer ${guard.bearer}` })).body).toBe('Back at nine')
  await share(server, { away: { text: 'Back at nine' } })
  const { connect } = await import('node:http2')
  const session = connect(`http://127.0.0.1:${server.port}`)
  const stream = session.request({ ':authority': 'shop.localhost', ':path': '/' })
  let body = ''
  for await (const piece of stream) body += String(piece)
  session.destroy()
  expect(body).toBe('Back at nine')
})

test.each<[string, AwayOptions]>([
  ['away needs either a file or a text', {}],
  ['away.status must be 200, or 400 to 599, not 302', { text: 'x', status: 302 }],
  ['is not a .html, .htm, .txt or .json file', { file: import.meta.path }],
  ['cannot be read: there is no such file', { file: '/nowhere.html' }],
  ['longer than 32768 bytes', { text: 'x'.repeat(32_769) }],
])('refused at once: %s', (text, away) => {
  expect(() => new TunnelClient({ port: 1, away })).toThrow(text)
})

test('what a client of another make sends is checked by the server', async () => {
  const server = await serve()
  const { installPages } = await import('../../src/parts/pages/install.ts')
  const { wishes } = installPages({} as never)
  for (const wish of [
    null,
    'x',
    { type: 'text/javascript', text: '' },
    { type: 'text/plain', text: 'x', status: 301 },
    { type: 'text/plain', text: '\ud800' },
    { type: 'text/plain', text: 'x', more: 1 },
  ])
    expect(wishes?.away?.(wish)).toStartWith('away must be')
  // A whole page, with a guard as large as one may be, does not fit.
  const guard = { allow: Array.from({ length: 900 }, (_, at) => `10.0.${at % 250}.0/24`) }
  const error = (await rejection(share(server, { away: { text: '"'.repeat(32_768) }, guard }))) as Error
  expect(error).toMatchObject({ code: 'OPTION_INVALID' })
})

test('pages in memory: a share for each owner and a bound for all, the oldest goes first, and a day without a client', () => {
  let now = 0
  const pages = new KeptPages(() => now)
  const big = { type: 'text/plain' as const, text: 'x'.repeat(32_768) }
  for (let at = 0; at < 40; at++) pages.keep(`a${at}`, 'one', big, () => true)
  expect([pages.of('a0'), pages.of('a8')]).toEqual([undefined, undefined])
  expect(pages.of('a39')).toBe(big)
  for (let owner = 0; owner < 200; owner++)
    for (let at = 0; at < 20; at++) pages.keep(`b${owner}-${at}`, `b${owner}`, big, () => true)
  const kept = Array.from({ length: 200 }, (_, owner) =>
    Array.from({ length: 20 }, (_, at) => pages.of(`b${owner}-${at}`)),
  )
  expect(kept.flat().filter(Boolean).length * 32_768).toBeLessThanOrEqual(67_108_864)
  // The last one of many owners was not the victim of one that has more.
  expect(pages.of('b199-19')).toBe(big)
  expect(pages.missed('b199-19')).toBe(true)
  now = 86_400_000
  expect(pages.missed('b199-19')).toBe(false)
  expect(pages.of('b199-19')).toBeUndefined()
})

test.each<[string, readonly (string | TokenRule)[]]>([
  ['its token is revoked', ['token-two']],
  ['its token may not have the name', ['token-two', { token: 'token-one', names: ['other'] }]],
  ['the name is kept for another', ['token-one', { token: 'token-two', names: ['shop'], reserve: true }]],
])('the page goes when %s', async (_, tokens) => {
  const server = await serve()
  const client = await share(server, { away: { text: 'Give me your password' } })
  await client.disconnect()
  await leaves(server)
  expect(await visit(server)).toMatchObject({ body: 'Give me your password' })
  await server.reload({ tokens })
  expect((await visit(server, {})).body).toContain('TUNNEL_NOT_FOUND')
})

test('a page outlives a reload that changes nothing for its token', async () => {
  const server = await serve()
  const client = await share(server, { away: { text: 'Back at nine' } })
  await client.disconnect()
  await leaves(server)
  await server.reload({ tokens: ['token-one'] })
  expect(await visit(server)).toMatchObject({ body: 'Back at nine' })
})

test('the page goes when the operator closes the tunnel, or the name that its client has left', async () => {
  const server = await serve({}, { admin: adminOptions() })
  const close = () => askAdmin(server, '/tunnels/shop', { method: 'DELETE' })
  const client = await share(server, { away: { text: 'Give me your password' } })
  const ended = next(client, 'close')
  expect((await close()).status).toBe(200)
  expect(await ended).toMatchObject({ error: { code: 'BLOCKED' } })
  expect(await visit(server, {})).toMatchObject({
    code: 'TUNNEL_NOT_FOUND',
    body: expect.not.stringContaining('password'),
  })

  const other = await share(server, { away: { text: 'Give me your password' } })
  await other.disconnect()
  await leaves(server)
  expect((await visit(server)).body).toBe('Give me your password')
  expect((await close()).status).toBe(200)
  expect((await visit(server)).body).not.toContain('password')
  expect((await close()).status).toBe(404)
})

test('the page goes with a ban of its name', async () => {
  const admin = adminOptions()
  const server = await serve({}, { admin })
  await share(server, { away: { text: 'Give me your password' } })
  expect(await visit(server)).toMatchObject({ body: 'Give me your password' })
  await askAdmin(server, '/bans', { method: 'POST', body: { kind: 'tunnel', value: 'shop' } })
  const { body, code } = await visit(server, {})
  expect([body === 'Give me your password', code]).toEqual([false, 'TUNNEL_NOT_FOUND'])
})

test('the page goes with a ban of the address of its client', async () => {
  const server = await serve({}, { admin: adminOptions() })
  const client = await share(server, { away: { text: 'Give me your password' } })
  await client.disconnect()
  await leaves(server)
  await askAdmin(server, '/bans', { method: 'POST', body: { kind: 'address', value: '127.0.0.1' } })
  const { body } = await ask(server.port, 'shop.localhost', { from: '127.0.0.2' })
  expect(body).toContain('TUNNEL_NOT_FOUND')
})
