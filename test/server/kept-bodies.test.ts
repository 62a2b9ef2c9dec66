// Bodies that the server keeps until they are complete: how long one may take.

import { afterEach, expect, jest, test } from 'bun:test'
import { KeptBodies } from '../../src/kept-bodies.ts'
import { Deadlines } from '../../src/server/limits/deadlines.ts'

afterEach(() => {
  jest.useRealTimers()
})

function keptBody(pauseMs: number) {
  jest.useFakeTimers()
  const deadlines = new Deadlines(error => {
    throw error
  })
  deadlines.start()
  let isOver = false
  const bodies = new KeptBodies(deadlines, () => ({ maxBodyBytes: 1_000, maxBytes: 10_000, pauseMs }))
  const body = bodies.begin('owner', '192.0.2.1', () => {
    isOver = true
  })
  return {
    keepAfter(ms: number) {
      jest.advanceTimersByTime(ms)
      if (!isOver) body.keep(new Uint8Array(1))
      return isOver
    },
    [Symbol.dispose]() {
      body.drop()
      deadlines.stop()
    },
  }
}

test('the next piece has one pause, and all of them have eight', () => {
  using body = keptBody(10_000)
  for (let count = 0; count < 8; count++) expect(body.keepAfter(9_000)).toBe(false)
  expect(body.keepAfter(9_000)).toBe(true)
})

test('the next piece has no more than a pause', () => {
  using body = keptBody(10_000)
  expect(body.keepAfter(9_000)).toBe(false)
  expect(body.keepAfter(11_000)).toBe(true)
})

test('0: as long as it likes', () => {
  using body = keptBody(0)
  for (let count = 0; count < 30; count++) expect(body.keepAfter(60_000)).toBe(false)
})
