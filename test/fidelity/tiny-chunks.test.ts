// Answers in chunks of a byte: they cost much more to look through than to send, so they wait for their turn, and arrive whole.

import { expect, test } from 'bun:test'
import { get, headerOf, ok, rawTunnel, readAnswer, statusOf } from '../support/exchange.ts'

/** More than is looked through in one turn of the event loop, and than one stream may send ahead. */
const CHUNKS = 400_000
const HEAD = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n'

/** Bytes that tell their places apart. */
const payload = (): string =>
  Array.from({ length: CHUNKS }, (_, index) => String.fromCharCode(0x61 + ((index * 7) % 26))).join('')

const inChunks = (text: string): string => text.replace(/./g, '1\r\n$&\r\n')

/** Several visitors at once, each with such an answer. */
async function answers(end: string, request: (host: string) => string, count = 3) {
  const raw = await rawTunnel()
  const text = payload()
  const visits = []
  for (let left = count; left > 0; left--) {
    const visitor = await raw.visit(request(raw.host))
    const app = await raw.origin.accept()
    await app.until('\r\n\r\n')
    visits.push({ visitor, app })
  }
  await Promise.all(visits.map(({ app }) => app.send(`${HEAD}${inChunks(text)}${end}`)))
  return { raw, text, visits, [Symbol.asyncDispose]: () => raw[Symbol.asyncDispose]() }
}

for (const count of [1, 3])
  test(`${count} at once arrive as they were sent`, async () => {
    await using seen = await answers('0\r\nX-Sum: y\r\n\r\n', host => get(host), count)
    for (const { visitor } of seen.visits) {
      const answer = await visitor.until('X-Sum: y\r\n\r\n')
      expect(answer === `${HEAD}${inChunks(seen.text)}0\r\nX-Sum: y\r\n\r\n`).toBe(true)
    }
    if (count > 1) return
    // The connections are good for more.
    for (const { visitor, app } of seen.visits) {
      await visitor.send(get(seen.raw.host, '/next'))
      await app.until('\r\n\r\n')
      await app.send(ok('next'))
      expect((await readAnswer(visitor)).body).toBe('next')
    }
  })

test('a visitor of HTTP/1.0 gets what is in them', async () => {
  await using seen = await answers('0\r\n\r\n', host => `GET / HTTP/1.0\r\nHost: ${host}\r\n\r\n`)
  for (const { visitor } of seen.visits) {
    await visitor.end()
    expect(visitor.text.slice(visitor.text.indexOf('\r\n\r\n') + 4) === seen.text).toBe(true)
    expect(visitor.error).toBeUndefined()
  }
})

for (const how of ['FIN', 'RST'] as const)
  test(`an app that leaves by ${how} in the middle has not answered`, async () => {
    await using seen = await answers('', host => get(host))
    for (const { visitor, app } of seen.visits) {
      if (how === 'FIN') app.socket.end()
      else app.socket.terminate()
      expect(await visitor.closed()).toBeInstanceOf(Error)
      expect(visitor.hasEnded).toBe(false)
      // What a reset overtakes is lost.
      expect(`${HEAD}${inChunks(seen.text)}`.startsWith(visitor.text)).toBe(true)
    }
  })

test('what follows the last of them is given to no other visitor', async () => {
  await using seen = await answers(`0\r\n\r\n${ok('for nobody')}`, host => get(host), 1)
  const { visitor } = seen.visits[0]!
  expect((await visitor.until('0\r\n\r\n')).length).toBe(HEAD.length + 6 * CHUNKS + 5)
  await visitor.send(get(seen.raw.host, '/next'))
  const fresh = await seen.raw.origin.accept()
  await fresh.until('\r\n\r\n')
  await fresh.send(ok('fresh'))
  expect((await readAnswer(visitor)).body).toBe('fresh')
})

test('a framing that breaks in a later portion is a cut answer', async () => {
  await using seen = await answers('nonsense', host => get(host), 1)
  const { visitor } = seen.visits[0]!
  expect(await visitor.closed()).toBeInstanceOf(Error)
  expect(visitor.hasEnded).toBe(false)
})

test('1xx answers are bounded, by number and time', async () => {
  const limits = { maxInterimAnswers: 5 }
  await using raw = await rawTunnel({ server: { limits } })
  const hints = 'HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\n'
  const few = await raw.visit(get(raw.host))
  const calm = await raw.origin.accept()
  await calm.until('\r\n\r\n')
  await calm.send(hints.repeat(5) + ok('done'))
  expect(await few.until('done')).toBe(hints.repeat(5) + ok('done'))
  const many = await raw.visit(get(raw.host))
  await calm.until('\r\n\r\n')
  await calm.send(hints.repeat(100) + ok('done'))
  for (let count = 0; count < 5; count++) expect(await many.until('\r\n\r\n')).toBe(hints)
  const { head } = await readAnswer(many)
  expect(statusOf(head)).toBe(502)
  expect(headerOf(head, 'x-localtunnels-error')).toBe('ORIGIN_INVALID')
})
