// Streams share one carrier in turns: a small answer waits behind one frame of each download, not behind the downloads.

import { describe, expect, test } from 'bun:test'
import { MAX_FRAME_BYTES } from '../../src/wire/frame.ts'
import { Books } from '../support/books.ts'
import { Pair } from '../support/sessions.ts'

const BULK_STREAMS = 10
/** What the outbox gathers before it writes within a tick. */
const BATCH_BYTES = 4 * (MAX_FRAME_BYTES + 8)

/** Ten downloads that always have more to send, over a carrier that is full most of the time. */
function busyPair(roomBytes: number) {
  const books = new Books()
  const both = new Pair({ observer: books, roomBytes, largestPiece: 500_000 })
  const bulks = Array.from({ length: BULK_STREAMS }, () => both.join().near)
  for (const bulk of bulks) {
    bulk.onEvent = event => {
      // A source that always has more, and pushes it right out of the callback.
      if (event === 'writable') while (bulk.stream?.write(new Uint8Array(200_000)));
    }
  }
  const small = both.join().near
  for (const bulk of bulks) while (bulk.stream?.write(new Uint8Array(200_000)));
  return { both, books, bulks, small }
}

describe('a full carrier', () => {
  for (const roomBytes of [100_000, 262_144, 600_000]) {
    test(`lets a small write wait behind one frame of each bulk stream (${roomBytes} bytes of room)`, () => {
      const { both, books, bulks, small } = busyPair(roomBytes)
      for (let round = 0; round < 20; round++) both.step()
      for (let round = 0; round < 30; round++) {
        const bulkBytes = () =>
          bulks.reduce((sum, { stream }) => sum + books.account('server', stream?.id ?? 0).sent, 0)
        const before = bulkBytes()
        // What the carrier keeps and what this tick gathered cannot be overtaken.
        const ahead = both.link.server.heldBytes + BATCH_BYTES
        small.stream?.write(new Uint8Array(50))
        const account = books.account('server', small.stream?.id ?? 0)
        for (let steps = 0; account.sent < (small.stream?.sentBytes ?? 0); steps++) {
          if (steps > 1000) throw new Error('the small write never leaves')
          both.step()
        }
        // The rest of the bulk may leave in the same step, behind the small one: the log has the order.
        const behind =
          books.log.slice(books.log.lastIndexOf(`server DATA ${small.stream?.id}`)).length * MAX_FRAME_BYTES
        expect(bulkBytes() - before - behind).toBeLessThanOrEqual(ahead + BULK_STREAMS * MAX_FRAME_BYTES)
        both.step()
      }
    })
  }

  test('serves bulk streams alike', () => {
    const { both, bulks } = busyPair(100_000)
    for (let round = 0; round < 400; round++) {
      both.step()
      both.clock.advance(1)
    }
    const sent = bulks.map(({ stream }) => (stream?.sentBytes ?? 0) - (stream?.queuedBytes ?? 0))
    expect(Math.min(...sent)).toBeGreaterThan(500_000)
    expect(Math.max(...sent)).toBeLessThan(1.5 * Math.min(...sent))
  })

  test('forgets a stream that is reset while it waits', () => {
    const { both, bulks, small } = busyPair(100_000)
    both.step()
    for (const bulk of bulks) bulk.stream?.reset('CANCELLED')
    small.stream?.write(new Uint8Array(50))
    both.settle()
    expect(both.clientLog.streams.at(-1)?.receivedBytes).toBe(50)
    expect(both.server.streamCount).toBe(1)
  })

  test('serves a stream that writes or credits from within another one’s callback', () => {
    const both = new Pair({ roomBytes: 50_000 })
    const first = both.join()
    const second = both.join()
    first.near.onEvent = event => {
      if (event === 'writable') second.near.stream?.write(new Uint8Array(100_000))
    }
    second.near.stream?.write(new Uint8Array(60_000))
    both.clock.tick()
    expect(first.near.stream?.write(new Uint8Array(100_000))).toBe(false)
    both.settle()
    expect([first.far.receivedBytes, second.far.receivedBytes]).toEqual([100_000, 160_000])
  })

  test('does not let what piled up meanwhile keep its memory', () => {
    const both = new Pair({ roomBytes: 1000 })
    const { near } = both.join()
    near.stream?.write(new Uint8Array(100_000))
    both.clock.tick()
    for (let count = 0; count < 10; count++) both.server.sendControl(new Uint8Array(60_000).fill(0x61))
    both.settle()
    const batches = new Set<ArrayBufferLike>()
    const send = both.link.server.send.bind(both.link.server)
    both.link.server.send = (batch, start, end) => {
      batches.add(batch.buffer)
      return send(batch, start, end)
    }
    for (let count = 0; count < 5; count++) {
      near.stream?.write(new Uint8Array(2000))
      both.settle()
    }
    for (const buffer of batches) expect(buffer.byteLength).toBeLessThan(300_000)
  })
})
