// Waking up: a jump of the wall clock is sleep, and a client that slept asks at once whether its carrier lives.

import { expect, test } from 'bun:test'
import { watchForWake } from '../../src/client/carriers/wake.ts'

class FakeClock {
  time = 1_000_000
  #tick: () => void = () => {}
  isWatched = false

  readonly now = (): number => this.time
  readonly every = (_ms: number, tick: () => void): (() => void) => {
    this.#tick = tick
    this.isWatched = true
    return () => {
      this.isWatched = false
    }
  }

  pass(ms: number): void {
    this.time += ms
    this.#tick()
  }
}

test('a timer that fires much later than it should means that the machine slept', () => {
  const clock = new FakeClock()
  let wakes = 0
  const stop = watchForWake(() => wakes++, clock)
  for (const ms of [1_000, 1_001, 999, 5_900, 1_000]) clock.pass(ms)
  expect(wakes).toBe(0)
  clock.pass(61_000)
  expect(wakes).toBe(1)
  clock.pass(1_000)
  expect(wakes).toBe(1)
  clock.pass(8 * 3_600_000)
  expect(wakes).toBe(2)
  stop()
  expect(clock.isWatched).toBe(false)
})

test('a wall clock that is set back is no sleep', () => {
  const clock = new FakeClock()
  let wakes = 0
  watchForWake(() => wakes++, clock)
  clock.pass(-3_600_000)
  clock.pass(1_000)
  expect(wakes).toBe(0)
})
