// HPACK against RFC 7541 appendix C, another project's blocks, and a naive one beside it; malformed blocks; bombs.

import { describe, expect, test } from 'bun:test'
import { FieldList } from '../../src/http2/field-list.ts'
import { HpackDecoder } from '../../src/http2/hpack-decoder.ts'
import { HpackEncoder, maxBlockBytes } from '../../src/http2/hpack-encoder.ts'
import { type NaiveField, NaiveTable, naiveDecode, naiveEncode } from '../support/naive-hpack.ts'
import { countInputs, FUZZ, Random } from '../support/random.ts'
import { workedMs } from '../support/within.ts'
import vectors from '../vectors/http2.json' with { type: 'json' }
import appendix from '../vectors/rfc7541.json' with { type: 'json' }

const bytesOf = (hex: string) => new Uint8Array(Buffer.from(hex.replaceAll(' ', ''), 'hex'))
const hexOf = (bytes: Uint8Array) => Buffer.from(bytes).toString('hex')
const latin1 = (text: string) => Buffer.from(text, 'latin1')

const list = new FieldList()

/** The fields of a block, from somewhere inside an array; throws what was wrong. */
function decode(decoder: HpackDecoder, block: Uint8Array): [string, string][] {
  const around = new Uint8Array(block.length + 9).fill(0x82)
  around.set(block, 5)
  if (!decoder.decode(around, 5, 5 + block.length, list)) throw new RangeError(decoder.problem)
  return list.list()
}

function encode(encoder: HpackEncoder, fields: readonly NaiveField[]): Uint8Array {
  const text = fields.reduce((sum, [name, value]) => sum + name.length + value.length, 0)
  const room = maxBlockBytes(text, fields.length)
  const into = new Uint8Array(room + 3)
  let at = encoder.begin(into, 3)
  for (const [name, value] of fields) {
    const bytes = latin1(name + value)
    at = encoder.field(into, at, bytes, 0, name.length, bytes, name.length, bytes.length)
  }
  expect(at).toBeLessThanOrEqual(room + 3)
  return into.slice(3, at)
}

describe('the examples of RFC 7541', () => {
  for (const { section, tableBytes, blocks } of appendix)
    test(`appendix ${section}`, () => {
      const decoder = new HpackDecoder({ maxListBytes: 4096, maxTableBytes: tableBytes })
      for (const { hex, fields, size } of blocks) {
        expect(decode(decoder, bytesOf(hex))).toEqual(fields as [string, string][])
        expect(decoder.tableBytes).toBe(size)
      }
    })
})

test('blocks of another project mean what it says, and leave a table of the same size', () => {
  let count = 0
  for (const conversation of vectors.conversations) {
    const decoder = new HpackDecoder({ maxListBytes: 65_536 })
    for (const { hex, fields, table } of conversation) {
      expect(decode(decoder, bytesOf(hex))).toEqual(fields as [string, string][])
      expect(decoder.tableBytes).toBe(table)
      count++
    }
  }
  expect(count).toBeGreaterThan(200)
})

const NAMES = [
  ':path',
  ':status',
  'accept',
  'cookie',
  'x-a',
  'x-b',
  'content-type',
  'etag',
  `x-${'y'.repeat(200)}`,
]
const VALUES = ['', '/', '200', 'a', 'b', 'text/html', 'x'.repeat(130), '\x00\xff\x80', 'gzip, deflate']

function randomFields(random: Random): NaiveField[] {
  return Array.from({ length: random.below(12) }, () => [
    random.pick(NAMES),
    random.chance(0.8)
      ? random.pick(VALUES)
      : Buffer.from(random.bytes(random.below(300))).toString('latin1'),
  ])
}

test('any way of writing fields is read back, over the life of a connection', () => {
  const cases = 60 * FUZZ
  for (let seed = 1; seed <= cases; seed++) {
    const random = new Random(seed)
    const table = new NaiveTable()
    const decoder = new HpackDecoder({ maxListBytes: 65_536 })
    for (let block = 0; block < 20; block++) {
      const fields = randomFields(random)
      const bytes = naiveEncode(table, fields, random)
      expect(decode(decoder, bytes), `seed ${seed}`).toEqual(fields as [string, string][])
      expect(decoder.tableBytes, `seed ${seed}`).toBe(table.size)
    }
  }
})

test('what the encoder writes is read by the naive decoder, whatever sizes the peer allows', () => {
  const cases = 60 * FUZZ
  for (let seed = 1; seed <= cases; seed++) {
    const random = new Random(seed)
    const table = new NaiveTable()
    const own = random.pick([0, 256, 4096, 16_384])
    const encoder = new HpackEncoder(own)
    table.limit = 4096
    for (let block = 0; block < 20; block++) {
      if (random.chance(0.15))
        for (let times = 1 + random.below(3); times > 0; times--) {
          const limit = random.pick([0, 33, 100, 1000, 4096, 20_000])
          // Between two blocks the smallest limit is the one that the table has to go through.
          table.limit = limit
          encoder.setPeerLimit(limit)
        }
      const fields = randomFields(random)
      const bytes = encode(encoder, fields)
      expect(naiveDecode(table, bytes), `seed ${seed}`).toEqual(fields)
      expect(encoder.tableBytes, `seed ${seed}`).toBe(table.size)
      expect(table.size, `seed ${seed}`).toBeLessThanOrEqual(own)
    }
  }
})

test('mutated blocks get the verdict and the fields of the naive decoder', () => {
  const cases = 1500 * FUZZ
  let refused = 0
  for (let seed = 1; seed <= cases; seed++) {
    const random = new Random(seed)
    const writer = new NaiveTable()
    const reader = new NaiveTable()
    const decoder = new HpackDecoder({ maxListBytes: 1_000_000 })
    for (let block = 0; block < 3; block++) {
      let bytes = naiveEncode(writer, randomFields(random), random)
      for (let times = random.below(3); times > 0 && bytes.length > 0; times--) {
        const at = random.below(bytes.length)
        if (random.chance(0.6)) bytes[at] = random.bits()
        else bytes = Uint8Array.from([...bytes.slice(0, at), ...bytes.slice(at + 1 + random.below(3))])
      }
      let expected: NaiveField[] | undefined
      try {
        expected = naiveDecode(reader, bytes)
      } catch (error) {
        if (!(error instanceof RangeError)) throw error
      }
      const isRead = decoder.decode(bytes, 0, bytes.length, list)
      const ours = isRead ? list.list() : undefined
      if (JSON.stringify(ours) !== JSON.stringify(expected))
        throw new Error(`seed ${seed}, ${hexOf(bytes)}: ${JSON.stringify({ ours, expected })}`)
      if (expected !== undefined) continue
      refused++
      break
    }
  }
  expect(refused).toBeGreaterThan(cases * 0.1)
  expect(refused).toBeLessThan(cases * 0.9)
  countInputs('field blocks', cases)
})

test('a block cut anywhere is refused or has fewer fields, and nothing behind the cut is read', () => {
  const decoder = () => new HpackDecoder({ maxListBytes: 65_536 })
  const block = bytesOf(appendix.find(({ section }) => section === 'C.6')!.blocks[0]!.hex)
  const whole = decode(decoder(), block)
  for (let end = 0; end < block.length; end++) {
    if (!decoder().decode(block, 0, end, list)) continue
    expect(list.list()).toEqual(whole.slice(0, list.count))
    expect(list.count).toBeLessThan(whole.length)
  }
})

describe('COMPRESSION_ERROR for', () => {
  for (const [what, hex, problem] of [
    ['index 0', '80', 'index 0'],
    ['an index behind the tables', 'be', 'an index that is not in the table'],
    ['a name index behind the tables', '7e 00', 'an index that is not in the table'],
    ['an index of 28 bits', 'ff ff ff ff 7f', 'an index that is not in the table'],
    ['an integer that does not end', 'ff', 'the block ends inside an integer'],
    ['an integer of too many bytes', 'ff 80 80 80 80 00', 'an integer that is too long'],
    ['a table size above the limit', '3f e2 1f', 'the table size is above the limit'],
    ['a table size behind a field', '82 20', 'a table size behind a field'],
    ['a field without its value', '44', 'the block ends inside a field'],
    ['a field without its name', '40', 'the block ends inside a field'],
    ['a string longer than the block', '44 05 2f', 'a string longer than the block'],
    ['a length of 28 bits', '44 7f ff ff ff 7f 2f', 'a string longer than the block'],
    ['EOS in a string', '44 84 ff ff ff ff', 'a broken Huffman string'],
    ['padding of eight bits', '44 82 1f ff', 'a broken Huffman string'],
    ['padding that is not ones', '44 81 18', 'a broken Huffman string'],
  ] as const)
    test(what, () => {
      const decoder = new HpackDecoder({ maxListBytes: 4096 })
      expect(decoder.decode(bytesOf(hex), 0, bytesOf(hex).length, list)).toBe(false)
      expect(decoder.problem).toBe(problem)
    })
})

describe('the table size', () => {
  test('has to go down in the first block after the peer acknowledged less', () => {
    const decoder = new HpackDecoder({ maxListBytes: 4096 })
    decoder.setTableLimit(100)
    expect(() => decode(decoder, bytesOf('82'))).toThrow('the table size was not lowered')
    expect(decode(decoder, bytesOf('3f 45 82'))).toEqual([[':method', 'GET']])
    expect(() => decode(decoder, bytesOf('3f 46'))).toThrow('the table size is above the limit')
  })

  test('may go to nothing and come back', () => {
    const decoder = new HpackDecoder({ maxListBytes: 4096 })
    decode(decoder, bytesOf('40 01 61 01 62'))
    expect(decode(decoder, bytesOf('be'))).toEqual([['a', 'b']])
    expect(() => decode(decoder, bytesOf('20 3f e1 1f be'))).toThrow('not in the table')
    expect(decoder.tableBytes).toBe(0)
    decode(decoder, bytesOf('40 01 61 01 62'))
    expect(decode(decoder, bytesOf('be'))).toEqual([['a', 'b']])
  })
})

describe('secrets', () => {
  for (const name of ['authorization', 'cookie', 'set-cookie', 'proxy-authorization', 'x-api-key'])
    test(`${name} is never indexed, on either side`, () => {
      const encoder = new HpackEncoder()
      const field = [name, 'secret=1'] as const
      const first = encode(encoder, [field])
      expect(first[0]! & 0xf0).toBe(0x10)
      expect(encode(encoder, [field])).toEqual(first)
      expect(encoder.tableBytes).toBe(0)
    })

  test('a field that repeats becomes one byte, one that passes does not fill the table', () => {
    const encoder = new HpackEncoder()
    const fields = [
      ['Content-Type', 'text/html; charset=utf-8'],
      ['etag', '"1"'],
    ] as const
    encode(encoder, fields)
    const size = encoder.tableBytes
    expect(encode(encoder, fields).length).toBeLessThan(8)
    expect(encoder.tableBytes).toBe(size)
    expect(naiveDecode(new NaiveTable(), encode(new HpackEncoder(0), fields))[0]).toEqual([
      'content-type',
      'text/html; charset=utf-8',
    ])
  })
})

describe('a bomb', () => {
  const large = (length: number) => {
    const value = new Uint8Array(length).fill(0x61)
    const head = [0x40, 0x01, 0x61, 0x7f]
    for (let rest = length - 127; ; rest >>>= 7) {
      head.push(rest >= 128 ? (rest & 127) | 128 : rest)
      if (rest < 128) return Uint8Array.from([...head, ...value])
    }
  }

  class CountingList extends FieldList {
    appended = 0
    override append(from: Uint8Array, start: number, end: number): void {
      this.appended += end - start
      super.append(from, start, end)
    }
  }

  test('of one entry, repeated by one byte each, keeps no more than a list may have', () => {
    const decoder = new HpackDecoder({ maxListBytes: 65_536 })
    const fields = new CountingList()
    const entry = large(4000)
    expect(decoder.decode(entry, 0, entry.length, fields)).toBe(true)
    // 1 MB of indices means 4 GB of fields. Only what a list may have is copied.
    const bomb = new Uint8Array(1_000_000).fill(0xbe)
    fields.appended = 0
    expect(decoder.decode(bomb, 0, bomb.length, fields)).toBe(true)
    expect(fields.appended).toBeLessThan(65_536 + 4096)
    expect(fields.isTooLarge).toBe(true)
    expect(fields.count).toBe(0)
    expect(fields.bytes.length).toBeLessThan(3 * 65_536)
    // The connection goes on with the table as it was.
    expect(decode(decoder, bytesOf('be'))[0]![1]).toHaveLength(4000)
  })

  test('of literals keeps the table in step and gives the memory back', () => {
    const decoder = new HpackDecoder({ maxListBytes: 2000 })
    const fields = new FieldList()
    const block = Buffer.concat(Array.from({ length: 100 }, (_, at) => large(1000 + at)))
    expect(decoder.decode(block, 0, block.length, fields)).toBe(true)
    expect(fields.isTooLarge).toBe(true)
    expect(decoder.tableBytes).toBe(3 * 33 + 1099 + 1098 + 1097)
    expect(decode(decoder, bytesOf('be'))[0]![1]).toHaveLength(1099)
    const huge = large(200_000)
    expect(decoder.decode(huge, 0, huge.length, fields)).toBe(true)
    expect(decoder.tableBytes).toBe(0)
    decoder.decode(bytesOf('82'), 0, 1, fields)
    expect(fields.bytes.length).toBeLessThanOrEqual(65_536)
    expect(fields.list()).toEqual([[':method', 'GET']])
  })

  test('of size updates costs nothing', () => {
    const decoder = new HpackDecoder({ maxListBytes: 4096 })
    const bomb = new Uint8Array(300_000)
    for (let at = 0; at < bomb.length; at += 4) bomb.set([0x20, 0x3f, 0xe1, 0x1f], at)
    const before = workedMs()
    expect(decode(decoder, bomb)).toEqual([])
    expect(workedMs() - before).toBeLessThan(1000)
  })
})
