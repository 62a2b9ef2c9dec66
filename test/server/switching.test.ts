// Protocols that are switched to: any that the visitor offers and the app takes, but none that would hide requests. And an origin
// that switches where nobody asked it to.

import { expect, test } from 'bun:test'
import { next } from '../support/events.ts'
import { get, headerOf, ok, rawTunnel, readAnswer, statusOf } from '../support/exchange.ts'
import { get as get2, H2Peer, head as head2 } from '../support/h2-peer.ts'
import { startHttp2Site } from '../support/http2-site.ts'
import { InspectorApi } from '../support/inspector.ts'
import { RawOrigin } from '../support/raw.ts'

const upgrade = (to: string) => `Connection: Upgrade\r\nUpgrade: ${to}\r\n`
const switching = (to: string) => `HTTP/1.1 101 Switching Protocols\r\n${upgrade(to)}\r\n`

for (const [asked, answered] of [
  ['h2c', 'h2c'],
  ['h2c', 'websocket'],
  ['websocket', 'h2c'],
  ['tcp', 'websocket'],
  ['tcp, x', 'tcp, y'],
  ['TLS/1.0, HTTP/1.1', 'TLS/1.0'],
] as const) {
  test(`asked for ${asked}, a 101 to ${answered} is a 502 and no pipe`, async () => {
    await using raw = await rawTunnel()
    const visitor = await raw.visit(get(raw.host, '/', upgrade(asked)))
    const app = await raw.origin.accept()
    await app.until('\r\n\r\n')
    await app.send(switching(answered))
    expect(await visitor.until('\r\n')).toStartWith('HTTP/1.1 502')
  })
}

for (const [asked, answered] of [
  ['tcp', 'tcp'],
  ['SPDY/3.1', 'SPDY/3.1'],
  ['IRTP/1.0, Kerberos', 'kerberos'],
  ['a, b/2', 'b/2, a'],
] as const)
  test(`asked for ${asked}, a 101 to ${answered} is bytes both ways, behind GET and behind POST with a body`, async () => {
    await using raw = await rawTunnel({ client: { inspect: { port: 0 } } })
    const api = new InspectorApi(raw.tunnel.client)
    for (const [method, lines, body] of [
      ['GET', '', ''],
      ['POST', 'Content-Length: 7\r\n', '{"a":1}'],
      ['POST', 'Transfer-Encoding: chunked\r\n', '7\r\n{"a":1}\r\n0\r\n\r\n'],
    ] as const) {
      const response = next(raw.tunnel.client, 'response')
      const request = get(raw.host, '/exec', upgrade(asked) + lines).replace('GET', method)
      const visitor = await raw.visit(request + body)
      const app = await raw.origin.accept()
      const head = await app.until('\r\n\r\n')
      expect(headerOf(head, 'upgrade')).toBe(asked)
      expect(headerOf(head, 'connection')).toBe('Upgrade')
      expect(await app.exactly(body.length)).toBe(body)
      await app.send(`${switching(answered)}\0ready`)
      const got = await visitor.until('\r\n\r\n')
      expect([statusOf(got), headerOf(got, 'upgrade'), headerOf(got, 'connection')]).toEqual([
        101,
        answered,
        'Upgrade',
      ])
      expect(await visitor.exactly(6)).toBe('\0ready')
      await visitor.send('GET / HTTP/1.1\n')
      expect(await app.exactly(15)).toBe('GET / HTTP/1.1\n')
      // Half-closed, as `docker attach` without a terminal does it.
      visitor.socket.end()
      await app.end()
      await app.send('the rest')
      app.socket.end()
      expect(await visitor.end()).toBe('the rest')
      expect(await response).toMatchObject({ method, status: 101 })
      const [row] = await api.rows('?limit=1')
      expect(row).toMatchObject({ status: 101, bytesIn: 15, bytesOut: 14, state: 'done' })
      expect(row?.requestBody.totalBytes).toBe(body === '' ? 0 : 7)
    }
  })

test.each(['', 'Content-Length: 7\r\n\r\n{"a":1}', 'Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n'])(
  'an app that was asked to switch gets no other request on that connection: %j',
  async behind => {
    await using raw = await rawTunnel()
    const visitor = await raw.visit(get(raw.host, '/', upgrade('tcp')).replace(/\r\n$/, behind || '\r\n'))
    const app = await raw.origin.accept()
    await app.until('\r\n\r\n')
    await app.exactly(Math.max(0, behind.length - behind.indexOf('\r\n\r\n') - 4))
    await app.send(ok('no'))
    expect((await readAnswer(visitor)).body).toBe('no')
    await visitor.send(get(raw.host, '/next'))
    const other = await raw.origin.accept()
    expect(await other.until('\r\n')).toBe('GET /next HTTP/1.1\r\n')
    expect(await app.end()).toBe('')
  },
)

test('an app that does not switch answers, and the connection goes on', async () => {
  await using raw = await rawTunnel()
  const visitor = await raw.visit(get(raw.host, '/', upgrade('tcp')))
  const app = await raw.origin.accept()
  await app.until('\r\n\r\n')
  await app.send(ok('no'))
  expect((await readAnswer(visitor)).body).toBe('no')
  await visitor.send(get(raw.host))
  const another = await raw.origin.accept()
  expect(headerOf(await another.until('\r\n\r\n'), 'upgrade')).toBeUndefined()
  await another.send(ok('next'))
  expect((await readAnswer(visitor)).body).toBe('next')
})

test('what follows a request that is not switched is the next request, and never the app’s unasked', async () => {
  await using raw = await rawTunnel()
  const smuggled = get(raw.host, '/second')
  const visitor = await raw.visit(get(raw.host, '/first', upgrade('tcp')) + smuggled)
  const app = await raw.origin.accept()
  await app.until('\r\n\r\n')
  expect(app.text).toBe('')
  await app.send(ok('first'))
  expect((await readAnswer(visitor)).body).toBe('first')
  const another = await raw.origin.accept()
  expect(await another.until('\r\n\r\n')).toContain(`X-Forwarded-Host: ${raw.host}`)
})

test('an offer of h2c is left out, and the request is one like others: it may be copied, kept and wrapped', async () => {
  const seen: string[] = []
  await using raw = await rawTunnel({
    server: {
      middlewares: [
        {
          name: 'seeing',
          handle: (request, next) => {
            seen.push(new URL(request.url).pathname)
            return next(request)
          },
        },
      ],
    },
  })
  const lines = 'Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n'
  const visitor = await raw.visit(get(raw.host, '/h2c', lines))
  const app = await raw.origin.accept()
  const head = await app.until('\r\n\r\n')
  expect(head).not.toMatch(/upgrade|http2-settings/i)
  await app.send(ok('plain'))
  expect((await readAnswer(visitor)).body).toBe('plain')
  expect(seen).toEqual(['/h2c'])
})

test('over the JSON wire an upgrade is 501, and does not reach the app', async () => {
  await using raw = await rawTunnel({ client: { wire: 'json' } })
  for (const to of ['websocket', 'tcp']) {
    const visitor = await raw.visit(get(raw.host, '/', upgrade(to)))
    const { head } = await readAnswer(visitor)
    expect([statusOf(head), headerOf(head, 'x-localtunnels-error')]).toEqual([501, 'WIRE_UNSUPPORTED'])
  }
  expect(raw.origin.connections).toHaveLength(0)
})

test('by HTTP/2 there is no other than the extended CONNECT to websocket', async () => {
  using origin = new RawOrigin()
  await using site = await startHttp2Site(origin.port)
  await using peer = await H2Peer.connect(site.port)
  const connect = (protocol: string) =>
    get2(site.host, '/').flatMap(([name, value]) =>
      name === ':method'
        ? [[':method', 'CONNECT'] as [string, string], [':protocol', protocol] as [string, string]]
        : [[name, value] as [string, string]],
    )
  for (const [index, protocol] of ['tcp', 'h2c', 'connect-udp'].entries()) {
    peer.send(head2(1 + 2 * index, connect(protocol)))
    const answer = await peer.answered(1 + 2 * index)
    expect([protocol, answer.field(1 + 2 * index, ':status')]).toEqual([protocol, '501'])
  }
})

test('a list of protocols without end takes no time', async () => {
  await using raw = await rawTunnel()
  for (const list of ['a,'.repeat(25_000), `a${' '.repeat(50_000)}b`, `a${', a'.repeat(16_000)}`]) {
    const since = performance.now()
    const visitor = await raw.visit(get(raw.host, '/', upgrade(list)))
    const app = await raw.origin.accept()
    await app.until('\r\n\r\n')
    await app.send(switching(list.slice(0, 50_000)).replace(/,\r/, '\r'))
    await visitor.until('\r\n')
    expect(performance.now() - since).toBeLessThan(2_000)
  }
})
