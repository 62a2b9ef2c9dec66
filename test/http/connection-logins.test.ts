// Which credentials and challenges count for the connection, in whatever list they stand.

import { expect, test } from 'bun:test'
import { ascii } from '../../src/http/characters.ts'
import {
  LOGS_CONNECTION_IN,
  logsConnectionIn,
  OTHER_SCHEME,
  schemesIn,
} from '../../src/http/connection-logins.ts'
import { parseRequestHead, RequestHead } from '../../src/http/head.ts'

const BOTH = LOGS_CONNECTION_IN | OTHER_SCHEME

test.each([
  ['NTLM', LOGS_CONNECTION_IN],
  ['ntlm TlRMTVNTUAAB==', LOGS_CONNECTION_IN],
  ['Negotiate', LOGS_CONNECTION_IN],
  ['Negotiate, NTLM', LOGS_CONNECTION_IN],
  ['\tNegotiate\toYG2, ,NTLM', LOGS_CONNECTION_IN],
  ['Kerberos YIIG', LOGS_CONNECTION_IN],
  ['Basic realm="a, NTLM', BOTH],
  ['Basic realm="a\\", Negotiate', BOTH],
  ['Basic realm="a"', OTHER_SCHEME],
  ['Basic YTpi', OTHER_SCHEME],
  ['Bearer NTLM', OTHER_SCHEME],
  ['Bearer ntlm.negotiate', OTHER_SCHEME],
  ['Bearer realm="a, NTLM, b"', OTHER_SCHEME],
  ['Bearer realm="a \\", NTLM"', OTHER_SCHEME],
  ['Digest realm="x", qop="auth", negotiate=1', OTHER_SCHEME],
  ['NTLMv2 abc', OTHER_SCHEME],
  ['Basic realm="a", NTLM', BOTH],
  ['NTLM, Basic realm="a"', BOTH],
  ['', 0],
  [', ,', 0],
  ['"NTLM', 0],
])('%p', (value, schemes) => {
  const bytes = ascii(`x${value}y`)
  expect(schemesIn(bytes, 1, bytes.length - 1)).toBe(schemes)
  expect(logsConnectionIn(['Authorization', value])).toBe((schemes & LOGS_CONNECTION_IN) !== 0)
  expect(logsConnectionIn(['Proxy-Authorization', value])).toBe(false)
})

test.each([
  ['Authorization: Basic YTpi', false],
  ['Proxy-Authorization: NTLM abc', false],
  ['authorization: negotiate abc', true],
  ['Authorization: Basic YTpi\r\nAuthorization: NTLM abc', true],
])('the head of a request with %p', (lines, isSeen) => {
  const bytes = ascii(`GET / HTTP/1.1\r\nHost: a\r\n${lines}\r\n\r\n`)
  const head = new RequestHead()
  const limits = { maxHeadBytes: 1_000, maxHeaderCount: 10, maxTargetBytes: 100 }
  expect(parseRequestHead(head, bytes, 0, bytes.length, limits)).toBe(bytes.length)
  expect(head.fields.logsConnectionIn).toBe(isSeen)
  expect(head.clone().fields.logsConnectionIn).toBe(isSeen)
  // Another request on the same connection.
  const next = ascii('GET / HTTP/1.1\r\nHost: a\r\n\r\n')
  expect(parseRequestHead(head, next, 0, next.length, limits)).toBe(next.length)
  expect(head.fields.logsConnectionIn).toBe(false)
})
