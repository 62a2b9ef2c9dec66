// Sockets on Bun keep the contract, dialled and accepted alike.

import { describe, expect, test } from 'bun:test'
import { existsSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createSecureContext } from 'node:tls'
import type { Socket } from '../../src/socket.ts'
import { dialBun, listenBun } from '../../src/sockets/bun.ts'
import { replacementFault, tlsFault } from '../../src/sockets/bun-tls.ts'
import { connectionCases, dialCases } from '../suites/socket.ts'
import { viaCases } from '../suites/via.ts'
import { peerClient } from '../support/peer.ts'
import { FUZZ } from '../support/random.ts'
import { Recorder } from '../support/recorder.ts'
import { TEST_CERT, TEST_KEY } from '../support/tls.ts'
import { within } from '../support/within.ts'

const HOST = '127.0.0.1'

describe('a socket dialled on Bun', () => {
  for (const { name, run } of dialCases(dialBun)) test(name, run)
})

/** TLS in TLS is that of Bun's node:tls, which closes a connection when the far side ends. */
const NOT_IN_BUN = 'through TLS, over TLS, after the far side ended, writing goes on'

describe('a socket dialled on Bun', () => {
  for (const { name, run } of viaCases(dialBun)) if (name !== NOT_IN_BUN) test(name, run)
})

test('the array of a large read is freed when its handler has returned', async () => {
  const { promise, resolve } = Promise.withResolvers<Uint8Array>()
  const listening = listenBun({
    hostname: HOST,
    accept: () => ({
      received: kept => {
        if (kept.length >= 8_192) resolve(kept)
      },
      drained() {},
      ended() {},
      closed() {},
    }),
  })
  const far = await peerClient(listening.port, false)
  far.write(Buffer.alloc(1_048_576, 'x'))
  expect((await promise).buffer.byteLength).toBe(0)
  far.destroy()
  listening.stop(true)
})

/** Takes as long as the default that it is about: only in long runs. */
if (FUZZ > 1)
  test('a socket accepted on Bun outlives the 120 seconds after which Bun reports a timeout that was never set', async () => {
    const near = new Recorder()
    const listening = listenBun({ hostname: HOST, accept: () => near })
    const far = await peerClient(listening.port, false)
    await Bun.sleep(130_000)
    far.write('still here')
    await near.happened('received')
    expect(near.events).toEqual(['received'])
    far.destroy()
    listening.stop(true)
  }, 140_000)

if (FUZZ > 1)
  test('a socket secured later outlives them, too', async () => {
    const near = new Recorder()
    const { context } = createSecureContext({ cert: TEST_CERT, key: TEST_KEY })
    const listening = listenBun({
      hostname: HOST,
      accept: socket => ({
        received: first => socket.secure?.(first, { context, accept: () => near }),
        drained() {},
        ended() {},
        closed() {},
      }),
    })
    const far = await peerClient(listening.port, true)
    await Bun.sleep(130_000)
    far.write('still here')
    await near.happened('received')
    expect(near.events).toEqual(['received'])
    far.destroy()
    listening.stop(true)
  }, 140_000)

describe('a socket accepted on Bun', () => {
  const cases = connectionCases(async (tls, handler) => {
    const { promise, resolve } = Promise.withResolvers<Socket>()
    const listening = listenBun({
      hostname: HOST,
      ...(tls && { tls: { cert: TEST_CERT, key: TEST_KEY } }),
      accept(socket) {
        resolve(socket)
        return handler
      },
    })
    const far = await peerClient(listening.port, tls)
    return {
      near: await within(promise, 'accept'),
      far,
      close() {
        far.destroy()
        listening.stop(true)
      },
    }
  })
  for (const { name, run } of cases) test(name, run)
})

describe('a socket secured on Bun after its first bytes were read', () => {
  const { context } = createSecureContext({ cert: TEST_CERT, key: TEST_KEY })
  const silent = { drained() {}, ended() {}, closed() {} }
  const cases = connectionCases(async (tls, handler) => {
    const { promise, resolve } = Promise.withResolvers<Socket>()
    const listening = listenBun({
      hostname: HOST,
      accept: socket => ({
        ...silent,
        received(first) {
          const accept = (secured: Socket) => {
            resolve(secured)
            return handler
          }
          socket.secure?.(first, { context, accept })
        },
      }),
    })
    const far = await peerClient(listening.port, tls)
    return {
      near: await within(promise, 'accept'),
      far,
      close() {
        far.destroy()
        listening.stop(true)
      },
    }
  })
  for (const { name, run } of cases) if (name.startsWith('over TLS')) test(name, run)

  test('a server can try first whether it works', async () => {
    expect(await tlsFault(context)).toBeUndefined()
    expect(await tlsFault({})).toContain('SecureContext')
    const tls = { cert: TEST_CERT, key: TEST_KEY }
    expect(await replacementFault(tls, context)).toBeUndefined()
    expect(await replacementFault(tls, {})).toContain('SecureContext')
  })

  test('stop(true) cuts it, and the pass of its connection is given back', async () => {
    const near = new Recorder()
    const { promise: left, resolve } = Promise.withResolvers<void>()
    const { promise: accepted, resolve: accept } = Promise.withResolvers<void>()
    const listening = listenBun({
      hostname: HOST,
      admit: () => ({ left: resolve }),
      accept: socket => ({
        ...silent,
        received(first) {
          const secured = () => {
            accept()
            return near
          }
          socket.secure?.(first, { context, accept: secured })
        },
      }),
    })
    const far = await peerClient(listening.port, true)
    await within(accepted, 'accept')
    listening.stop(true)
    await near.happened('closed')
    expect(near.errorCode).toBe('ECONNABORTED')
    await within(left, 'left')
    far.destroy()
  })

  test('a handshake that fails ends the connection, and its pass is given back', async () => {
    const { promise: left, resolve } = Promise.withResolvers<void>()
    let accepted = 0
    const listening = listenBun({
      hostname: HOST,
      admit: () => ({ left: resolve }),
      accept: socket => ({
        ...silent,
        received(first) {
          const accept = () => {
            accepted++
            return new Recorder()
          }
          socket.secure?.(first, { context, accept })
        },
      }),
    })
    const far = await peerClient(listening.port, false)
    far.on('error', () => {})
    far.write('this is no hello at all, and long enough to be taken for one')
    await within(left, 'left')
    expect(accepted).toBe(0)
    far.destroy()
    listening.stop(true)
  })
})

describe('listening on Bun', () => {
  const accept = () => new Recorder()

  test('a port that is taken is refused with its code', () => {
    const first = listenBun({ hostname: HOST, accept })
    expect(() => listenBun({ hostname: HOST, port: first.port, accept })).toThrow(
      expect.objectContaining({ code: 'EADDRINUSE' }),
    )
    first.stop()
  })

  test('stop() leaves open connections alone, stop(true) cuts them', async () => {
    const accepted = new Recorder()
    const listening = listenBun({ hostname: HOST, accept: () => accepted })
    const near = new Recorder()
    const socket = await dialBun({ host: HOST, port: listening.port }, near)
    socket.write(new Uint8Array(1))
    await accepted.happened('received')
    listening.stop()
    socket.write(new Uint8Array(1))
    await accepted.until(() => accepted.receivedBytes === 2, 'a byte after stop()')
    listening.stop(true)
    await accepted.happened('closed')
    expect(accepted.errorCode).toBe('ECONNABORTED')
    socket.terminate()
  })

  test('a stranger who does not speak TLS is never accepted', async () => {
    let acceptedCount = 0
    const listening = listenBun({
      hostname: HOST,
      tls: { cert: TEST_CERT, key: TEST_KEY },
      accept() {
        acceptedCount++
        return new Recorder()
      },
    })
    const stranger = await peerClient(listening.port, false)
    stranger.write('GET / HTTP/1.1\r\n\r\n')
    const { promise, resolve } = Promise.withResolvers<void>()
    stranger.resume().on('close', () => resolve())
    stranger.on('end', () => stranger.end())
    await within(promise, 'the stranger to be turned away')
    expect(acceptedCount).toBe(0)
    listening.stop(true)
  })

  test('a unix socket is listened on and removed', async () => {
    const unix = join(tmpdir(), `localtunnels-${process.pid}-${Math.random()}.sock`)
    const accepted = new Recorder()
    const listening = listenBun({ unix, accept: () => accepted })
    const socket = await dialBun({ unix }, new Recorder())
    socket.write(new TextEncoder().encode('hi'))
    await accepted.happened('received')
    expect(accepted.text).toBe('hi')
    expect(listening.port).toBe(0)
    listening.stop(true)
    expect(existsSync(unix)).toBe(false)
  })

  test('a handler that throws loses its own connection only', async () => {
    const good = new Recorder()
    const bad = new Recorder()
    bad.received = () => {
      throw new Error('a bug')
    }
    const handlers = [bad, good]
    const failures: Error[] = []
    const listening = listenBun({
      hostname: HOST,
      accept: () => handlers.shift()!,
      failed: error => failures.push(error),
    })
    const first = await dialBun({ host: HOST, port: listening.port }, new Recorder())
    const second = await dialBun({ host: HOST, port: listening.port }, new Recorder())
    first.write(new Uint8Array(1))
    await bad.happened('closed')
    expect(bad.error?.message).toBe('a bug')
    expect(failures.map(({ message }) => message)).toEqual(['a bug'])
    second.write(new Uint8Array(1))
    await good.happened('received')
    second.terminate()
    listening.stop(true)
  })
})

// Splicing stands on it: while the kernel moves bytes from a paused connection the program may write to it.
test('a paused socket stays paused when its kernel buffer is full', async () => {
  const near = new Recorder()
  const accepted = Promise.withResolvers<Socket>()
  const listening = listenBun({
    hostname: HOST,
    accept(socket) {
      socket.pause()
      accepted.resolve(socket)
      return near
    },
  })
  const far = await peerClient(listening.port, false)
  const socket = await within(accepted.promise, 'accept')
  far.pause()
  far.write(Buffer.alloc(1_000_000))
  const piece = new Uint8Array(1_000_000)
  while (socket.write(piece) === piece.length) await Bun.sleep(0)
  // What would be read would be read in the next turns.
  for (let turn = 0; turn < 50; turn++) await Bun.sleep(1)
  expect(near.receivedBytes).toBe(0)
  socket.resume()
  await near.until(() => near.receivedBytes === 1_000_000, 'all bytes')
  far.destroy()
  listening.stop(true)
})
