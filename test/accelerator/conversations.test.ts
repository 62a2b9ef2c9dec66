// Raw connections with many small pieces, which the kernel moves after a while: every byte and every end as without.

import { describe, expect, test } from 'bun:test'
import type { Socket as PeerSocket } from 'node:net'
import { canSplice, spliceCounts } from '../../src/accelerator/threads.ts'
import { eventually } from '../support/events.ts'
import { peerClient, reset } from '../support/peer.ts'
import { Random } from '../support/random.ts'
import { type RawSite, rawSite } from '../support/raw-site.ts'
import { openDescriptors, patternAt, Sink, Source } from '../support/relay.ts'

const MB = 1_048_576

const settled = () => eventually(() => spliceCounts().running === 0, 'the end of all splices')

/** One side of a conversation: says the next bytes of the pattern, and compares what it hears with it. */
class Speaker {
  readonly socket: PeerSocket
  readonly heard: Sink
  saidBytes = 0

  constructor(socket: PeerSocket) {
    this.socket = socket
    this.heard = new Sink(socket)
  }

  say(bytes: number): void {
    for (const end = this.saidBytes + bytes; this.saidBytes < end; ) {
      const piece = patternAt(this.saidBytes, end - this.saidBytes)
      this.saidBytes += piece.length
      this.socket.write(piece)
    }
  }
}

class Conversation {
  readonly visitor: Speaker
  readonly app: Speaker

  constructor(visitor: PeerSocket, app: PeerSocket) {
    this.visitor = new Speaker(visitor)
    this.app = new Speaker(app)
  }

  static async begin({ port, origin }: RawSite): Promise<Conversation> {
    const visitor = await peerClient(port, false)
    return new Conversation(visitor, await origin.accepted())
  }

  async turn(upBytes = 5, downBytes = 7): Promise<void> {
    const { app, visitor } = this
    visitor.say(upBytes)
    await app.heard.until(
      () => app.heard.receivedBytes === visitor.saidBytes,
      `${visitor.saidBytes} bytes up`,
    )
    app.say(downBytes)
    await visitor.heard.until(
      () => visitor.heard.receivedBytes === app.saidBytes,
      `${app.saidBytes} bytes down`,
    )
  }

  /** Until the kernel moves all of it: both ways, at both ends. */
  async moved(already = 0): Promise<void> {
    for (let turns = 0; spliceCounts().running < already + 4; turns++) {
      if (turns === 5_000) throw new Error(`${spliceCounts().running} splices after ${turns} turns`)
      await this.turn()
    }
  }
}

describe.skipIf(!canSplice())('a conversation', () => {
  test('is moved by the kernel after a while, through all turns', async () => {
    await using raw = await rawSite()
    const talk = await Conversation.begin(raw)
    await talk.moved()
    const { begun } = spliceCounts()
    for (let turns = 0; turns < 500; turns++) await talk.turn()
    expect(spliceCounts()).toMatchObject({ begun, running: 4 })
    talk.visitor.socket.end()
    talk.app.socket.end()
    await settled()
    // Each way passes two splices.
    expect(spliceCounts().movedBytes).toBeGreaterThanOrEqual(500 * 2 * (5 + 7))
  })

  test('pieces of all sizes, bulk among them, and silences: every byte once, in its place', async () => {
    await using raw = await rawSite()
    const random = new Random(11)
    const sizes = [1, 64, 1_400, 20_000, 130_000, 5 * MB]
    const talk = await Conversation.begin(raw)
    for (let turns = 0; turns < 600; turns++) {
      const most = turns % 50 === 0 ? 6 : 4
      await talk.turn(
        1 + random.below(sizes[random.below(most)]!),
        1 + random.below(sizes[random.below(most)]!),
      )
      if (turns % 200 === 150) await settled()
    }
    talk.visitor.socket.end()
    expect(await talk.app.heard.over()).toBe('end')
    talk.app.socket.end()
    expect(await talk.visitor.heard.over()).toBe('end')
    await settled()
  }, 60_000)

  test('that becomes bulk is moved as such', async () => {
    await using raw = await rawSite()
    const talk = await Conversation.begin(raw)
    await talk.moved()
    const { begun } = spliceCounts()
    talk.app.say(40 * MB)
    const { heard } = talk.visitor
    await heard.until(() => heard.receivedBytes === talk.app.saidBytes, '40 MB')
    expect(spliceCounts().begun).toBeGreaterThan(begun)
    await talk.turn()
  })

  test('either side may end first, and the other goes on', async () => {
    await using raw = await rawSite()
    for (const first of ['visitor', 'app'] as const) {
      const talk = await Conversation.begin(raw)
      await talk.moved()
      const other = talk[first === 'visitor' ? 'app' : 'visitor']
      talk[first].say(3)
      talk[first].socket.end()
      expect(await other.heard.over()).toBe('end')
      expect(other.heard.receivedBytes).toBe(talk[first].saidBytes)
      for (let count = 0; count < 200; count++) {
        other.say(11)
        await talk[first].heard.until(
          () => talk[first].heard.receivedBytes === other.saidBytes,
          'what the other says',
        )
      }
      other.socket.end()
      expect(await talk[first].heard.over()).toBe('end')
      await settled()
    }
  })

  test('a reset by either side is one at the other, never an end', async () => {
    await using raw = await rawSite()
    for (const [cut, hears] of [
      ['visitor', 'app'],
      ['app', 'visitor'],
    ] as const) {
      for (let count = 0; count < 10; count++) {
        const talk = await Conversation.begin(raw)
        await talk.moved()
        reset(talk[cut].socket)
        expect(await talk[hears].heard.over()).toBe('ECONNRESET')
        await settled()
      }
    }
  })

  test('forty at once: those that find no link go on through the program, and bulk finds one', async () => {
    await using raw = await rawSite()
    const before = openDescriptors()
    const talks = await Promise.all(Array.from({ length: 40 }, () => Conversation.begin(raw)))
    await Promise.all(
      talks.map(async talk => {
        for (let turns = 0; turns < 400; turns++) await talk.turn()
      }),
    )
    // Four for each of sixteen: half of the links.
    expect(spliceCounts().running).toBeLessThanOrEqual(64)
    expect(spliceCounts().running).toBeGreaterThanOrEqual(32)
    const { begun } = spliceCounts()
    const visitor = await peerClient(raw.port, false)
    const sink = new Sink(visitor)
    new Source(await raw.origin.accepted(), 40 * MB)
    expect(await sink.over()).toBe('end')
    visitor.end()
    expect(spliceCounts().begun).toBeGreaterThan(begun)
    for (const { app, visitor: guest } of talks) {
      guest.socket.end()
      app.socket.end()
    }
    await settled()
    await eventually(() => openDescriptors() < before + 250, 'closed descriptors')
  }, 60_000)
})
