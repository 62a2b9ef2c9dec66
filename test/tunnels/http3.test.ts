// HTTP/3 through a whole tunnel: a visitor made of quic-go, and apps that write bytes.

import { beforeAll, describe, expect, spyOn, test } from 'bun:test'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { guarding, TunnelError, TunnelServer } from '../../src/index.ts'
import type { TunnelServerOptions } from '../../src/server/settings/options.ts'
import type { BoundedOptions } from '../support/bounded-server.ts'
import { makeCertificate } from '../support/certificates.ts'
import { startHttp2Site } from '../support/http2-site.ts'
import { buildVisitor, GO, Http3Visitor } from '../support/http3.ts'
import { RawOrigin } from '../support/raw.ts'
import { TEST_CERT, TEST_KEY } from '../support/tls.ts'
import { startServer } from '../support/tunnel.ts'
import { within } from '../support/within.ts'

const tls = { cert: TEST_CERT, key: TEST_KEY }
const MIB = 1_048_576

const site = (port: number, server: BoundedOptions = {}) =>
  startHttp2Site(port, { server: { http3: true, ...server } })

/** An app that reads all of a request's body, or some of it. */
function startApp() {
  return Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    async fetch(request) {
      const body = await request.arrayBuffer()
      return new Response(`${request.method} ${body.byteLength}`)
    },
  })
}

describe.skipIf(GO === null)('HTTP/3 (needs Go, for a visitor)', () => {
  beforeAll(async () => void (await buildVisitor()), 120_000)

  test('paths, methods, repeated headers, cookies and bytes arrive as they were sent, both ways', async () => {
    using origin = new RawOrigin()
    await using live = await site(origin.port)
    await using visitor = await Http3Visitor.start(live.port, live.host)
    const path = '/a/../b//c%2f?x=1&x=%zz'
    const asked = visitor.ask({
      method: 'BREW',
      path,
      fields: [
        ['x-one', '1'],
        ['x-one', '2'],
        ['x-byte', 'caf\u00e9'],
        ['cookie', 'a=1'],
        ['cookie', 'b=2'],
      ],
    })
    const app = await origin.accept()
    const head = await app.until('\r\n\r\n')
    expect(head).toStartWith(`BREW ${path} HTTP/1.1\r\nHost: ${live.host}\r\n`)
    expect(head).toContain('x-one: 1\r\nx-one: 2\r\n')
    expect(head).toContain('x-byte: caf\u00e9\r\n')
    expect(head).toContain('cookie: a=1; b=2\r\n')
    expect(head).toContain('X-Forwarded-Proto: https\r\n')
    expect(head).toContain('X-Forwarded-For: 127.0.0.1\r\n')
    expect(head).not.toContain('ransfer-')
    await app.send('HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\n')
    await app.send(
      'HTTP/1.1 418 Teapot\r\nSet-Cookie: a=1\r\nSet-Cookie: b=2\r\nX-Byte: caf\u00e9\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\nhi',
    )
    const { error, status, interim, fields, body } = await asked
    expect({ error, status, interim, body }).toEqual({ error: '', status: 418, interim: [103], body: 'hi' })
    expect(fields.filter(([name]) => name === 'Set-Cookie').map(([, value]) => value)).toEqual(['a=1', 'b=2'])
    expect(fields).toContainEqual(['X-Byte', 'caf\u00e9'])
    expect(fields).toContainEqual(['Content-Length', '2'])
    expect(fields.map(([name]) => name)).not.toContain('Connection')
  })

  test('a guard asks for a password, and lets in who has it; trailers are none of its lines', async () => {
    using app = startApp()
    await using live = await startHttp2Site(app.port ?? 0, {
      server: { http3: true, guarding: guarding() },
      client: { guard: { password: 'correct horse', requestHeaders: { 'X-Env': 'preview' } } },
    })
    await using visitor = await Http3Visitor.start(live.port, live.host)
    const authorization = `Basic ${Buffer.from('any:correct horse').toString('base64')}`
    const refused = await visitor.ask({ fields: [['x-localtunnels-user', 'root']] })
    expect(refused.status).toBe(401)
    expect(refused.fields).toContainEqual(['X-Localtunnels-Error', 'ACCESS_REQUIRED'])
    const fields = [['authorization', authorization]] as const
    expect((await visitor.ask({ fields })).body).toBe('GET 0')
    const hidden = await visitor.ask({
      method: 'POST',
      fields,
      body: 'hi',
      trailers: [['x_env', 'production']],
    })
    expect([hidden.status, hidden.body === 'POST 2']).toEqual([400, false])
  })

  test('an answer that comes before an upload is complete arrives whole, with its trailers', async () => {
    using origin = new RawOrigin()
    await using live = await site(origin.port)
    for (const lines of [
      'Content-Length: 7\r\n\r\ntoo big',
      'Transfer-Encoding: chunked\r\n\r\n7\r\ntoo big\r\n0\r\nX-Why: size\r\n\r\n',
    ])
      for (const hasLength of [true, false])
        for (let count = 0; count < 3; count++) {
          await using visitor = await Http3Visitor.start(live.port, live.host)
          const asked = visitor.ask({ method: 'POST', bodyBytes: 4_000_000, hasLength })
          const app = await origin.accept()
          await app.until('\r\n\r\n')
          await app.send(`HTTP/1.1 413 Too Large\r\n${lines}`)
          const { error, status, body, trailers } = await asked
          expect({ error, status, body }).toEqual({ error: '', status: 413, body: 'too big' })
          if (lines.startsWith('T')) expect(trailers).toEqual([['X-Why', 'size']])
        }
  })

  test('a login of the connection is sent to HTTP/1.1', async () => {
    using origin = new RawOrigin()
    await using live = await site(origin.port)
    await using visitor = await Http3Visitor.start(live.port, live.host)
    expect(await visitor.ask({ fields: [['authorization', 'NTLM abc']] })).toMatchObject({
      status: 0,
      error: expect.stringContaining('H3_VERSION_FALLBACK'),
    })
    const asked = visitor.ask({})
    const app = await origin.accept()
    await app.until('\r\n\r\n')
    await app.send('HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Negotiate\r\nContent-Length: 0\r\n\r\n')
    expect((await asked).error).toContain('H3_VERSION_FALLBACK')
  })

  test('fields of an answer may have names that objects have', async () => {
    using origin = new RawOrigin()
    await using live = await site(origin.port)
    await using visitor = await Http3Visitor.start(live.port, live.host)
    const asked = visitor.ask({})
    const app = await origin.accept()
    await app.until('\r\n\r\n')
    await app.send(
      'HTTP/1.1 200 OK\r\nconstructor: a\r\n__proto__: b\r\n__proto__: c\r\nContent-Length: 0\r\n\r\n',
    )
    const { fields } = await asked
    expect(fields).toContainEqual(['Constructor', 'a'])
    expect(fields).toContainEqual(['__proto__', 'b'])
    expect(fields).toContainEqual(['__proto__', 'c'])
    expect(fields.filter(([name]) => name === 'Constructor')).toHaveLength(1)
  })

  test('bodies without a length and trailers go both ways', async () => {
    using origin = new RawOrigin()
    await using live = await site(origin.port)
    await using visitor = await Http3Visitor.start(live.port, live.host)
    const asked = visitor.ask({
      method: 'POST',
      body: 'hello',
      fields: [['te', 'trailers']],
      trailers: [['x-sum', '5']],
    })
    const app = await origin.accept()
    const request = await app.until('0\r\nx-sum: 5\r\n\r\n')
    expect(request).toContain('Transfer-Encoding: chunked\r\n')
    expect(request).toContain('5\r\nhello\r\n')
    await app.send(
      'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-End\r\n\r\n3\r\nabc\r\n0\r\nX-End: yes\r\n\r\n',
    )
    const { error, status, body, trailers } = await asked
    expect({ error, status, body }).toEqual({ error: '', status: 200, body: 'abc' })
    expect(trailers).toEqual([['X-End', 'yes']])
  })

  test('an answer without a body, one to HEAD, and 20 at once', async () => {
    using app = Bun.serve({
      port: 0,
      hostname: '127.0.0.1',
      fetch: ({ url }) =>
        url.endsWith('/204') ? new Response(null, { status: 204 }) : new Response(url.slice(-3)),
    })
    await using live = await site(app.port!)
    await using visitor = await Http3Visitor.start(live.port, live.host)
    expect(await visitor.ask({ path: '/204' })).toMatchObject({ error: '', status: 204, bytes: 0 })
    expect(await visitor.ask({ path: '/200', method: 'HEAD' })).toMatchObject({ status: 200, bytes: 0 })
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, at) => visitor.ask({ path: `/${100 + at}` })),
    )
    expect(answers.map(({ body }) => body)).toEqual(Array.from({ length: 20 }, (_, at) => `${100 + at}`))
  })

  test('a visitor that does not read holds its app back, and gets all of the answer in the end', async () => {
    const total = 64 * MIB
    let sent = 0
    await using app = createServer((_request, response) => {
      response.writeHead(200, { 'Content-Length': total })
      const write = () => {
        for (; sent < total; sent += 65_536)
          if (!response.write(new Uint8Array(65_536).fill(sent / 65_536))) {
            sent += 65_536
            return response.once('drain', write)
          }
        return response.end()
      }
      write()
    }).listen(0, '127.0.0.1')
    await once(app, 'listening')
    await using live = await site((app.address() as AddressInfo).port)
    await using visitor = await Http3Visitor.start(live.port, live.host)
    const asked = visitor.ask({ readMs: 1_500 })
    await Bun.sleep(1_000)
    // What is on its way: windows and buffers of both connections.
    expect(sent).toBeLessThan(total / 2)
    const { error, bytes, sum } = await asked
    const whole = createHash('sha256')
    for (let at = 0; at < total; at += 65_536) whole.update(new Uint8Array(65_536).fill(at / 65_536))
    expect({ error, bytes, sum }).toEqual({ error: '', bytes: total, sum: whole.digest('hex') })
  })

  test('a body that is not read is bounded: 421 when its length is known, else the stream is cut', async () => {
    using app = startApp()
    using origin = new RawOrigin()
    await using quick = await site(app.port!)
    await using slow = await site(origin.port)
    await using one = await Http3Visitor.start(quick.port, quick.host)
    await using other = await Http3Visitor.start(slow.port, slow.host)
    expect(await one.ask({ method: 'PUT', bodyBytes: 7 * MIB })).toMatchObject({ body: `PUT ${7 * MIB}` })
    const known = await one.ask({ method: 'PUT', bodyBytes: 8 * MIB, hasLength: true })
    expect(known).toMatchObject({ body: `PUT ${8 * MIB}` })
    const longer = await one.ask({ method: 'PUT', bodyBytes: 8 * MIB + 1, hasLength: true })
    expect(longer.status).toBe(421)
    expect(longer.fields).toContainEqual(['X-Localtunnels-Error', 'HTTP3_BODY_TOO_LARGE'])
    const cut = other.ask({ method: 'PUT', bodyBytes: 64 * MIB })
    const connection = await origin.accept()
    connection.socket.pause()
    expect(await cut).toMatchObject({ status: 0, error: expect.stringContaining('H3_EXCESSIVE_LOAD') })
    expect(await one.ask({})).toMatchObject({ body: 'GET 0' })
  })

  test('a request that is given up is cancelled at the app', async () => {
    using origin = new RawOrigin()
    await using live = await site(origin.port)
    await using visitor = await Http3Visitor.start(live.port, live.host)
    const asked = visitor.ask({})
    const app = await origin.accept()
    await app.until('\r\n\r\n')
    visitor.giveUp()
    expect((await asked).status).toBe(0)
    await app.end()
  })

  test('an answer that breaks off does not look complete', async () => {
    using origin = new RawOrigin()
    await using live = await site(origin.port)
    await using visitor = await Http3Visitor.start(live.port, live.host)
    const asked = visitor.ask({})
    const app = await origin.accept()
    await app.until('\r\n\r\n')
    await app.send('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n')
    app.socket.terminate()
    expect((await asked).error).toContain('H3_INTERNAL_ERROR')
  })

  test('who gives up request after request is cut, and others are not', async () => {
    using origin = new RawOrigin()
    await using live = await site(origin.port, { limits: { maxHttp2Resets: 5 } })
    await using visitor = await Http3Visitor.start(live.port, live.host)
    await using other = await Http3Visitor.start(live.port, live.host)
    const asked = other.ask({})
    const first = await origin.accept()
    const given = await Promise.all(
      Array.from({ length: 30 }, (_, at) => visitor.ask({ cancelMs: 100 + 10 * at })),
    )
    expect(given.at(-1)?.error).toContain('H3_EXCESSIVE_LOAD')
    await first.send('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok')
    expect(await asked).toMatchObject({ error: '', body: 'ok' })
  })

  test('heads that are too large, and requests that HTTP/1.1 would refuse', async () => {
    using app = startApp()
    await using live = await site(app.port!, { limits: { maxHeadBytes: 4_096 } })
    await using visitor = await Http3Visitor.start(live.port, live.host)
    const large = await visitor.ask({ fields: [['x-large', 'x'.repeat(8_192)]] })
    expect(large.status === 431 || large.error !== '').toBe(true)
    expect(await visitor.ask({ path: '*' })).toMatchObject({ status: 0 })
    expect(await visitor.ask({})).toMatchObject({ status: 200, body: 'GET 0' })
  })

  test('a server that stops finishes what is under way', async () => {
    using origin = new RawOrigin()
    await using live = await site(origin.port)
    await using visitor = await Http3Visitor.start(live.port, live.host)
    const asked = visitor.ask({})
    const app = await origin.accept()
    await app.until('\r\n\r\n')
    const stopped = live.server.stop()
    await app.send('HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nlast')
    expect(await asked).toMatchObject({ error: '', status: 200, body: 'last' })
    await within(stopped, 'the server to stop')
  })

  test('certificates by name: a name is known by QUIC once a visitor came by TCP', async () => {
    using app = startApp()
    const pairs = new Map([
      ['localhost', await makeCertificate(['localhost'])],
      ['app.localhost', await makeCertificate(['app.localhost'])],
    ])
    await using live = await startHttp2Site(app.port!, {
      server: { http3: true, certificates: { find: name => pairs.get(name) } },
      readsHellos: true,
    })
    await using early = await Http3Visitor.start(live.port, live.host)
    expect((await early.ask({})).certificate).toBe('localhost')
    await fetch(`https://${live.host}/`, { tls: { rejectUnauthorized: false } })
    await using late = await Http3Visitor.start(live.port, live.host)
    expect((await late.ask({})).certificate).toBe('app.localhost')
  })
})

test('Alt-Svc names the port where HTTP/3 is on, unless the app has one, and nothing is there where it is off', async () => {
  using app = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    fetch: ({ url }) => new Response('', url.endsWith('/own') ? { headers: { 'Alt-Svc': 'clear' } } : {}),
  })
  await using on = await site(app.port!)
  await using off = await startHttp2Site(app.port!)
  const alternative = async (port: number, path = '/', extra = {}) =>
    (
      await fetch(`https://127.0.0.1:${port}${path}`, {
        headers: { host: 'app.localhost' },
        tls: { rejectUnauthorized: false },
        ...extra,
      })
    ).headers.get('alt-svc')
  expect(await alternative(on.port)).toBe(`h3=":${on.port}"; ma=86400`)
  expect(await alternative(on.port, '/own')).toBe('clear')
  expect(await alternative(off.port)).toBeNull()
  const socket = await Bun.udpSocket({ hostname: '127.0.0.1', port: off.port })
  socket.close()
  expect(() => Bun.udpSocket({ hostname: '127.0.0.1', port: on.port })).toThrow('EADDRINUSE')
})

test('http3 without TLS, with PROXY headers, and on a port that is in use', async () => {
  const fails = (options: TunnelServerOptions) => () => new TunnelServer(options)
  expect(fails({ http3: true })).toThrow('http3 needs tls')
  expect(fails({ http3: 1 as never, tls })).toThrow('http3 must be true or false')
  expect(fails({ http3: true, tls, acceptProxyProtocol: true, trustedProxies: ['127.0.0.1'] })).toThrow(
    'acceptProxyProtocol do not go together',
  )
  const other = await Bun.udpSocket({ hostname: '127.0.0.1', port: 0 })
  const server = new TunnelServer({ port: other.port, host: '127.0.0.1', tls, http3: true })
  const error = await server.start().catch((cause: unknown) => cause)
  expect(error).toBeInstanceOf(TunnelError)
  expect((error as TunnelError).code).toBe('PORT_IN_USE')
  other.close()
  const reloaded = await startServer({ tls })
  const refused = await reloaded.reload({ tls, http3: true }).catch((cause: unknown) => cause)
  expect(String(refused)).toContain('http3')
  await reloaded.stop()
})

test("a port of the system's choice is one that is free for UDP, too", async () => {
  const { listen } = Bun
  const taken: Bun.udp.Socket<'buffer'>[] = []
  // Another program is quicker: it takes the UDP port of each number that the server gets, three times.
  const listening = spyOn(Bun, 'listen').mockImplementation(((options: Bun.TCPSocketListenOptions) => {
    const listener = listen(options)
    const { hostname } = options
    if (taken.length < 3) void Bun.udpSocket({ hostname, port: listener.port }).then(one => taken.push(one))
    return listener
  }) as typeof Bun.listen)
  await using server = await startServer({ host: '127.0.0.1', tls, http3: true })
  listening.mockRestore()
  expect(taken.map(({ port }) => port)).not.toContain(server.port)
  expect(() => Bun.udpSocket({ hostname: '127.0.0.1', port: server.port })).toThrow('EADDRINUSE')
  for (const one of taken) one.close()
})
