// A connection with the client of node:http2, which is nghttp2: it reads what we write, and we read what it writes.

import { expect } from 'bun:test'
import { parseRequestHead, parseResponseHead, RequestHead, ResponseHead } from '../../src/http/head.ts'
import { FieldList } from '../../src/http2/field-list.ts'
import * as Frame from '../../src/http2/frame.ts'
import { FrameDecoder, type FrameHandler } from '../../src/http2/frame-decoder.ts'
import { encodeResponseHead, encodeTrailers, maxHeadBlockBytes } from '../../src/http2/head-block.ts'
import { HpackDecoder } from '../../src/http2/hpack-decoder.ts'
import { HpackEncoder } from '../../src/http2/hpack-encoder.ts'
import { maxTextBytes } from '../../src/http2/message-fields.ts'
import { writeRequestHead } from '../../src/http2/request-text.ts'
import { testWith } from '../support/needs.ts'
import { FUZZ, Random } from '../support/random.ts'

const limits = { maxHeadBytes: 262_144, maxHeaderCount: 400, maxTargetBytes: 8192 }

interface Request {
  readonly fields: readonly (readonly [name: string, value: string | readonly string[]])[]
  readonly body?: string
  readonly trailers?: readonly (readonly [name: string, value: string])[]
}

interface Answer {
  readonly interims: readonly (readonly string[])[]
  readonly fields: readonly string[]
  readonly body: string
  readonly trailers: readonly string[]
  readonly code: number
}

/** The bytes of a server that answers so many requests, and what they say. */
class Server {
  readonly answers: Answer[] = []
  readonly #bytes = new Uint8Array(4_000_000)
  readonly #encoder = new HpackEncoder()
  #at = 0

  constructor() {
    this.#at = Frame.writeSettingsAck(this.#bytes, Frame.writeSettings(this.#bytes, 0, [[3, 100]]))
  }

  get sent(): Uint8Array {
    return this.#bytes.subarray(0, this.#at)
  }

  answer(stream: number, random: Random): void {
    const lines: [string, string][] = []
    for (let count = random.below(10); count > 0; count--)
      lines.push([
        random.pick(['x-a', 'server', 'etag', 'vary']),
        `${random.pick(['a', 'é', 'long'.repeat(50)])}`,
      ])
    // Beyond one frame, so that CONTINUATION is read, too.
    if (random.chance(0.2)) lines.push(['x-large', Buffer.from(random.bytes(15_000)).toString('base64')])
    const interims = random.chance(0.3) ? [[':status', '103', 'link', '</a>']] : []
    for (const [, , , link] of interims) this.#head(stream, `HTTP/1.1 103 \r\nLink: ${link}\r\n\r\n`)
    const body = random.chance(0.7) ? 'body'.repeat(random.below(9)) : ''
    const status = random.pick(['200', '404', '599'])
    const text = lines.map(([name, value]) => `${name}: ${value}\r\n`).join('')
    this.#head(stream, `HTTP/1.1 ${status} \r\n${text}Transfer-Encoding: chunked\r\n\r\n`)
    const hasTrailers = random.chance(0.4)
    const flags = hasTrailers ? 0 : Frame.END_STREAM
    this.#at = Frame.writeFrameHeader(this.#bytes, this.#at, Frame.DATA, flags, stream, body.length)
    this.#at += Buffer.from(body).copy(this.#bytes, this.#at)
    const trailers = hasTrailers ? ['grpc-status', '0', 'x-sum', 'é'] : []
    if (hasTrailers) {
      const section = Buffer.from('Grpc-Status: 0\r\nX-Sum: é\r\n\r\n', 'latin1')
      const block = this.#at + Frame.FRAME_HEADER_BYTES
      const end = encodeTrailers(this.#encoder, section, 0, section.length, this.#bytes, block)
      this.#at = Frame.frameHeaders(this.#bytes, this.#at, end, stream, true, 16_384)
    }
    this.answers.push({ interims, fields: [':status', status, ...lines.flat()], body, trailers, code: 0 })
  }

  #head(stream: number, text: string): void {
    const head = new ResponseHead()
    const bytes = Buffer.from(text, 'latin1')
    expect(parseResponseHead(head, bytes, 0, bytes.length, limits, 'GET')).toBe(bytes.length)
    expect(this.#at + Frame.maxHeadersBytes(maxHeadBlockBytes(head), 16_384)).toBeLessThan(this.#bytes.length)
    const block = this.#at + Frame.FRAME_HEADER_BYTES
    const end = encodeResponseHead(this.#encoder, head, this.#bytes, block)
    this.#at = Frame.frameHeaders(this.#bytes, this.#at, end, stream, false, 16_384)
  }
}

/** What a client's bytes ask for, read by ours. */
function readClient(pieces: readonly Uint8Array[]): { requests: Request[]; isSettled: boolean } {
  const decoder = new HpackDecoder({ maxListBytes: 262_144 })
  const list = new FieldList()
  const requests = new Map<
    number,
    { fields: [string, string][]; body?: string; trailers?: [string, string][] }
  >()
  let isSettled = false
  const nothing = () => {}
  const fail = () => {
    throw new Error('the client broke a rule')
  }
  const handler: FrameHandler = {
    frame: nothing,
    data(stream, bytes, start, end) {
      const request = requests.get(stream)!
      request.body = `${request.body ?? ''}${Buffer.from(bytes.subarray(start, end)).toString('latin1')}`
    },
    dataEnded: nothing,
    headers(stream, isLast, isMalformed, bytes, start, end) {
      expect(decoder.decode(bytes, start, end, list)).toBe(true)
      expect(isMalformed || list.isTooLarge).toBe(false)
      const known = requests.get(stream)
      if (known !== undefined) {
        known.trailers = list.list()
        return
      }
      const into = new Uint8Array(maxTextBytes(list))
      const to = writeRequestHead(list, isLast, '', into, 0)
      const head = new RequestHead()
      expect(parseRequestHead(head, into, 0, to, limits)).toBe(to)
      const lines = head.headerList().filter(([name]) => name !== 'Transfer-Encoding')
      requests.set(stream, { fields: [[head.method, head.target], ...lines] })
    },
    reset: nothing,
    settings: nothing,
    settingsAcknowledged() {
      isSettled = true
    },
    ping: nothing,
    pong: nothing,
    goaway: nothing,
    windowUpdate: nothing,
    streamFault: fail,
  }
  const frames = new FrameDecoder(handler, { role: 'server', maxBlockBytes: 262_144, maxContinuations: 32 })
  for (const piece of pieces) expect(frames.receive(piece)).toBeUndefined()
  return { requests: [...requests.values()], isSettled }
}

testWith(['node'], 'a client of nghttp2 and we understand each other', async () => {
  for (let seed = 1; seed <= 2 * FUZZ; seed++) {
    const random = new Random(seed)
    const server = new Server()
    const requests: Request[] = []
    const expected: Request[] = []
    for (let count = 0; count < 40; count++) {
      server.answer(2 * count + 1, random)
      const target = random.pick(['/', '//a/../%2e?x=y', `/${'long'.repeat(random.below(500))}`])
      const repeated = ['é', random.pick(['1', '2']), '']
      const large = Buffer.from(random.bytes(random.chance(0.1) ? 20_000 : 3)).toString('base64')
      const hasBody = random.chance(0.4)
      const method = hasBody ? 'POST' : 'GET'
      const body = hasBody ? { body: 'x'.repeat(1 + random.below(900)) } : {}
      const trailers = hasBody && random.chance(0.5) ? { trailers: [['x-sum', 'é'] as const] } : {}
      requests.push({
        fields: [
          [':method', method],
          [':path', target],
          [':authority', 'a.example'],
          ['x-a', repeated],
          ['cookie', ['a=1', 'b=2']],
          ['x-large', large],
        ],
        ...body,
        ...trailers,
      })
      const lines = [
        [method, target] as const,
        ['Host', 'a.example'] as const,
        ...repeated.map(value => ['x-a', value] as const),
        ['cookie', 'a=1; b=2'] as const,
        ['x-large', large] as const,
      ]
      expected.push({ fields: lines, ...body, ...trailers })
    }
    const child = Bun.spawn(['node', `${import.meta.dir}/../support/node-h2.mjs`], {
      stdin: new Blob([JSON.stringify({ requests, answer: Buffer.from(server.sent).toString('base64') })]),
      stderr: 'inherit',
    })
    // The shape that node-h2.mjs writes.
    const result = (await new Response(child.stdout).json()) as {
      sent: string
      answers: (Answer & { error: string })[]
      errors: string[]
    }
    expect(result.errors).toEqual([])
    expect(result.answers, `seed ${seed}`).toEqual(server.answers.map(answer => ({ ...answer, error: '' })))
    const sent = new Uint8Array(Buffer.from(result.sent, 'base64'))
    const reading = readClient([sent])
    expect(reading.requests, `seed ${seed}`).toEqual(expected)
    expect(readClient(random.slices(sent, 500))).toEqual(reading)
    expect(reading.isSettled).toBe(true)
  }
})
