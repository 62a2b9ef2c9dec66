// TLS in front and TLS behind: certificate files of the server, https apps.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:https'
import { type AddressInfo, connect as connectTcp, createServer as createTcpServer } from 'node:net'
import { tmpdir } from 'node:os'
import { TunnelServer } from '../../src/index.ts'
import { TunnelClient } from '../../src/tunnel-client.ts'
import { next } from '../support/events.ts'
import { RawOrigin } from '../support/raw.ts'
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

test.each([{}, { appInsecure: true }])(
  'an https:// URL of an app that speaks plain HTTP: %p',
  async options => {
    using app = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: () => new Response('hi') })
    await using tunnel = await startTunnel({ url: `https://127.0.0.1:${app.port}`, ...options })
    const told = next(tunnel.client, 'error')
    const answer = await fetch(`http://127.0.0.1:${tunnel.port}/`, { headers: { host: tunnel.host } })
    expect(answer.headers.get('x-localtunnels-error')).toBe('ORIGIN_SCHEME')
    expect(await answer.text()).toContain('http:// URL')
    expect((await told).message).toBe(
      `The app on port ${app.port} does not speak TLS: use http://127.0.0.1:${app.port}`,
    )
  },
)

for (const wire of ['streams', 'json'] as const) {
  test(`${wire}: a port of an app that speaks TLS`, async () => {
    using secure = Bun.serve({
      port: 0,
      hostname: '127.0.0.1',
      tls: pem.one,
      fetch: () => new Response('hi'),
    })
    let hellos = 0
    // As OpenSSL does: says nothing to what is no TLS.
    const app = createTcpServer(socket => {
      socket.on('error', () => {})
      socket.once('data', bytes => {
        if (bytes[0] !== 0x16) return socket.end()
        hellos++
        const through = connectTcp(secure.port ?? 0, '127.0.0.1')
        through.on('error', () => socket.destroy())
        through.write(bytes)
        socket.pipe(through).pipe(socket)
      })
    })
    await new Promise<void>(resolve => app.listen(0, '127.0.0.1', resolve))
    const { port } = app.address() as AddressInfo // it listens on a port
    await using tunnel = await startTunnel({ host: '127.0.0.1', port, wire })
    const errors: Error[] = []
    tunnel.client.on('error', error => errors.push(error))
    for (let round = 0; round < 3; round++) {
      const answer = await fetch(`http://127.0.0.1:${tunnel.port}/`, { headers: { host: tunnel.host } })
      expect(answer.status).toBe(502)
      if (wire === 'streams') expect(answer.headers.get('x-localtunnels-error')).toBe('ORIGIN_SCHEME')
      expect(await answer.text()).toContain('https:// URL')
    }
    expect(errors.map(({ message }) => message)).toEqual(
      Array(3).fill(`The app on port ${port} speaks TLS: use https://127.0.0.1:${port}`),
    )
    // One handshake shows it for all of them.
    expect(hellos).toBe(1)
    app.close()
  })

  test(`${wire}: an app that answers a request with a TLS alert, or with nothing`, async () => {
    using app = new RawOrigin()
    await using tunnel = await startTunnel({ host: '127.0.0.1', port: app.port, wire })
    const errors: unknown[] = []
    tunnel.client.on('error', error => errors.push(Reflect.get(error, 'code')))
    const ask = () => fetch(`http://127.0.0.1:${tunnel.port}/`, { headers: { host: tunnel.host } })
    const first = ask()
    const alerted = await app.accept()
    await alerted.until('\r\n\r\n')
    // handshake_failure. The connection stays open.
    await alerted.send(new Uint8Array([0x15, 0x03, 0x03, 0, 2, 2, 40]))
    expect(await (await first).text()).toContain('https:// URL')
    await alerted.closed()
    const second = ask()
    const silent = await app.accept()
    await silent.until('\r\n\r\n')
    silent.socket.end()
    // It is asked by TLS, and says nothing to that either.
    const asked = await app.accept()
    await asked.exactly(5)
    asked.socket.end()
    expect(await (await second).text()).toContain('may have crashed')
    expect(errors[0]).toBe('ORIGIN_SCHEME')
    expect(errors).not.toContain('ORIGIN_TLS')
  })
}

test('an https app is spoken to by TLS, verified unless told otherwise', async () => {
  const app = createServer(pem.one, (request, response) => response.end(`secure ${request.headers.host}`))
  await new Promise<void>(resolve => app.listen(0, '127.0.0.1', resolve))
  const { port } = app.address() as AddressInfo // it listens on a port
  const url = `https://127.0.0.1:${port}`
  {
    await using tunnel = await startTunnel({ url, appInsecure: true, hostHeader: 'rewrite' })
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
    appInsecure: true,
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
