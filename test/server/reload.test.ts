// A server that is told other options while it runs: what they do not allow ends with its code, everything else goes on.

import { beforeAll, describe, expect, test } from 'bun:test'
import { connect, createServer, type Socket } from 'node:net'
import { connect as secure, type TLSSocket } from 'node:tls'
import type { TunnelClientOptions } from '../../src/client/options.ts'
import { TunnelClient, type TunnelServer } from '../../src/index.ts'
import type { TunnelServerOptions } from '../../src/server/settings/options.ts'
import { ask } from '../support/ask.ts'
import { type Certificate, makeCertificate } from '../support/certificates.ts'
import { clientHello } from '../support/client-hello.ts'
import { NaiveJsonClient } from '../support/json-client.ts'
import { freePort } from '../support/ports.ts'
import { rawDial } from '../support/raw.ts'
import { TcpProxy } from '../support/tcp-proxy.ts'
import { startServer } from '../support/tunnel.ts'
import { within } from '../support/within.ts'

const clientOf = (server: TunnelServer, options: TunnelClientOptions = {}) =>
  new TunnelClient({ server: `http://127.0.0.1:${server.port}`, wire: 'streams', ...options })

const fixed = (text: string) => () => new Response(text)

/** The code of the next error of a client, or that with which it closes. */
function nextFault(client: TunnelClient): Promise<unknown> {
  const { promise, resolve } = Promise.withResolvers<unknown>()
  const codeOf = (error: Error | undefined) => (error && 'code' in error ? error.code : error)
  client.on('error', error => resolve(codeOf(error)))
  client.on('close', ({ error }) => resolve(codeOf(error)))
  return within(promise, 'an error or the end of the client')
}

const codeOf = (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    () => 'nothing',
    (error: unknown) => (error instanceof Error && 'code' in error ? error.code : error),
  )

async function echoService(): Promise<{ port: number; close(): void }> {
  const service = createServer({ allowHalfOpen: true }, socket => {
    socket.on('error', () => {})
    socket.pipe(socket)
  })
  await new Promise<void>(resolve => service.listen(0, '127.0.0.1', resolve))
  const address = service.address()
  if (address === null || typeof address === 'string') throw new Error('no port')
  return { port: address.port, close: () => service.close() }
}

/** An app that answers for as long as its visitor reads, or holds a WebSocket. */
function feed() {
  return Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    fetch(request, server) {
      if (server.upgrade(request)) return undefined
      if (new URL(request.url).pathname !== '/feed') return new Response('here')
      return new Response(
        new ReadableStream({
          start: controller => controller.enqueue('first'),
        }),
      )
    },
    websocket: { message() {} },
  })
}

const firstOf = (socket: Socket, event: string): Promise<void> =>
  within(new Promise<void>(resolve => socket.once(event, () => resolve())), event)

describe('what is allowed goes on', () => {
  test('not one request fails while everything that may change does', async () => {
    const server = await startServer()
    await using client = clientOf(server, { subdomain: 'app', fetch: fixed('here') })
    await client.connect()
    await using upload = clientOf(server, {
      subdomain: 'upload',
      fetch: async r => new Response(await r.text()),
    })
    await upload.connect()
    let isOver = false
    let count = 0
    const visit = async () => {
      const headers = { host: 'app.localhost' }
      while (!isOver) {
        const answer = await fetch(`http://127.0.0.1:${server.port}/`, { headers })
        expect([answer.status, await answer.text()]).toEqual([200, 'here'])
        count++
      }
    }
    const slow = rawDial(server.port)
    const visitors = Array.from({ length: 8 }, visit)
    const uploading = await slow
    await uploading.send('POST / HTTP/1.1\r\nHost: upload.localhost\r\nContent-Length: 20\r\n\r\n')
    for (let round = 0; round < 20; round++) {
      await uploading.send('x')
      await server.reload({
        domains: ['localhost', `round-${round}.test`],
        reservedNames: [`name-${round}`],
        tcpPorts: `${20_000 + round}`,
        trustedProxies: [`10.0.0.${round}`],
        publicUrl: `https://round-${round}.test`,
        limits: { maxStreams: 100 + round, originTimeoutMs: 5_000 + round },
      })
      const before = count
      while (count < before + 20) await new Promise(resolve => setImmediate(resolve))
    }
    isOver = true
    await Promise.all(visitors)
    expect(await uploading.until('x'.repeat(20))).toContain(' 200 ')
    expect(count).toBeGreaterThanOrEqual(400)
    await server.stop()
  })

  test('new limits bound what begins after, also on connections that were there', async () => {
    const server = await startServer()
    await using client = clientOf(server, { subdomain: 'app', fetch: fixed('here') })
    await client.connect()
    const visitor = await rawDial(server.port)
    const post = 'POST / HTTP/1.1\r\nHost: app.localhost\r\nContent-Length: 4\r\n\r\nbody'
    await visitor.send(post)
    expect(await visitor.until('here')).toContain(' 200 ')
    await server.reload({ limits: { maxBodyBytes: 3 } })
    await visitor.send(post)
    expect(await visitor.until('BODY_TOO_LARGE')).toContain('413')
    visitor.socket.terminate()
    await server.stop()
  })

  test('trust in a proxy ends with the option, also on its open connections', async () => {
    const server = await startServer({ trustedProxies: ['127.0.0.1'] })
    const told = (request: Request) => new Response(`<${request.headers.get('x-forwarded-for')}>`)
    await using client = clientOf(server, { subdomain: 'app', fetch: told })
    await client.connect()
    const proxy = await rawDial(server.port)
    const get = 'GET / HTTP/1.1\r\nHost: app.localhost\r\nX-Forwarded-For: 203.0.113.7\r\n\r\n'
    await proxy.send(get)
    expect(await proxy.until('>')).toContain('<203.0.113.7, 127.0.0.1>')
    await server.reload({})
    await proxy.send(get)
    expect(await proxy.until('>')).toContain('<127.0.0.1>')
    proxy.socket.terminate()
    await server.stop()
  })

  test('another domain: tunnels move there, and clients hear their new URL', async () => {
    const server = await startServer({ domains: ['old.test'] })
    await using client = clientOf(server, { subdomain: 'app', fetch: fixed('here') })
    await client.connect()
    expect(client.getTunnelUrl()).toBe(`http://app.old.test:${server.port}`)
    const moved = new Promise<string>(resolve => client.on('registered', ({ url }) => resolve(url)))
    await server.reload({ domains: ['new.test'], publicUrl: 'https://new.test' })
    expect(await within(moved, 'the new URL')).toBe('https://app.new.test')
    expect(client.getTunnelUrl()).toBe('https://app.new.test')
    expect(await ask(server.port, 'app.new.test')).toMatchObject({ status: 200, body: 'here' })
    expect(await ask(server.port, 'app.old.test')).toMatchObject({ code: 'HOST_UNKNOWN' })
    await server.stop()
  })
})

describe('what is not allowed any more ends with its code', () => {
  const rule = (names: string[], kinds: ('http' | 'tcp')[] = ['http']) => ({ token: 'gone', names, kinds })
  const cases: [what: string, after: TunnelServerOptions, code: string][] = [
    ['a reserved name', { tokens: ['conn', 'stays', 'gone'], reservedNames: ['Gone'] }, 'NAME_RESERVED'],
    ['a name that its token has not', { tokens: ['conn', 'stays', rule(['other-*'])] }, 'NOT_ALLOWED'],
    ['a kind that its token has not', { tokens: ['conn', 'stays', rule(['gone'], ['tcp'])] }, 'NOT_ALLOWED'],
    ['a token of its own that is gone', { tokens: ['conn', 'stays'] }, 'TOKEN_REFUSED'],
  ]
  test.each(cases)('%s', async (_what, after, code) => {
    const server = await startServer({ tokens: ['conn', 'stays', 'gone'] })
    await using client = clientOf(server, { token: 'conn' })
    for (const name of ['stays', 'gone'])
      await client.http({ subdomain: name, fetch: fixed(name), token: name })
    expect(await ask(server.port, 'gone.localhost')).toMatchObject({ body: 'gone' })
    const fault = nextFault(client)
    const reason = new Promise(resolve => server.on('disconnection', resolve))
    await server.reload(after)
    expect(await fault).toBe(code)
    expect(await reason).toEqual({ subdomain: 'gone', reason: code })
    expect(await ask(server.port, 'gone.localhost')).toMatchObject({ code: 'TUNNEL_NOT_FOUND' })
    expect(await ask(server.port, 'stays.localhost')).toMatchObject({ body: 'stays' })
    expect(client.isConnected()).toBe(true)
    expect(client.tunnels.map(tunnel => tunnel.name)).toEqual(['stays'])
    expect(server.getStats(true).subdomains).toEqual(['stays'])
    await server.stop()
  })

  test('a port outside of the new range: its visitors are cut, those of another go on', async () => {
    const one = freePort()
    let other = freePort()
    while (other === one) other = freePort()
    const service = await echoService()
    const server = await startServer({ tcpPorts: `${one},${other}` })
    await using client = clientOf(server)
    const tunnels = [one, other].map(remotePort =>
      client.tcp({ port: service.port, host: '127.0.0.1', remotePort }),
    )
    await Promise.all(tunnels)
    const [stays, goes] = [one, other].map(port => connect({ port, host: '127.0.0.1' }))
    if (stays === undefined || goes === undefined) throw new Error('two sockets')
    goes.on('error', () => {})
    for (const socket of [stays, goes]) {
      socket.write('x')
      await firstOf(socket, 'data')
    }
    const cut = firstOf(goes, 'close')
    const fault = nextFault(client)
    await server.reload({ tcpPorts: `${one}` })
    expect(await fault).toBe('NOT_ALLOWED')
    await cut
    stays.write('y')
    await firstOf(stays, 'data')
    const refused = connect({ port: other, host: '127.0.0.1' })
    const why = new Promise(resolve => refused.on('error', error => resolve('code' in error && error.code)))
    expect(await within(why, 'a refusal')).toBe('ECONNREFUSED')
    stays.on('error', () => {})
    const closed = new Promise<unknown>(resolve => client.on('close', ({ error }) => resolve(error)))
    await server.reload({ tcpPorts: '' })
    expect(await within(closed, 'the end')).toMatchObject({ code: 'KIND_REFUSED' })
    service.close()
    await server.stop()
  })

  test('a connection whose token is gone ends for good; others go on; what is under way of it is cut', async () => {
    const server = await startServer({ tokens: ['one', 'two'] })
    await using gone = clientOf(server, { token: 'one', subdomain: 'gone', fetch: fixed('gone') })
    await using stays = clientOf(server, { token: 'two', subdomain: 'stays', fetch: fixed('stays') })
    await Promise.all([gone.connect(), stays.connect()])
    const closed = new Promise(resolve => gone.on('close', ({ error }) => resolve(error)))
    await server.reload({ tokens: ['two', 'three'] })
    expect(await within(closed, 'the end')).toMatchObject({ code: 'TOKEN_REFUSED' })
    expect(gone.getState()).toBe('closed')
    expect(await ask(server.port, 'stays.localhost')).toMatchObject({ body: 'stays' })
    expect(await ask(server.port, 'gone.localhost')).toMatchObject({ code: 'TUNNEL_NOT_FOUND' })
    expect(stays.isConnected()).toBe(true)
    await server.stop()
  })

  test("with a tunnel's own token goes what is under way of it: long answers, WebSockets, TLS; its neighbours stay", async () => {
    const tokens = ['connection', { token: 'own', names: ['gone', 'bytes'] }]
    const server = await startServer({ tokens, tlsPort: 0 })
    await using client = clientOf(server, { token: 'connection' })
    using app = feed()
    const service = await echoService()
    await client.http({ subdomain: 'stays', port: app.port ?? 0 })
    await client.http({ subdomain: 'gone', port: app.port ?? 0, token: 'own' })
    await client.tls({ subdomain: 'bytes', port: service.port, token: 'own' })
    const openOn = async (host: string) => {
      const answer = await fetch(`http://127.0.0.1:${server.port}/feed`, { headers: { host } })
      const reader = answer.body?.getReader()
      await reader?.read()
      const socket = new WebSocket(`ws://127.0.0.1:${server.port}/`, { headers: { host } } as never)
      const closed = new Promise<void>(resolve => socket.addEventListener('close', () => resolve()))
      await within(new Promise(resolve => socket.addEventListener('open', resolve)), 'a WebSocket')
      const ended = (async () => {
        for (;;) if ((await reader?.read())?.done !== false) return 'complete'
      })().catch(() => 'cut')
      return { ended, closed, socket }
    }
    const [stays, gone] = [await openOn('stays.localhost'), await openOn('gone.localhost')]
    const raw = connect(server.tlsPort ?? 0, '127.0.0.1')
    raw.on('error', () => {})
    raw.write(clientHello('bytes.localhost'))
    await firstOf(raw, 'data')
    const rawClosed = firstOf(raw, 'close')
    await server.reload({ tokens: ['connection'], tlsPort: 0 })
    expect(await within(gone.ended, 'the end of the answer')).toBe('cut')
    await within(gone.closed, 'the end of the WebSocket')
    await rawClosed
    expect(stays.socket.readyState).toBe(WebSocket.OPEN)
    expect(await ask(server.port, 'gone.localhost')).toMatchObject({ code: 'TUNNEL_NOT_FOUND' })
    expect(await ask(server.port, 'stays.localhost')).toMatchObject({ body: 'here' })
    stays.socket.close()
    await stays.closed
    service.close()
    await client.disconnect()
    await server.stop()
  })

  test('a server that comes to want tokens keeps who showed a right one all along', async () => {
    const server = await startServer()
    await using shown = clientOf(server, { token: 'one', subdomain: 'shown', fetch: fixed('shown') })
    await using without = clientOf(server, { subdomain: 'without', fetch: fixed('without') })
    await Promise.all([shown.connect(), without.connect()])
    const fault = nextFault(without)
    await server.reload({ tokens: ['one'] })
    expect(await fault).toBe('TOKEN_REFUSED')
    expect(await ask(server.port, 'shown.localhost')).toMatchObject({ body: 'shown' })
    await server.reload({})
    await server.reload({ tokens: ['one'] })
    expect(shown.isConnected()).toBe(true)
    await server.stop()
  })

  test('a request under way on a name that is taken back is still answered', async () => {
    const server = await startServer()
    const { promise: begun, resolve: begin } = Promise.withResolvers<void>()
    const { promise: may, resolve: answer } = Promise.withResolvers<void>()
    await using client = clientOf(server)
    await client.http({ subdomain: 'other', fetch: fixed('other') })
    await client.http({
      subdomain: 'gone',
      fetch: async () => {
        begin()
        await may
        return new Response('late')
      },
    })
    const asking = ask(server.port, 'gone.localhost')
    await begun
    const fault = nextFault(client)
    await server.reload({ reservedNames: ['gone'] })
    expect(await fault).toBe('NAME_RESERVED')
    answer()
    expect(await asking).toMatchObject({ status: 200, body: 'late' })
    await server.stop()
  })

  test('JSON wire: requests that wait for a client are over with it when its last name is taken back', async () => {
    await using server = await startServer({ tokens: ['t'], limits: { originTimeoutMs: 0 } })
    using client = new NaiveJsonClient(server.port, () => undefined, '', 't')
    await client.register('app')
    const answer = ask(server.port, 'app.localhost')
    await client.next('request')
    await server.reload({ tokens: [{ token: 't', names: ['other'] }], limits: { originTimeoutMs: 0 } })
    expect((await within(answer, 'the answer')).code).toBe('CLIENT_GONE')
  })

  test('JSON wire: the last name of a connection goes with a word, one of several without', async () => {
    const server = await startServer()
    using client = new NaiveJsonClient(server.port)
    await client.register('one')
    await client.register('two')
    await server.reload({ reservedNames: ['one'] })
    expect(await ask(server.port, 'one.localhost')).toMatchObject({ code: 'TUNNEL_NOT_FOUND' })
    expect(await ask(server.port, 'two.localhost')).toMatchObject({ status: 200 })
    await server.reload({ reservedNames: ['one', 'two'] })
    expect(String((await client.next('error')).message)).toContain('reserved')
    await client.closed()
    expect(server.getStats().activeSubdomains).toBe(0)
    await server.stop()
  })

  test('what is kept for a client that is away is taken back too', async () => {
    const server = await startServer()
    const network = new TcpProxy(server.port)
    await using client = new TunnelClient({
      server: `http://127.0.0.1:${network.port}`,
      subdomain: 'app',
      fetch: fixed('app'),
      reconnect: false,
    })
    await client.connect()
    const left = new Promise(resolve => server.on('disconnection', resolve))
    network.cutAll()
    await left
    const waiting = ask(server.port, 'app.localhost')
    while (server.getStats().pendingResponses === 0) await new Promise(resolve => setImmediate(resolve))
    await server.reload({ reservedNames: ['app'] })
    expect(await waiting).toMatchObject({ code: 'CLIENT_GONE' })
    expect(await ask(server.port, 'app.localhost')).toMatchObject({ code: 'TUNNEL_NOT_FOUND' })
    network[Symbol.dispose]()
    await server.stop()
  })
})

describe('certificates', () => {
  let one: Certificate
  let other: Certificate
  beforeAll(async () => {
    one = await makeCertificate(['one.test', 'localhost'])
    other = await makeCertificate(['other.test', 'localhost'])
  })

  const dial = (port: number): Promise<TLSSocket> =>
    new Promise((resolve, reject) => {
      const socket = secure(
        { port, host: '127.0.0.1', servername: 'localhost', rejectUnauthorized: false },
        () => resolve(socket),
      )
      socket.on('error', reject)
    })
  const shown = (socket: TLSSocket): unknown => socket.getPeerCertificate().subject.CN

  test('new handshakes see the new one, open connections go on', async () => {
    const server = await startServer({ tls: one })
    const open = await dial(server.port)
    expect(shown(open)).toBe('one.test')
    const ready = connect({ port: server.port, host: '127.0.0.1' })
    await firstOf(ready, 'connect')
    await server.reload({ tls: other })
    const fresh = await dial(server.port)
    expect(shown(fresh)).toBe('other.test')
    // A connection that had not begun its handshake belongs to one of the two, and is not lost.
    const late = secure({ socket: ready, servername: 'localhost', rejectUnauthorized: false })
    await firstOf(late, 'secureConnect')
    for (const socket of [open, fresh, late]) {
      const text = new Promise(resolve => socket.once('data', piece => resolve(piece.toString())))
      socket.write('GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n')
      expect(await within(text as Promise<string>, 'an answer')).toContain('200 OK')
      socket.destroy()
    }
    await server.reload({ tls: one })
    const again = await dial(server.port)
    expect(shown(again)).toBe('one.test')
    again.destroy()
    await server.stop()
  })

  test('not one of many handshakes is refused while certificates change', async () => {
    const server = await startServer({ tls: one })
    const seen = new Set<unknown>()
    let left = 600
    const knock = async () => {
      while (left-- > 0) {
        const socket = await dial(server.port)
        seen.add(shown(socket))
        socket.destroy()
      }
    }
    // Bun does five handshakes in a turn of the event loop, the newest first, and has both sides of each here: of more than two at
    // once, a busy machine leaves the oldest until they time out.
    const knocking = Promise.all([knock(), knock()])
    for (let round = 0; left > 0; round++) {
      await server.reload({ tls: round % 2 === 0 ? other : one })
      const before = left
      while (left > 0 && left > before - 20) await new Promise(resolve => setImmediate(resolve))
    }
    await knocking
    expect(seen).toEqual(new Set(['one.test', 'other.test']))
    await server.stop()
  }, 60_000)

  test('one that cannot be used changes nothing', async () => {
    const server = await startServer({ tls: one, domains: ['first.test'] })
    for (const tls of [
      { cert: one.cert, key: other.key },
      { cert: 'none', key: 'none' },
      { cert: '', key: one.key },
    ]) {
      expect(await codeOf(server.reload({ tls, domains: ['second.test'] }))).toBe('TLS_INVALID')
      expect(server.url).toContain('first.test')
      const socket = await dial(server.port)
      expect(shown(socket)).toBe('one.test')
      socket.destroy()
    }
    await server.stop()
  })
})

describe('what cannot be', () => {
  test('options that cannot be used change nothing', async () => {
    const server = await startServer({ domains: ['first.test'] })
    const bad: TunnelServerOptions[] = [
      { limits: { maxHeadBytes: 0 } },
      { tokens: [''] },
      { tcpPorts: '5-1' },
      { publicUrl: 'no url' },
      { port: server.port + 1 },
      { host: '0.0.0.0' },
      { tls: { cert: 'x', key: 'x' } },
    ]
    for (const options of bad) {
      expect(await codeOf(server.reload({ domains: ['second.test'], ...options }))).toBe('OPTION_INVALID')
      expect(server.url).toContain('first.test')
    }
    expect(await server.reload({ port: 0, host: '127.0.0.1', domains: ['third.test'] })).toBeUndefined()
    expect(server.url).toContain('third.test')
    await server.stop()
    expect(await codeOf(server.reload({}))).toBe('STATE_INVALID')
  })

  test('reloads at the same time happen one after the other', async () => {
    const server = await startServer({ domains: ['first.test'] })
    await Promise.all(['a.test', 'b.test', 'c.test'].map(domain => server.reload({ domains: [domain] })))
    expect(server.url).toContain('c.test')
    await server.stop()
  })
})
