// Spans of OpenTelemetry, by its real SDK: one for each visit, in the visitor's trace, and the app's below it.

import { afterAll, beforeAll, beforeEach, expect, test } from 'bun:test'
import { createServer, type Server } from 'node:net'
import { SpanKind, SpanStatusCode, trace } from '@opentelemetry/api'
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  type ReadableSpan,
  SimpleSpanProcessor,
} from '@opentelemetry/sdk-trace-base'
import { type Guard, type Observer, openTelemetry, TunnelClient } from '../../src/index.ts'
import { ask } from '../support/ask.ts'
import { eventually } from '../support/events.ts'
import { rawDial } from '../support/raw.ts'
import { startServer, startTunnel } from '../support/tunnel.ts'

const exporter = new InMemorySpanExporter()
const provider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] })

let echo: Server
beforeAll(async () => {
  echo = createServer(socket => void socket.on('error', () => {}).pipe(socket))
  await new Promise<void>(resolve => echo.listen(0, '127.0.0.1', resolve))
})
beforeEach(() => {
  exporter.reset()
  trace.setGlobalTracerProvider(provider)
})
afterAll(async () => {
  trace.disable()
  echo.close()
  await provider.shutdown()
})

async function spans(count: number): Promise<readonly ReadableSpan[]> {
  await eventually(() => exporter.getFinishedSpans().length >= count, `${count} spans`)
  return exporter.getFinishedSpans()
}

const seenBy = () => {
  const seen: (string | null)[] = []
  const fetch = (request: Request) => {
    seen.push(request.headers.get('traceparent'))
    return new Response('hello', { status: new URL(request.url).pathname === '/broken' ? 500 : 200 })
  }
  return { seen, fetch }
}

test("a visitor's trace goes on in our span, and from there to the app", async () => {
  const { seen, fetch } = seenBy()
  const passes: Guard = { name: 'rewrites', admit: () => ({ requestHeaders: [['x-added', '1']] }) }
  await using tunnel = await startTunnel(
    { fetch, token: 'the-secret' },
    {
      server: {
        observers: [await openTelemetry()],
        guards: [passes],
        tokens: [{ token: 'the-secret', name: 'ci' }],
      },
    },
  )
  const parent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'
  const headers = { traceparent: parent }
  await ask(tunnel.port, tunnel.host, { path: '/cart?secret=1', headers })
  const [span] = await spans(1)
  const { traceId, spanId } = span!.spanContext()
  expect([traceId, span!.parentSpanContext?.spanId]).toEqual([
    '0af7651916cd43dd8448eb211c80319c',
    'b7ad6b7169203331',
  ])
  expect(seen).toEqual([`00-${traceId}-${spanId}-01`])
  expect([span!.name, span!.kind]).toEqual(['GET', SpanKind.SERVER])
  expect(span!.attributes).toMatchObject({
    'http.request.method': 'GET',
    'url.path': '/cart',
    'server.address': 'app.localhost',
    'client.address': '127.0.0.1',
    'http.response.status_code': 200,
    'localtunnels.tunnel': 'app',
    'localtunnels.token': 'ci',
  })
  expect(JSON.stringify(span!.attributes)).not.toContain('secret')
})

test('without a trace of the visitor one begins; a broken one is none, and what fails is an error', async () => {
  const { seen, fetch } = seenBy()
  await using tunnel = await startTunnel(
    { fetch },
    { server: { observers: [await openTelemetry({ path: false })] } },
  )
  await ask(tunnel.port, tunnel.host, { path: '/broken', headers: { traceparent: '00-zz-11-01' } })
  await ask(tunnel.port, 'nobody.localhost', { method: 'BREW' })
  const [broken, lost] = await spans(2)
  expect(broken!.parentSpanContext).toBeUndefined()
  expect(seen[0]).toContain(broken!.spanContext().spanId)
  expect(broken!.status.code).toBe(SpanStatusCode.ERROR)
  expect(broken!.attributes).toMatchObject({ 'error.type': '500' })
  expect(broken!.attributes).not.toHaveProperty('url.path')
  expect(lost!.name).toBe('_OTHER')
  expect(lost!.attributes).toMatchObject({
    'http.response.status_code': 404,
    'error.type': 'TUNNEL_NOT_FOUND',
  })
})

test('requests that would be easy enough for a lane have their spans, and their times, too', async () => {
  const { seen, fetch } = seenBy()
  await using tunnel = await startTunnel({ fetch }, { server: { observers: [await openTelemetry()] } })
  const visitor = await rawDial(tunnel.port)
  for (let count = 0; count < 30; count++) {
    await visitor.send(`GET /${count} HTTP/1.1\r\nHost: ${tunnel.host}\r\n\r\n`)
    await visitor.until('hello')
  }
  visitor.socket.terminate()
  const all = await spans(30)
  expect(all.map(({ attributes }) => attributes['url.path'])).toEqual(
    Array.from({ length: 30 }, (_, index) => `/${index}`),
  )
  expect(seen).toEqual(all.map(span => `00-${span.spanContext().traceId}-${span.spanContext().spanId}-01`))
})

test('a raw connection is a span of its own', async () => {
  await using server = await startServer({ observers: [await openTelemetry()] })
  const client = new TunnelClient({ server: `http://127.0.0.1:${server.port}` })
  const tunnel = await client.tcp({ port: (echo.address() as { port: number }).port })
  const visitor = await rawDial(tunnel.port ?? 0)
  await visitor.send('hello')
  await visitor.until('hello')
  visitor.socket.terminate()
  const [span] = await spans(1)
  expect(span!.name).toBe('tcp')
  expect(span!.attributes).toMatchObject({ 'localtunnels.tunnel': tunnel.name, 'http.request.size': 5 })
  await client.disconnect()
})

test("where nothing is set up the server's own trace goes on, and nothing is recorded", async () => {
  trace.disable()
  const { seen, fetch } = seenBy()
  await using tunnel = await startTunnel({ fetch }, { server: { observers: [await openTelemetry()] } })
  await ask(tunnel.port, tunnel.host)
  expect(seen[0]).toMatch(/^00-[0-9a-f]{32}-[0-9a-f]{16}-01$/)
  expect(exporter.getFinishedSpans()).toEqual([])
})

test('an observer cannot break a head with its trace, and one that throws has none', async () => {
  const { seen, fetch } = seenBy()
  const errors: unknown[] = []
  const observers: Observer[] = [
    { name: 'evil', trace: () => '00-a\r\nx-evil: 1' },
    {
      name: 'broken',
      trace() {
        throw new Error('broken')
      },
    },
  ]
  await using tunnel = await startTunnel({ fetch }, { server: { observers } })
  tunnel.server.on('error', error => errors.push('code' in error && error.code))
  expect((await ask(tunnel.port, tunnel.host)).status).toBe(200)
  expect(seen[0]).toMatch(/^00-[0-9a-f]{32}-[0-9a-f]{16}-01$/)
  expect(errors).toEqual(['PLUGIN_FAILED'])
})

test('answers say how long they took, when the operator wants that', async () => {
  const { fetch } = seenBy()
  await using tunnel = await startTunnel({ fetch }, { server: { serverTiming: true } })
  const timing = async () => {
    const answer = await globalThis.fetch(`http://127.0.0.1:${tunnel.port}/`, {
      headers: { host: tunnel.host },
    })
    return answer.headers.get('server-timing')
  }
  for (let count = 0; count < 12; count++)
    expect(await timing()).toMatch(/^tunnel-wait;dur=\d+\.\d, tunnel-app;dur=\d+\.\d$/)
  await tunnel.server.reload({})
  expect(await timing()).toBeNull()
})
