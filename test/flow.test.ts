// A flow on a clock of the test: batches, what is dropped when, turns among many flows, the idle end.

import { expect, test } from 'bun:test'
import { Flow, MAX_BACKLOG_BYTES } from '../src/flow/flow.ts'
import { MAX_WAITING_FLOWS } from '../src/flow/sender.ts'
import { FlowShare } from '../src/flow/share.ts'
import { Turns } from '../src/session/turns.ts'
import type { SocketHandler } from '../src/socket.ts'
import { frameDatagrams } from '../src/wire/datagrams.ts'
import { Clock } from './support/clock.ts'

class Rig implements SocketHandler {
  readonly clock: Clock
  readonly events: string[] = []
  readonly sent: number[] = []
  dropped = 0
  /** Datagrams that the kernel takes before it is full. */
  room: number = Number.POSITIVE_INFINITY
  /** What one datagram costs the kernel, milliseconds. */
  costMs = 0
  onReceived: (flow: Flow) => void = () => {}
  onDrained: () => void = () => {}
  readonly share: FlowShare
  readonly flow: Flow

  constructor(share?: FlowShare, clock: Clock = new Clock()) {
    this.clock = clock
    this.share =
      share ??
      new FlowShare({
        scheduler: clock,
        turns: new Turns(clock, error => {
          throw error
        }),
        idleTimeoutMs: 1_000,
        dropped: count => {
          this.dropped += count
        },
      })
    const send = (datagrams: readonly Uint8Array[]) => {
      const taken = Math.min(this.room, datagrams.length)
      this.room -= taken
      clock.pass(taken * this.costMs)
      this.sent.push(...datagrams.slice(0, taken).map(({ length }) => length))
      return taken
    }
    this.flow = new Flow('192.0.2.1', this, this.share, send, () => this.events.push('released'))
  }

  received(bytes: Uint8Array): void {
    this.events.push(`received ${bytes.length}`)
    this.onReceived(this.flow)
  }
  drained(): void {
    this.events.push('drained')
    this.onDrained()
  }
  ended(): void {
    this.events.push('ended')
  }
  closed(error?: Error): void {
    this.events.push(error === undefined ? 'closed' : 'cut')
  }
}

const framed = (count: number, size: number): Uint8Array => {
  const bytes = new Uint8Array(count * (size + 2))
  frameDatagrams(
    Array.from({ length: count }, () => new Uint8Array(size)),
    bytes,
  )
  return bytes
}

test('what arrives in one tick is one write, and much of it more than one', () => {
  const rig = new Rig()
  rig.flow.arrived(new Uint8Array(10))
  rig.flow.arrived(new Uint8Array(0))
  expect(rig.events).toEqual([])
  rig.clock.tick()
  expect(rig.events).toEqual(['received 14'])
  for (let count = 0; count < 3; count++) rig.flow.arrived(new Uint8Array(40_000))
  expect(rig.events).toEqual(['received 14', 'received 80004'])
  rig.clock.tick()
  expect(rig.events.at(-1)).toBe('received 40002')
})

test('a flow without room drops and counts, until there is room again', () => {
  const rig = new Rig()
  rig.onReceived = flow => flow.pause()
  rig.flow.arrived(new Uint8Array(10))
  rig.clock.tick()
  expect(rig.share.backlogBytes).toBe(12)
  rig.flow.arrived(new Uint8Array(10))
  rig.clock.tick()
  expect([rig.dropped, rig.events.length]).toEqual([1, 1])
  rig.flow.resume()
  expect(rig.share.backlogBytes).toBe(0)
  rig.flow.arrived(new Uint8Array(10))
  rig.clock.tick()
  expect([rig.dropped, rig.events.length]).toEqual([1, 2])
  rig.flow.terminate()
  expect(rig.share.backlogBytes).toBe(0)
})

test('what all flows of a tunnel have waiting is bounded', () => {
  const first = new Rig()
  first.onReceived = flow => flow.pause()
  const rigs = [first]
  for (let count = 0; count < 100; count++) {
    const rig = new Rig(first.share)
    rig.onReceived = flow => flow.pause()
    rig.flow.arrived(new Uint8Array(65_507))
    rigs.push(rig)
  }
  expect(first.share.backlogBytes).toBeGreaterThanOrEqual(MAX_BACKLOG_BYTES)
  expect(first.share.backlogBytes).toBeLessThan(MAX_BACKLOG_BYTES + 65_509)
  expect(first.dropped).toBe(100 - Math.ceil(MAX_BACKLOG_BYTES / 65_509))
  for (const { flow } of rigs) flow.terminate()
  expect(first.share.backlogBytes).toBe(0)
})

test('one turn of the event loop sends on so much of a flow and not more', () => {
  const rig = new Rig()
  const bytes = framed(200, 1_400)
  const taken = rig.flow.write(bytes)
  expect(taken).toBe(131_072)
  expect(rig.flow.write(bytes.subarray(taken))).toBe(0)
  const writer = new Writer(rig, bytes.subarray(taken))
  while (rig.clock.hasSoon) {
    const before = writer.left
    rig.clock.tick()
    expect(before - writer.left).toBeLessThanOrEqual(131_072)
  }
  expect(writer.left).toBe(0)
  expect(rig.sent).toEqual(Array.from({ length: 200 }, () => 1_400))
})

/** What a Join does: keeps what was not taken, and gives it again. */
class Writer {
  readonly rig: Rig
  readonly #kept: Uint8Array[] = []

  constructor(rig: Rig, bytes: Uint8Array) {
    this.rig = rig
    rig.onDrained = () => this.#flush()
    this.#kept.push(bytes)
  }

  write(bytes: Uint8Array): void {
    this.#kept.push(bytes)
    if (this.#kept.length === 1) this.#flush()
  }

  #flush(): void {
    for (let first = this.#kept[0]; first !== undefined; first = this.#kept[0]) {
      const taken = this.rig.flow.write(first)
      if (taken < first.length) {
        this.#kept[0] = first.subarray(taken)
        return
      }
      this.#kept.shift()
    }
  }

  get left(): number {
    return this.#kept.reduce((sum, { length }) => sum + length, 0)
  }
}

/** Flows of one tunnel, each datagram of which costs half a millisecond. */
function slowFlows(count: number): Rig[] {
  const first = new Rig()
  const rigs = [first]
  while (rigs.length < count) rigs.push(new Rig(first.share, first.clock))
  for (const rig of rigs) rig.costMs = 0.5
  return rigs
}

test('all flows together send for a bounded time in one turn of the event loop, and nothing is lost', () => {
  const rigs = slowFlows(40)
  const { clock } = rigs[0]!
  const writers = rigs.map(rig => {
    const writer = new Writer(rig, framed(1, 10))
    rig.flow.drained()
    return writer
  })
  // Four of them fit into the first turn, and four more into each that follows.
  const sent = () => rigs.filter(rig => rig.sent.length === 1).length
  expect(sent()).toBe(4)
  clock.tick()
  expect(sent()).toBe(8)
  while (clock.hasSoon) {
    const before = clock.now()
    clock.tick()
    expect(clock.now() - before).toBeLessThanOrEqual(2.5)
  }
  expect(sent()).toBe(40)
  expect(writers.every(writer => writer.left === 0)).toBe(true)
  expect([rigs[0]!.dropped, rigs[0]!.share.waitingCount]).toEqual([0, 0])
})

test('a flow with much to send leaves turns to one with little', () => {
  const [greedy, modest] = slowFlows(2)
  new Writer(greedy!, framed(1_000, 10))
  greedy!.flow.drained()
  const writer = new Writer(modest!, framed(1, 10))
  modest!.flow.drained()
  expect(modest!.sent).toEqual([])
  // A few portions of the other one are in front, not all that it has.
  for (let ticks = 0; writer.left > 0; ticks++) {
    expect(ticks).toBeLessThan(3)
    greedy!.clock.tick()
  }
  expect(greedy!.sent.length).toBeLessThanOrEqual(4 * 48)
  while (greedy!.clock.hasSoon) greedy!.clock.tick()
  expect(greedy!.sent.length).toBe(1_000)
})

test('more flows than may wait for their turn lose what comes, and it is counted', () => {
  const rigs = slowFlows(MAX_WAITING_FLOWS + 100)
  const { clock, share } = rigs[0]!
  const taken = rigs.map(rig => rig.flow.write(framed(3, 10)))
  // Two of three datagrams each: 1.5 ms, and the second begins before the 2 ms are over.
  expect(rigs.filter(rig => rig.sent.length === 3).length).toBe(2)
  expect(share.waitingCount).toBe(MAX_WAITING_FLOWS)
  expect(taken.filter(count => count === 0).length).toBe(MAX_WAITING_FLOWS)
  expect(rigs[0]!.dropped).toBe(3 * 98)
  // One that is closed leaves its place to another.
  rigs.find((_, index) => taken[index] === 0)!.flow.terminate()
  expect(share.waitingCount).toBe(MAX_WAITING_FLOWS - 1)
  expect(rigs.at(-1)!.flow.write(framed(3, 10))).toBe(0)
  while (clock.hasSoon) clock.tick()
  // A datagram that was cut in two by a loss would shift all that follow.
  expect(rigs.at(-2)!.flow.write(framed(1, 77))).toBe(79)
  expect(rigs.at(-2)!.sent).toEqual([77])
})

test('a kernel that is full holds the bytes back, and a drain goes on with them', () => {
  const rig = new Rig()
  rig.room = 3
  const bytes = framed(5, 100)
  expect(rig.flow.write(bytes)).toBe(3 * 102)
  rig.flow.drained()
  expect(rig.flow.write(bytes.subarray(3 * 102))).toBe(0)
  rig.room = 10
  rig.flow.drained()
  expect(rig.flow.write(bytes.subarray(3 * 102))).toBe(2 * 102)
  expect(rig.sent.length).toBe(5)
})

test('a flow ends after a time without datagrams either way, not before', () => {
  const rig = new Rig()
  rig.clock.advance(900)
  rig.flow.arrived(new Uint8Array(1))
  rig.clock.advance(900)
  rig.flow.write(framed(1, 1))
  rig.clock.advance(990)
  expect(rig.events).not.toContain('closed')
  rig.clock.advance(20)
  expect(rig.events.slice(-2)).toEqual(['released', 'closed'])
  expect(rig.clock.timerCount).toBe(0)
})

test('an end sends what has just arrived, and after it nothing happens', () => {
  const rig = new Rig()
  rig.flow.arrived(new Uint8Array(1))
  rig.flow.end()
  expect(rig.events).toEqual(['received 3', 'released', 'closed'])
  rig.flow.arrived(new Uint8Array(1))
  rig.flow.end()
  rig.flow.terminate()
  rig.clock.advance(5_000)
  expect(rig.flow.write(framed(1, 1))).toBe(0)
  expect(rig.events.length).toBe(3)
  const cut = new Rig()
  cut.flow.terminate()
  expect(cut.events).toEqual(['released', 'cut'])
})
