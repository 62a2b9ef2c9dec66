// Datagrams framed on a stream, against a plain reading of docs/protocol.md: random sizes, slices, and a full far side.

import { expect, test } from 'bun:test'
import { DATAGRAM_HEADER_BYTES, DatagramReader, frameDatagrams } from '../../src/wire/datagrams.ts'
import { FUZZ, Random } from '../support/random.ts'

/** The framing, as plainly as it can be said. */
const naiveFrame = (datagrams: readonly Uint8Array[]): number[] =>
  datagrams.flatMap(bytes => [Math.floor(bytes.length / 256), bytes.length % 256, ...bytes])

function naiveRead(bytes: readonly number[]): number[][] {
  const [high, low] = bytes
  if (high === undefined || low === undefined) return []
  const end = 2 + high * 256 + low
  return end > bytes.length ? [] : [bytes.slice(2, end), ...naiveRead(bytes.slice(end))]
}

const framed = (datagrams: readonly Uint8Array[]): Uint8Array => {
  const bytes = new Uint8Array(datagrams.reduce((sum, { length }) => sum + length + DATAGRAM_HEADER_BYTES, 0))
  expect(frameDatagrams(datagrams, bytes)).toBe(bytes.length)
  return bytes
}

test('what is framed is what the plain framing says, and is read back as it was', () => {
  for (let seed = 0; seed < 100 * FUZZ; seed++) {
    const rng = new Random(seed)
    const datagrams = Array.from({ length: rng.below(20) }, () =>
      rng.bytes(rng.pick([0, 1, 2, 255, 256, rng.below(3_000)])),
    )
    const bytes = framed(datagrams)
    expect([...bytes]).toEqual(naiveFrame(datagrams))
    const read: number[][] = []
    const reader = new DatagramReader(some => {
      read.push(...some.map(one => [...one]))
      return some.length
    })
    for (const piece of rng.slices(bytes, rng.pick([1, 3, 100, 10_000])))
      expect(reader.receive(piece)).toBe(piece.length)
    expect(read).toEqual(datagrams.map(one => [...one]))
  }
})

test('any bytes at all are read as the plain reading reads them', () => {
  for (let seed = 0; seed < 200 * FUZZ; seed++) {
    const rng = new Random(seed + 10_000)
    // Mostly short lengths: random ones would make a single datagram of it all.
    const bytes = rng.bytes(rng.below(400)).map(byte => (rng.chance(0.6) ? byte & 3 : byte))
    const read: number[][] = []
    const reader = new DatagramReader(some => {
      read.push(...some.map(one => [...one]))
      return some.length
    })
    for (const piece of rng.slices(bytes, 20)) reader.receive(piece)
    expect(read).toEqual(naiveRead([...bytes]))
  }
})

test('a far side that is full now and then loses nothing, repeats nothing and keeps the order', () => {
  for (let seed = 0; seed < 200 * FUZZ; seed++) {
    const rng = new Random(seed + 20_000)
    const datagrams = Array.from({ length: 1 + rng.below(20) }, () => rng.bytes(rng.below(300)))
    const read: number[][] = []
    const reader = new DatagramReader(some => {
      const taken = rng.below(some.length + 1)
      read.push(...some.slice(0, taken).map(one => [...one]))
      return taken
    })
    for (const piece of rng.slices(framed(datagrams), rng.pick([2, 50, 5_000])))
      for (let at = 0; at < piece.length; ) at += reader.receive(piece.subarray(at))
    while (!reader.retry());
    expect(read).toEqual(datagrams.map(one => [...one]))
  }
})

test('a reader that may send so many at once loses nothing and keeps the order', () => {
  for (let seed = 0; seed < 200 * FUZZ; seed++) {
    const rng = new Random(seed + 30_000)
    const datagrams = Array.from({ length: 1 + rng.below(20) }, () => rng.bytes(rng.below(300)))
    const read: number[][] = []
    let sent = 0
    const reader = new DatagramReader(some => {
      sent += some.length
      read.push(...some.map(one => [...one]))
      return some.length
    })
    for (const piece of rng.slices(framed(datagrams), rng.pick([2, 50, 5_000])))
      for (let at = 0; at < piece.length; ) {
        const most = rng.below(4)
        sent = 0
        at += reader.receive(piece.subarray(at), most)
        expect(sent).toBeLessThanOrEqual(most)
      }
    expect(read).toEqual(datagrams.map(one => [...one]))
  }
})

test('datagrams that came whole are sent in one go, without a copy', () => {
  const bytes = framed([new Uint8Array(10), new Uint8Array(0), new Uint8Array(20)])
  const calls: (readonly Uint8Array[])[] = []
  new DatagramReader(some => {
    calls.push(some)
    return some.length
  }).receive(bytes)
  expect(calls.map(some => some.length)).toEqual([3])
  expect(calls[0]?.every(({ buffer }) => buffer === bytes.buffer)).toBe(true)
})
