// Random conversations against a model: plain arrays say what each end of each stream must have received.

import { expect } from 'bun:test'
import { Books } from './books.ts'
import { concat } from './link.ts'
import { Random } from './random.ts'
import type { StreamLog } from './sessions.ts'
import { LinkedPair } from './wires.ts'

const LIMITS = { stream: 1_048_576, session: 2_097_152 }

/** One direction of one stream, as the model sees it. */
interface Direction {
  readonly from: StreamLog
  readonly to: StreamLog
  readonly written: Uint8Array[]
  /** `write` said no: the model waits for `writable`. */
  mustWait: boolean
  writablesSeen: number
  /** Received, not consumed yet. */
  held: number
  /** One of its ends reset the stream: what arrived is a part of what was written. */
  isReset: boolean
  /** What `to` had consumed when it ended its own direction: what its END must say. */
  deliveredWhenEnded: number | undefined
}

export class Conversation {
  readonly #random: Random
  readonly pair: LinkedPair
  readonly #hasLinks: boolean
  readonly #holds: boolean
  readonly directions: Direction[] = []

  /**
   * With links, carrier and links move each in their own time, and streams are reset now and then. `holds`: ends of
   * streams are held now and then, and released later.
   */
  constructor(seed: number, linkCount = 0, holds = false) {
    const random = new Random(seed)
    this.#random = random
    this.pair = new LinkedPair(
      random,
      random.pick([3000, 70_000, 600_000]),
      {
        roomBytes: random.pick([Number.POSITIVE_INFINITY, 3000, 70_000, 300_000]),
        headroom: random.pick([0, 4, 14]),
        largestPiece: random.pick([700, 5000, 65_536, 500_000]),
        observer: new Books(LIMITS),
      },
      { maxStreamWindowBytes: LIMITS.stream, maxSessionWindowBytes: LIMITS.session },
    )
    this.#hasLinks = linkCount > 0
    this.#holds = holds
    for (let link = 0; link < linkCount; link++) this.pair.addLink()
    if (random.chance(0.5)) this.pair.settle()
  }

  run(steps: number): void {
    for (let step = 0; step < steps; step++) {
      if (this.directions.length === 0 || (this.directions.length < 12 && this.#random.chance(0.1)))
        this.#join()
      const direction = this.#random.pick(this.directions)
      if (this.#holds && this.#random.chance(0.15)) this.#holdOrRelease(direction)
      const action = this.#random.below(10)
      if (action < 5) this.#write(direction)
      else if (action < 8) this.#consume(direction, this.#random.below(direction.held + 1))
      else if (action === 8 && this.#random.chance(0.2)) this.#leave(direction)
      else if (this.#hasLinks && this.#random.chance(0.6)) this.pair.stepLinks()
      else this.pair.step()
      this.pair.clock.advance(this.#random.below(3))
    }
    this.#finish()
  }

  #join(): void {
    const near = this.pair.open()
    near.isReading = false
    const count = this.pair.clientLog.streams.length
    for (let steps = 0; this.pair.clientLog.streams.length === count; steps++) {
      if (steps > 10_000) throw new Error('the stream does not arrive')
      this.pair.step()
    }
    const far = this.pair.clientLog.streams.at(-1)
    if (far === undefined) throw new Error('the stream is not there')
    far.isReading = false
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      const direction: Direction = {
        from,
        to,
        written: [],
        mustWait: false,
        writablesSeen: from.writables,
        held: 0,
        isReset: false,
        deliveredWhenEnded: undefined,
      }
      this.directions.push(direction)
      to.onEvent = event => {
        if (event === 'reset') direction.isReset = true
        if (event === 'received') direction.held = to.receivedBytes - (to.stream?.deliveredBytes ?? 0)
      }
    }
  }

  #write(direction: Direction): void {
    const { stream, writables } = direction.from
    if (stream === undefined || stream.hasEnded || direction.isReset) return
    if (direction.mustWait && writables === direction.writablesSeen) return
    if (direction.mustWait) expect(writables).toBe(direction.writablesSeen + 1)
    direction.writablesSeen = writables
    const size = this.#random.pick([0, 1, 20, 4095, 4096, 65_536, 65_537, 400_000])
    const bytes = new Uint8Array(size).fill(this.#random.bits())
    for (let at = 0; at < size; at += 997) bytes[at] = this.#random.bits()
    direction.written.push(bytes)
    direction.mustWait = !stream.write(bytes)
    // The session holds what it was given, not more: one piece that was refused.
    expect(stream.queue.length).toBeLessThanOrEqual(1)
  }

  #consume(direction: Direction, count: number): void {
    direction.to.stream?.consumed(count)
    direction.held -= count
  }

  #end(direction: Direction): void {
    const { stream } = direction.from
    if (stream === undefined || stream.hasEnded || direction.isReset) return
    stream.end()
    // Behind a queue END leaves later, and counts what was delivered until then: those two are not compared.
    if (!stream.isBackedUp) this.#opposite(direction).deliveredWhenEnded = stream.deliveredBytes
  }

  #leave(direction: Direction): void {
    if (this.#hasLinks && this.#random.chance(0.4)) this.#reset(direction)
    else this.#end(direction)
  }

  #reset(direction: Direction): void {
    if (direction.isReset || direction.from.stream?.isClosed) return
    for (const way of [direction, this.#opposite(direction)]) way.isReset = true
    direction.from.stream?.reset('ORIGIN_CLOSED')
  }

  #holdOrRelease({ to: { stream } }: Direction): void {
    if (stream?.held === undefined) stream?.lend()
    else stream.giveBack(false)
  }

  #opposite(direction: Direction): Direction {
    const found = this.directions.find(({ from, to }) => from === direction.to && to === direction.from)
    if (found === undefined) throw new Error('a stream has two directions')
    return found
  }

  /** Everybody reads everything and ends; then both ends must agree with the model. */
  #finish(): void {
    for (const direction of this.directions) this.#end(direction)
    this.pair.settle()
    for (const { to } of this.directions) to.stream?.giveBack(false)
    for (let rounds = 0; rounds < 100; rounds++) {
      this.pair.settle()
      for (const direction of this.directions) this.#consume(direction, direction.held)
      this.pair.clock.advance(1)
    }
    this.pair.settle()
    for (const direction of this.directions) {
      const { from, to, written, deliveredWhenEnded } = direction
      if (direction.isReset) {
        const whole = concat(written)
        expect(Buffer.compare(to.bytes, whole.subarray(0, to.receivedBytes))).toBe(0)
        continue
      }
      expect(Buffer.compare(to.bytes, concat(written))).toBe(0)
      expect(to.deliveredAtEnd).toBeDefined()
      if (deliveredWhenEnded !== undefined) expect(from.deliveredAtEnd).toBe(deliveredWhenEnded)
      expect(from.resetWith).toBeUndefined()
    }
    expect(this.pair.server.streamCount + this.pair.client.streamCount).toBe(0)
    this.pair.server.close('SERVER_DRAINING')
    this.pair.settle()
    this.pair.expectNothingLeft()
  }
}
