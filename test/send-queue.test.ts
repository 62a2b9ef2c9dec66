// What a writer keeps while the kernel is full: in order, whole, and without pinning more than it must.

import { expect, test } from 'bun:test'
import { SendQueue } from '../src/bytes.ts'
import type { Socket } from '../src/socket.ts'
import { FUZZ, Random } from './support/random.ts'

/** A socket that takes as much as it is told to. */
class Kernel {
  room = 0
  taken: number[] = []
  readonly socket: Socket = {
    write: (bytes, start = 0, end = bytes.length) => {
      const count = Math.min(end - start, this.room)
      this.room -= count
      for (const byte of bytes.subarray(start, start + count)) this.taken.push(byte)
      return count
    },
    end() {},
    terminate() {},
    pause() {},
    resume() {},
    remoteAddress: '',
    endpoints: () => undefined,
  }
}

test('every byte arrives once and in order, whatever the kernel takes and whatever is reused', () => {
  for (let seed = 1; seed <= 100 * FUZZ; seed++) {
    const random = new Random(seed)
    const kernel = new Kernel()
    const unsent = new SendQueue()
    const expected: number[] = []
    // The `slice` of a Buffer is no copy.
    const scratch = random.chance(0.5) ? Buffer.alloc(9_200) : new Uint8Array(9_200)
    for (let step = 0; step < 60; step++) {
      kernel.room = random.chance(0.5) ? 0 : random.below(9_000)
      if (random.below(3) === 0) {
        const before = unsent.length
        expect(unsent.flush(kernel.socket)).toBe(before - unsent.length)
        continue
      }
      const size = random.below(random.chance(0.5) ? 100 : 9_000)
      const start = random.below(100)
      scratch.set(random.bytes(size), start)
      expected.push(...scratch.subarray(start, start + size))
      const waiting = unsent.length
      const taken = unsent.send(kernel.socket, scratch, start, start + size)
      expect(unsent.length).toBe(waiting + size - taken)
      scratch.fill(255)
    }
    kernel.room = Number.POSITIVE_INFINITY
    unsent.flush(kernel.socket)
    expect(unsent.isEmpty).toBe(true)
    expect(Buffer.compare(Buffer.from(kernel.taken), Buffer.from(expected))).toBe(0)
  }
})

test('four million pieces of one byte cost about as many bytes, not as many arrays', () => {
  const unsent = new SendQueue()
  const { socket } = new Kernel()
  const read = new Uint8Array(65_536)
  const before = process.memoryUsage().rss
  for (let n = 0; n < 4_000_000; n++) unsent.send(socket, read.subarray(n & 65_535, (n & 65_535) + 1))
  expect(unsent.length).toBe(4_000_000)
  expect(process.memoryUsage().rss - before).toBeLessThan(64 * 1024 * 1024)
})
