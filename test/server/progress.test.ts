// Bytes that have to move: silence counts from the last byte, and only while bytes wait.

import { expect, test } from 'bun:test'
import { Deadlines, type Movement, Progress } from '../../src/server/limits/deadlines.ts'

/** A side that takes bytes when told. */
class Taker implements Movement {
  movedBytes = 0
  isWaiting = true
  stalls = 0
  readonly #stalled = Promise.withResolvers<void>()
  /** The first stall. */
  readonly done: Promise<void> = this.#stalled.promise

  stalled(): void {
    this.stalls++
    this.#stalled.resolve()
  }
}

/** Each later deadline ends behind those that began with it. */
async function after(deadlines: Deadlines, ms: number): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  const one = { dueTick: 0, expired: resolve }
  deadlines.watch(one)
  deadlines.arm(one, ms)
  await promise
}

test('it stalls once when nothing moves, and not while bytes move, none wait, or none are expected', async () => {
  const deadlines = new Deadlines(error => {
    throw error
  })
  deadlines.start()
  try {
    const [still, moving, idle, stopped, unbounded] = [1, 2, 3, 4, 5].map(() => new Taker())
    const all = [still!, moving!, idle!, stopped!, unbounded!].map(taker => new Progress(deadlines, taker))
    for (const progress of all.slice(0, 4)) progress.expect(1)
    all[4]!.expect(0)
    idle!.isWaiting = false
    all[3]!.stop()
    for (let step = 0; step < 4; step++) {
      moving!.movedBytes++
      await after(deadlines, 1)
    }
    await still!.done
    expect([still, moving, idle, stopped, unbounded].map(taker => taker?.stalls)).toEqual([1, 0, 0, 0, 0])
    // From the last byte on, silence counts for the one that moved; and waiting counts for the idle one.
    idle!.isWaiting = true
    await Promise.all([moving!.done, idle!.done])
  } finally {
    deadlines.stop()
  }
})
