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

/** Visitors with one portion each, of which those in `ended` gave way. */
function portions(most: number) {
  const shares = new Shares()
  const ended: string[] = []
  const held = new Map<string, number>()
  const grow = (owner: string, visitor: string, count: number) => {
    const portion = {
      owner,
      visitor,
      giveWay() {
        ended.push(visitor)
        shares.give(owner, visitor, held.get(visitor) ?? 0)
      },
    }
    const hasGrown = shares.grow(portion, count, most)
    if (hasGrown) held.set(visitor, count)
    return { hasGrown, portion }
  }
  return { shares, ended, grow }
}

test('where many visitors have used it up, the one that has most gives way to one with less, and to none with more', () => {
  const { ended, grow } = portions(1_000)
  for (let visitor = 0; visitor < 100; visitor++) {
    let count = 200
    while (count > 1 && !grow('anna', `v${visitor}`, count).hasGrown) count >>= 1
  }
  expect(ended).not.toEqual([])
  const before = ended.length
  expect(grow('anna', 'modest', 5).hasGrown).toBe(true)
  expect(ended.length).toBeGreaterThan(before)
  expect(grow('anna', 'large', 150).hasGrown).toBe(false)
})

test('a portion that is complete does not give way, and none does for another owner', () => {
  const { shares, ended, grow } = portions(100)
  const { portion } = grow('anna', 'a', 20)
  grow('anna', 'b', 16)
  grow('anna', 'c', 12)
  expect(grow('bob', 'd', 13).hasGrown).toBe(false)
  shares.settle(portion)
  expect(grow('anna', 'd', 11)).toMatchObject({ hasGrown: true })
  expect(ended).toEqual(['b'])
})
