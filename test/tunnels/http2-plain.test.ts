// HTTP/2 by prior knowledge on a port without TLS, as a proxy in front speaks it that ended TLS: the same front, with the same bounds.

import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { get, headerOf, ok, readAnswer, statusOf } from '../support/exchange.ts'
import { startNodeServer } from '../support/grpc.ts'
import { PREFACE, SETTINGS } from '../support/h2-frames.ts'
import { get as get2, H2Peer, head as head2 } from '../support/h2-peer.ts'
import { startNginx } from '../support/haproxy.ts'
import { startApp } from '../support/http2-site.ts'
import { testWith } from '../support/needs.ts'
import { freePort } from '../support/ports.ts'
import { folder, run, startProgram } from '../support/programs.ts'
import { RawOrigin, rawDial } from '../support/raw.ts'
import { TEST_CERT, TEST_KEY } from '../support/tls.ts'
import { type LiveTunnel, startServer, startTunnel } from '../support/tunnel.ts'
import { within } from '../support/within.ts'

const SCRIPT = join(import.meta.dir, '../support/node-grpc.mjs')
const CALM = 11
const PROTOCOL_ERROR = 1

const urlOf = ({ host, port }: LiveTunnel, path = '/') => `http://${host.split(':')[0]}:${port}${path}`
const curl = ({ host, port }: LiveTunnel, ...args: readonly string[]) =>
  run(['curl', '-s', '--resolve', `${host.split(':')[0]}:${port}:127.0.0.1`, ...args])

testWith(['curl', 'nghttp', 'h2load'], 'curl, nghttp and h2load by prior knowledge', async () => {
  using app = startApp()
  await using tunnel = await startTunnel({ port: app.port })
  const asked = async (...args: string[]) =>
    (await curl(tunnel, '--http2-prior-knowledge', '-w', ' %{http_version} %{http_code}', ...args)).out
  expect(await asked(urlOf(tunnel))).toBe('hello\n 2 200')
  expect(await asked('-d', 'x=1', urlOf(tunnel, '/echo'))).toBe('x=1 2 200')
  expect(await asked(urlOf(tunnel, '/big'))).toEndWith('a 2 200')
  const { out } = await curl(tunnel, '--http2-prior-knowledge', urlOf(tunnel, '/head'))
  expect(new Map(JSON.parse(out)).get('x-forwarded-proto')).toBe('http')
  // The offer of a change to HTTP/2 is not taken, as it would carry requests past the server.
  expect((await curl(tunnel, '--http2', '-w', ' %{http_version}', urlOf(tunnel))).out).toBe('hello\n 1.1')
  const host = `:authority: ${tunnel.host}`
  expect((await run(['nghttp', '-H', host, `http://127.0.0.1:${tunnel.port}/`])).out).toBe('hello\n')
  const load = ['h2load', '-n', '500', '-c', '10', '-m', '10', '-H', host, `http://127.0.0.1:${tunnel.port}/`]
  expect((await run(load)).out).toContain('500 succeeded, 0 failed')
  expect(await asked(`http://127.0.0.1:${tunnel.port}/health`)).toEndWith(' 2 200')
})

testWith(
  ['grpc-interop-client', 'grpc-interop-server', 'nginx'],
  'gRPC without TLS, and behind nginx that ends it',
  async () => {
    const port = freePort()
    await using _app = await startProgram(['grpc-interop-server', `--port=${port}`], port)
    await using tunnel = await startTunnel(
      { port, protocol: 'h2c' },
      { server: { trustedProxies: ['127.0.0.1'] } },
    )
    await using dir = await folder('grpc-plain')
    await Bun.write(`${dir.path}/cert.pem`, TEST_CERT)
    await Bun.write(`${dir.path}/key.pem`, TEST_KEY)
    const server = (listen: string) => `server {
      ${listen}
      location / {
        if ($content_type ~ ^application/grpc) { grpc_pass grpc://127.0.0.1:${tunnel.port}; }
        proxy_pass http://127.0.0.1:1;
        grpc_set_header Host ${tunnel.host};
      }
    }`
    await using plain = await startNginx(server('listen 127.0.0.1:PORT http2;'))
    await using secure = await startNginx(
      server(`listen 127.0.0.1:PORT ssl http2;
      ssl_certificate ${dir.path}/cert.pem;
      ssl_certificate_key ${dir.path}/key.pem;`),
    )
    const ways = [
      [`--server_port=${plain.port}`],
      [
        `--server_port=${secure.port}`,
        '--use_tls',
        '--use_test_ca',
        `--ca_file=${dir.path}/cert.pem`,
        '--server_host_override=localhost',
      ],
    ]
    const cases = ['empty_unary', 'large_unary', 'ping_pong', 'server_streaming', 'status_code_and_message']
    for (const way of ways)
      for (const name of cases) {
        const { code, err } = await run([
          'grpc-interop-client',
          '--server_host=127.0.0.1',
          ...way,
          `--test_case=${name}`,
        ])
        expect([way.at(-1), name, code, err.slice(0, 300)]).toEqual([way.at(-1), name, 0, ''])
      }
  },
  60_000,
)

testWith(['node'], 'grpc-js without TLS: all kinds of calls', async () => {
  using app = await startNodeServer()
  await using tunnel = await startTunnel({ port: app.port, protocol: 'h2c' })
  const { out, err } = await run(['node', SCRIPT, 'client', `127.0.0.1:${tunnel.port}`, '', tunnel.host])
  expect(err).toBe('')
  expect(JSON.parse(out)).toMatchObject({
    many: 50,
    gather: 'gathered 300000',
    slow: 'DEADLINE_EXCEEDED',
    parallel: 150,
  })
})

test('the preface may come in pieces, and behind a PROXY header', async () => {
  using origin = new RawOrigin()
  const server = { trustedProxies: ['127.0.0.2'], acceptProxyProtocol: true }
  await using tunnel = await startTunnel({ port: origin.port }, { server })
  await using peer = await H2Peer.plain(tunnel.port, [], '127.0.0.2')
  const header = [...Buffer.from('PROXY TCP4 203.0.113.7 127.0.0.1 50123 80\r\n')]
  for (const byte of [...header, ...PREFACE, ...SETTINGS, ...head2(1, get2(tunnel.host, '/'))]) {
    peer.send([byte])
    await new Promise(resolve => setImmediate(resolve))
  }
  const app = await origin.accept()
  const seen = await app.until('\r\n\r\n')
  expect([headerOf(seen, 'x-forwarded-for'), headerOf(seen, 'x-forwarded-proto')]).toEqual([
    '203.0.113.7',
    'http',
  ])
  await app.send(ok('hi'))
  expect((await peer.answered(1)).body(1).toString()).toBe('hi')
})

test('headers of a trusted proxy count, those of others do not', async () => {
  for (const [trustedProxies, proto] of [
    [['127.0.0.1'], 'https'],
    [[], 'http'],
  ] as const) {
    using origin = new RawOrigin()
    await using tunnel = await startTunnel({ port: origin.port }, { server: { trustedProxies } })
    await using peer = await H2Peer.plain(tunnel.port)
    peer.send(head2(1, get2(tunnel.host, '/', [['x-forwarded-proto', 'https']])))
    const app = await origin.accept()
    expect(headerOf(await app.until('\r\n\r\n'), 'x-forwarded-proto')).toBe(proto)
    await app.send(ok('hi'))
    expect((await peer.answered(1)).body(1).toString()).toBe('hi')
  }
})

test('behind a request, with http2 off, or in another spelling it is HTTP/1.1, and refused', async () => {
  const preface = Buffer.from(PREFACE).toString()
  {
    using origin = new RawOrigin()
    await using tunnel = await startTunnel({ port: origin.port })
    const visitor = await rawDial(tunnel.port)
    await visitor.send(get(tunnel.host))
    const app = await origin.accept()
    await app.until('\r\n\r\n')
    await app.send(ok('hi'))
    await readAnswer(visitor)
    await visitor.send(preface)
    expect(statusOf((await readAnswer(visitor)).head)).toBe(505)
    for (const odd of [
      'PRI / HTTP/2.0\r\n\r\n',
      `\r\n${preface}`,
      'PRI * HTTP/3.0\r\n\r\n',
      'pri * HTTP/2.0\r\n\r\n',
    ]) {
      const other = await rawDial(tunnel.port)
      await other.send(odd)
      expect(statusOf((await readAnswer(other)).head)).toBe(505)
    }
  }
  await using server = await startServer({ http2: false })
  const visitor = await rawDial(server.port)
  await visitor.send(preface)
  expect(statusOf((await readAnswer(visitor)).head)).toBe(505)
})

test('what begins like the preface and goes on otherwise ends as HTTP/2 does', async () => {
  await using server = await startServer({})
  await using peer = await H2Peer.plain(server.port, [...Buffer.from('PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n')])
  expect(await peer.end()).toBe(PROTOCOL_ERROR)
})

test('bounds are those of HTTP/2 by TLS: time for the preface and heads, and streams', async () => {
  using origin = new RawOrigin()
  const limits = { headTimeoutMs: 300, maxHttp2Streams: 2 }
  await using tunnel = await startTunnel({ port: origin.port }, { server: { limits } })
  await using slow = await H2Peer.plain(tunnel.port, [...Buffer.from('PRI * HTTP/2.0\r\n')])
  expect(await slow.end()).toBe(CALM)
  await using peer = await H2Peer.plain(tunnel.port)
  for (const stream of [1, 3, 5]) peer.send(head2(stream, get2(tunnel.host, `/${stream}`)))
  await peer.when(seen => seen.resets[5] !== undefined, 'the refusal')
  expect(peer.seen.resets).toEqual({ 5: 7 })
})

test('a WebSocket ends with its visitor, and the server has nothing left to wait for', async () => {
  using app = startApp()
  await using tunnel = await startTunnel({ port: app.port })
  const over = Promise.withResolvers<number>()
  tunnel.client.on('response', ({ path, status }) => path === '/ws' && over.resolve(status))
  const peer = await H2Peer.plain(tunnel.port)
  peer.send(head2(1, get2(tunnel.host)))
  expect((await peer.answered(1)).body(1).toString()).toBe('hello\n')
  const webSocket = get2(tunnel.host, '/ws', [['sec-websocket-version', '13']]).slice(1)
  peer.send(head2(3, [[':method', 'CONNECT'], [':protocol', 'websocket'], ...webSocket], false))
  await peer.when(seen => seen.field(3, ':status') !== undefined, 'the WebSocket')
  expect(peer.seen.field(3, ':status')).toBe('200')
  peer.socket.destroy()
  expect(await within(over.promise, 'the end of the WebSocket')).toBe(101)
  await within(tunnel.server.stop(), 'the end of the server', 2_000)
})

test('a server that stops says so with GOAWAY, and serves what is under way', async () => {
  using origin = new RawOrigin()
  await using tunnel = await startTunnel({ port: origin.port })
  await using peer = await H2Peer.plain(tunnel.port)
  peer.send(head2(1, get2(tunnel.host)))
  const app = await origin.accept()
  await app.until('\r\n\r\n')
  const stopped = tunnel.server.stop()
  await peer.when(seen => seen.goaways.length > 0, 'the first GOAWAY')
  await app.send(ok('last'))
  expect((await peer.answered(1)).body(1).toString()).toBe('last')
  await peer.end()
  await stopped
})
