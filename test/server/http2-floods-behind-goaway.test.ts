// Visitors of HTTP/2 that go on sending behind the server's GOAWAY: it has said that it serves nothing more, and lingers.

import { expect, test } from 'bun:test'
import { once } from 'node:events'
import { connect } from 'node:tls'
import { frame, PREFACE, SETTINGS, u32 } from '../support/h2-frames.ts'
import { TEST_CERT, TEST_KEY } from '../support/tls.ts'
import { startServer } from '../support/tunnel.ts'

/** Of a flood. The kernels of both sides keep up to 10 MB; a server that reads takes hundreds in the time that it lingers. */
const MOST_BYTES = 24_000_000
const PINGS = Buffer.from(Array.from({ length: 4_000 }, () => frame(6, 0, 0, u32(0).concat(u32(0)))).flat())

/** Bytes that the server takes of a visitor that floods it as soon as GOAWAY has come. */
async function takenBehindGoaway(port: number, first: readonly number[]): Promise<number> {
  const options = { host: '127.0.0.1', port, ALPNProtocols: ['h2'], rejectUnauthorized: false }
  // The types do not know it.
  const halfOpen = { allowHalfOpen: true }
  const socket = connect({ ...options, ...halfOpen })
  const gone = new Promise<void>(resolve => socket.once('close', () => resolve()))
  socket.on('error', () => {})
  await once(socket, 'secureConnect')
  // GOAWAY is the last that the server says.
  const ended = new Promise<void>(resolve => socket.once('end', resolve))
  socket.resume()
  socket.write(Uint8Array.from([...PREFACE, ...SETTINGS, ...first]))
  await ended
  let taken = 0
  let isOpen = true
  void gone.then(() => {
    isOpen = false
  })
  while (isOpen && taken < 10 * MOST_BYTES) {
    if (!socket.write(PINGS))
      await Promise.race([new Promise(resolve => socket.once('drain', resolve)), gone])
    if (isOpen) taken += PINGS.length
  }
  socket.destroy()
  return taken
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
