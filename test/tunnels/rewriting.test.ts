// Apps that insist on their own name: headers are translated both ways on both wires, for visitors by every version of HTTP, and nothing else
// of a request or response changes.

import { describe, expect, test } from 'bun:test'
import { createHash } from 'node:crypto'
import { Agent } from 'node:http'
import { guarding, TunnelClient } from '../../src/index.ts'
import { ask } from '../support/ask.ts'
import { next } from '../support/events.ts'
import { exchange, get, headerOf, ok, rawTunnel, readAnswer } from '../support/exchange.ts'
import { startHttp2Site } from '../support/http2-site.ts'
import { describeWith } from '../support/needs.ts'
import { run } from '../support/programs.ts'
import { RawOrigin } from '../support/raw.ts'
import { TEST_CERT, TEST_KEY } from '../support/tls.ts'
import { startServer, startTunnel } from '../support/tunnel.ts'

/** An app with one name for itself: it says what it got, and answers with what names it. */
function startApp(isSecure: boolean): Bun.Server<undefined> {
  const app: Bun.Server<undefined> = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    ...(isSecure && { tls: { cert: TEST_CERT, key: TEST_KEY } }),
    fetch: async request => {
      const own = `${isSecure ? 'https' : 'http'}://localhost:${app.port}`
      const names = ['host', 'origin', 'referer', 'destination'].map(name => request.headers.get(name))
      const said = { own, path: new URL(request.url).pathname, names, body: await request.text() }
      const answer = Response.json(said, { status: 302, headers: { location: `${own}/next` } })
      answer.headers.append('set-cookie', 'a=1; Domain=localhost; Path=/')
      answer.headers.append('set-cookie', 'b=2; Domain=other.example')
      return answer
    },
  })
  return app
}

describeWith(['curl'], 'through curl', () => {
  for (const wire of ['streams', 'json'] as const)
    for (const version of ['1.1', '2'])
      for (const isSecure of [false, true])
        test(`${wire}, HTTP/${version}, ${isSecure ? 'an https app' : 'an http app'}`, async () => {
          using app = startApp(isSecure)
          const url = `${isSecure ? 'https' : 'http'}://localhost:${app.port}`
          await using site = await startHttp2Site(0, {
            client: {
              port: undefined as never,
              host: undefined as never,
              url,
              ...(isSecure && { appInsecure: true }),
              wire,
              hostHeader: 'rewrite',
            },
          })
          const home = `https://${site.host}`
          const lines = [`Origin: ${home}`, `Referer: ${home}/from?x`, `Destination: ${home}/to`]
          const { out } = await run([
            'curl',
            ...['-sik', `--http${version}`, '--resolve', `app.localhost:${site.port}:127.0.0.1`],
            ...['-d', `link=${home}/`, ...lines.flatMap(line => ['-H', line]), `${home}/at`],
          ])
          const [head = '', body = ''] = out.split('\r\n\r\n')
          expect(JSON.parse(body)).toEqual({
            own: url,
            path: '/at',
            names: [`localhost:${app.port}`, url, `${url}/from?x`, `${url}/to`],
            // Bodies say what they said.
            body: `link=${home}/`,
          })
          expect(headerOf(`${head}\r\n`, 'location')).toBe(`${home}/next`)
          const cookies = [...head.matchAll(/^set-cookie: (.*)$/gim)].map(([, value = '']) => value.trim())
          expect(cookies).toEqual(['a=1; Path=/', 'b=2; Domain=other.example'])
        })
})

test('a WebSocket carries Origin too, and its bytes stay', async () => {
  await using raw = await rawTunnel({ client: { hostHeader: 'rewrite' } })
  const local = `127.0.0.1:${raw.origin.port}`
  const upgrade = `Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: ${btoa('0123456789abcdef')}\r\n`
  const visitor = await raw.visit(get(raw.host, '/ws', `Origin: http://${raw.host}\r\n${upgrade}`))
  const app = await raw.origin.accept()
  const seen = await app.until('\r\n\r\n')
  expect([headerOf(seen, 'host'), headerOf(seen, 'origin')]).toEqual([local, `http://${local}`])
  await app.send(
    `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSet-Cookie: a=1; Domain=localhost\r\n\r\nLocation: http://${local}/`,
  )
  expect(headerOf(await visitor.until('\r\n\r\n'), 'set-cookie')).toBe('a=1')
  const text = `Location: http://${local}/`
  expect(await visitor.exactly(text.length)).toBe(text)
  await visitor.send(`Origin: http://${raw.host}`)
  expect(await app.exactly(8 + `http://${raw.host}`.length)).toBe(`Origin: http://${raw.host}`)
})

test('nothing else of a head changes, and hints in front and trailers behind pass', async () => {
  await using raw = await rawTunnel({ client: { hostHeader: 'rewrite' } })
  const local = `127.0.0.1:${raw.origin.port}`
  const visitor = await raw.visit(
    get(
      raw.host,
      `http://${raw.host}/a//b/../%2F?x=http://${raw.host}/`,
      `x-A: 1\r\nREFERER:http://${raw.host}/\r\nX-a: 2\r\n`,
    ),
  )
  const app = await raw.origin.accept()
  const seen = await app.until('\r\n\r\n')
  expect(seen).toStartWith(
    `GET /a//b/../%2F?x=http://${raw.host}/ HTTP/1.1\r\nHost: ${local}\r\nx-A: 1\r\nREFERER:http://${local}/\r\nX-a: 2\r\nX-Forwarded-For: `,
  )
  await app.send(
    `HTTP/1.1 103 Early Hints\r\nLink: <http://${local}/a>\r\n\r\nHTTP/1.1 201 Ok Then\r\nX-b: 1\r\nLOCATION:   http://${local}/ \r\nTrailer: x\r\nTransfer-Encoding: chunked\r\nx-B: 2\r\n\r\n3\r\nabc\r\n0\r\nx: http://${local}/\r\n\r\n`,
  )
  expect(await visitor.until('\r\n\r\n')).toBe(
    `HTTP/1.1 103 Early Hints\r\nLink: <http://${local}/a>\r\n\r\n`,
  )
  const { head, body } = await readAnswer(visitor)
  expect(head).toBe(
    `HTTP/1.1 201 Ok Then\r\nX-b: 1\r\nLOCATION: http://${raw.host}/\r\nTrailer: x\r\nTransfer-Encoding: chunked\r\nx-B: 2\r\n\r\n`,
  )
  expect(body).toBe(`3\r\nabc\r\n0\r\nx: http://${local}/\r\n\r\n`)
})

test('a connection that stays open: every request is translated, also in the middle of many, and again when the app had closed', async () => {
  await using raw = await rawTunnel({ client: { hostHeader: 'rewrite' } })
  const local = `127.0.0.1:${raw.origin.port}`
  const request = get(raw.host, '/', `Referer: http://${raw.host}/\r\n`)
  const answer = ok('x', `Location: http://${local}/\r\n`)
  const first = await exchange(raw, request, answer)
  const { visitor } = first
  let { app } = first
  for (let round = 0; round < 200; round++) {
    await visitor.send(request)
    const seen = await app.until('\r\n\r\n')
    expect(headerOf(seen, 'referer')).toBe(`http://${local}/`)
    await app.send(answer)
    expect(headerOf((await readAnswer(visitor)).head, 'location')).toBe(`http://${raw.host}/`)
  }
  await visitor.send(request)
  await app.until('\r\n\r\n')
  app.socket.terminate()
  app = await raw.origin.accept()
  expect(headerOf(await app.until('\r\n\r\n'), 'referer')).toBe(`http://${local}/`)
  await app.send(answer)
  expect(headerOf((await readAnswer(visitor)).head, 'location')).toBe(`http://${raw.host}/`)
})

test('long bodies pass both ways, byte for byte', async () => {
  const bytes = crypto.getRandomValues(new Uint8Array(60_000))
  const body = Buffer.concat(Array.from({ length: 100 }, () => bytes))
  const sum = (data: Uint8Array) => createHash('sha256').update(data).digest('hex')
  using app = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    fetch: async request =>
      new Response(body, { headers: { 'x-sum': sum(await request.bytes()), location: request.url } }),
  })
  await using tunnel = await startTunnel({ port: app.port ?? 0, hostHeader: 'rewrite' })
  const answer = await fetch(`http://127.0.0.1:${tunnel.port}/up`, {
    method: 'POST',
    headers: { host: tunnel.host },
    body,
  })
  expect(answer.headers.get('x-sum')).toBe(sum(body))
  expect(answer.headers.get('location')).toBe(`http://${tunnel.host}/up`)
  expect(sum(await answer.bytes())).toBe(sum(body))
})

test('behind a proxy that ends TLS, visitors are sent to https; what others say of it does not count', async () => {
  for (const [trustedProxies, scheme] of [
    [['127.0.0.1'], 'https'],
    [[], 'http'],
  ] as const) {
    await using raw = await rawTunnel({ server: { trustedProxies }, client: { hostHeader: 'rewrite' } })
    const location = `Location: http://127.0.0.1:${raw.origin.port}/a\r\n`
    const { got } = await exchange(raw, get(raw.host, '/', 'X-Forwarded-Proto: https\r\n'), ok('', location))
    expect(headerOf(got.head, 'location')).toBe(`${scheme}://${raw.host}/a`)
  }
})

describe('prefixes', () => {
  test('each service and each route has its own; reports have the path of the visitor', async () => {
    using api = new RawOrigin()
    await using raw = await rawTunnel({
      client: {
        addPrefix: '/site/',
        routes: { '/api': { port: api.port, host: '127.0.0.1', stripPrefix: '/api' } },
      },
    })
    const seen = async (origin: RawOrigin, path: string, location: string) => {
      const reported = next(raw.tunnel.client, 'request')
      const visitor = await raw.visit(get(raw.host, path, 'Connection: close\r\n'))
      const app = await origin.accept()
      const [line = ''] = (await app.until('\r\n\r\n')).split('\r\n')
      await app.send(
        `HTTP/1.1 302 Found\r\nConnection: close\r\nLocation: ${location}\r\nContent-Length: 0\r\n\r\n`,
      )
      const { head } = await readAnswer(visitor)
      return [line.split(' ')[1], headerOf(head, 'location'), (await reported).path]
    }
    expect(await seen(raw.origin, '/a?b', '/site/login')).toEqual(['/site/a?b', '/login', '/a?b'])
    expect(await seen(raw.origin, '/apis', '/site/')).toEqual(['/site/apis', '/', '/apis'])
    expect(await seen(api, '/api/v1?b', '/login')).toEqual(['/v1?b', '/api/login', '/api/v1?b'])
    expect(await seen(api, '/api', '/')).toEqual(['/', '/api/', '/api'])
  })

  test('a URL without a path, and OPTIONS for the whole server', async () => {
    await using raw = await rawTunnel({ client: { addPrefix: '/app' } })
    const { visitor, app, seen } = await exchange(raw, get(raw.host, `http://${raw.host}`), ok(''))
    expect(seen.head).toStartWith('GET /app/ HTTP/1.1\r\n')
    await visitor.send(`OPTIONS * HTTP/1.1\r\nHost: ${raw.host}\r\n\r\n`)
    expect(await app.until('\r\n\r\n')).toStartWith('OPTIONS * HTTP/1.1\r\n')
  })

  test('alone with headers = none: paths are changed, and nothing in headers', async () => {
    await using raw = await rawTunnel({ client: { addPrefix: '/app', rewrite: [] } })
    const { seen, got } = await exchange(raw, get(raw.host, '/a'), ok('', 'Location: /app/b\r\n'))
    expect(seen.head).toStartWith('GET /app/a HTTP/1.1\r\n')
    expect(headerOf(got.head, 'location')).toBe('/app/b')
  })

  test.each([
    ['streams', {}],
    ['streams', { routes: { '/app': { stripPrefix: '/app' } } }],
    ['json', {}],
  ] as const)('a rule for a path of visitors holds for the app: %s %j', async (wire, more) => {
    const fetch = ({ url }: Request) => new Response(`app ${new URL(url).pathname}`)
    await using tunnel = await startTunnel(
      {
        fetch,
        // This wire has no guards.
        ...(wire === 'streams' && { guard: { paths: { '/app/admin': { bearer: 'a-token-of-a-machine' } } } }),
        ...('routes' in more
          ? { routes: { '/app': { fetch, stripPrefix: '/app' } } }
          : { stripPrefix: '/app' }),
      },
      { wire, server: { guarding: guarding() } },
    )
    const seen = async (path: string) => {
      const { status, body, code } = await ask(tunnel.port, tunnel.host, { path })
      return code === undefined ? body : `${status} ${code}`
    }
    expect(await seen('/app/cart')).toBe('app /cart')
    expect(await seen('/app/admin')).toBe(wire === 'streams' ? '401 ACCESS_REQUIRED' : 'app /admin')
    for (const path of ['/app/../admin', '/app/%2e%2e/admin', '/app/a/..%2f..%2fadmin', '/app//a/admin'])
      expect(await seen(path)).toContain('FILTERED_OUT')
    if (!('routes' in more)) expect(await seen('/admin')).toContain('FILTERED_OUT')
  })

  test("the server's own cookie of a pool keeps its path", async () => {
    await using raw = await rawTunnel({
      client: { stripPrefix: '/app', pool: { affinity: 'cookie' } },
    })
    const { got } = await exchange(raw, get(raw.host, '/app/a'), ok('', 'Set-Cookie: a=1; Path=/\r\n'))
    expect(got.head).toContain('\r\nSet-Cookie: a=1; Path=/app\r\n')
    expect(got.head).toMatch(/\r\nSet-Cookie: lt_member=[^\r]*; Path=\/(?:;|\r)/)
  })

  test('on the JSON wire', async () => {
    using app = Bun.serve({
      port: 0,
      hostname: '127.0.0.1',
      fetch: ({ url }) => new Response(new URL(url).pathname, { headers: { location: '/app/next' } }),
    })
    await using tunnel = await startTunnel({ port: app.port ?? 0, addPrefix: '/app' }, { wire: 'json' })
    const answer = await fetch(`http://127.0.0.1:${tunnel.port}/a`, { headers: { host: tunnel.host } })
    expect([await answer.text(), answer.headers.get('location')]).toEqual(['/app/a', '/next'])
  })
})

test('only the headers that are asked for, and with the Host of the visitor none', async () => {
  for (const [client, referer, location] of [
    [{ hostHeader: 'rewrite', rewrite: ['referer'] }, 'app', 'app'],
    [{ hostHeader: 'rewrite', rewrite: ['location'] }, 'visitor', 'visitor'],
    [{ hostHeader: 'rewrite', rewrite: [] }, 'visitor', 'app'],
    [{ rewrite: ['location', 'referer'] }, 'visitor', 'visitor'],
    [{}, 'visitor', 'app'],
  ] as const) {
    await using raw = await rawTunnel({ client })
    const own = `http://127.0.0.1:${raw.origin.port}/`
    const theirs = `http://${raw.host}/`
    const { seen, got } = await exchange(
      raw,
      get(raw.host, '/', `Referer: ${theirs}\r\n`),
      ok('', `Location: ${own}\r\n`),
    )
    const which = (url: string | undefined) => (url === own ? 'app' : url === theirs ? 'visitor' : url)
    expect([client, which(headerOf(seen.head, 'referer')), which(headerOf(got.head, 'location'))]).toEqual([
      client,
      referer,
      location,
    ])
  }
})

test('options that cannot be used are refused', async () => {
  const refused = (options: object) => () => new TunnelClient({ port: 3000, ...options })
  expect(refused({ rewrite: ['body'] })).toThrow(
    'rewrite: "body" is none of location, cookies, referer, origin, destination.',
  )
  for (const path of ['app', '/a b', '/a/../b', '/a?b', '//a'])
    for (const name of ['stripPrefix', 'addPrefix'])
      expect(refused({ [name]: path })).toThrow(`${name}: "${path}" is not a path such as /app.`)
  for (const path of ['/', '', '/app/']) expect(refused({ addPrefix: path })).not.toThrow()
})

test('guards in front that change the head change another part of it', async () => {
  using app = startApp(false)
  await using server = await startServer({
    guards: [{ name: 'marks', admit: () => ({ requestHeaders: [['x-mark', 'a']], withoutCookies: ['s'] }) }],
  })
  await using client = new TunnelClient({
    server: server.url,
    url: `http://localhost:${app.port}`,
    subdomain: 'app',
    hostHeader: 'rewrite',
  })
  await client.connect()
  const agent = new Agent({ keepAlive: true })
  for (let round = 0; round < 3; round++) {
    const headers = { cookie: 's=1; t=2', referer: 'http://app.localhost/x' }
    const { body } = await ask(server.port, 'app.localhost', { headers, agent })
    expect(JSON.parse(body).names[2]).toBe(`http://localhost:${app.port}/x`)
  }
  agent.destroy()
})
