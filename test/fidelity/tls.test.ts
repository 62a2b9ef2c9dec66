// TLS in front and TLS behind: certificate files of the server, https apps.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { TunnelClient } from '../../src/client/client.ts'
import { TunnelServer } from '../../src/index.ts'
import { startTunnel } from '../support/tunnel.ts'
import { within } from '../support/within.ts'

let folder = ''
const pem: Record<'one' | 'other', { cert: string; key: string }> = {
  one: { cert: '', key: '' },
  other: { cert: '', key: '' },
}

beforeAll(async () => {
  folder = await mkdtemp(`${tmpdir()}/localtunnels-tls-`)
  for (const name of ['one', 'other'] as const) {
    const made = Bun.spawn(
      [
        'openssl',
        'req',
        '-x509',
        '-newkey',
        'ec',
        '-pkeyopt',
        'ec_paramgen_curve:prime256v1',
        '-nodes',
        '-days',
        '2',
        '-keyout',
        `${folder}/${name}.key`,
        '-out',
        `${folder}/${name}.crt`,
        '-subj',
        '/CN=localhost',
        '-addext',
        'subjectAltName=DNS:localhost,DNS:*.localhost,IP:127.0.0.1',
      ], // prettier-ignore
      { stderr: 'ignore' },
    )
    expect(await made.exited).toBe(0)
    pem[name] = {
      cert: await Bun.file(`${folder}/${name}.crt`).text(),
      key: await Bun.file(`${folder}/${name}.key`).text(),
    }
  }
})

afterAll(() => rm(folder, { recursive: true }))

async function secureTunnel(port: number) {
  const server = new TunnelServer({ port: 0, host: '127.0.0.1', tls: pem.one })
  await server.start()
  const client = new TunnelClient({
    server: `wss://localhost:${server.port}`,
    ca: pem.one.cert,
    port,
    host: '127.0.0.1',
    subdomain: 'app',
  })
  await client.connect()
  return {
    server,
    client,
    ask: (path: string, init: object = {}) =>
      fetch(`https://127.0.0.1:${server.port}${path}`, {
        headers: { host: 'app.localhost' },
        tls: { ca: pem.one.cert, checkServerIdentity: () => undefined },
        ...init,
      } as never), // Bun's own option
    async [Symbol.asyncDispose]() {
      await client.disconnect()
      await server.stop()
    },
  }
}

test('visitors and clients come in by TLS, and the app learns that it was https', async () => {
  using app = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: request => Response.json(request.headers) })
  await using tunnel = await secureTunnel(app.port!)
  expect(tunnel.client.getTunnelUrl()).toBe(`https://app.localhost:${tunnel.server.port}`)
  const answer = await tunnel.ask('/')
  expect(await answer.json()).toMatchObject({ host: 'app.localhost', 'x-forwarded-proto': 'https' })
})

test('several MB go both ways by TLS', async () => {
  using app = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    fetch: async request => new Response(await request.bytes()),
  })
  await using tunnel = await secureTunnel(app.port!)
  const bytes = crypto.getRandomValues(new Uint8Array(65_536))
  const body = Buffer.concat(Array.from({ length: 100 }, () => bytes))
  const answer = await tunnel.ask('/', { method: 'POST', body })
  expect(Buffer.from(await answer.arrayBuffer()).equals(body)).toBe(true)
})

test('an answer that was cut does not end well by TLS either', async () => {
  using app = Bun.listen({
    port: 0,
    hostname: '127.0.0.1',
    socket: {
      data(socket) {
        socket.write('HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello')
        socket.flush()
        setTimeout(() => socket.end(), 20)
      },
    },
  })
  await using tunnel = await secureTunnel(app.port)
  expect(
    await tunnel
      .ask('/')
      .then(answer => answer.text())
      .catch(() => 'cut'),
  ).toBe('cut') // prettier-ignore
})

test('plain HTTP to a TLS port does no harm', async () => {
  using app = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: () => new Response('hi') })
  await using tunnel = await secureTunnel(app.port!)
  expect(await fetch(`http://127.0.0.1:${tunnel.server.port}/`).catch(() => 'refused')).toBe('refused')
  expect(await (await tunnel.ask('/')).text()).toBe('hi')
})

for (const [name, make] of Object.entries({
  'a key of another certificate': () => ({ cert: pem.one.cert, key: pem.other.key }),
  'no certificate at all': () => ({ cert: 'nothing', key: pem.one.key }),
  'no key at all': () => ({ cert: pem.one.cert, key: '' }),
  'certificate and key swapped': () => ({ cert: pem.one.key, key: pem.one.cert }),
  'half a certificate': () => ({ cert: pem.one.cert.slice(0, 300), key: pem.one.key }),
})) {
  test(`${name} is TLS_INVALID`, async () => {
    const server = new TunnelServer({ port: 0, host: '127.0.0.1', tls: make() })
    const outcome = await server.start().then(
      () => 'started',
      error => error.code,
    ) // prettier-ignore
    if (outcome === 'started') await server.stop()
    expect(outcome).toBe('TLS_INVALID')
  })
}

test.each([{}, { verifyOrigin: false }])(
  'an https:// URL of an app that speaks plain HTTP: %p',
  async options => {
    using app = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: () => new Response('hi') })
    await using tunnel = await startTunnel({ url: `https://127.0.0.1:${app.port}`, ...options })
    tunnel.client.on('error', () => {})
    const answer = await fetch(`http://127.0.0.1:${tunnel.port}/`, { headers: { host: tunnel.host } })
    expect(answer.headers.get('x-localtunnels-error')).toBe('ORIGIN_TLS')
    expect(await answer.text()).toContain('http:// URL')
  },
)

test('an https app is spoken to by TLS, verified unless told otherwise', async () => {
  const app = createServer(pem.one, (request, response) => response.end(`secure ${request.headers.host}`))
  await new Promise<void>(resolve => app.listen(0, '127.0.0.1', resolve))
  const { port } = app.address() as AddressInfo // it listens on a port
  const url = `https://127.0.0.1:${port}`
  {
    await using tunnel = await startTunnel({ url, verifyOrigin: false, hostHeader: 'rewrite' })
    const answer = await fetch(`http://127.0.0.1:${tunnel.port}/`, { headers: { host: tunnel.host } })
    expect(await answer.text()).toBe(`secure 127.0.0.1:${port}`)
  }
  {
    await using tunnel = await startTunnel({ url })
    tunnel.client.on('error', () => {})
    const answer = await fetch(`http://127.0.0.1:${tunnel.port}/`, { headers: { host: tunnel.host } })
    expect(answer.headers.get('x-localtunnels-error')).toBe('ORIGIN_TLS')
  }
  app.closeAllConnections()
  app.close()
})

test('WebSockets pass by TLS on both sides', async () => {
  using app = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    tls: pem.one,
    fetch: (request, self) => (self.upgrade(request) ? undefined : new Response('no')),
    websocket: { message: (socket, message) => void socket.send(message) },
  })
  const server = new TunnelServer({ port: 0, host: '127.0.0.1', tls: pem.one })
  await server.start()
  const client = new TunnelClient({
    server: `wss://localhost:${server.port}`,
    ca: pem.one.cert,
    url: `https://127.0.0.1:${app.port}`,
    verifyOrigin: false,
    subdomain: 'app',
  })
  await client.connect()
  // Bun's own options of a WebSocket.
  const socket = new WebSocket(`wss://127.0.0.1:${server.port}/`, {
    headers: { host: 'app.localhost' },
    tls: { rejectUnauthorized: false },
  } as never)
  await within(new Promise(resolve => socket.addEventListener('open', resolve)), 'open')
  const heard = new Promise<MessageEvent>(resolve => socket.addEventListener('message', resolve))
  socket.send('hello')
  expect((await within(heard, 'the echo')).data).toBe('hello')
  socket.close()
  await client.disconnect()
  await server.stop()
})
