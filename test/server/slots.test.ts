// The queue of a tunnel's requests on their own: places that are given back at once.

import { expect, test } from 'bun:test'
import { Slots } from '../../src/parts/pressure/slots.ts'
import { Deadlines } from '../../src/server/limits/deadlines.ts'

const ONE = { visitor: '', giveWay: () => {} }

function make(maxQueued: number): Slots {
  return new Slots({ maxInFlight: 1, maxQueued, queueTimeoutMs: 1_000 }, new Deadlines(() => {}))
}

test('a full queue whose requests all give their place back at once is called one after the other', () => {
  const slots = make(10_000)
  expect(slots.take(ONE)).toBe(true)
  let depth = 0
  let deepest = 0
  let called = 0
  for (let count = 0; count < 10_000; count++)
    slots.wait(ONE, () => {
      called++
      deepest = Math.max(deepest, ++depth)
      slots.release(ONE)
      depth--
    })
  slots.release(ONE)
  expect({ called, deepest, queued: slots.queued }).toEqual({ called: 10_000, deepest: 1, queued: 0 })
  // The place is free once, and not twice.
  expect([slots.take(ONE), slots.take(ONE)]).toEqual([true, false])
})

test('one that throws when it is called keeps no place from the others', () => {
  const slots = make(2)
  slots.take(ONE)
  let called = 0
  slots.wait(ONE, () => {
    throw new Error('of a request')
  })
  slots.wait(ONE, () => called++)
  expect(() => slots.release(ONE)).toThrow('of a request')
  slots.release(ONE)
  expect(called).toBe(1)
})
