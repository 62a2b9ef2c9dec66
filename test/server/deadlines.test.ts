// Deadlines: one timer for all, in time, and one that throws harms no other.

import { expect, test } from 'bun:test'
import { Deadlines } from '../../src/server/limits/deadlines.ts'
import { within } from '../support/within.ts'

class Watched {
  dueTick = 0
  readonly expired: () => void
  readonly done: Promise<void>

  constructor(deadlines: Deadlines, act: () => void = () => {}) {
    const { promise, resolve } = Promise.withResolvers<void>()
    this.done = promise
    this.expired = () => {
      resolve()
      act()
    }
    deadlines.watch(this)
  }
}

test('each expires once, not before its time, and not when disarmed, replaced or forgotten', async () => {
  const deadlines = new Deadlines(() => {})
  deadlines.start()
  let early = 0
  const [short, long, disarmed, forgotten, never] = [1, 2, 3, 4, 5].map(
    index => new Watched(deadlines, () => index > 2 && early++),
  )
  const armedAt = performance.now()
  deadlines.arm(short!, 1)
  deadlines.arm(long!, 400)
  for (const one of [disarmed!, forgotten!]) deadlines.arm(one, 1)
  deadlines.arm(never!, 0)
  deadlines.disarm(disarmed!)
  deadlines.forget(forgotten!)
  await within(short!.done, 'the first')
  await within(long!.done, 'the second')
  expect(performance.now() - armedAt).toBeGreaterThanOrEqual(395)
  expect(early).toBe(0)
  deadlines.stop()
})

test('one that throws is told, and the others expire all the same', async () => {
  const failures: string[] = []
  const deadlines = new Deadlines(error => failures.push(error.message))
  deadlines.start()
  const bad = new Watched(deadlines, () => {
    throw new Error('a bug')
  })
  const good = new Watched(deadlines)
  for (const one of [bad, good]) deadlines.arm(one, 1)
  await good.done
  expect(failures).toEqual(['a bug'])
  deadlines.stop()
})
