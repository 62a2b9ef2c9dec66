// What every Socket must do, whichever runtime carries it. Runner-free, so that it also runs in a Node process.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { Socket as PeerSocket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Dial, Socket, SocketHandler, TlsOptions } from '../../src/socket.ts'
import { everything, peerServer, reset } from '../support/peer.ts'
import { Recorder } from '../support/recorder.ts'
import { TEST_CERT } from '../support/tls.ts'
import { within } from '../support/within.ts'

/** A socket under test with the far side of its connection. */
export interface Pair {
  readonly near: Socket
  readonly events: Recorder
  readonly far: PeerSocket
  close(): void
}

export interface SocketCase {
  readonly name: string
  readonly run: () => Promise<void>
}

const CAPACITY_BYTES = 24 * 1024 * 1024
const PATTERN_BYTES = 1_000_003 // no multiple of any buffer size

/** The same for all dials: Node reads its authorities, a tenth of a second of work, once for each object. */
export const TRUSTING: TlsOptions = { ca: TEST_CERT }

const patterns = new Map<number, Uint8Array>()

/** Bytes from which a mix-up, a loss or a repetition shows. */
const pattern = (length: number): Uint8Array => {
  const known = patterns.get(length)
  if (known !== undefined) return known
  const bytes = new Uint8Array(length)
  let state = 12_345
  for (let at = 0; at < length; at++) {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0
    bytes[at] = state >>> 16
  }
  patterns.set(length, bytes)
  return bytes
}

/** Writes all of `bytes`, and spoils each array behind the socket's back as the contract allows. */
async function writeAll({ near, events }: Pair, bytes: Uint8Array): Promise<void> {
  let sent = 0
  while (sent < bytes.length) {
    const batch = bytes.slice(sent, sent + 100_000)
    const drainedBefore = events.count('drained')
    const taken = near.write(batch)
    batch.fill(0xee, 0, taken)
    sent += taken
    if (taken < batch.length) await events.until(() => events.count('drained') > drainedBefore, 'drained')
  }
}

const same = (actual: Uint8Array, expected: Uint8Array): void => {
  assert.equal(actual.length, expected.length)
  assert.ok(Buffer.compare(actual, expected) === 0, 'the bytes differ')
}

/** What holds for any open connection, however it came to be. `canReset`: the platform tells RST from FIN. */
export function connectionCases(
  open: (tls: boolean, handler: SocketHandler) => Promise<Omit<Pair, 'events'>>,
): SocketCase[] {
  const cases: SocketCase[] = []
  for (const tls of [false, true]) {
    const on = tls ? 'over TLS, ' : ''
    const add = (name: string, body: (pair: Pair) => Promise<void>) =>
      cases.push({
        name: on + name,
        async run() {
          const events = new Recorder()
          const pair = { events, ...(await open(tls, events)) }
          try {
            await body(pair)
          } finally {
            pair.close()
          }
        },
      })

    add('every byte arrives, both ways', async pair => {
      const bytes = pattern(PATTERN_BYTES)
      const arrived = everything(pair.far)
      pair.far.end(bytes)
      await writeAll(pair, bytes)
      pair.near.end()
      same(await arrived, bytes)
      await pair.events.happened('closed')
      same(pair.events.bytes, bytes)
      assert.equal(pair.events.errorCode, undefined)
    })

    add('a far side that does not read is felt as short writes, then as drained', async pair => {
      const { near, far, events } = pair
      far.pause()
      const batch = pattern(256 * 1024)
      let taken = 0
      let last: number
      do {
        // Spoiled at once: a socket that goes on reading the array would send 0xee. A Buffer: its `slice` is no copy.
        const array = Buffer.from(batch)
        last = near.write(array)
        array.fill(0xee, 0, last)
        taken += last
      } while (last === batch.length && taken < 4 * CAPACITY_BYTES)
      assert.ok(taken < CAPACITY_BYTES, `${taken} bytes were taken with nobody reading`)
      const arrived = everything(far)
      far.resume()
      await events.happened('drained')
      await writeAll(pair, batch)
      near.end()
      const whole = await arrived
      assert.equal(whole.length, taken + batch.length)
      for (let at = 0; at < taken; at += batch.length) {
        const piece = whole.subarray(at, Math.min(at + batch.length, taken))
        same(piece, batch.subarray(0, piece.length))
      }
      same(whole.subarray(taken), batch)
    })

    add('a paused socket holds the far side up and loses nothing', async ({ near, far, events }) => {
      near.pause()
      const bytes = pattern(CAPACITY_BYTES)
      far.end(bytes)
      // The answer to a byte the other way proves that the far side had its chance to send.
      near.write(new Uint8Array(1))
      await within(once(far, 'data'), 'the byte at the far side')
      assert.ok(events.receivedBytes < CAPACITY_BYTES / 2, `${events.receivedBytes} bytes came while paused`)
      near.resume()
      await events.happened('ended')
      same(events.bytes, bytes)
    })

    add('after end() reading goes on until the far side ends too', async ({ near, far, events }) => {
      const arrived = everything(far)
      assert.equal(near.write(pattern(5)), 5)
      near.end()
      same(await arrived, pattern(5))
      assert.equal(near.write(pattern(1)), 0)
      far.end(pattern(PATTERN_BYTES))
      await events.happened('closed')
      same(events.bytes, pattern(PATTERN_BYTES))
      assert.deepEqual(events.events.slice(-2), ['ended', 'closed'])
      assert.equal(events.errorCode, undefined)
    })

    add('after the far side ended, writing goes on', async pair => {
      const { near, far, events } = pair
      const arrived = everything(far)
      far.end('bye')
      await events.happened('ended')
      assert.equal(events.text, 'bye')
      assert.equal(events.count('closed'), 0)
      await writeAll(pair, pattern(PATTERN_BYTES))
      near.end()
      same(await arrived, pattern(PATTERN_BYTES))
      await events.happened('closed')
      assert.equal(events.errorCode, undefined)
    })

    add('terminate() is an error at the far side, never a clean end', async ({ near, far, events }) => {
      const arrived = everything(far)
      near.write(pattern(3))
      await within(once(far, 'data'), 'the first bytes')
      near.terminate()
      await assert.rejects(arrived, { code: 'ECONNRESET' })
      await events.happened('closed')
      assert.notEqual(events.error, undefined)
    })

    add('a reset by the far side is an error here, never a clean end', async ({ near, far, events }) => {
      near.write(pattern(3))
      await within(once(far, 'data'), 'the first bytes')
      reset(far)
      await events.happened('closed')
      assert.notEqual(events.error, undefined)
    })

    add('a write to a connection that is gone ends with an error', async ({ near, far, events }) => {
      reset(far)
      await within(once(far, 'close'), 'the far side to close')
      near.write(pattern(3))
      near.end()
      await events.happened('closed')
      assert.notEqual(events.error, undefined)
    })

    add('closed comes once, last, and not from within terminate()', async ({ near, events }) => {
      near.terminate()
      near.terminate()
      assert.equal(events.count('closed'), 0)
      await events.happened('closed')
      near.terminate()
      near.end()
      near.pause()
      near.resume()
      assert.equal(near.write(pattern(3)), 0)
      await new Promise(setImmediate)
      assert.deepEqual(events.events.slice(-1), ['closed'])
      assert.equal(events.count('closed'), 1)
    })

    add('the remote address is known', async ({ near }) => {
      assert.equal(near.remoteAddress, '127.0.0.1')
    })
  }
  return cases
}

/** What holds for dialling. */
export function dialCases(dial: Dial): SocketCase[] {
  const cases: SocketCase[] = connectionCases(async (tls, handler) => {
    const server = await peerServer({ tls })
    const address = { host: '127.0.0.1', port: server.port, ...(tls && { tls: TRUSTING }) }
    const near = await within(dial(address, handler), 'the dial')
    return { near, far: await server.accepted(), close: () => server.close() }
  })
  const add = (name: string, run: () => Promise<void>) => cases.push({ name, run })

  const refuses = async (address: Parameters<Dial>[0], code: string | RegExp) => {
    const events = new Recorder()
    const expected = typeof code === 'string' ? { code } : (error: { code: string }) => code.test(error.code)
    await within(assert.rejects(dial(address, events), expected), 'the dial to be refused')
    assert.deepEqual(events.events, [])
  }

  add('a port where nobody listens is refused with its code', async () => {
    const server = await peerServer({})
    server.close()
    await refuses({ host: '127.0.0.1', port: server.port }, 'ECONNREFUSED')
    await refuses({ host: 'localhost', port: server.port }, 'ECONNREFUSED')
  })

  add('a handler that throws loses its connection, not the process', async () => {
    for (const event of ['received', 'ended'] as const) {
      const server = await peerServer({})
      const events = new Recorder()
      events[event] = () => {
        throw new Error('a bug')
      }
      await within(dial({ host: '127.0.0.1', port: server.port }, events), 'the dial')
      const far = await server.accepted()
      if (event === 'received') far.write('x')
      else far.end()
      await events.happened('closed')
      assert.equal(events.error?.message, 'a bug')
      server.close()
    }
  })

  add('a name that does not exist is refused with its code', () =>
    refuses({ host: 'nobody.invalid', port: 80 }, /^(ENOTFOUND|EAI_AGAIN)$/),
  )

  add('a unix socket that is not there is refused with its code', () =>
    refuses({ unix: join(tmpdir(), 'localtunnels-not-there.sock') }, 'ENOENT'),
  )

  for (const host of ['127.0.0.1', '::1']) {
    add(`localhost reaches what listens on ${host} only`, async () => {
      const server = await peerServer({ host }).catch((error: NodeJS.ErrnoException) => {
        if (error.code === 'EADDRNOTAVAIL') return undefined // a machine without IPv6
        throw error
      })
      if (server === undefined) return
      const events = new Recorder()
      const near = await within(dial({ host: 'localhost', port: server.port }, events), 'the dial')
      const far = await server.accepted()
      far.write('hello')
      await events.happened('received')
      assert.equal(events.text, 'hello')
      near.terminate()
      server.close()
    })
  }

  add('a unix socket carries bytes and half-closes', async () => {
    const unix = join(tmpdir(), `localtunnels-${process.pid}-${Math.random()}.sock`)
    const server = await peerServer({ unix })
    const events = new Recorder()
    const near = await within(dial({ unix }, events), 'the dial')
    const far = await server.accepted()
    const arrived = everything(far)
    near.write(pattern(5))
    near.end()
    same(await arrived, pattern(5))
    far.end('answer')
    await events.happened('closed')
    assert.equal(events.text, 'answer')
    assert.equal(events.errorCode, undefined)
    assert.equal(near.remoteAddress, '')
    server.close()
  })

  add('a certificate is verified against the name that was dialled or given', async () => {
    const server = await peerServer({ tls: true })
    const address = { host: '127.0.0.1', port: server.port }
    await refuses({ ...address, tls: {} }, 'DEPTH_ZERO_SELF_SIGNED_CERT')
    await refuses(
      { ...address, tls: { ca: TEST_CERT, serverName: 'other.test' } },
      'ERR_TLS_CERT_ALTNAME_INVALID',
    )
    for (const tls of [
      { verify: false },
      { verify: false, serverName: 'other.test' },
      TRUSTING,
      { ca: TEST_CERT, serverName: 'tunnel.test' },
    ]) {
      const events = new Recorder()
      const near = await within(dial({ ...address, tls }, events), 'the dial')
      near.terminate()
      await events.happened('closed')
    }
    server.close()
  })

  add('TLS to something that does not speak it is refused', async () => {
    const server = await peerServer({})
    const dialled = refuses({ host: '127.0.0.1', port: server.port, tls: {} }, /./)
    const far = await server.accepted()
    far.once('data', () => far.end('HTTP/1.1 400 Bad Request\r\n\r\n'))
    await dialled
    const dropped = refuses({ host: '127.0.0.1', port: server.port, tls: {} }, /./)
    const second = await server.accepted()
    second.once('data', () => second.destroy())
    await dropped
    server.close()
  })
  return cases
}
