// A stream whose bytes travel on a lane: what the carrier brings for it meanwhile waits, in its order, within its credit.

import { describe, expect, test } from 'bun:test'
import type { ErrorCode } from '../../src/errors.ts'
import { Link } from '../../src/session/link.ts'
import type { Stream } from '../../src/session/stream.ts'
import type { Socket } from '../../src/socket.ts'
import { concat } from '../support/link.ts'
import { frame, frameOf } from '../support/naive.ts'
import { Random } from '../support/random.ts'
import { Loner, type StreamLog } from '../support/sessions.ts'
import { WireEnd } from '../support/wires.ts'

const OPEN = (stream: number) => frame('OPEN', stream, [7, 4])
const DATA = (stream: number, bytes: Uint8Array | string) => frameOf('DATA', stream, bytes)
const END = (stream: number, delivered = 0) => frame('END', stream, [delivered, 6])
const RESET = (stream: number, delivered = 0) => frame('RESET', stream, [20, 2], [delivered, 6])
const CREDIT = (stream: number, bytes: number) => frame('CREDIT', stream, [bytes, 4])
const LINK = (stream: number, link: number, from: number) => frame('LINK', stream, [link, 4], [from, 6])
const UNLINK = (stream: number, link: number, to: number) => frame('UNLINK', stream, [link, 4], [to, 6])

const FIRST_CREDIT_BYTES = 262_144
const FULL = new Uint8Array(65_536)

const bytesOf = (text: string) => new TextEncoder().encode(text)
const textOf = (bytes: Uint8Array | undefined) => new TextDecoder().decode(bytes)

interface Heard {
  readonly log: StreamLog
  readonly stream: Stream
  /** What happened on the stream: pieces as text, and names of events. */
  readonly story: string[]
}

function heardBy(log: StreamLog | undefined): Heard {
  const stream = log?.stream
  if (log === undefined || stream === undefined) throw new Error('the stream is not there')
  const story: string[] = []
  log.onEvent = event => story.push(event === 'received' ? textOf(log.pieces.at(-1)) : event)
  return { log, stream, story }
}

/** A client session with two streams, the first of them held. */
function lonerWithHeld(): { loner: Loner; held: Heard; other: Heard } {
  const loner = new Loner('client')
  loner.hear(OPEN(1), OPEN(2))
  const [held, other] = loner.log.streams.map(heardBy)
  if (held === undefined || other === undefined) throw new Error('two streams')
  held.stream.lend()
  return { loner, held, other }
}

function linkOf(loner: Loner, number: number): { end: WireEnd; link: Link } {
  const end = new WireEnd(1_000_000)
  const link = new Link(number, end, loner.session.links)
  end.handler = link.socketHandler
  loner.session.links.add(link)
  return { end, link }
}

const sentOf = (loner: Loner, type: string) => loner.frames.filter(one => one.type === type)

describe('a held stream', () => {
  test('keeps data and END, until they come behind what its lane brought', () => {
    const { loner, held } = lonerWithHeld()
    loner.hear(DATA(1, 'carried '), DATA(1, 'later'), END(1))
    expect(held.story).toEqual([])
    held.stream.moved(0, 100)
    held.stream.brought(bytesOf('brought '))
    held.stream.brought(bytesOf('in two'))
    expect(held.story).toEqual(['brought ', 'in two'])
    held.stream.giveBack(false)
    expect(held.story).toEqual(['brought ', 'in two', 'carried later', 'ended'])
    expect(held.stream.receivedBytes).toBe(100 + 'brought in two'.length + 'carried later'.length)
  })

  test('keeps data and RESET likewise', () => {
    const { loner, held } = lonerWithHeld()
    loner.hear(DATA(1, 'carried'), RESET(1))
    held.stream.brought(bytesOf('brought'))
    expect([held.story, held.stream.isClosed]).toEqual([['brought'], false])
    held.stream.giveBack(false)
    expect(held.story).toEqual(['brought', 'carried', 'reset'])
    expect(held.stream.isClosed).toBe(true)
  })

  test('keeps a link that brings its bytes, to the last of them', () => {
    const { loner, held, other } = lonerWithHeld()
    const { end } = linkOf(loner, 3)
    loner.hear(DATA(1, 'carried '), LINK(1, 3, 0))
    end.handler?.received(bytesOf('on the link'))
    expect(end.isPaused).toBe(true)
    loner.hear(UNLINK(1, 3, 11), END(1))
    held.stream.brought(bytesOf('brought '))
    expect(held.story).toEqual(['brought '])
    held.stream.giveBack(false)
    expect(held.story).toEqual(['brought ', 'carried ', 'on the link', 'ended'])
    loner.clock.tick()
    expect([end.isPaused, sentOf(loner, 'LINK_FREE').length]).toEqual([false, 1])
    // The next stream's bytes are its own.
    loner.hear(LINK(2, 3, 11))
    end.handler?.received(bytesOf('of the other'))
    expect(other.story).toEqual(['of the other'])
  })

  test('of whose link the end is kept gets its last bytes before it is released', () => {
    const { loner, held } = lonerWithHeld()
    held.stream.giveBack(false)
    const { end } = linkOf(loner, 3)
    loner.hear(LINK(1, 3, 0))
    held.stream.lend()
    loner.hear(UNLINK(1, 3, 6), END(1))
    end.handler?.received(bytesOf('linked'))
    held.stream.giveBack(false)
    expect(held.story).toEqual(['linked', 'ended'])
  })

  test('keeps frames as they came, whatever becomes of the read that they were part of', () => {
    const { loner, held, other } = lonerWithHeld()
    held.stream.write(bytesOf('abcdef'))
    // Frames that come byte by byte are collected in one place, one after the other.
    const bytes = concat([DATA(1, 'kept'), END(1, 6), END(2, 0)])
    for (const byte of bytes) {
      const read = Uint8Array.of(byte)
      loner.hear(read)
      read.fill(0xee)
    }
    expect(other.log.deliveredAtEnd).toBe(0)
    held.stream.giveBack(false)
    expect(held.story).toEqual(['kept', 'ended'])
    expect(held.log.deliveredAtEnd).toBe(6)
  })

  test('gets its credit at once, and sends', () => {
    const { loner, held } = lonerWithHeld()
    held.stream.write(new Uint8Array(FIRST_CREDIT_BYTES + 10))
    expect(held.stream.isBackedUp).toBe(true)
    loner.hear(DATA(1, 'kept'), CREDIT(1, 10))
    expect([held.stream.isBackedUp, held.story]).toEqual([false, ['writable']])
  })

  test('holds up no other stream, nor the session', () => {
    const { loner, held, other } = lonerWithHeld()
    loner.hear(
      DATA(1, 'kept'),
      DATA(2, 'other'),
      END(1),
      frame('PING', 0, [9, 8]),
      frameOf('CONTROL', 0, '{}'),
      END(2),
      OPEN(3),
    )
    expect([held.story, other.story]).toEqual([[], ['other', 'ended']])
    expect(sentOf(loner, 'PONG').length).toBe(1)
    expect([loner.log.messages.length, loner.log.streams.length]).toEqual([1, 3])
  })

  test('is as any other once it is released, and can be held again', () => {
    const { loner, held } = lonerWithHeld()
    held.stream.giveBack(false)
    loner.hear(DATA(1, 'at once'))
    expect(held.story).toEqual(['at once'])
    held.stream.lend()
    loner.hear(DATA(1, 'kept'))
    // Twice is as good as once: what was kept stays.
    held.stream.lend()
    loner.hear(END(1))
    expect(held.story).toEqual(['at once'])
    held.stream.giveBack(false)
    expect(held.story).toEqual(['at once', 'kept', 'ended'])
  })

  test('keeps no more than its credit, be it in frames of one byte, and gives no credit for it', () => {
    for (const count of [65_537, FIRST_CREDIT_BYTES]) {
      const { loner, held } = lonerWithHeld()
      const bytes = new Random(count).bytes(count)
      const read = new Uint8Array(count * 9)
      for (const [index, byte] of bytes.entries()) read.set(DATA(1, Uint8Array.of(byte)), 9 * index)
      loner.hear(read)
      expect(loner.log.closes).toEqual([])
      expect(sentOf(loner, 'CREDIT')).toEqual([])
      held.stream.giveBack(false)
      expect(held.log.pieces.length).toBe(1)
      expect(Buffer.compare(held.log.bytes, bytes)).toBe(0)
      expect(held.log.pieces[0]?.buffer.byteLength).toBeLessThanOrEqual(2 * count)
      loner.clock.tick()
      expect(sentOf(loner, 'CREDIT').length).toBe(count === FIRST_CREDIT_BYTES ? 1 : 0)
    }
  })
})

describe('a hostile peer with a held stream', () => {
  const wholeCredit = Array(4).fill(DATA(1, FULL))
  const crimes: readonly [string, ErrorCode, readonly Uint8Array[]][] = [
    ['sends one byte more than its credit', 'PROTOCOL_ERROR', [...wholeCredit, DATA(1, 'x')]],
    ['sends data behind END', 'PROTOCOL_ERROR', [END(1), DATA(1, 'x')]],
    ['sends data behind RESET', 'PROTOCOL_ERROR', [RESET(1), DATA(1, 'x')]],
    ['sends data behind LINK', 'PROTOCOL_ERROR', [LINK(1, 3, 0), DATA(1, 'x')]],
    ['sends more frames than a stream has', 'PROTOCOL_ERROR', Array(5).fill(END(1))],
  ]
  for (const [crime, code, frames] of crimes) {
    test(`${crime}: the session ends with ${code}, at once`, () => {
      const { loner, held } = lonerWithHeld()
      loner.hear(...frames.slice(0, -1))
      expect(loner.log.closes).toEqual([])
      loner.hear(...frames.slice(-1))
      loner.expectEnd(code)
      expect(held.story).toEqual(['reset'])
    })
  }

  const lateCrimes: readonly [string, ErrorCode, readonly Uint8Array[]][] = [
    ['ends twice', 'PROTOCOL_ERROR', [END(1), END(1)]],
    ['binds it twice', 'PROTOCOL_ERROR', [LINK(1, 3, 0), LINK(1, 3, 0)]],
    ['unlinks what is not linked', 'PROTOCOL_ERROR', [UNLINK(1, 3, 0)]],
    ['begins behind the bytes that came', 'PROTOCOL_ERROR', [LINK(1, 3, 5)]],
    ['says in END that more was delivered than was sent', 'PROTOCOL_ERROR', [END(1, 1)]],
    ['says in RESET that more was delivered than was sent', 'PROTOCOL_ERROR', [RESET(1, 1)]],
  ]
  for (const [crime, code, frames] of lateCrimes) {
    test(`${crime}: the session ends with ${code}, when it is released`, () => {
      const { loner, held } = lonerWithHeld()
      linkOf(loner, 3)
      loner.hear(...frames)
      expect(loner.log.closes).toEqual([])
      held.stream.giveBack(false)
      loner.expectEnd(code)
    })
  }

  test('sends data behind an END that came before it was held: the session ends, when it is released', () => {
    const { loner, held } = lonerWithHeld()
    loner.hear(END(1))
    held.stream.giveBack(false)
    held.stream.lend()
    loner.hear(DATA(1, 'x'))
    held.stream.giveBack(false)
    loner.expectEnd('PROTOCOL_ERROR')
  })
})

test('a stream that the other side ended gets nothing of a lane any more', () => {
  const { loner, held } = lonerWithHeld()
  loner.hear(END(1))
  held.stream.giveBack(false)
  held.stream.lend()
  held.stream.brought(bytesOf('brought'))
  expect(held.story).toEqual(['ended', 'reset'])
  loner.expectEnd('PROTOCOL_ERROR')
})

describe('a held stream that is closed meanwhile', () => {
  const ways: readonly [string, (loner: Loner, held: Heard) => void, string][] = [
    ['by this side', (_, { stream }) => stream.reset('CANCELLED'), ''],
    ['with its session', ({ session }) => session.close('CANCELLED'), 'reset'],
    ['with its carrier', ({ session }) => session.carrierHandler.closed(new Error('lost')), 'reset'],
  ]
  for (const [way, close, told] of ways) {
    test(`${way} hears of nothing that waited, nor of what its lane still had`, () => {
      const { loner, held } = lonerWithHeld()
      loner.hear(DATA(1, 'carried'), END(1))
      close(loner, held)
      expect(held.stream.held).toBeUndefined()
      held.stream.moved(0, 5)
      held.stream.brought(bytesOf('brought'))
      held.stream.giveBack(false)
      held.stream.giveBack(true)
      expect(held.story.join()).toBe(told)
    })
  }

  test('in the middle of what waited hears of no more', () => {
    for (const close of [
      (loner: Loner) => loner.session.close('CANCELLED'),
      (_: Loner, { stream }: Heard) => stream.reset('CANCELLED'),
    ]) {
      const { loner, held } = lonerWithHeld()
      loner.hear(DATA(1, 'carried'), END(1))
      held.log.onEvent = event => {
        if (event === 'received') close(loner, held)
      }
      held.stream.giveBack(false)
      expect([textOf(held.log.bytes), held.log.deliveredAtEnd]).toEqual(['carried', undefined])
    }
  })

  test('counts late data with the credit that it had left', () => {
    const { loner, held } = lonerWithHeld()
    loner.hear(...Array(3).fill(DATA(1, FULL)))
    held.stream.reset('CANCELLED')
    loner.hear(DATA(1, FULL))
    expect(loner.log.closes).toEqual([])
    loner.hear(DATA(1, 'x'))
    loner.expectEnd('PROTOCOL_ERROR')
  })
})

describe('a link of a held stream that is closed meanwhile', () => {
  // Its bytes are on their way, and have to be counted: the next stream's come behind them.
  const ways: readonly [string, (held: Heard) => void][] = [
    ['by this side', ({ stream }) => stream.reset('CANCELLED')],
    ['with its trunk', ({ stream }) => stream.giveBack(true)],
    [
      'in the middle of what waited',
      ({ log, stream }) => {
        log.onEvent = () => stream.reset('CANCELLED')
        stream.giveBack(false)
      },
    ],
  ]
  for (const [way, close] of ways) {
    test(`${way} is free again behind its bytes, when the other side says so later`, () => {
      const { loner, held, other } = lonerWithHeld()
      const { end } = linkOf(loner, 3)
      loner.hear(DATA(1, 'carried'), LINK(1, 3, 0))
      close(held)
      end.handler?.received(bytesOf('for nobody'))
      loner.hear(UNLINK(1, 3, 10), LINK(2, 3, 10))
      end.handler?.received(bytesOf('for the other'))
      expect(loner.log.closes).toEqual([])
      expect([sentOf(loner, 'LINK_FREE').length, other.story]).toEqual([1, ['for the other']])
    })

    test(`${way} is free again behind its bytes, when the other side has said so`, () => {
      const { loner, held, other } = lonerWithHeld()
      const { end } = linkOf(loner, 3)
      loner.hear(DATA(1, 'carried'), LINK(1, 3, 0), UNLINK(1, 3, 10))
      close(held)
      end.handler?.received(bytesOf('for nobody'))
      loner.hear(LINK(2, 3, 10))
      end.handler?.received(bytesOf('for the other'))
      expect(loner.log.closes).toEqual([])
      expect([sentOf(loner, 'LINK_FREE').length, other.story]).toEqual([1, ['for the other']])
    })
  }

  // Whose bytes the kernel moves tells UNLINK a moment later, behind RESET.
  test('by the other side is free again, though it was told last where they end', () => {
    const { loner, held, other } = lonerWithHeld()
    const { end } = linkOf(loner, 3)
    loner.hear(LINK(1, 3, 0), RESET(1), UNLINK(1, 3, 10))
    held.stream.giveBack(false)
    end.handler?.received(bytesOf('for nobody'))
    loner.hear(LINK(2, 3, 10))
    end.handler?.received(bytesOf('for the other'))
    expect(loner.log.closes).toEqual([])
    expect([held.story, other.story]).toEqual([['reset'], ['for the other']])
  })
})

describe('a held stream whose trunk is gone', () => {
  test('is lost, and what waited behind the missing bytes with it', () => {
    const { loner, held, other } = lonerWithHeld()
    loner.hear(DATA(1, 'behind a hole'), END(1))
    held.stream.giveBack(true)
    expect(held.story).toEqual(['reset'])
    expect(held.log.resetWith).toBe('CARRIER_LOST')
    loner.clock.tick()
    expect(sentOf(loner, 'RESET').map(({ stream }) => stream)).toEqual([1])
    loner.hear(DATA(2, 'goes on'))
    expect(other.story).toEqual(['goes on'])
  })
})

describe('a handler that throws', () => {
  const moments: readonly [string, (held: Heard) => void][] = [
    ['when its lane brings bytes', ({ stream }) => stream.brought(bytesOf('brought'))],
    ['when what waited arrives', ({ stream }) => stream.giveBack(false)],
    ['when its lane is torn', ({ stream }) => stream.giveBack(true)],
  ]
  for (const [moment, happen] of moments) {
    test(`${moment} ends its session with INTERNAL, and nobody else hears of it`, () => {
      const { loner, held } = lonerWithHeld()
      loner.hear(DATA(1, 'carried'), END(1))
      const thrown = new Error('thrown in a handler')
      held.log.onEvent = () => {
        held.log.onEvent = () => {}
        throw thrown
      }
      happen(held)
      expect(loner.log.closes).toEqual([{ code: 'INTERNAL', error: thrown }])
      expect(held.log.deliveredAtEnd).toBeUndefined()
    })
  }
})

describe('what a lane moved', () => {
  const stream = () => {
    const loner = new Loner('server')
    const log = heardBy(loner.open())
    log.stream.write(bytesOf('abc'))
    log.stream.lend()
    return { loner, ...log }
  }

  test('counts as sent and as delivered, and in what the other side is told of it', () => {
    const one = stream()
    one.stream.moved(100, 50)
    one.stream.moved(1, 2)
    expect([one.stream.sentBytes, one.stream.deliveredBytes, one.stream.receivedBytes]).toEqual([104, 52, 52])
    one.stream.brought(bytesOf('more'))
    one.stream.giveBack(false)
    expect([one.stream.deliveredBytes, one.stream.receivedBytes]).toEqual([56, 56])
    one.stream.end()
    one.loner.clock.tick()
    expect(sentOf(one.loner, 'END').map(({ payload }) => payload)).toEqual([[0, 0, 0, 0, 0, 56]])
    one.stream.reset('CANCELLED')
    one.loner.clock.tick()
    expect(sentOf(one.loner, 'RESET').map(({ payload }) => payload.slice(2))).toEqual([[0, 0, 0, 0, 0, 56]])
  })

  test('leaves the credit of frames alone', () => {
    const one = stream()
    one.stream.moved(10 * FIRST_CREDIT_BYTES, 10 * FIRST_CREDIT_BYTES)
    one.stream.giveBack(false)
    one.log.isReading = false
    one.loner.hear(...Array(4).fill(DATA(1, FULL)))
    expect(one.loner.log.closes).toEqual([])
    expect(one.stream.write(new Uint8Array(FIRST_CREDIT_BYTES - 3))).toBe(true)
    expect(one.stream.write(bytesOf('x'))).toBe(false)
    one.loner.hear(DATA(1, 'x'))
    one.loner.expectEnd('PROTOCOL_ERROR')
  })

  for (const [name, FRAME] of [
    ['END', END],
    ['RESET', RESET],
  ] as const) {
    test(`is delivered, as ${name} may say that came before its lane was over`, () => {
      const one = stream()
      one.loner.hear(FRAME(1, 103))
      one.stream.moved(100, 0)
      one.stream.giveBack(false)
      expect(one.loner.log.closes).toEqual([])
      expect(name === 'END' ? one.log.deliveredAtEnd : one.log.deliveredAtReset).toBe(103)
    })

    test(`is all that was delivered: a ${name} that says more ends the session`, () => {
      const one = stream()
      one.loner.hear(FRAME(1, 104))
      one.stream.moved(100, 0)
      one.stream.giveBack(false)
      one.loner.expectEnd('PROTOCOL_ERROR')
    })
  }
})

/** A link whose connection is lent. */
function lentLink(loner: Loner, number: number): { end: WireEnd; link: Link } {
  const end = new WireEnd(1_000_000)
  const link = new Link(number, end, loner.session.links)
  end.handler = link.socketHandler
  expect(link.lend(socket => socket)).toBe(end)
  return { end, link }
}

describe('a link that is lent', () => {
  test('is no link any more: bulk wants another, small pieces do not move to it, and it is never idle', () => {
    const loner = new Loner('client')
    const wishes = { links: 0 }
    Object.assign(loner.log, { linkWanted: () => wishes.links++ })
    loner.hear(OPEN(1))
    const { link, end } = lentLink(loner, 3)
    loner.session.links.add(link)
    const bulk = loner.log.streams[0]?.stream
    bulk?.write(FULL)
    bulk?.write(FULL)
    bulk?.moveToLink()
    expect([bulk?.sendingLink, end.onWire.length]).toEqual([undefined, 0])
    expect(wishes.links).toBeGreaterThan(0)
    expect([link.isFree, link.isIdle]).toEqual([false, false])
    link.closeWhenIdle()
    expect(link.isClosed).toBe(false)
  })

  test('is only what has carried nothing, is still there, and is taken', () => {
    const loner = new Loner('client')
    const asked: Socket[] = []
    const lend = (link: Link, isTaken = true) =>
      link.lend(socket => {
        asked.push(socket)
        return isTaken ? socket : undefined
      })
    const kept = linkOf(loner, 3)
    expect(lend(kept.link, false)).toBeUndefined()
    expect([kept.link.isFree, kept.link.isClosed, asked]).toEqual([true, false, [kept.end]])
    const spoken = new Link(4, new WireEnd(1000), loner.session.links)
    spoken.socketHandler.received(bytesOf('early'))
    expect(lend(spoken)).toBeUndefined()
    const closed = new Link(5, new WireEnd(1000), loner.session.links)
    closed.close()
    expect(lend(closed)).toBeUndefined()
    expect(asked).toEqual([kept.end])
  })

  test('goes with its session', () => {
    const loner = new Loner('client')
    const { link, end } = lentLink(loner, 3)
    loner.session.links.add(link)
    loner.session.close('CANCELLED')
    expect([link.isClosed, end.isOpen, loner.session.links.size]).toEqual([true, false, 0])
    const late = lentLink(loner, 4)
    loner.session.links.add(late.link)
    expect([late.link.isClosed, loner.session.links.size]).toEqual([true, 0])
  })
})
