// Messages of the JSON wire: the vectors, what bodies become, and what strangers may send.

import { describe, expect, test } from 'bun:test'
import {
  decodeBody,
  encodeBody,
  encodeCancel,
  encodeConnected,
  encodeDisconnect,
  encodeError,
  encodeReady,
  encodeRegistered,
  encodeRequest,
  encodeResponse,
  encodeTaken,
  isTextType,
  type JsonClientMessage,
  type JsonServerMessage,
  PING,
  PONG,
  parseClientMessage,
  parseServerMessage,
} from '../../src/parts/json-wire/json.ts'
import { countInputs, FUZZ, Random } from '../support/random.ts'
import vectors from '../vectors/json-wire.json' with { type: 'json' }

describe('the vectors', () => {
  for (const { text, means, ...rest } of vectors.clientToServer) {
    test(`are read as a client's: ${text.slice(0, 60)}`, () => {
      const message = parseClientMessage(text) as JsonClientMessage // compared as a whole
      expect(message).toEqual(means as never)
      if (message.type !== 'response' || message.answer === undefined) return
      expect(Buffer.from(decodeBody(message.answer.body) ?? []).toString('hex')).toBe(rest.bodyHex ?? '')
      // An independent reading of what is written must agree with the vector.
      expect(JSON.parse(encodeResponse(message.id, message.answer))).toEqual(JSON.parse(text))
    })
  }

  for (const { text, means } of vectors.serverToClient) {
    test(`are read as a server's: ${text.slice(0, 60)}`, () => {
      const message = parseServerMessage(text) as JsonServerMessage // compared as a whole
      expect(message).toEqual(means as never)
      if (message.type === 'request') expect(JSON.parse(encodeRequest(message))).toEqual(JSON.parse(text))
    })
  }

  test('are written byte for byte', () => {
    const texts = [...vectors.clientToServer, ...vectors.serverToClient].map(({ text }) => text)
    for (const written of [
      encodeReady('app'),
      encodeCancel(7),
      PING,
      encodeDisconnect('app'),
      encodeConnected(60_000),
      encodeRegistered('app', 'http://app.localhost:8080'),
      encodeTaken('app'),
      encodeError('Invalid subdomain format'),
      PONG,
    ]) {
      expect(texts).toContain(written)
    }
  })
})

describe('headers', () => {
  const request = { type: 'request', id: 1, method: 'GET', path: '/' } as const

  test('of a request that repeat become one, cookies by a semicolon', () => {
    const headers = [
      ['Accept', 'a'],
      ['cookie', 'a=1'],
      ['ACCEPT', 'b'],
      ['Cookie', 'b=2'],
    ] as const
    expect(JSON.parse(encodeRequest({ ...request, headers })).headers).toEqual({
      accept: 'a, b',
      cookie: 'a=1; b=2',
    })
  })

  test('Set-Cookie of an answer stays as many as it was, up to every spelling there is', () => {
    const headers = Array.from({ length: 300 }, (_, index) => ['Set-Cookie', `c${index}=1`] as const)
    const text = encodeResponse(1, { status: 200, headers, body: { text: '', isBase64: false } })
    const written = new Headers(JSON.parse(text).headers)
    expect(written.getSetCookie()).toEqual(headers.map(([, value]) => value))
  })

  test('called __proto__ are headers like any other, both ways', () => {
    const text = encodeRequest({
      ...request,
      headers: [
        ['__proto__', 'x'],
        ['constructor', 'y'],
      ],
    })
    expect(parseServerMessage(text)).toMatchObject({
      headers: [
        ['__proto__', 'x'],
        ['constructor', 'y'],
      ],
    })
    expect(Object.getPrototypeOf({})).toBe(Object.prototype)
  })

  test('given as a list or a number are taken, as third parties send them', () => {
    const text = '{"type":"response","id":1,"status":200,"headers":{"a":["b","c"],"age":5}}'
    expect(parseClientMessage(text)).toMatchObject({
      answer: {
        headers: [
          ['a', 'b'],
          ['a', 'c'],
          ['age', '5'],
        ],
      },
    })
  })

  for (const value of ['a\nb', 'a\rb', 'a\0b', 'a\x7fb', 'a\u2028b', 'ā']) {
    test(`with ${JSON.stringify(value)} in a value make an answer invalid`, () => {
      const text = JSON.stringify({ type: 'response', id: 1, status: 200, headers: { a: value } })
      expect(parseClientMessage(text)).toEqual({ type: 'response', id: 1, answer: undefined })
    })
  }
})

describe('bodies', () => {
  test('are text by content type', () => {
    for (const type of [
      'text/html',
      'TEXT/plain; charset=utf-8',
      'application/json',
      'application/ld+json',
      'image/svg+xml',
      'application/x-www-form-urlencoded',
    ]) {
      expect(isTextType(type)).toBe(true)
    }
    for (const type of [
      undefined,
      '',
      'image/png',
      'application/octet-stream',
      'multipart/form-data',
      'application/jsonx',
    ]) {
      expect(isTextType(type)).toBe(false)
    }
  })

  test('of any bytes and any type come back as they were', () => {
    const random = new Random(20)
    for (let round = 0; round < 300 * FUZZ; round++) {
      const bytes = random.chance(0.5)
        ? random.bytes(random.below(300))
        : new TextEncoder().encode('\ufeffhé€😀'.repeat(random.below(9)))
      const body = encodeBody(bytes, random.pick(['text/plain', 'image/png', '']))
      expect(Buffer.from(decodeBody(body) ?? [])).toEqual(Buffer.from(bytes))
    }
  })

  for (const text of ['!', 'A', 'AAA!', 'AAAAA', 'AA AA', 'AA\nAA', 'é', '=AAA']) {
    test(`that say base64 and are ${JSON.stringify(text)} are refused`, () => {
      expect(decodeBody({ text, isBase64: true })).toBeUndefined()
    })
  }

  test('in base64 need no padding', () => {
    expect(decodeBody({ text: 'AAE', isBase64: true })).toEqual(Buffer.from([0, 1]))
  })
})

describe('a long message is read like JSON reads it', () => {
  const long = 'AAAA'.repeat(10_000)
  const start = '{"type":"response","id":1,"status":200'
  for (const [what, text] of [
    ['as existing clients write it', `${start},"headers":{"a":"b"},"body":"${long}","isBase64Encoded":true}`],
    ['with an escape in its base64', `${start},"body":"${long}\\/AA\\u0041","isBase64Encoded":true}`],
    [
      'with its body first',
      `{"body":"${long}","type":"response","id":1,"status":200,"isBase64Encoded":true}`,
    ],
    ['with two bodies', `${start},"body":"first","body":"${long}","isBase64Encoded":true}`],
    ['with another field behind', `${start},"body":"${long}","error":"x","isBase64Encoded":true}`],
    [
      'with the words in a header',
      `${start},"headers":{"a":",\\"body\\":\\""},"body":"${long}","isBase64Encoded":true}`,
    ],
    ['as text', `${start},"body":"${long}"}`],
  ] as const) {
    test(what, () => {
      const { body, headers = {} } = JSON.parse(text) as { body: string; headers?: object } // our own text
      const isBase64 = text.endsWith('"isBase64Encoded":true}')
      expect(parseClientMessage(text)).toMatchObject({
        answer: { body: { text: body, isBase64 }, headers: Object.entries(headers) },
      })
    })
  }

  for (const [what, text] of [
    [
      'with the body in another object',
      `${start},"headers":{"a":"b","body":"${long}","isBase64Encoded":true}`,
    ],
    ['cut off', `${start},"headers":{,"body":"${long}","isBase64Encoded":true}`],
    ['that is a list', `[1,"body":"${long}","isBase64Encoded":true}`],
  ] as const) {
    test(`or not at all: ${what}`, () => expect(parseClientMessage(text)).toBeUndefined())
  }
})

test('a long message that is long for anything but its texts is not parsed', () => {
  const answer = (x: string) => `{"type":"response","id":1,"status":200,"headers":{},"x":${x},"body":"x"}`
  const text = JSON.stringify('[{"a":1,"b":[2]},\\'.repeat(100_000))
  expect(parseClientMessage(answer(text))).toMatchObject({ type: 'response', id: 1 })
  expect(parseClientMessage(answer(`[${'1,'.repeat(30_000)}1]`))).toBeUndefined()
  expect(parseClientMessage(answer('['.repeat(20_000) + ']'.repeat(20_000)))).toBeUndefined()
})

test('whatever a stranger sends, reading it does not throw and yields nothing unchecked', () => {
  countInputs('JSON messages', 2_000 * FUZZ)
  const random = new Random(21)
  const seeds = [...vectors.clientToServer, ...vectors.serverToClient].map(({ text }) => text)
  const values = [
    'null',
    '1e999',
    '-1',
    '{}',
    '[]',
    '""',
    'true',
    '"\\u0000"',
    '{"__proto__":1}',
    '"ready"',
    '[[[[1]]]]',
  ]
  for (let round = 0; round < 2_000 * FUZZ; round++) {
    let text = random.pick(seeds)
    for (let change = random.below(4); change >= 0; change--) {
      const at = random.below(text.length)
      text = random.chance(0.5)
        ? text.slice(0, at) + random.pick(values) + text.slice(at + random.below(8))
        : text.replace(/:("[^"]*"|\d+|\{[^}]*\})/, `:${random.pick(values)}`)
    }
    const client = parseClientMessage(text)
    if (typeof client === 'object' && client.type === 'response') {
      expect(Number.isSafeInteger(client.id)).toBe(true)
      for (const [name, value] of client.answer?.headers ?? [])
        expect(`${name}${value}`).not.toMatch(/[\r\n\0]/)
    }
    const server = parseServerMessage(text)
    if (typeof server === 'object' && server.type === 'request') {
      expect(typeof server.path === 'string' && typeof server.method === 'string').toBe(true)
    }
  }
})
