// Requests that arrive while the client reconnects: held with their bodies and whatever is pipelined behind them.

import { expect, test } from 'bun:test'
import { TunnelClient } from '../../src/index.ts'
import { get, headerOf, ok, post, readAnswer, readRequest, statusOf } from '../support/exchange.ts'
import { RawOrigin, rawDial } from '../support/raw.ts'
import { TcpProxy } from '../support/tcp-proxy.ts'
import { startServer } from '../support/tunnel.ts'

async function interrupted(limits: { holdTimeoutMs?: number; maxHeldRequests?: number } = {}) {
  const origin = new RawOrigin()
  const server = await startServer({ limits: { ...limits, drainTimeoutMs: 0 } })
  const proxy = new TcpProxy(server.port)
  const client = new TunnelClient({
    server: `http://127.0.0.1:${proxy.port}`,
    host: '127.0.0.1',
    port: origin.port,
    subdomain: 'app',
    maxBackoffMs: 50,
  })
  client.on('error', () => {})
  await client.connect()
  const lost = new Promise<void>(resolve => server.on('disconnection', () => resolve()))
  proxy.isDown = true
  proxy.cutAll()
  await lost
  return {
    origin,
    server,
    proxy,
    async [Symbol.asyncDispose]() {
      proxy.isDown = false
      await client.disconnect()
      proxy[Symbol.dispose]()
      await server.stop()
      origin[Symbol.dispose]()
    },
  }
}

test.concurrent('a held request goes on with its body and with what is pipelined behind it', async () => {
  await using both = await interrupted()
  const visitor = await rawDial(both.server.port)
  const body = 'b'.repeat(300_000)
  const sending = visitor.send(post('app.localhost', body, '/1') + get('app.localhost', '/2'))
  const half = await rawDial(both.server.port)
  await half.send(post('app.localhost', 'half', '/3').replace('Length: 4', 'Length: 8'))
  await Bun.sleep(100)
  both.proxy.isDown = false
  const apps = [await both.origin.accept(), await both.origin.accept()]
  const answers = apps.map(async app => {
    for (;;) {
      const { head, payload } = await readRequest(app)
      await app.send(ok(`${head.split(' ')[1]} ${payload.length}`))
    }
  })
  for (const answer of answers) answer.catch(() => {})
  expect((await readAnswer(visitor)).body).toBe('/1 300000')
  expect((await readAnswer(visitor)).body).toBe('/2 0')
  await half.send('rest')
  expect((await readAnswer(half)).body).toBe('/3 8')
  await sending
  visitor.socket.terminate()
  half.socket.terminate()
})

test.concurrent('a request is held only so long, and its connection is good for the next', async () => {
  await using both = await interrupted({ holdTimeoutMs: 300 })
  const visitor = await rawDial(both.server.port)
  await visitor.send(get('app.localhost') + get('app.localhost'))
  for (let n = 0; n < 2; n++) {
    const { head } = await readAnswer(visitor)
    expect(statusOf(head)).toBe(503)
    expect(headerOf(head, 'x-localtunnels-error')).toBe('CLIENT_RECONNECTING')
  }
  visitor.socket.terminate()
})

test.concurrent('only so many requests are held, and those that leave make room', async () => {
  await using both = await interrupted({ maxHeldRequests: 1 })
  const first = await rawDial(both.server.port)
  await first.send(get('app.localhost'))
  await Bun.sleep(50)
  const second = await rawDial(both.server.port)
  await second.send(get('app.localhost'))
  expect(statusOf((await readAnswer(second)).head)).toBe(503)
  first.socket.terminate()
  await first.closed()
  await Bun.sleep(50)
  await second.send(get('app.localhost', '/second'))
  await Bun.sleep(50)
  both.proxy.isDown = false
  const app = await both.origin.accept()
  expect(await app.until('\r\n\r\n')).toStartWith('GET /second ')
  second.socket.terminate()
})
