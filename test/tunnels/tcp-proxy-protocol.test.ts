// Who connects, told to the service by a PROXY header: read by nginx and HAProxy where they are installed.

import { expect, test } from 'bun:test'
import { codeOf, next } from '../support/events.ts'
import { startHaproxy, startNginx } from '../support/haproxy.ts'
import { describeWith } from '../support/needs.ts'
import { type RawConnection, RawOrigin, rawDial } from '../support/raw.ts'
import { startTcpTunnel } from '../support/tcp-tunnel.ts'

const VERSIONS = ['v1', 'v2'] as const
const REQUEST = 'GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n'

/** `address port address port`, as the visitor itself knows its connection. */
function ends({ socket }: RawConnection): string {
  const { source, destination } = socket.endpoints() ?? {}
  return [source, destination].map(end => `${end?.address} ${end?.port}`).join(' ')
}

async function answerAndEnds(port: number): Promise<readonly [answer: string, ends: string]> {
  const visitor = await rawDial(port)
  const known = ends(visitor)
  await visitor.send(REQUEST)
  const answer = await visitor.end()
  return [answer.split('\r\n\r\n')[1] ?? '', known]
}

describeWith(['nginx'], 'nginx', () => {
  test.each(VERSIONS)('reads who connects from a header of %s', async proxyProtocol => {
    await using nginx = await startNginx(`
      server {
        listen 127.0.0.1:PORT proxy_protocol;
        return 200 "$proxy_protocol_addr $proxy_protocol_port $proxy_protocol_server_addr $proxy_protocol_server_port";
      }`)
    await using live = await startTcpTunnel(nginx.port, { tcp: { proxyProtocol } })
    for (let count = 0; count < 3; count++) {
      const [answer, known] = await answerAndEnds(live.port)
      expect(answer).toBe(known)
    }
  })
})

describeWith(['haproxy'], 'HAProxy', () => {
  test.each(VERSIONS)('reads who connects from a header of %s', async proxyProtocol => {
    await using haproxy = await startHaproxy(`
defaults
  mode http
  timeout connect 5s
  timeout client 5s
  timeout server 5s
frontend echo
  bind 127.0.0.1:PORT accept-proxy
  http-request return status 200 content-type text/plain lf-string "%[src] %[src_port] %[dst] %[dst_port]"
`)
    await using live = await startTcpTunnel(haproxy.port, { tcp: { proxyProtocol } })
    const [answer, known] = await answerAndEnds(live.port)
    expect(answer).toBe(known)
  })
})

test('the header comes first, before a service that waits for it has said a word, and is nobody’s bytes', async () => {
  using service = new RawOrigin()
  await using live = await startTcpTunnel(service.port, { tcp: { proxyProtocol: 'v1' } })
  const ended = next(live.server, 'visitorDisconnected')
  const visitor = await rawDial(live.port)
  const atService = await service.accept()
  const { source } = visitor.socket.endpoints() ?? {}
  expect(await atService.until('\r\n')).toBe(
    `PROXY TCP4 127.0.0.1 127.0.0.1 ${source?.port} ${live.port}\r\n`,
  )
  await visitor.send('four')
  await atService.until('four')
  visitor.socket.end()
  atService.socket.end()
  expect(await ended).toMatchObject({ bytesIn: 4, bytesOut: 0 })
})

test('without the option there is no header, and no other version than v1 and v2', async () => {
  using service = new RawOrigin()
  await using live = await startTcpTunnel(service.port)
  const visitor = await rawDial(live.port)
  await visitor.send('plain')
  await (await service.accept()).until('plain')
  const options = { port: service.port, proxyProtocol: 'v3' as 'v2' } // what no compiler would let pass
  expect(await codeOf(live.client.tcp(options))).toBe('OPTION_INVALID')
})
