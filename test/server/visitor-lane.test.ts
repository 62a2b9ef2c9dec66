// Which visitors get a stream of their own for a lane: those that ask one upstream again and again.

import { expect, test } from 'bun:test'
import { VisitorLane } from '../../src/server/lanes/visitor-lane.ts'
import { DEFAULT_LIMITS } from '../../src/server/options.ts'
import type { Exchange, Upstream, Visit } from '../../src/server/upstream.ts'

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

function lane(): VisitorLane {
  return new VisitorLane({
    socket: { isLendable: true } as never, // only this is asked
    grant: () => ({}) as never, // only whether there is one
    hop: () => ({ address: '192.0.2.1', proto: 'http', trusted: false, hostHeader: '', origin: '' }),
    tracing: () => undefined,
    hostWithPort: () => 'app.localhost',
    limits: () => DEFAULT_LIMITS,
    isUndisturbed: () => true,
    left: () => {},
  })
}

/** Each request is easy. Returns how often each upstream was asked for a stream. */
function ask(count: number, upstreams: readonly CountingUpstream[]): readonly number[] {
  const visitor = lane()
  for (let index = 0; index < count; index++) {
    const upstream = upstreams[index % upstreams.length]
    visitor.begin(upstream as unknown as Upstream, {} as Visit) // what a lane calls of it
    visitor.exchanged(true)
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
