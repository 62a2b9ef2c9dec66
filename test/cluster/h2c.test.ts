// An app that speaks HTTP/2 without TLS, as gRPC does, behind two servers: streams both ways, and trailers.

import { expect, test } from 'bun:test'
import { connect, createServer, type ServerHttp2Stream } from 'node:http2'
import type { AddressInfo, Socket } from 'node:net'
import { makeCertificate } from '../support/certificates.ts'
import { TestCluster } from '../support/clusters.ts'
import { freePort } from '../support/ports.ts'
import { within } from '../support/within.ts'

test('a stream both ways, its trailers, and an error pass between servers', async () => {
  const authority = await makeCertificate(['authority'])
  const tls = await makeCertificate(['localhost', 'shop.localhost'], authority)
  const app = createServer()
  const sockets: Socket[] = []
  app.on('connection', (socket: Socket) => sockets.push(socket))
  const cut = () => {
    for (const socket of sockets) socket.resetAndDestroy()
  }
  app.on('stream', (own, headers) => {
    // A server has no other streams.
    const stream = own as ServerHttp2Stream
    stream.on('error', () => {})
    stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true })
    stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0', 'x-te': String(headers.te) }))
    if (headers[':path'] === '/broken') return void stream.write('half')
    stream.on('data', piece => stream.write(`<${String(piece)}>`))
    stream.on('end', () => stream.end())
  })
  await new Promise<void>(resolve => app.listen(0, '127.0.0.1', resolve))
  await using cluster = new TestCluster()
  const peers = () => ({
    peerUrl: `https://127.0.0.1:${freePort()}`,
    peerTls: { ...tls, ca: authority.cert },
  })
  const a = await cluster.server({ tls, cluster: peers() })
  const b = await cluster.server({ tls, cluster: peers() })
  await cluster.client({
    server: `https://localhost:${a.port}`,
    ca: authority.cert,
    subdomain: 'shop',
    port: (app.address() as AddressInfo).port,
    host: '127.0.0.1',
    protocol: 'h2c',
  })
  const visitor = connect(`https://shop.localhost:${b.port}`, {
    ca: authority.cert,
    lookup: (_host, _options, found) => found(null, [{ address: '127.0.0.1', family: 4 }] as never, 4),
  })
  try {
    const stream = visitor.request({ ':method': 'POST', ':path': '/call', te: 'trailers' })
    const heard = async (text: string) => {
      const piece = await within(new Promise(resolve => stream.once('data', resolve)), `"${text}"`)
      expect(String(piece)).toBe(text)
    }
    stream.write('one')
    await heard('<one>')
    stream.write('two')
    await heard('<two>')
    const trailers = within(new Promise(resolve => stream.once('trailers', resolve)), 'the trailers')
    stream.end()
    expect(await trailers).toMatchObject({ 'grpc-status': '0', 'x-te': 'trailers' })
    // The stream is reset: without that half an answer would look like a whole one.
    const flags = ['-skN', '--http2', '--resolve', `shop.localhost:${b.port}:127.0.0.1`]
    const curl = Bun.spawn(['curl', ...flags, `https://shop.localhost:${b.port}/broken`], { stdout: 'pipe' })
    const { value } = await curl.stdout.getReader().read()
    expect(Buffer.from(value ?? []).toString()).toBe('half')
    cut()
    expect(await curl.exited).toBe(92)
  } finally {
    visitor.destroy()
    app.close()
  }
})
