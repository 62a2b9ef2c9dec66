// WebSocket frames: the examples of the RFC, every way to cut them, every way to break them.

import { describe, expect, test } from 'bun:test'
import {
  BINARY,
  CLOSE,
  CONTINUATION,
  encodeClosePayload,
  encodeWebSocketMessage,
  MAX_WS_HEADER_BYTES,
  PING,
  PONG,
  TEXT,
  WebSocketParser,
  writeWebSocketHeader,
} from '../../src/wire/websocket.ts'
import { FUZZ, Random } from '../support/random.ts'
import { bytesOf, joined, ParserLog, type PlainFrame, plainFrame } from '../support/websocket.ts'

const MASK = [0x37, 0xfa, 0x21, 0x3d] as const
const MASK_KEY = 0x3d21fa37

type Role = 'server' | 'client'

function parse(role: Role, pieces: readonly Uint8Array[], maxTextBytes = 1000): ParserLog {
  const log = new ParserLog()
  const parser = new WebSocketParser({ role, maxTextBytes }, log)
  for (const piece of pieces) parser.receive(piece.slice())
  return log
}

const hex = (text: string) => new Uint8Array(Buffer.from(text.replaceAll(' ', ''), 'hex'))

describe('the examples of RFC 6455 section 5.7', () => {
  const examples: [string, Role, string, string[]][] = [
    ['an unmasked text', 'client', '81 05 48 65 6c 6c 6f', ['text Hello']],
    ['a masked text', 'server', '81 85 37 fa 21 3d 7f 9f 4d 51 58', ['text Hello']],
    ['a fragmented text', 'client', '01 03 48 65 6c 80 02 6c 6f', ['text Hello']],
    ['a ping', 'client', '89 05 48 65 6c 6c 6f', ['ping 48656c6c6f']],
    ['a masked pong', 'server', '8a 85 37 fa 21 3d 7f 9f 4d 51 58', ['pong 48656c6c6f']],
  ]
  for (const [name, role, bytes, entries] of examples) {
    test(`${name} is read`, () => expect(parse(role, [hex(bytes)]).entries).toEqual(entries))
  }

  test('messages of 256 bytes and 64 KiB get the headers shown', () => {
    for (const [length, header] of [
      [256, '827e0100'],
      [65_536, '827f0000000000010000'],
    ] as const) {
      const message = encodeWebSocketMessage(BINARY, new Uint8Array(length))
      expect(Buffer.from(message.subarray(0, message.length - length)).toString('hex')).toBe(header)
      expect(parse('client', [message]).bytes.length).toBe(length)
    }
  })

  test('what is written is what is shown', () => {
    expect(encodeWebSocketMessage(TEXT, bytesOf('Hello'))).toEqual(hex('81 05 48 65 6c 6c 6f'))
    expect(encodeWebSocketMessage(PONG, bytesOf('Hello'), MASK_KEY)).toEqual(
      hex('8a 85 37 fa 21 3d 7f 9f 4d 51 58'),
    )
  })
})

describe('reading', () => {
  const conversation = (mask?: PlainFrame['mask']) => {
    const add = mask ? { mask } : {}
    return joined([
      plainFrame({ opcode: BINARY, payload: 'first', ...add }),
      plainFrame({ opcode: TEXT, payload: 'grüß', fin: false, ...add }),
      plainFrame({ opcode: PING, payload: 'between', ...add }),
      plainFrame({ opcode: CONTINUATION, payload: ' dich', ...add }),
      plainFrame({ opcode: BINARY, payload: 'x'.repeat(300), fin: false, ...add }),
      plainFrame({ opcode: PONG, ...add }),
      plainFrame({ opcode: CONTINUATION, fin: false, ...add }),
      plainFrame({ opcode: CONTINUATION, payload: 'last', ...add }),
      plainFrame({ opcode: TEXT, ...add }),
      plainFrame({ opcode: BINARY, payload: 'y'.repeat(70_000), ...add }),
      plainFrame({ opcode: CLOSE, payload: joined([Uint8Array.of(3, 232), bytesOf('good bye')]), ...add }),
      bytesOf('nothing after a close is looked at'),
    ])
  }
  const said = ['ping 6265747765656e', 'text grüß dich', 'pong ', 'text ', 'closed 1000 good bye']
  const payload = bytesOf(`first${'x'.repeat(300)}last${'y'.repeat(70_000)}`)

  for (const role of ['server', 'client'] as const) {
    const whole = conversation(role === 'server' ? MASK : undefined)

    test(`a ${role} reads a conversation however it is cut in two`, () => {
      const interesting = [...Array(500).keys(), ...Array.from({ length: 80 }, (_, n) => whole.length - n)]
      for (const cut of interesting) {
        const log = parse(role, [whole.subarray(0, cut), whole.subarray(cut)])
        expect(log.entries).toEqual(said)
        expect(log.bytes.length).toBe(payload.length)
        expect(Buffer.compare(log.bytes, payload)).toBe(0)
      }
    })

    test(`a ${role} reads a conversation byte by byte`, () => {
      const log = parse(
        role,
        [...whole].map(byte => Uint8Array.of(byte)),
      )
      expect(log.entries).toEqual(said)
      expect(Buffer.compare(log.bytes, payload)).toBe(0)
    })
  }

  test('binary payload is passed on as it arrives, in the array it came in', () => {
    const pieces: Uint8Array[] = []
    const log = new ParserLog()
    log.binary = (bytes, start, end) => pieces.push(bytes.subarray(start, end))
    const parser = new WebSocketParser({ role: 'client', maxTextBytes: 0 }, log)
    parser.receive(plainFrame({ opcode: BINARY, payload: 'abc', declared: 1_000_000_000_000n }))
    const more = bytesOf('defg')
    parser.receive(more)
    expect(pieces.map(piece => Buffer.from(piece).toString())).toEqual(['abc', 'defg'])
    expect(pieces[1]?.buffer).toBe(more.buffer)
  })

  test('a stopped parser is silent, even from within a callback', () => {
    const log = new ParserLog()
    const parser = new WebSocketParser({ role: 'client', maxTextBytes: 100 }, log)
    log.ping = () => parser.stop()
    parser.receive(joined([plainFrame({ opcode: PING }), plainFrame({ opcode: TEXT, payload: 'late' })]))
    parser.receive(plainFrame({ opcode: TEXT, payload: 'later' }))
    expect(log.entries).toEqual([])
  })
})

describe('what is refused', () => {
  const refused: [string, PlainFrame[], number][] = [
    ['RSV1', [{ opcode: TEXT, rsv: 4 }], 1002],
    ['RSV3', [{ opcode: BINARY, rsv: 1 }], 1002],
    ['opcode 3', [{ opcode: 3 }], 1002],
    ['opcode 11', [{ opcode: 11 }], 1002],
    ['a fragmented ping', [{ opcode: PING, fin: false }], 1002],
    ['a ping of 126 bytes', [{ opcode: PING, payload: new Uint8Array(126) }], 1002],
    ['a ping with a two-byte length', [{ opcode: PING, payload: 'a', lengthBytes: 2 }], 1002],
    ['a continuation of nothing', [{ opcode: CONTINUATION }], 1002],
    ['a message within a message', [{ opcode: TEXT, fin: false }, { opcode: BINARY }], 1002],
    ['a second continuation of an ended message', [{ opcode: BINARY }, { opcode: CONTINUATION }], 1002],
    ['a short length in two bytes', [{ opcode: BINARY, payload: 'a', lengthBytes: 2 }], 1002],
    ['125 in two bytes', [{ opcode: BINARY, payload: 'x'.repeat(125), lengthBytes: 2 }], 1002],
    ['a middle length in eight bytes', [{ opcode: BINARY, payload: 'x'.repeat(200), lengthBytes: 8 }], 1002],
    ['a negative length', [{ opcode: BINARY, declared: 2n ** 63n }], 1002],
    ['a length nobody can count', [{ opcode: BINARY, declared: 2n ** 53n }], 1009],
    ['a text over the limit', [{ opcode: TEXT, payload: 'x'.repeat(1001) }], 1009],
    ['a text declared over the limit', [{ opcode: TEXT, declared: 2n ** 40n }], 1009],
    [
      'fragments over the limit together',
      [
        { opcode: TEXT, payload: 'x'.repeat(600), fin: false },
        { opcode: CONTINUATION, payload: 'x'.repeat(401) },
      ],
      1009,
    ],
    ['text that is not UTF-8', [{ opcode: TEXT, payload: Uint8Array.of(0xc3, 0x28) }], 1007],
    ['text cut inside a character', [{ opcode: TEXT, payload: Uint8Array.of(0xc3) }], 1007],
    ['a surrogate in text', [{ opcode: TEXT, payload: Uint8Array.of(0xed, 0xa0, 0x80) }], 1007],
    ['half a close code', [{ opcode: CLOSE, payload: Uint8Array.of(3) }], 1002],
    ['a reason that is not UTF-8', [{ opcode: CLOSE, payload: Uint8Array.of(3, 232, 0xff) }], 1007],
    ...[0, 999, 1004, 1005, 1006, 1015, 1016, 2999, 5000, 65_535].map(
      (code): [string, PlainFrame[], number] => [
        `close code ${code}`,
        [{ opcode: CLOSE, payload: Uint8Array.of(code >> 8, code) }],
        1002,
      ],
    ),
  ]
  for (const [name, frames, code] of refused) {
    test(`${name} fails with ${code}, however it is cut`, () => {
      for (const role of ['server', 'client'] as const) {
        const add = role === 'server' ? { mask: MASK } : {}
        const bytes = joined(frames.map(frame => plainFrame({ ...frame, ...add })))
        expect(parse(role, [bytes]).entries).toEqual([`failed ${code}`])
        expect(
          parse(
            role,
            [...bytes].map(byte => Uint8Array.of(byte)),
          ).entries,
        ).toEqual([`failed ${code}`])
      }
    })
  }

  test('a server refuses unmasked frames, a client masked ones', () => {
    expect(parse('server', [plainFrame({ opcode: BINARY })]).entries).toEqual(['failed 1002'])
    expect(parse('client', [plainFrame({ opcode: BINARY, mask: MASK })]).entries).toEqual(['failed 1002'])
  })

  test('text is refused with 1003 where none is taken', () => {
    expect(parse('client', [plainFrame({ opcode: TEXT, payload: 'a' })], 0).entries).toEqual(['failed 1003'])
  })

  test('the close codes that may be sent are taken, and none is 1005', () => {
    for (const code of [1000, 1001, 1003, 1007, 1014, 3000, 4999]) {
      const payload = encodeClosePayload(code)
      expect(parse('client', [plainFrame({ opcode: CLOSE, payload })]).entries).toEqual([`closed ${code} `])
    }
    expect(parse('client', [plainFrame({ opcode: CLOSE })]).entries).toEqual(['closed 1005 '])
  })

  test('a byte order mark is part of the text', () => {
    const log = parse('client', [plainFrame({ opcode: TEXT, payload: '\ufeffa' })])
    expect(log.entries).toEqual(['text \ufeffa'])
  })

  test('a text at the limit is taken', () => {
    const text = 'x'.repeat(1000)
    expect(parse('client', [plainFrame({ opcode: TEXT, payload: text })]).entries).toEqual([`text ${text}`])
  })
})

describe('writing', () => {
  test('every length gets the header that the naive encoder writes', () => {
    for (const length of [0, 1, 125, 126, 127, 65_535, 65_536, 100_000]) {
      const payload = new Random(length + 1).bytes(length)
      for (const mask of [undefined, MASK]) {
        const expected = plainFrame({ opcode: BINARY, payload, ...(mask && { mask }) })
        const message = encodeWebSocketMessage(BINARY, payload, mask && MASK_KEY)
        expect(Buffer.compare(message, expected)).toBe(0)
      }
    }
  })

  test('the header ends where the payload starts', () => {
    const batch = new Uint8Array(40).fill(0xaa)
    const start = writeWebSocketHeader(batch, 20, 10, BINARY, MASK_KEY)
    expect(start).toBe(14)
    expect(batch.subarray(start, 20)).toEqual(Uint8Array.of(0x82, 0x8a, ...MASK))
    expect(batch.subarray(0, start).every(byte => byte === 0xaa)).toBe(true)
    expect(writeWebSocketHeader(batch, 20, 2 ** 40, BINARY, MASK_KEY)).toBe(20 - MAX_WS_HEADER_BYTES)
    expect(batch.subarray(8, 16)).toEqual(Uint8Array.of(0, 0, 1, 0, 0, 0, 0, 0))
  })

  test('a long reason is cut between characters', () => {
    const payload = encodeClosePayload(1000, 'ü'.repeat(100))
    expect(payload.length).toBe(124)
    expect(parse('client', [encodeWebSocketMessage(CLOSE, payload)]).entries).toEqual([
      `closed 1000 ${'ü'.repeat(61)}`,
    ])
  })
})

test('random frames survive any cutting', () => {
  for (let seed = 1; seed <= 100 * FUZZ; seed++) {
    const rng = new Random(seed)
    const role: Role = rng.pick(['server', 'client'])
    const sent: Uint8Array[] = []
    const frames: Uint8Array[] = []
    for (let n = 0; n < 10; n++) {
      const payload = rng.bytes(rng.pick([0, 1, 125, 126, rng.below(3000)]))
      sent.push(payload)
      frames.push(encodeWebSocketMessage(BINARY, payload, role === 'server' ? rng.bits() : undefined))
    }
    const log = parse(role, rng.slices(joined(frames), 2000))
    if (Buffer.compare(log.bytes, joined(sent)) !== 0) throw new Error(`seed ${seed}`)
  }
})
