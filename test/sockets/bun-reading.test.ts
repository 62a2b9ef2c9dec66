// When a connection is read again behind a large read, while others read small pieces.

import { expect, test } from 'bun:test'
import { smallReads } from '../../src/accelerator.ts'
import { Reading } from '../../src/sockets/bun-reading.ts'
import { eventually } from '../support/events.ts'

const LARGE_READ_BYTES = 393_216
const nextTurn = () => new Promise(setImmediate)

function reading(isShared: boolean) {
  const seen = { isPaused: false }
  const raw = {
    pause: () => (seen.isPaused = true),
    resume: () => (seen.isPaused = false),
  }
  const one = new Reading({ raw, isRead: false, spliceable() {}, failed() {} })
  one.isShared = isShared
  return { one, seen }
}

test('a connection of many streams is read on: its session takes turns', () => {
  const { one, seen } = reading(true)
  for (let count = 0; count < 100; count++) {
    smallReads[0]!++
    one.arrived(LARGE_READ_BYTES)
    expect([seen.isPaused, one.isBulk]).toEqual([false, false])
  }
})

test('bulk of one stream waits for a moment, and for the next turn alone when nothing small was read', async () => {
  const { one, seen } = reading(false)
  one.arrived(LARGE_READ_BYTES)
  await eventually(() => !seen.isPaused, 'the first turn')
  let waited = 0
  for (let count = 0; count < 20; count++) {
    smallReads[0]!++
    one.arrived(LARGE_READ_BYTES)
    await nextTurn()
    if (seen.isPaused) waited++
    await eventually(() => !seen.isPaused, 'the next read')
  }
  // A turn of a busy machine lasts longer than the moment.
  expect(waited).toBeGreaterThan(10)
  one.arrived(LARGE_READ_BYTES)
  await nextTurn()
  await nextTurn()
  expect(seen.isPaused).toBe(false)
})
