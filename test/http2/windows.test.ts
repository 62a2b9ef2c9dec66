// Windows and settings: the counters at their edges, and what the peer may say.

import { describe, expect, test } from 'bun:test'
import { CODE_NAMES } from '../../src/http2/error-codes.ts'
import { HpackEncoder } from '../../src/http2/hpack-encoder.ts'
import { PeerSettings } from '../../src/http2/settings.ts'
import { ReceiveWindow, SendWindow } from '../../src/http2/windows.ts'
import { u32 } from '../support/h2-frames.ts'
import { FUZZ, Random } from '../support/random.ts'

const MOST = 2 ** 31 - 1

describe('the window of a sender', () => {
  test('grows to 2^31 - 1 and not by one more', () => {
    const window = new SendWindow(65_535)
    expect(window.grow(MOST - 65_535)).toBe(true)
    expect(window.grow(1)).toBe(false)
    expect(window.available).toBe(MOST)
    window.sent(1)
    expect(window.grow(1)).toBe(true)
  })

  test('goes below zero by other settings, and comes back by them', () => {
    const window = new SendWindow(100)
    window.sent(80)
    expect(window.grow(0 - 100)).toBe(true)
    expect(window.available).toBe(-80)
    expect(window.grow(MOST)).toBe(true)
    expect(window.available).toBe(MOST - 80)
    expect(window.grow(81)).toBe(false)
  })
})

describe('the window of a receiver', () => {
  test('takes what it offered and not a byte more', () => {
    const window = new ReceiveWindow(100)
    expect(window.take(0)).toBe(true)
    expect(window.take(60)).toBe(true)
    expect(window.take(41)).toBe(false)
    expect(window.take(40)).toBe(true)
    expect(window.take(0)).toBe(true)
    expect(window.take(1)).toBe(false)
  })

  test('gives back at half of its size, or at once when asked', () => {
    const window = new ReceiveWindow(100)
    window.take(80)
    expect(window.consume(49)).toBe(0)
    expect(window.consume(1)).toBe(50)
    expect(window.available).toBe(70)
    expect(window.consume(1)).toBe(0)
    expect(window.giveBack()).toBe(1)
    expect(window.giveBack()).toBe(0)
  })

  test('becomes larger by an update, and another size by acknowledged settings', () => {
    const window = new ReceiveWindow(65_535)
    window.take(35)
    expect(window.enlarge(1_000_000)).toBe(1_000_000 - 65_535)
    expect(window.available).toBe(999_965)
    window.settle(10)
    expect(window.available).toBe(-25)
    expect(window.take(0)).toBe(true)
    expect(window.take(1)).toBe(false)
    expect(window.consume(35)).toBe(35)
    expect(window.available).toBe(10)
  })

  test('agrees with that of the sender, whatever happens', () => {
    for (let seed = 1; seed <= 200 * FUZZ; seed++) {
      const random = new Random(seed)
      let size = random.below(2000)
      const receiver = new ReceiveWindow(size)
      const sender = new SendWindow(size)
      let unread = 0
      for (let step = 0; step < 100; step++) {
        const bytes = Math.min(random.below(500), Math.max(0, sender.available))
        sender.sent(bytes)
        expect(receiver.take(bytes)).toBe(true)
        unread += bytes
        const read = random.below(unread + 1)
        unread -= read
        const increment = receiver.consume(read)
        expect(increment === 0 || sender.grow(increment)).toBe(true)
        if (random.chance(0.1)) {
          const next = random.below(2000)
          sender.grow(next - size)
          receiver.settle(next)
          size = next
        }
        expect(sender.available, `seed ${seed}`).toBe(receiver.available)
        expect(receiver.available + receiver.consumed + unread, `seed ${seed}`).toBe(size)
      }
      // A sender without window always gets some when everything was read.
      const rest = receiver.consume(unread)
      if (rest > 0) sender.grow(rest)
      if (size > 1) expect(sender.available, `seed ${seed}`).toBeGreaterThan(0)
    }
  })
})

describe('settings of the peer', () => {
  const entries = (...pairs: readonly (readonly [number, number])[]) =>
    Uint8Array.from(pairs.flatMap(([id, value]) => [id >>> 8, id & 255, ...u32(value)]))
  const read = (settings: PeerSettings, bytes: Uint8Array) =>
    CODE_NAMES[settings.read(bytes, 0, bytes.length)]

  test('are those of the standard, then those that it says, the last one of each', () => {
    const settings = new PeerSettings('client')
    expect(settings).toMatchObject({
      headerTableSize: 4096,
      initialWindowSize: 65_535,
      maxFrameSize: 16_384,
      maxConcurrentStreams: Number.POSITIVE_INFINITY,
      maxHeaderListSize: Number.POSITIVE_INFINITY,
      enableConnectProtocol: false,
    })
    const bytes = entries(
      [1, 0],
      [2, 1],
      [3, 0],
      [4, MOST],
      [5, 16_777_215],
      [6, 2 ** 32 - 1],
      [8, 1],
      [99, 7],
      [1, 5],
    )
    expect(read(settings, bytes)).toBe('NO_ERROR')
    expect(settings).toMatchObject({
      headerTableSize: 5,
      initialWindowSize: MOST,
      maxFrameSize: 16_777_215,
      maxConcurrentStreams: 0,
      maxHeaderListSize: 2 ** 32 - 1,
      enableConnectProtocol: true,
    })
  })

  for (const [what, code, role, pair] of [
    ['ENABLE_PUSH above 1', 'PROTOCOL_ERROR', 'client', [2, 2]],
    ['ENABLE_PUSH of a server', 'PROTOCOL_ERROR', 'server', [2, 1]],
    ['INITIAL_WINDOW_SIZE above 2^31 - 1', 'FLOW_CONTROL_ERROR', 'client', [4, 2 ** 31]],
    ['MAX_FRAME_SIZE below 16384', 'PROTOCOL_ERROR', 'client', [5, 16_383]],
    ['MAX_FRAME_SIZE above 2^24 - 1', 'PROTOCOL_ERROR', 'client', [5, 16_777_216]],
    ['ENABLE_CONNECT_PROTOCOL above 1', 'PROTOCOL_ERROR', 'server', [8, 2]],
  ] as const)
    test(`${what} is a ${code}`, () => {
      const settings = new PeerSettings(role)
      expect(read(settings, entries([3, 9], pair, [3, 10]))).toBe(code)
      expect(settings.problem).not.toBe('')
      expect(settings.maxConcurrentStreams).toBe(9)
    })

  test('tell the least table size of a frame, which the encoder goes through', () => {
    const settings = new PeerSettings('client')
    read(settings, entries([1, 2000], [1, 10], [1, 3000]))
    expect([settings.leastHeaderTableSize, settings.headerTableSize]).toEqual([10, 3000])
    const encoder = new HpackEncoder()
    encoder.setPeerLimit(settings.leastHeaderTableSize)
    encoder.setPeerLimit(settings.headerTableSize)
    const into = new Uint8Array(12)
    // 10, then 3000.
    expect([...into.subarray(0, encoder.begin(into, 0))]).toEqual([0x2a, 0x3f, 0x99, 0x17])
    read(settings, entries([4, 1]))
    expect(settings.leastHeaderTableSize).toBe(3000)
    read(settings, entries([1, 4096]))
    expect(settings.leastHeaderTableSize).toBe(3000)
  })

  test('ENABLE_CONNECT_PROTOCOL is not taken back', () => {
    const settings = new PeerSettings('server')
    expect(read(settings, entries([8, 0], [8, 1], [8, 1]))).toBe('NO_ERROR')
    expect(read(settings, entries([8, 0]))).toBe('PROTOCOL_ERROR')
  })
})
