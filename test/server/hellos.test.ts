// Many TLS hellos in one turn of the event loop, on a clock of the test: each has its turn, and nothing of it is lost.

import { expect, test } from 'bun:test'
import type { RawVisits } from '../../src/server/fronts/raw-visits.ts'
import { TlsFront } from '../../src/server/fronts/tls.ts'
import { Deadlines } from '../../src/server/limits/deadlines.ts'
import type { Tunnels } from '../../src/server/tunnels/tunnels.ts'
import { Turns } from '../../src/session/turns.ts'
import type { Socket, SocketHandler } from '../../src/socket.ts'
import { DEFAULT_BOUNDS } from '../support/bounded-server.ts'
import { clientHello } from '../support/client-hello.ts'
import { Clock } from '../support/clock.ts'
import { Recorder } from '../support/recorder.ts'

/** What one hello costs the server, milliseconds. */
const COST_MS = 0.5

class Rig {
  readonly clock: Clock = new Clock()
  readonly failures: Error[] = []
  readonly front: TlsFront
  /** Numbers of the visitors whose hello was read, in order. */
  readonly order: number[] = []

  constructor(maxHellos = 1_000) {
    // No hello is for a tunnel, so nothing is asked of either.
    const [tunnels, visits] = [{} as Tunnels, {} as RawVisits]
    const context = {
      deadlines: new Deadlines(error => this.failures.push(error)),
      destinationOf: () => ({ kind: 'unknown' }) as const,
      limits: { ...DEFAULT_BOUNDS, maxHellos },
      tunnels,
      turns: new Turns(this.clock, error => this.failures.push(error)),
    }
    this.front = new TlsFront(context, visits)
  }

  visitor(number: number): Visitor {
    return new Visitor(this, number)
  }

  /** Turns of the event loop, until there is nothing more to do. */
  finish(): void {
    while (this.clock.hasSoon) {
      const before = this.clock.now()
      this.clock.tick()
      // The last one begins before the 2 ms of a turn are over.
      expect(this.clock.now() - before).toBeLessThanOrEqual(2 + COST_MS)
    }
    expect(this.failures).toEqual([])
  }
}

class Visitor implements Socket {
  readonly remoteAddress = '192.0.2.1'
  readonly handler: SocketHandler
  /** What gets the decrypted bytes. */
  readonly next: Recorder = new Recorder()
  /** What the handshake begins with. */
  first: Uint8Array | undefined
  isPaused = false
  isCut = false

  constructor(rig: Rig, number: number) {
    this.handler = rig.front.accept(this, undefined, {
      sharesPort: true,
      read: () => {
        rig.clock.pass(COST_MS)
        rig.order.push(number)
        return { context: {}, accept: () => this.next }
      },
    })
  }

  secure(first: Uint8Array): void {
    this.first = first.slice()
  }

  write(bytes: Uint8Array): number {
    return bytes.length
  }
  end(): void {}
  terminate(): void {
    if (this.isCut) return
    this.isCut = true
    this.handler.closed()
  }
  pause(): void {
    this.isPaused = true
  }
  resume(): void {
    this.isPaused = false
  }
  endpoints(): undefined {}
}

const hello = clientHello('one.localhost')

test('hellos that come at once are read for a bounded time in each turn, in the order in which they came', () => {
  const rig = new Rig()
  const visitors = Array.from({ length: 100 }, (_, number) => rig.visitor(number))
  for (const { handler } of visitors) handler.received(hello)
  expect(rig.order).toEqual([0, 1, 2, 3])
  expect(visitors.filter(visitor => visitor.isPaused).length).toBe(96)
  rig.finish()
  expect(rig.order).toEqual(visitors.map((_, number) => number))
  for (const { first, isPaused } of visitors)
    expect([first, isPaused]).toEqual([new Uint8Array(hello), false])
})

test('what comes behind a hello that waits stays behind it: the rest of it, more bytes; an end cuts', () => {
  const rig = new Rig()
  for (let number = 0; number < 4; number++) rig.visitor(number).handler.received(hello)
  const [whole, cut, gone] = [rig.visitor(4), rig.visitor(5), rig.visitor(6)]
  whole.handler.received(hello)
  whole.handler.received(new Uint8Array([1, 2, 3]))
  gone.handler.received(hello)
  gone.handler.ended()
  cut.handler.received(hello.subarray(0, 20))
  rig.finish()
  expect(whole.first).toEqual(new Uint8Array([...hello, 1, 2, 3]))
  expect([gone.first, gone.isCut]).toEqual([undefined, true])
  expect([cut.first, cut.isPaused]).toEqual([undefined, false])
  cut.handler.received(hello.subarray(20))
  rig.finish()
  expect(cut.first).toEqual(new Uint8Array(hello))
})

test('of more hellos than may wait the last are cut, and one that leaves gives its place back', () => {
  const rig = new Rig(10)
  for (let number = 0; number < 4; number++) rig.visitor(number).handler.received(hello)
  const waiting: Visitor[] = []
  while (waiting.length < 12) {
    const visitor = rig.visitor(4 + waiting.length)
    visitor.handler.received(hello)
    waiting.push(visitor)
  }
  expect(waiting.map(({ isCut }) => isCut)).toEqual([...Array(10).fill(false), true, true])
  waiting[0]!.handler.closed()
  const late = rig.visitor(99)
  late.handler.received(hello)
  expect(late.isCut).toBe(false)
  rig.finish()
  expect(rig.order).toEqual([0, 1, 2, 3, 5, 6, 7, 8, 9, 10, 11, 12, 13, 99])
})
