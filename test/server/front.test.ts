// A request that waits for what decides where it goes.

import { expect, test } from 'bun:test'
import { type Route, refusal, routedLater } from '../../src/server/contracts/front.ts'

const heldOf = (route: ReturnType<typeof routedLater>) =>
  new Promise<Route>(resolve => {
    route.hold(resolve as Parameters<typeof route.hold>[0])
  })

test('what rejects or throws on the way is INTERNAL for that request', async () => {
  const rejected = routedLater(Promise.reject(new Error('no directory')), () => refusal('BAD_REQUEST'))
  expect(await heldOf(rejected)).toEqual(refusal('INTERNAL'))
  const thrown = routedLater(Promise.resolve(1), () => {
    throw new Error('a fault')
  })
  expect(await heldOf(thrown)).toEqual(refusal('INTERNAL'))
})

test('the way of the outcome, also one that waits again', async () => {
  const again = routedLater(Promise.resolve(1), () =>
    routedLater(Promise.resolve(2), () => refusal('TUNNEL_NOT_FOUND')),
  )
  expect(await heldOf(again)).toEqual(refusal('TUNNEL_NOT_FOUND'))
})

test('nothing is decided for a request that is gone', async () => {
  const decided: string[] = []
  const outcome = Promise.resolve(1)
  const waiting = routedLater(outcome, () => {
    decided.push('decided')
    return refusal('BAD_REQUEST')
  }).hold(() => decided.push('held'))
  if (typeof waiting === 'function') waiting()
  // Behind all that was waiting for the outcome.
  await new Promise(resolve => setImmediate(resolve))
  expect(decided).toEqual([])
})
