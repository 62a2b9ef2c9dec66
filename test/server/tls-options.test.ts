// Which TLS the server speaks: versions, ciphers, and when browsers get Strict-Transport-Security.

import { afterAll, describe, expect, test } from 'bun:test'
import { connect, type SecureVersion } from 'node:tls'
import { TunnelClient, TunnelServer, type TunnelServerOptions } from '../../src/index.ts'
import { makeCertificate } from '../support/certificates.ts'
import { describeWith } from '../support/needs.ts'
import { rawDial } from '../support/raw.ts'
import { TEST_CERT, TEST_KEY } from '../support/tls.ts'
import { startServer } from '../support/tunnel.ts'
import { within } from '../support/within.ts'

const EC = { cert: TEST_CERT, key: TEST_KEY }
/** PROXY, TCP over IPv4, 20 bytes: 203.0.113.7:5000 to 192.0.2.1:443, and that TLS was spoken. */
const PROXIED_TLS = Buffer.from(
  '0d0a0d0a000d0a515549540a' + '21110014' + 'cb007107c0000201138801bb' + '2000050100000000',
  'hex',
)

/** RSA keys are what RSA key exchange needs. */
const rsaCertificate = () => makeCertificate(['localhost'], undefined, 'rsa')

/** The cipher that `openssl s_client` gets; `undefined`: no handshake. */
async function cipherOf(port: number, ...args: readonly string[]): Promise<string | undefined> {
  const child = Bun.spawn(['openssl', 's_client', '-connect', `127.0.0.1:${port}`, ...args], {
    stdin: new Blob(['Q\n']),
    stdout: 'pipe',
    stderr: 'ignore',
  })
  const [, cipher] = /^New, .*Cipher is (\S+)$/m.exec(await new Response(child.stdout).text()) ?? []
  await child.exited
  return cipher === '(NONE)' ? undefined : cipher
}

const refusal = (asked: Promise<unknown>) =>
  asked.then(
    () => 'it was not refused',
    (error: Error) => error.message,
  )

describeWith(['openssl'], 'openssl s_client', () => {
  /** On a port of its own, and on one that TLS tunnels share: there the server reads the hello before TLS begins. */
  const ports = ['own', 'shared'] as const
  test.each(ports)(
    'on its %s port: forward secrecy and authenticated encryption by default, TLS 1.2 and 1.3',
    async kind => {
      await using server = await start(kind, { tls: await rsaCertificate() })
      const { port } = server
      const old = ['-cipher', 'ALL:@SECLEVEL=0']
      expect(await cipherOf(port, '-tls1', ...old)).toBeUndefined()
      expect(await cipherOf(port, '-tls1_1', ...old)).toBeUndefined()
      for (const weak of [
        'AES128-GCM-SHA256',
        'AES128-SHA',
        'ECDHE-RSA-AES128-SHA',
        'ECDHE-RSA-AES256-SHA384',
      ])
        expect([weak, await cipherOf(port, '-tls1_2', '-cipher', weak)]).toEqual([weak, undefined])
      for (const sound of ['ECDHE-RSA-AES128-GCM-SHA256', 'ECDHE-RSA-CHACHA20-POLY1305'])
        expect(await cipherOf(port, '-tls1_2', '-cipher', sound)).toBe(sound)
      expect(await cipherOf(port, '-tls1_3')).toStartWith('TLS_')
    },
  )

  test.each(ports)(
    'on its %s port: tlsMinVersion and tlsCiphers hold, also after a new certificate',
    async kind => {
      const tls = await rsaCertificate()
      const tlsCiphers = 'ECDHE-RSA-AES256-GCM-SHA384'
      await using server = await start(kind, { tls, tlsCiphers })
      const weak = ['-tls1_2', '-cipher', 'ECDHE-RSA-AES128-GCM-SHA256:AES128-SHA'] as const
      expect(await cipherOf(server.port, '-tls1_2')).toBe(tlsCiphers)
      expect(await cipherOf(server.port, ...weak)).toBeUndefined()
      const tlsPort = kind === 'shared' ? { tlsPort: server.port } : {}
      await server.reload({ tls: await rsaCertificate(), tlsCiphers, ...tlsPort })
      expect(await cipherOf(server.port, '-tls1_2')).toBe(tlsCiphers)
      expect(await cipherOf(server.port, ...weak)).toBeUndefined()
      await server.reload({ tls, ...tlsPort })
      expect(
        await cipherOf(server.port, '-tls1_2', '-cipher', 'AES128-SHA:AES128-GCM-SHA256'),
      ).toBeUndefined()

      await using modern = await start(kind, { tls, tlsMinVersion: '1.3' })
      const modernTlsPort = kind === 'shared' ? { tlsPort: modern.port } : {}
      expect(await cipherOf(modern.port, '-tls1_2')).toBeUndefined()
      await modern.reload({ tls: await rsaCertificate(), tlsMinVersion: '1.3', ...modernTlsPort })
      expect(await cipherOf(modern.port, '-tls1_2')).toBeUndefined()
      expect(await cipherOf(modern.port, '-tls1_3')).toStartWith('TLS_')
      expect(await refusal(modern.reload({ tls, ...modernTlsPort }))).toContain('tlsMinVersion cannot change')
    },
  )
})

/** Port 0 cannot be shared: the one that was free a moment ago is. */
async function start(kind: 'own' | 'shared', options: TunnelServerOptions): Promise<TunnelServer> {
  if (kind === 'own') return startServer(options)
  const free = await startServer()
  const { port } = free
  await free.stop()
  return startServer({ ...options, port, tlsPort: port })
}

test('node:tls speaks 1.2 and 1.3 to it, and no 1.2 where that is too old', async () => {
  await using server = await startServer({ tls: EC })
  await using modern = await startServer({ tls: EC, tlsMinVersion: '1.3' })
  const versionAt = (port: number, maxVersion: SecureVersion) =>
    new Promise<string | null>(resolve => {
      const socket = connect({ host: '127.0.0.1', port, ca: TEST_CERT, servername: 'localhost', maxVersion })
      socket.on('secureConnect', () => {
        resolve(socket.getProtocol())
        socket.destroy()
      })
      socket.on('error', () => resolve(null))
    })
  expect(await versionAt(server.port, 'TLSv1.2')).toBe('TLSv1.2')
  expect(await versionAt(server.port, 'TLSv1.3')).toBe('TLSv1.3')
  expect(await versionAt(modern.port, 'TLSv1.2')).toBeNull()
  expect(await versionAt(modern.port, 'TLSv1.3')).toBe('TLSv1.3')
})

test('options that cannot be used are refused', async () => {
  const tlsMinVersion = '1.1' as '1.2' // what a program without types may give
  expect(() => new TunnelServer({ tls: EC, tlsMinVersion })).toThrow('neither 1.2 nor 1.3')
  expect(() => new TunnelServer({ tlsMinVersion: '1.3' })).toThrow('need tls')
  expect(() => new TunnelServer({ tlsCiphers: 'x' })).toThrow('need tls')
  expect(() => new TunnelServer({ hsts: -1 })).toThrow('hsts must be')
  expect(() => new TunnelServer({ hsts: 1.5 })).toThrow('hsts must be')
  expect(await refusal(startServer({ tls: EC, tlsCiphers: 'NO-SUCH' }))).toContain('tlsCiphers has no cipher')
  await using server = await startServer({ tls: EC })
  expect(await refusal(server.reload({ tls: EC, tlsCiphers: 'NO-SUCH' }))).toContain(
    'tlsCiphers has no cipher',
  )
})

describe.each(['streams', 'json'] as const)('hsts, by the %s wire', wire => {
  const answers: Record<string, ResponseInit> = {
    '/': {},
    '/own': { headers: { 'Strict-Transport-Security': 'max-age=5' } },
  }
  const app = Bun.serve({
    port: 0,
    fetch: request => new Response('hello', answers[new URL(request.url).pathname]),
  })
  afterAll(() => app.stop(true))

  async function headersAt(server: TunnelServer, path: string): Promise<string | null> {
    const { url, port } = server
    const tls = { ca: TEST_CERT, serverName: 'app.localhost', checkServerIdentity: () => undefined }
    const answer = await fetch(`${url.startsWith('https') ? 'https' : 'http'}://127.0.0.1:${port}${path}`, {
      headers: { Host: 'app.localhost' },
      tls,
    })
    expect(await answer.text()).toBe('hello')
    return answer.headers.get('strict-transport-security')
  }

  async function connected(server: TunnelServer): Promise<AsyncDisposable> {
    const { port, url } = server
    const options = { subdomain: 'app', wire, ca: TEST_CERT, port: Number(app.port), host: '127.0.0.1' }
    const client = new TunnelClient({ server: url.replace(/localhost.*/, `localhost:${port}`), ...options })
    await within(client.connect(), 'the client to connect')
    return { [Symbol.asyncDispose]: () => client.disconnect() }
  }

  test('is sent over TLS, for as long as the option says, and never instead of the header of the app', async () => {
    await using server = await startServer({ tls: EC, hsts: 31_536_000 })
    await using _client = await connected(server)
    expect(await headersAt(server, '/')).toBe('max-age=31536000')
    expect(await headersAt(server, '/own')).toBe('max-age=5')
    await server.reload({ tls: EC })
    expect(await headersAt(server, '/')).toBeNull()
  })

  test('is not sent in the clear, but for visitors who came to a trusted proxy by TLS', async () => {
    await using server = await startServer({ hsts: 60, trustedProxies: ['127.0.0.1'] })
    await using _client = await connected(server)
    expect(await headersAt(server, '/')).toBeNull()
    // The client is there already, without a header.
    await server.reload({ hsts: 60, trustedProxies: ['127.0.0.1'], acceptProxyProtocol: true })
    const visitor = await rawDial(server.port)
    await visitor.send(PROXIED_TLS)
    await visitor.send('GET / HTTP/1.1\r\nHost: app.localhost\r\n\r\n')
    expect(await visitor.until('hello')).toContain('Strict-Transport-Security: max-age=60\r\n')
    visitor.socket.terminate()
  })
})
