// The WebSocket handshake of a client: the example of the RFC, and every answer that must not pass.

import { describe, expect, test } from 'bun:test'
import { createHash } from 'node:crypto'
import {
  acceptKey,
  encodeUpgradeRequest,
  endOfHead,
  parseAnswerHead,
  pickedProtocol,
} from '../../src/wire/handshake.ts'
import { bytesOf } from '../support/websocket.ts'

const sha1 = (text: string) => createHash('sha1').update(text).digest('base64')
const KEY = 'dGhlIHNhbXBsZSBub25jZQ=='
const ACCEPT = 's3pPLMBiTxaQ9kYGzzhZRbK+xOo='

test('the key of RFC 6455 section 1.3 gets the answer shown', () => expect(acceptKey(KEY, sha1)).toBe(ACCEPT))

test('a request has what section 4.1 asks for', () => {
  const bytes = encodeUpgradeRequest({
    host: 'tunnel.test:8080',
    target: '/?subdomain=app',
    key: KEY,
    protocols: ['a', 'b'],
    headers: { Authorization: 'Bearer t' },
  })
  expect(Buffer.from(bytes).toString()).toBe(
    `GET /?subdomain=app HTTP/1.1\r\nHost: tunnel.test:8080\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: ${KEY}\r\nSec-WebSocket-Protocol: a, b\r\nAuthorization: Bearer t\r\n\r\n`,
  )
})

test('a head ends behind its blank line, and only there', () => {
  expect(endOfHead(bytesOf('HTTP/1.1 101 x\r\nA: b\r\n\r\nrest'))).toBe(24)
  for (const text of ['', '\n', '\r\n', 'HTTP/1.1 101 x\r\nA: b\r\n', 'a\n\nb', 'a\r\n\nb']) {
    expect(endOfHead(bytesOf(text))).toBe(-1)
  }
})

test('a head is read with names in lower case and repeats joined', () => {
  const head = parseAnswerHead(bytesOf('HTTP/1.1 200 All right\r\nA-b:  c \r\na-B: d\r\nEmpty:\r\n\r\n'))
  expect(head?.status).toBe(200)
  expect([...(head?.headers ?? [])]).toEqual([
    ['a-b', 'c, d'],
    ['empty', ''],
  ])
  expect(parseAnswerHead(bytesOf('HTTP/1.0 502\r\n\r\n'))?.status).toBe(502)
})

describe('a head that is not HTTP is refused', () => {
  for (const text of [
    'HTTP/2 101 x\r\n\r\n',
    'http/1.1 101 x\r\n\r\n',
    'HTTP/1.1 1010 x\r\n\r\n',
    'HTTP/1.1 010 x\r\n\r\n',
    'HTTP/1.1 101 x\r\nA : b\r\n\r\n',
    'HTTP/1.1 101 x\r\n A: b\r\n\r\n',
    'HTTP/1.1 101 x\r\nA: b\n c\r\n\r\n',
    'HTTP/1.1 101 x\r\nA: \0\r\n\r\n',
    'HTTP/1.1 101 x\r\nA\r\n\r\n',
    'SSH-2.0-OpenSSH\r\n\r\n',
  ]) {
    test(JSON.stringify(text), () => expect(parseAnswerHead(bytesOf(text))).toBeUndefined())
  }
})

describe('a 101', () => {
  const good = { upgrade: 'websocket', connection: 'Upgrade', 'sec-websocket-accept': ACCEPT }
  const picked = (headers: Record<string, string>, status = 101) =>
    pickedProtocol({ status, headers: new Map(Object.entries({ ...good, ...headers })) }, ACCEPT, ['a', 'b'])

  test('with what was asked for passes, and names the subprotocol', () => {
    expect(picked({})).toBe('')
    expect(picked({ upgrade: 'WebSocket', connection: 'keep-alive, UPGRADE' })).toBe('')
    expect(picked({ 'sec-websocket-protocol': 'b' })).toBe('b')
  })

  for (const headers of [
    { upgrade: 'h2c' },
    { connection: 'close' },
    { 'sec-websocket-accept': ACCEPT.toLowerCase() },
    { 'sec-websocket-accept': `${ACCEPT}, ${ACCEPT}` },
    { 'sec-websocket-protocol': 'c' },
    { 'sec-websocket-protocol': 'a, b' },
    { 'sec-websocket-extensions': 'permessage-deflate' },
  ]) {
    test(`with ${JSON.stringify(headers)} does not`, () =>
      expect(picked(headers as unknown as Record<string, string>)).toBeUndefined()) // a union of one-key objects
  }

  test('is the only status that passes', () => expect(picked({}, 200)).toBeUndefined())
})
