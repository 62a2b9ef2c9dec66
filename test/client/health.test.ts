// Health checks: how many it takes, what counts as well, and what visitors get meanwhile.

import { expect, test } from 'bun:test'
import { createServer as createHttp2Server } from 'node:http2'
import { type AddressInfo, connect } from 'node:net'
import type { HealthOptions } from '../../src/client/options.ts'
import { AddressOrigin } from '../../src/client/origins/address.ts'
import type { Origin } from '../../src/client/origins/origin.ts'
import { HealthCheck, type HealthSettings } from '../../src/client/tunnels/health.ts'
import { TunnelClient, type TunnelServer } from '../../src/index.ts'
import { HandlerOrigin } from '../../src/parts/functions/origin.ts'
import { dialBun } from '../../src/sockets/bun.ts'
import { ask } from '../support/ask.ts'
import { Clock } from '../support/clock.ts'
import { codeOf, eventually, next, until } from '../support/events.ts'
import { frame, SETTINGS as SETTINGS_FRAME } from '../support/h2-frames.ts'
import { RawOrigin } from '../support/raw.ts'
import { TcpProxy } from '../support/tcp-proxy.ts'
import { startServer } from '../support/tunnel.ts'

const loadHttp2 = async () => (await import('../../src/parts/http2/client/health.ts')).probeHttp2

const SETTINGS: HealthSettings = {
  kind: 'http',
  path: '/health',
  host: 'localhost:3000',
  intervalMs: 5_000,
  timeoutMs: 2_000,
  healthyAfter: 2,
  unhealthyAfter: 3,
}

const PING = frame(6, 0, 0, [1, 2, 3, 4, 5, 6, 7, 8])

const originAt = (port: number): Origin =>
  new AddressOrigin({ address: { host: '127.0.0.1', port }, connectTimeoutMs: 1_000, dial: dialBun })

/** A check on a clock of the test's. */
function checking(origin: Origin, more: Partial<HealthSettings> = {}) {
  const clock = new Clock()
  const verdicts: string[] = []
  const check = new HealthCheck(
    origin,
    { ...SETTINGS, ...more },
    clock,
    (isHealthy, error) => verdicts.push(isHealthy ? 'well' : (error?.code ?? 'unwell')),
    loadHttp2,
  )
  return { clock, verdicts, check }
}

test('the first check decides alone; then it takes several in a row, either way', async () => {
  let status = 503
  let asked = 0
  const seen: string[] = []
  using app = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    fetch(request) {
      asked++
      seen.push(`${request.method} ${new URL(request.url).pathname} ${request.headers.get('host')}`)
      return new Response('', { status })
    },
  })
  const { clock, verdicts, check } = checking(originAt(app.port ?? 0))
  /** One more check, with this answer, to its end. */
  const once = async (answer: number) => {
    status = answer
    const before = asked
    if (before === 0) check.start()
    else clock.advance(SETTINGS.intervalMs)
    await eventually(() => asked === before + 1, 'the check')
    // Its own deadline is gone, the next check is planned.
    await eventually(
      () => clock.timerCount === 1 && clock.nextInMs === SETTINGS.intervalMs,
      'the end of the check',
    )
    return verdicts.at(-1)
  }
  expect(await once(503)).toBe('ORIGIN_UNHEALTHY')
  expect([await once(200), await once(500), await once(200), verdicts.length]).toEqual([
    'ORIGIN_UNHEALTHY',
    'ORIGIN_UNHEALTHY',
    'ORIGIN_UNHEALTHY',
    1,
  ])
  expect(await once(399)).toBe('well')
  expect(check.isHealthy).toBe(true)
  for (const answer of [400, 404, 200, 500, 503, 204]) expect(await once(answer)).toBe('well')
  await once(500)
  await once(500)
  expect(await once(500)).toBe('ORIGIN_UNHEALTHY')
  expect(verdicts).toEqual(['ORIGIN_UNHEALTHY', 'well', 'ORIGIN_UNHEALTHY'])
  expect(new Set(seen)).toEqual(new Set(['GET /health localhost:3000']))
  check.stop()
  expect(clock.timerCount).toBe(0)
})

test('a check that takes too long has failed, and the connection is cut', async () => {
  using app = new RawOrigin()
  const { clock, verdicts, check } = checking(originAt(app.port))
  check.start()
  const connection = await app.accept()
  await connection.until('\r\n\r\n')
  await connection.send('HTTP/1.1 200 OK\r\nX')
  clock.advance(SETTINGS.timeoutMs - 1)
  expect(verdicts).toEqual([])
  clock.advance(1)
  expect(verdicts).toEqual(['ORIGIN_TIMEOUT'])
  await connection.closed()
  check.stop()
})

test.each([
  ['HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n', []],
  ['HTTP/1.0 301 Moved\r\n\r\n', []],
  ['SSH-2.0-OpenSSH\r\n', ['ORIGIN_INVALID']],
  [`HTTP/1.1 200 OK\r\nX: ${'y'.repeat(70_000)}\r\n\r\n`, ['ORIGIN_INVALID']],
  ['HTTP/1.1 200', ['ORIGIN_CLOSED']],
  ['', ['ORIGIN_CLOSED']],
])('an app that says something, %#', async (answer, wanted) => {
  using app = new RawOrigin()
  const { clock, verdicts, check } = checking(originAt(app.port))
  check.start()
  const connection = await app.accept()
  await connection.until('\r\n\r\n')
  await connection.send(answer)
  connection.socket.end()
  await eventually(() => clock.nextInMs === SETTINGS.intervalMs, 'the end of the check')
  expect(verdicts).toEqual([...wanted])
  check.stop()
})

test.each([
  ['HTTP/1.1 200 OK\r\nno colon here\r\n\r\n', {}, 'line 2 of its head has no colon'],
  ['HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n', { isHttp2: true }, 'it breaks HTTP/2: '],
])('what is wrong with an answer is in the message, %#', async (answer, more, why) => {
  using app = new RawOrigin()
  const { promise: said, resolve } = Promise.withResolvers<string | undefined>()
  const check = new HealthCheck(
    originAt(app.port),
    { ...SETTINGS, ...more },
    new Clock(),
    (_, error) => resolve(error?.message),
    loadHttp2,
  )
  check.start()
  const connection = await app.accept()
  await connection.until('\r\n\r\n')
  await connection.send(answer)
  expect(await said).toStartWith(`The answer to GET /health is not valid: ${why}`)
  check.stop()
})

test('tcp: a connection is enough; nobody there is not', async () => {
  using app = new RawOrigin()
  const there = checking(originAt(app.port), { kind: 'tcp' })
  there.check.start()
  expect((await app.accept()).text).toBe('')
  await eventually(() => there.clock.nextInMs === SETTINGS.intervalMs, 'the end of the check')
  expect(there.verdicts).toEqual([])
  there.check.stop()
  const gone = checking(originAt(1), { kind: 'tcp' })
  gone.check.start()
  await eventually(() => gone.verdicts.length === 1, 'the verdict')
  expect(gone.verdicts).toEqual(['ORIGIN_REFUSED'])
  gone.check.stop()
})

test('a function is asked, too', async () => {
  const { verdicts, check } = checking(new HandlerOrigin(() => new Response('', { status: 500 })))
  check.start()
  await eventually(() => verdicts.length === 1, 'the verdict')
  expect(verdicts).toEqual(['ORIGIN_UNHEALTHY'])
  check.stop()
})

/** Checks that do not keep a test waiting. */
const QUICK: HealthOptions = { path: '/health', intervalMs: 5, healthyAfter: 1, unhealthyAfter: 1 }

/** A client whose app is well or not, as the test says. */
async function moody(server: TunnelServer, name: string, more: { pool?: boolean; port?: number } = {}) {
  const mood = { isWell: true }
  const client = new TunnelClient({
    server: `127.0.0.1:${more.port ?? server.port}`,
    subdomain: 'app',
    maxBackoffMs: 20,
    pool: more.pool ?? true,
    health: QUICK,
    fetch: request =>
      new Response(name, { status: new URL(request.url).pathname !== '/health' || mood.isWell ? 200 : 503 }),
  })
  await client.connect()
  return {
    client,
    /** Resolves once the server knows. */
    async become(isWell: boolean) {
      const changed = next(client, 'health')
      mood.isWell = isWell
      const event = await changed
      // The server reads in turn: an answer to this says that it has read what came before.
      await client.probe()
      return event
    },
    [Symbol.asyncDispose]: () => client.disconnect(),
  }
}

const HOST = 'app.localhost'

test('a tunnel alone: 503 with a page of its own while the app is unwell, and the app gets nothing', async () => {
  await using server = await startServer()
  await using one = await moody(server, 'one', { pool: false })
  expect(await one.become(false)).toMatchObject({
    tunnel: 'app',
    isHealthy: false,
    error: { code: 'ORIGIN_UNHEALTHY' },
  })
  expect(await ask(server.port, HOST)).toMatchObject({ status: 503, code: 'ORIGIN_UNHEALTHY' })
  const page = await ask(server.port, HOST, { headers: { Accept: 'text/html' } })
  expect(page.body).toContain('The app is unhealthy')
  expect(await one.become(true)).toEqual({ tunnel: 'app', isHealthy: true })
  expect(await ask(server.port, HOST)).toMatchObject({ status: 200, body: 'one' })
  expect(server.getStats()).toMatchObject({ pendingResponses: 0 })
})

test('of a pool the well ones get everything; when all are unwell it is 503', async () => {
  await using server = await startServer()
  await using one = await moody(server, 'one')
  await using two = await moody(server, 'two')
  const bodies = async () =>
    [await ask(server.port, HOST), await ask(server.port, HOST)].map(({ body }) => body).toSorted()
  expect(await bodies()).toEqual(['one', 'two'])
  await one.become(false)
  expect(await bodies()).toEqual(['two', 'two'])
  await two.become(false)
  expect(await ask(server.port, HOST)).toMatchObject({ status: 503, code: 'ORIGIN_UNHEALTHY' })
  await one.become(true)
  expect(await bodies()).toEqual(['one', 'one'])
  await two.become(true)
  expect(await bodies()).toEqual(['one', 'two'])
})

test('one that flaps under load costs no visitor anything', async () => {
  await using server = await startServer()
  await using one = await moody(server, 'one')
  await using _two = await moody(server, 'two')
  let isOver = false
  const flapping = (async () => {
    for (let count = 0; !isOver; count++) await one.become(count % 2 === 1)
  })()
  const seen: Record<string, number> = {}
  const visitor = async () => {
    for (let count = 0; count < 60; count++) {
      const { status, body } = await ask(server.port, HOST)
      seen[`${status} ${body}`] = (seen[`${status} ${body}`] ?? 0) + 1
    }
  }
  await Promise.all([visitor(), visitor(), visitor(), visitor()])
  isOver = true
  await flapping
  expect(Object.keys(seen).toSorted()).toEqual(['200 one', '200 two'])
  expect(Object.values(seen).reduce((sum, count) => sum + count, 0)).toBe(240)
})

test('the verdict holds through a reconnect: an unwell app gets nothing in between', async () => {
  await using server = await startServer()
  using proxy = new TcpProxy(server.port)
  await using one = await moody(server, 'one', { port: proxy.port, pool: false })
  await one.become(false)
  const back = next(one.client, 'connected')
  const lost = until(server, 'disconnection', () => true)
  proxy.cutAll('reset')
  await lost
  const waiting = ask(server.port, HOST)
  await back
  expect(await waiting).toMatchObject({ code: 'ORIGIN_UNHEALTHY' })
  expect(await ask(server.port, HOST)).toMatchObject({ code: 'ORIGIN_UNHEALTHY' })
})

test('an app that is down at the start is unwell at once', async () => {
  await using server = await startServer()
  await using client = new TunnelClient({
    server: `127.0.0.1:${server.port}`,
    subdomain: 'app',
    port: 1,
    host: '127.0.0.1',
    health: {},
  })
  const verdict = next(client, 'health')
  await client.connect()
  expect(await verdict).toMatchObject({ isHealthy: false, error: { code: 'ORIGIN_REFUSED' } })
  await client.probe()
  expect(await ask(server.port, HOST)).toMatchObject({ code: 'ORIGIN_UNHEALTHY' })
})

test('connections to an unwell TCP service are cut', async () => {
  await using server = await startServer()
  await using client = new TunnelClient({ server: `127.0.0.1:${server.port}` })
  const verdict = next(client, 'health')
  const tunnel = await client.tcp({ port: 1, host: '127.0.0.1', health: { intervalMs: 5 } })
  await verdict
  const lookup = await client.http({ subdomain: 'later', fetch: () => new Response('') })
  expect(lookup.name).toBe('later')
  const visitor = connect({ port: tunnel.port ?? 0, host: '127.0.0.1' })
  let heard = ''
  visitor.on('data', piece => {
    heard += piece.toString()
  })
  visitor.on('error', () => {})
  await new Promise(resolve => visitor.once('close', resolve))
  expect(heard).toBe('')
})

test('nobody is asked after the tunnel or the client is closed', async () => {
  await using server = await startServer()
  let asked = 0
  await using client = new TunnelClient({ server: `127.0.0.1:${server.port}` })
  const options = { path: '/health', intervalMs: 1 }
  const fetch = () => {
    asked++
    return new Response('')
  }
  const tunnel = await client.http({ subdomain: 'app', fetch, health: options })
  await eventually(() => asked > 3, 'some checks')
  await tunnel.close()
  let before = asked
  await Bun.sleep(20)
  expect(asked - before).toBeLessThanOrEqual(1)
  await client.http({ subdomain: 'app', fetch, health: options })
  await eventually(() => asked > before + 3, 'some checks')
  await client.disconnect()
  before = asked
  await Bun.sleep(20)
  expect(asked - before).toBeLessThanOrEqual(1)
})

test.each([
  [{ kind: 'udp' }, 'OPTION_INVALID'],
  [{ path: 'health' }, 'OPTION_INVALID'],
  [{ path: '/a b' }, 'OPTION_INVALID'],
  [{ path: '/a\r\nX: y' }, 'OPTION_INVALID'],
  [{ intervalMs: 0 }, 'OPTION_INVALID'],
  [{ timeoutMs: -1 }, 'OPTION_INVALID'],
  [{ healthyAfter: 0 }, 'OPTION_INVALID'],
  [{ unhealthyAfter: 1.5 }, 'OPTION_INVALID'],
])('health: %j is refused with %s', async (health, code) => {
  // Some of these are none of the type's values: that is what is tested.
  const make = async () => new TunnelClient({ port: 3000, health: health as HealthOptions })
  expect(await codeOf(make())).toBe(code)
})

test('the JSON wire cannot tell, and says so', async () => {
  await using server = await startServer()
  const client = new TunnelClient({ server: `127.0.0.1:${server.port}`, wire: 'json', port: 1, health: {} })
  expect(String(await client.connect().catch((error: unknown) => error))).toContain('no health checks')
})

test('apps of HTTP/2 are asked in HTTP/2, and what is no answer counts as unwell', async () => {
  let status = 200
  const seen: string[] = []
  const app = createHttp2Server((request, response) => {
    seen.push(`${request.method} ${request.url} ${request.authority}`)
    response.writeHead(status).end('body')
  })
  await new Promise<void>(resolve => app.listen(0, '127.0.0.1', resolve))
  const { port } = app.address() as AddressInfo
  const settings = { isHttp2: true, healthyAfter: 1, unhealthyAfter: 1 }
  for (const [answer, verdicts] of [
    [503, ['ORIGIN_UNHEALTHY']],
    [204, []],
  ] as const) {
    status = answer
    const { promise, resolve } = Promise.withResolvers<void>()
    const clock = new Clock()
    const said: string[] = []
    const check = new HealthCheck(
      originAt(port),
      { ...SETTINGS, ...settings },
      clock,
      (_, error) => said.push(error?.code ?? 'well'),
      loadHttp2,
    )
    app.once('session', session => session.once('close', resolve))
    check.start()
    // The check ends its connection once it has its answer.
    await promise
    expect(said).toEqual([...verdicts])
    check.stop()
  }
  expect(seen).toEqual(Array(2).fill('GET /health localhost:3000'))
  app.close()
  // An app that speaks HTTP/1.1 after all.
  using origin = new RawOrigin()
  const { verdicts, check } = checking(originAt(origin.port), settings)
  check.start()
  const asked = await origin.accept()
  await asked.until('PRI * HTTP/2.0')
  await asked.send('HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n')
  await asked.closed()
  expect(verdicts).toEqual(['ORIGIN_INVALID'])
  check.stop()
})

test('an app of HTTP/2 that floods a check is unwell, and costs no more than that', async () => {
  using origin = new RawOrigin()
  const { verdicts, check } = checking(originAt(origin.port), { isHttp2: true })
  check.start()
  const asked = await origin.accept()
  await asked.until('PRI * HTTP/2.0')
  await asked.send(Uint8Array.from([...SETTINGS_FRAME, ...Array.from({ length: 2_000 }, () => PING).flat()]))
  await asked.closed()
  expect(verdicts).toEqual(['ORIGIN_INVALID'])
  check.stop()
})
