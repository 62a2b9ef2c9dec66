// The memory in which answers wait for their rest: how much of it there is, and that it is used again.

import { describe, expect, test } from 'bun:test'
import { type HeldAnswer, HeldAnswers } from '../../src/accelerator/held-answer.ts'
import { canSplice } from '../../src/accelerator/threads.ts'
import { MAX_LANE_ANSWER_BYTES } from '../../src/accelerator/trunk.ts'
import { testKernel } from '../support/trunk.ts'

const MAX_BYTES = 16_777_216
const bytes = Uint8Array.from({ length: MAX_LANE_ANSWER_BYTES }, (_, index) => index)

/** As many as there is room for, each of `count` bytes. */
function fill(answers: HeldAnswers, count: number): HeldAnswer[] {
  const held: HeldAnswer[] = []
  for (;;) {
    const one = answers.hold(bytes, 0, count)
    if (one === undefined) return held
    held.push(one)
  }
}

describe.skipIf(!canSplice())('answers that are held', () => {
  test('have 16 MB in all, with the room that they do not fill; what is given back is used again', () => {
    const answers = new HeldAnswers(testKernel())
    for (const count of [1, 100_000, 1]) {
      const held = fill(answers, count)
      const roomBytes = held[0]?.room.bytes.length ?? 0
      expect(held.length).toBe(Math.floor(MAX_BYTES / roomBytes))
      // A short one has a small room.
      expect(roomBytes).toBeLessThan(count === 1 ? 20_000 : 140_000)
      for (const one of held) answers.give(one)
    }
  })

  test('grow, and stay what they are', () => {
    const answers = new HeldAnswers(testKernel())
    const held = answers.hold(bytes, 0, 10_000)
    if (held === undefined) throw new Error('no room')
    for (const [from, to] of [
      [10_000, 16_000],
      [16_000, 90_000],
      [90_000, MAX_LANE_ANSWER_BYTES],
    ] as const)
      expect(answers.add(held, bytes, from, to)).toBe(true)
    expect(Buffer.compare(held.room.bytes.subarray(held.start, held.end), bytes)).toBe(0)
    expect(answers.add(held, bytes, 0, 1)).toBe(false)
    expect(answers.hold(bytes, 0, MAX_LANE_ANSWER_BYTES + 1)).toBeUndefined()
    answers.give(held)
  })

  test('one that cannot grow is not changed', () => {
    const answers = new HeldAnswers(testKernel())
    const [first] = fill(answers, 1)
    if (first === undefined) throw new Error('no room')
    expect(answers.add(first, bytes, 1, 50_000)).toBe(false)
    expect(first.end - first.start).toBe(1)
    expect(answers.add(first, bytes, 1, 10_000)).toBe(true)
  })
})
