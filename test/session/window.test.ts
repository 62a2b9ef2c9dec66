// Credit over a long road: windows grow until the path is the limit, never beyond what they may, and are given back.

import { describe, expect, test } from 'bun:test'
import { Books } from '../support/books.ts'
import { Clock } from '../support/clock.ts'
import { Random } from '../support/random.ts'
import { Pair, type StreamLog } from '../support/sessions.ts'

const INITIAL = 262_144
const MiB = 1_048_576

interface Road {
  readonly delayMs: number
  readonly bytesPerMs: number
}

function roadPair({ delayMs, bytesPerMs }: Road, limits = { stream: 4 * MiB, session: 64 * MiB }) {
  const clock = new Clock()
  const books = new Books(limits)
  const both = new Pair(
    {
      random: new Random(1),
      observer: books,
      roomBytes: INITIAL,
      timed: { clock, delayMs, bytesPerMs },
    },
    { maxStreamWindowBytes: limits.stream, maxSessionWindowBytes: limits.session },
  )
  clock.advance(3 * delayMs)
  return { both, books, clock }
}

/** A stream whose server end always has more to send. */
function download(both: Pair, clock: Clock, delayMs: number): { near: StreamLog; far: StreamLog } {
  const near = both.open()
  clock.advance(2 * delayMs)
  const far = both.clientLog.streams.at(-1)
  if (far === undefined) throw new Error('the stream did not arrive')
  const piece = new Uint8Array(65_536)
  near.onEvent = event => {
    if (event === 'writable') while (!near.stream?.isClosed && near.stream?.write(piece));
  }
  while (near.stream?.write(piece));
  return { near, far }
}

describe('one bulk stream over a long road', () => {
  for (const road of [
    { delayMs: 50, bytesPerMs: 10_000 },
    { delayMs: 50, bytesPerMs: 30_000 },
    { delayMs: 10, bytesPerMs: 60_000 },
    { delayMs: 1, bytesPerMs: 20_000 },
  ]) {
    test(`reaches 80 % of ${road.bytesPerMs / 1000} MB/s at ${2 * road.delayMs} ms`, () => {
      const { both, clock } = roadPair(road)
      const { far } = download(both, clock, road.delayMs)
      // Half a second of growing up, then measured.
      clock.advance(Math.max(500, 12 * road.delayMs))
      const before = far.receivedBytes
      clock.advance(1000)
      expect(far.receivedBytes - before).toBeGreaterThan(0.8 * 1000 * road.bytesPerMs)
      // Only DATA is kept by the log; let it go before the next road.
      far.pieces.length = 0
    })
  }

  test('keeps the first window where that is enough for the road', () => {
    const { both, books, clock } = roadPair({ delayMs: 5, bytesPerMs: 1000 })
    download(both, clock, 5)
    clock.advance(2000)
    expect(books.largestWindow).toBeLessThanOrEqual(2 * INITIAL)
  })
})

describe('growth', () => {
  test('stops at the limit of a stream', () => {
    const { both, books, clock } = roadPair(
      { delayMs: 50, bytesPerMs: 100_000 },
      { stream: 700_000, session: 64 * MiB },
    )
    download(both, clock, 50)
    clock.advance(2000)
    expect(books.largestWindow).toBeGreaterThan(600_000)
    expect(books.largestWindow).toBeLessThanOrEqual(700_000)
  })

  test('stops at the limit of the session, and what a closed stream had is given to the next', () => {
    const { both, books, clock } = roadPair(
      { delayMs: 50, bytesPerMs: 50_000 },
      { stream: 4 * MiB, session: MiB },
    )
    for (let round = 0; round < 3; round++) {
      const streams = Array.from({ length: 6 }, () => download(both, clock, 50))
      clock.advance(1000)
      const grown = streams.map(({ far }) => (far.stream?.window ?? 0) - INITIAL)
      // As much as fits in doublings: more than half of the budget, in every round.
      const total = grown.reduce((sum, growth) => sum + growth, 0)
      expect(total).toBeGreaterThan(MiB / 2)
      expect(total).toBeLessThanOrEqual(MiB)
      for (const [index, { near, far }] of streams.entries()) {
        if (index % 2 === 0) near.stream?.reset('CANCELLED')
        else far.stream?.reset('ORIGIN_CLOSED')
        near.onEvent = () => {}
      }
      clock.advance(1000)
      expect(both.client.streamCount + both.server.streamCount).toBe(0)
    }
    expect(books.largestGrowth).toBeGreaterThan(MiB / 2)
  })

  test('does not begin before a round trip is known', () => {
    const both = new Pair()
    const near = both.open()
    near.stream?.write(new Uint8Array(INITIAL))
    // Everything arrives in one go: the client's PING has no answer yet.
    both.clock.tick()
    both.link.deliver()
    expect(both.client.roundTripMs).toBe(0)
    expect(both.clientLog.streams[0]?.stream?.window).toBe(INITIAL)
  })
})

describe('a stalled reader', () => {
  test('stops its sender at one window, and holds up no other stream', () => {
    const both = new Pair()
    const stalled = both.join()
    const other = both.join()
    stalled.far.isReading = false
    stalled.near.stream?.write(new Uint8Array(10 * MiB))
    both.settle()
    expect(stalled.far.receivedBytes).toBe(INITIAL)
    other.near.stream?.write(new Uint8Array(1000))
    both.settle()
    expect(other.far.receivedBytes).toBe(1000)
  })
})
