// The Huffman code against another project's table and strings, and what is no Huffman string.

import { describe, expect, test } from 'bun:test'
import { decodeHuffman, encodeHuffman, huffmanLength, maxDecodedBytes } from '../../src/http2/huffman.ts'
import { naiveHuffman } from '../support/naive-hpack.ts'
import { FUZZ, Random } from '../support/random.ts'
import vectors from '../vectors/http2.json' with { type: 'json' }

function encode(plain: Uint8Array): Uint8Array {
  // A margin shows that nothing is written beside the place.
  const into = new Uint8Array(huffmanLength(plain, 0, plain.length) + 8).fill(0xaa)
  const end = encodeHuffman(plain, 0, plain.length, into, 4)
  expect(end - 4).toBe(huffmanLength(plain, 0, plain.length))
  expect([...into.subarray(0, 4), ...into.subarray(end)]).toEqual(Array(8).fill(0xaa))
  return into.slice(4, end)
}

/** The decoded text, or undefined. */
function decode(coded: Uint8Array): string | undefined {
  const into = new Uint8Array(maxDecodedBytes(coded.length))
  const end = decodeHuffman(coded, 0, coded.length, into, 0)
  expect(end).toBeLessThanOrEqual(into.length)
  return end < 0 ? undefined : Buffer.from(into.subarray(0, end)).toString('latin1')
}

test('strings are coded and decoded as by another project', () => {
  for (const [text, hex] of vectors.strings as [string, string][]) {
    const plain = Buffer.from(text, 'latin1')
    expect(Buffer.from(encode(plain)).toString('hex')).toBe(hex)
    expect(decode(Buffer.from(hex, 'hex'))).toBe(text)
  }
})

test('each byte alone, and each pair of bytes, comes back', () => {
  for (let first = 0; first < 256; first++) {
    const [code, length] = vectors.codes[first]!
    expect(huffmanLength(Uint8Array.of(first), 0, 1)).toBe(Math.ceil(length! / 8))
    expect(
      [...encode(Uint8Array.of(first))]
        .map(byte => byte.toString(2).padStart(8, '0'))
        .join('')
        .slice(0, length),
    ).toBe(code!.toString(2).padStart(length!, '0'))
    for (let second = 0; second < 256; second += 1 + (first % 7)) {
      const pair = Buffer.of(first, second)
      expect(decode(encode(pair))).toBe(pair.toString('latin1'))
    }
  }
})

describe('refused is', () => {
  for (const [what, hex] of [
    ['padding of eight bits', '1fff'],
    ['padding of eight bits and nothing else', 'ff'],
    ['padding with a zero', '1c64fe'],
    ['EOS', 'ffffffff'],
    ['EOS in the middle', '1cfffffff81c'],
  ] as const)
    test(what, () => {
      expect(decode(Buffer.from(hex, 'hex'))).toBeUndefined()
      expect(() => naiveHuffman(Buffer.from(hex, 'hex'))).toThrow()
    })
})

test('random bytes are read as the naive decoder reads them', () => {
  const cases = 2000 * FUZZ
  let read = 0
  for (let seed = 1; seed <= cases; seed++) {
    const random = new Random(seed)
    const coded = random.bytes(random.below(12))
    if (random.chance(0.5) && coded.length > 0) coded[coded.length - 1]! |= 0x1f
    let expected: string | undefined
    try {
      expected = naiveHuffman(coded)
      read++
    } catch {
      // Malformed: expected stays undefined.
    }
    if (decode(coded) !== expected) throw new Error(`seed ${seed}: ${Buffer.from(coded).toString('hex')}`)
  }
  expect(read).toBeGreaterThan(cases * 0.1)
  expect(read).toBeLessThan(cases * 0.9)
})
