// Visitors that go on sending when the server has said that it serves nothing more: it lingers, and does not read for ever.

import { expect, test } from 'bun:test'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { eventually } from '../support/events.ts'
import { frame, PREFACE, SETTINGS, u32 } from '../support/h2-frames.ts'
import { openDescriptors } from '../support/relay.ts'
import { TEST_CERT, TEST_KEY } from '../support/tls.ts'
import { startServer } from '../support/tunnel.ts'

/** Of a flood. The kernels of both sides keep up to 10 MB; a server that reads takes hundreds in the time that it lingers. */
const MOST_BYTES = 24_000_000
/** Of HTTP/1.1 the server reads 32 MiB: most clients look for an answer only when they have sent their whole request. */
const MOST_BYTES_1_1 = 60_000_000
const PINGS = Buffer.from(Array.from({ length: 4_000 }, () => frame(6, 0, 0, u32(0).concat(u32(0)))).flat())
/** A server that takes nothing for so long does not read. */
const STALLED_MS = 1_000
/** Half of the time for which the server keeps a visitor that does not close. */
const GONE_MS = 1_000
// The types do not know it of TLS.
const HALF_OPEN = { allowHalfOpen: true }

interface Flood {
  readonly takenBytes: number
  /** The server ended the connection while it was flooded. `false`: it took nothing for a second. */
  readonly isCut: boolean
}

/** What becomes of a visitor that floods the server as soon as its FIN has come. */
async function floodBehindTheEnd(socket: Socket, first: Uint8Array): Promise<Flood> {
  let isCut = false
  const gone = new Promise<void>(resolve => {
    socket.once('close', () => {
      isCut = true
      resolve()
    })
  })
  await endOf(socket, first)
  let takenBytes = 0
  while (!isCut && takenBytes < 10 * MOST_BYTES_1_1) {
    if (!socket.write(PINGS)) {
      const drained = new Promise<boolean>(resolve => socket.once('drain', () => resolve(true)))
      const stopped = Promise.race([gone, Bun.sleep(STALLED_MS)]).then(() => false)
      if (!(await Promise.race([drained, stopped]))) break
    }
    takenBytes += PINGS.length
  }
  const flood = { takenBytes, isCut }
  socket.destroy()
  return flood
}

/** Sends `first`, and waits for the FIN of the server. */
async function endOf(socket: Socket, first: Uint8Array): Promise<void> {
  socket.on('error', () => {})
  const ended = new Promise<void>(resolve => socket.once('end', resolve))
  socket.resume()
  socket.write(first)
  await ended
}

async function visitor(port: number): Promise<Socket> {
  const options = { host: '127.0.0.1', port, ALPNProtocols: ['h2'], rejectUnauthorized: false }
  const socket = connectTls({ ...options, ...HALF_OPEN })
  await once(socket, 'secureConnect')
  return socket
}

const opening = (first: readonly number[]) => Uint8Array.from([...PREFACE, ...SETTINGS, ...first])
/** DATA on stream 0. */
const FAULT = opening(frame(0, 0, 0, [1]))

test('a visitor that broke the rules and floods on is cut before its time to linger is over', async () => {
  await using server = await startServer({ tls: { cert: TEST_CERT, key: TEST_KEY } })
  const { takenBytes, isCut } = await floodBehindTheEnd(await visitor(server.port), FAULT)
  expect(takenBytes).toBeLessThan(MOST_BYTES)
  expect(isCut).toBe(true)
})

test.skipIf(process.platform !== 'linux')(
  'one that broke the rules and leaves is gone at the server, too, before that time is over',
  async () => {
    await using server = await startServer({ tls: { cert: TEST_CERT, key: TEST_KEY } })
    const socket = await visitor(server.port)
    await endOf(socket, FAULT)
    const both = openDescriptors()
    const leftAtMs = performance.now()
    socket.end()
    await once(socket, 'close')
    await eventually(() => openDescriptors() <= both - 2, 'the end of the connection')
    expect(performance.now() - leftAtMs).toBeLessThan(GONE_MS)
  },
)

test('of a visitor that was idle, no more than what can have crossed the GOAWAY', async () => {
  await using server = await startServer({
    tls: { cert: TEST_CERT, key: TEST_KEY },
    limits: { idleTimeoutMs: 100 },
  })
  const { takenBytes, isCut } = await floodBehindTheEnd(await visitor(server.port), opening([]))
  expect(takenBytes).toBeLessThan(MOST_BYTES)
  expect(isCut).toBe(true)
})

test('of a visitor of HTTP/1.1 that was answered, or refused in the middle of its request, a bounded number of bytes', async () => {
  await using server = await startServer()
  for (const request of [
    'GET / HTTP/1.1\r\nHost: nobody.localhost\r\nConnection: close\r\n\r\n',
    'POST / HTTP/1.1\r\nHost: nobody.localhost\r\nContent-Length: 10000000000\r\n\r\n',
  ]) {
    const socket = connect({ host: '127.0.0.1', port: server.port, ...HALF_OPEN })
    await once(socket, 'connect')
    const { takenBytes } = await floodBehindTheEnd(socket, Buffer.from(request))
    expect(takenBytes).toBeLessThan(MOST_BYTES_1_1)
  }
}, 60_000)
