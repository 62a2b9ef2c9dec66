// The example of docs/behind-a-proxy.md, run: HAProxy does TLS and says who the visitor is. Skipped without HAProxy.

import { expect, test } from 'bun:test'
import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { TunnelClient } from '../../src/index.ts'
import { startHaproxy } from '../support/haproxy.ts'
import { describeWith } from '../support/needs.ts'
import { TEST_CERT, TEST_KEY } from '../support/tls.ts'
import { startServer } from '../support/tunnel.ts'

const page = await Bun.file(join(import.meta.dir, '../../docs/behind-a-proxy.md')).text()
const [, example = ''] = /```haproxy\n([\s\S]*?)```/.exec(page) ?? []

describeWith(['haproxy'], 'HAProxy in front, as documented', () => {
  test.each([
    ['send-proxy-v2-ssl', 'https'],
    ['send-proxy-v2', 'http'],
    ['send-proxy', 'http'],
  ])(
    'with %s apps see the visitor, %s; clients and WebSockets pass',
    async (words, proto) => {
      using app = Bun.serve({
        port: 0,
        fetch(request, self) {
          if (self.upgrade(request)) return undefined
          const { headers } = request
          return Response.json([headers.get('x-forwarded-for'), headers.get('x-forwarded-proto')])
        },
        websocket: { message: (socket, message) => void socket.send(message) },
      })
      await using server = await startServer({ acceptProxyProtocol: true, trustedProxies: ['127.0.0.2'] })
      const pem = join(tmpdir(), `localtunnels-${server.port}.pem`)
      await Bun.write(pem, TEST_CERT + TEST_KEY)
      try {
        await using haproxy = await startHaproxy(
          example
            .replace(':443', '127.0.0.1:PORT')
            .replace('/etc/ssl/tunnel.example/all.pem', pem)
            .replace('8080', `${server.port}`)
            .replace('send-proxy-v2-ssl', words),
        )
        await using client = new TunnelClient({
          server: `https://127.0.0.1:${haproxy.port}`,
          verifyServer: false,
          host: '127.0.0.1',
          port: app.port ?? 0,
          subdomain: 'app',
        })
        await client.connect()
        const tls = { rejectUnauthorized: false }
        const answer = await fetch(`https://127.0.0.1:${haproxy.port}/`, {
          headers: { host: 'app.localhost', 'x-forwarded-for': '6.6.6.6', 'x-forwarded-proto': 'gopher' },
          tls,
        })
        expect(await answer.json()).toEqual(['127.0.0.1', proto])
        // Bun's WebSocket takes headers and TLS options besides protocols.
        const socket = new WebSocket(`wss://127.0.0.1:${haproxy.port}/`, {
          headers: { host: 'app.localhost' },
          tls,
        })
        const { promise, resolve, reject } = Promise.withResolvers<unknown>()
        socket.onopen = () => socket.send('through')
        socket.onmessage = event => resolve(event.data)
        socket.onerror = () => reject(new Error('the WebSocket failed'))
        expect(await promise).toBe('through')
        socket.close()
      } finally {
        await rm(pem)
      }
    },
    60_000,
  )
})
