// The messages and frames that the micro-benchmarks encode and decode: one typical request, one typical answer.

import type { JsonAnswer, JsonRequest } from '../src/parts/json-wire/json.ts'
import { FRAME_HEADER_BYTES, writeFrameHeader } from '../src/wire/frame.ts'

export const READY = { type: 'ready', subdomain: 'swift-fox' } as const
export const PING = { type: 'ping' } as const

export const REQUEST = {
  type: 'request',
  id: 42,
  method: 'POST',
  path: '/api/webhooks/payments?source=test',
  headers: {
    'content-type': 'application/json',
    'user-agent': 'curl/8.5.0',
    accept: '*/*',
    'x-forwarded-for': '203.0.113.7',
    'x-forwarded-host': 'swift-fox.localhost',
    'x-forwarded-proto': 'http',
  },
  body: '{"event":"payment.succeeded","amount":4200,"currency":"usd"}',
} as const

export const RESPONSE = {
  type: 'response',
  id: 42,
  status: 200,
  headers: {
    'content-type': 'application/json; charset=utf-8',
    'cache-control': 'no-store',
    etag: 'W/"2a-7f1b"',
    date: 'Sat, 21 Nov 2026 10:00:00 GMT',
  },
  body: '{"received":true,"id":"evt_1Pz7","next":null}',
} as const

export const READY_JSON: string = JSON.stringify(READY)
export const PING_JSON: string = JSON.stringify(PING)
export const REQUEST_JSON: string = JSON.stringify(REQUEST)
export const RESPONSE_JSON: string = JSON.stringify(RESPONSE)

/** The same as our JSON codec takes them. */
export const JSON_REQUEST: JsonRequest = {
  type: 'request',
  id: REQUEST.id,
  method: REQUEST.method,
  path: REQUEST.path,
  headers: Object.entries(REQUEST.headers),
  body: { text: REQUEST.body, isBase64: false },
}
export const JSON_ANSWER: JsonAnswer = {
  status: RESPONSE.status,
  headers: Object.entries(RESPONSE.headers),
  body: { text: RESPONSE.body, isBase64: false },
}

/** The same request and answer as they travel on the streams wire: bytes of HTTP/1.1. */
export const REQUEST_BYTES: Uint8Array = httpBytes(
  `${REQUEST.method} ${REQUEST.path} HTTP/1.1`,
  REQUEST.headers,
  REQUEST.body,
)
export const RESPONSE_BYTES: Uint8Array = httpBytes('HTTP/1.1 200 OK', RESPONSE.headers, RESPONSE.body)

function httpBytes(first: string, headers: Readonly<Record<string, string>>, body: string): Uint8Array {
  const lines = [first, ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`)]
  return new TextEncoder().encode(`${lines.join('\r\n')}\r\ncontent-length: ${body.length}\r\n\r\n${body}`)
}

/** One frame with its payload, the way a session appends it to its write buffer. Returns where the next one starts. */
export function writeFrame(
  into: Uint8Array,
  at: number,
  type: number,
  stream: number,
  payload: Uint8Array,
): number {
  writeFrameHeader(into, at, type, stream, payload.length)
  into.set(payload, at + FRAME_HEADER_BYTES)
  return at + FRAME_HEADER_BYTES + payload.length
}
