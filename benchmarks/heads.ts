// What the two heads of an exchange cost: parsing and forwarding, small (wrk) and as a browser sends it; one after the other,
// and behind a pause in which others used the processor's caches, as at a thousand requests a second.

import { bench, do_not_optimize, run } from 'mitata'
import { BodyFramer } from '../src/http/body.ts'
import { forwardRequestHead, forwardResponseHead, type Hop, maxForwardedBytes } from '../src/http/forward.ts'
import { parseRequestHead, parseResponseHead, RequestHead, ResponseHead } from '../src/http/head.ts'
import { median } from './measure/samples.ts'

const limits = { maxHeadBytes: 65_536, maxHeaderCount: 200, maxTargetBytes: 16_384 }
const hop: Hop = { address: '192.0.2.7', proto: 'https', trusted: false, hostHeader: '' }
const into = new Uint8Array(maxForwardedBytes(limits.maxHeadBytes))
const bytesOf = (...lines: string[]): Uint8Array => Buffer.from(`${lines.join('\r\n')}\r\n\r\n`)

const REQUESTS = {
  wrk: bytesOf('GET / HTTP/1.1', 'Host: app.localhost:8080'),
  browser: bytesOf(
    'GET /assets/app.js?v=12 HTTP/1.1',
    'Host: my-app.tunnel.example',
    'Connection: keep-alive',
    'sec-ch-ua-platform: "Linux"',
    'User-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/130.0.0.0 Safari/537.36',
    'sec-ch-ua: "Chromium";v="130", "Google Chrome";v="130", "Not?A_Brand";v="99"',
    'sec-ch-ua-mobile: ?0',
    'Accept: */*',
    'Sec-Fetch-Site: same-origin',
    'Sec-Fetch-Mode: no-cors',
    'Sec-Fetch-Dest: script',
    'Referer: https://my-app.tunnel.example/',
    'Accept-Encoding: gzip, deflate, br, zstd',
    'Accept-Language: en-US,en;q=0.9',
    'Cookie: session=0123456789abcdef0123456789abcdef',
  ),
}
const ANSWERS = {
  bun: bytesOf(
    'HTTP/1.1 200 OK',
    'Content-Type: text/plain;charset=utf-8',
    'Date: Thu, 21 Nov 2024 10:00:00 GMT',
    'Content-Length: 20',
  ),
  node: bytesOf(
    'HTTP/1.1 200 OK',
    'X-Powered-By: Express',
    'Content-Type: application/json; charset=utf-8',
    'ETag: W/"1b-yFl8mZVkX4Pb7ZsX2pYxTQp1Ibs"',
    'Date: Thu, 21 Nov 2024 10:00:00 GMT',
    'Connection: keep-alive',
    'Keep-Alive: timeout=5',
    'Transfer-Encoding: chunked',
  ),
}

for (const [name, bytes] of Object.entries(REQUESTS)) {
  const head = new RequestHead()
  bench(`parse ${name} request, ${bytes.length} B`, () =>
    do_not_optimize(parseRequestHead(head, bytes, 0, bytes.length, limits)),
  )
  bench(`forward ${name} request`, () => do_not_optimize(forwardRequestHead(head, hop, into, 0)))
}

for (const [name, bytes] of Object.entries(ANSWERS)) {
  const head = new ResponseHead()
  const options = { close: false, keepAlive10: false }
  bench(`parse ${name} answer, ${bytes.length} B`, () =>
    do_not_optimize(parseResponseHead(head, bytes, 0, bytes.length, limits, 'GET')),
  )
  bench(`forward ${name} answer`, () => do_not_optimize(forwardResponseHead(head, options, into, 0)))
}

const framer = new BodyFramer()
const chunk = Buffer.from(`4000\r\n${'x'.repeat(0x4000)}\r\n`)
const small = Buffer.from('5\r\nhello\r\n'.repeat(1000))
for (const [name, bytes] of [
  ['one chunk of 16 KB', chunk],
  ['a thousand chunks of 5 B', small],
] as const) {
  bench(`frame ${name}`, () => {
    framer.begin('chunked', 0)
    do_not_optimize(framer.feed(bytes, 0, bytes.length))
  })
}

await run()

// Stands for what nginx, a load generator and the kernel touch between two requests: more than a second-level cache holds.
const others = new Uint8Array(16 * 1024 * 1024)
const COLD_ROUNDS = 500

console.log(`\ncold, median of ${COLD_ROUNDS}`)
for (const [name, bytes] of Object.entries(REQUESTS)) {
  const head = new RequestHead()
  coldTime(`parse ${name} request`, () => parseRequestHead(head, bytes, 0, bytes.length, limits))
  coldTime(`forward ${name} request`, () => forwardRequestHead(head, hop, into, 0))
}

function coldTime(name: string, work: () => number): void {
  const times = Array.from({ length: COLD_ROUNDS }, () => {
    for (let at = 0; at < others.length; at += 64) others[at]!++
    const began = Bun.nanoseconds()
    do_not_optimize(work())
    return Bun.nanoseconds() - began
  })
  console.log(`${name.padEnd(32)}${(median(times) / 1000).toFixed(2)} µs`)
}
