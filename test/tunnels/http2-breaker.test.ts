// The circuit breaker of a tunnel whose visitors speak HTTP/2 and gRPC: many requests of one connection, and answers that do not end.

import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { makeCertificate } from '../support/certificates.ts'
import { frame, u32 } from '../support/h2-frames.ts'
import { get, H2Peer, head, post } from '../support/h2-peer.ts'
import { startHttp2Site } from '../support/http2-site.ts'
import { testWith } from '../support/needs.ts'
import { freePort } from '../support/ports.ts'
import { folder } from '../support/programs.ts'
import { within } from '../support/within.ts'

const breaker = { minRequests: 5, openMs: 100 }

test('it opens for all requests of a connection, the connection stays, and an answer that does not end closes it with its head', async () => {
  let isBroken = true
  using app = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    fetch(request) {
      if (isBroken) return new Response('', { status: 500 })
      if (!request.url.endsWith('/endless')) return new Response('hello')
      return new Response(new ReadableStream({ start: stream => stream.enqueue('begun ') }))
    },
  })
  await using site = await startHttp2Site(app.port!, { server: { tunnelRules: [{ breaker }] } })
  await using visitor = await H2Peer.connect(site.port)
  // A fast machine gets so many refusals in 100 ms that their bodies fill a connection's first window of 64 KB.
  visitor.grow(1 << 30)
  let stream = -1
  const ask = async (path: string) => {
    stream += 2
    const own = stream
    visitor.send(head(own, get(site.host, path)))
    await visitor.when(seen => seen.of(1, own).length > 0, `a head for ${path}`)
    const { seen } = visitor
    return `${seen.field(own, ':status')} ${seen.field(own, 'x-localtunnels-error') ?? 'app'}`
  }
  expect(new Set(await Promise.all(Array.from({ length: 50 }, () => ask('/'))))).toContain('500 app')
  // A machine that stood still for 100 ms lets one try in between, which fails, too.
  let refused = await ask('/')
  while (refused === '500 app') refused = await ask('/')
  expect(refused).toBe('503 CIRCUIT_OPEN')
  expect(visitor.seen.field(stream, 'retry-after')).toBe('1')
  isBroken = false
  let tried = refused
  while (tried === '503 CIRCUIT_OPEN') tried = await ask('/endless')
  expect(tried).toBe('200 app')
  const endless = stream
  expect(await ask('/')).toBe('200 app')
  expect(visitor.seen.hasEnded(endless)).toBe(false)
  expect(visitor.seen.goaways).toEqual([])
})

test('bodies that break the rules, protocols that no app has, and requests that are given up do not open it', async () => {
  using app = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    async fetch(request) {
      await request.arrayBuffer().catch(() => {})
      return new Response('hello')
    },
  })
  const tunnelRules = [{ breaker: { ...breaker, openMs: 60_000 }, maxContentLength: 10 }]
  await using site = await startHttp2Site(app.port!, { server: { tunnelRules } })
  await using visitor = await H2Peer.connect(site.port)
  const bytes = [...Buffer.from('0123456789'.repeat(2))]
  let stream = 1
  for (let round = 0; round < 6; round++) {
    // Longer than announced, longer than the rule allows, another protocol, given up.
    visitor.send(
      head(stream, post(site.host, '/', [['content-length', '5']]), false),
      frame(0, 1, stream, bytes),
    )
    visitor.send(head(stream + 2, post(site.host), false), frame(0, 1, stream + 2, bytes))
    visitor.send(
      head(stream + 4, [[':method', 'CONNECT'], [':protocol', 'other'], ...get(site.host).slice(1)], false),
    )
    visitor.send(head(stream + 6, post(site.host), false), frame(3, 0, stream + 6, u32(8)))
    await visitor.when(seen => seen.resets[stream] === 1, 'a reset')
    for (const [at, status] of [
      [stream + 2, '413'],
      [stream + 4, '501'],
    ] as const) {
      await visitor.when(seen => seen.of(1, at).length > 0, `an answer on stream ${at}`)
      expect(visitor.seen.field(at, ':status')).toBe(status)
    }
    stream += 8
  }
  visitor.send(head(stream, get(site.host)))
  expect((await visitor.answered(stream)).field(stream, ':status')).toBe('200')
})

testWith(
  ['node', 'openssl'],
  'calls of gRPC are UNAVAILABLE while it is open, and a stream of calls closes it',
  async () => {
    const port = freePort()
    const tls = await makeCertificate(['app.localhost'])
    const server = { tls, tunnelRules: [{ breaker }] }
    await using site = await startHttp2Site(port, { client: { protocol: 'h2c' }, server })
    await using dir = await folder('grpc')
    await Bun.write(`${dir.path}/root.pem`, tls.cert)
    const script = join(import.meta.dir, '../support/node-grpc.mjs')
    const words = [`127.0.0.1:${site.port}`, `${dir.path}/root.pem`, 'app.localhost']
    await using calls = Bun.spawn(['node', script, 'breaker', ...words], {
      stdout: 'pipe',
      stderr: 'inherit',
    })
    const lines = calls.stdout.pipeThrough(new TextDecoderStream()).getReader()
    let printed = ''
    const until = async (text: string) => {
      while (!printed.includes(text)) {
        const { value, done } = await within(lines.read(), `${text} after ${printed}`)
        if (done) throw new Error(`ended with ${printed}`)
        printed += value
      }
    }
    // There is no app yet: first the calls fail at it, then at the breaker.
    await until('UNAVAILABLE 502')
    await until('UNAVAILABLE 503')
    await using _app = Bun.spawn(['node', script, 'server', `${port}`], { stdin: 'pipe', stdout: 'ignore' })
    await until('the stream is open')
    await until('beside it: one 3')
  },
)
