// Lines of the access log that threads write are those of the main thread, byte for byte but for the time.

import { expect, test } from 'bun:test'
import { LineRoom } from '../../src/accelerator/line-room.ts'
import { accessLine, middleOf } from '../../src/plugins/access-line.ts'

const seen = {
  id: 7,
  kind: 'http',
  tunnel: 'app',
  address: '192.0.2.1',
  method: 'GET',
  host: 'a"b\\\u00e4.localhost',
} as const
const withoutTime = (line: string) => line.replace(/"time":"[^"]*Z"/, '')

const TARGETS = [
  '/',
  '/a?b=secret',
  '/a#b?c',
  '/"\\x',
  '/\u0080\u009f\u00e4\u00ff?\u00e9"',
  '/\x7f',
  `/${'"'.repeat(16_000)}`,
  `/${'\u00ff'.repeat(16_000)}`,
]
const MS = [0, 0.004, 0.01, 0.1, 0.99, 0.999, 1, 1.05, 9.99, 10, 99.994, 12_345.67]

test('a line of a thread is that of the main thread', () => {
  for (const query of [false, true])
    for (const target of TARGETS)
      for (const [index, durationMs] of MS.entries()) {
        const id = 10 ** index
        const requestId = index % 2 === 0 ? '' : '0abc/:.+=@-'
        const client = index % 3 === 0 ? {} : { client: 3, token: 'ci "main"' }
        const [status, requestBytes, responseBytes] = [200 + index, 10 ** index - 1, 2 ** (4 * index)]
        const appMs = Math.round(durationMs * 100) / 100
        const outcome = {
          ...client,
          status,
          durationMs: appMs,
          waitMs: 0,
          appMs,
          requestBytes,
          responseBytes,
        }
        const visit = { ...seen, id, target, ...(requestId !== '' && { requestId }) }
        const room = new LineRoom(131_072)
        const bytes = Buffer.from(` ${target} `, 'latin1')
        const line = {
          requestId,
          bytes,
          start: 1,
          end: bytes.length - 1,
          status,
          durationMs,
          requestBytes,
          responseBytes,
        }
        expect(room.add(id, { query, middle: Buffer.from(middleOf(visit, outcome)) }, line)).toBe(true)
        const written = Buffer.from(room.take()).toString()
        expect(withoutTime(written)).toBe(withoutTime(accessLine(visit, outcome, query)))
        expect(new Date(JSON.parse(written).time).toISOString()).toBe(JSON.parse(written).time)
      }
})

test('what does not fit in is refused whole, and the lines before it stay', () => {
  const room = new LineRoom(1_000)
  const log = { query: true, middle: Buffer.from(',"kind":"http"') }
  const line = {
    requestId: '',
    bytes: Buffer.from('/'),
    start: 0,
    end: 1,
    status: 200,
    durationMs: 1,
    requestBytes: 1,
    responseBytes: 1,
  }
  let count = 0
  while (room.add(count, log, line)) count++
  expect(room.count).toBe(count)
  expect(
    Buffer.from(room.take())
      .toString()
      .trimEnd()
      .split('\n')
      .map(text => JSON.parse(text).id),
  ).toEqual([...Array(count).keys()])
  expect(room.add(count, log, line)).toBe(true)
})
