// What goes through a TCP tunnel arrives as it was: every byte, each end on its own, at the pace of who reads.

import { describe, expect, test } from 'bun:test'
import { createHash, randomFillSync } from 'node:crypto'
import { once } from 'node:events'
import { connect, createServer, type Server, type Socket } from 'node:net'
import { codeOf, eventually } from '../support/events.ts'
import { startTcpTunnel, type TcpTunnel } from '../support/tcp-tunnel.ts'
import { within } from '../support/within.ts'

const MB = 1_048_576

/** A service of node:net, so that no code under test judges itself. */
interface Service extends AsyncDisposable {
  readonly port: number
  readonly sockets: readonly Socket[]
  /** The next connection. */
  accept(): Promise<Socket>
}

async function serve(onConnection: (socket: Socket) => void = () => {}): Promise<Service> {
  const sockets: Socket[] = []
  const server: Server = createServer({ allowHalfOpen: true }, socket => {
    socket.on('error', () => {})
    sockets.push(socket)
    onConnection(socket)
  })
  // As many as come at once.
  server.listen(0, '127.0.0.1', 2_000)
  await once(server, 'listening')
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('no port')
  let taken = 0
  return {
    port: address.port,
    sockets,
    async accept() {
      await eventually(() => sockets.length > taken, 'a connection to the service')
      return sockets[taken++]!
    },
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy()
      server.close()
    },
  }
}

async function dial({ port }: TcpTunnel): Promise<Socket> {
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true, noDelay: true })
  socket.on('error', () => {})
  await within(once(socket, 'connect'), 'the connection')
  return socket
}

/** A megabyte that compresses to nothing and repeats nowhere within itself. */
const BLOCK = randomFillSync(Buffer.alloc(MB))

/** Sends `count` blocks, each with its number in front, and ends. Resolves with the checksum. */
async function send(socket: Socket, count: number): Promise<string> {
  const hash = createHash('sha256')
  for (let number = 0; number < count; number++) {
    const block = Buffer.from(BLOCK)
    block.writeUInt32BE(number)
    hash.update(block)
    if (!socket.write(block)) await once(socket, 'drain')
  }
  socket.end()
  return hash.digest('hex')
}

/** Reads to the end. Resolves with the checksum and the count; rejects when it is reset. */
function receive(socket: Socket): Promise<{ readonly sum: string; readonly bytes: number }> {
  const hash = createHash('sha256')
  let bytes = 0
  const { promise, resolve, reject } = Promise.withResolvers<{ sum: string; bytes: number }>()
  socket.on('data', piece => {
    hash.update(piece)
    bytes += piece.length
  })
  socket.once('end', () => resolve({ sum: hash.digest('hex'), bytes }))
  socket.once('error', reject)
  return promise
}

describe('bytes', () => {
  test('100 MB each way at once arrive with the same checksum', async () => {
    await using service = await serve()
    await using live = await startTcpTunnel(service.port)
    const visitor = await dial(live)
    const atService = await service.accept()
    const [down, up, atVisitor, atEnd] = await Promise.all([
      send(atService, 100),
      send(visitor, 100),
      receive(visitor),
      receive(atService),
    ])
    expect(atVisitor).toEqual({ sum: down, bytes: 100 * MB })
    expect(atEnd).toEqual({ sum: up, bytes: 100 * MB })
    // Counted once the connection is closed at the server, too.
    await eventually(() => live.server.getStats().rawVisitors === 0, 'the end')
    expect(live.server.getStats().bytesOut).toBeGreaterThanOrEqual(100 * MB)
  }, 60_000)

  test('the visitor ends at once, and still gets all that the service has to say', async () => {
    await using service = await serve()
    await using live = await startTcpTunnel(service.port)
    const visitor = await dial(live)
    const whole = receive(visitor)
    visitor.end('question')
    const atService = await service.accept()
    expect((await receive(atService)).bytes).toBe(8)
    const sum = await send(atService, 8)
    expect(await whole).toEqual({ sum, bytes: 8 * MB })
  })

  test('the service ends at once, and still gets all that the visitor has to say', async () => {
    await using service = await serve(socket => socket.end('go on'))
    await using live = await startTcpTunnel(service.port)
    const visitor = await dial(live)
    expect((await receive(visitor)).bytes).toBe(5)
    const whole = receive(await service.accept())
    const sum = await send(visitor, 8)
    expect(await whole).toEqual({ sum, bytes: 8 * MB })
  })

  test('whoever speaks first is heard, while the other is silent', async () => {
    await using service = await serve()
    await using live = await startTcpTunnel(service.port)
    const [first, second] = [await dial(live), await dial(live)]
    const [one, two] = [await service.accept(), await service.accept()]
    // In whichever order they came to the service.
    one.write('1')
    two.write('2')
    const greetings = await Promise.all(
      [first, second].map(async one => String((await once(one, 'data'))[0])),
    )
    expect(greetings.toSorted()).toEqual(['1', '2'])
    first.write('hello')
    const [bytes] = await within(once(greetings[0] === '1' ? one : two, 'data'), 'the visitor')
    expect(String(bytes)).toBe('hello')
  })

  test('a reset is a reset on the other side, both ways, also with bytes on their way', async () => {
    await using service = await serve()
    await using live = await startTcpTunnel(service.port)
    const visitor = await dial(live)
    const atService = await service.accept()
    const broken = receive(atService)
    broken.catch(() => {})
    visitor.write(BLOCK)
    await once(atService, 'data')
    visitor.resetAndDestroy()
    expect(await codeOf(within(broken, 'the reset at the service'))).toBe('ECONNRESET')

    const second = await dial(live)
    const atSecond = await service.accept()
    const all = receive(second)
    all.catch(() => {})
    atSecond.write(BLOCK)
    await once(second, 'data')
    atSecond.resetAndDestroy()
    expect(await codeOf(within(all, 'the reset at the visitor'))).toBe('ECONNRESET')
  })
})

describe('who reads slowly', () => {
  /** What fits into kernels and windows between the two: far less than what is sent. */
  const MOST_BYTES = 48 * MB
  const SENT_BYTES = 200 * MB

  /** Bytes that `sender` got rid of until it is stopped: nothing moves while another connection makes 300 trips. */
  async function sentUntilStopped(sender: Socket, trip: () => Promise<void>): Promise<number> {
    let sent = 0
    let isFlowing = true
    const pump = () => {
      while (isFlowing && sent < SENT_BYTES) {
        sent += BLOCK.length
        if (!sender.write(BLOCK)) return
      }
    }
    sender.on('drain', pump)
    pump()
    for (let before = -1; before !== sent; ) {
      before = sent
      for (let count = 0; count < 300; count++) await trip()
    }
    isFlowing = false
    return sent
  }

  /** A connection beside the one that is stopped: it goes on. */
  async function tripper(live: TcpTunnel, service: Service): Promise<() => Promise<void>> {
    const visitor = await dial(live)
    const far = await service.accept()
    far.on('data', bytes => far.write(bytes))
    return async () => {
      visitor.write('x')
      await within(once(visitor, 'data'), 'the trip')
    }
  }

  test('a visitor that does not read stops the service, and nobody else', async () => {
    await using service = await serve()
    await using live = await startTcpTunnel(service.port)
    const trip = await tripper(live, service)
    const visitor = await dial(live)
    visitor.pause()
    const sent = await sentUntilStopped(await service.accept(), trip)
    expect(sent).toBeLessThan(MOST_BYTES)
    expect(live.server.getStats().rawVisitors).toBe(2)
    visitor.destroy()
  }, 60_000)

  test('a service that does not read stops the visitor, and nobody else', async () => {
    await using service = await serve()
    await using live = await startTcpTunnel(service.port)
    const trip = await tripper(live, service)
    const visitor = await dial(live)
    const atService = await service.accept()
    atService.pause()
    const sent = await sentUntilStopped(visitor, trip)
    expect(sent).toBeLessThan(MOST_BYTES)
    atService.destroy()
  }, 60_000)
})

test('1,000 connections at once, each with bytes of its own', async () => {
  await using service = await serve(socket => {
    socket.pipe(socket)
  })
  await using live = await startTcpTunnel(service.port)
  const visitors = await Promise.all(Array.from({ length: 1_000 }, () => dial(live)))
  await eventually(() => live.server.getStats().rawVisitors === 1_000, 'all visitors')
  const answers = await Promise.all(
    visitors.map(async (visitor, number) => {
      let text = ''
      visitor.on('data', piece => {
        text += String(piece)
      })
      visitor.end(`visitor ${number}`)
      await once(visitor, 'end')
      return text
    }),
  )
  expect(answers).toEqual(visitors.map((_visitor, number) => `visitor ${number}`))
  await eventually(() => live.server.getStats().rawVisitors === 0, 'all to be gone')
}, 60_000)
