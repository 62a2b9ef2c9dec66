// What programs read of a tunnel that is inspected: `exchanges` and `waitFor`.

import { expect, test } from 'bun:test'
import { gzipSync } from 'node:zlib'
import type { Exchange, FetchHandler, InspectOptions } from '../../../src/index.ts'
import { codeOf } from '../../support/events.ts'
import { startTunnel } from '../../support/tunnel.ts'
import { within } from '../../support/within.ts'

const WITHOUT_PAGE: InspectOptions = { port: false, rate: 0 }

async function watched(fetchHandler: FetchHandler, inspect: InspectOptions | boolean = WITHOUT_PAGE) {
  const tunnel = await startTunnel({ fetch: fetchHandler, inspect })
  const visit = async (path: string, init: RequestInit = {}, host = tunnel.host) =>
    (await fetch(`http://127.0.0.1:${tunnel.port}${path}`, { ...init, headers: { host } })).text()
  return { tunnel, client: tunnel.client, visit, [Symbol.asyncDispose]: () => tunnel[Symbol.asyncDispose]() }
}

const hello: FetchHandler = () => new Response('hello')

test('waitFor: what came before the call, then what comes, each once for a filter', async () => {
  await using one = await watched(hello)
  await one.visit('/hooks?1', { method: 'POST', body: 'first' })
  const first = await one.client.waitFor('POST /hooks')
  expect(first.request?.text()).toBe('first')
  const next = one.client.waitFor('POST /hooks')
  const all = one.client.waitFor('/hooks')
  await one.visit('/other')
  await one.visit('/hooks?2', { method: 'POST', body: 'second' })
  expect((await next).path).toBe('/hooks?2')
  // Another filter, another count.
  expect((await all).path).toBe('/hooks?1')
  // Two at once get one each.
  const both = Promise.all([one.client.waitFor('/twice'), one.client.waitFor('/twice')])
  await one.visit('/twice?1')
  await one.visit('/twice?2')
  expect((await both).map(({ path }) => path)).toEqual(['/twice?1', '/twice?2'])
})

test('waitFor with fresh takes nothing that is here already', async () => {
  await using one = await watched(hello)
  await one.visit('/a?old')
  await one.client.waitFor('/a')
  await one.visit('/a?old')
  const fresh = one.client.waitFor('/a', { fresh: true })
  await one.visit('/a?new')
  expect((await fresh).path).toBe('/a?new')
})

test('waitFor in vain says what came instead', async () => {
  await using one = await watched(() => new Response('no', { status: 404 }))
  const waiting = one.client.waitFor('POST /hooks', { timeout: 1 })
  expect(await codeOf(waiting)).toBe('WAIT_TIMEOUT')
  expect(await waiting.catch(String)).toContain('Nothing came.')
  await one.visit('/hook', { method: 'POST', body: 'x' })
  await one.client.waitFor('/hook')
  expect(await one.client.waitFor('POST /hooks', { timeout: 1 }).catch(String)).toContain(
    'Last came: POST /hook 404.',
  )
  expect(await codeOf(one.client.waitFor('status:abc'))).toBe('OPTION_INVALID')
  for (const timeout of [0, 600_001, Number.NaN])
    expect(await codeOf(one.client.waitFor('/a', { timeout }))).toBe('OPTION_INVALID')
  const abort = new AbortController()
  const aborted = one.client.waitFor('/never', { signal: abort.signal })
  abort.abort()
  expect(await codeOf(aborted)).toBe('CANCELLED')
})

test('request and answer: fields as sent, secrets too, bodies decoded, a cut one refused', async () => {
  const zipped = gzipSync('{"big":true}')
  await using one = await watched(
    ({ url }) =>
      url.endsWith('/zip')
        ? new Response(zipped, { headers: { 'content-encoding': 'gzip', 'set-cookie': 'a=b' } })
        : new Response('x'.repeat(2_000)),
    { ...WITHOUT_PAGE, maxBody: 1_000 },
  )
  await one.visit('/zip')
  const { response: answer, request } = await one.client.waitFor('/zip')
  expect(answer?.json()).toEqual({ big: true })
  expect(answer?.headers.get('set-cookie')).toBe('a=b')
  expect(answer?.fields.find(({ name }) => name === 'set-cookie')?.value).toBe('a=b')
  expect(Buffer.from(answer?.bytes ?? []).equals(zipped)).toBe(true)
  expect(request?.headers.get('host')).toBe(one.tunnel.host)
  await one.visit('/long')
  const long = await one.client.waitFor('/long')
  expect(long.response?.isCut).toBe(true)
  expect(long.response?.bytes.length).toBe(1_000)
  expect(await codeOf((async () => long.response?.text())())).toBe('BODY_TRUNCATED')
})

test('exchanges: those that are kept, then what comes; the loop ends with the client', async () => {
  await using one = await watched(hello)
  await one.visit('/1')
  await one.client.waitFor('/1')
  const paths: string[] = []
  const second = Promise.withResolvers<void>()
  const loop = (async () => {
    for await (const { path } of one.client.exchanges) {
      paths.push(path)
      if (path === '/2') second.resolve()
    }
  })()
  await one.visit('/2')
  await within(second.promise, '/2')
  const waiting = codeOf(one.client.waitFor('/3'))
  await one.client.disconnect()
  await within(loop, 'the end of the loop')
  expect(paths).toEqual(['/1', '/2'])
  expect(await waiting).toBe('CANCELLED')
  // What is kept can still be read.
  expect((await one.client.waitFor('/2')).path).toBe('/2')
  expect(await codeOf(one.client.waitFor('/3'))).toBe('CANCELLED')
})

test('a tunnel has its own; its end ends the loop, and the others go on', async () => {
  await using one = await watched(hello)
  const other = await one.client.http({ subdomain: 'other', fetch: hello })
  const seen: Exchange[] = []
  const loop = (async () => {
    for await (const exchange of other.exchanges) seen.push(exchange)
  })()
  await one.visit('/mine')
  await one.visit('/theirs', {}, `other.localhost:${one.tunnel.port}`)
  expect(await one.client.tunnels[0]!.waitFor('/mine')).toMatchObject({ tunnel: 'app' })
  expect(await other.waitFor('/theirs')).toMatchObject({ tunnel: 'other' })
  expect(await codeOf(other.waitFor('/mine', { timeout: 1 }))).toBe('WAIT_TIMEOUT')
  const waiting = codeOf(other.waitFor('/never'))
  await other.close()
  await within(loop, 'the end of the loop')
  expect(await waiting).toBe('CANCELLED')
  expect(seen.map(({ path }) => path)).toEqual(['/theirs'])
  await one.visit('/still')
  expect((await one.client.waitFor('/still')).status).toBe(200)
})

test('a loop that is slow misses what the inspector drops, and holds nothing of it', async () => {
  await using one = await watched(hello, { ...WITHOUT_PAGE, maxExchanges: 3 })
  const iterator = one.client.exchanges[Symbol.asyncIterator]()
  const first = iterator.next()
  for (let visit = 1; visit <= 10; visit++) await one.visit(`/${visit}`)
  await one.client.waitFor('/10')
  const rest = [await first, await iterator.next(), await iterator.next(), await iterator.next()]
  expect(rest.map(({ value }) => value?.path)).toEqual(['/1', '/8', '/9', '/10'])
})

test('without inspect both are refused at once', async () => {
  await using one = await watched(hello, false)
  expect(await codeOf(one.client.waitFor('/'))).toBe('STATE_INVALID')
  expect(() => one.client.exchanges).toThrow('inspect: true')
})
