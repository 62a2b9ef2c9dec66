// A connection whose requests are kept for a judge: how long, and how they are kept.

import { afterEach, expect, jest, test } from 'bun:test'
import type { Origin } from '../../../src/client/origin.ts'
import { connectJudged } from '../../../src/client/webhooks/judged-connection.ts'
import type { SocketHandler } from '../../../src/socket.ts'

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
