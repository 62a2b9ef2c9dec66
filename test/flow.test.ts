// A flow on a clock of the test: batches, what is dropped when, the turn, the idle end.

import { expect, test } from 'bun:test'
import { Flow, type FlowShare, MAX_BACKLOG_BYTES } from '../src/flow.ts'
import type { SocketHandler } from '../src/socket.ts'
import { frameDatagrams } from '../src/wire/datagrams.ts'
import { Clock } from './support/clock.ts'

class Rig implements SocketHandler {
  readonly clock: Clock = new Clock()
  readonly events: string[] = []
  readonly sent: number[] = []
  dropped = 0
  /** Datagrams that the kernel takes before it is full. */
  room: number = Number.POSITIVE_INFINITY
  onReceived: (flow: Flow) => void = () => {}
  readonly share: FlowShare
  readonly flow: Flow

  constructor(share?: FlowShare) {
    this.share = share ?? {
      scheduler: this.clock,
      idleTimeoutMs: 1_000,
      backlogBytes: 0,
      dropped: count => {
        this.dropped += count
      },
    }
    const send = (datagrams: readonly Uint8Array[]) => {
      const taken = Math.min(this.room, datagrams.length)
      this.room -= taken
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

test('one turn of the event loop sends on so much and not more', () => {
  const rig = new Rig()
  const bytes = framed(200, 1_400)
  const taken = rig.flow.write(bytes)
  expect(taken).toBe(131_072)
  expect(rig.flow.write(bytes.subarray(taken))).toBe(0)
  rig.clock.tick()
  expect(rig.events).toEqual(['drained'])
  expect(rig.flow.write(bytes.subarray(taken))).toBe(131_072)
  rig.clock.tick()
  rig.flow.write(bytes.subarray(2 * taken))
  expect(rig.sent).toEqual(Array.from({ length: 200 }, () => 1_400))
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
