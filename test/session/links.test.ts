// Streams whose bytes travel on links beside the carrier, in every order that two connections can bring about.

import { describe, expect, test } from 'bun:test'
import type { ErrorCode } from '../../src/errors.ts'
import { Link } from '../../src/session/link.ts'
import { frame, frameOf } from '../support/naive.ts'
import { Random } from '../support/random.ts'
import { Loner, type StreamLog } from '../support/sessions.ts'
import { LinkedPair, WireEnd } from '../support/wires.ts'

const pair = (links = 1) => {
  const made = new LinkedPair(new Random(1), 600_000, {})
  for (let count = 0; count < links; count++) made.addLink()
  made.settle()
  return made
}

/** Writes bulk that begins to travel on a link, and then some more there. */
const bulk = (log: StreamLog, fill: number): Uint8Array => {
  const bytes = new Uint8Array(100_000).fill(fill)
  log.stream?.write(bytes.subarray(0, 40_000))
  log.stream?.write(bytes.subarray(40_000))
  return bytes
}

describe('a link', () => {
  test('never gives the bytes of one stream to another, however late the carrier is', () => {
    const made = pair()
    const first = made.join()
    const second = made.join()
    const one = bulk(first.far, 1)
    made.settle()
    first.far.stream?.end()
    const two = bulk(second.far, 2)
    made.clock.tick()
    for (let steps = 0; steps < 50; steps++) made.stepLinks()
    made.settle()
    expect(Buffer.compare(first.near.bytes, one)).toBe(0)
    expect(Buffer.compare(second.near.bytes, two)).toBe(0)
    expect(made.serverLog.closes).toEqual([])
  })

  test('never gives them to another after a reset either', () => {
    const made = pair()
    const first = made.join()
    const second = made.join()
    const one = bulk(first.far, 1)
    made.settle()
    first.far.stream?.reset('ORIGIN_CLOSED')
    const two = bulk(second.far, 2)
    made.clock.tick()
    for (let steps = 0; steps < 50; steps++) made.stepLinks()
    made.settle()
    expect(Buffer.compare(first.near.bytes, one)).toBe(0)
    expect(first.near.resetWith).toBe('ORIGIN_CLOSED')
    expect(Buffer.compare(second.near.bytes, two)).toBe(0)
  })

  test('carries both directions of a stream at once', () => {
    const made = pair()
    const { near, far } = made.join()
    const down = bulk(far, 1)
    const up = bulk(near, 2)
    far.stream?.end()
    near.stream?.end()
    made.settle()
    expect(Buffer.compare(near.bytes, down)).toBe(0)
    expect(Buffer.compare(far.bytes, up)).toBe(0)
    expect([near.deliveredAtEnd, far.deliveredAtEnd]).toBeDefined()
    expect(made.server.streamCount + made.client.streamCount).toBe(0)
  })

  test('whose reader is slow is paused, with a bounded part of the bytes read, and no other is', () => {
    const made = pair(2)
    const slow = made.join()
    const quick = made.join()
    slow.near.isReading = false
    bulk(slow.far, 1)
    bulk(quick.far, 2)
    const more = new Uint8Array(500_000)
    for (let rounds = 0; rounds < 40; rounds++) {
      if (slow.far.stream?.isBackedUp !== true) slow.far.stream?.write(more)
      quick.far.stream?.write(more)
      for (let steps = 0; steps < 20; steps++) made.stepLinks()
      made.settleCarrier()
    }
    expect(slow.near.receivedBytes).toBeLessThan(40_000 + 524_288 * 2)
    expect(made.wires.map(({ server }) => server.isPaused)).toEqual([true, false])
    expect(quick.near.receivedBytes).toBe(100_000 + 40 * more.length)
    slow.near.stream?.consumed(slow.near.receivedBytes)
    expect(made.wires.map(({ server }) => server.isPaused)).toEqual([false, false])
  })

  test('reads on for the next stream when the slow one before it was reset', () => {
    const made = pair()
    const slow = made.join()
    const next = made.join()
    slow.near.isReading = false
    bulk(slow.far, 1)
    slow.far.stream?.write(new Uint8Array(1_500_000))
    made.settle()
    expect(made.wires[0]?.server.isPaused).toBe(true)
    slow.near.stream?.reset('CANCELLED')
    made.settle()
    const bytes = bulk(next.far, 2)
    made.settle()
    expect(next.far.stream?.sendingLink).toBeDefined()
    expect(Buffer.compare(next.near.bytes, bytes)).toBe(0)
  })

  test('that a handler throws on ends its session and nothing else', () => {
    const made = pair()
    const { near, far } = made.join()
    near.onEvent = event => {
      if (event === 'received' && near.receivedBytes > 40_000) throw new Error('thrown in a handler')
    }
    bulk(far, 1)
    made.settle()
    expect(made.serverLog.closes.map(({ code }) => code)).toEqual(['INTERNAL'])
    made.settle()
    made.expectNothingLeft()
    expect(made.wires.every(({ server, client }) => !server.isOpen && !client.isOpen)).toBe(true)
  })

  test('goes with its session, and takes nothing with it that was not on it', () => {
    const made = pair(3)
    const logs = [made.join(), made.join()]
    for (const { far } of logs) bulk(far, 1)
    made.settleCarrier()
    made.link.cut()
    made.settle()
    for (const { near, far } of logs)
      expect([near.resetWith, far.resetWith]).toEqual(['CARRIER_LOST', 'CARRIER_LOST'])
    made.expectNothingLeft()
    expect(made.server.links.size + made.client.links.size).toBe(0)
    expect(made.wires.every(({ server, client }) => !server.isOpen && !client.isOpen)).toBe(true)
  })

  test('that is retired carries what the far side just began, and is closed behind it', () => {
    const made = pair()
    const { near, far } = made.join()
    const [server] = [...made.server.links.values()]
    const [client] = [...made.client.links.values()]
    const bytes = bulk(near, 3)
    if (client !== undefined) client.isRetired = true
    made.clock.tick()
    server?.closeWhenIdle()
    expect(made.server.links.size).toBe(1)
    near.stream?.end()
    made.settle()
    expect(Buffer.compare(far.bytes, bytes)).toBe(0)
    expect(far.resetWith).toBeUndefined()
    expect(made.server.links.size + made.client.links.size).toBe(0)
  })
})

describe('a link that is cut', () => {
  const random = new Random(7)
  for (let moment = 0; moment < 24; moment++) {
    test(`at moment ${moment} resets the stream on it once, if it lost bytes, and no other`, () => {
      const made = pair(2)
      const cut = made.join()
      const whole = made.join()
      const idle = made.join()
      const lost = bulk(cut.far, 1)
      const kept = bulk(whole.far, 2)
      for (const { far } of [cut, whole]) if (moment % 2 === 0) far.stream?.end()
      for (let step = 0; step < moment; step++) {
        if (random.chance(0.5)) made.stepLinks()
        else made.step()
      }
      made.cutLink(0)
      made.settle()
      // The log of a stream fails when it hears of a second reset.
      const isWhole = cut.near.receivedBytes === lost.length
      if (!isWhole) expect([cut.near.resetWith, cut.far.resetWith]).toEqual(['CARRIER_LOST', 'CARRIER_LOST'])
      expect(Buffer.compare(cut.near.bytes, lost.subarray(0, cut.near.receivedBytes))).toBe(0)
      expect(Buffer.compare(whole.near.bytes, kept)).toBe(0)
      for (const log of [whole.near, whole.far, idle.near, idle.far]) expect(log.resetWith).toBeUndefined()
      expect(made.serverLog.closes).toEqual([])
      expect(made.server.links.size + made.client.links.size).toBe(2)
      // Never fewer than really were: a request that was delivered must not be sent again.
      expect(cut.far.deliveredAtReset ?? lost.length).toBeGreaterThanOrEqual(cut.near.receivedBytes)
    })
  }
})

const OPEN = (stream: number) => frame('OPEN', stream, [7, 4])
const LINK = (stream: number, link: number, from: number) => frame('LINK', stream, [link, 4], [from, 6])
const UNLINK = (stream: number, link: number, to: number) => frame('UNLINK', stream, [link, 4], [to, 6])

/** A session with two streams, and link 1 whose far end the test is. */
function lonerWithLink(): { loner: Loner; end: WireEnd; link: Link } {
  const loner = new Loner('client')
  loner.hear(OPEN(1), OPEN(2))
  const end = new WireEnd(1_000_000)
  const link = new Link(1, end, loner.session.links)
  end.handler = link.socketHandler
  loner.session.links.add(link)
  return { loner, end, link }
}

describe('a hostile peer with a link', () => {
  const crimes: readonly [string, ErrorCode, readonly Uint8Array[]][] = [
    ['binds a stream that never was', 'PROTOCOL_ERROR', [LINK(99, 1, 0)]],
    ['begins behind the bytes that came', 'PROTOCOL_ERROR', [LINK(1, 1, 5)]],
    ['binds a stream twice', 'PROTOCOL_ERROR', [LINK(1, 1, 0), LINK(1, 1, 0)]],
    ['binds two streams at once', 'PROTOCOL_ERROR', [LINK(1, 1, 0), LINK(2, 1, 0)]],
    ['binds a stream that has ended', 'PROTOCOL_ERROR', [frame('END', 1, [0, 6]), LINK(1, 1, 0)]],
    ['sends data of a stream on a link', 'PROTOCOL_ERROR', [LINK(1, 1, 0), frameOf('DATA', 1, 'x')]],
    [
      'ends a stream on a link without saying where',
      'PROTOCOL_ERROR',
      [LINK(1, 1, 0), frame('END', 1, [0, 6])],
    ],
    ['unlinks what is not linked', 'PROTOCOL_ERROR', [UNLINK(1, 1, 0)]],
    ['unlinks another stream', 'PROTOCOL_ERROR', [LINK(1, 1, 0), UNLINK(2, 1, 0)]],
    ['unlinks twice', 'PROTOCOL_ERROR', [LINK(1, 1, 0), UNLINK(1, 1, 9), UNLINK(1, 1, 9)]],
    ['says that bytes arrived which nobody sent', 'PROTOCOL_ERROR', [frame('LINK_FREE', 0, [1, 4])]],
  ]
  for (const [crime, code, frames] of crimes) {
    test(`${crime}: the session ends with ${code}, and the link with it`, () => {
      const { loner, end } = lonerWithLink()
      loner.hear(...frames)
      loner.expectEnd(code)
      expect(end.isOpen).toBe(false)
    })
  }

  test('goes back to bytes that it sent already: the session ends', () => {
    const { loner, end } = lonerWithLink()
    loner.hear(LINK(1, 1, 0))
    end.handler?.received(new Uint8Array(10))
    loner.hear(UNLINK(1, 1, 10), LINK(2, 1, 9))
    loner.expectEnd('PROTOCOL_ERROR')
  })

  test('unlinks before the bytes that it sent already: the session ends', () => {
    const { loner, end } = lonerWithLink()
    loner.hear(LINK(1, 1, 0))
    end.handler?.received(new Uint8Array(10))
    loner.hear(UNLINK(1, 1, 9))
    loner.expectEnd('PROTOCOL_ERROR')
  })

  test('binds a stream to a link that is not there: only that stream is lost', () => {
    const { loner } = lonerWithLink()
    loner.hear(LINK(1, 77, 0), UNLINK(1, 77, 5), frame('LINK_FREE', 0, [77, 4]))
    expect(loner.log.streams.map(({ resetWith }) => resetWith)).toEqual(['CARRIER_LOST', undefined])
    expect(loner.log.closes).toEqual([])
  })

  test('sends bytes that belong to nobody: they are not read further, and belong to who is named later', () => {
    const { loner, end } = lonerWithLink()
    end.handler?.received(new TextEncoder().encode('early'))
    expect(end.isPaused).toBe(true)
    loner.hear(LINK(2, 1, 0))
    expect(end.isPaused).toBe(false)
    expect(new TextDecoder().decode(loner.log.streams[1]?.bytes)).toBe('early')
    loner.hear(UNLINK(2, 1, 5))
    end.handler?.received(new TextEncoder().encode('more'))
    expect(end.isPaused).toBe(true)
    expect(loner.log.streams[1]?.receivedBytes).toBe(5)
  })

  test('breaks a link before anybody used it: it is forgotten', () => {
    const { loner, end } = lonerWithLink()
    end.handler?.closed(new Error('reset'))
    expect(loner.session.links.size).toBe(0)
    const late = new Link(2, new WireEnd(1), loner.session.links)
    late.close()
    loner.session.links.add(late)
    expect(loner.session.links.size).toBe(0)
    expect(loner.log.closes).toEqual([])
  })
})
