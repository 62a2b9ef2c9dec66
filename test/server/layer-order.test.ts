// The order in which a server asks its layers about a request, from the outside in: the search for a name at other servers, the inbox,
// bans, observers and metrics, timing, shaping, guards, pressure, middlewares, copies to a pool. For each pair of neighbours whose order
// a visitor or an operator can see, a request shows which was first. Observers, metrics and timing only watch: all are outside of
// what refuses.

import { expect, test } from 'bun:test'
import { join } from 'node:path'
import type { TunnelClientOptions } from '../../src/client/options.ts'
import { deferred } from '../../src/deferred.ts'
import { openInbox } from '../../src/index.ts'
import type { Guard, Middleware, Observer } from '../../src/plugin.ts'
import type { TunnelServerOptions } from '../../src/server/settings/options.ts'
import { adminOptions, askAdmin, metricsOf, sampleOf } from '../support/admin.ts'
import { ask } from '../support/ask.ts'
import { TestCluster } from '../support/clusters.ts'
import { eventually } from '../support/events.ts'
import { folder } from '../support/programs.ts'
import { type LiveTunnel, startTunnel } from '../support/tunnel.ts'

/** What happened to requests, in order: each layer writes its name. */
const log: string[] = []
const fetchApp = (request: Request): Response => {
  log.push(`app ${request.headers.get('x-by') ?? ''}`.trim())
  return new Response('hello', { status: request.url.endsWith('/broken') ? 500 : 200 })
}
const start = (
  server: TunnelServerOptions,
  client: Partial<TunnelClientOptions> = {},
): Promise<LiveTunnel> => {
  log.length = 0
  return startTunnel({ fetch: fetchApp, ...client }, { server })
}
const get = (tunnel: LiveTunnel, path = '/') => ask(tunnel.port, tunnel.host, { path })

/** Refuses `/private`, tells the app who let the others in. */
const guard: Guard = {
  name: 'guard',
  admit({ head }) {
    log.push('guard')
    return head?.target === '/private' ? { code: 'GUARD_REFUSED' } : { requestHeaders: [['x-by', 'guard']] }
  },
}
const observer: Observer = {
  name: 'observer',
  began: () => void log.push('observer'),
  ended: (_seen, { status, code }) => void log.push(`observed ${status} ${code ?? ''}`.trim()),
}
const middleware: Middleware = {
  name: 'middleware',
  handle(request, next) {
    log.push(`middleware ${request.headers.get('x-by') ?? ''}`.trim())
    return next(request)
  },
}
const breaker = { minRequests: 1, openMs: 60_000 }

test('bans, then guards: a guard is not asked about a banned visitor', async () => {
  await using tunnel = await start({ guards: [guard], admin: adminOptions(), trustedProxies: ['127.0.0.1'] })
  expect(
    (await askAdmin(tunnel.server, '/bans', { method: 'POST', body: { value: '203.0.113.9' } })).status,
  ).toBe(201)
  const headers = { 'x-forwarded-for': '203.0.113.9' }
  expect((await ask(tunnel.port, tunnel.host, { headers })).code).toBe('BLOCKED')
  expect(log).toEqual([])
})

test('the inbox, then guards: a guard sees no mark that a visitor made', async () => {
  const seen: (string | undefined)[] = []
  const looking: Guard = {
    name: 'looking',
    admit: ({ head }) => void seen.push(head?.header('x-localtunnels-delivery')),
  }
  const dir = await folder('inbox')
  await using _dir = dir
  const store = await openInbox(join(dir.path, 'inbox.db'))
  const token = 'own-token-1234567890'
  {
    const inbox = { paths: ['/hooks/*'] }
    await using tunnel = await start(
      { guards: [looking], tokens: [token], inbox: { store } },
      { token, inbox },
    )
    await ask(tunnel.port, tunnel.host, { headers: { 'x-localtunnels-delivery': '9' } })
  }
  store.close()
  expect(seen).toEqual([undefined])
})

test('observers, then guards: what a guard refuses is observed', async () => {
  await using tunnel = await start({ guards: [guard], observers: [observer] })
  await get(tunnel, '/private')
  await eventually(() => log.length === 3, 'the end')
  expect(log).toEqual(['observer', 'guard', 'observed 403 GUARD_REFUSED'])
})

test('metrics, then guards and pressure: what they refuse is counted', async () => {
  await using tunnel = await start({ guards: [guard], tunnelRules: [{ breaker }], admin: adminOptions() })
  await get(tunnel, '/private')
  await get(tunnel, '/broken')
  expect((await get(tunnel)).code).toBe('CIRCUIT_OPEN')
  const metrics = await metricsOf(tunnel.server)
  for (const code of ['GUARD_REFUSED', 'CIRCUIT_OPEN'])
    expect(sampleOf(metrics, `localtunnels_failed_total{tunnel="app",code="${code}"}`)).toBe(1)
})

test('observers, then pressure: what an open breaker refuses is observed', async () => {
  await using tunnel = await start({ tunnelRules: [{ breaker }], observers: [observer] })
  await get(tunnel, '/broken')
  await get(tunnel)
  await eventually(() => log.filter(line => line.startsWith('observed')).length === 2, 'both ends')
  expect(log.filter(line => line !== 'observer')).toEqual([
    'app',
    'observed 500',
    'observed 503 CIRCUIT_OPEN',
  ])
})

test('timing, then guards: the time that a guard takes is in tunnel-wait', async () => {
  let tookMs = 0
  const slow: Guard = {
    name: 'slow',
    async admit() {
      const from = performance.now()
      await Bun.sleep(30)
      tookMs = performance.now() - from
      return undefined
    },
  }
  await using tunnel = await start({ guards: [slow], serverTiming: true })
  const answer = await fetch(`http://127.0.0.1:${tunnel.port}/`, { headers: { host: tunnel.host } })
  const waitMs = Number(/tunnel-wait;dur=([\d.]+)/.exec(answer.headers.get('server-timing') ?? '')?.[1])
  // It is rounded to a tenth.
  expect(waitMs).toBeGreaterThanOrEqual(tookMs - 0.1)
})

test('lines for the answer: each layer has its own, and a pool its cookie', async () => {
  const marking: Guard = { name: 'marking', admit: () => ({ responseHeaders: [['x-guard', 'passed']] }) }
  await using tunnel = await start(
    { guards: [marking], serverTiming: true },
    { pool: { affinity: 'cookie' } },
  )
  const answer = await fetch(`http://127.0.0.1:${tunnel.port}/`, { headers: { host: tunnel.host } })
  const names = [...answer.headers.keys()]
  for (const name of ['server-timing', 'x-guard', 'set-cookie']) expect(names).toContain(name)
  expect(await answer.text()).toBe('hello')
})

test('shaping, then guards: what a guard answers is as slow as what the app answers', async () => {
  const wordy: Guard = { name: 'wordy', admit: () => ({ status: 403, body: 'x'.repeat(32_768) }) }
  // The first 16 KB go at once, so that the others take a second.
  await using tunnel = await start({ guards: [wordy], tunnelRules: [{ bandwidth: 16_384 }] })
  const from = performance.now()
  expect((await get(tunnel)).body.length).toBe(32_768)
  expect(performance.now() - from).toBeGreaterThan(900)
})

test('guards, then pressure: a visitor who waits for a guard has no slot', async () => {
  const asked = deferred<void>()
  const verdict = deferred<undefined>()
  const waiting: Guard = {
    name: 'waiting',
    admit({ head }) {
      if (head?.target !== '/waits') return undefined
      asked.resolve()
      return verdict.promise
    },
  }
  await using tunnel = await start({ guards: [waiting], tunnelRules: [{ maxInFlight: 1, maxQueued: 0 }] })
  const first = get(tunnel, '/waits')
  await asked.promise
  expect((await get(tunnel)).status).toBe(200)
  verdict.resolve(undefined)
  expect((await first).status).toBe(200)
})

test('guards, then pressure: a refused visitor learns of the refusal, not of the open breaker', async () => {
  await using tunnel = await start({ guards: [guard], tunnelRules: [{ breaker }] })
  expect((await get(tunnel, '/broken')).status).toBe(500)
  expect((await get(tunnel)).code).toBe('CIRCUIT_OPEN')
  expect((await get(tunnel, '/private')).code).toBe('GUARD_REFUSED')
})

test('guards, then middlewares: a middleware sees what the guard added, and nobody whom it refused', async () => {
  await using tunnel = await start({ guards: [guard], middlewares: [middleware] })
  await get(tunnel, '/private')
  expect(log.splice(0)).toEqual(['guard'])
  await get(tunnel)
  expect(log).toEqual(['guard', 'middleware guard', 'app guard'])
})

test('pressure, then middlewares: a middleware sees no request that an open breaker refuses', async () => {
  await using tunnel = await start({ tunnelRules: [{ breaker }], middlewares: [middleware] })
  await get(tunnel, '/broken')
  expect((await get(tunnel)).code).toBe('CIRCUIT_OPEN')
  expect(log).toEqual(['middleware', 'app'])
})

test('observers and pressure, then middlewares: what a middleware answers is observed, and opens the breaker', async () => {
  const broken: Middleware = { name: 'broken', handle: () => new Response('', { status: 500 }) }
  await using tunnel = await start({
    tunnelRules: [{ breaker }],
    observers: [observer],
    middlewares: [broken],
  })
  await get(tunnel)
  expect((await get(tunnel)).code).toBe('CIRCUIT_OPEN')
  await eventually(() => log.includes('observed 503 CIRCUIT_OPEN'), 'both ends')
  expect(log).toContain('observed 500')
})

test('guards, pressure and middlewares, then copies: each is asked once for all clients of a pool', async () => {
  await using tunnel = await start(
    { guards: [guard], middlewares: [middleware], tunnelRules: [{ maxInFlight: 1, maxQueued: 0 }] },
    { pool: { to: 'all' } },
  )
  await tunnel.client.http({ fetch: fetchApp, subdomain: 'app', exact: true, pool: { to: 'all' } })
  expect((await get(tunnel)).status).toBe(200)
  await eventually(() => log.length === 4, 'both copies')
  expect(log).toEqual(['guard', 'middleware guard', 'app guard', 'app guard'])
})

test('the search for a name, then all others: only the server that has the tunnel asks them', async () => {
  log.length = 0
  await using cluster = new TestCluster()
  const layers = { guards: [guard], observers: [observer], middlewares: [middleware] }
  const [entrance, holder] = [await cluster.server(layers), await cluster.server(layers)]
  await cluster.client({ server: holder.url, subdomain: 'app', exact: true, fetch: fetchApp })
  expect((await ask(entrance.port, 'app.localhost')).status).toBe(200)
  await eventually(() => log.includes('observed 200'), 'the end')
  expect(log).toEqual(['observer', 'guard', 'middleware guard', 'app guard', 'observed 200'])
})

test('guards, then the way to other servers: the clients of a pool there get copies that no guard is asked about again', async () => {
  log.length = 0
  await using cluster = new TestCluster()
  const servers = [await cluster.server({ guards: [guard] }), await cluster.server({ guards: [guard] })]
  for (const server of servers)
    await cluster.client({
      server: server.url,
      subdomain: 'app',
      exact: true,
      pool: { to: 'all' },
      fetch: fetchApp,
    })
  expect((await ask(servers[0]!.port, 'app.localhost')).status).toBe(200)
  await eventually(() => log.length === 3, 'both copies')
  expect(log).toEqual(['guard', 'app guard', 'app guard'])
})
