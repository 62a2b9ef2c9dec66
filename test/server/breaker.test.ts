// The breaker on a clock of its own: when it opens, who may try, and when it closes.

import { expect, test } from 'bun:test'
import { Breaker } from '../../src/parts/pressure/breaker.ts'
import type { BreakerRule } from '../../src/server/settings/tunnel-rule.ts'

function make(rule: BreakerRule = {}) {
  const clock = { now: 1_000 }
  let opened = 0
  const breaker = new Breaker(
    rule,
    () => opened++,
    () => clock.now,
  )
  const visit = (hasFailed: boolean | undefined): boolean => {
    if (breaker.admit() > 0) return false
    breaker.ended(hasFailed, !breaker.isClosed)
    return true
  }
  return { clock, breaker, visit, openings: () => opened }
}

test('it opens at the share of failures, and not below the number of requests', () => {
  const { visit, breaker, openings } = make({ errorPercent: 50, minRequests: 10 })
  for (let count = 0; count < 9; count++) visit(true)
  expect(breaker.isClosed).toBe(true)
  visit(true)
  expect(breaker.isClosed).toBe(false)
  expect(openings()).toBe(1)
  expect(visit(false)).toBe(false)
})

test('failures of an earlier window do not count, nor visitors that left', () => {
  const { clock, visit, breaker } = make({ minRequests: 4, windowMs: 1_000 })
  for (let count = 0; count < 3; count++) visit(true)
  clock.now += 1_000
  for (let count = 0; count < 3; count++) visit(true)
  for (let count = 0; count < 50; count++) visit(undefined)
  expect(breaker.isClosed).toBe(true)
})

test('one visitor at a time tries; a good answer closes it, a bad one opens it for twice as long', () => {
  const { clock, visit, breaker } = make({ minRequests: 1, openMs: 1_000 })
  visit(true)
  expect(breaker.admit()).toBe(1_000)
  clock.now += 1_000
  expect(breaker.admit()).toBe(0)
  // The others wait for what it finds.
  expect(breaker.admit()).toBeGreaterThan(0)
  breaker.ended(true, true)
  expect(breaker.admit()).toBe(2_000)
  clock.now += 2_000
  // One that left found nothing: the next one tries.
  expect(visit(undefined)).toBe(true)
  expect(visit(false)).toBe(true)
  expect(breaker.isClosed).toBe(true)
  visit(true)
  expect(breaker.admit()).toBe(1_000)
})

test('it is open for a minute at most', () => {
  const { clock, breaker, visit } = make({ minRequests: 1, openMs: 50_000 })
  visit(true)
  for (let count = 0; count < 5; count++) {
    clock.now += breaker.admit()
    visit(true)
  }
  expect(breaker.admit()).toBe(60_000)
})

test('what lanes served counts as well', () => {
  const { breaker } = make({ errorPercent: 10 })
  breaker.counted(1_000, 50)
  expect(breaker.isClosed).toBe(true)
  breaker.counted(1_000, 300)
  expect(breaker.isClosed).toBe(false)
})

test('a visitor from before it opened says nothing of the try that is under way', () => {
  for (const hasFailed of [true, false, undefined]) {
    const { clock, visit, breaker } = make({ minRequests: 1, openMs: 1_000 })
    expect(breaker.admit()).toBe(0)
    visit(true)
    clock.now += 1_000
    // One tries. The slow one from before is done with meanwhile.
    expect(breaker.admit()).toBe(0)
    breaker.ended(hasFailed, false)
    expect(breaker.isClosed).toBe(false)
    expect(breaker.admit()).toBe(1_000)
    breaker.ended(false, true)
    expect(breaker.isClosed).toBe(true)
  }
})
