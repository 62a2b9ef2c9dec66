// The frame decoder: frames of another project, cut at every byte; every rule of RFC 9113 with the code of its breach; random and
// mutated frames; what this side writes is read back.

import { describe, expect, test } from 'bun:test'
import { CODE_NAMES } from '../../src/http2/error-codes.ts'
import * as Frame from '../../src/http2/frame.ts'
import { FrameDecoder, type FrameDecoderOptions, type FrameHandler } from '../../src/http2/frame-decoder.ts'
import { frame, PREFACE, SETTINGS, u32 } from '../support/h2-frames.ts'
import { countInputs, FUZZ, Random } from '../support/random.ts'
import vectors from '../vectors/http2.json' with { type: 'json' }

const hexOf = (bytes: Uint8Array, start = 0, end = bytes.length) =>
  Buffer.from(bytes.subarray(start, end)).toString('hex')

/** Writes down what it gets, with the pieces of one DATA frame as one. */
class Recorder implements FrameHandler {
  readonly lines: string[] = []
  lengths = 0
  #data = ''

  frame(_type: number, _flags: number, _stream: number, length: number): void {
    this.lengths += length
  }
  data(_stream: number, bytes: Uint8Array, start: number, end: number): void {
    expect(end).toBeGreaterThan(start)
    this.#data += hexOf(bytes, start, end)
  }
  dataEnded(stream: number, padding: number, isLast: boolean): void {
    this.lines.push(`data ${stream} ${this.#data} ${padding} ${isLast}`)
    this.#data = ''
  }
  headers(
    stream: number,
    isLast: boolean,
    isMalformed: boolean,
    bytes: Uint8Array,
    start: number,
    end: number,
  ): void {
    this.lines.push(
      `headers ${stream} ${hexOf(bytes, start, end)} ${isLast}${isMalformed ? ' malformed' : ''}`,
    )
  }
  reset(stream: number, code: number): void {
    this.lines.push(`reset ${stream} ${code}`)
  }
  settings(bytes: Uint8Array, start: number, end: number): void {
    this.lines.push(`settings ${hexOf(bytes, start, end)}`)
  }
  settingsAcknowledged(): void {
    this.lines.push('settings ack')
  }
  ping(bytes: Uint8Array, start: number): void {
    this.lines.push(`ping ${hexOf(bytes, start, start + 8)}`)
  }
  pong(bytes: Uint8Array, start: number): void {
    this.lines.push(`pong ${hexOf(bytes, start, start + 8)}`)
  }
  goaway(lastStream: number, code: number, bytes: Uint8Array, start: number, end: number): void {
    this.lines.push(`goaway ${lastStream} ${code} ${hexOf(bytes, start, end)}`)
  }
  windowUpdate(stream: number, increment: number): void {
    this.lines.push(`window ${stream} ${increment}`)
  }
  streamFault(stream: number, code: number): void {
    this.lines.push(`fault ${stream} ${CODE_NAMES[code]}`)
  }
}

const OPTIONS: FrameDecoderOptions = { role: 'client', maxBlockBytes: 20_000, maxContinuations: 4 }

/** What a decoder makes of the pieces: the lines, and the name of the code that ended it. */
function read(pieces: readonly Uint8Array[], options: Partial<FrameDecoderOptions> = {}) {
  const recorder = new Recorder()
  const decoder = new FrameDecoder(recorder, { ...OPTIONS, ...options })
  for (const piece of pieces) {
    const fault = decoder.receive(piece)
    if (fault !== undefined)
      return { lines: recorder.lines, fault: CODE_NAMES[fault.code], reason: fault.reason }
    expect(decoder.at).toBe(piece.length)
  }
  return { lines: recorder.lines, fault: '', reason: '' }
}

const readBytes = (bytes: readonly number[], options?: Partial<FrameDecoderOptions>) =>
  read([Uint8Array.from(bytes)], options)

/** The line that a vector stands for. */
function lineOf(vector: (typeof vectors.frames)[number]): string[] {
  const {
    type,
    stream,
    last,
    data,
    padding,
    block,
    code,
    settings,
    opaque,
    ack,
    last_stream,
    debug,
    increment,
  } = vector
  switch (type) {
    case 'DataFrame':
      return [`data ${stream} ${data} ${padding} ${last}`]
    case 'HeadersFrame':
      return [`headers ${stream} ${block} ${last}`]
    case 'PriorityFrame':
      return []
    case 'RstStreamFrame':
      return [`reset ${stream} ${code}`]
    case 'SettingsFrame':
      if (settings === undefined) return ['settings ack']
      return [
        `settings ${settings.map(([id, value]) => hexOf(Uint8Array.from([0, id!, ...u32(value!)]))).join('')}`,
      ]
    case 'PingFrame':
      return [`${ack ? 'pong' : 'ping'} ${opaque}`]
    case 'GoAwayFrame':
      return [`goaway ${last_stream} ${code} ${debug}`]
    case 'WindowUpdateFrame':
      return [`window ${stream} ${increment}`]
    default:
      throw new Error(type)
  }
}

const first = vectors.frames.findIndex(({ type, settings }) => type === 'SettingsFrame' && settings)
const inOrder = [vectors.frames[first]!, ...vectors.frames.toSpliced(first, 1)]
const stream = new Uint8Array(Buffer.from(inOrder.map(({ hex }) => hex).join(''), 'hex'))

describe('frames of another project', () => {
  const expected = inOrder.flatMap(lineOf)

  test('are read, whole', () => {
    expect(read([stream])).toEqual({ lines: expected, fault: '', reason: '' })
  })

  test('are read, cut into two at every byte', () => {
    for (let cut = 1; cut < stream.length; cut++) {
      const { lines } = read([stream.slice(0, cut), stream.slice(cut)])
      if (lines.join('\n') !== expected.join('\n')) throw new Error(`cut at ${cut}`)
    }
  })

  test('are read byte by byte, and behind a preface', () => {
    expect(read([...stream].map(byte => Uint8Array.of(byte))).lines).toEqual(expected)
    expect(
      read(
        [...PREFACE, ...stream].map(byte => Uint8Array.of(byte)),
        { role: 'server' },
      ).lines,
    ).toEqual(expected)
  })

  test('are read in portions of one frame', () => {
    const recorder = new Recorder()
    const decoder = new FrameDecoder(recorder, OPTIONS)
    let at = 0
    for (let count = 0; count < inOrder.length; count++) {
      expect(at).toBeLessThan(stream.length)
      decoder.framesLeft = 1
      decoder.receive(stream, at)
      ;({ at } = decoder)
    }
    expect(at).toBe(stream.length)
    expect(recorder.lines).toEqual(expected)
  })
})

// Types: 0 DATA, 1 HEADERS, 2 PRIORITY, 3 RST_STREAM, 4 SETTINGS, 5 PUSH_PROMISE, 6 PING, 7 GOAWAY, 8 WINDOW_UPDATE,
// 9 CONTINUATION. Flags: 1 END_STREAM or ACK, 4 END_HEADERS, 8 PADDED, 32 PRIORITY.
const FAULTS: readonly (readonly [what: string, code: string, bytes: readonly number[]])[] = [
  ['DATA on stream 0', 'PROTOCOL_ERROR', frame(0, 0, 0, 'x')],
  ['DATA on an even stream', 'PROTOCOL_ERROR', frame(0, 0, 2, 'x')],
  ['DATA that is padded and empty', 'FRAME_SIZE_ERROR', frame(0, 8, 1)],
  ['DATA with padding as long as the frame', 'PROTOCOL_ERROR', frame(0, 8, 1, [5, 1, 0, 0, 0])],
  ['DATA with padding longer than the frame', 'PROTOCOL_ERROR', frame(0, 8, 1, [9, 1])],
  ['HEADERS on stream 0', 'PROTOCOL_ERROR', frame(1, 4, 0, [0x82])],
  ['HEADERS on an even stream', 'PROTOCOL_ERROR', frame(1, 4, 4, [0x82])],
  ['HEADERS that is padded and empty', 'FRAME_SIZE_ERROR', frame(1, 12, 1)],
  ['HEADERS too short for its priority', 'FRAME_SIZE_ERROR', frame(1, 36, 1, [0, 0, 0, 0])],
  ['HEADERS too short for padding and priority', 'FRAME_SIZE_ERROR', frame(1, 44, 1, [0, 0, 0, 0, 0])],
  ['HEADERS with padding as long as the frame', 'PROTOCOL_ERROR', frame(1, 12, 1, [2, 0x82])],
  ['HEADERS with padding over its priority', 'PROTOCOL_ERROR', frame(1, 44, 1, [1, 0, 0, 0, 0, 0])],
  ['PRIORITY on stream 0', 'PROTOCOL_ERROR', frame(2, 0, 0, [0, 0, 0, 0, 0])],
  ['RST_STREAM on stream 0', 'PROTOCOL_ERROR', frame(3, 0, 0, u32(8))],
  ['RST_STREAM on an even stream', 'PROTOCOL_ERROR', frame(3, 0, 2, u32(8))],
  ['RST_STREAM of three bytes', 'FRAME_SIZE_ERROR', frame(3, 0, 1, [0, 0, 8])],
  ['RST_STREAM of five bytes', 'FRAME_SIZE_ERROR', frame(3, 0, 1, [0, 0, 0, 8, 0])],
  ['SETTINGS on a stream', 'PROTOCOL_ERROR', frame(4, 0, 1)],
  ['SETTINGS of five bytes', 'FRAME_SIZE_ERROR', frame(4, 0, 0, [0, 4, 0, 0, 0])],
  ['an acknowledgement with entries', 'FRAME_SIZE_ERROR', frame(4, 1, 0, [0, 4, 0, 0, 0, 1])],
  ['PUSH_PROMISE', 'PROTOCOL_ERROR', frame(5, 4, 1, u32(2))],
  ['PING on a stream', 'PROTOCOL_ERROR', frame(6, 0, 1, '12345678')],
  ['PING of seven bytes', 'FRAME_SIZE_ERROR', frame(6, 0, 0, '1234567')],
  ['PING of nine bytes', 'FRAME_SIZE_ERROR', frame(6, 1, 0, '123456789')],
  ['GOAWAY on a stream', 'PROTOCOL_ERROR', frame(7, 0, 1, [...u32(0), ...u32(0)])],
  ['GOAWAY of seven bytes', 'FRAME_SIZE_ERROR', frame(7, 0, 0, [...u32(0), 0, 0, 0])],
  ['WINDOW_UPDATE of three bytes', 'FRAME_SIZE_ERROR', frame(8, 0, 0, [0, 0, 1])],
  ['WINDOW_UPDATE on an even stream', 'PROTOCOL_ERROR', frame(8, 0, 2, u32(1))],
  ['WINDOW_UPDATE of 0 for the connection', 'PROTOCOL_ERROR', frame(8, 0, 0, u32(0))],
  ['WINDOW_UPDATE of 0 but for the reserved bit', 'PROTOCOL_ERROR', frame(8, 0, 0, u32(0x8000_0000))],
  ['CONTINUATION without HEADERS', 'PROTOCOL_ERROR', frame(9, 4, 1, [0x82])],
  ['CONTINUATION behind a whole block', 'PROTOCOL_ERROR', [...frame(1, 4, 1), ...frame(9, 4, 1)]],
  ['CONTINUATION of another stream', 'PROTOCOL_ERROR', [...frame(1, 0, 1), ...frame(9, 4, 3)]],
  ['CONTINUATION on stream 0', 'PROTOCOL_ERROR', [...frame(1, 0, 1), ...frame(9, 4, 0)]],
  ['DATA inside a field block', 'PROTOCOL_ERROR', [...frame(1, 0, 1), ...frame(0, 0, 1)]],
  ['SETTINGS inside a field block', 'PROTOCOL_ERROR', [...frame(1, 0, 1), ...frame(4, 0, 0)]],
  ['an unknown frame inside a field block', 'PROTOCOL_ERROR', [...frame(1, 0, 1), ...frame(99, 0, 1)]],
  ['HEADERS inside a field block', 'PROTOCOL_ERROR', [...frame(1, 0, 1), ...frame(1, 4, 1)]],
  ['DATA above the maximum size', 'FRAME_SIZE_ERROR', frame(0, 0, 1, '', 16_385)],
  ['an unknown frame above the maximum size', 'FRAME_SIZE_ERROR', frame(99, 0, 0, '', 16_385)],
  [
    'a block of more frames than allowed',
    'ENHANCE_YOUR_CALM',
    [...frame(1, 0, 1), ...Array.from({ length: 5 }, () => frame(9, 0, 1)).flat()],
  ],
  [
    'a block of more bytes than allowed, before they come',
    'ENHANCE_YOUR_CALM',
    [...frame(1, 0, 1, new Uint8Array(16_000)), ...frame(9, 0, 1, '', 4001)],
  ],
]

describe('a connection error for', () => {
  for (const [what, code, bytes] of FAULTS)
    test(what, () => {
      const all = [...SETTINGS, ...bytes, ...frame(6, 0, 0, '12345678')]
      const whole = readBytes(all)
      expect(whole.fault).toBe(code)
      expect(whole.lines.some(line => line.startsWith('ping'))).toBe(false)
      expect(read(all.map(byte => Uint8Array.of(byte)))).toEqual(whole)
    })

  for (const [what, bytes] of [
    ['another first frame', frame(6, 0, 0, '12345678')],
    ['an acknowledgement as the first frame', frame(4, 1, 0)],
    ['an unknown first frame', frame(99, 0, 0)],
  ] as const)
    test(what, () => {
      expect(readBytes(bytes).fault).toBe('PROTOCOL_ERROR')
    })

  test('a preface with any other byte', () => {
    for (let at = 0; at < PREFACE.length; at++) {
      const { fault } = readBytes(PREFACE.slice(0, at).concat(PREFACE[at]! ^ 1), { role: 'server' })
      expect(fault).toBe('PROTOCOL_ERROR')
    }
    expect(readBytes([...Buffer.from('GET / HTTP/1.1\r\n')], { role: 'server' }).fault).toBe('PROTOCOL_ERROR')
  })
})

describe('a stream error for', () => {
  for (const [what, line, bytes] of [
    ['PRIORITY of four bytes', 'fault 1 FRAME_SIZE_ERROR', frame(2, 0, 1, u32(0))],
    ['an empty PRIORITY', 'fault 1 FRAME_SIZE_ERROR', frame(2, 0, 1)],
    ['PRIORITY of a stream on itself', 'fault 3 PROTOCOL_ERROR', frame(2, 0, 3, [128, 0, 0, 3, 9])],
    ['WINDOW_UPDATE of 0', 'fault 5 PROTOCOL_ERROR', frame(8, 0, 5, u32(0))],
    [
      'HEADERS of a stream that depends on itself, whose block is decoded all the same',
      'headers 3 82 true malformed',
      frame(1, 37, 3, [0, 0, 0, 3, 9, 0x82]),
    ],
  ] as const)
    test(what, () => {
      const { lines, fault } = readBytes([...SETTINGS, ...bytes, ...frame(4, 1, 0)])
      expect(fault).toBe('')
      expect(lines).toEqual(['settings ', line, 'settings ack'])
    })
})

test('ignored are unknown frames, unknown flags, reserved bits and PRIORITY of any stream', () => {
  const { lines, fault } = readBytes([
    ...SETTINGS,
    ...frame(99, 255, 2, 'whatever'),
    ...frame(16, 0, 0),
    ...frame(2, 0, 8, [0, 0, 0, 2, 1]),
    ...frame(3, 255, 0x8000_0001, u32(8)),
    ...frame(0, 0xf6, 0x8000_0003, 'x'),
    ...frame(8, 0, 0, u32(0x8000_0007)),
  ])
  expect(fault).toBe('')
  expect(lines).toEqual(['settings ', 'reset 1 8', 'data 3 78 0 false', 'window 0 7'])
})

test('a field block in four CONTINUATION frames arrives whole, cut anywhere', () => {
  const block = new Random(1).bytes(500)
  const bytes = Uint8Array.from([
    ...SETTINGS,
    ...frame(1, 41, 7, [3, 0, 0, 0, 1, 9, ...block.slice(0, 100), 0, 0, 0]),
    ...[100, 200, 200, 350].flatMap((from, index, all) =>
      frame(9, 0, 7, block.slice(from, all[index + 1] ?? from)),
    ),
  ])
  // The last one ends the block: its flag is set here.
  const last = frame(9, 4, 7, block.slice(350))
  const whole = Uint8Array.from([...bytes.slice(0, -9), ...last])
  const expected = ['settings ', `headers 7 ${hexOf(block)} true`]
  for (let cut = 1; cut < whole.length; cut++) {
    const { lines, reason } = read([whole.slice(0, cut), whole.slice(cut)])
    if (lines.join('\n') !== expected.join('\n')) throw new Error(`cut at ${cut}: ${reason}`)
  }
})

test('a handler stops the decoder in the middle of its bytes, and its fault is the answer', () => {
  const recorder = new Recorder()
  const decoder: FrameDecoder = new FrameDecoder(
    Object.assign(recorder, {
      frame(type: number, flags: number) {
        if (type === 4 && flags === 1) decoder.fail(11, 'enough')
      },
    }),
    OPTIONS,
  )
  const bytes = Uint8Array.from([...SETTINGS, ...frame(4, 1, 0), ...frame(6, 0, 0, '12345678')])
  expect(decoder.receive(bytes)).toEqual({ code: 11, reason: 'enough' })
  expect(recorder.lines).toEqual(['settings '])
  expect(decoder.receive(bytes)).toEqual({ code: 11, reason: 'enough' })
})

describe('a thousand decoders hold little', () => {
  for (const [what, bytes] of [
    ['when 16 KB are announced and one byte of it comes', frame(1, 0, 1, [0], 16_384)],
    ['behind a payload of 16 KB in two pieces', frame(7, 0, 0, new Uint8Array(16_384))],
    [
      'behind a field block of two frames',
      [...frame(1, 0, 1, new Uint8Array(16_384)), ...frame(9, 4, 1, [0])],
    ],
  ] as const)
    test(what, () => {
      const pieces = [Uint8Array.from([...SETTINGS, ...bytes.slice(0, -1)]), Uint8Array.from(bytes.slice(-1))]
      const decoders: FrameDecoder[] = []
      const handler = new Recorder()
      handler.goaway = () => {}
      handler.headers = () => {}
      Bun.gc(true)
      const before = process.memoryUsage().external
      while (decoders.length < 1000) {
        const decoder = new FrameDecoder(handler, OPTIONS)
        decoders.push(decoder)
        for (const piece of pieces) expect(decoder.receive(piece)).toBeUndefined()
      }
      Bun.gc(true)
      expect(process.memoryUsage().external - before).toBeLessThan(4_000_000)
      expect(decoders).toHaveLength(1000)
    })
})

test('random and mutated frames get the same verdict however they are cut', () => {
  const cases = 1500 * FUZZ
  let faults = 0
  for (let seed = 1; seed <= cases; seed++) {
    const random = new Random(seed)
    const bytes = [...SETTINGS]
    for (let count = 1 + random.below(5); count > 0; count--) {
      const type = random.below(11)
      const size = [random.below(40), random.below(40), 5, 4, 6, 4, 8, 8 + random.below(9), 4, 3, 3][type]!
      const id = type === 4 || type === 6 || type === 7 ? 0 : 1 + 2 * random.below(3)
      const flags = random.chance(0.7) ? (type === 4 ? 0 : 4) : random.bits() & 255
      bytes.push(...frame(type === 5 ? 0 : type, flags, id, random.bytes(size)))
    }
    for (let times = random.below(3); times > 0; times--)
      bytes[random.below(bytes.length)] = random.bits() & 255
    const whole = readBytes(bytes)
    if (whole.fault !== '') faults++
    const cut = read(random.slices(Uint8Array.from(bytes), 12))
    // A piece of DATA may have been handed out before the fault: only whole frames are compared.
    if (JSON.stringify(cut) !== JSON.stringify(whole))
      throw new Error(`seed ${seed}: ${JSON.stringify({ whole, cut })}`)
  }
  expect(faults).toBeGreaterThan(cases * 0.2)
  expect(faults).toBeLessThan(cases * 0.9)
  countInputs('HTTP/2 frames', cases)
})

describe('what is written', () => {
  const into = new Uint8Array(40_000)
  const written = (end: number) => readBytes([...SETTINGS, ...into.subarray(3, end)]).lines.slice(1)

  test('is read back', () => {
    let at = Frame.writeSettings(into, 3, [
      [3, 100],
      [4, 0x7fff_ffff],
    ])
    at = Frame.writeSettingsAck(into, at)
    at = Frame.writePing(into, at, false, Buffer.from('xx12345678'), 2)
    at = Frame.writePing(into, at, true, Buffer.from('12345678'), 0)
    at = Frame.writeReset(into, at, 0x7fff_ffff, 8)
    at = Frame.writeWindowUpdate(into, at, 0, 0x7fff_ffff)
    at = Frame.writeGoaway(into, at, 0x7fff_ffff, 0, 'bye')
    at = Frame.writeFrameHeader(into, at, Frame.DATA, Frame.END_STREAM, 5, 2)
    into.set([1, 2], at)
    expect(written(at + 2)).toEqual([
      'settings 00030000006400047fffffff',
      'settings ack',
      'ping 3132333435363738',
      'pong 3132333435363738',
      'reset 2147483647 8',
      'window 0 2147483647',
      'goaway 2147483647 0 627965',
      'data 5 0102 0 true',
    ])
  })

  test('is a field block of any length, in frames of the size that the peer takes', () => {
    for (const length of [0, 1, 99, 100, 101, 200, 201, 399, 400])
      for (const isLast of [false, true]) {
        const block = new Random(length).bytes(length)
        into.fill(0xaa)
        into.set(block, 12)
        const end = Frame.frameHeaders(into, 3, 12 + length, 9, isLast, 100)
        expect(end - 3).toBeLessThanOrEqual(Frame.maxHeadersBytes(length, 100))
        expect(written(end)).toEqual([`headers 9 ${hexOf(block)} ${isLast}`])
        expect(readBytes([...SETTINGS, ...into.subarray(3, end)], { maxFrameBytes: 100 }).fault).toBe('')
      }
  })
})
