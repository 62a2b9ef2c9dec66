// Answers of origins that nobody vouches for, each with how it is framed here, and why.
//
// `body`: what the visitor gets, of what kind the framing is, and what is left behind it.

export interface AnswerVector {
  readonly name: string
  readonly input: string
  /** Method of the request. Default GET. */
  readonly method?: string
  readonly verdict: Verdict
  /** What a tolerant reader makes of it. Default: the same. */
  readonly loosely?: Verdict
  /** Why a tolerant reader refuses it. */
  readonly fault?: string
  readonly why: string
}

type Verdict = 'ORIGIN_INVALID' | 'BODY' | { readonly kind: string; readonly body?: string; readonly rest?: string }

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

  { name: 'both', input: ok('Content-Length: 5\r\nTransfer-Encoding: chunked', '0\r\n\r\n'), verdict: 'ORIGIN_INVALID', loosely: { kind: 'chunked' }, why: 'the visitor may believe the other one' },
  { name: 'two lengths', input: ok('Content-Length: 5\r\nContent-Length: 6', 'hello'), verdict: 'ORIGIN_INVALID', fault: 'it has two lengths: 5 and 6', why: 'splits answers' },
  { name: 'two equal lengths', input: ok('Content-Length: 5\r\nContent-Length: 5', 'hello'), verdict: 'ORIGIN_INVALID', loosely: { kind: 'length', body: 'hello' }, why: 'nobody honest sends it' },
  { name: 'listed lengths', input: ok('Content-Length: 5, 5', 'hello'), verdict: 'ORIGIN_INVALID', loosely: { kind: 'length', body: 'hello' }, why: 'some read 55' },
  { name: 'signed length', input: ok('Content-Length: +5', 'hello'), verdict: 'ORIGIN_INVALID', fault: 'its Content-Length is not a number of bytes', why: 'digits only' },
  { name: 'length and HEAD', input: ok('Content-Length: x'), method: 'HEAD', verdict: 'ORIGIN_INVALID', why: 'passed on to whoever reads it' },
  { name: 'gzip, chunked', input: ok('Transfer-Encoding: gzip, chunked', '0\r\n\r\n'), verdict: 'ORIGIN_INVALID', fault: 'its Transfer-Encoding is not just "chunked"', why: 'nobody asked for it' },
  { name: 'unknown coding', input: ok('Transfer-Encoding: identity', 'hello'), verdict: 'ORIGIN_INVALID', why: 'RFC 9112 6.1' },
  { name: 'chunked in HTTP/1.0', input: 'HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n', verdict: 'ORIGIN_INVALID', loosely: { kind: 'chunked' }, why: 'RFC 9112 6.1: faulty framing' },
  { name: 'coding with an underscore', input: ok('Transfer_Encoding: chunked'), verdict: 'ORIGIN_INVALID', loosely: { kind: 'close' }, why: 'read as - by some' },
  { name: 'NUL in a value', input: ok('X: \x00'), verdict: 'ORIGIN_INVALID', fault: 'line 2 of its head has the control character 0x00', why: 'control character' },
  { name: 'bare LF', input: ok('X: y\nSet-Cookie: z'), verdict: 'ORIGIN_INVALID', loosely: { kind: 'close' }, why: 'splits answers' },
  { name: 'bare LF everywhere', input: 'HTTP/1.1 200 OK\nX: y\n\nhello', verdict: 'ORIGIN_INVALID', loosely: { kind: 'close', body: 'hello' }, why: 'CRLF only' },
  { name: 'bare CR', input: ok('X: y\rSet-Cookie: z'), verdict: 'ORIGIN_INVALID', fault: 'line 2 of its head has a CR without LF', why: 'splits answers' },
  { name: 'obs-fold', input: ok('X: y\r\n z'), verdict: 'ORIGIN_INVALID', loosely: { kind: 'close' }, why: 'RFC 9112 5.2' },
  { name: 'space before the colon', input: ok('Content-Length : 5', 'hello'), verdict: 'ORIGIN_INVALID', loosely: { kind: 'length', body: 'hello' }, why: 'RFC 9112 5.1' },
  { name: 'Connection nominates Content-Length', input: ok('Connection: content-length\r\nContent-Length: 5', 'hello'), verdict: 'ORIGIN_INVALID', loosely: { kind: 'length', body: 'hello' }, why: 'dropping it would free the body' },
  { name: 'HTTP/2', input: 'HTTP/2 200 OK\r\n\r\n', verdict: 'ORIGIN_INVALID', fault: 'its first line is not HTTP/1.1 and a status of three digits', why: 'not by this framing' },
  { name: 'HTTP/1.2', input: 'HTTP/1.2 200 OK\r\n\r\n', verdict: 'ORIGIN_INVALID', loosely: { kind: 'close' }, why: 'does not exist' },
  { name: 'two digits of status', input: 'HTTP/1.1 20 OK\r\n\r\n', verdict: 'ORIGIN_INVALID', why: 'three digits' },
  { name: 'four digits of status', input: 'HTTP/1.1 2000 OK\r\n\r\n', verdict: 'ORIGIN_INVALID', why: 'three digits' },
  { name: 'status 099', input: 'HTTP/1.1 099 OK\r\n\r\n', verdict: 'ORIGIN_INVALID', why: 'no class' },
  { name: 'empty line in front', input: `\r\n${ok('Content-Length: 0')}`, verdict: 'ORIGIN_INVALID', fault: 'its first line is not HTTP/1.1 and a status of three digits', why: 'bytes behind the answer before are a split' },
  { name: 'no HTTP', input: 'SSH-2.0-OpenSSH_9.9\r\n', verdict: 'ORIGIN_INVALID', fault: 'its first line is not HTTP/1.1 and a status of three digits', why: 'the wrong port' },
  { name: 'TLS alert', input: '\x15\x03\x01\x00\x02\x02\x16', verdict: 'ORIGIN_INVALID', why: 'an https app behind an http URL' },
  { name: 'NUL in the reason', input: 'HTTP/1.1 200 O\x00K\r\n\r\n', verdict: 'ORIGIN_INVALID', why: 'control character' },
  { name: '101 without Upgrade', input: 'HTTP/1.1 101 Switching Protocols\r\n\r\n', verdict: 'ORIGIN_INVALID', fault: 'it is a 101 without "Connection: Upgrade", or without Upgrade', why: 'RFC 9110 7.8' },
  { name: '101 without Connection', input: 'HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n', verdict: 'ORIGIN_INVALID', why: 'RFC 9110 7.8' },
  { name: 'broken chunk', input: ok('Transfer-Encoding: chunked', 'hello'), verdict: 'BODY', fault: 'a chunk of its body has no size in hexadecimal digits', why: 'no size' },
  { name: 'head too large', input: ok(`X: ${'y'.repeat(600)}`), verdict: 'ORIGIN_INVALID', fault: 'its head is longer than 600 bytes (max-head)', why: 'above 600 bytes' },
  { name: 'head without end', input: `HTTP/1.1 200 OK\r\nX: ${'y'.repeat(900)}`, verdict: 'ORIGIN_INVALID', fault: 'its head is longer than 600 bytes (max-head)', why: 'decided before the line ends' },
  { name: 'too many headers', input: ok('X: y\r\n'.repeat(9).trimEnd()), verdict: 'ORIGIN_INVALID', fault: 'its head has more than 8 lines (max-header-count)', why: 'above 8' },
  { name: 'a frame of HTTP/2', input: '\0\0\x12\x04\0\0\0\0\0', verdict: 'ORIGIN_INVALID', fault: 'it begins with a frame of HTTP/2 (for such an app: --protocol h2c)', why: 'the app wants another protocol' },
  { name: 'ICY', input: 'ICY 200 OK\r\n\r\n', verdict: 'ORIGIN_INVALID', fault: 'its first line is not HTTP/1.1 and a status of three digits', why: 'SHOUTcast' },
  { name: 'no colon', input: ok('X: y\r\nSet-Cookie'), verdict: 'ORIGIN_INVALID', fault: 'line 3 of its head has no colon', why: 'no field' },
  { name: 'no name', input: ok(': y'), verdict: 'ORIGIN_INVALID', fault: 'line 2 of its head has no name', why: 'no field' },
  { name: 'a blank in the name', input: ok('Set Cookie: y'), verdict: 'ORIGIN_INVALID', fault: 'the name in line 2 of its head has a character that no name has', why: 'no token' },
  { name: 'a fold behind the status line', input: ok(' X: y'), verdict: 'ORIGIN_INVALID', fault: 'the first line behind its status line begins with a blank', why: 'RFC 9112 2.2' },
  { name: 'a folded length', input: ok('Content-Length:\r\n 5', 'hello'), verdict: 'ORIGIN_INVALID', loosely: { kind: 'length', body: 'hello' }, why: 'RFC 9112 5.2' },
  { name: 'lengths that differ by a fold', input: ok('Content-Length: 5\r\n 6', 'hello'), verdict: 'ORIGIN_INVALID', fault: 'its Content-Length is not a number of bytes', why: 'two numbers' },
  { name: 'three lengths, one of them another', input: ok('Content-Length: 5, 5\r\nContent-Length: 6', 'hello'), verdict: 'ORIGIN_INVALID', fault: 'it has two lengths: 5 and 6', why: 'splits answers' },
  { name: 'a length and none', input: ok('Content-Length: 5\r\nContent-Length:', 'hello'), verdict: 'ORIGIN_INVALID', fault: 'it has two lengths: 5 and ', why: 'no number' },
  { name: 'two codings', input: ok('Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked', '0\r\n\r\n'), verdict: 'ORIGIN_INVALID', fault: 'it has Transfer-Encoding twice', why: 'chunks of chunks' },
  { name: 'chunked twice', input: ok('Transfer-Encoding: chunked, chunked', '0\r\n\r\n'), verdict: 'ORIGIN_INVALID', fault: 'its Transfer-Encoding is not just "chunked"', why: 'chunks of chunks' },
  { name: 'a folded coding', input: ok('Transfer-Encoding: gzip,\r\n chunked', '0\r\n\r\n'), verdict: 'ORIGIN_INVALID', fault: 'its Transfer-Encoding is not just "chunked"', why: 'not the last line alone' },
  { name: 'lengths that differ beside a coding', input: ok('Content-Length: 5\r\nTransfer-Encoding: chunked\r\nContent-Length: 6', '0\r\n\r\n'), verdict: 'ORIGIN_INVALID', loosely: { kind: 'chunked' }, why: 'RFC 9112 6.3: the coding wins' },
  { name: 'blanks behind a size', input: ok('Transfer-Encoding: chunked', '5  \r\nhello\r\n0 \t\r\n\r\nX'), verdict: 'BODY', loosely: { kind: 'chunked', body: 'hello', rest: 'X' }, why: 'some pad the size to four characters' },
  { name: 'blanks behind an extension', input: ok('Transfer-Encoding: chunked', '5;a="b c" \r\nhello\r\n0\r\n\r\n'), verdict: 'BODY', loosely: { kind: 'chunked', body: 'hello' }, why: 'the same' },
  { name: 'a blank in front of a size', input: ok('Transfer-Encoding: chunked', ' 5\r\nhello\r\n0\r\n\r\n'), verdict: 'BODY', fault: 'a chunk of its body has no size in hexadecimal digits', why: 'nobody sends it' },
  { name: 'a blank in a size', input: ok('Transfer-Encoding: chunked', '1 0\r\nhello\r\n0\r\n\r\n'), verdict: 'BODY', fault: 'the line with the size of a chunk is malformed', why: '1 or 16?' },
  { name: 'a chunk longer than its size', input: ok('Transfer-Encoding: chunked', '4\r\nhello\r\n0\r\n\r\n'), verdict: 'BODY', fault: 'a chunk of its body is longer than its size', why: 'splits answers' },
  { name: 'LF behind a size', input: ok('Transfer-Encoding: chunked', '5\nhello\r\n0\r\n\r\n'), verdict: 'BODY', loosely: { kind: 'chunked', body: 'hello' }, why: 'RFC 9112 2.2 is about lines of heads' },
  { name: 'a trailer that frames', input: ok('Transfer-Encoding: chunked', '0\r\nContent-Length: 1\r\n\r\nX'), verdict: 'BODY', loosely: { kind: 'chunked', rest: 'X' }, why: 'RFC 9110 6.5.1' },
  { name: 'LF everywhere in chunks', input: ok('Transfer-Encoding: chunked', '5\nhello\n0\nX-Sum: 1\n\nX'), verdict: 'BODY', loosely: { kind: 'chunked', body: 'hello', rest: 'X' }, why: 'nginx, Caddy, HAProxy and curl read it' },
  { name: 'LF that is data', input: ok('Transfer-Encoding: chunked', '1\n\n\n0\n\n'), verdict: 'BODY', loosely: { kind: 'chunked', body: '\n' }, why: 'counted, not searched' },
  { name: 'LF for a size', input: ok('Transfer-Encoding: chunked', '\nhello\r\n0\r\n\r\n'), verdict: 'BODY', fault: 'a chunk of its body has no size in hexadecimal digits', why: 'no digit' },
  { name: 'CR alone behind a size', input: ok('Transfer-Encoding: chunked', '5\rhello\r\n0\r\n\r\n'), verdict: 'BODY', fault: 'the line with the size of a chunk is malformed', why: 'ends the line for some' },
  { name: 'CR alone in an extension', input: ok('Transfer-Encoding: chunked', '5;a\rb\r\nhello\r\n0\r\n\r\n'), verdict: 'BODY', fault: 'the line with the size of a chunk is malformed', why: 'ends the line for some' },
  { name: 'an empty extension', input: ok('Transfer-Encoding: chunked', '5;\r\nhello\r\n0;\r\n\r\n'), verdict: 'BODY', loosely: { kind: 'chunked', body: 'hello' }, why: 'no name' },
  { name: 'an extension of 300 bytes', input: ok('Transfer-Encoding: chunked', `5;a=${'b'.repeat(300)}\r\nhello\r\n0\r\n\r\n`), verdict: 'BODY', loosely: { kind: 'chunked', body: 'hello' }, why: 'above 256' },
  { name: 'an extension of 5000 bytes', input: ok('Transfer-Encoding: chunked', `5;a=${'b'.repeat(5000)}\r\nhello\r\n0\r\n\r\n`), verdict: 'BODY', fault: 'the size of a chunk has more than 4096 bytes behind it', why: 'above 4096, as in Caddy' },
  { name: 'an extension beyond ASCII', input: ok('Transfer-Encoding: chunked', '5;a=\xc3\xa9;\x00\r\nhello\r\n0\r\n\r\n'), verdict: 'BODY', loosely: { kind: 'chunked', body: 'hello' }, why: 'no token, and no one reads it' },
  { name: 'a quote that does not end', input: ok('Transfer-Encoding: chunked', '5;a="\r\nhello\r\n0\r\n\r\n'), verdict: 'BODY', loosely: { kind: 'chunked', body: 'hello' }, why: 'the line ends where it ends' },
  { name: 'a trailer without a colon', input: ok('Transfer-Encoding: chunked', '0\r\nX: y\r\nnonsense\r\n\r\n'), verdict: 'BODY', fault: 'line 2 of its trailers has no colon', why: 'no field' },
  { name: 'a folded trailer', input: ok('Transfer-Encoding: chunked', '0\r\nX : y\r\n z\r\n\r\nX'), verdict: 'BODY', loosely: { kind: 'chunked', rest: 'X' }, why: 'RFC 9112 5.2' },
  { name: 'trailers that begin with a fold', input: ok('Transfer-Encoding: chunked', '0\r\n X: y\r\n\r\n'), verdict: 'BODY', fault: 'its trailers begin with a blank', why: 'a fold of what?' },
  { name: 'trailers without end', input: ok('Transfer-Encoding: chunked', `0\r\nX: ${'y'.repeat(9000)}`), verdict: 'BODY', fault: 'its trailers are longer than 8192 bytes', why: 'decided before the line ends' },
  { name: 'too many trailers', input: ok('Transfer-Encoding: chunked', `0\r\n${'X: y\r\n'.repeat(65)}\r\n`), verdict: 'BODY', fault: 'its trailers have more than 64 lines, or 8192 bytes', why: 'above 64' },
  { name: 'HTTP/2.0', input: 'HTTP/2.0 200 OK\r\nContent-Length: 5\r\n\r\nhello', verdict: 'ORIGIN_INVALID', loosely: { kind: 'length', body: 'hello' }, why: 'an app that copies what it got' },
  { name: 'two blanks in front of the status', input: 'HTTP/1.1  200 OK\r\nContent-Length: 5\r\n\r\nhello', verdict: 'ORIGIN_INVALID', loosely: { kind: 'length', body: 'hello' }, why: 'one blank' },
  { name: 'a tab in front of the status', input: 'HTTP/1.1\t200 OK\r\nContent-Length: 5\r\n\r\nhello', verdict: 'ORIGIN_INVALID', fault: 'its first line is not HTTP/1.1 and a status of three digits', why: 'one blank' },
  { name: 'HTTP/1.10', input: 'HTTP/1.10 200 OK\r\n\r\n', verdict: 'ORIGIN_INVALID', fault: 'its first line is not HTTP/1.1 and a status of three digits', why: 'one digit' },
  { name: 'two Hosts', input: ok('Host: a\r\nHost: b\r\nContent-Length: 5', 'hello'), verdict: 'ORIGIN_INVALID', loosely: { kind: 'length', body: 'hello' }, why: 'routes requests only' },
  { name: 'Connection nominates Transfer-Encoding among others', input: ok('Connection: X, transfer-encoding, host\r\nX: y\r\nTransfer-Encoding: chunked', '1\r\na\r\n0\r\n\r\n'), verdict: 'ORIGIN_INVALID', loosely: { kind: 'chunked', body: 'a' }, why: 'dropping it would free the body' },
  { name: 'Connection nominates 33 lines', input: ok(`Connection: ${Array.from({ length: 33 }, (_, index) => `x${index}`).join(',')}`), verdict: 'ORIGIN_INVALID', fault: 'its Connection names more than 32 lines', why: 'each is compared with every line' },
  { name: 'Content_Length beside the real one', input: ok('Content_Length: 7\r\nContent-Length: 5', 'hello'), verdict: 'ORIGIN_INVALID', loosely: { kind: 'length', body: 'hello' }, why: 'read as - by some' },
  { name: '999', input: 'HTTP/1.1 999 Odd\r\nContent-Length: 5\r\n\r\nhello', verdict: { kind: 'length', body: 'hello' }, why: 'no class, and read in one way' },
  { name: 'LF and a switch', input: 'HTTP/1.1 101 Switching Protocols\nConnection: Upgrade\nUpgrade: websocket\n\n\x81', verdict: 'ORIGIN_INVALID', loosely: { kind: 'none', rest: '\x81' }, why: 'bytes of the other protocol follow' },
  { name: 'LF in front of HTTP/1.0', input: 'HTTP/1.0 200 OK\n\nhello', verdict: 'ORIGIN_INVALID', loosely: { kind: 'close', body: 'hello' }, why: 'old CGI programs and devices' },
]
