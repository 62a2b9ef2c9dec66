// The filter of the requests that an app gets, and the spellings of a path.

import { expect, test } from 'bun:test'
import { parseRequestHead, RequestHead } from '../../../src/http/head.ts'
import { filterJudge } from '../../../src/parts/webhooks/filter.ts'
import { ask } from '../../support/ask.ts'
import { startTunnel } from '../../support/tunnel.ts'

const LIMITS = { maxHeadBytes: 4_096, maxHeaderCount: 9, maxTargetBytes: 4_096 }

function codeOf(filter: string, target: string): string {
  const bytes = Buffer.from(`POST ${target} HTTP/1.1\r\nHost: a.localhost\r\n\r\n`, 'latin1')
  const head = new RequestHead()
  expect(parseRequestHead(head, bytes, 0, bytes.length, LIMITS)).toBe(bytes.length)
  return filterJudge(filter).refusalOf(head, new Uint8Array(0))?.code ?? 'taken'
}

test('a path is taken if it is however the app reads it', () => {
  for (const path of ['/hooks/a', '/HOOKS/a?x=/..', '/hooks/a%20b', '/hooks//a', '/hooks/a%2fb'])
    expect([path, codeOf('POST path:/hooks/*', path)]).toEqual([path, 'taken'])
  for (const path of [
    '/hooks/../admin',
    '/hooks/%2e%2e/admin',
    '/hooks/..;/admin',
    '/hooks/%e0%80%ae./admin',
    '/a',
  ])
    expect([path, codeOf('POST path:/hooks/*', path)]).toEqual([path, 'FILTERED_OUT'])
  for (const path of ['/admin', '/x/../admin', '/%61dmin', '//x/admin', `/${'%41'.repeat(65)}`])
    expect([path, codeOf('-path:/admin', path)]).toEqual([path, 'FILTERED_OUT'])
  expect(codeOf('/hooks', '/hooks/../admin')).toBe('FILTERED_OUT')
})

test('a filter of other things does not look at the path', () => {
  expect(codeOf('method:post', `/${'%41'.repeat(65)}`)).toBe('taken')
})

test('a health check is no request that it judges', async () => {
  const seen: string[] = []
  const fetch = (request: Request) => {
    seen.push(`${request.method} ${new URL(request.url).pathname}`)
    return new Response('app')
  }
  const health = { path: '/health', intervalMs: 5, unhealthyAfter: 1 }
  await using tunnel = await startTunnel({ fetch, filter: 'POST path:/hooks', health })
  while (seen.length < 3) await new Promise(resolve => setImmediate(resolve))
  await tunnel.client.probe()
  expect(new Set(seen)).toEqual(new Set(['GET /health']))
  expect(await ask(tunnel.port, tunnel.host, { path: '/x' })).toMatchObject({ code: 'FILTERED_OUT' })
  expect(await ask(tunnel.port, tunnel.host, { method: 'POST', path: '/hooks' })).toMatchObject({
    status: 200,
  })
})

test('an app that comes later has one, too', async () => {
  await using tunnel = await startTunnel({ later: true, filter: 'path:/hooks' })
  tunnel.client.forward({ fetch: () => new Response('app') })
  expect(await ask(tunnel.port, tunnel.host, { path: '/x' })).toMatchObject({ code: 'FILTERED_OUT' })
  expect(await ask(tunnel.port, tunnel.host, { path: '/hooks' })).toMatchObject({ body: 'app' })
})
