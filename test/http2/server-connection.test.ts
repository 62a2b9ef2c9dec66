// The state machine of a connection, without sockets: what it answers, what it bounds, and that random frames break nothing.

import { describe, expect, test } from 'bun:test'
import { parseResponseHead, ResponseHead } from '../../src/http/head.ts'
import * as Code from '../../src/http2/error-codes.ts'
import {
  CONNECTION_WINDOW_BYTES,
  MAX_CONTINUATIONS,
  ServerConnection,
  STREAM_WINDOW_BYTES,
} from '../../src/http2/server-connection.ts'
import type { ServerStream, StreamHandler } from '../../src/http2/server-stream.ts'
import { frame, PREFACE, SETTINGS, u32 } from '../support/h2-frames.ts'
import { FrameReader, get, head, literals, post } from '../support/h2-peer.ts'
import { countInputs, FUZZ, Random } from '../support/random.ts'

const [MAX_STREAMS, MAX_RESETS, MAX_NOISE] = [100, 256, 1_024]
const SMALL = {
  maxListBytes: 8_192,
  maxBlockBytes: 16_384,
  maxStreams: MAX_STREAMS,
  maxResets: MAX_RESETS,
  maxNoise: MAX_NOISE,
}

/** A connection whose requests wait until the test answers them. */
class Rig {
  readonly seen = new FrameReader()
  readonly open = new Map<number, ServerStream>()
  readonly events: string[] = []
  readonly bodies = new Map<number, number>()
  fault: Code.Fault | undefined
  tick = 1
  mayReset = true
  /** Takes bodies at once. */
  takes = true
  readonly connection: ServerConnection
  onWritable: ((stream: ServerStream) => void) | undefined

  constructor(isBegun = true) {
    this.connection = new ServerConnection(
      {
        requested: (stream, _fields, isLast) => {
          this.open.set(stream.id, stream)
          this.events.push(`request ${stream.id}${isLast ? ' complete' : ''}`)
          stream.handler = this.#handler(stream)
        },
        framed() {},
        mayReset: () => this.mayReset,
        leftUnanswered: count => this.events.push(`${count} unanswered`),
        idle: () => this.events.push('idle'),
        failed: fault => {
          this.fault = fault
        },
        sawGoaway: () => this.events.push('saw goaway'),
      },
      SMALL,
    )
    if (isBegun) this.receive([...PREFACE, ...SETTINGS])
  }

  #handler(stream: ServerStream): StreamHandler {
    return {
      data: (_bytes, start, end) => {
        this.bodies.set(stream.id, (this.bodies.get(stream.id) ?? 0) + end - start)
        if (this.takes) this.connection.consumed(stream, end - start)
      },
      ended: trailers =>
        this.events.push(`ended ${stream.id}${trailers === undefined ? '' : ' with trailers'}`),
      reset: () => {
        this.open.delete(stream.id)
        this.events.push(`reset ${stream.id}`)
      },
      writable: () => this.onWritable?.(stream),
    }
  }

  /** The code that ended the connection; 0: it goes on. */
  receive(bytes: readonly number[] | Uint8Array): number {
    const all = Uint8Array.from(bytes)
    for (let at = 0; at < all.length; ) at = this.connection.receive(all, at, 16, this.tick)
    this.flush()
    return this.fault?.code ?? 0
  }

  flush(): void {
    this.connection.sender.pump()
    const { outbox } = this.connection.sender
    this.seen.add(Uint8Array.from(outbox.bytes.subarray(0, outbox.end)))
    outbox.clear()
  }

  /** Sends the head of an answer. */
  answer(id: number, text = 'HTTP/1.1 200 OK\r\n\r\n', isLast = false): ServerStream {
    const stream = this.open.get(id)!
    const bytes = Buffer.from(text)
    const response = new ResponseHead()
    const limits = { maxHeadBytes: 65_536, maxHeaderCount: 100, maxTargetBytes: 0 }
    expect(parseResponseHead(response, bytes, 0, bytes.length, limits, 'GET')).toBe(bytes.length)
    this.connection.sender.head(stream, response, isLast)
    this.flush()
    return stream
  }
}

const A = 'app.localhost'
const request = (id: number) => head(id, get(A))
const many = (count: number, one: (index: number) => readonly number[]) =>
  Array.from({ length: count }, (_, index) => one(index)).flat()

describe('a connection', () => {
  test('begins with SETTINGS, and a window for all streams', () => {
    const rig = new Rig(false)
    rig.flush()
    const [settings, window] = rig.seen.frames
    expect(settings?.payload.toString('hex')).toBe(
      `0003${'00000064'}0004${'00040000'}0006${'00002000'}0008${'00000001'}`,
    )
    expect(window?.payload.readUInt32BE(0)).toBe(CONNECTION_WINDOW_BYTES - 65_535)
  })

  test('says how many requests it leaves unanswered when it ends', () => {
    const rig = new Rig()
    rig.receive([...request(1), ...request(3), ...request(5), ...head(7, post(A), false)])
    rig.answer(1, 'HTTP/1.1 204 No Content\r\n\r\n', true)
    // Its answer is complete, its request is not.
    rig.answer(7, 'HTTP/1.1 204 No Content\r\n\r\n', true)
    rig.connection.close()
    expect(rig.events).toContain('2 unanswered')
    const quiet = new Rig()
    quiet.connection.close()
    expect(quiet.events).toEqual([])
  })

  test('acknowledges SETTINGS before it sends what they allow', () => {
    const rig = new Rig()
    rig.receive(frame(4, 0, 0, [0, 4, ...u32(0)]))
    rig.receive(request(1))
    const stream = rig.answer(1)
    rig.onWritable = one => void rig.connection.sender.data(one, Buffer.from('hello'), 0, 5, true)
    expect(rig.connection.sender.data(stream, Buffer.from('hello'), 0, 5, true)).toBe(0)
    rig.connection.sender.awaitRoom(stream, true)
    rig.receive(frame(4, 0, 0, [0, 4, ...u32(100)]))
    expect(rig.seen.frames.slice(-2).map(({ type, flags }) => [type, flags])).toEqual([
      [4, 1],
      [0, 1],
    ])
    expect(rig.seen.body(1).toString()).toBe('hello')
  })

  test('sends no more than either window has room for', () => {
    const rig = new Rig()
    rig.receive([...request(1), ...request(3)])
    const bytes = new Uint8Array(100_000)
    const one = rig.answer(1)
    const other = rig.answer(3)
    const { sender } = rig.connection
    expect(sender.data(one, bytes, 0, 40_000, false)).toBe(40_000)
    rig.flush()
    expect(sender.data(other, bytes, 0, 40_000, false)).toBe(25_535)
    rig.flush()
    expect(sender.data(other, bytes, 0, 40_000, false)).toBe(0)
    rig.receive(frame(8, 0, 0, u32(1_000_000)))
    expect(sender.data(other, bytes, 0, 100_000, false)).toBe(40_000)
    expect(sender.data(one, bytes, 0, 100_000, false)).toBe(25_535)
  })

  test('lets streams that wait send in turn', () => {
    const rig = new Rig()
    rig.receive(many(5, index => request(1 + 2 * index)))
    rig.receive(frame(8, 0, 0, u32(10_000_000)))
    const { sender } = rig.connection
    sender.isBlocked = true
    const left = new Map<number, number>()
    const bytes = new Uint8Array(50_000)
    for (const stream of rig.open.values()) {
      rig.answer(stream.id)
      left.set(stream.id, 50_000)
      sender.awaitRoom(stream, true)
    }
    rig.onWritable = stream => {
      const wanted = left.get(stream.id)!
      const sent = sender.data(stream, bytes, 0, wanted, true)
      left.set(stream.id, wanted - sent)
      if (sent < wanted) sender.awaitRoom(stream, true)
    }
    sender.isBlocked = false
    for (let round = 0; round < 10; round++) rig.flush()
    const order = rig.seen.of(0).map(({ stream }) => stream)
    expect(order.slice(0, 10)).toEqual([1, 3, 5, 7, 9, 1, 3, 5, 7, 9])
    expect(rig.seen.of(0).reduce((sum, { payload }) => sum + payload.length, 0)).toBe(250_000)
    expect(rig.connection.streamCount).toBe(0)
  })

  test('gives credit back only for what was consumed', () => {
    const rig = new Rig()
    rig.takes = false
    rig.receive(head(1, post(A), false))
    for (let sent = 0; sent < STREAM_WINDOW_BYTES; sent += 16_384)
      expect(rig.receive(frame(0, 0, 1, new Uint8Array(16_384)))).toBe(0)
    expect(rig.seen.of(8, 1)).toEqual([])
    const stream = rig.open.get(1)!
    rig.connection.consumed(stream, STREAM_WINDOW_BYTES / 2)
    rig.flush()
    expect(rig.seen.of(8, 1).map(({ payload }) => payload.readUInt32BE(0))).toEqual([STREAM_WINDOW_BYTES / 2])
  })

  test('gives the connection back what a stream that is reset has not consumed', () => {
    const rig = new Rig()
    rig.takes = false
    for (let round = 0; round < 20; round++) {
      const id = 1 + 2 * round
      rig.receive(head(id, post(A), false))
      for (let sent = 0; sent < STREAM_WINDOW_BYTES; sent += 16_384)
        expect(rig.receive(frame(0, 0, id, new Uint8Array(16_384)))).toBe(0)
      rig.receive(frame(3, 0, id, u32(8)))
    }
    expect(rig.events.filter(event => event.startsWith('reset'))).toHaveLength(20)
  })

  test('shuts down with two GOAWAYs: what comes in between is served', () => {
    const rig = new Rig()
    rig.receive(request(1))
    rig.connection.shutDown()
    rig.flush()
    expect(rig.seen.goaways).toEqual([[0x7fff_ffff, 0]])
    expect(rig.seen.of(6)).toHaveLength(1)
    rig.receive(request(3))
    rig.receive(frame(6, 1, 0, new Uint8Array(8)))
    expect(rig.events).toEqual(['request 1 complete', 'request 3 complete', 'saw goaway'])
    rig.connection.settle()
    rig.receive(request(5))
    expect(rig.seen.goaways).toEqual([
      [0x7fff_ffff, 0],
      [3, 0],
    ])
    expect(rig.open.has(5)).toBe(false)
    rig.answer(1, undefined, true)
    rig.answer(3, undefined, true)
    expect(rig.events.at(-1)).toBe('idle')
  })

  test('ends with an answer sooner than the request: what still comes is ignored', () => {
    const rig = new Rig()
    rig.receive(head(1, post(A), false))
    const stream = rig.answer(1, undefined, true)
    rig.connection.resetStream(stream, Code.NO_ERROR)
    expect(rig.receive(frame(0, 0, 1, new Uint8Array(1_000)))).toBe(0)
    expect(rig.receive(head(1, [['a', 'b']]))).toBe(0)
    expect(rig.seen.resets).toEqual({ 1: Code.NO_ERROR })
  })
})

describe('is ended with the right code by', () => {
  const cases: readonly (readonly [what: string, bytes: readonly number[], code: number])[] = [
    ['DATA on a stream that is idle', frame(0, 0, 1, [1]), Code.PROTOCOL_ERROR],
    ['a reset of a stream that is idle', frame(3, 0, 1, u32(8)), Code.PROTOCOL_ERROR],
    ['a window of a stream that is idle', frame(8, 0, 1, u32(8)), Code.PROTOCOL_ERROR],
    ['ids that go down', [...request(5), ...request(3)], Code.PROTOCOL_ERROR],
    ['an even id', request(2), Code.PROTOCOL_ERROR],
    ['a block that no table explains', frame(1, 5, 1, [0xff, 0xff, 0x01]), Code.COMPRESSION_ERROR],
    ['a window of the connection above 2^31 - 1', frame(8, 0, 0, u32(0x7fff_ffff)), Code.FLOW_CONTROL_ERROR],
    [
      'SETTINGS that let a window pass 2^31 - 1',
      [...request(1), ...frame(8, 0, 1, u32(0x7fff_0000)), ...frame(4, 0, 0, [0, 4, ...u32(0x7fff_ffff)])],
      Code.FLOW_CONTROL_ERROR,
    ],
    [
      'more DATA than the connection has room for',
      [
        ...many(5, index => head(1 + 2 * index, post(A), false)),
        ...many(5 * 16, index => frame(0, 0, 1 + 2 * Math.floor(index / 16), new Uint8Array(16_384))),
      ],
      Code.FLOW_CONTROL_ERROR,
    ],
    [
      'a second HEADERS on a stream that is over',
      [...request(1), ...frame(3, 0, 1, u32(8)), ...request(1)],
      Code.STREAM_CLOSED,
    ],
  ]
  test.each(cases)('%s', (_what, bytes, code) => {
    const rig = new Rig()
    rig.takes = false
    expect(rig.receive(bytes)).toBe(code)
    expect(rig.seen.goaways.at(-1)?.[1]).toBe(code)
    expect(rig.connection.streamCount).toBe(0)
  })
})

describe('a stream alone is reset by', () => {
  const cases: readonly (readonly [what: string, bytes: readonly number[], code: number])[] = [
    [
      'a head that depends on itself',
      frame(1, 0x25, 1, [...u32(1), 0, ...literals(get(A))]),
      Code.PROTOCOL_ERROR,
    ],
    [
      'a window above 2^31 - 1',
      [...request(1), ...frame(8, 0, 1, u32(0x7fff_ffff))],
      Code.FLOW_CONTROL_ERROR,
    ],
    ['a window that grows by 0', [...request(1), ...frame(8, 0, 1, u32(0))], Code.PROTOCOL_ERROR],
    ['DATA behind the end', [...request(1), ...frame(0, 1, 1, [1])], Code.STREAM_CLOSED],
    ['trailers behind the end', [...request(1), ...head(1, [['a', 'b']])], Code.STREAM_CLOSED],
    [
      'trailers that end nothing',
      [...head(1, post(A), false), ...head(1, [['a', 'b']], false)],
      Code.PROTOCOL_ERROR,
    ],
    [
      'more DATA than it has room for',
      [...head(1, post(A), false), ...many(17, () => frame(0, 0, 1, new Uint8Array(16_384)))],
      Code.FLOW_CONTROL_ERROR,
    ],
  ]
  test.each(cases)('%s', (_what, bytes, code) => {
    const rig = new Rig()
    rig.takes = false
    expect(rig.receive(bytes)).toBe(0)
    expect(rig.seen.resets).toEqual({ 1: code })
    expect(rig.receive(head(3, get(A)))).toBe(0)
    expect(rig.open.has(3)).toBe(true)
  })

  test('one request too many', () => {
    const rig = new Rig()
    expect(rig.receive(many(MAX_STREAMS + 1, index => request(1 + 2 * index)))).toBe(0)
    expect(rig.seen.resets).toEqual({ [1 + 2 * MAX_STREAMS]: Code.REFUSED_STREAM })
    expect(rig.connection.streamCount).toBe(MAX_STREAMS)
  })
})

describe('a flood of', () => {
  const CALM = Code.ENHANCE_YOUR_CALM
  /** Frames by number, from a sound connection with one request. */
  const floods: readonly (readonly [
    what: string,
    most: number,
    one: (index: number) => readonly number[],
  ])[] = [
    ['PING', MAX_NOISE, () => frame(6, 0, 0, new Uint8Array(8))],
    ['answers to PING', MAX_NOISE, () => frame(6, 1, 0, new Uint8Array(8))],
    ['SETTINGS', MAX_NOISE / 8, () => frame(4, 0, 0, [])],
    ['PRIORITY', MAX_NOISE, () => frame(2, 0, 1, [0, 0, 0, 0, 1])],
    ['unknown frames', MAX_NOISE, () => frame(0xee, 0, 0, [1])],
    ['windows of a byte', MAX_NOISE, () => frame(8, 0, 1, u32(1))],
    ['DATA without data', MAX_NOISE, () => frame(0, 0, 1, [])],
    ['DATA that is padding', MAX_NOISE, () => frame(0, 8, 1, [3, 0, 0, 0])],
    [
      'requests that are reset',
      MAX_RESETS,
      index => [...request(3 + 2 * index), ...frame(3, 0, 3 + 2 * index, u32(8))],
    ],
    [
      'requests that have themselves reset by a window of 0',
      MAX_RESETS,
      index => [...request(3 + 2 * index), ...frame(8, 0, 3 + 2 * index, u32(0))],
    ],
    [
      'requests that have themselves reset by a window above 2^31 - 1',
      MAX_RESETS,
      index => [...request(3 + 2 * index), ...frame(8, 0, 3 + 2 * index, u32(0x7fff_ffff))],
    ],
    [
      'requests that have themselves reset by DATA behind the end',
      MAX_RESETS,
      index => [...request(3 + 2 * index), ...frame(0, 0, 3 + 2 * index, [1])],
    ],
    [
      'heads that are too large',
      MAX_NOISE / 64,
      index => head(3 + 2 * index, get(A, '/', [['x', 'x'.repeat(9_000)]])),
    ],
    [
      'malformed heads',
      MAX_RESETS,
      index => frame(1, 0x25, 3 + 2 * index, [...u32(3 + 2 * index), 0, ...literals(get(A))]),
    ],
  ]

  test.each(floods)('%s ends the connection', (_what, most, one) => {
    const rig = new Rig()
    rig.receive(head(1, post(A), false))
    let sent = 0
    while (sent < most + 32 && rig.receive(one(sent)) === 0) sent++
    expect(rig.fault?.code).toBe(CALM)
    expect(sent).toBeGreaterThan(most - 32)
    expect(rig.seen.goaways.at(-1)?.[1]).toBe(CALM)
  })

  test.each(floods)('%s that takes its time does not', (_what, most, one) => {
    const rig = new Rig()
    rig.receive(head(1, post(A), false))
    for (let sent = 0; sent < most + 64; sent++) {
      rig.tick++
      expect(rig.receive(one(sent))).toBe(0)
    }
  })

  test('CONTINUATION in one head ends the connection', () => {
    const rig = new Rig()
    rig.receive(frame(1, 1, 1, []))
    let sent = 0
    while (sent < 100 && rig.receive(frame(9, 0, 1, [])) === 0) sent++
    expect([rig.fault?.code, sent]).toEqual([CALM, MAX_CONTINUATIONS])
  })

  test('a head of bytes without end does, too', () => {
    const rig = new Rig()
    rig.receive(frame(1, 1, 1, new Uint8Array(SMALL.maxBlockBytes)))
    expect(rig.receive(frame(9, 0, 1, [0]))).toBe(CALM)
  })

  test('long blocks is no more than one of them in a portion of work', () => {
    const rig = new Rig(false)
    const long = head(1, get(A, '/', [['x', 'x'.repeat(8_000)]]))
    const bytes = Uint8Array.from([...PREFACE, ...SETTINGS, ...long, ...request(3), ...request(5)])
    rig.connection.receive(bytes, 0, 4, 1)
    expect([...rig.open.keys()]).toEqual([1])
  })

  test('fields out of the table is not kept', () => {
    const rig = new Rig()
    const value = 'x'.repeat(3_900)
    // One field into the table, then it again and again: 4 MB from 1 KB.
    const block = [0x40, ...literals([['a', value]]).slice(1), ...Array.from({ length: 1_000 }, () => 0xbe)]
    expect(rig.receive(frame(1, 5, 1, block))).toBe(0)
    expect(rig.open.size).toBe(1)
  })
})

test('tiny windows do not earn what they cost, but a slow reader does', () => {
  const rig = new Rig()
  rig.receive(frame(4, 0, 0, [0, 4, ...u32(0)]))
  rig.receive(request(1))
  const stream = rig.answer(1)
  const bytes = new Uint8Array(100_000)
  const send = () => {
    rig.connection.sender.data(stream, bytes, 0, 100_000, false)
    rig.connection.sender.awaitRoom(stream, true)
  }
  rig.onWritable = send
  send()
  let sent = 0
  while (sent < 10_000 && rig.receive(frame(8, 0, 1, u32(1))) === 0) sent++
  expect(rig.fault?.code).toBe(Code.ENHANCE_YOUR_CALM)

  const other = new Rig()
  other.receive(request(1))
  const slow = other.answer(1)
  other.onWritable = () => {}
  for (let count = 0; count < 10_000; count++) {
    other.connection.sender.data(slow, bytes, 0, 4_096, false)
    other.flush()
    expect(other.receive([...frame(8, 0, 1, u32(4_096)), ...frame(8, 0, 0, u32(4_096))])).toBe(0)
  }
})

test('random frames never throw, never lose a stream, and give the same end however they are cut', () => {
  const cases = 600 * FUZZ
  let faults = 0
  for (let seed = 1; seed <= cases; seed++) {
    const random = new Random(seed)
    const bytes: number[] = [...PREFACE, ...SETTINGS]
    for (let count = random.below(40); count > 0; count--) {
      const id = 1 + 2 * random.below(8)
      const kind = random.below(12)
      if (kind < 4) bytes.push(...head(id, random.chance(0.5) ? get(A) : post(A), random.chance(0.5)))
      else if (kind < 7)
        bytes.push(...frame(0, random.chance(0.3) ? 1 : 0, id, random.bytes(random.below(300))))
      else if (kind === 7) bytes.push(...frame(3, 0, id, u32(random.below(14))))
      else if (kind === 8) bytes.push(...frame(8, 0, random.chance(0.5) ? 0 : id, u32(random.below(100_000))))
      else if (kind === 9) bytes.push(...frame(4, 0, 0, [0, 4, ...u32(random.below(100_000))]))
      else if (kind === 10)
        bytes.push(...frame(random.below(12), random.bits() & 255, id, random.bytes(random.below(30))))
      else bytes.push(...frame(6, 0, 0, random.bytes(8)))
    }
    const whole = run(Uint8Array.from(bytes), undefined)
    const cut = run(Uint8Array.from(bytes), random)
    if (whole.code !== 0) faults++
    if (JSON.stringify(whole) !== JSON.stringify(cut))
      throw new Error(`seed ${seed}: ${JSON.stringify({ whole, cut })}`)
  }
  expect(faults).toBeGreaterThan(cases * 0.1)
  countInputs('HTTP/2 connections', cases)
})

/** What comes of these bytes, in one piece or in slices; every other request is answered at once. */
function run(bytes: Uint8Array, random: Random | undefined) {
  const rig = new Rig(false)
  const { connection } = rig
  for (const slice of random?.slices(bytes, 10) ?? [bytes]) rig.receive([...slice])
  // What is open at the end is exactly what the connection counts, and ends with it.
  const left = [...rig.open.values()].filter(stream => !stream.isClosed).length
  expect(connection.streamCount).toBe(rig.fault === undefined ? left : 0)
  connection.close()
  expect([...rig.open.values()].every(stream => stream.isClosed)).toBe(true)
  expect(connection.streamCount).toBe(0)
  const begun = rig.events.filter(event => event.startsWith('request')).length
  return { code: rig.fault?.code ?? 0, begun, resets: rig.seen.resets }
}
