// A raw visitor's connection between two servers: whatever pieces the bytes come in, and however little the kernel takes.

import { expect, test } from 'bun:test'
import { SendQueue } from '../../src/bytes.ts'
import { FramedSocket } from '../../src/parts/cluster/framed-socket.ts'
import type { Socket, SocketHandler } from '../../src/socket.ts'
import { FUZZ, Random } from '../support/random.ts'

/** A connection that takes as much as it is told, in bytes. */
class Kernel implements Socket {
  readonly remoteAddress = '192.0.2.1'
  readonly taken: number[] = []
  room = Number.POSITIVE_INFINITY
  hasEnded = false
  isCut = false

  write(bytes: Uint8Array, start = 0, end: number = bytes.length): number {
    const count = Math.min(this.room, end - start)
    this.room -= count
    this.taken.push(...bytes.subarray(start, start + count))
    return count
  }

  end(): void {
    this.hasEnded = true
  }
  terminate(): void {
    this.isCut = true
  }
  pause(): void {}
  resume(): void {}
  endpoints(): undefined {}
}

class Heard implements SocketHandler {
  readonly bytes: number[] = []
  ends = 0
  closes: (Error | undefined)[] = []
  received(bytes: Uint8Array): void {
    this.bytes.push(...bytes)
  }
  drained(): void {}
  ended(): void {
    this.ends++
  }
  closed(error?: Error): void {
    this.closes.push(error)
  }
}

test('bytes and end arrive as they were sent, whatever the kernel takes at a time and in whatever pieces they come', () => {
  const seed = Number(process.env.LT_SEED ?? Math.floor(Math.random() * 1e9))
  const pick = new Random(seed)
  for (let round = 0; round < 300 * FUZZ; round++) {
    const kernel = new Kernel()
    const sender = new FramedSocket(kernel, new Heard())
    const unsent = new SendQueue()
    const sent: number[] = []
    for (let pieces = pick.below(8); pieces > 0; pieces--) {
      const piece = new Uint8Array(pick.below(10) === 0 ? 70_000 : pick.below(40)).fill(pick.below(256))
      sent.push(...piece)
      kernel.room = pick.below(5)
      unsent.send(sender, piece)
      for (let turns = pick.below(4); turns > 0; turns--) {
        kernel.room = pick.below(60)
        sender.drained()
        unsent.flush(sender)
      }
    }
    while (!unsent.isEmpty) {
      kernel.room = 1 + pick.below(30_000)
      sender.drained()
      unsent.flush(sender)
    }
    kernel.room = pick.below(3)
    sender.end()
    for (; kernel.room === 0; sender.drained()) kernel.room = 1
    const heard = new Heard()
    const reader = new FramedSocket(new Kernel(), heard)
    const wire = Uint8Array.from(kernel.taken)
    for (let at = 0; at < wire.length; ) {
      const end = Math.min(wire.length, at + 1 + pick.below(pick.below(3) === 0 ? 100_000 : 4))
      reader.received(wire.subarray(at, end))
      at = end
    }
    expect(Buffer.compare(Buffer.from(heard.bytes), Buffer.from(sent)), `seed ${seed}`).toBe(0)
    expect(heard.ends, `seed ${seed}`).toBe(1)
  }
})

test('a connection that closes without the end of both ways was cut', () => {
  const kernel = new Kernel()
  const heard = new Heard()
  const socket = new FramedSocket(kernel, heard)
  socket.received(Uint8Array.of(0, 2, 65))
  // As a unix socket says it when the other side is gone.
  socket.ended()
  expect(kernel.isCut).toBeTrue()
  socket.closed()
  expect(heard.bytes).toEqual([65])
  expect(heard.ends).toBe(0)
  expect(heard.closes).toEqual([expect.any(Error)])
})

test('a connection closes once both ways have ended, and only then', () => {
  const kernel = new Kernel()
  const heard = new Heard()
  const socket = new FramedSocket(kernel, heard)
  socket.end()
  expect(kernel.hasEnded).toBeFalse()
  socket.received(Uint8Array.of(0, 1, 65, 0, 0))
  expect(heard).toMatchObject({ bytes: [65], ends: 1 })
  expect(kernel.hasEnded).toBeTrue()
  socket.closed()
  expect(heard.closes).toEqual([undefined])
})

test('what comes behind the end, another end or more bytes, is dropped', () => {
  const heard = new Heard()
  const socket = new FramedSocket(new Kernel(), heard)
  socket.received(Uint8Array.of(0, 1, 65, 0, 0, 0, 0, 0, 1, 66))
  socket.received(Uint8Array.of(0, 1, 67, 0, 0))
  expect(heard).toMatchObject({ bytes: [65], ends: 1, closes: [] })
})
