// One lane on real sockets, without its thread: what it hands back, and when it does not take a request at all.

import { afterAll, describe, expect, test } from 'bun:test'
import { createServer, type Socket as PeerSocket } from 'node:net'
import { descriptorOf } from '../../src/sockets/descriptor.ts'
import { Kernel } from '../../src/splice/kernel.ts'
import { Lane, type LaneOver, LaneTools } from '../../src/splice/lane.ts'
import { LaneBoard } from '../../src/splice/lane-board.ts'
import { canSplice } from '../../src/splice/splicer.ts'
import { eventually } from '../support/events.ts'
import { get, ok } from '../support/exchange.ts'
import { HOST, laneTerms } from '../support/lane-terms.ts'
import { reset } from '../support/peer.ts'

/** A connection: one end for a lane, by its descriptor, which nobody else reads; the other in the test's hands. */
async function pair(): Promise<{ descriptor: number; peer: PeerSocket; close(this: void): void }> {
  const accepted = Promise.withResolvers<PeerSocket>()
  const server = createServer({ noDelay: true }, socket => accepted.resolve(socket)).listen(0, '127.0.0.1')
  await new Promise(resolve => server.once('listening', resolve))
  const address = server.address()
  const port = typeof address === 'object' && address !== null ? address.port : 0
  const held = await Bun.connect({
    hostname: '127.0.0.1',
    port,
    socket: {
      open(socket) {
        socket.pause()
      },
      data() {},
    },
  })
  const peer = await accepted.promise
  peer.on('error', () => {}) // looked at by the test, if it cares
  return {
    descriptor: descriptorOf(held) ?? -1,
    peer,
    close() {
      held.terminate()
      peer.destroy()
      server.close()
    },
  }
}

describe.skipIf(!canSplice())('a lane', () => {
  const closing: (() => void)[] = []
  afterAll(() => {
    for (const close of closing) close()
  })

  async function open() {
    const [visitor, stream] = [await pair(), await pair()]
    closing.push(visitor.close, stream.close)
    const board = new LaneBoard()
    const terms = laneTerms()
    const order = {
      slot: 3,
      visitor: visitor.descriptor,
      to: stream.descriptor,
      from: stream.descriptor,
      terms,
    }
    const lane = new Lane(order, new LaneTools(new Kernel(), board))
    let [atApp, atVisitor] = ['', '']
    stream.peer.on('data', bytes => (atApp += bytes.toString('latin1')))
    visitor.peer.on('data', bytes => (atVisitor += bytes.toString('latin1')))
    return {
      lane,
      era: terms.era,
      board,
      visitor: visitor.peer,
      app: stream.peer,
      /** Until the lane is over, or the app was asked. */
      async asked(this: void): Promise<string> {
        atApp = ''
        await eventually(() => {
          if (lane.over === undefined && atApp === '') lane.visitorChanged(false)
          return lane.over !== undefined || atApp.includes('\r\n\r\n')
        }, 'a request at the app')
        return atApp
      },
      /** Until the lane is over, or the visitor was answered. */
      async answered(this: void): Promise<string> {
        atVisitor = ''
        await eventually(() => {
          if (lane.over === undefined && atVisitor === '') lane.streamChanged()
          return lane.over !== undefined || atVisitor !== ''
        }, 'an answer at the visitor')
        return atVisitor
      },
    }
  }

  const text = (bytes: LaneOver['request']) => bytes && Buffer.from(bytes).toString('latin1')

  test('forwards a request and its answer, and counts both', async () => {
    const { lane, board, visitor, app, asked, answered } = await open()
    for (let count = 1; count <= 3; count++) {
      visitor.write(get(HOST, '/a'))
      const request = await asked()
      expect(request).toStartWith(`GET /a HTTP/1.1\r\nHost: ${HOST}\r\nX-Forwarded-For: 192.0.2.1\r\n`)
      app.write(ok('body'))
      expect(await answered()).toBe(ok('body'))
      expect(board.counts(3)).toEqual({
        requests: count,
        bytesIn: count * get(HOST, '/a').length,
        bytesOut: count * ok('body').length,
      })
      expect(board.sentBytes(3)).toBe(count * request.length)
      expect(board.receivedBytes(3)).toBe(count * ok('body').length)
    }
    expect(lane.over).toBeUndefined()
  })

  test('takes no request any more once it may have to go elsewhere', async () => {
    const { lane, era, visitor, asked } = await open()
    Atomics.add(era, 0, 1)
    visitor.write(get(HOST, '/a'))
    expect(await asked()).toBe('')
    expect(text(lane.over?.request)).toBe(get(HOST, '/a'))
    expect(lane.over).toMatchObject({ isAsked: false, failed: undefined })
  })

  test('still brings the answer of one that it took before', async () => {
    const { lane, era, visitor, app, asked, answered } = await open()
    visitor.write(get(HOST, '/a'))
    await asked()
    Atomics.add(era, 0, 1)
    app.write(ok('body'))
    expect(await answered()).toBe(ok('body'))
    expect(lane.over).toBeUndefined()
  })

  test('stopped in the middle, it hands the request back as one that was asked', async () => {
    const { lane, visitor, asked } = await open()
    visitor.write(get(HOST, '/a'))
    await asked()
    lane.finish()
    expect(text(lane.over?.request)).toBe(get(HOST, '/a'))
    expect(lane.over).toMatchObject({ isAsked: true, isTorn: false, answer: undefined })
  })

  test('an answer that nobody asked for reaches nobody', async () => {
    const { lane, app, answered } = await open()
    app.write(ok('poison'))
    expect(await answered()).toBe('')
    expect(text(lane.over?.answer)).toBe(ok('poison'))
    expect(lane.over).toMatchObject({ isAsked: false, request: undefined })
  })

  test('two answers to one request: the visitor gets neither from it', async () => {
    const { lane, visitor, app, asked, answered } = await open()
    visitor.write(get(HOST, '/a'))
    await asked()
    app.write(ok('one') + ok('two'))
    expect(await answered()).toBe('')
    expect(text(lane.over?.answer)).toBe(ok('one') + ok('two'))
    expect(lane.over?.isAsked).toBe(true)
  })

  test('says who broke: the visitor', async () => {
    const { lane, visitor, app, asked, answered } = await open()
    visitor.write(get(HOST, '/a'))
    await asked()
    reset(visitor)
    await Bun.sleep(20) // the reset is on its way, and nothing here would tell of its coming
    app.write(ok('body'))
    await answered()
    expect(lane.over?.failed).toBe('visitor')
  })

  test('says who broke: the stream', async () => {
    const { lane, app, answered } = await open()
    reset(app)
    await answered()
    expect(lane.over?.failed).toBe('from')
  })

  test('a stream that is full takes no part of a request', async () => {
    const { lane, visitor, app, asked } = await open()
    app.pause()
    const kernel = new Kernel()
    const filler = kernel.room(1_048_576)
    while (kernel.send(lane.order.to, filler, filler.bytes.length) > 0);
    visitor.write(get(HOST, '/a'))
    await asked()
    // Nothing of it fitted: so it was never asked.
    expect(lane.over).toMatchObject({ isAsked: false, isTorn: false })
    expect(text(lane.over?.request)).toBe(get(HOST, '/a'))
  })
})
