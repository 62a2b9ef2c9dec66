// Bulk through live tunnels while the kernel moves it: every byte, every end, every failure, as without.

import { describe, expect, test } from 'bun:test'
import type { Socket as PeerSocket } from 'node:net'
import { canSplice, spliceCounts } from '../../src/accelerator/threads.ts'
import type { TunnelServerOptions } from '../../src/server/settings/options.ts'
import { eventually, next } from '../support/events.ts'
import { type PeerServer, peerClient, peerServer, reset } from '../support/peer.ts'
import { ClientProcess } from '../support/processes.ts'
import { rawSite } from '../support/raw-site.ts'
import { openDescriptors, patternAt, Sink, Source } from '../support/relay.ts'
import { startServer, startTunnel } from '../support/tunnel.ts'
import { within } from '../support/within.ts'

const MB = 1_048_576

const begun = () => spliceCounts().begun
const settled = () => eventually(() => spliceCounts().running === 0, 'the end of all splices')

/** Reads up to the empty line; what follows is there to be read. */
async function headOf(socket: PeerSocket): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>()
  let head = Buffer.alloc(0)
  const take = (bytes: Buffer) => {
    head = Buffer.concat([head, bytes])
    const end = head.indexOf('\r\n\r\n')
    if (end === -1) return
    socket.pause()
    socket.off('data', take)
    if (end + 4 < head.length) socket.unshift(head.subarray(end + 4))
    resolve(head.toString('latin1', 0, end + 4))
  }
  socket.on('data', take)
  socket.resume()
  socket.once('close', () => reject(new Error('closed before the end of a head')))
  return within(promise, 'a head')
}

interface Site extends AsyncDisposable {
  readonly tunnel: Awaited<ReturnType<typeof startTunnel>>
  readonly origin: PeerServer
  /** A visitor that sent a request, and the origin's connection that got it. */
  ask(
    request: string,
  ): Promise<{ readonly visitor: PeerSocket; readonly app: PeerSocket; readonly head: string }>
}

async function site(server: TunnelServerOptions = {}): Promise<Site> {
  const origin = await peerServer({})
  const tunnel = await startTunnel({ port: origin.port }, { server })
  return {
    tunnel,
    origin,
    async ask(request) {
      const visitor = await peerClient(tunnel.port, false)
      visitor.write(request)
      const app = await origin.accepted()
      return { visitor, app, head: await headOf(app) }
    },
    async [Symbol.asyncDispose]() {
      origin.close()
      await tunnel[Symbol.asyncDispose]()
    },
  }
}

const get = (path = '/') => `GET ${path} HTTP/1.1\r\nHost: app.localhost\r\n\r\n`
const post = (bytes: number) => `POST / HTTP/1.1\r\nHost: app.localhost\r\nContent-Length: ${bytes}\r\n\r\n`
const ok = (bytes: number) => `HTTP/1.1 200 OK\r\nContent-Length: ${bytes}\r\n\r\n`

describe.skipIf(!canSplice())('while the kernel moves bulk', () => {
  test('an answer arrives to the byte, is counted, and the connection goes on', async () => {
    await using here = await site()
    const report = next(here.tunnel.server, 'request')
    const before = begun()
    const { visitor, app } = await here.ask(get())
    app.write(ok(60 * MB))
    new Source(app, 60 * MB, '')
    const head = await headOf(visitor)
    expect(head).toStartWith('HTTP/1.1 200')
    const sink = new Sink(visitor)
    await sink.until(() => sink.receivedBytes >= 60 * MB, '60 MB')
    expect((await report).bytes).toBe(head.length + 60 * MB)
    // At the client and at the server.
    expect(begun() - before).toBeGreaterThanOrEqual(2)
    visitor.removeAllListeners('data')
    visitor.write(get('/next'))
    expect(await headOf(app)).toStartWith('GET /next')
    app.write(`${ok(4)}next`)
    expect(await headOf(visitor)).toStartWith('HTTP/1.1 200')
    expect(sink.receivedBytes).toBe(60 * MB)
  })

  test('of an upload exactly the body is moved: the request behind it is the next one', async () => {
    await using here = await site()
    const before = begun()
    const { visitor, app } = await here.ask(post(60 * MB))
    new Source(visitor, 60 * MB, get('/behind'))
    const sink = new Sink(app)
    await sink.until(() => sink.receivedBytes === 60 * MB, '60 MB')
    expect(begun() - before).toBeGreaterThanOrEqual(1)
    app.removeAllListeners('data')
    app.write(`${ok(4)}done`)
    expect(await headOf(app)).toStartWith('GET /behind')
  })

  test('a raw tunnel carries both ways at once, and each ends on its own', async () => {
    await using raw = await rawSite()
    const before = begun()
    const visitor = await peerClient(raw.port, false)
    const app = await raw.origin.accepted()
    const [down, up] = [new Sink(visitor), new Sink(app)]
    new Source(app, 50 * MB)
    new Source(visitor, 70 * MB)
    expect([await down.over(), await up.over()]).toEqual(['end', 'end'])
    expect([down.receivedBytes, up.receivedBytes]).toEqual([50 * MB, 70 * MB])
    expect(begun() - before).toBeGreaterThanOrEqual(2)
    await settled()
  })

  test('small turns on a stream that was bulk are answered by the program', async () => {
    await using raw = await rawSite()
    const visitor = await peerClient(raw.port, false)
    const app = await raw.origin.accepted()
    const sink = new Sink(visitor)
    const source = new Source(app, 40 * MB, '')
    await sink.until(() => sink.receivedBytes === 40 * MB, 'bulk')
    app.on('data', (bytes: Buffer) => {
      for (const _ of bytes) app.write(patternAt(source.sentBytes++, 1))
    })
    for (let turn = 1; turn <= 100; turn++) {
      visitor.write('?')
      await sink.until(() => sink.receivedBytes === 40 * MB + turn, `answer ${turn}`)
    }
    await settled()
  })

  test.each([
    ['a visitor', 'the origin'],
    ['an origin', 'the visitor'],
  ])(
    '%s that resets is a reset at %s, never an end',
    async who => {
      await using raw = await rawSite()
      for (let count = 0; count < 20; count++) {
        const visitor = await peerClient(raw.port, false)
        const app = await raw.origin.accepted()
        const [down, up] = [new Sink(visitor), new Sink(app)]
        new Source(app, 1_000 * MB)
        new Source(visitor, 1_000 * MB)
        const enough = (2 + count) * MB
        await up.until(() => up.receivedBytes > enough, 'bulk up')
        await down.until(() => down.receivedBytes > enough, 'bulk down')
        const [end, other] = who === 'a visitor' ? [visitor, up] : [app, down]
        reset(end)
        expect(await other.over()).toBe('ECONNRESET')
      }
      await settled()
    },
    60_000,
  )

  test('a visitor that leaves its download costs nothing, and the tunnel goes on', async () => {
    await using here = await site()
    for (let count = 0; count < 20; count++) {
      const { visitor, app } = await here.ask(get())
      const gone = Promise.withResolvers<void>()
      app.on('close', () => gone.resolve())
      app.write(ok(1_000 * MB))
      new Source(app, 1_000 * MB)
      await headOf(visitor)
      const sink = new Sink(visitor)
      await sink.until(() => sink.receivedBytes > (1 + count) * MB, 'bulk')
      visitor.destroy()
      await within(gone.promise, 'the origin to hear of it')
    }
    await settled()
    // Links are not used up by it.
    const { visitor, app } = await here.ask(get())
    app.write(`${ok(4)}fine`)
    expect(await headOf(visitor)).toStartWith('HTTP/1.1 200')
  }, 60_000)

  test('an answer that its origin cuts is cut for the visitor', async () => {
    await using here = await site()
    const { visitor, app } = await here.ask(get())
    app.write(ok(1_000 * MB))
    new Source(app, 30 * MB)
    await headOf(visitor)
    expect(await new Sink(visitor).over()).toBe('ECONNRESET')
    await settled()
  })

  test('an answer before the end of an upload reaches the visitor, and the rest is not sent on', async () => {
    await using here = await site()
    const { visitor, app } = await here.ask(post(1_000 * MB))
    new Source(visitor, 1_000 * MB)
    const sink = new Sink(app)
    await sink.until(() => sink.receivedBytes > 20 * MB, 'bulk')
    app.write('HTTP/1.1 413 Content Too Large\r\nContent-Length: 4\r\n\r\nmuch')
    expect(await headOf(visitor)).toStartWith('HTTP/1.1 413')
    expect(await sink.over()).not.toBe('end')
    await settled()
  })

  test('a visitor that takes nothing for too long is cut', async () => {
    await using here = await site({ limits: { sendTimeoutMs: 600 } })
    const report = next(here.tunnel.server, 'request')
    const { visitor, app } = await here.ask(get())
    app.write(ok(1_000 * MB))
    new Source(app, 1_000 * MB)
    await headOf(visitor)
    const sink = new Sink(visitor)
    await sink.until(() => sink.receivedBytes > 20 * MB, 'bulk')
    visitor.pause()
    expect((await report).error).toBe('VISITOR_STALLED')
    await settled()
  })

  test('an origin that takes nothing for too long is given up', async () => {
    await using here = await site({ limits: { sendTimeoutMs: 600 } })
    const report = next(here.tunnel.server, 'request')
    const { visitor, app } = await here.ask(post(1_000 * MB))
    new Source(visitor, 1_000 * MB)
    const sink = new Sink(app)
    await sink.until(() => sink.receivedBytes > 20 * MB, 'bulk')
    app.pause()
    expect((await report).error).toBe('ORIGIN_TIMEOUT')
    await settled()
  })

  test('a client that is killed cuts the answer', async () => {
    const origin = await peerServer({})
    const server = await startServer()
    await using client = new ClientProcess(`http://127.0.0.1:${server.port}`, 'app', origin.port)
    await client.event('connected')
    const visitor = await peerClient(server.port, false)
    visitor.write(get())
    const app = await origin.accepted()
    await headOf(app)
    app.write(ok(1_000 * MB))
    new Source(app, 1_000 * MB)
    await headOf(visitor)
    const sink = new Sink(visitor)
    await sink.until(() => sink.receivedBytes > 20 * MB, 'bulk')
    client.kill('SIGKILL')
    expect(await sink.over()).toBe('ECONNRESET')
    await settled()
    await server.stop()
    origin.close()
  })

  test('a server that stops in the middle cuts what it does not finish', async () => {
    const here = await site({ limits: { drainTimeoutMs: 200 } })
    const { visitor, app } = await here.ask(get())
    app.write(ok(1_000 * MB))
    new Source(app, 1_000 * MB)
    await headOf(visitor)
    const sink = new Sink(visitor)
    await sink.until(() => sink.receivedBytes > 20 * MB, 'bulk')
    visitor.pause()
    await here.tunnel.server.stop()
    visitor.resume()
    expect(await sink.over()).not.toBe('end')
    await settled()
    await here[Symbol.asyncDispose]()
  })

  test('a hundred downloads at once', async () => {
    await using here = await site()
    const before = openDescriptors()
    const sinks = await Promise.all(
      Array.from({ length: 100 }, async () => {
        const { visitor, app } = await here.ask(get())
        app.write(ok(4 * MB))
        new Source(app, 4 * MB, '')
        await headOf(visitor)
        return { sink: new Sink(visitor), visitor }
      }),
    )
    for (const { sink } of sinks) await sink.until(() => sink.receivedBytes === 4 * MB, '4 MB')
    for (const { visitor } of sinks) visitor.destroy()
    await settled()
    // The pool keeps its streams and links for a while, and the thread its pipes.
    await eventually(() => openDescriptors() < before + 350, 'closed descriptors')
  }, 60_000)
})
