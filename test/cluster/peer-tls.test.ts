// Servers that show each other certificates: requests and raw connections pass, and no server without one comes in.

import { beforeAll, expect, test } from 'bun:test'
import type { AddressInfo } from 'node:net'
import { createServer as createTlsServer, connect as secure, type TLSSocket } from 'node:tls'
import { MemoryDirectory } from '../../src/directories/memory.ts'
import { PEER_PROTOCOL, peerProof, RAW_PROTOCOL } from '../../src/parts/cluster/peer-wire.ts'
import type { TunnelServerOptions } from '../../src/server/settings/options.ts'
import { ask } from '../support/ask.ts'
import { type Certificate, makeCertificate } from '../support/certificates.ts'
import { TestCluster } from '../support/clusters.ts'
import { codeOf } from '../support/events.ts'
import { greet } from '../support/greeting.ts'
import { freePort } from '../support/ports.ts'
import { RawOrigin, rawDial } from '../support/raw.ts'
import { within } from '../support/within.ts'

let authority: Certificate
let own: Certificate
let strangers: Certificate
beforeAll(async () => {
  authority = await makeCertificate(['authority'])
  own = await makeCertificate(['localhost'], authority)
  strangers = await makeCertificate(['localhost'])
})

/** A server at this address whose peers come in by certificate. */
function certified(host: string, certificate: Certificate = own, ca: Certificate = authority) {
  const { cert, key } = certificate
  return { host, cluster: { peerUrl: `https://${host}:${freePort()}`, peerTls: { cert, key, ca: ca.cert } } }
}

const quick: TunnelServerOptions = { limits: { holdTimeoutMs: 300 } }
const hello = () => new Response('hello')

test('requests and raw connections pass between servers of one authority', async () => {
  using origin = new RawOrigin()
  const port = freePort()
  await using cluster = new TestCluster()
  const a = await cluster.server({ ...certified('127.0.0.1'), tcpPorts: `${port}` })
  const b = await cluster.server(certified('127.0.0.1'))
  await cluster.server({ ...certified('127.0.0.2'), tcpPorts: `${port}` })
  const client = await cluster.client({ server: a.url, subdomain: 'shop', fetch: hello })
  expect(await ask(b.port, 'shop.localhost')).toMatchObject({ status: 200, body: 'hello' })
  await client.tcp({ port: origin.port, host: '127.0.0.1', remotePort: port })
  let visitor = await rawDial(port, '127.0.0.2').catch(() => undefined)
  while (visitor === undefined) visitor = await rawDial(port, '127.0.0.2').catch(() => undefined)
  const app = await origin.accept()
  await visitor.send('question')
  visitor.socket.end()
  expect(await app.end()).toBe('question')
  await app.send('answer')
  app.socket.end()
  expect(await visitor.end()).toBe('answer')
  // A reset is none of TLS.
  const second = await rawDial(port, '127.0.0.2')
  const cut = await origin.accept()
  await cut.send('half')
  await second.until('half')
  cut.socket.terminate()
  expect(await second.closed()).toBeInstanceOf(Error)
  expect(second.hasEnded).toBeFalse()
  expect(cluster.errors).toEqual([])
})

test('a server with a certificate of another authority, or with the secret alone, reaches none', async () => {
  await using cluster = new TestCluster()
  const a = await cluster.server({ ...certified('127.0.0.1'), ...quick })
  const b = await cluster.server({ ...certified('127.0.0.1', strangers), ...quick })
  const c = await cluster.server({ ...certified('127.0.0.1', strangers, strangers), ...quick })
  const d = await cluster.server({ ...quick })
  await cluster.client({ server: a.url, subdomain: 'shop', fetch: hello })
  expect(await ask(a.port, 'shop.localhost')).toMatchObject({ status: 200 })
  for (const { port } of [b, c, d])
    expect(await ask(port, 'shop.localhost')).toMatchObject({ status: 503, code: 'CLIENT_RECONNECTING' })
})

test('the secret alone does not open the public port of a server with certificates', async () => {
  const directory = new MemoryDirectory()
  await using cluster = new TestCluster({}, () => Promise.resolve(directory))
  const secret = 'a-secret-of-32-characters-at-least'
  const { host, cluster: peers } = certified('127.0.0.1')
  for (const [options, status] of [
    [{ secret }, 101],
    [{ ...peers, secret }, 401],
  ] as const) {
    const before = new Set((await directory.nodes()).map(({ id }) => id))
    const server = await cluster.server({ host, cluster: options })
    const node = (await directory.nodes()).find(({ id }) => !before.has(id))
    for (const protocol of [PEER_PROTOCOL, RAW_PROTOCOL]) {
      const by = (number: string): string => peerProof(secret, node?.id ?? '', number)
      const taken = status === 101 && protocol === RAW_PROTOCOL ? 102 : status
      expect((await greet(server.port, protocol, '', by)).status).toBe(taken)
      expect((await greet(server.port, protocol, by(''))).status).toBe(401)
    }
  }
})

test('certificates need a port of their own', async () => {
  await using cluster = new TestCluster()
  const { cert, key } = own
  const peerTls = { cert, key, ca: authority.cert }
  for (const peerUrl of [undefined, 'http://127.0.0.1:9000', 'https://127.0.0.1:9000'])
    expect(
      await codeOf(
        cluster.server({ port: 9_000, cluster: { peerTls, ...(peerUrl !== undefined && { peerUrl }) } }),
      ),
    ).toBe('OPTION_INVALID')
})

test('TLS for a tunnel goes on to the server of its client unread, on the port where visitors of others get the certificate of the server', async () => {
  const port = freePort()
  const wild = await makeCertificate(['localhost', 'web.localhost'])
  const apps = await makeCertificate(['shop.localhost'])
  const app = createTlsServer(apps, socket => socket.on('error', () => {}).end('from the app'))
  await new Promise<void>(resolve => app.listen(0, '127.0.0.1', resolve))
  await using cluster = new TestCluster()
  const shared = { port, tlsPort: port, tls: wild }
  await cluster.server({ ...certified('127.0.0.1'), ...shared })
  await cluster.server({ ...certified('127.0.0.2'), ...shared })
  try {
    const server = `https://127.0.0.1:${port}`
    const client = await cluster.client({ server, verifyServer: false, subdomain: 'web', fetch: hello })
    const { port: appPort } = app.address() as AddressInfo
    await client.tls({ port: appPort, host: '127.0.0.1', subdomain: 'shop' })
    for (const host of ['127.0.0.1', '127.0.0.2']) {
      expect(await said(host, port, 'shop.localhost', apps.cert, '')).toBe('from the app')
      const request = 'GET / HTTP/1.1\r\nHost: web.localhost\r\nConnection: close\r\n\r\n'
      expect(await said(host, port, 'web.localhost', wild.cert, request)).toEndWith('hello')
    }
    expect(cluster.errors).toEqual([])
  } finally {
    app.close()
  }
})

/** All that a visitor by TLS gets, whose certificate must be `ca`. */
async function said(
  host: string,
  port: number,
  servername: string,
  ca: string,
  first: string,
): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>()
  let text = ''
  const socket: TLSSocket = secure({ host, port, servername, ca })
  socket.on('secureConnect', () => first !== '' && socket.write(first))
  socket.on('data', piece => (text += piece))
  socket.on('end', () => resolve(text))
  socket.on('error', reject)
  return within(promise, `an answer for ${servername}`)
}
