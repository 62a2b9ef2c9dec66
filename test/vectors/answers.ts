// Answers of origins that nobody vouches for, each with how it is framed here, and why.
//
// `body`: what the visitor gets, of what kind the framing is, and what is left behind it.

export interface AnswerVector {
  readonly name: string
  readonly input: string
  /** Method of the request. Default GET. */
  readonly method?: string
  readonly verdict: 'ORIGIN_INVALID' | 'BODY' | { readonly kind: string; readonly body?: string; readonly rest?: string }
  readonly why: string
}

const ok = (lines: string, body = ''): string => `HTTP/1.1 200 OK\r\n${lines}\r\n\r\n${body}`

export const ANSWERS: readonly AnswerVector[] = [
  { name: 'length', input: ok('Content-Length: 5', 'helloX'), verdict: { kind: 'length', body: 'hello', rest: 'X' }, why: 'RFC 9112 6.3' },
  { name: 'length zero', input: ok('Content-Length: 0', 'X'), verdict: { kind: 'none', rest: 'X' }, why: 'nothing to wait for' },
  { name: 'chunked', input: ok('Transfer-Encoding: chunked', '1\r\na\r\n0\r\n\r\nX'), verdict: { kind: 'chunked', body: 'a', rest: 'X' }, why: 'RFC 9112 6.3' },
  { name: 'neither', input: ok('X: y', 'hello'), verdict: { kind: 'close', body: 'hello' }, why: 'RFC 9112 6.3: until the connection ends' },
  { name: 'HTTP/1.0', input: 'HTTP/1.0 200 OK\r\n\r\nhello', verdict: { kind: 'close', body: 'hello' }, why: 'until the connection ends' },
  { name: 'HEAD with a length', input: ok('Content-Length: 5', 'X'), method: 'HEAD', verdict: { kind: 'none', rest: 'X' }, why: 'RFC 9112 6.3: never a body' },
  { name: 'HEAD with chunks', input: ok('Transfer-Encoding: chunked', 'X'), method: 'HEAD', verdict: { kind: 'none', rest: 'X' }, why: 'RFC 9112 6.3' },
  { name: '204 with a length', input: 'HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\nX', verdict: { kind: 'none', rest: 'X' }, why: 'RFC 9112 6.3' },
  { name: '304 with a length', input: 'HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\nX', verdict: { kind: 'none', rest: 'X' }, why: 'RFC 9112 6.3' },
  { name: '100', input: 'HTTP/1.1 100 Continue\r\n\r\nHTTP', verdict: { kind: 'none', rest: 'HTTP' }, why: 'an interim answer has no body' },
  { name: '103', input: 'HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP', verdict: { kind: 'none', rest: 'HTTP' }, why: 'an interim answer has no body' },
  { name: '101', input: 'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n\x81', verdict: { kind: 'none', rest: '\x81' }, why: 'bytes of the other protocol follow' },
  { name: 'no reason', input: 'HTTP/1.1 200 \r\nContent-Length: 0\r\n\r\n', verdict: { kind: 'none' }, why: 'RFC 9112 4: optional' },
  { name: 'no space behind the status', input: 'HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n', verdict: { kind: 'none' }, why: 'seen in the wild, read in one way' },
  { name: 'reason beyond ASCII', input: 'HTTP/1.1 200 \xe9\r\nContent-Length: 0\r\n\r\n', verdict: { kind: 'none' }, why: 'RFC 9112 4: obs-text' },
  { name: 'odd Connection', input: ok('Connection: close; x=y\r\nContent-Length: 0'), verdict: { kind: 'none' }, why: 'the line is dropped anyway' },

  { name: 'both', input: ok('Content-Length: 5\r\nTransfer-Encoding: chunked', '0\r\n\r\n'), verdict: 'ORIGIN_INVALID', why: 'the visitor may believe the other one' },
  { name: 'two lengths', input: ok('Content-Length: 5\r\nContent-Length: 6', 'hello'), verdict: 'ORIGIN_INVALID', why: 'splits answers' },
  { name: 'two equal lengths', input: ok('Content-Length: 5\r\nContent-Length: 5', 'hello'), verdict: 'ORIGIN_INVALID', why: 'nobody honest sends it' },
  { name: 'listed lengths', input: ok('Content-Length: 5, 5', 'hello'), verdict: 'ORIGIN_INVALID', why: 'some read 55' },
  { name: 'signed length', input: ok('Content-Length: +5', 'hello'), verdict: 'ORIGIN_INVALID', why: 'digits only' },
  { name: 'length and HEAD', input: ok('Content-Length: x'), method: 'HEAD', verdict: 'ORIGIN_INVALID', why: 'passed on to whoever reads it' },
  { name: 'gzip, chunked', input: ok('Transfer-Encoding: gzip, chunked', '0\r\n\r\n'), verdict: 'ORIGIN_INVALID', why: 'nobody asked for it' },
  { name: 'unknown coding', input: ok('Transfer-Encoding: identity', 'hello'), verdict: 'ORIGIN_INVALID', why: 'RFC 9112 6.1' },
  { name: 'chunked in HTTP/1.0', input: 'HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n', verdict: 'ORIGIN_INVALID', why: 'RFC 9112 6.1: faulty framing' },
  { name: 'coding with an underscore', input: ok('Transfer_Encoding: chunked'), verdict: 'ORIGIN_INVALID', why: 'read as - by some' },
  { name: 'NUL in a value', input: ok('X: \x00'), verdict: 'ORIGIN_INVALID', why: 'control character' },
  { name: 'bare LF', input: ok('X: y\nSet-Cookie: z'), verdict: 'ORIGIN_INVALID', why: 'splits answers' },
  { name: 'bare LF everywhere', input: 'HTTP/1.1 200 OK\nX: y\n\nhello', verdict: 'ORIGIN_INVALID', why: 'CRLF only' },
  { name: 'bare CR', input: ok('X: y\rSet-Cookie: z'), verdict: 'ORIGIN_INVALID', why: 'splits answers' },
  { name: 'obs-fold', input: ok('X: y\r\n z'), verdict: 'ORIGIN_INVALID', why: 'RFC 9112 5.2' },
  { name: 'space before the colon', input: ok('Content-Length : 5', 'hello'), verdict: 'ORIGIN_INVALID', why: 'RFC 9112 5.1' },
  { name: 'Connection nominates Content-Length', input: ok('Connection: content-length\r\nContent-Length: 5', 'hello'), verdict: 'ORIGIN_INVALID', why: 'dropping it would free the body' },
  { name: 'HTTP/2', input: 'HTTP/2 200 OK\r\n\r\n', verdict: 'ORIGIN_INVALID', why: 'not by this framing' },
  { name: 'HTTP/1.2', input: 'HTTP/1.2 200 OK\r\n\r\n', verdict: 'ORIGIN_INVALID', why: 'does not exist' },
  { name: 'two digits of status', input: 'HTTP/1.1 20 OK\r\n\r\n', verdict: 'ORIGIN_INVALID', why: 'three digits' },
  { name: 'four digits of status', input: 'HTTP/1.1 2000 OK\r\n\r\n', verdict: 'ORIGIN_INVALID', why: 'three digits' },
  { name: 'status 099', input: 'HTTP/1.1 099 OK\r\n\r\n', verdict: 'ORIGIN_INVALID', why: 'no class' },
  { name: 'empty line in front', input: `\r\n${ok('Content-Length: 0')}`, verdict: 'ORIGIN_INVALID', why: 'bytes behind the answer before are a split' },
  { name: 'no HTTP', input: 'SSH-2.0-OpenSSH_9.9\r\n', verdict: 'ORIGIN_INVALID', why: 'the wrong port' },
  { name: 'TLS alert', input: '\x15\x03\x01\x00\x02\x02\x16', verdict: 'ORIGIN_INVALID', why: 'an https app behind an http URL' },
  { name: 'NUL in the reason', input: 'HTTP/1.1 200 O\x00K\r\n\r\n', verdict: 'ORIGIN_INVALID', why: 'control character' },
  { name: '101 without Upgrade', input: 'HTTP/1.1 101 Switching Protocols\r\n\r\n', verdict: 'ORIGIN_INVALID', why: 'RFC 9110 7.8' },
  { name: '101 without Connection', input: 'HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n', verdict: 'ORIGIN_INVALID', why: 'RFC 9110 7.8' },
  { name: 'broken chunk', input: ok('Transfer-Encoding: chunked', 'hello'), verdict: 'BODY', why: 'no size' },
  { name: 'head too large', input: ok(`X: ${'y'.repeat(600)}`), verdict: 'ORIGIN_INVALID', why: 'above 600 bytes' },
  { name: 'head without end', input: `HTTP/1.1 200 OK\r\nX: ${'y'.repeat(900)}`, verdict: 'ORIGIN_INVALID', why: 'decided before the line ends' },
  { name: 'too many headers', input: ok('X: y\r\n'.repeat(9).trimEnd()), verdict: 'ORIGIN_INVALID', why: 'above 8' },
]
