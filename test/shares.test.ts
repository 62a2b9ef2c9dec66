// Shares of one budget: no few of those who take some of it can use it up.

import { expect, test } from 'bun:test'
import { LARGEST_TIMES, Shares } from '../src/shares.ts'

/** Takes one after the other until it gets no more. */
function greedy(shares: Shares, owner: string, visitor: string, most: number): number {
  let count = 0
  while (shares.take(owner, visitor, 1, most)) count++
  return count
}

test('one visitor gets a fifth, and the visitors of one owner get half, of an empty budget', () => {
  const shares = new Shares()
  expect(greedy(shares, 'anna', 'a', 1_000)).toBe(200)
  let ofAnna = 200
  for (let visitor = 0; visitor < 100; visitor++) ofAnna += greedy(shares, 'anna', `v${visitor}`, 1_000)
  expect(ofAnna).toBe(500)
  expect(greedy(shares, 'bob', 'b', 1_000)).toBe(100)
})

test('a visitor of many owners gets no more than of one', () => {
  const shares = new Shares()
  let ofVisitor = 0
  for (let owner = 0; owner < 100; owner++) ofVisitor += greedy(shares, `o${owner}`, 'a', 1_000)
  expect(ofVisitor).toBe(200)
})

test('the largest piece has room in an empty budget, and what is given back is free again', () => {
  const shares = new Shares()
  for (let round = 0; round < 3; round++) {
    expect(shares.take('o', 'v', 100, LARGEST_TIMES * 100)).toBe(true)
    expect(shares.take('o', 'v', 1, LARGEST_TIMES * 100)).toBe(false)
    shares.give('o', 'v', 100)
  }
})
