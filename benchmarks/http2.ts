// What HTTP/2 costs in front of the heads of HTTP/1.1: a field block into text and back, HPACK alone, Huffman, frames.

import { bench, do_not_optimize, run } from 'mitata'
import { parseRequestHead, parseResponseHead, RequestHead, ResponseHead } from '../src/http/head.ts'
import { FieldList } from '../src/http2/field-list.ts'
import { DATA, writeFrameHeader, writeSettings } from '../src/http2/frame.ts'
import { FrameDecoder, type FrameHandler } from '../src/http2/frame-decoder.ts'
import { encodeResponseHead, maxHeadBlockBytes } from '../src/http2/head-block.ts'
import { HpackDecoder } from '../src/http2/hpack-decoder.ts'
import { HpackEncoder, maxBlockBytes } from '../src/http2/hpack-encoder.ts'
import { decodeHuffman, encodeHuffman } from '../src/http2/huffman.ts'
import { maxTextBytes } from '../src/http2/message-fields.ts'
import { writeRequestHead } from '../src/http2/request-text.ts'

const limits = { maxHeadBytes: 65_536, maxHeaderCount: 200, maxTargetBytes: 16_384 }

const REQUEST: readonly (readonly [name: string, value: string])[] = [
  [':method', 'GET'],
  [':scheme', 'https'],
  [':authority', 'my-app.tunnel.example'],
  [':path', '/assets/app.js?v=12'],
  ['user-agent', 'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/130.0.0.0'],
  ['accept', '*/*'],
  ['referer', 'https://my-app.tunnel.example/'],
  ['accept-encoding', 'gzip, deflate, br, zstd'],
  ['accept-language', 'en-US,en;q=0.9'],
  ['cookie', 'session=0123456789abcdef0123456789abcdef'],
]
const ANSWER = Buffer.from(
  [
    'HTTP/1.1 200 OK',
    'X-Powered-By: Express',
    'Content-Type: application/json; charset=utf-8',
    'Content-Length: 27',
    'ETag: W/"1b-yFl8mZVkX4Pb7ZsX2pYxTQp1Ibs"',
    'Cache-Control: private, max-age=0',
    'Vary: Accept-Encoding',
    'Date: Thu, 21 Nov 2024 10:00:00 GMT',
    'Connection: keep-alive',
    'Keep-Alive: timeout=5',
    '\r\n',
  ].join('\r\n'),
)

const list = new FieldList()
const into = new Uint8Array(65_536)

function encode(encoder: HpackEncoder): Uint8Array {
  const block = new Uint8Array(maxBlockBytes(4096, REQUEST.length))
  let at = encoder.begin(block, 0)
  for (const [name, value] of REQUEST) {
    const bytes = Buffer.from(name + value, 'latin1')
    at = encoder.field(block, at, bytes, 0, name.length, bytes, name.length, bytes.length)
  }
  return block.slice(0, at)
}

const encoder = new HpackEncoder()
const first = encode(encoder)
const later = encode(encoder)
const literal = encode(new HpackEncoder(0))

for (const [name, block, warm] of [
  ['literals', literal, undefined],
  ['mostly indices', later, first],
] as const) {
  const decoder = new HpackDecoder({ maxListBytes: 65_536 })
  if (warm !== undefined) decoder.decode(warm, 0, warm.length, list)
  const head = new RequestHead()
  bench(`decode a request of 10 fields, ${name}, ${block.length} B`, () =>
    do_not_optimize(decoder.decode(block, 0, block.length, list)),
  )
  bench('  and write it as text', () => {
    decoder.decode(block, 0, block.length, list)
    if (maxTextBytes(list) <= into.length) do_not_optimize(writeRequestHead(list, true, '', into, 0))
  })
  bench('  and parse that', () => {
    decoder.decode(block, 0, block.length, list)
    const end = writeRequestHead(list, true, '', into, 0)
    do_not_optimize(parseRequestHead(head, into, 0, end, limits))
  })
}

const answer = new ResponseHead()
parseResponseHead(answer, ANSWER, 0, ANSWER.length, limits, 'GET')
if (maxHeadBlockBytes(answer) > into.length) throw new RangeError('a larger array is needed')
for (const [name, tableBytes] of [
  ['with a table', 4096],
  ['without a table', 0],
] as const) {
  const answers = new HpackEncoder(tableBytes)
  encodeResponseHead(answers, answer, into, 0)
  const length = encodeResponseHead(answers, answer, into, 0)
  bench(`encode an answer of 10 lines, ${name}, ${length} B`, () =>
    do_not_optimize(encodeResponseHead(answers, answer, into, 0)),
  )
}

const text = Buffer.from(REQUEST[4]![1])
const coded = new Uint8Array(200)
const codedEnd = encodeHuffman(text, 0, text.length, coded, 0)
bench(`Huffman, decode ${text.length} B`, () => do_not_optimize(decodeHuffman(coded, 0, codedEnd, into, 0)))
bench(`Huffman, encode ${text.length} B`, () => do_not_optimize(encodeHuffman(text, 0, text.length, into, 0)))

const nothing = (): void => {}
const handler: FrameHandler = {
  frame: nothing,
  data: nothing,
  dataEnded: nothing,
  headers: nothing,
  reset: nothing,
  settings: nothing,
  settingsAcknowledged: nothing,
  ping: nothing,
  pong: nothing,
  goaway: nothing,
  windowUpdate: nothing,
  streamFault: nothing,
}
const frames = new FrameDecoder(handler, { role: 'client', maxBlockBytes: 65_536, maxContinuations: 16 })
const settings = new Uint8Array(9)
writeSettings(settings, 0, [])
frames.receive(settings)
const data = new Uint8Array(1000 * (9 + 100))
for (let at = 0; at < data.length; at += 109) writeFrameHeader(data, at, DATA, 0, 1, 100)
bench('read 1000 DATA frames of 100 B', () => do_not_optimize(frames.receive(data)))

await run()
