// TLS between client and server: sessions that are resumed, certificates of clients, pins, and one clear line for each way in
// which a handshake fails.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { createHash, X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import { connect as connectPlain } from 'node:net'
import { connect, createServer, type TlsOptions } from 'node:tls'
import type { TunnelClientOptions } from '../../src/client/options.ts'
import { TunnelError } from '../../src/errors.ts'
import { TunnelClient, type TunnelServer } from '../../src/index.ts'
import type { TunnelServerOptions } from '../../src/server/settings/options.ts'
import type { Dial } from '../../src/socket.ts'
import { dialBun } from '../../src/sockets/bun.ts'
import { dialNode } from '../../src/sockets/node.ts'
import { sessionSlot } from '../../src/sockets/tls-sessions.ts'
import { type Certificate, makeCertificate, makeDated } from '../support/certificates.ts'
import { Recorder } from '../support/recorder.ts'
import { rejection } from '../support/rejection.ts'
import { startServer } from '../support/tunnel.ts'
import { within } from '../support/within.ts'

const HOST = '127.0.0.1'

let own: Certificate
let authority: Certificate
let person: Certificate
let stranger: Certificate
beforeAll(async () => {
  own = await makeCertificate(['localhost'])
  authority = await makeCertificate(['people'])
  person = await makeCertificate(['anna'], authority)
  stranger = await makeCertificate(['anna'])
})

const closing: (() => unknown)[] = []
afterAll(async () => {
  for (const close of closing.reverse()) await close()
})

/** A TLS server of Node's that passes bytes on to a port, and remembers which handshakes resumed a session. */
async function tlsInFront(of: number | undefined, options: TlsOptions = {}) {
  const resumed: boolean[] = []
  const server = createServer({ ...own, ...options }, socket => {
    resumed.push(socket.isSessionReused())
    socket.on('error', () => {})
    if (of === undefined) return void socket.write('hello')
    const below = connectPlain(of, HOST)
    below.on('error', () => socket.destroy())
    socket.pipe(below).pipe(socket)
  })
  server.on('tlsClientError', () => {})
  server.listen(0, HOST)
  await once(server, 'listening')
  closing.push(() => server.close())
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('no port')
  return { resumed, port: address.port }
}

const dials: readonly (readonly [string, Dial])[] = [
  ['Bun', dialBun],
  ['Node', dialNode],
]

describe.each(dials)('a dial on %s', (_, dial) => {
  test('resumes the session of the last one with the same options, and no other', async () => {
    const { resumed, port } = await tlsInFront(undefined)
    const other = await tlsInFront(undefined)
    const tls = { ca: own.cert, serverName: 'localhost' }
    const visit = async (options: object, to = port) => {
      const events = new Recorder()
      const socket = await dial({ host: HOST, port: to, tls: options }, events)
      // The ticket comes before what the server says.
      await events.happened('received')
      socket.terminate()
      await events.happened('closed')
    }
    await visit(tls)
    await visit(tls)
    expect(resumed).toEqual([false, true])
    await visit({ ...tls, verify: false })
    expect(resumed).toEqual([false, true, false])
    await visit(tls, other.port)
    expect(other.resumed).toEqual([false])
  })

  test('verifies the pin of a resumed session, too', async () => {
    const { port, resumed } = await tlsInFront(undefined)
    const visit = async (tls: object) => {
      const events = new Recorder()
      const socket = await dial({ host: HOST, port, tls }, events)
      await events.happened('received')
      socket.terminate()
    }
    const tls = { verify: false, pin: pinOf(own) }
    await visit(tls)
    await visit(tls)
    expect(resumed).toEqual([false, true])
    expect(await rejection(visit({ verify: false, pin: pinOf(stranger) }))).toMatchObject({
      code: 'ERR_TLS_CERT_PIN',
    })
  })
})

test('a session is for one address: another server is not shown it', () => {
  const tls = {}
  const slot = sessionSlot({ port: 1, tls })
  expect(sessionSlot({ port: 1, tls })).toBe(slot!)
  expect(sessionSlot({ port: 2, tls })).not.toBe(slot!)
  expect(sessionSlot({ port: 1 })).toBeUndefined()
})

function pinOf({ cert }: Certificate): string {
  const bytes = new X509Certificate(cert).publicKey.export({ type: 'spki', format: 'der' })
  return `sha256//${createHash('sha256').update(bytes).digest('base64')}`
}

test('the carrier and the links of a client share one session', async () => {
  const server = await startServer()
  closing.push(() => server.stop())
  const { resumed, port } = await tlsInFront(server.port)
  const client = new TunnelClient({ server: `https://localhost:${port}`, ca: own.cert })
  closing.push(() => client.disconnect())
  const body = new Uint8Array(4_000_000)
  await client.http({ subdomain: 'app', fetch: () => new Response(body) })
  for (let downloads = 0; downloads < 20 && resumed.length < 2; downloads++) {
    const answer = await fetch(`http://${HOST}:${server.port}/`, { headers: { host: 'app.localhost' } })
    expect((await answer.arrayBuffer()).byteLength).toBe(body.length)
  }
  expect(resumed.slice(0, 2)).toEqual([false, true])
})

describe('certificates of clients', () => {
  const start = async (options: TunnelServerOptions = {}): Promise<TunnelServer> => {
    const server = await startServer({ tls: own, clientCa: authority.cert, ...options })
    closing.push(() => server.stop())
    return server
  }
  const connected = async (server: TunnelServer, options: TunnelClientOptions, name = 'localhost') => {
    const client = new TunnelClient({
      server: `https://${name}:${server.port}`,
      verifyServer: false,
      reconnect: false,
      subdomain: 'app',
      fetch: () => new Response(new Uint8Array(1_000_000)),
      ...options,
    })
    closing.push(() => client.disconnect())
    await client.connect()
    return client
  }

  test.each(['auto', 'json'] as const)(
    'on the wire %s: one of the authority gets in, also anew; without one it is told so',
    async wire => {
      const server = await start()
      for (const name of ['localhost', HOST]) {
        const client = await connected(server, { ...person, wire }, name)
        await client.disconnect()
      }
      for (const options of [{}, stranger])
        expect(await rejection(connected(server, { ...options, wire }))).toMatchObject({
          code: 'CLIENT_CERTIFICATE_MISSING',
          message: expect.stringContaining('--cert'),
        })
    },
  )

  test('its links get in, and visitors need none', async () => {
    const server = await start()
    await connected(server, person)
    for (let downloads = 0; downloads < 3; downloads++) {
      const answer = await fetch(`https://${HOST}:${server.port}/`, {
        headers: { host: 'app.localhost' },
        tls: { rejectUnauthorized: false },
      })
      expect((await answer.arrayBuffer()).byteLength).toBe(1_000_000)
    }
    const health = await fetch(`https://localhost:${server.port}/health`, {
      tls: { rejectUnauthorized: false },
    })
    expect(health.status).toBe(200)
  })

  test('a session that is resumed is as certified as the first, as for links', async () => {
    const server = await start()
    const upgrade = Buffer.from(
      'GET / HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n',
    )
    const statusOf = async (tls: object) => {
      const events = new Recorder()
      const socket = await dialBun({ host: HOST, port: server.port, tls }, events)
      socket.write(upgrade)
      await events.happened('received')
      socket.terminate()
      return String(Buffer.from(events.bytes).subarray(9, 12))
    }
    const certified = { verify: false, serverName: 'localhost', ...person }
    const bare = { verify: false, serverName: 'localhost' }
    for (let dials = 0; dials < 3; dials++) {
      expect(await statusOf(certified)).toBe('101')
      expect(await statusOf(bare)).toBe('403')
    }
  })

  test('a connection to the name of a tunnel is not asked for one, and controls nothing', async () => {
    const server = await start()
    const socket = connect({
      port: server.port,
      host: HOST,
      servername: 'app.localhost',
      rejectUnauthorized: false,
      ...person,
    })
    await within(once(socket, 'secureConnect'), 'the handshake')
    socket.write(
      'GET / HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n',
    )
    const [answer] = await within(once(socket, 'data'), 'an answer')
    expect(String(answer)).toStartWith('HTTP/1.1 403')
    expect(String(answer)).toContain('CLIENT_CERTIFICATE_MISSING')
    socket.destroy()
  })

  test('a reload brings another authority; what cannot be is refused', async () => {
    const server = await start()
    await server.reload({ tls: own, clientCa: stranger.cert })
    expect(await rejection(connected(server, person))).toMatchObject({ code: 'CLIENT_CERTIFICATE_MISSING' })
    await (await connected(server, stranger)).disconnect()
    for (const options of [{ tls: own }, { tls: own, clientCa: 'no PEM' }])
      expect(await rejection(server.reload(options))).toMatchObject({ code: 'OPTION_INVALID' })
    expect(await rejection(startServer({ clientCa: authority.cert }))).toMatchObject({
      code: 'OPTION_INVALID',
    })
    for (const options of [{ cert: person.cert }, { cert: person.cert, key: stranger.key }, { pin: 'abc' }])
      expect(() => new TunnelClient({ server: 'https://localhost:1', ...options })).toThrow(
        expect.objectContaining({ code: 'OPTION_INVALID' }),
      )
  })
})

describe('a handshake that fails is one clear line:', () => {
  const failure = async (server: string, options: TunnelClientOptions = {}) => {
    const client = new TunnelClient({
      server,
      reconnect: false,
      subdomain: 'app',
      fetch: () => new Response(),
      ...options,
    })
    const error = await rejection(client.connect())
    return error instanceof TunnelError ? `${error.code} ${error.message}` : String(error)
  }
  const secure = async (certificate: Certificate) => {
    const { port } = await tlsInFront((await plain()).port, certificate)
    return `https://localhost:${port}`
  }
  const plain = async () => {
    const server = await startServer()
    closing.push(() => server.stop())
    return server
  }

  test('another scheme', async () => {
    const { port } = await plain()
    expect(await failure(`https://localhost:${port}`)).toStartWith(
      `SERVER_SCHEME The port of https://localhost:${port} does not speak TLS: use http://localhost:${port}.`,
    )
    const tls = await startServer({ tls: own })
    const named = await startServer({ certificates: { find: () => own } })
    closing.push(
      () => tls.stop(),
      () => named.stop(),
    )
    for (const { port: on } of [tls, named])
      expect(await failure(`http://localhost:${on}`)).toStartWith(
        `SERVER_SCHEME The port of http://localhost:${on} speaks TLS: use https://localhost:${on}.`,
      )
  })

  test('an unknown authority, another name, a certificate that has ended or not begun, another key', async () => {
    const unknown = await failure(await secure(own))
    expect(unknown).toMatch(
      /^SERVER_UNTRUSTED The certificate of https:\S+ is not trusted: no authority that this system trusts has signed it \(.+\)\. Trust its authority with --ca <file> or in this system, or accept any certificate with --insecure\.$/,
    )
    const elsewhere = await makeCertificate(['elsewhere.test'])
    const name = await failure(await secure(elsewhere), { ca: elsewhere.cert })
    expect(name).toMatch(
      /^SERVER_UNTRUSTED .* it is for another name \(.*elsewhere\.test\)\. Give --server a name that the certificate has\.$/,
    )
    const ended = makeDated(Date.UTC(2020, 0, 1), Date.UTC(2020, 1, 1))
    expect(await failure(await secure(ended), { ca: ended.cert })).toMatch(
      /^SERVER_UNTRUSTED .* it has expired \(.+\)\. Its operator has to renew it; if the clock of this machine is wrong, set it\.$/,
    )
    const early = makeDated(Date.UTC(2090, 0, 1), Date.UTC(2091, 0, 1))
    expect(await failure(await secure(early), { ca: early.cert })).toMatch(
      /^SERVER_UNTRUSTED .* it is not valid yet, by this machine's clock \(.+\)\. Set the clock\.$/,
    )
    expect(await failure(await secure(own), { ca: own.cert, pin: pinOf(stranger) })).toEndWith(
      `is not trusted: its key is ${pinOf(own)}, and ${pinOf(stranger)} is pinned. The server has a new key, or is another one: ask its operator before you change --pin.`,
    )
  })

  test('a name that the server has no certificate for', async () => {
    const server = await startServer({ certificates: { find: () => undefined } })
    closing.push(() => server.stop())
    expect(await failure(`https://localhost:${server.port}`)).toMatch(
      /^SERVER_UNREACHABLE .*: the server has no certificate for this name\. Give --server one of the server's domains\.$/,
    )
  })
})
