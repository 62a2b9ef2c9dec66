// Turns of guards, with work that ends when the test says so.

import { expect, test } from 'bun:test'
import { HashTurns } from '../../src/plugins/hash-turns.ts'

/** Work under way, in the order in which it began. */
function bench() {
  const turns = new HashTurns()
  const began: string[] = []
  const ends: (() => void)[] = []
  return {
    began,
    take: (guard: object, name: string) =>
      turns.take(guard, () => {
        began.push(name)
        return new Promise<string>(resolve => ends.push(() => resolve(name)))
      }),
    /** Ends the oldest, and waits for the next one to begin. */
    end: async (): Promise<void> => {
      ends.shift()?.()
      for (let turn = 0; turn < 10; turn++) await Promise.resolve()
    },
  }
}

test('two run at once, and guards take turns', async () => {
  const { began, take, end } = bench()
  const [flooded, other] = [{}, {}]
  const all = ['a1', 'a2', 'a3', 'a4', 'a5'].map(name => take(flooded, name))
  all.push(take(other, 'b1'), take(other, 'b2'))
  expect(began).toEqual(['a1', 'a2'])
  for (let round = 0; round < 8; round++) await end()
  expect(began).toEqual(['a1', 'a2', 'a3', 'b1', 'a4', 'b2', 'a5'])
  expect(await Promise.all(all)).toEqual(['a1', 'a2', 'a3', 'a4', 'a5', 'b1', 'b2'])
})

test('no more than fifty of one guard wait, and those of another still may', async () => {
  const { take, end } = bench()
  const [flooded, other] = [{}, {}]
  const all = Array.from({ length: 53 }, (_, index) => take(flooded, String(index)))
  const one = take(other, 'other')
  expect(await all[52]).toBeUndefined()
  for (let round = 0; round < 60; round++) await end()
  expect((await Promise.all(all)).filter(result => result !== undefined)).toHaveLength(52)
  expect(await one).toBe('other')
})

test('work that fails gives its place to the next', async () => {
  const turns = new HashTurns()
  const failing = () => Promise.reject(new Error('no memory'))
  const guard = {}
  const results = await Promise.allSettled([1, 2, 3, 4].map(() => turns.take(guard, failing)))
  expect(results.map(({ status }) => status)).toEqual(['rejected', 'rejected', 'rejected', 'rejected'])
  expect(await turns.take(guard, async () => 'goes on')).toBe('goes on')
})
