// Which visitors get a stream of their own for a lane: those that ask one upstream again and again.

import { expect, test } from 'bun:test'
import { VisitorLane } from '../../src/parts/lanes/visitor-lane.ts'
import type { Exchange, Upstream, Visit } from '../../src/server/contracts/upstream.ts'
import { DEFAULT_BOUNDS } from '../support/bounded-server.ts'

/** Counts how often a stream is asked for, and has none. */
class CountingUpstream {
  reserved = 0

  begin(): Exchange {
    return {} as Exchange // nothing is called on it
  }

  reserve(): undefined {
    this.reserved++
  }
}

function lane(isForGets: boolean): VisitorLane<never> {
  return new VisitorLane({
    socket: { isLendable: true } as never, // only this is asked
    grant: () => ({ isForGets }) as never, // only this is asked
    hop: () => ({ address: '192.0.2.1', proto: 'http', trusted: false, hostHeader: '' }),
    tracing: () => undefined,
    hostWithPort: () => 'app.localhost',
    limits: () => DEFAULT_BOUNDS,
    isUndisturbed: () => true,
    left: () => {},
  })
}

/** Each request is easy. Returns how often each upstream was asked for a stream. */
function ask(
  count: number,
  upstreams: readonly CountingUpstream[],
  { methods = ['GET'], isForGets = false } = {},
): readonly number[] {
  const visitor = lane(isForGets)
  for (let index = 0; index < count; index++) {
    const upstream = upstreams[index % upstreams.length]
    const head = { method: methods[index % methods.length], body: 'none' }
    visitor.begin(upstream as unknown as Upstream, { head } as Visit) // what a lane calls of it
    visitor.exchanged('easy')
  }
  return upstreams.map(({ reserved }) => reserved)
}

test('a visitor of one upstream gets a stream of its own after a few easy exchanges', () => {
  const [reserved] = ask(9, [new CountingUpstream()])
  expect(reserved).toBe(1)
})

test('a visitor whose requests go to another upstream each, as those of a proxy in front, gets none', () => {
  expect(ask(300, [new CountingUpstream(), new CountingUpstream(), new CountingUpstream()])).toEqual([
    0, 0, 0,
  ])
})

test('a visitor of POSTs gets one, but not where lanes are for GETs', () => {
  const methods = ['GET', 'POST']
  expect(ask(9, [new CountingUpstream()], { methods })).toEqual([1])
  expect(ask(300, [new CountingUpstream()], { methods, isForGets: true })).toEqual([0])
  expect(ask(9, [new CountingUpstream()], { isForGets: true })).toEqual([1])
})
