// A connection whose requests are kept for a judge: how long, and how they are kept.

import { afterEach, expect, jest, test } from 'bun:test'
import type { Origin } from '../../../src/client/origins/origin.ts'
import { connectJudged } from '../../../src/parts/webhooks/judged-connection.ts'
import type { SocketHandler } from '../../../src/socket.ts'
import { get, ok, rawTunnel } from '../../support/exchange.ts'
import { testWith } from '../../support/needs.ts'
import { freePort } from '../../support/ports.ts'
import { startProgram } from '../../support/programs.ts'
import { rawDial } from '../../support/raw.ts'
import { startTunnel } from '../../support/tunnel.ts'

const UPGRADED = 'Connection: Upgrade\r\nUpgrade: tcp\r\nContent-Length: @'

afterEach(() => {
  jest.useRealTimers()
})

function judgedAlone(bodies: string[] = []) {
  let [answer, dials, closed] = ['', 0, false]
  const origin: Origin = {
    label: 'app',
    url: 'http://app',
    connect: () => {
      dials++
      return Promise.reject(new Error('no app'))
    },
  }
  const handler: SocketHandler = {
    received: bytes => {
      answer += Buffer.from(bytes).toString()
    },
    drained() {},
    ended() {},
    closed: () => {
      closed = true
    },
  }
  const socket = connectJudged(origin, handler, {
    readsBody: true,
    maxBodyBytes: 100_000,
    matches: () => true,
    refusalOf: (_head, body) => {
      bodies.push(Buffer.from(body).toString())
      return { code: 'SIGNATURE_INVALID' }
    },
  })
  return {
    socket,
    write: (text: string) => socket.write(Buffer.from(text)),
    saw: () => ({ status: answer.slice(9, 12), dials, closed }),
  }
}

test('the next bytes of a body have 15 s, each of them', async () => {
  jest.useFakeTimers()
  const { write, saw } = judgedAlone()
  write('POST / HTTP/1.1\r\nHost: app\r\nContent-Length: 100\r\n\r\n')
  for (let sent = 0; sent < 5; sent++) {
    jest.advanceTimersByTime(14_000)
    write('x')
  }
  expect(saw()).toEqual({ status: '', dials: 0, closed: false })
  jest.advanceTimersByTime(15_001)
  await Promise.resolve()
  expect(saw()).toEqual({ status: '408', dials: 0, closed: true })
})

test('a body that goes on byte by byte has two minutes', async () => {
  jest.useFakeTimers()
  const { write, saw } = judgedAlone()
  write('POST / HTTP/1.1\r\nHost: app\r\nContent-Length: 100000\r\n\r\n')
  for (let sent = 0; sent < 8; sent++) {
    jest.advanceTimersByTime(14_000)
    write('x')
  }
  expect(saw().status).toBe('')
  jest.advanceTimersByTime(8_001)
  await Promise.resolve()
  expect(saw()).toEqual({ status: '408', dials: 0, closed: true })
})

// The server writes the line: the visitor's own words, what each proxy in front saw, and the last proxy's address.
test.each([
  (sent: number) => `192.0.2.${sent}, 203.0.113.7, 127.0.0.1`,
  (sent: number) => `a${sent}, b${sent}, 203.0.113.7:${1_000 + sent}, 127.0.0.1`,
  (sent: number) => `${sent}, [2001:db8::${sent}]:443, ::1`,
  (sent: number) => `${sent}, , 127.0.0.1`,
  (sent: number) => `2001:db8::${sent}`,
])('behind proxies a visitor has one share, whatever it says of itself', async forwarded => {
  const all = Array.from({ length: 200 }, (_, index) => {
    const judged = judgedAlone()
    const head = `POST / HTTP/1.1\r\nHost: app\r\nX-Forwarded-For: ${forwarded(index)}\r\nContent-Length: 100000\r\n\r\n`
    judged.write(head + 'x'.repeat(99_999))
    return judged
  })
  const keptCount = all.filter(({ saw }) => saw().status === '').length
  for (const { socket } of all) socket.terminate()
  await Promise.resolve()
  expect(keptCount).toBeGreaterThan(50)
  expect(keptCount).toBeLessThan(80)
})

test.each([1, 7, 16_384, 100_000])(
  'in pieces of %d bytes the judge sees the body as it was sent',
  async size => {
    const body = Array.from({ length: 20_000 }, (_, index) => `${index % 10}`).join('')
    const half = body.length / 2
    const chunks = `${half.toString(16)}\r\n${body.slice(0, half)}\r\n${half.toString(16)};x=y\r\n${body.slice(half)}\r\n0\r\n\r\n`
    for (const [line, sent] of [
      [`Content-Length: ${body.length}`, body],
      ['Transfer-Encoding: chunked', chunks],
    ] as const) {
      const bodies: string[] = []
      const { write, saw } = judgedAlone(bodies)
      const text = `POST / HTTP/1.1\r\nHost: app\r\n${line}\r\n\r\n${sent}`
      for (let at = 0; at < text.length; at += size) write(text.slice(at, at + size))
      await Promise.resolve()
      expect(bodies).toEqual([body])
      expect(saw()).toEqual({ status: '401', dials: 0, closed: true })
    }
  },
)

for (const interim of ['HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n', 'HTTP/1.1 100 Continue\n\n', ''])
  for (const cut of [1, 1_000])
    test(`a switch is one ${interim === '' ? 'at once' : `behind ${interim.slice(9, 12)}`}, in pieces of ${cut} bytes`, async () => {
      await using raw = await rawTunnel({ client: { filter: 'path:/socket' } })
      const upgrade = 'Connection: Upgrade\r\nUpgrade: tcp\r\n'
      const visitor = await raw.visit(get(raw.host, '/socket', upgrade))
      const app = await raw.origin.accept()
      await app.until('\r\n\r\n')
      const answer = `${interim}HTTP/1.1 101 Switching Protocols\r\n${upgrade}\r\n`
      for (let at = 0; at < answer.length; at += cut) {
        await app.send(answer.slice(at, at + cut))
        await new Promise(resolve => setImmediate(resolve))
      }
      await visitor.until('Upgrade: tcp\r\n')
      await visitor.send('\0no request')
      expect(await app.exactly(11)).toBe('\0no request')
      await app.send('\0no answer')
      await visitor.until('\0no answer')
    })

test('behind an interim response and a refused switch, requests are judged again', async () => {
  await using raw = await rawTunnel({ client: { filter: 'path:/socket' } })
  const visitor = await raw.visit(get(raw.host, '/socket', 'Connection: Upgrade\r\nUpgrade: tcp\r\n'))
  const app = await raw.origin.accept()
  await app.until('\r\n\r\n')
  await app.send(`HTTP/1.1 103 Early Hints\r\n\r\n${ok('no')}`)
  await visitor.until('no')
  await visitor.send(get(raw.host, '/other'))
  expect(await visitor.until('FILTERED_OUT')).toContain('HTTP/1.1 404')
  expect(app.text).toBe('')
})

for (const token of ['foo', 'websocket'])
  for (const isChunked of [false, true])
    for (const isEarly of [false, true])
      test(`a body behind an Upgrade (${token}) is a body: chunked ${isChunked}, answered early ${isEarly}`, async () => {
        await using raw = await rawTunnel({ client: { filter: 'path:/socket' } })
        const hidden = `POST /socket HTTP/1.1\r\nHost: ${raw.host}\r\nContent-Length: 100000\r\n\r\n`
        const framing = isChunked ? 'Transfer-Encoding: chunked' : `Content-Length: ${hidden.length}`
        const head = `POST /socket HTTP/1.1\r\nHost: ${raw.host}\r\nConnection: Upgrade\r\nUpgrade: ${token}\r\n${framing}\r\n\r\n`
        const body = isChunked ? `${hidden.length.toString(16)}\r\n${hidden}\r\n0\r\n\r\n` : hidden
        const visitor = await raw.visit(head)
        const app = await raw.origin.accept()
        await app.until('\r\n\r\n')
        if (isEarly) await app.send(ok('no'))
        if (isEarly) await visitor.until('no')
        await visitor.send(body)
        if (!isEarly) await app.until('100000')
        if (!isEarly) await app.send(ok('no'))
        if (!isEarly) await visitor.until('no')
        const next = await raw.visit(get(raw.host, '/other'))
        expect(await next.until('FILTERED_OUT')).toContain('HTTP/1.1 404')
      })

for (const wire of ['streams', 'json'] as const)
  for (const framing of ['Content-Length: @', 'Transfer-Encoding: chunked', UPGRADED]) {
    if (wire === 'json' && framing === UPGRADED) continue
    testWith(
      ['python3'],
      `no body becomes a request where the app leaves it: ${wire}, ${framing}`,
      async () => {
        const port = freePort()
        const app = `${import.meta.dir}/../../support/lazy-app.py`
        await using _ = await startProgram(['python3', app, `${port}`], port)
        await using tunnel = await startTunnel({ port, filter: 'path:/open-*' }, { wire })
        const hidden = `POST /secret HTTP/1.1\r\nHost: ${tunnel.host}\r\n\r\n`
        const isChunked = framing.startsWith('T')
        const body = isChunked ? `${hidden.length.toString(16)}\r\n${hidden}\r\n0\r\n\r\n` : hidden
        const line = framing.replace('@', `${hidden.length}`)
        for (const visit of ['first', 'second']) {
          const visitor = await rawDial(tunnel.port)
          await visitor.send(`POST /open-${visit} HTTP/1.1\r\nHost: ${tunnel.host}\r\n${line}\r\n\r\n${body}`)
          const text = await visitor.until(visit)
          visitor.socket.terminate()
          expect(text).not.toContain('/secret')
        }
      },
    )
  }
