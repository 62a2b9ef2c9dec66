// The JSON wire: what is read, what is ignored, what is refused, and that bodies stay the bytes they were.

import { describe, expect, test } from 'bun:test'
import {
  collapseHeaders,
  encodeBody,
  encodeJsonMessage,
  type JsonMessage,
  type JsonResponse,
  parseJsonMessage,
} from '../../src/wire/json.ts'
import { FUZZ, Random } from '../support/random.ts'
import vectors from '../vectors/json-wire.json' with { type: 'json' }

/** As the vectors show it: bodies in hex. */
const shown = (message: JsonMessage | undefined): unknown =>
  message !== undefined && 'body' in message && message.body !== undefined
    ? { ...message, body: Buffer.from(message.body).toString('hex') }
    : message

describe('reading', () => {
  for (const { text, parsed } of vectors.messages) {
    test(`${text.slice(0, 80)} is understood`, () => expect(shown(parseJsonMessage(text))).toEqual(parsed))
  }

  for (const text of vectors.ignored) {
    test(`${JSON.stringify(text)} is ignored`, () => expect(parseJsonMessage(text)).toBeUndefined())
  }

  for (const message of vectors.invalid) {
    test(`${JSON.stringify(message)} is refused with its number`, () => {
      expect(parseJsonMessage(JSON.stringify(message))).toEqual({
        type: 'invalid',
        of: message.type === 'request' ? 'request' : 'response',
        id: 1,
      })
    })
  }

  test('more headers than any honest end sends are refused', () => {
    const headers = Object.fromEntries(Array.from({ length: 257 }, (_, n) => [`h${n}`, 'v']))
    expect(parseJsonMessage(JSON.stringify({ type: 'response', id: 1, status: 200, headers }))?.type).toBe(
      'invalid',
    )
  })

  test('nothing that is parsed changes a prototype', () => {
    parseJsonMessage('{"type":"ready","subdomain":"a","__proto__":{"polluted":1}}')
    parseJsonMessage('{"type":"response","id":1,"status":200,"headers":{"__proto__":"polluted"}}')
    expect(Object.hasOwn(Object.prototype, 'polluted')).toBe(false)
  })
})

describe('writing', () => {
  for (const { contentType, bytes, encoded } of vectors.bodies) {
    test(`the bytes ${bytes || 'none'} of ${contentType ?? 'no type'} go as ${encoded.body || 'nothing'}`, () => {
      expect(encodeBody(new Uint8Array(Buffer.from(bytes, 'hex')), contentType ?? undefined)).toEqual(
        encoded as ReturnType<typeof encodeBody>, // as a literal type, which JSON does not have
      )
    })
  }

  test('every message is read as it was written', () => {
    for (const { text } of vectors.messages) {
      const message = parseJsonMessage(text)
      if (message === undefined || message.type === 'invalid') throw new Error('not a message')
      expect(parseJsonMessage(encodeJsonMessage(message))).toEqual(message)
    }
  })

  test('headers become one string each', () => {
    const collapsed = collapseHeaders([
      ['Accept', 'a'],
      ['accept', 'b'],
      ['cookie', 'x=1'],
      ['cookie', 'y=2'],
      ['set-cookie', 'first'],
      ['set-cookie', 'last'],
      ['__proto__', 'own'],
    ])
    expect(JSON.stringify(collapsed)).toBe(
      '{"accept":"a, b","cookie":"x=1; y=2","set-cookie":"last","__proto__":"own"}',
    )
  })

  test('any bytes come out as they went in, whatever their content type claims', () => {
    const types = ['text/html', 'application/json', 'image/png', 'text/plain; charset=utf-16']
    for (let seed = 1; seed <= 200 * FUZZ; seed++) {
      const random = new Random(seed)
      const text = new TextEncoder().encode(random.pick(['grüß \u2028 "\\\n', '\ufeff', '𝒳', '']))
      const body = Buffer.concat([text, random.bytes(random.pick([0, 0, 1, 50]))])
      const sent: JsonResponse = {
        type: 'response',
        id: seed,
        status: 200,
        headers: [['content-type', random.pick(types)]],
        body,
      }
      const arrived = parseJsonMessage(encodeJsonMessage(sent))
      if (arrived?.type !== 'response' || Buffer.compare(arrived.body, body) !== 0)
        throw new Error(`seed ${seed}`)
    }
  })
})
