// The body of a request by HTTP/2 on its way to a visit: its text, and when the visitor gets its credit back.

import { expect, test } from 'bun:test'
import { HeldBytes } from '../../src/bytes.ts'
import { parseRequestHead, RequestHead } from '../../src/http/head.ts'
import { StreamRequest } from '../../src/parts/http2/stream-request.ts'

const LIMITS = { maxHeadBytes: 65_536, maxHeaderCount: 100, maxTargetBytes: 1_000 }

function begin(line: string, pausesAt = '') {
  const told: string[] = []
  const held = new HeldBytes()
  const head = new RequestHead()
  const bytes = Buffer.from(`POST / HTTP/1.1\r\nHost: a\r\n${line}\r\n\r\n`)
  parseRequestHead(head, bytes, 0, bytes.length, LIMITS)
  const taker = {
    body(piece: Uint8Array) {
      const text = Buffer.from(piece).toString()
      told.push(text)
      if (text === pausesAt) request.pause()
    },
    bodyEnded: () => void told.push('end'),
  }
  const request: StreamRequest = new StreamRequest(taker, held, count => void told.push(`credit ${count}`))
  request.begin(head)
  const data = (text: string) => request.data(Buffer.from(text), 0, text.length)
  return { request, told, held, data }
}

test('credit comes back for what the visit took, and for a piece that filled it once it goes on', () => {
  const { request, told, held, data } = begin('Content-Length: 9', 'two')
  data('one')
  data('two')
  data('six')
  request.ended(undefined)
  expect(told).toEqual(['one', 'credit 3', 'two'])
  expect([held.bytes, held.count]).toEqual([3, 1])
  request.resume()
  request.pass()
  expect(told.slice(3)).toEqual(['credit 3', 'six', 'credit 3', 'end'])
  expect([held.bytes, held.count]).toEqual([0, 0])
})

test('without a length it is chunks, with one it has to be as long', () => {
  const chunked = begin('Transfer-Encoding: chunked')
  chunked.data('x'.repeat(17))
  chunked.request.ended(undefined)
  expect(chunked.told).toEqual([`11\r\n${'x'.repeat(17)}\r\n`, 'credit 17', '0\r\n\r\n', 'credit 0', 'end'])
  expect(begin('Content-Length: 3').data('four')).toBe(false)
  const short = begin('Content-Length: 3')
  short.data('ab')
  expect(short.request.ended(undefined)).toBe(false)
})

test('what nothing wants any more is not counted any more', () => {
  const { request, held, data } = begin('Content-Length: 9')
  request.pause()
  data('one')
  expect(held.bytes).toBe(3)
  request.clear()
  expect([held.bytes, held.count]).toEqual([0, 0])
})
