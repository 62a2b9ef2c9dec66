// TLS tunnels: many services with certificates of their own behind one port, told apart by the name that is asked for.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { once } from 'node:events'
import { connect, createServer, type Server, type Socket } from 'node:net'
import { createServer as createTlsServer, connect as secure, type TLSSocket, type TlsOptions } from 'node:tls'
import type { TunnelClientOptions } from '../../src/client/options.ts'
import { guarding, TunnelClient, type TunnelServer } from '../../src/index.ts'
import type { TunnelServerOptions } from '../../src/server/settings/options.ts'
import type { BoundedOptions } from '../support/bounded-server.ts'
import { type Certificate, makeCertificate } from '../support/certificates.ts'
import { eventually } from '../support/events.ts'
import { freePort } from '../support/ports.ts'
import { Random } from '../support/random.ts'
import { TcpProxy } from '../support/tcp-proxy.ts'
import { startServer } from '../support/tunnel.ts'
import { within } from '../support/within.ts'
import hellos from '../vectors/client-hellos.json' with { type: 'json' }

const HOST = '127.0.0.1'
const UNRECOGNIZED_NAME = '15030300020270'
const INTERNAL_ERROR = '15030300020250'

let one: Certificate
let two: Certificate
let person: Certificate
beforeAll(async () => {
  one = await makeCertificate(['one.localhost', '*.one.localhost'])
  two = await makeCertificate(['two.localhost'])
  person = await makeCertificate(['anna'])
})

const closing: (() => void)[] = []
afterAll(() => {
  for (const close of closing) close()
})

async function listening(server: Server): Promise<number> {
  closing.push(() => server.close())
  server.listen(0, HOST)
  await once(server, 'listening')
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('no port')
  return address.port
}

/** A TLS service: says which name it was asked for, then repeats what it hears. */
function service(certificate: Certificate, options: TlsOptions = {}): Promise<number> {
  const server = createTlsServer({ ...certificate, ...options }, socket => {
    socket.on('error', () => {})
    const peer = socket.getPeerCertificate().subject?.CN
    socket.write(
      `<${socket.servername}|${socket.getProtocol()}|${socket.alpnProtocol || ''}|${String(peer ?? '')}>`,
    )
    socket.pipe(socket)
  })
  server.on('tlsClientError', () => {})
  return listening(server)
}

interface Ends extends AsyncDisposable {
  readonly server: TunnelServer
  readonly client: TunnelClient
  readonly port: number
}

async function start(options: BoundedOptions = {}, clientOptions: TunnelClientOptions = {}): Promise<Ends> {
  const server = await startServer({ tlsPort: 0, ...options })
  const client = new TunnelClient({ server: `http://${HOST}:${server.port}`, ...clientOptions })
  return {
    server,
    client,
    port: server.tlsPort ?? 0,
    async [Symbol.asyncDispose]() {
      await client.disconnect()
      await server.stop()
    },
  }
}

/** What a visitor reads until the needle. Rejects when it is cut before. */
function readUntil(socket: Socket, needle: string): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>()
  let text = ''
  const take = (piece: Buffer) => {
    text += piece.toString('latin1')
    if (!text.includes(needle)) return
    socket.off('data', take)
    resolve(text)
  }
  socket.on('data', take)
  socket.on('error', reject)
  socket.on('close', () => reject(new Error(`closed after ${text}`)))
  promise.catch(() => {})
  return within(promise, needle)
}

function visit(port: number, servername: string, options: object = {}): TLSSocket {
  const socket = secure({ host: HOST, port, servername, rejectUnauthorized: false, ...options })
  closing.push(() => socket.destroy())
  return socket
}

const greeting = (socket: Socket) => readUntil(socket, '>')

/** The first bytes of a hello for this name, as a real TLS client sends them. */
async function helloFor(servername: string): Promise<Buffer> {
  const { promise, resolve } = Promise.withResolvers<Buffer>()
  const server = createServer(socket => {
    socket.on('error', () => {})
    socket.once('data', (bytes: Buffer) => {
      resolve(bytes)
      socket.destroy()
    })
  })
  const port = await listening(server)
  visit(port, servername).on('error', () => {})
  return within(promise, 'a hello')
}

/** What comes back for bytes in the clear, in hex, until the connection closes. */
async function answerTo(port: number, bytes: Uint8Array): Promise<string> {
  const socket = connect({ port, host: HOST })
  const pieces: Buffer[] = []
  socket.on('data', (piece: Buffer) => pieces.push(piece))
  socket.on('error', () => {})
  socket.write(bytes)
  await within(new Promise<void>(resolve => socket.on('close', () => resolve())), 'the end')
  return Buffer.concat(pieces).toString('hex')
}

const codeOf = (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    () => 'granted',
    (error: unknown) => (error instanceof Error && 'code' in error ? error.code : error),
  )

describe('passed on', () => {
  for (const version of ['TLSv1.2', 'TLSv1.3'] as const) {
    test(`two services on one port each see their own name and show their own certificate, ${version}`, async () => {
      await using ends = await start()
      const [first, second] = await Promise.all([
        ends.client.tls({ port: await service(one), host: HOST, subdomain: 'one' }),
        ends.client.tls({ port: await service(two), host: HOST, subdomain: 'two' }),
      ])
      expect(first.url).toBe(`tls://one.localhost:${ends.port}`)
      expect([first.kind, first.name, first.port]).toEqual(['tls', 'one', undefined])
      expect(second.url).toBe(`tls://two.localhost:${ends.port}`)
      for (const [name, { cert }] of [
        ['one', one],
        ['two', two],
      ] as const) {
        // Verified against the service's own certificate: nobody in between has the key.
        const visitor = visit(ends.port, `${name}.localhost`, {
          ca: cert,
          rejectUnauthorized: true,
          minVersion: version,
          maxVersion: version,
        })
        expect(await greeting(visitor)).toBe(`<${name}.localhost|${version}||>`)
        visitor.write('and back.')
        expect(await readUntil(visitor, '.')).toBe('and back.')
      }
    })
  }

  test('a certificate of the visitor reaches the service', async () => {
    await using ends = await start()
    const port = await service(one, { requestCert: true, rejectUnauthorized: true, ca: [person.cert] })
    await ends.client.tls({ port, host: HOST, subdomain: 'one' })
    const known = visit(ends.port, 'one.localhost', person)
    expect(await greeting(known)).toContain('|anna>')
    const stranger = visit(ends.port, 'one.localhost')
    expect(await greeting(stranger).catch(() => 'refused')).toBe('refused')
  })

  test('ALPN is between visitor and service', async () => {
    await using ends = await start()
    const port = await service(one, { ALPNProtocols: ['h2', 'http/1.1'] })
    await ends.client.tls({ port, host: HOST, subdomain: 'one' })
    expect(await greeting(visit(ends.port, 'one.localhost', { ALPNProtocols: ['h2'] }))).toContain('|h2|')
  })

  test('upper case, a wildcard, a unix socket', async () => {
    await using ends = await start()
    const unix = `${process.env.TMPDIR ?? '/tmp'}/localtunnels-tls-${process.pid}.sock`
    const server = createTlsServer(one, socket => socket.end(`<${socket.servername}>`))
    server.listen(unix)
    await once(server, 'listening')
    closing.push(() => server.close())
    await ends.client.tls({ unix, subdomain: 'one', wildcard: true })
    for (const name of ['ONE.Localhost', 'a.one.localhost', 'a.b.one.localhost'])
      expect((await greeting(visit(ends.port, name))).toLowerCase()).toBe(`<${name.toLowerCase()}>`)
  })

  test('a hello in single bytes, and in pieces of any size', async () => {
    await using ends = await start()
    await ends.client.tls({ port: await service(one), host: HOST, subdomain: 'one' })
    const random = new Random(1)
    for (const sizeOf of [() => 1, () => 1 + random.below(300)]) {
      const slicer = createServer(socket => {
        const there = connect({ port: ends.port, host: HOST, noDelay: true })
        there.on('error', () => {}).pipe(socket)
        socket.on('error', () => {})
        let queue = Promise.resolve()
        socket.on('data', (bytes: Buffer) => {
          queue = queue.then(async () => {
            for (let at = 0; at < bytes.length; ) {
              const size = sizeOf()
              await new Promise(resolve => there.write(bytes.subarray(at, at + size), resolve))
              await new Promise(resolve => setImmediate(resolve))
              at += size
            }
          })
        })
      })
      const visitor = visit(await listening(slicer), 'one.localhost')
      expect(await greeting(visitor)).toContain('<one.localhost|')
      visitor.destroy()
    }
  })

  test('megabytes both ways', async () => {
    await using ends = await start()
    await ends.client.tls({ port: await service(one), host: HOST, subdomain: 'one' })
    const visitor = visit(ends.port, 'one.localhost')
    await greeting(visitor)
    const bytes = Buffer.alloc(8_000_000, 'x')
    let received = 0
    const all = new Promise<void>(resolve =>
      visitor.on('data', piece => {
        received += piece.length
        if (received === bytes.length) resolve()
      }),
    )
    visitor.write(bytes)
    await within(all, 'all bytes')
  })

  test('a PROXY header tells the service who connects, in front of the hello', async () => {
    await using ends = await start()
    const { promise, resolve } = Promise.withResolvers<Buffer>()
    const raw = createServer(socket => {
      socket.on('error', () => {})
      socket.once('data', resolve)
    })
    await ends.client.tls({ port: await listening(raw), host: HOST, subdomain: 'one', proxyProtocol: 'v1' })
    const visitor = visit(ends.port, 'one.localhost')
    visitor.on('error', () => {})
    const first = (await within(promise, 'the first bytes')).toString('latin1')
    expect(first).toStartWith(`PROXY TCP4 127.0.0.1 127.0.0.1 ${visitor.localPort} ${ends.port}\r\n\x16\x03`)
  })
})

describe('hellos of other programs', () => {
  test.each(hellos.map(({ by, name, hex }) => [by, name, hex] as const))('%s', async (_by, name, hex) => {
    await using ends = await start({ domains: ['tunnel.example'] })
    const { promise, resolve } = Promise.withResolvers<string>()
    const raw = createServer(socket => {
      socket.on('error', () => {})
      let seen = ''
      socket.on('data', (bytes: Buffer) => {
        seen += bytes.toString('hex')
        if (seen.length >= hex.length) resolve(seen)
      })
    })
    await ends.client.tls({ port: await listening(raw), host: HOST, subdomain: 'app' })
    const hello = Buffer.from(hex, 'hex')
    if (name === null) return expect(await answerTo(ends.port, hello)).toBe(UNRECOGNIZED_NAME)
    const visitor = connect({ port: ends.port, host: HOST })
    visitor.on('error', () => {}).write(hello)
    expect(await within(promise, 'the hello')).toBe(hex)
    visitor.destroy()
  })
})

describe('refused', () => {
  test('unknown names, no name and addresses get an alert', async () => {
    await using ends = await start()
    await ends.client.tls({ port: await service(one), host: HOST, subdomain: 'one' })
    await ends.client.http({ subdomain: 'web', fetch: () => new Response('web') })
    for (const name of [
      'other.localhost',
      'web.localhost',
      'a.one.localhost',
      'localhost',
      'one.example',
      '',
    ])
      expect([name, await answerTo(ends.port, await helloFor(name))]).toEqual([name, UNRECOGNIZED_NAME])
    const visitor = visit(ends.port, 'other.localhost')
    const [error] = await within(once(visitor, 'error'), 'an error')
    expect(String(error.code ?? error)).toMatch(/UNRECOGNIZED_NAME/)
  })

  test('what is not TLS is closed without a word', async () => {
    await using ends = await start()
    for (const text of [
      'GET / HTTP/1.1\r\n\r\n',
      'SSH-2.0-x\r\n',
      '\x16\x03\x01\x00\x05hello',
      '\x16\x03\x01\xff\xff',
    ])
      expect([text, await answerTo(ends.port, Buffer.from(text, 'latin1'))]).toEqual([text, ''])
  })

  test('a name that is held, a server without the port, the JSON wire', async () => {
    await using ends = await start()
    await ends.client.http({ subdomain: 'one', fetch: () => new Response('web') })
    expect(await codeOf(ends.client.tls({ port: 1, subdomain: 'one' }))).toBe('NAME_TAKEN')
    const without = await startServer()
    await using other = new TunnelClient({ server: `http://${HOST}:${without.port}` })
    expect(await codeOf(other.tls({ port: 1 }))).toBe('KIND_REFUSED')
    await using json = new TunnelClient({ server: `http://${HOST}:${without.port}`, wire: 'json' })
    expect(await codeOf(json.tls({ port: 1 }))).toBe('KIND_REFUSED')
    expect(without.tlsPort).toBeUndefined()
    await without.stop()
  })

  test('a service that is down: an alert, not a broken connection', async () => {
    await using ends = await start()
    const down = await listening(createServer())
    closing.pop()?.()
    await ends.client.tls({ port: down, host: HOST, subdomain: 'one' })
    expect(await answerTo(ends.port, await helloFor('one.localhost'))).toBe(INTERNAL_ERROR)
  })

  test('more visitors than a tunnel may have', async () => {
    await using ends = await start({ limits: { maxStreams: 1 } })
    await ends.client.tls({ port: await service(one), host: HOST, subdomain: 'one' })
    await greeting(visit(ends.port, 'one.localhost'))
    expect(await answerTo(ends.port, await helloFor('one.localhost'))).toBe(INTERNAL_ERROR)
  })
})

describe('clients that come and go', () => {
  test('a tunnel that is given back cuts its visitors after drainTimeoutMs, and no others', async () => {
    await using ends = await start({}, { drainTimeoutMs: 200 })
    const first = await ends.client.tls({ port: await service(one), host: HOST, subdomain: 'one' })
    await ends.client.tls({ port: await service(two), host: HOST, subdomain: 'two' })
    const [cut, stays] = [visit(ends.port, 'one.localhost'), visit(ends.port, 'two.localhost')]
    await Promise.all([greeting(cut), greeting(stays)])
    const [error] = await Promise.all([within(once(cut, 'error'), 'a reset'), first.close()])
    expect(error[0].code).toBe('ECONNRESET')
    stays.write('still here.')
    expect(await readUntil(stays, '.')).toBe('still here.')
    expect(await answerTo(ends.port, await helloFor('one.localhost'))).toBe(UNRECOGNIZED_NAME)
  })

  test('who comes while the client is away waits for it', async () => {
    await using ends = await start()
    const network = new TcpProxy(ends.server.port)
    await using client = new TunnelClient({ server: `http://${HOST}:${network.port}` })
    await client.tls({ port: await service(one), host: HOST, subdomain: 'one' })
    network.isDown = true
    const lost = new Promise(resolve => ends.server.on('disconnection', resolve))
    network.cutAll()
    await within(lost, 'the loss')
    const visitor = visit(ends.port, 'one.localhost')
    const greeted = greeting(visitor)
    await once(visitor, 'connect')
    network.isDown = false
    expect(await greeted).toContain('<one.localhost|')
    network[Symbol.dispose]()
  })

  test('who waits in vain gets an alert', async () => {
    await using ends = await start({ limits: { holdTimeoutMs: 250, leaseMs: 20_000 } })
    const network = new TcpProxy(ends.server.port)
    const options = { server: `http://${HOST}:${network.port}`, reconnect: false }
    await using client = new TunnelClient(options)
    await client.tls({ port: await service(one), host: HOST, subdomain: 'one' })
    const lost = new Promise(resolve => ends.server.on('disconnection', resolve))
    network.cutAll()
    await within(lost, 'the loss')
    expect(await answerTo(ends.port, await helloFor('one.localhost'))).toBe(INTERNAL_ERROR)
    network[Symbol.dispose]()
  })

  test('a server that stops lets visitors finish', async () => {
    const ends = await start()
    await ends.client.tls({ port: await service(one), host: HOST, subdomain: 'one' })
    const visitor = visit(ends.port, 'one.localhost')
    await greeting(visitor)
    const stopped = ends.server.stop()
    visitor.write('last words.')
    expect(await readUntil(visitor, '.')).toBe('last words.')
    visitor.destroy()
    await within(stopped, 'the stop')
    await ends.client.disconnect()
  })
})

describe('hostile visitors', () => {
  const beginHello = async (port: number): Promise<Socket> => {
    const socket = connect({ port, host: HOST })
    closing.push(() => socket.destroy())
    socket.on('error', () => {})
    await once(socket, 'connect')
    socket.write(Buffer.from('16030100', 'hex'))
    return socket
  }
  const closed = (socket: Socket) =>
    within(new Promise<void>(resolve => socket.on('close', () => resolve())), 'the cut')

  test('a hello that never ends is cut when its time is over', async () => {
    await using ends = await start({ limits: { headTimeoutMs: 250 } })
    await closed(await beginHello(ends.port))
  })

  test('of too many hellos the oldest are cut, and whoever means it is served', async () => {
    await using ends = await start({ limits: { headTimeoutMs: 0, maxHellos: 4 } })
    await ends.client.tls({ port: await service(one), host: HOST, subdomain: 'one' })
    const sockets: Socket[] = []
    for (let index = 0; index < 5; index++) sockets.push(await beginHello(ends.port))
    const [oldest, ...others] = sockets
    if (oldest !== undefined) await closed(oldest)
    expect(others.filter(socket => socket.destroyed)).toEqual([])
    // It is the fifth again, for a moment.
    const second = others[0] && closed(others[0])
    expect(await greeting(visit(ends.port, 'one.localhost'))).toContain('<one')
    await second
  })

  test('whatever they send, the next one is served', async () => {
    const errors: Error[] = []
    await using ends = await start({ limits: { headTimeoutMs: 500 } })
    ends.server.on('error', error => errors.push(error))
    await ends.client.tls({ port: await service(one), host: HOST, subdomain: 'one' })
    const hello = await helloFor('one.localhost')
    const random = new Random(7)
    for (let round = 0; round < 300; round++) {
      const bytes = Buffer.from(hello.subarray(0, 1 + random.below(hello.length)))
      for (let index = 0; index <= random.below(8); index++)
        bytes[random.below(bytes.length)] = random.below(256)
      const socket = connect({ port: ends.port, host: HOST })
      socket.on('error', () => {})
      socket.write(round % 3 === 0 ? Buffer.from(bytes.toReversed()) : bytes)
      if (round % 2 === 0) socket.end()
      else socket.once('connect', () => setImmediate(() => socket.resetAndDestroy()))
      await within(new Promise<void>(resolve => socket.resume().on('close', () => resolve())), 'the end')
    }
    expect(await greeting(visit(ends.port, 'one.localhost'))).toContain('<one')
    expect(errors).toEqual([])
  }, 60_000)
})

describe('on the port of the server itself', () => {
  let own: Certificate
  beforeAll(async () => {
    own = await makeCertificate(['localhost', 'web.localhost'])
  })

  const shared = async (options: TunnelServerOptions = {}) => {
    const port = freePort()
    const server = await startServer({ port, tlsPort: port, tls: own, ...options })
    const client = new TunnelClient({ server: `https://localhost:${port}`, verifyServer: false })
    return {
      server,
      client,
      port,
      async [Symbol.asyncDispose]() {
        await client.disconnect()
        await server.stop()
      },
    }
  }
  const get = async (socket: Socket, host: string, lines = ''): Promise<string> => {
    socket.write(`GET / HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n${lines}\r\n`)
    let text = ''
    socket.on('data', piece => {
      text += piece.toString()
    })
    await within(once(socket, 'end'), 'the end of the answer')
    return text
  }

  test('TLS tunnels pass, everything else is answered with its certificate', async () => {
    await using ends = await shared()
    const told = (request: Request) =>
      new Response(`${request.headers.get('x-forwarded-proto')} ${request.headers.get('x-forwarded-for')}`)
    const tls = await ends.client.tls({ port: await service(one), host: HOST, subdomain: 'one' })
    const web = await ends.client.http({ subdomain: 'web', fetch: told })
    expect([tls.url, web.url]).toEqual([
      `tls://one.localhost:${ends.port}`,
      `https://web.localhost:${ends.port}`,
    ])
    const passed = visit(ends.port, 'one.localhost', { ca: one.cert, rejectUnauthorized: true })
    expect(await greeting(passed)).toContain('<one.localhost|')
    const ours = { ca: own.cert, rejectUnauthorized: true }
    expect(await get(visit(ends.port, 'web.localhost', ours), 'web.localhost')).toContain(`https ${HOST}`)
    expect(await get(visit(ends.port, 'localhost', ours), 'localhost')).toContain('localtunnels')
    expect(await get(visit(ends.port, 'other.example'), 'other.example')).toContain('HOST_UNKNOWN')
    expect(await get(visit(ends.port, ''), 'web.localhost')).toContain(' 200 ')
    const plain = await answerTo(ends.port, Buffer.from('GET / HTTP/1.1\r\n\r\n'))
    expect(Buffer.from(plain, 'hex').toString()).toMatch(/^HTTP\/1\.1 400 .*use https:/s)
    expect(ends.server.tlsPort).toBe(ends.port)
  })

  test('bodies of any length, both ways', async () => {
    await using ends = await shared()
    await ends.client.http({
      subdomain: 'web',
      fetch: async request => new Response(await request.arrayBuffer()),
    })
    const body = Buffer.alloc(8_000_000, 'x')
    const answer = await fetch(`https://localhost:${ends.port}/`, {
      method: 'POST',
      body,
      headers: { host: 'web.localhost' },
      tls: { rejectUnauthorized: false },
    })
    expect((await answer.arrayBuffer()).byteLength).toBe(body.length)
  })

  test('an answer cut by the app is cut for the visitor, never a clean end', async () => {
    await using ends = await shared()
    const app = createServer(socket => {
      socket.on('error', () => {})
      socket.once('data', () => {
        socket.write('HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nhalf', () => socket.resetAndDestroy())
      })
    })
    await ends.client.http({ subdomain: 'web', port: await listening(app), host: HOST })
    const visitor = visit(ends.port, 'web.localhost')
    visitor.write('GET / HTTP/1.1\r\nHost: web.localhost\r\n\r\n')
    const [error] = await within(once(visitor, 'error'), 'a reset')
    expect(error.code).toBe('ECONNRESET')
  })

  test('a visitor that leaves ends what the app does for it', async () => {
    await using ends = await shared()
    const { promise, resolve } = Promise.withResolvers<void>()
    const { promise: begun, resolve: begin } = Promise.withResolvers<void>()
    await ends.client.http({
      subdomain: 'web',
      fetch: request => {
        request.signal.addEventListener('abort', () => resolve())
        begin()
        return new Promise<Response>(() => {})
      },
    })
    const visitor = visit(ends.port, 'web.localhost')
    visitor.write('GET / HTTP/1.1\r\nHost: web.localhost\r\n\r\n')
    await begun
    visitor.destroy()
    await within(promise, 'the abort')
  })

  test('a new certificate is shown from the next handshake on', async () => {
    await using ends = await shared()
    const { port } = ends
    const shown = async () => {
      const visitor = visit(port, 'localhost')
      await once(visitor, 'secureConnect')
      return visitor.getPeerCertificate().subject.CN
    }
    expect(await shown()).toBe('localhost')
    await ends.server.reload({ port, tlsPort: port, tls: two })
    expect(await shown()).toBe('two.localhost')
    expect(await codeOf(ends.server.reload({ port, tls: two }))).toBe('OPTION_INVALID')
  })

  test('behind a proxy that sends PROXY headers, both kinds know the visitor', async () => {
    await using ends = await shared({ trustedProxies: [HOST], acceptProxyProtocol: true })
    const { promise, resolve } = Promise.withResolvers<string>()
    ends.server.on('visitorConnected', ({ remoteAddress }) => resolve(remoteAddress))
    const proxy = new TcpProxy(ends.port)
    proxy.preface = Buffer.from('PROXY TCP4 203.0.113.7 192.0.2.1 5000 443\r\n')
    await using client = new TunnelClient({ server: `https://localhost:${proxy.port}`, verifyServer: false })
    const told = (request: Request) => new Response(request.headers.get('x-forwarded-for'))
    await client.http({ subdomain: 'web', fetch: told })
    await client.tls({ port: await service(one), host: HOST, subdomain: 'one' })
    expect(await get(visit(proxy.port, 'web.localhost'), 'web.localhost')).toEndWith('203.0.113.7')
    await greeting(visit(proxy.port, 'one.localhost'))
    expect(await within(promise, 'the visitor')).toBe('203.0.113.7')
    await client.disconnect()
    proxy[Symbol.dispose]()
  })

  test('what cannot be', async () => {
    const outcome = (options: TunnelServerOptions) =>
      codeOf(startServer(options).then(server => server.stop()))
    const port = freePort()
    expect(await outcome({ port, tlsPort: port })).toBe('OPTION_INVALID')
    expect(await outcome({ port, tlsPort: port, tls: { cert: own.cert, key: one.key } })).toBe('TLS_INVALID')
    expect(await outcome({ tlsPort: 65_536 })).toBe('OPTION_INVALID')
    const taken = await listening(createServer())
    expect(await outcome({ port, tlsPort: taken })).toBe('PORT_IN_USE')
    // The other port was given back.
    expect(await outcome({ port })).toBe('granted')
  })
})

test('a guard decides before the app hears of a TLS connection: walls only', async () => {
  let heard = 0
  const behind = createServer(socket => {
    heard++
    socket.destroy()
  })
  const port = await listening(behind)
  await using ends = await start({ guarding: guarding() })
  const { client, server } = ends
  await client.tls({ port, subdomain: 'denied', guard: { deny: ['127.0.0.0/8'] } })
  const refused: unknown[] = []
  server.on('visitorDisconnected', ({ error }) => refused.push(error))
  const visitor = visit(ends.port, 'denied.localhost')
  expect(await codeOf(once(visitor, 'secureConnect'))).toBe('ERR_SSL_TLSV1_ALERT_INTERNAL_ERROR')
  await within(
    eventually(() => refused.length > 0, 'the refusal'),
    'the refusal',
  )
  expect([refused, heard]).toEqual([['ADDRESS_REFUSED'], 0])
  const two = await service(one)
  await client.tls({ port: two, subdomain: 'one', guard: { allow: ['127.0.0.0/8'] } })
  expect(await greeting(visit(ends.port, 'one.localhost'))).toContain('<one.localhost|')
  expect(await codeOf(client.tls({ port, subdomain: 'two', guard: { password: 'correct horse' } }))).toBe(
    'OPTION_INVALID',
  )
})
