// A client on Node behind a proxy: the same ways.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { createHash } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { OutboundProxy, type OutboundProxyOptions } from '../../support/outbound-proxy.ts'
import { TEST_CERT, TEST_KEY } from '../../support/tls.ts'
import { startServer } from '../../support/tunnel.ts'
import { within } from '../../support/within.ts'

const BULK = Buffer.alloc(5_000_000, 'not the same byte again and again')
const sha256 = (data: Uint8Array) => createHash('sha256').update(data).digest('hex')
const folder = mkdtempSync(join(tmpdir(), 'localtunnels-'))
const script = join(folder, 'client.mjs')
const authority = join(folder, 'ca.pem')

beforeAll(async () => {
  const entrypoints = [join(import.meta.dir, '../../support/client-process.ts')]
  const built = await Bun.build({ entrypoints, target: 'node' })
  await Bun.write(script, built.outputs[0]!)
  await Bun.write(authority, TEST_CERT)
})
afterAll(() => rmSync(folder, { recursive: true }))

const login = { user: 'anna', password: 'p@ss:w/örd%' }
const names = ['tunnel.test']

const WAYS: readonly [string, 'ws' | 'wss', string, OutboundProxyOptions, string][] = [
  ['CONNECT with Basic', 'ws', '127.0.0.1', { kind: 'http', login }, 'http'],
  ['CONNECT to a name, with TLS', 'wss', 'tunnel.test', { kind: 'http', names }, 'http'],
  ['CONNECT over TLS', 'ws', '127.0.0.1', { kind: 'http', tls: true }, 'https'],
  ['CONNECT over TLS, TLS in TLS', 'wss', '127.0.0.1', { kind: 'http', tls: true, login }, 'https'],
  ['SOCKS5 with a password', 'ws', '127.0.0.1', { kind: 'socks5', login }, 'socks5'],
  ['SOCKS5 to a name, with TLS', 'wss', 'tunnel.test', { kind: 'socks5', names }, 'socks5h'],
]

test.each(WAYS)('%s', async (_, scheme, host, options, proxyScheme) => {
  using origin = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    fetch: async request =>
      new Response(request.method === 'POST' ? sha256(await request.bytes()) : new Uint8Array(BULK)),
  })
  const server = await startServer({
    domains: ['localhost', 'tunnel.test'],
    ...(scheme === 'wss' && { tls: { cert: TEST_CERT, key: TEST_KEY } }),
  })
  using proxy = await OutboundProxy.start(options)
  const args = [`${scheme}://${host}:${server.port}`, 'app', `${origin.port}`, proxy.url(proxyScheme)]
  await using client = Bun.spawn(['node', script, ...args], {
    stdout: 'pipe',
    env: { ...process.env, NODE_EXTRA_CA_CERTS: authority },
  })
  await within(client.stdout.getReader().read(), 'the client to connect')
  const url = `${scheme === 'ws' ? 'http' : 'https'}://127.0.0.1:${server.port}/`
  const init = { headers: { host: 'app.localhost' }, tls: { rejectUnauthorized: false } }
  for (let round = 0; round < 2; round++) {
    expect(sha256(await (await fetch(url, init)).bytes())).toBe(sha256(BULK))
    const answer = await fetch(url, { ...init, method: 'POST', body: BULK })
    expect(await answer.text()).toBe(sha256(BULK))
  }
  // The carrier, and links.
  expect(proxy.targets.length).toBeGreaterThan(1)
  for (const target of proxy.targets) expect(target).toStartWith(`${host}:${server.port}`)
  client.kill('SIGTERM')
  expect(await within(client.exited, 'the client to end by itself')).toBe(0)
  await server.stop()
})
