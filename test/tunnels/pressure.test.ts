// Rules of tunnels on real servers: a breaker that opens and closes, requests that wait for their turn, bodies that are too long.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { type TunnelRule, TunnelServer } from '../../src/index.ts'
import { ask } from '../support/ask.ts'
import { eventually } from '../support/events.ts'
import { rawDial } from '../support/raw.ts'
import { startTunnel } from '../support/tunnel.ts'

let app: Bun.Server<undefined>
let isBroken = false
let waiting: (() => void)[] = []
let most = 0
beforeAll(() => {
  app = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    async fetch(request) {
      if (request.url.endsWith('/wait')) {
        const { promise, resolve } = Promise.withResolvers<void>()
        waiting.push(resolve)
        most = Math.max(most, waiting.length)
        await promise
      }
      return new Response('hello', { status: isBroken ? 500 : 200 })
    },
  })
})
afterAll(() => app.stop(true))

const start = (rule: TunnelRule) => startTunnel({ port: app.port ?? 0 }, { server: { tunnelRules: [rule] } })

test('an app that fails is left alone for a while, and visitors are told so at once; then it is tried', async () => {
  await using tunnel = await start({ breaker: { minRequests: 5, openMs: 100 } })
  const other = await tunnel.client.http({ port: app.port ?? 0, subdomain: 'other' })
  isBroken = true
  for (let count = 0; count < 5; count++)
    expect(await ask(tunnel.port, tunnel.host)).toMatchObject({ status: 500, code: undefined })
  const refused = await fetch(`http://127.0.0.1:${tunnel.port}/`, { headers: { host: tunnel.host } })
  // A machine that stood still for the 100 ms has let a visitor try.
  if (refused.status === 503) {
    expect(refused.headers.get('x-localtunnels-error')).toBe('CIRCUIT_OPEN')
    expect(refused.headers.get('retry-after')).toBe('1')
  }
  isBroken = false
  // Each tunnel has its own.
  expect((await ask(tunnel.port, `${other.name}.localhost`)).status).toBe(200)
  let answer = await ask(tunnel.port, tunnel.host)
  for (let tries = 0; tries < 500 && answer.status !== 200; tries++) {
    await Bun.sleep(10)
    answer = await ask(tunnel.port, tunnel.host)
  }
  expect(answer.status).toBe(200)
})

test('an app that is gone opens it, too', async () => {
  await using tunnel = await startTunnel(
    { port: 1 },
    { server: { tunnelRules: [{ breaker: { minRequests: 3, openMs: 60_000 } }] } },
  )
  for (let count = 0; count < 3; count++)
    expect((await ask(tunnel.port, tunnel.host)).code).toBe('ORIGIN_REFUSED')
  expect(await ask(tunnel.port, tunnel.host)).toMatchObject({ status: 503, code: 'CIRCUIT_OPEN' })
})

test('what visitors do wrong, or leave undone, does not open it', async () => {
  const rule = { breaker: { minRequests: 3, openMs: 60_000 }, maxContentLength: 10 }
  await using tunnel = await start(rule)
  const head = `POST / HTTP/1.1\r\nHost: ${tunnel.host}\r\nTransfer-Encoding: chunked\r\n\r\n`
  for (const body of ['zz\r\n', '14\r\n01234567890123456789\r\n0\r\n\r\n'])
    for (let count = 0; count < 5; count++) {
      const visitor = await rawDial(tunnel.port)
      await visitor.send(head + body)
      expect(await visitor.until('\r\n\r\n')).toMatch(/^HTTP\/1.1 4(?:00|13) /)
      visitor.socket.terminate()
    }
  expect((await ask(tunnel.port, tunnel.host)).status).toBe(200)
})

test('failures of requests that lanes serve open it', async () => {
  await using tunnel = await start({ breaker: { errorPercent: 10, minRequests: 50, openMs: 60_000 } })
  const url = `http://127.0.0.1:${tunnel.port}/`
  const headers = { host: tunnel.host }
  const status = async () => {
    const answer = await fetch(url, { headers })
    await answer.arrayBuffer()
    return answer.status
  }
  for (let count = 0; count < 100; count++) expect(await status()).toBe(200)
  isBroken = true
  try {
    // What lanes served is known within half a second.
    let last = 500
    for (let count = 0; count < 20_000 && last === 500; count++) last = await status()
    expect(last).toBe(503)
  } finally {
    isBroken = false
  }
})

test('requests beyond the bound wait for their turn, and beyond the queue they are told so', async () => {
  await using tunnel = await start({ maxInFlight: 2, maxQueued: 3, queueTimeoutMs: 60_000 })
  most = 0
  waiting = []
  const answers = Array.from({ length: 5 }, () => ask(tunnel.port, tunnel.host, { path: '/wait' }))
  await eventually(() => waiting.length === 2, 'two at the app')
  await eventually(() => tunnel.server.getStats().pendingResponses === 5, 'three to wait')
  expect(await ask(tunnel.port, tunnel.host)).toMatchObject({ status: 503, code: 'TUNNEL_BUSY' })
  let served = 0
  for (const answer of answers) void answer.then(() => served++)
  await eventually(() => {
    for (const resolve of waiting.splice(0)) resolve()
    return served === 5
  }, 'all to be served')
  for (const answer of answers) expect((await answer).status).toBe(200)
  expect(most).toBe(2)
  expect((await ask(tunnel.port, tunnel.host)).status).toBe(200)
})

test('one that leaves while it waits has no place, and one that waits for too long is told so', async () => {
  await using tunnel = await start({ maxInFlight: 1, queueTimeoutMs: 1 })
  waiting = []
  const first = ask(tunnel.port, tunnel.host, { path: '/wait' })
  await eventually(() => waiting.length === 1, 'one at the app')
  const leaving = new AbortController()
  const left = ask(tunnel.port, tunnel.host, { signal: leaving.signal }).catch(() => 'left')
  leaving.abort()
  expect(await left).toBe('left')
  expect(await ask(tunnel.port, tunnel.host)).toMatchObject({ status: 503, code: 'TUNNEL_BUSY' })
  waiting[0]?.()
  expect((await first).status).toBe(200)
  expect((await ask(tunnel.port, tunnel.host)).status).toBe(200)
})

test('a body that is announced as too long is refused, for the tunnels that the rule names', async () => {
  await using tunnel = await start({ tunnels: ['app'], maxContentLength: 5 })
  const other = await tunnel.client.http({ port: app.port ?? 0, subdomain: 'other' })
  const post = (host: string, body: string) => ask(tunnel.port, host, { method: 'POST', body })
  expect((await post(tunnel.host, '12345')).status).toBe(200)
  expect(await post(tunnel.host, '123456')).toMatchObject({ status: 413, code: 'BODY_TOO_LARGE' })
  expect((await post(`${other.name}.localhost`, '123456')).status).toBe(200)
})

test('rules that cannot be used are refused', () => {
  for (const rule of [
    { maxInFlight: 0 },
    { maxQueued: -1 },
    { maxQueued: 10_001 },
    { breaker: { errorPercent: 101 } },
    { breaker: { openMs: 0 } },
    { tunnels: ['a b'] },
  ])
    expect(() => new TunnelServer({ tunnelRules: [rule] })).toThrow('tunnelRules')
})

test('an app may have less time for an answer than the server gives, and one that has begun takes as long as it likes', async () => {
  using slow = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    fetch(request) {
      if (request.url.endsWith('/never')) return new Promise<Response>(() => {})
      return new Response(
        new ReadableStream({
          async start(controller) {
            controller.enqueue('begun ')
            await Bun.sleep(1_500)
            controller.enqueue('and done')
            controller.close()
          },
        }),
      )
    },
  })
  const tunnelRules = [{ responseTimeoutMs: 250 }]
  await using tunnel = await startTunnel({ port: slow.port ?? 0 }, { server: { tunnelRules } })
  const [late, long] = await Promise.all([
    ask(tunnel.port, tunnel.host, { path: '/never' }),
    ask(tunnel.port, tunnel.host, { path: '/' }),
  ])
  expect(late).toMatchObject({ status: 504, code: 'ORIGIN_TIMEOUT' })
  expect(long).toMatchObject({ status: 200, body: 'begun and done' })
})
