// The fewest faults with which a run still breaks what it broke.

import { type Result, simulate } from './scenario.ts'

/** Leaves one fault after the other out, and again as long as that helps. */
export function shrink(seed: number, first: Result): Result {
  const without = new Set<number>()
  let smallest = first
  const kind = kindOf(first)
  for (let hasHelped = true; hasHelped; ) {
    hasHelped = false
    for (let number = first.faultCount - 1; number >= 0; number--) {
      if (without.has(number)) continue
      without.add(number)
      const result = simulate(seed, without)
      if (kindOf(result) === kind) {
        smallest = result
        hasHelped = true
      } else without.delete(number)
    }
  }
  return smallest
}

/** What was broken first, without what differs from run to run. */
function kindOf({ broken }: Result): string {
  return (broken[0] ?? '').replace(/^[\d.]+ s: /, '').replace(/\w*\d\w*/g, '')
}
