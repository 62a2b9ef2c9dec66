// The other end as an enemy, in both roles: what it breaks ends its own session with a code, and costs bounded memory.

import { describe, expect, test } from 'bun:test'
import type { ErrorCode } from '../../src/errors.ts'
import { frame, frameOf, naiveEncode, TYPES } from '../support/naive.ts'
import { FUZZ, Random } from '../support/random.ts'
import { Loner } from '../support/sessions.ts'

const OPEN = (stream: number) => frame('OPEN', stream, [7, 4])
const END = (stream: number, delivered = 0) => frame('END', stream, [delivered, 6])
const RESET = (stream: number, delivered = 0) => frame('RESET', stream, [20, 2], [delivered, 6])
const CREDIT = (stream: number, bytes: number) => frame('CREDIT', stream, [bytes, 4])
const PING = frame('PING', 0, [1, 8])
const PONG = frame('PONG', 0, [1, 8])
const FULL = new Uint8Array(65_536)

/** A server session with one stream open, or a client session with one stream opened. */
function lonerWithStream(role: 'server' | 'client'): Loner {
  const loner = new Loner(role)
  if (role === 'server') loner.open()
  else loner.hear(OPEN(1))
  for (const log of [...loner.opened, ...loner.log.streams]) log.isReading = false
  loner.clock.tick()
  return loner
}

describe('a hostile peer', () => {
  const crimes: readonly [string, ErrorCode, readonly Uint8Array[]][] = [
    [
      'sends one byte more than its credit',
      'PROTOCOL_ERROR',
      [...Array(4).fill(frameOf('DATA', 1, FULL)), frameOf('DATA', 1, 'x')],
    ],
    ['sends data on a stream that never was', 'PROTOCOL_ERROR', [frameOf('DATA', 99, 'x')]],
    ['ends a stream that never was', 'PROTOCOL_ERROR', [END(99)]],
    ['resets a stream that never was', 'PROTOCOL_ERROR', [RESET(99)]],
    ['credits a stream that never was', 'PROTOCOL_ERROR', [CREDIT(99, 1)]],
    ['sends a frame over the limit', 'PROTOCOL_ERROR', [Uint8Array.of(1, 0, 1, 0, 0, 0, 0, 1)]],
    ['sends a type of no version', 'PROTOCOL_ERROR', [Uint8Array.of(0, 0, 0, 77, 0, 0, 0, 1)]],
    ['sends data on stream 0', 'PROTOCOL_ERROR', [frameOf('DATA', 0, 'x')]],
    ['sends data after END', 'PROTOCOL_ERROR', [END(1), frameOf('DATA', 1, 'x')]],
    ['ends twice', 'PROTOCOL_ERROR', [END(1), END(1)]],
    ['says in END that more was delivered than was sent', 'PROTOCOL_ERROR', [END(1, 1)]],
    ['says in RESET that more was delivered than was sent', 'PROTOCOL_ERROR', [RESET(1, 1)]],
    ['gives no credit in a CREDIT', 'PROTOCOL_ERROR', [CREDIT(1, 0)]],
    ['gives more credit than a sender can hold', 'PROTOCOL_ERROR', [CREDIT(1, 0x7fff_ffff)]],
    ['gives that much in several frames', 'PROTOCOL_ERROR', [CREDIT(1, 0x7000_0000), CREDIT(1, 0x1000_0000)]],
    ['opens a stream id again', 'PROTOCOL_ERROR', [OPEN(1)]],
    ['opens the id of a stream that is gone', 'PROTOCOL_ERROR', [RESET(1), OPEN(1)]],
    [
      'sends more data to a stream that is gone than it had credit for',
      'PROTOCOL_ERROR',
      [RESET(1), ...Array(5).fill(frameOf('DATA', 1, FULL))],
    ],
    [
      'sends data to a stream that it ended itself and that is gone',
      'PROTOCOL_ERROR',
      [END(1), RESET(1), frameOf('DATA', 1, 'x')],
    ],
    ['floods with PINGs', 'FLOOD', Array(51).fill(PING)],
    ['floods with GOAWAYs', 'FLOOD', Array(51).fill(frame('GOAWAY', 0, [15, 2]))],
  ]
  for (const role of ['server', 'client'] as const) {
    for (const [crime, code, frames] of crimes) {
      test(`${crime}: the ${role} ends the session with ${code}`, () => {
        const loner = lonerWithStream(role)
        loner.hear(...frames)
        loner.expectEnd(code)
        expect(loner.isClosedInOrder).toBe(true)
        expect(loner.frames.at(-1)?.type).toBe('GOAWAY')
      })
    }
  }

  test('that is a client and opens streams ends its session', () => {
    const loner = lonerWithStream('server')
    loner.hear(OPEN(2))
    loner.expectEnd('PROTOCOL_ERROR')
  })

  test('that is a client and floods with control messages ends its session', () => {
    const loner = lonerWithStream('server')
    loner.hear(...Array(1024).fill(frameOf('CONTROL', 0, '{}')))
    expect(loner.session.isClosed).toBe(false)
    loner.hear(frameOf('CONTROL', 0, '{}'))
    loner.expectEnd('FLOOD')
    expect(loner.log.messages.length).toBe(1024)
  })

  test('is heard again in the next second after 50 PINGs in one', () => {
    const loner = lonerWithStream('server')
    for (let second = 0; second < 5; second++) {
      loner.hear(...Array(50).fill(PING))
      loner.clock.advance(1000)
    }
    expect(loner.session.isClosed).toBe(false)
    expect(loner.frames.filter(({ type }) => type === 'PONG').length).toBe(250)
  })

  test('that sends PONGs nobody asked for achieves nothing', () => {
    const loner = lonerWithStream('server')
    loner.hear(...Array(5000).fill(PONG))
    expect(loner.session.isClosed).toBe(false)
    expect(loner.frames.map(({ type }) => type)).toEqual(['OPEN'])
  })

  test('that opens streams without end gets as many as there may be, and the rest refused', () => {
    const loner = new Loner('client', { maxStreams: 10 })
    for (let stream = 1; stream <= 5000; stream++) loner.hear(OPEN(stream))
    expect(loner.session.streamCount).toBe(10)
    expect(loner.log.streams.length).toBe(10)
    const refusals = loner.frames.filter(({ type }) => type === 'RESET')
    expect(refusals.length).toBe(4990)
    expect(refusals.every(({ payload }) => payload[1] === 14)).toBe(true)
  })

  test('that opens and resets without end leaves no stream behind', () => {
    const loner = new Loner('client', { maxStreams: 10 })
    for (let stream = 1; stream <= 5000; stream++) loner.hear(OPEN(stream), RESET(stream))
    expect(loner.session.streamCount).toBe(0)
    expect(loner.log.streams.every(({ resetWith }) => resetWith === 'ORIGIN_REFUSED')).toBe(true)
    expect(loner.frames).toEqual([])
  })

  test('that makes us answer and reads nothing is cut off before that costs more than a few megabytes', () => {
    const largest = 600_000
    const loner = new Loner('client', { maxStreams: 1, maxCarrierBacklogBytes: largest })
    loner.hear(OPEN(1))
    loner.isStuck = true
    loner.session.ping()
    loner.clock.tick()
    let answered = 0
    for (let stream = 2; !loner.session.isClosed && answered < largest * 2; stream++) {
      loner.hear(OPEN(stream))
      answered += 16
    }
    expect(answered).toBeWithin(largest - 16, largest + 64)
    loner.expectEnd('FLOOD')
    expect(loner.isTerminated).toBe(true)
  })

  test('that never gives credit holds one piece of its own stream, and other streams go on', () => {
    const loner = new Loner('server')
    const starved = loner.open()
    const other = loner.open()
    expect(starved.stream?.write(new Uint8Array(300_000))).toBe(false)
    loner.clock.tick()
    expect([starved.stream?.queue.length, starved.stream?.queuedBytes]).toEqual([1, 300_000 - 262_144])
    other.stream?.write(new Uint8Array(10))
    loner.clock.tick()
    expect(loner.frames.at(-1)).toMatchObject({ type: 'DATA', stream: 2 })
  })

  test('that gives credit byte by byte does not get data byte by byte', () => {
    const loner = new Loner('server')
    const log = loner.open()
    log.stream?.write(new Uint8Array(300_000))
    loner.clock.tick()
    const before = loner.frames.length
    for (let credits = 0; credits < 8192; credits++) loner.hear(CREDIT(1, 1))
    const sizes = loner.frames.slice(before).map(({ payload }) => payload.length)
    expect(sizes).toEqual([4096, 4096])
  })

  test('that drips data byte by byte is given credit by half windows', () => {
    const loner = new Loner('client')
    loner.hear(OPEN(1))
    for (let at = 0; at < 131_072; at += 64) loner.hear(...Array(64).fill(frameOf('DATA', 1, 'x')))
    expect(loner.frames.map(({ type }) => type)).toEqual(['CREDIT'])
  })

  test('that goes silent is pinged and given up', () => {
    const loner = lonerWithStream('server')
    const { sent } = loner
    const before = sent.length
    loner.clock.advance(24_000)
    expect(sent.length).toBeGreaterThan(before)
    expect(loner.session.isClosed).toBe(false)
    loner.clock.advance(2_500)
    loner.expectEnd('CARRIER_LOST')
    expect(loner.isTerminated).toBe(true)
  })
})

describe('a peer that sends anything at all', () => {
  for (const role of ['server', 'client'] as const) {
    test(`makes a ${role} neither throw nor grow`, () => {
      for (let seed = 0; seed < 150 * FUZZ; seed++)
        expect({ seed, ...fuzz(role, seed) }).toEqual({ seed, isSound: true })
    })
  }
})

/** One session against random frames, some of them mutated, in random slices. */
function fuzz(role: 'server' | 'client', seed: number): { isSound: boolean } {
  const random = new Random(seed)
  const loner = new Loner(role, {
    maxStreams: 8,
    maxStreamWindowBytes: 524_288,
    maxSessionWindowBytes: 1_048_576,
  })
  loner.isStuck = random.chance(0.2)
  let highest = 0
  for (let step = 0; step < 200 && !loner.session.isClosed; step++) {
    if (role === 'server' && loner.session.streamCount < 8 && random.chance(0.3)) {
      loner.open()
      highest++
    }
    const type = random.pick(
      role === 'server' ? [0, 0, 0, 2, 3, 4, 4, 5, 6, 7] : [0, 0, 0, 1, 1, 2, 3, 4, 4, 5, 6, 7],
    )
    const stream = type >= 5 ? 0 : type === 1 ? ++highest : Math.max(1, random.below(highest + 1))
    const field: Record<number, number[]> = {
      0: [...random.bytes(1 + random.below(3000))],
      1: [0, 0, 0, 7],
      2: [0, 0, 0, 0, 0, 0],
      3: [0, 20, 0, 0, 0, 0, 0, 0],
      4: [0, random.below(4), random.bits(), 1],
      7: [...new TextEncoder().encode('{"type":"x"}')],
    }
    const payload = (field[type] ?? [0, 0, 0, 0, 0, 0, 0, random.below(4)]).map(byte => byte & 255)
    const bytes = Uint8Array.from(naiveEncode({ type: TYPES[type] ?? '', stream, payload }))
    if (random.chance(0.02)) bytes[random.below(Math.min(bytes.length, 16))] = random.bits()
    for (const slice of random.slices(bytes, 2000)) {
      loner.session.carrierHandler.received(slice, 0, slice.length)
    }
    act(loner, random)
    if (random.chance(0.3)) loner.clock.tick()
    if (random.chance(0.1)) loner.clock.advance(random.below(500))
    if (loner.isStuck && random.chance(0.1)) {
      loner.isStuck = false
      loner.session.carrierHandler.drained()
    }
  }
  const isBounded = loner.session.streamCount <= 8
  loner.session.terminate('INTERNAL')
  loner.clock.advance(0)
  const isOver =
    loner.log.closes.length === 1 && loner.session.streamCount === 0 && loner.clock.timerCount === 0
  // INTERNAL with an error would be an exception that the session caught.
  const isClean = loner.log.closes.every(({ error }) => error === undefined)
  return { isSound: isBounded && isOver && isClean }
}

/** What the honest side does meanwhile, on any stream. */
function act(loner: Loner, random: Random): void {
  const logs = [...loner.opened, ...loner.log.streams]
  if (logs.length === 0) return
  const { stream } = random.pick(logs)
  if (stream === undefined) return
  const choice = random.below(12)
  if (choice < 5 && !stream.isBackedUp) stream.write(new Uint8Array(1 + random.below(100_000)))
  else if (choice === 10) stream.end()
  else if (choice === 11) stream.reset('CANCELLED')
}
