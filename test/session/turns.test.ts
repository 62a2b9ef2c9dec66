// Connections with more than one portion of work get their turns, and none has a whole turn of the event loop.

import { expect, test } from 'bun:test'
import { Turns, type Waiting } from '../../src/session/turns.ts'

/** An event loop whose time passes only by work. */
class Loop {
  ms = 0
  #soon: (() => void)[] = []
  readonly turns: Turns = new Turns(
    {
      soon: task => void this.#soon.push(task),
      after: () => () => {},
      now: () => this.ms,
    },
    error => this.failures.push(error.message),
  )
  readonly failures: string[] = []
  readonly log: string[] = []

  /** One turn of it. `false`: there is nothing to do. */
  turn(): boolean {
    const tasks = this.#soon
    this.#soon = []
    for (const task of tasks) task()
    return tasks.length > 0
  }

  /** One that wants so many portions, each of which takes a millisecond. */
  worker(name: string, portions: number): Waiting {
    let left = portions
    const waiting: Waiting = {
      turn: () => {
        this.ms++
        this.log.push(name)
        if (--left > 0) this.turns.wait(waiting)
      },
    }
    return waiting
  }
}

test('there is time for one turn, and anew in the next', () => {
  const loop = new Loop()
  expect(loop.turns.hasTime).toBe(true)
  loop.ms = 1.9
  expect(loop.turns.hasTime).toBe(true)
  loop.ms = 2.1
  expect(loop.turns.hasTime).toBe(false)
  loop.turn()
  expect(loop.turns.hasTime).toBe(true)
})

test('those that wait go around, a bounded time in each turn of the event loop', () => {
  const loop = new Loop()
  for (const name of ['a', 'b', 'c']) loop.turns.wait(loop.worker(name, 2))
  expect(loop.turns.hasTime).toBe(false)
  loop.turn()
  expect(loop.log).toEqual(['a', 'a'])
  while (loop.turn()) expect(loop.ms).toBeLessThan(7)
  expect(loop.log.join('')).toBe('aabbcc')
  expect(loop.turns.waitingCount).toBe(0)
})

test('one that comes now is served among those that have been waiting for long', () => {
  const loop = new Loop()
  for (let count = 0; count < 200; count++) loop.turns.wait(loop.worker('attacker', 1_000))
  while (loop.log.length < 1_000) loop.turn()
  loop.log.length = 0
  loop.turns.wait(loop.worker('visitor', 1))
  while (!loop.log.includes('visitor')) loop.turn()
  expect(loop.log.length).toBeLessThanOrEqual(4)
})

test('new ones without end do not keep out those that were not finished', () => {
  const loop = new Loop()
  loop.turns.wait(loop.worker('old', 3))
  while (loop.log.filter(name => name === 'old').length < 3) {
    loop.turns.wait(loop.worker('new', 1))
    loop.turns.wait(loop.worker('new', 1))
    loop.turn()
  }
  expect(loop.log.length).toBeLessThan(12)
})

test('in its turn one has no time for more than its portion', () => {
  const loop = new Loop()
  const seen: boolean[] = []
  loop.turns.wait({ turn: () => void seen.push(loop.turns.hasTime) })
  loop.turn()
  expect(seen).toEqual([false])
})

test('one that is forgotten has no turn, and one that throws ends nothing', () => {
  const loop = new Loop()
  const gone = loop.worker('gone', 1)
  loop.turns.wait(gone)
  loop.turns.forget(gone)
  loop.turns.wait({
    turn: () => {
      throw new Error('broken')
    },
  })
  loop.turns.wait(loop.worker('next', 1))
  while (loop.turn()) expect(loop.failures).toEqual(['broken'])
  expect(loop.log).toEqual(['next'])
})
