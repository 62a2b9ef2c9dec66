// The admin listener: who may use it, what it tells and does, and that a restart forgets neither traffic nor bans.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { mkdtemp, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type ErrorCode, TunnelClient, TunnelServer } from '../../../src/index.ts'
import { AuditNotes } from '../../../src/parts/admin/admin.ts'
import { OPEN_API } from '../../../src/parts/admin/open-api.ts'
import { Bans } from '../../../src/parts/bans/bans.ts'
import { SqliteOperations } from '../../../src/stores/sqlite-operations.ts'
import { ADMIN_TOKEN, adminOptions, askAdmin, metricsOf, sampleOf } from '../../support/admin.ts'
import { ask } from '../../support/ask.ts'
import { codeOf, next } from '../../support/events.ts'
import { rawDial } from '../../support/raw.ts'
import { startServer, startTunnel } from '../../support/tunnel.ts'
import { within } from '../../support/within.ts'

const serve = () =>
  Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    fetch: request => new Response('hello', { status: request.url.endsWith('/bad') ? 500 : 200 }),
  })
let app: Bun.Server<undefined>
beforeAll(() => {
  app = serve()
})
afterAll(() => app.stop(true))

const start = (admin = adminOptions()) => startTunnel({ port: app.port ?? 0 }, { server: { admin } })

test('a Host that is none is the fault of who sends it, and no error of the server', async () => {
  await using tunnel = await start()
  const errors: unknown[] = []
  tunnel.server.on('error', error => errors.push(error))
  const port = Number(new URL(tunnel.server.adminUrl ?? '').port)
  for (const host of ['a\\b', '[::1]x', '?', '#', '[']) {
    const visitor = await rawDial(port)
    await visitor.send(`GET /api/v1/status HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`)
    expect([host, (await visitor.end()).slice(9, 12)]).toEqual([host, '400'])
  }
  expect(errors).toEqual([])
})

test('only who shows the token is answered, and pages of other sites are not', async () => {
  await using tunnel = await start()
  const { adminUrl = '' } = tunnel.server
  const status = async (path: string, headers: Record<string, string> = {}) =>
    (await fetch(`${adminUrl}${path}`, { headers })).status
  const good = { authorization: `Bearer ${ADMIN_TOKEN}` }
  expect(await status('/health')).toBe(200)
  for (const path of ['/metrics', '/api/v1/tunnels', '/api/v1/openapi.json', '/nothing']) {
    expect(await status(path)).toBe(401)
    expect(await status(path, { authorization: `Bearer ${ADMIN_TOKEN}x` })).toBe(401)
    expect(await status(path, { authorization: `Basic ${btoa(`:${ADMIN_TOKEN}`)}` })).toBe(401)
    expect(await status(path, { ...good, origin: 'https://evil.example' })).toBe(401)
    expect(await status(path, { ...good, 'sec-fetch-site': 'cross-site' })).toBe(401)
  }
  const said = async (headers = {}) => (await fetch(`${adminUrl}/metrics`, { headers })).text()
  expect(await said()).toContain('The admin listener wants a token, and got none.')
  expect(await said({ authorization: 'Bearer x' })).toContain('does not accept this token')
  expect(await status('/metrics', good)).toBe(200)
  expect(await status('/nothing', good)).toBe(404)
  // A body without a type is none that was meant for the API.
  const ban = JSON.stringify({ value: '192.0.2.1' })
  for (const [type, code] of [
    [undefined, 400],
    ['text/plain', 400],
    ['application/json', 201],
  ] as const) {
    const headers = { ...good, ...(type !== undefined && { 'content-type': type }) }
    const answer = await fetch(`${adminUrl}/api/v1/bans`, { method: 'POST', headers, body: Buffer.from(ban) })
    expect(answer.status).toBe(code)
  }
  // Not on the port of visitors, whatever the host.
  for (const host of ['localhost', tunnel.host])
    expect((await ask(tunnel.port, host, { path: '/api/v1/tunnels', headers: good })).body).not.toContain(
      '"tunnels"',
    )
})

test('options that cannot be used are refused, and a port in use', async () => {
  for (const admin of [
    { token: 'short' },
    { token: 'with spaces in it, long' },
    { ...adminOptions(), probeMs: -1 },
  ])
    expect(() => new TunnelServer({ admin })).toThrow('admin.')
  await using tunnel = await start()
  const port = Number(new URL(tunnel.server.adminUrl ?? '').port)
  const other = new TunnelServer({ port: 0, host: '127.0.0.1', admin: adminOptions({ port }) })
  expect(await codeOf(other.start())).toBe('PORT_IN_USE' satisfies ErrorCode)
  expect(await codeOf(tunnel.server.reload({}))).toBe('OPTION_INVALID' satisfies ErrorCode)
})

test('tunnels and clients are listed, with what they did', async () => {
  await using tunnel = await start()
  await ask(tunnel.port, tunnel.host)
  await ask(tunnel.port, tunnel.host, { path: '/bad' })
  const { body } = await askAdmin(tunnel.server, '/tunnels')
  expect(body.tunnels).toMatchObject([
    {
      name: 'app',
      kind: 'http',
      url: `http://app.localhost:${tunnel.port}`,
      state: 'up',
      clients: [1],
      isGuarded: false,
      requests: 2,
      errors: 1,
    },
  ])
  expect(Date.parse(body.tunnels[0].lastProvenAt)).toBeGreaterThan(0)
  const clients = (await askAdmin(tunnel.server, '/clients')).body.clients
  expect(clients).toMatchObject([
    { number: 1, wire: 'streams', address: '127.0.0.1', agent: 'localtunnels/0.1.0', tunnels: ['app'] },
  ])
  expect((await askAdmin(tunnel.server, '/tunnels/none')).status).toBe(404)
})

for (const wire of ['streams', 'json'] as const)
  test(`a tunnel that is closed is gone, and its client on the ${wire} wire knows why`, async () => {
    await using tunnel = await startTunnel(
      { port: app.port ?? 0 },
      { server: { admin: adminOptions() }, wire },
    )
    const gone = next(tunnel.server, 'disconnection')
    const told = wire === 'json' ? undefined : next(tunnel.client, 'close')
    expect(await askAdmin(tunnel.server, '/tunnels/app', { method: 'DELETE' })).toMatchObject({
      status: 200,
      body: { closed: 'app' },
    })
    expect(await gone).toEqual({ subdomain: 'app', reason: 'BLOCKED' })
    // The other wire has no codes: its client comes back. Closed is not banned.
    if (told === undefined) return
    expect(String((await told).error)).toContain('operator')
    expect((await ask(tunnel.port, tunnel.host)).status).toBe(404)
    await using again = new TunnelClient({ server: `http://127.0.0.1:${tunnel.port}` })
    await again.http({ port: app.port ?? 0, subdomain: 'app' })
    expect((await ask(tunnel.port, tunnel.host)).status).toBe(200)
  })

test('a banned address is refused at names without a client: it does not wait, and learns nothing of them', async () => {
  const limits = { startupHoldMs: 60_000 }
  await using server = await startServer({
    admin: adminOptions(),
    limits,
    tokens: [{ token: 'a-token', hosts: ['*.example'] }],
  })
  await askAdmin(server, '/bans', { method: 'POST', body: { value: '127.0.0.0/8', forSeconds: 60 } })
  for (const host of ['app.localhost', 'a.b.localhost', 'www.shop.example', 'xn--a.localhost'])
    expect(await within(ask(server.port, host), host)).toMatchObject({ status: 403, code: 'BLOCKED' })
  // The server itself is there for all.
  expect(await ask(server.port, 'localhost', { path: '/health' })).toMatchObject({ status: 200 })
})

test('a banned name has no tunnel, and a banned address neither visits nor connects', async () => {
  await using tunnel = await start()
  const { server, port, host } = tunnel
  const named = await askAdmin(server, '/bans', { method: 'POST', body: { kind: 'tunnel', value: 'shop' } })
  expect(named).toMatchObject({ status: 201, body: { kind: 'tunnel', value: 'shop', reason: '' } })
  expect(await codeOf(tunnel.client.http({ port: app.port ?? 0, subdomain: 'shop' }))).toBe('BLOCKED')
  const ban = { value: '127.0.0.0/8', reason: 'a test', forSeconds: 60 }
  const { body } = await askAdmin(server, '/bans', { method: 'POST', body: ban })
  expect(await ask(port, host)).toMatchObject({ status: 403, code: 'BLOCKED' })
  await using other = new TunnelClient({ server: `http://127.0.0.1:${port}` })
  expect(await codeOf(other.http({ port: app.port ?? 0 }))).toBe('BLOCKED')
  expect((await askAdmin(server, `/bans/${body.id}`, { method: 'DELETE' })).status).toBe(200)
  expect((await askAdmin(server, `/bans/${body.id}`, { method: 'DELETE' })).status).toBe(404)
  expect((await askAdmin(server, '/bans')).body.bans).toHaveLength(1)
  expect((await ask(port, host)).status).not.toBe(403)
})

test('what cannot be banned is said so', async () => {
  await using tunnel = await start()
  const bodies = [
    {},
    { value: 7 },
    { value: '300.1.1.1' },
    { value: '::1/200' },
    { value: '10.0.0.0/8/8' },
    [],
    'x',
  ]
  for (const body of [...bodies, { value: '10.0.0.1', forSeconds: 0 }, { kind: 'token', value: 'x' }])
    expect((await askAdmin(tunnel.server, '/bans', { method: 'POST', body })).status).toBe(400)
})

test('a client that is closed is gone', async () => {
  await using tunnel = await start()
  const gone = next(tunnel.server, 'disconnection')
  expect((await askAdmin(tunnel.server, '/clients/1', { method: 'DELETE' })).status).toBe(200)
  expect((await gone).subdomain).toBe('app')
  expect((await askAdmin(tunnel.server, '/clients/1', { method: 'DELETE' })).status).toBe(404)
})

test('a probe proves a tunnel through its client and app, also one that nobody visits', async () => {
  await using tunnel = await start(adminOptions({ probeMs: 20 }))
  let row: { lastProvenAt?: string; lastProbe?: { status: number } } = {}
  for (let tries = 0; tries < 500 && row.lastProbe === undefined; tries++)
    row = (await askAdmin(tunnel.server, '/tunnels/app')).body
  expect(row.lastProbe?.status).toBe(200)
  expect(row.lastProvenAt).toBeString()
  await app.stop(true)
  try {
    let probe = { status: 200, code: '' }
    for (let tries = 0; tries < 500 && probe.status !== 0; tries++) {
      // 404: another probe is under way.
      const answer = await askAdmin(tunnel.server, '/tunnels/app/probe', { method: 'POST' })
      if (answer.status === 200) probe = answer.body
    }
    expect(probe).toMatchObject({ status: 0, code: 'ORIGIN_REFUSED' })
  } finally {
    app = serve()
  }
})

test('traffic, bans and the audit log outlive a restart, in a file that others cannot read', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'localtunnels-admin-'))
  const path = join(folder, 'state', 'admin.db')
  try {
    for (const round of [1, 2]) {
      const store = new SqliteOperations(path)
      {
        await using tunnel = await start(adminOptions({ store, audit: store }))
        const { server } = tunnel
        for (let count = 0; count < 3; count++) await ask(tunnel.port, tunnel.host)
        for (const by of ['minute', 'hour', 'day']) {
          const { body } = await askAdmin(server, `/traffic?by=${by}&tunnel=app`)
          // The clock may go on to the next minute in the middle.
          const requests = body.traffic.reduce(
            (sum: number, row: { requests: number }) => sum + row.requests,
            0,
          )
          expect(requests).toBe(3 * round)
          expect(body.traffic[0].bytesOut).toBeGreaterThan(0)
        }
        if (round === 1)
          await askAdmin(server, '/bans', { method: 'POST', body: { value: '192.0.2.1', reason: 'why' } })
        expect((await askAdmin(server, '/bans')).body.bans).toMatchObject([{ value: '192.0.2.1' }])
        const { entries } = (await askAdmin(server, '/audit')).body
        const actions = entries.map(({ action }: { action: string }) => action)
        expect(entries[actions.indexOf('ban.address')]).toMatchObject({
          actor: 'admin',
          subject: '192.0.2.1',
          detail: 'why',
        })
        expect(entries[actions.indexOf('tunnel.open')]).toMatchObject({
          actor: '127.0.0.1',
          subject: 'app',
          detail: 'streams from 127.0.0.1',
        })
      }
      store.close()
    }
    expect((await stat(path)).mode & 0o777).toBe(0o600)
  } finally {
    await rm(folder, { recursive: true })
  }
})

test('a ban that ends by itself lets in again, also one of the file', () => {
  const store = new SqliteOperations(':memory:')
  const now = Date.now()
  store.saveBan({
    kind: 'address',
    value: '192.0.2.1',
    reason: '',
    sinceMs: now - 2_000,
    untilMs: now - 1_000,
  })
  const bans = new Bans(store, { changed() {}, added() {} })
  expect(bans.isAddressBanned('192.0.2.1')).toBe(false)
  bans.add({ kind: 'address', value: '198.51.100.0/24', reason: '', sinceMs: now })
  expect(bans.isAddressBanned('198.51.100.7')).toBe(true)
  expect(bans.isAddressBanned('::ffff:198.51.100.7')).toBe(true)
  expect(store.bans().map(({ value }) => value)).toEqual(['198.51.100.0/24'])
})

test('a banned network has addresses of its own family only', () => {
  const bans = new Bans(undefined, { changed() {}, added() {} })
  const ban = (value: string) => bans.add({ kind: 'address', value, reason: '', sinceMs: 0 })
  for (const value of ['::/0', '::/1']) ban(value)
  for (const address of ['192.0.2.1', '::ffff:192.0.2.1', '::ffff:c000:201'])
    expect([address, bans.isAddressBanned(address)]).toEqual([address, false])
  expect(bans.isAddressBanned('2001:db8::1')).toBe(true)
  ban('::ffff:192.0.2.0/120')
  expect(bans.isAddressBanned('192.0.2.1')).toBe(true)
  expect(bans.isAddressBanned('192.0.3.1')).toBe(false)
  expect(() => ban('::ffff:192.0.2.0/90')).toThrow(expect.objectContaining({ code: 'OPTION_INVALID' }))
})

test('old traffic is forgotten, and days stay for longer than minutes', () => {
  const store = new SqliteOperations(':memory:')
  const row = { tunnel: 'app', requests: 1, errors: 0, bytesIn: 2, bytesOut: 3 }
  const now = Date.now()
  store.add(now - 2 * 86_400_000, [row])
  store.add(now, [row, { ...row, tunnel: 'other' }])
  store.prune(now)
  const requestsOf = (span: 'minute' | 'day') =>
    store.traffic(span, 0, 10).map(({ requests, tunnel }) => `${requests}${tunnel}`)
  expect(requestsOf('minute')).toEqual(['2'])
  expect(requestsOf('day')).toEqual(['2', '1'])
  expect(store.traffic('day', now, 10, 'other')).toMatchObject([{ tunnel: 'other', requests: 1 }])
})

test('metrics count every request, also those of lanes, by tunnel, method and status', async () => {
  await using tunnel = await start()
  const keep = { headers: { host: tunnel.host } }
  for (let count = 0; count < 100; count++)
    await (await fetch(`http://127.0.0.1:${tunnel.port}/`, keep)).arrayBuffer()
  await ask(tunnel.port, tunnel.host, { path: '/bad', method: 'POST' })
  await ask(tunnel.port, tunnel.host, { method: 'INVENTED' })
  await ask(tunnel.port, 'nobody.localhost')
  const metrics = await metricsOf(tunnel.server)
  const count = (labels: string) => sampleOf(metrics, `localtunnels_requests_total{tunnel="app",${labels}}`)
  expect(count('method="GET",status="2xx"')).toBe(100)
  expect(count('method="POST",status="5xx"')).toBe(1)
  expect(metrics).toMatch(/^localtunnels_requests_total\{tunnel="app",method="OTHER",status="\dxx"\} 1$/m)
  expect(sampleOf(metrics, 'localtunnels_request_duration_seconds_count{tunnel="app"}')).toBe(102)
  expect(sampleOf(metrics, 'localtunnels_response_size_bytes_bucket{tunnel="app",le="+Inf"}')).toBe(102)
  expect(sampleOf(metrics, 'localtunnels_failed_total{tunnel="",code="TUNNEL_NOT_FOUND"}')).toBe(1)
  expect(sampleOf(metrics, 'localtunnels_clients{wire="streams"}')).toBe(1)
  expect(sampleOf(metrics, 'localtunnels_sent_bytes_total{tunnel="app"}')).toBeGreaterThan(102 * 5)
})

test('the number of series is bounded: tunnels that are gone give way, then they share one', async () => {
  await using tunnel = await start(adminOptions({ maxMetricTunnels: 2 }))
  const visit = async (name: string) => {
    await tunnel.client.http({ port: app.port ?? 0, subdomain: name })
    await ask(tunnel.port, `${name}.localhost`)
  }
  await ask(tunnel.port, tunnel.host)
  await visit('second')
  await visit('third')
  const metrics = await metricsOf(tunnel.server)
  const names = [...metrics.matchAll(/^localtunnels_sent_bytes_total\{tunnel="([^"]*)"\}/gm)]
  expect(names.map(([, name]) => name)).toEqual(['app', 'second', '_other'])
})

test('the OpenAPI document has every operation, and no other', async () => {
  const { AdminApi } = await import('../../../src/parts/admin/api.ts')
  const { operations } = new AdminApi({} as never, '')
  const documented = Object.entries(OPEN_API.paths as Record<string, object>).flatMap(([path, methods]) =>
    Object.keys(methods).map(method => `${method.toUpperCase()} ${path}`),
  )
  expect(documented.sort()).toEqual(Object.keys(operations).sort())
})

test('a flood of refusals fills neither the disk nor the time of the server', () => {
  const store = new SqliteOperations(':memory:')
  const notes = new AuditNotes(store, () => {})
  for (let count = 0; count < 1_000; count++)
    notes.note('client.refuse', '192.0.2.1', 'app', 'TOKEN_REFUSED', 5_000)
  notes.note('client.refuse', '192.0.2.1', 'app', 'TOKEN_REFUSED', 6_000)
  const entries = store.entries(Number.MAX_SAFE_INTEGER, 100)
  expect(entries).toHaveLength(21)
  expect(entries[0]?.detail).toBe('TOKEN_REFUSED (980 lines before were left out)')
})

test('a method that a path has not is 405 with those that it has, and a limit above its maximum is refused', async () => {
  await using server = await startServer({ admin: adminOptions() })
  const headers = { authorization: `Bearer ${ADMIN_TOKEN}` }
  for (const [method, path, allowed] of [
    ['DELETE', '/api/v1/status', 'GET, HEAD'],
    ['PUT', '/api/v1/tunnels/shop', 'GET, HEAD, DELETE'],
    ['PATCH', '/api/v1/bans', 'GET, HEAD, POST'],
    ['GET', '/api/v1/upgrade', 'POST'],
    ['POST', '/metrics', 'GET, HEAD'],
    ['DELETE', '/health', 'GET, HEAD'],
  ] as const) {
    const answer = await fetch(`${server.adminUrl}${path}`, { method, headers })
    expect([path, answer.status, answer.headers.get('allow')]).toEqual([path, 405, allowed])
    expect(await answer.json()).toMatchObject({ error: { code: 'ADMIN_INVALID' } })
  }
  for (const limit of ['0', '1001', '-1', 'x', '9999999999'])
    expect((await askAdmin(server, `/traffic?limit=${limit}`)).status).toBe(400)
  for (const before of ['0.5', 'yesterday'])
    expect((await askAdmin(server, `/audit?before=${before}`)).status).toBe(400)
  for (const limit of ['1', '1000'])
    expect((await askAdmin(server, `/audit?limit=${limit}`)).status).toBe(200)
})

test('what the API refuses of a new token and a ban, its document does not allow', async () => {
  const { schemas } = OPEN_API.components as {
    schemas: Record<string, { properties: Record<string, object> }>
  }
  const { NewToken, NewBan } = schemas
  expect(NewToken?.properties.names).toMatchObject({ minItems: 1, maxItems: 100 })
  expect(NewToken?.properties.kinds).toMatchObject({ minItems: 1 })
  expect(NewBan).toMatchObject({ else: { properties: { value: { anyOf: [{ format: 'ipv4' }, {}, {}] } } } })
})
