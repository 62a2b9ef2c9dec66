// PROXY headers and other people's programs: what HAProxy writes we read, what we write HAProxy and nginx read.
// Skipped where they are not installed.

import { expect, test } from 'bun:test'
import { type ProxyHeader, ProxyHeaderReader } from '../../src/parts/proxy-protocol/header.ts'
import { encodeProxyV1, encodeProxyV2, type ProxiedRoute } from '../../src/wire/proxy-protocol.ts'
import { startHaproxy, startNginx } from '../support/haproxy.ts'
import { describeWith } from '../support/needs.ts'
import { Random } from '../support/random.ts'
import { RawOrigin, rawDial } from '../support/raw.ts'

const HAPROXY_DEFAULTS = `
defaults
  mode tcp
  timeout connect 5s
  timeout client 5s
  timeout server 5s
`
/** Answers with the addresses of the header. */
const HAPROXY_ECHO = `${HAPROXY_DEFAULTS}
frontend echo
  mode http
  bind 127.0.0.1:PORT accept-proxy
  http-request return status 200 content-type text/plain lf-string "%[src] %[src_port] %[dst] %[dst_port]"
`
const NGINX_ECHO = `
  server {
    listen 127.0.0.1:PORT proxy_protocol;
    return 200 "$proxy_protocol_addr $proxy_protocol_port $proxy_protocol_server_addr $proxy_protocol_server_port";
  }`

const REQUEST = 'GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n'

/** The answer to a request behind these bytes: its status and body, or nothing. */
async function answerBehind(port: number, header: Uint8Array): Promise<string> {
  const visitor = await rawDial(port)
  await visitor.send(Buffer.concat([header, Buffer.from(REQUEST)]))
  const answer = await visitor.end()
  visitor.socket.terminate()
  return answer === '' ? 'nothing' : `${answer.slice(9, 12)} ${answer.split('\r\n\r\n')[1]}`
}

const ROUTES: readonly ProxiedRoute[] = [
  ['203.0.113.7', '192.0.2.1'],
  ['255.255.255.255', '0.0.0.0'],
  ['2001:db8::7', '2001:db8:1:2:3:4:5:6'],
  ['::1', 'fe80::1'],
].map(([source = '', destination = '']) => ({
  transport: 'tcp',
  source: { address: source, port: 56_324 },
  destination: { address: destination, port: 443 },
}))
const words = ({ source, destination }: ProxiedRoute) =>
  `${source.address} ${source.port} ${destination.address} ${destination.port}`

/** The system writes the old `::1.2.3.4` within IPv6 where RFC 5952 wants `::102:304`. */
const respelled = (answer: string) =>
  answer.replace(/::\d+\.\d+\.\d+\.\d+/g, text => new URL(`http://[${text}]/`).hostname.slice(1, -1))

describeWith(['haproxy'], 'HAProxy', () => {
  const senders: readonly [string, Partial<ProxyHeader>][] = [
    ['send-proxy', { version: 1, isTls: false }],
    ['send-proxy-v2', { version: 2, isTls: false }],
    ['send-proxy-v2-ssl', { version: 2, isTls: false }],
    ['send-proxy-v2 proxy-v2-options crc32c,unique-id', { version: 2, isTls: false }],
  ]
  test.each(senders)('what %s writes is read', async (line, expected) => {
    using origin = new RawOrigin()
    await using haproxy = await startHaproxy(`${HAPROXY_DEFAULTS}
listen front
  bind 127.0.0.1:PORT
  unique-id-format %ci-%cp
  server app 127.0.0.1:${origin.port} ${line}
`)
    let visitorPort = 0
    const visitor = await Bun.connect({
      hostname: '127.0.0.1',
      port: haproxy.port,
      socket: {
        data() {},
        open(socket) {
          visitorPort = socket.localPort
          socket.write('hello')
        },
      },
    })
    const app = await origin.accept()
    await app.when(() => app.text.endsWith('hello'), 'what the visitor sent')
    visitor.terminate()
    const verdict = new ProxyHeaderReader().receive(app.bytes)
    if (verdict.kind !== 'header') throw new Error(verdict.kind)
    expect(verdict.header).toMatchObject(expected)
    expect(verdict.header.route).toEqual({
      transport: 'tcp',
      source: { address: '127.0.0.1', port: visitorPort },
      destination: { address: '127.0.0.1', port: haproxy.port },
    })
    expect(Buffer.from(verdict.rest).toString()).toBe('hello')
  })

  test('reads what is written', async () => {
    await using haproxy = await startHaproxy(HAPROXY_ECHO)
    for (const route of ROUTES) {
      expect(await answerBehind(haproxy.port, encodeProxyV1(route))).toBe(`200 ${words(route)}`)
      expect(await answerBehind(haproxy.port, encodeProxyV2(route))).toBe(`200 ${words(route)}`)
    }
    for (const nobody of [encodeProxyV1(undefined), encodeProxyV2(undefined)]) {
      expect(await answerBehind(haproxy.port, nobody)).toStartWith('200 127.0.0.1 ')
    }
  })

  test('takes no mutated header otherwise than we do; we refuse more of them', async () => {
    await using haproxy = await startHaproxy(HAPROXY_ECHO)
    const random = new Random(1)
    let same = 0
    let stricter = 0
    for (let round = 0; round < 400; round++) {
      const route = random.pick(ROUTES)
      const bytes = [...random.pick([encodeProxyV1, encodeProxyV2])(route)]
      for (let count = 1 + random.below(2); count > 0; count--) {
        const at = 6 + random.below(bytes.length - 6)
        const byte = random.chance(0.3)
          ? random.below(256)
          : random.pick([...Buffer.from(' .:019af'), 0, 1, 0x21])
        const kind = random.below(3)
        bytes.splice(at, kind === 0 ? 0 : 1, ...(kind === 1 ? [] : [byte]))
      }
      const header = Uint8Array.from(bytes)
      const verdict = new ProxyHeaderReader().receive(Buffer.concat([header, Buffer.from(REQUEST)]))
      // One that swallows some of the request, or leaves something in front of it, is not answered by anybody.
      if (verdict.kind === 'more') continue
      if (verdict.kind === 'header' && verdict.rest.length !== REQUEST.length) continue
      // Addresses of no family are ignored here, as the specification wants; HAProxy takes them for broken TLVs.
      if (verdict.kind === 'header' && verdict.header.version === 2 && header[13] === 0) continue
      const answer = await answerBehind(haproxy.port, header)
      const name = `round ${round}: ${Buffer.from(header).toString('latin1')}`
      if (verdict.kind !== 'header') {
        if (answer.startsWith('200')) stricter++
        else same++
      } else {
        same++
        const expected =
          verdict.header.route === undefined ? '200 127.0.0.1 ' : `200 ${words(verdict.header.route)}`
        expect(`${name} ${respelled(answer)}`).toStartWith(`${name} ${expected}`)
      }
    }
    expect(same).toBeGreaterThan(150)
    expect(stricter).toBeGreaterThan(0)
  }, 60_000)
})

describeWith(['nginx'], 'nginx', () => {
  test('reads what is written', async () => {
    await using nginx = await startNginx(NGINX_ECHO)
    for (const route of ROUTES) {
      expect(await answerBehind(nginx.port, encodeProxyV1(route))).toBe(`200 ${words(route)}`)
      expect(await answerBehind(nginx.port, encodeProxyV2(route))).toBe(`200 ${words(route)}`)
    }
    for (const nobody of [encodeProxyV1(undefined), encodeProxyV2(undefined)]) {
      expect(await answerBehind(nginx.port, nobody)).toStartWith('200 ')
    }
  })
})
