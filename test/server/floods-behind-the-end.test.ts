// Visitors that go on sending when the server has said that it serves nothing more: it lingers, and does not read for ever.

import { expect, test } from 'bun:test'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { frame, PREFACE, SETTINGS, u32 } from '../support/h2-frames.ts'
import { TEST_CERT, TEST_KEY } from '../support/tls.ts'
import { startServer } from '../support/tunnel.ts'

/** Of a flood. The kernels of both sides keep up to 10 MB; a server that reads takes hundreds in the time that it lingers. */
const MOST_BYTES = 24_000_000
/** Of HTTP/1.1 the server reads 32 MiB: most clients look for an answer only when they have sent their whole request. */
const MOST_BYTES_1_1 = 60_000_000
const PINGS = Buffer.from(Array.from({ length: 4_000 }, () => frame(6, 0, 0, u32(0).concat(u32(0)))).flat())
/** A server that takes nothing for so long does not read. */
const STALLED_MS = 1_000
// The types do not know it of TLS.
const HALF_OPEN = { allowHalfOpen: true }

/** Bytes that the server takes of a visitor that floods it as soon as its FIN has come, until it cuts or stops reading for a second. */
async function takenBehindTheEnd(socket: Socket, first: Uint8Array): Promise<number> {
  const gone = new Promise<void>(resolve => socket.once('close', () => resolve()))
  socket.on('error', () => {})
  const ended = new Promise<void>(resolve => socket.once('end', resolve))
  socket.resume()
  socket.write(first)
  await ended
  let taken = 0
  while (taken < 10 * MOST_BYTES_1_1) {
    if (!socket.write(PINGS)) {
      const drained = new Promise<boolean>(resolve => socket.once('drain', () => resolve(true)))
      const stopped = Promise.race([gone, Bun.sleep(STALLED_MS)]).then(() => false)
      if (!(await Promise.race([drained, stopped]))) break
    }
    taken += PINGS.length
  }
  socket.destroy()
  return taken
}

async function takenBehindGoaway(port: number, first: readonly number[]): Promise<number> {
  const options = { host: '127.0.0.1', port, ALPNProtocols: ['h2'], rejectUnauthorized: false }
  const socket = connectTls({ ...options, ...HALF_OPEN })
  await once(socket, 'secureConnect')
  return takenBehindTheEnd(socket, Uint8Array.from([...PREFACE, ...SETTINGS, ...first]))
}

test('of a visitor that broke the rules nothing more is read', async () => {
  await using server = await startServer({ tls: { cert: TEST_CERT, key: TEST_KEY } })
  // DATA on stream 0.
  expect(await takenBehindGoaway(server.port, frame(0, 0, 0, [1]))).toBeLessThan(MOST_BYTES)
})

test('of a visitor that was idle, what can have crossed the GOAWAY', async () => {
  await using server = await startServer({
    tls: { cert: TEST_CERT, key: TEST_KEY },
    limits: { idleTimeoutMs: 100 },
  })
  expect(await takenBehindGoaway(server.port, [])).toBeLessThan(MOST_BYTES)
})

test('of a visitor of HTTP/1.1 that was answered, or refused in the middle of its request, a bounded number of bytes', async () => {
  await using server = await startServer()
  for (const request of [
    'GET / HTTP/1.1\r\nHost: nobody.localhost\r\nConnection: close\r\n\r\n',
    'POST / HTTP/1.1\r\nHost: nobody.localhost\r\nContent-Length: 10000000000\r\n\r\n',
  ]) {
    const socket = connect({ host: '127.0.0.1', port: server.port, ...HALF_OPEN })
    await once(socket, 'connect')
    expect(await takenBehindTheEnd(socket, Buffer.from(request))).toBeLessThan(MOST_BYTES_1_1)
  }
}, 20_000)
