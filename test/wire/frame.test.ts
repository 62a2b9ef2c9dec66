// The frame layout against its vectors, and both against an encoder that knows nothing of ours.

import { describe, expect, test } from 'bun:test'
import * as wire from '../../src/wire/frame.ts'
import { naiveEncode, naiveInteger, TYPES } from '../support/naive.ts'
import vectors from '../vectors/frames.json' with { type: 'json' }

interface Vector {
  readonly name: string
  readonly type: string
  readonly stream: number
  readonly hex: string
  readonly bytes?: string
  readonly opaque?: string
  readonly text?: string
  readonly tunnel?: number
  readonly error?: number
  readonly delivered?: number
  readonly credit?: number
  readonly link?: number
  readonly byte?: number
}

const bytesOf = (hex: string) => [...Buffer.from(hex, 'hex')]

/** The payload as docs/protocol.md describes it: the fields of a frame in their order. */
function naivePayload({
  bytes,
  opaque,
  text,
  tunnel,
  error,
  delivered,
  credit,
  link,
  byte,
}: Vector): number[] {
  return [
    ...bytesOf(bytes ?? opaque ?? ''),
    ...new TextEncoder().encode(text ?? ''),
    ...(tunnel === undefined ? [] : naiveInteger(tunnel, 4)),
    ...(error === undefined ? [] : naiveInteger(error, 2)),
    ...(delivered === undefined ? [] : naiveInteger(delivered, 6)),
    ...(credit === undefined ? [] : naiveInteger(credit, 4)),
    ...(link === undefined ? [] : naiveInteger(link, 4)),
    ...(byte === undefined ? [] : naiveInteger(byte, 6)),
  ]
}

/** The same with the functions that the sessions use. */
function fastEncode(vector: Vector): Uint8Array {
  const payload = bytesOf(vector.bytes ?? vector.opaque ?? '')
  if (vector.text !== undefined) payload.push(...new TextEncoder().encode(vector.text))
  const { tunnel, error, delivered, credit, link, byte } = vector
  const length =
    payload.length +
    (tunnel !== undefined || credit !== undefined ? 4 : 0) +
    (error !== undefined ? 2 : 0) +
    (delivered !== undefined ? 6 : 0) +
    (link !== undefined ? 4 : 0) +
    (byte !== undefined ? 6 : 0)
  // Not zeros: a writer must set every byte.
  const into = new Uint8Array(3 + wire.FRAME_HEADER_BYTES + length).fill(0xaa)
  wire.writeFrameHeader(into, 3, TYPES.indexOf(vector.type), vector.stream, length)
  let at = 3 + wire.FRAME_HEADER_BYTES
  into.set(payload, at)
  for (const u32 of [tunnel, credit]) if (u32 !== undefined) wire.writeU32(into, at, u32)
  if (error !== undefined) {
    into.set(naiveInteger(error, 2), at)
    at += 2
  }
  if (delivered !== undefined) wire.writeU48(into, at, delivered)
  if (link !== undefined) wire.writeU32(into, at, link)
  if (byte !== undefined) wire.writeU48(into, at + 4, byte)
  return into.slice(3)
}

describe('frame layout', () => {
  for (const vector of vectors as readonly Vector[]) {
    test(`${vector.name}: vector, naive encoder and ours agree`, () => {
      const naive = naiveEncode({ ...vector, payload: naivePayload(vector) })
      expect(Buffer.from(naive).toString('hex')).toBe(vector.hex)
      expect(Buffer.from(fastEncode(vector)).toString('hex')).toBe(vector.hex)
    })
  }

  test('every frame type has a vector', () => {
    expect([...new Set(vectors.map(({ type }) => type))].sort()).toEqual([...TYPES].sort())
  })

  test('type numbers are those of the specification', () => {
    const { DATA, OPEN, END, RESET, CREDIT, PING, PONG, CONTROL, GOAWAY, LINK, UNLINK, LINK_FREE } = wire
    const types = [DATA, OPEN, END, RESET, CREDIT, PING, PONG, CONTROL, GOAWAY, LINK, UNLINK, LINK_FREE]
    expect(types).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11])
    expect(wire.MAX_FRAME_TYPE).toBe(11)
  })

  test('whole numbers survive at their extremes', () => {
    const into = new Uint8Array(8)
    for (const value of [0, 1, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff]) {
      wire.writeU32(into, 1, value)
      expect([...into.subarray(1, 5)]).toEqual(naiveInteger(value, 4))
      expect(wire.readU32(into, 1)).toBe(value)
    }
    for (const value of [0, 0xffff_ffff, 0x1_0000_0000, 0x8000_0000_0000, 0xffff_ffff_ffff]) {
      wire.writeU48(into, 1, value)
      expect([...into.subarray(1, 7)]).toEqual(naiveInteger(value, 6))
      expect(wire.readU48(into, 1)).toBe(value)
    }
  })
})
