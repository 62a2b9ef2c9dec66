// The life of a stream: opened, half-closed, reset, refused, and what happens when both ends do it at once.

import { describe, expect, test } from 'bun:test'
import { Books } from '../support/books.ts'
import { Pair } from '../support/sessions.ts'

const bytesOf = (text: string) => new TextEncoder().encode(text)

const pair = (options = {}) => {
  const books = new Books()
  return Object.assign(new Pair({ observer: books }, options), { books })
}

describe('a stream', () => {
  test('carries bytes that were written before the other side knew of it', () => {
    const both = pair()
    const near = both.open(9)
    expect(near.stream?.write(bytesOf('early'))).toBe(true)
    both.settle()
    const far = both.clientLog.streams[0]
    expect(far?.stream?.tunnel).toBe(9)
    expect(far?.bytes).toEqual(bytesOf('early'))
  })

  test('closed one way goes on the other way, and is forgotten when both have ended', () => {
    const both = pair()
    const { near, far } = both.join()
    near.stream?.write(bytesOf('request'))
    near.stream?.end()
    both.settle()
    expect(far.deliveredAtEnd).toBe(0)
    far.stream?.write(bytesOf('answer'))
    both.settle()
    expect(near.bytes).toEqual(bytesOf('answer'))
    expect(both.server.streamCount).toBe(1)
    far.stream?.end()
    both.settle()
    expect(near.deliveredAtEnd).toBe(7)
    expect(both.server.streamCount + both.client.streamCount).toBe(0)
  })

  test('writes after its end go nowhere', () => {
    const both = pair()
    const { near, far } = both.join()
    near.stream?.end()
    expect(near.stream?.write(bytesOf('late'))).toBe(true)
    near.stream?.end()
    both.settle()
    expect(far.bytes.length).toBe(0)
    expect(both.books.log.filter(line => line === 'server END 1').length).toBe(1)
  })

  test('ends behind what is queued for lack of credit, and exactly where credit ends', () => {
    for (const extra of [-1, 0, 1]) {
      const both = pair()
      const { near, far } = both.join()
      far.isReading = false
      near.stream?.write(new Uint8Array(262_144 + extra))
      near.stream?.end()
      both.settle()
      const hasAll = extra <= 0
      expect(far.deliveredAtEnd).toBe(hasAll ? 0 : undefined)
      far.stream?.consumed(far.receivedBytes)
      both.settle()
      expect(far.receivedBytes).toBe(262_144 + extra)
      expect(far.deliveredAtEnd).toBe(0)
      expect(near.writables).toBe(0)
    }
  })

  test('tells in END how much of the other side was delivered, not how much had arrived', () => {
    const both = pair()
    const { near, far } = both.join()
    far.isReading = false
    near.stream?.write(new Uint8Array(1000))
    both.settle()
    far.stream?.consumed(300)
    far.stream?.end()
    both.settle()
    expect(near.deliveredAtEnd).toBe(300)
  })

  test('tells in RESET how much of the other side was delivered', () => {
    const both = pair()
    const { near, far } = both.join()
    far.isReading = false
    near.stream?.write(new Uint8Array(1000))
    both.settle()
    far.stream?.consumed(299)
    far.stream?.reset('ORIGIN_CLOSED')
    both.settle()
    expect([near.resetWith, near.deliveredAtReset]).toEqual(['ORIGIN_CLOSED', 299])
    expect(far.resetWith).toBeUndefined()
    expect(both.server.streamCount + both.client.streamCount).toBe(0)
  })

  test('that lost its carrier counts all bytes sent as delivered, but not those still queued', () => {
    const both = pair()
    const { near, far } = both.join()
    far.isReading = false
    near.stream?.write(new Uint8Array(262_144))
    near.stream?.write(new Uint8Array(5000))
    both.settle()
    both.link.cut()
    expect([near.resetWith, near.deliveredAtReset]).toEqual(['CARRIER_LOST', 262_144])
  })

  test('refused by the client is reset with the reason', () => {
    const both = pair()
    both.clientLog.onOpened = () => 'ORIGIN_REFUSED'
    const near = both.open()
    both.settle()
    expect([near.resetWith, near.deliveredAtReset]).toEqual(['ORIGIN_REFUSED', 0])
    expect(both.client.streamCount).toBe(0)
  })

  test('takes empty writes without a frame', () => {
    const both = pair()
    const { near, far } = both.join()
    const frames = both.books.log.length
    expect(near.stream?.write(new Uint8Array(0))).toBe(true)
    both.settle()
    expect(both.books.log.length).toBe(frames)
    far.isReading = false
    expect(near.stream?.write(new Uint8Array(300_000))).toBe(false)
    expect(near.stream?.write(new Uint8Array(0))).toBe(false)
    expect(near.stream?.queue.length).toBe(1)
  })

  test('is writable once after it was backed up, not more', () => {
    const both = pair()
    const { near, far } = both.join()
    far.isReading = false
    expect(near.stream?.write(new Uint8Array(400_000))).toBe(false)
    both.settle()
    expect([near.writables, near.stream?.isBackedUp]).toEqual([0, true])
    far.isReading = true
    far.stream?.consumed(far.receivedBytes)
    both.settle()
    expect([near.writables, near.stream?.isBackedUp, far.receivedBytes]).toEqual([1, false, 400_000])
    both.settle()
    expect(near.writables).toBe(1)
  })
})

describe('both ends at once', () => {
  test('END meets END', () => {
    const both = pair()
    const { near, far } = both.join()
    near.stream?.end()
    far.stream?.end()
    both.settle()
    expect([near.deliveredAtEnd, far.deliveredAtEnd]).toEqual([0, 0])
    expect(both.server.streamCount + both.client.streamCount).toBe(0)
  })

  test('RESET meets RESET: neither hears of the other', () => {
    const both = pair()
    const { near, far } = both.join()
    near.stream?.reset('CANCELLED')
    far.stream?.reset('ORIGIN_CLOSED')
    both.settle()
    expect([near.resetWith, far.resetWith]).toEqual([undefined, undefined])
    expect(both.server.streamCount + both.client.streamCount).toBe(0)
    expect(both.server.isClosed || both.client.isClosed).toBe(false)
  })

  test('RESET meets data, END and credit that were on their way: they are dropped in silence', () => {
    const both = pair()
    const { near, far } = both.join()
    near.stream?.write(new Uint8Array(200_000))
    both.settle()
    far.stream?.write(new Uint8Array(100_000))
    far.stream?.end()
    near.stream?.reset('CANCELLED')
    near.stream?.write(bytesOf('late'))
    near.stream?.consumed(5)
    both.settle()
    expect(near.bytes.length).toBe(0)
    expect(far.resetWith).toBe('CANCELLED')
    expect(both.server.isClosed || both.client.isClosed).toBe(false)
  })

  test('RESET drops what was queued', () => {
    const both = pair()
    const { near, far } = both.join()
    far.isReading = false
    near.stream?.write(new Uint8Array(400_000))
    both.settle()
    near.stream?.reset('CANCELLED')
    expect([near.stream?.queue.length, near.stream?.queuedBytes]).toEqual([0, 0])
    far.stream?.consumed(far.receivedBytes)
    both.settle()
    expect(far.receivedBytes).toBe(262_144)
    expect(far.resetWith).toBe('CANCELLED')
  })

  test('credit for bytes sent before an END that has arrived means nothing any more', () => {
    const both = pair()
    const { near, far } = both.join()
    far.isReading = false
    near.stream?.write(new Uint8Array(262_144))
    near.stream?.end()
    both.settle()
    far.stream?.consumed(262_144)
    both.settle()
    expect(both.books.log).not.toContain('client CREDIT 1')
    far.stream?.end()
    both.settle()
    expect(near.deliveredAtEnd).toBe(262_144)
  })
})

describe('a session', () => {
  test('puts everything of one tick into one write', () => {
    const both = pair()
    const streams = Array.from({ length: 20 }, () => both.join().near)
    const { writes } = both.link.server
    for (const { stream } of streams) stream?.write(new Uint8Array(2000))
    streams[3]?.stream?.end()
    streams[4]?.stream?.reset('CANCELLED')
    both.server.sendControl(bytesOf('{}'))
    both.server.ping()
    expect(both.link.server.writes).toBe(writes)
    both.clock.tick()
    expect(both.link.server.writes).toBe(writes + 1)
    both.settle()
    expect(both.link.server.writes).toBe(writes + 1)
  })

  test('opens no more streams than it may, and again when one is gone', () => {
    const both = pair({ maxStreams: 3 })
    const streams = [both.open(), both.open(), both.open()]
    expect(() => both.open()).toThrow('opens no stream')
    streams[0]?.stream?.reset('CANCELLED')
    expect(both.open().stream).toBeDefined()
  })

  test('opens no stream to a client that is leaving, and goes on with those that are open', () => {
    const both = pair()
    const { near, far } = both.join()
    both.client.leave('SERVER_DRAINING')
    both.settle()
    expect(both.serverLog.leavings).toEqual(['SERVER_DRAINING'])
    expect(both.server.open(7, near)).toBeUndefined()
    far.stream?.write(bytesOf('still here'))
    both.settle()
    expect(near.bytes).toEqual(bytesOf('still here'))
  })

  test('closed by one end tells the other why, and leaves nothing behind', () => {
    const both = pair()
    const { near, far } = both.join()
    both.server.close('SERVER_DRAINING')
    both.settle()
    expect(both.clientLog.leavings).toEqual(['SERVER_DRAINING'])
    expect(both.serverLog.closes.map(({ code }) => code)).toEqual(['SERVER_DRAINING'])
    expect(both.clientLog.closes.map(({ code }) => code)).toEqual(['CARRIER_LOST'])
    expect([near.resetWith, far.resetWith]).toEqual(['SERVER_DRAINING', 'CARRIER_LOST'])
    both.expectNothingLeft()
  })

  test('tells why also when its carrier is full', () => {
    const both = new Pair({ roomBytes: 1000 })
    const { near } = both.join()
    near.stream?.write(new Uint8Array(100_000))
    both.clock.tick()
    both.server.close('SERVER_DRAINING')
    both.settle()
    expect(both.clientLog.leavings).toEqual(['SERVER_DRAINING'])
  })

  test('sends control messages up to a full frame, and refuses longer ones', () => {
    const both = pair()
    both.server.sendControl(new Uint8Array(65_536).fill(0x61))
    both.settle()
    expect(both.clientLog.messages.map(({ length }) => length)).toEqual([65_536])
    expect(() => both.server.sendControl(new Uint8Array(65_537))).toThrow(RangeError)
  })
})
