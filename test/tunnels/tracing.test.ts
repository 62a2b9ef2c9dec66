// Ids of requests and traces: what the app, the visitor and observers see, with lanes and without, and what visitors cannot choose.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { Agent, request } from 'node:http'
import type { Observer, Seen, TunnelServerOptions } from '../../src/index.ts'
import { eventually } from '../support/events.ts'
import { startTunnel } from '../support/tunnel.ts'

let app: Bun.Server<undefined>
beforeAll(() => {
  app = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    fetch: asked => Response.json([...asked.headers].filter(([name]) => /request-id|traceparent/.test(name))),
  })
})
afterAll(() => app.stop(true))

const start = (server: TunnelServerOptions, wire: 'streams' | 'json' = 'streams') =>
  startTunnel({ port: app.port ?? 0 }, { server, wire })

interface Answered {
  readonly id: string
  readonly seen: Readonly<Record<string, string>>
}

async function visit(port: number, host: string, headers: Record<string, string> = {}): Promise<Answered> {
  const answer = await fetch(`http://127.0.0.1:${port}/`, { headers: { host, ...headers } })
  return {
    id: answer.headers.get('x-request-id') ?? '',
    seen: Object.fromEntries((await answer.json()) as [string, string][]),
  }
}

const TRACE = '0af7651916cd43dd8448eb211c80319c'

for (const wire of ['streams', 'json'] as const)
  test(`an id of ours, and the trace of the visitor goes on, on the ${wire} wire`, async () => {
    await using tunnel = await start({ tracing: true }, wire)
    const headers = {
      'x-request-id': 'chosen by the visitor',
      traceparent: `00-${TRACE}-b7ad6b7169203331-00`,
    }
    const { id, seen } = await visit(tunnel.port, tunnel.host, headers)
    expect(id).toMatch(/^[0-9a-f]{32}$/)
    expect(seen['x-request-id']).toBe(id)
    expect(seen.traceparent).toMatch(new RegExp(`^00-${TRACE}-(?!b7ad6b7169203331)[0-9a-f]{16}-00$`))
    const other = await visit(tunnel.port, tunnel.host, { traceparent: 'ff-nonsense' })
    expect(other.id).not.toBe(id)
    expect(other.seen.traceparent).toMatch(new RegExp(`^00-${other.id}-[0-9a-f]{16}-01$`))
  })

test('a trace of a later version goes on by its first three fields, as version 00', async () => {
  await using tunnel = await start({ tracing: true })
  const traceOf = async (traceparent: string) =>
    (await visit(tunnel.port, tunnel.host, { traceparent })).seen.traceparent
  const parent = `${TRACE}-b7ad6b7169203331`
  for (const [given, flags] of [
    [`01-${parent}-01-x`, '01'],
    [`fe-${parent}-00`, '00'],
    // Of the flags of another version only the first is known.
    [`cc-${parent}-0f-what.the.future-brings`, '01'],
    [`cc-${parent}-fe-`, '00'],
  ] as const)
    expect(await traceOf(given)).toMatch(
      new RegExp(`^00-${TRACE}-(?!b7ad6b7169203331)[0-9a-f]{16}-${flags}$`),
    )
  for (const given of [
    `00-${parent}-01-x`,
    `00-${parent}-01-`,
    `ff-${parent}-01`,
    `01-${parent}-01x`,
    `01-${parent}-0`,
    `01-${'0'.repeat(32)}-b7ad6b7169203331-01`,
    `01-${TRACE}-${'0'.repeat(16)}-01`,
    `1-${parent}-01`,
    `01-${parent.toUpperCase()}-01`,
  ])
    expect(await traceOf(given)).not.toContain(TRACE)
})

test('the id of a trusted proxy is kept, if it can stand in a log', async () => {
  await using tunnel = await start({ tracing: true, trustedProxies: ['127.0.0.1'] })
  const kept = await visit(tunnel.port, tunnel.host, { 'x-request-id': 'of-the-proxy:1' })
  expect([kept.id, kept.seen['x-request-id']]).toEqual(['of-the-proxy:1', 'of-the-proxy:1'])
  const odd = await visit(tunnel.port, tunnel.host, { 'x-request-id': 'x'.repeat(129) })
  expect(odd.id).toMatch(/^[0-9a-f]{32}$/)
})

test('without tracing everything of the visitor passes untouched', async () => {
  await using tunnel = await start({})
  const { id, seen } = await visit(tunnel.port, tunnel.host, { 'x-request-id': 'mine', traceparent: 'odd' })
  expect(id).toBe('')
  expect(seen).toEqual({ 'x-request-id': 'mine', traceparent: 'odd' })
})

test('each request of one connection has another id, which app, visitor and observer agree on, also in a lane', async () => {
  const told: Seen[] = []
  const observer: Observer = { name: 'ids', ended: seen => void told.push(seen) }
  await using tunnel = await start({ tracing: true, observers: [observer] })
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  const ids: string[] = []
  for (let count = 0; count < 300; count++)
    await new Promise<void>((resolve, reject) =>
      request(
        { host: '127.0.0.1', port: tunnel.port, agent, headers: { host: tunnel.host, 'x-request-id': 'no' } },
        answer => {
          let body = ''
          answer.setEncoding('utf8')
          answer.on('data', piece => {
            body += piece
          })
          answer.on('end', () => {
            const id = String(answer.headers['x-request-id'])
            ids.push(id)
            const sent = (JSON.parse(body) as [string, string][]).filter(([name]) => name === 'x-request-id')
            expect(sent).toEqual([['x-request-id', id]])
            resolve()
          })
        },
      )
        .on('error', reject)
        .end(),
    )
  agent.destroy()
  expect(new Set(ids).size).toBe(300)
  await eventually(() => told.length === 300, 'all to be told')
  expect(told.map(({ requestId }) => requestId ?? '').sort()).toEqual(ids.toSorted())
})
