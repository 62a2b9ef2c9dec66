// The decoder against the naive one: same frames however the bytes are cut, and a verdict on what is no frame.

import { describe, expect, test } from 'bun:test'
import { FrameDecoder } from '../../src/wire/frame.ts'
import { concat } from '../support/link.ts'
import { frame, frameOf, naiveDecode, naiveEncode, TYPES } from '../support/naive.ts'
import { countInputs, FUZZ, Random } from '../support/random.ts'

/** What a decoder made of the slices: frames with DATA put together again, as text to compare. */
function decode(
  slices: readonly Uint8Array[],
  receive: (decoder: FrameDecoder, slice: Uint8Array) => string | undefined = (decoder, slice) =>
    decoder.receive(slice),
): { frames: string[]; problem: string | undefined } {
  const frames: string[] = []
  let data: { stream: number; bytes: number[] } | undefined
  const finishData = () => {
    if (data !== undefined) frames.push(`DATA ${data.stream} ${data.bytes.join()}`)
    data = undefined
  }
  const decoder = new FrameDecoder({
    data(stream, array, start, end) {
      if (data !== undefined && data.stream !== stream) finishData()
      data ??= { stream, bytes: [] }
      data.bytes.push(...array.subarray(start, end))
    },
    frame(type, stream, bytes, start, end) {
      const payload = bytes.slice(start, end)
      finishData()
      frames.push(`${TYPES[type]} ${stream} ${payload.join()}`)
    },
  })
  let problem: string | undefined
  for (const slice of slices) {
    problem = receive(decoder, slice)
    if (problem !== undefined) break
  }
  finishData()
  return { frames, problem }
}

/** The same of the naive decoder, with DATA frames of one stream in a row as one. */
function reference(bytes: Uint8Array): string[] {
  const frames: string[] = []
  let before = ''
  for (const { type, stream, payload } of naiveDecode(bytes).frames) {
    const kind = `${type} ${stream}`
    if (type === 'DATA' && before === kind) frames.push(`${frames.pop()},${payload.join()}`)
    else frames.push(`${kind} ${payload.join()}`)
    before = kind
  }
  return frames
}

function randomFrames(random: Random, count: number): Uint8Array {
  const frames: number[] = []
  for (let index = 0; index < count; index++) {
    const type = random.below(9)
    const sizes = [1 + random.below(300), 4, 6, 8, 4, 8, 8, 1 + random.below(300), 2]
    const stream = type >= 5 ? 0 : random.chance(0.5) ? 1 + random.below(3) : Math.max(1, random.bits())
    frames.push(
      ...naiveEncode({ type: TYPES[type] ?? '', stream, payload: [...random.bytes(sizes[type] ?? 0)] }),
    )
  }
  return Uint8Array.from(frames)
}

describe('frame decoder', () => {
  test('reads the same frames at every place where bytes can be cut in two', () => {
    const bytes = concat([
      frame('OPEN', 1, [7, 4]),
      frameOf('DATA', 1, 'hello'),
      frameOf('CONTROL', 0, '{"type":"x"}'),
      frame('RESET', 0xffff_ffff, [20, 2], [0xffff_ffff_ffff, 6]),
      frame('PING', 0, [1, 8]),
    ])
    const expected = reference(bytes)
    for (let cut = 0; cut <= bytes.length; cut++) {
      expect(decode([bytes.slice(0, cut), bytes.slice(cut)])).toEqual({
        frames: expected,
        problem: undefined,
      })
    }
  })

  test('reads the same frames byte by byte', () => {
    const bytes = randomFrames(new Random(3), 40)
    expect(decode(Array.from(bytes, byte => Uint8Array.of(byte))).frames).toEqual(reference(bytes))
  })

  test('reads random frames in random slices as the naive decoder does', () => {
    for (let seed = 0; seed < 60 * FUZZ; seed++) {
      const random = new Random(seed)
      const bytes = randomFrames(random, 1 + random.below(40))
      const { frames, problem } = decode(random.slices(bytes, 1 + random.below(400)))
      expect({ seed, frames, problem }).toEqual({ seed, frames: reference(bytes), problem: undefined })
    }
  })

  test('says the same of mutated frames however they are cut, and never throws', () => {
    countInputs('frames', 500 * FUZZ)
    let sound = 0
    for (let seed = 0; seed < 500 * FUZZ; seed++) {
      const random = new Random(seed)
      const bytes = randomFrames(random, 1 + random.below(6)).slice()
      for (let edits = random.below(4); edits > 0; edits--) {
        bytes[random.below(Math.min(bytes.length, 64))] = random.bits()
      }
      const whole = decode([bytes.slice()])
      expect({ seed, ...decode(random.slices(bytes, 1 + random.below(60))) }).toEqual({ seed, ...whole })
      if (whole.problem === undefined) sound++
    }
    expect(sound).toBeGreaterThan(50)
  })

  test('hands on data piece by piece, as it came', () => {
    const pieces: string[] = []
    const decoder = new FrameDecoder({
      data: (_, array, start, end) => pieces.push(new TextDecoder().decode(array.subarray(start, end))),
      frame() {},
    })
    const bytes = frameOf('DATA', 1, 'abcdef')
    decoder.receive(bytes.slice(0, 10))
    decoder.receive(bytes.slice(10, 13))
    decoder.receive(bytes.slice(13))
    expect(pieces).toEqual(['ab', 'cde', 'f'])
  })

  test('takes a control message of the full frame size in slices, and the next frame after it', () => {
    const large = frameOf('CONTROL', 0, 'x'.repeat(65_536))
    const bytes = concat([large, frame('PING', 0, [9, 8])])
    const { frames, problem } = decode(new Random(5).slices(bytes, 5000))
    expect(problem).toBeUndefined()
    expect(frames.map(text => text.length)).toEqual(reference(bytes).map(text => text.length))
  })

  const refused: readonly [string, Uint8Array, string][] = [
    ['DATA over 65,536 bytes', Uint8Array.of(1, 0, 1, 0, 0, 0, 0, 1), 'PROTOCOL_ERROR'],
    ['the longest length there is', Uint8Array.of(255, 255, 255, 7, 0, 0, 0, 0), 'PROTOCOL_ERROR'],
    ['a type of no version', Uint8Array.of(0, 0, 4, 9, 0, 0, 0, 1, 0, 0, 0, 0), 'PROTOCOL_ERROR'],
    ['type 255', Uint8Array.of(0, 0, 4, 255, 0, 0, 0, 1, 0, 0, 0, 0), 'PROTOCOL_ERROR'],
    ['empty DATA', frameOf('DATA', 1, ''), 'PROTOCOL_ERROR'],
    ['empty CONTROL', frameOf('CONTROL', 0, ''), 'PROTOCOL_ERROR'],
    ['a short OPEN', frame('OPEN', 1, [7, 3]), 'PROTOCOL_ERROR'],
    ['a long OPEN', frame('OPEN', 1, [7, 5]), 'PROTOCOL_ERROR'],
    ['END without its count', frame('END', 1), 'PROTOCOL_ERROR'],
    ['RESET without its count', frame('RESET', 1, [20, 2]), 'PROTOCOL_ERROR'],
    ['an empty CREDIT', frame('CREDIT', 1), 'PROTOCOL_ERROR'],
    ['a short PING', frame('PING', 0, [1, 4]), 'PROTOCOL_ERROR'],
    ['a short PONG', frame('PONG', 0, [1, 4]), 'PROTOCOL_ERROR'],
    ['GOAWAY with more than its code', frame('GOAWAY', 0, [15, 4]), 'PROTOCOL_ERROR'],
    ['DATA on stream 0', frameOf('DATA', 0, 'x'), 'PROTOCOL_ERROR'],
    ['OPEN on stream 0', frame('OPEN', 0, [7, 4]), 'PROTOCOL_ERROR'],
    ['END on stream 0', frame('END', 0, [0, 6]), 'PROTOCOL_ERROR'],
    ['RESET on stream 0', frame('RESET', 0, [20, 2], [0, 6]), 'PROTOCOL_ERROR'],
    ['CREDIT on stream 0', frame('CREDIT', 0, [1, 4]), 'PROTOCOL_ERROR'],
    ['PING on a stream', frame('PING', 1, [1, 8]), 'PROTOCOL_ERROR'],
    ['PONG on a stream', frame('PONG', 1, [1, 8]), 'PROTOCOL_ERROR'],
    ['CONTROL on a stream', frameOf('CONTROL', 1, '{}'), 'PROTOCOL_ERROR'],
    ['a short LINK', frame('LINK', 1, [3, 4]), 'PROTOCOL_ERROR'],
    ['a long LINK_FREE', frame('LINK_FREE', 0, [3, 4], [0, 6]), 'PROTOCOL_ERROR'],
    ['LINK on stream 0', frame('LINK', 0, [3, 4], [0, 6]), 'PROTOCOL_ERROR'],
    ['UNLINK on stream 0', frame('UNLINK', 0, [3, 4], [0, 6]), 'PROTOCOL_ERROR'],
    ['LINK_FREE on a stream', frame('LINK_FREE', 1, [3, 4]), 'PROTOCOL_ERROR'],
    ['GOAWAY on a stream', frame('GOAWAY', 1, [15, 2]), 'PROTOCOL_ERROR'],
  ]
  for (const [name, bytes, code] of refused) {
    test(`refuses ${name}, whole or in bytes, after the frames before it`, () => {
      const all = concat([frame('PING', 0, [1, 8]), bytes])
      const expected = { frames: ['PING 0 0,0,0,0,0,0,0,1'], problem: code }
      expect(decode([all])).toEqual(expected)
      expect(decode(Array.from(all, byte => Uint8Array.of(byte)))).toEqual(expected)
    })
  }

  test('refuses an oversize frame on its header, before any payload is held', () => {
    const decoder = new FrameDecoder({ data() {}, frame() {} })
    expect(decoder.receive(Uint8Array.of(1, 0, 1, 7, 0, 0, 0, 0))).toBe('PROTOCOL_ERROR')
  })

  test('delivers nothing more once stopped, in the middle of a read', () => {
    let count = 0
    const decoder = new FrameDecoder({
      data() {},
      frame() {
        count++
        decoder.stop()
      },
    })
    decoder.receive(concat([frame('PING', 0, [1, 8]), frame('PING', 0, [2, 8])]))
    decoder.receive(frame('PING', 0, [3, 8]))
    expect(count).toBe(1)
  })
})

test('frames are taken in portions, and none is lost or taken twice, wherever the bytes are cut', () => {
  for (let seed = 1; seed <= 200; seed++) {
    const random = new Random(seed)
    const bytes = randomFrames(random, 40)
    const expected = decode([bytes.slice()])
    const portion = 1 + random.below(5)
    const inPortions = decode(random.slices(bytes, 1 + random.below(200)), (decoder, slice) => {
      let at = 0
      while (at < slice.length) {
        decoder.framesLeft = portion
        const problem = decoder.receive(slice, at)
        if (problem !== undefined) return problem
        at = decoder.at
      }
      return undefined
    })
    expect({ seed, ...inPortions }).toEqual({ seed, ...expected })
  }
})

test('a portion ends behind its last frame', () => {
  const numbers: number[] = []
  const decoder = new FrameDecoder({
    data() {},
    frame: (_type, _stream, bytes, start) => numbers.push(bytes[start]!),
  })
  const bytes = concat(
    [1, 2, 3, 4, 5].map(number => frameOf('PING', 0, String.fromCharCode(number).repeat(8))),
  )
  decoder.framesLeft = 2
  decoder.receive(bytes)
  expect(numbers).toEqual([1, 2])
  expect(decoder.at).toBe((2 * bytes.length) / 5)
})
