// Apps that close kept-alive connections whenever they like: no visitor notices, and no POST is sent twice.

import { expect, test } from 'bun:test'
import { get, headerOf, ok, post, rawTunnel, readAnswer, statusOf } from '../support/exchange.ts'
import { FUZZ, Random } from '../support/random.ts'
import { type RawConnection, RawOrigin, rawDial } from '../support/raw.ts'
import { startTunnel } from '../support/tunnel.ts'

const ROUNDS = FUZZ * 2_000

/** Answers each request, then closes after some of the answers: at once, a bit later, by FIN or by RST, unannounced. */
function moody(origin: RawOrigin, seed: number): Map<string, number> {
  const random = new Random(seed)
  const seen = new Map<string, number>()
  const serve = async (app: RawConnection): Promise<void> => {
    for (;;) {
      const head = await app.until('\r\n\r\n')
      const length = Number(headerOf(head, 'content-length') ?? 0)
      const id = (await app.exactly(length)) || head.split(' ')[1]!
      seen.set(id, (seen.get(id) ?? 0) + 1)
      await app.send(ok(id))
      const mood = random.below(10)
      if (mood === 0) return app.socket.end()
      if (mood === 1) return void setTimeout(() => app.socket.end(), random.below(3))
      if (mood === 2) return void setTimeout(() => app.socket.terminate(), random.below(3))
      if (mood === 3) return void setImmediate(() => app.socket.terminate())
    }
  }
  void (async () => {
    for (;;) serve(await origin.accept()).catch(() => {})
  })().catch(() => {})
  return seen
}

test('GET never shows an error, and its answer is its own', async () => {
  using origin = new RawOrigin()
  moody(origin, 1)
  await using tunnel = await startTunnel({ port: origin.port })
  const visitors = await Promise.all(Array.from({ length: 8 }, () => rawDial(tunnel.port)))
  const answers: Record<number, number> = {}
  await Promise.all(
    visitors.map(async (visitor, who) => {
      for (let n = 0; n < ROUNDS / 8; n++) {
        await visitor.send(get(tunnel.host, `/${who}-${n}`))
        const { head, body } = await readAnswer(visitor)
        answers[statusOf(head)] = (answers[statusOf(head)] ?? 0) + 1
        if (statusOf(head) === 200) expect(body).toBe(`/${who}-${n}`)
      }
      visitor.socket.end()
    }),
  )
  expect(answers).toEqual({ 200: ROUNDS })
}, 60_000)

test('POST is never sent twice; it may fail, then the app saw it once or never', async () => {
  using origin = new RawOrigin()
  const seen = moody(origin, 2)
  await using tunnel = await startTunnel({ port: origin.port })
  const visitors = await Promise.all(Array.from({ length: 8 }, () => rawDial(tunnel.port)))
  let failures = 0
  await Promise.all(
    visitors.map(async (first, who) => {
      let visitor = first
      for (let n = 0; n < ROUNDS / 8; n++) {
        await visitor.send(post(tunnel.host, `${who}-${n}`))
        const { head, payload } = await readAnswer(visitor)
        if (statusOf(head) === 200) expect(payload).toBe(`${who}-${n}`)
        else {
          expect(headerOf(head, 'x-localtunnels-error')).toBe('ORIGIN_CLOSED')
          failures++
          visitor.socket.end()
          visitor = await rawDial(tunnel.port)
        }
      }
      visitor.socket.end()
    }),
  )
  expect([...seen.values()].filter(count => count > 1)).toEqual([])
  // Four in ten connections die while the next request is on its way; those found out in time cost nothing.
  expect(failures).toBeLessThan(ROUNDS * 0.4)
}, 60_000)

test('a GET on a connection that dies under it is tried again once, on a fresh one', async () => {
  await using raw = await rawTunnel()
  const visitor = await raw.visit(get(raw.host, '/1'))
  const first = await raw.origin.accept()
  await first.until('\r\n\r\n')
  await first.send(ok('one'))
  await readAnswer(visitor)
  await visitor.send(get(raw.host, '/2'))
  await first.until('\r\n\r\n')
  first.socket.terminate()
  const second = await raw.origin.accept()
  expect(await second.until('\r\n\r\n')).toStartWith('GET /2 ')
  second.socket.terminate()
  expect(headerOf((await readAnswer(visitor)).head, 'x-localtunnels-error')).toBe('ORIGIN_CLOSED')
  expect(raw.origin.connections.length).toBe(2)
})

test('a PUT is tried again with its body', async () => {
  await using raw = await rawTunnel()
  const visitor = await raw.visit(get(raw.host, '/1'))
  const first = await raw.origin.accept()
  await first.until('\r\n\r\n')
  await first.send(ok('one'))
  await readAnswer(visitor)
  await visitor.send(`PUT / HTTP/1.1\r\nHost: ${raw.host}\r\nContent-Length: 10\r\n\r\nhello`)
  await first.until('hello')
  first.socket.terminate()
  const second = await raw.origin.accept()
  await second.until('hello')
  await visitor.send('world')
  expect(await second.until('world')).toBe('world')
  await second.send(ok('put'))
  expect((await readAnswer(visitor)).body).toBe('put')
})

test('a POST on a connection that dies under it is an error, not a second try', async () => {
  await using raw = await rawTunnel()
  const visitor = await raw.visit(get(raw.host, '/1'))
  const first = await raw.origin.accept()
  await first.until('\r\n\r\n')
  await first.send(ok('one'))
  await readAnswer(visitor)
  await visitor.send(post(raw.host, 'pay'))
  await first.until('pay')
  first.socket.terminate()
  expect(headerOf((await readAnswer(visitor)).head, 'x-localtunnels-error')).toBe('ORIGIN_CLOSED')
  expect(raw.origin.connections.length).toBe(1)
})

test('a fresh connection that dies is an error at once: nothing says that it was stale', async () => {
  await using raw = await rawTunnel()
  const visitor = await raw.visit(get(raw.host))
  const app = await raw.origin.accept()
  await app.until('\r\n\r\n')
  app.socket.end()
  // It is asked whether it speaks TLS, and the request does not come again.
  const asked = await raw.origin.accept()
  expect(await asked.exactly(1)).toBe('\x16')
  asked.socket.terminate()
  expect(headerOf((await readAnswer(visitor)).head, 'x-localtunnels-error')).toBe('ORIGIN_CLOSED')
  expect(raw.origin.connections.length).toBe(2)
})
