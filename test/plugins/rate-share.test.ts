// One server's share of a rate: what lanes and the main thread take of it together is never more than was granted.

import { expect, test } from 'bun:test'
import { RateShare } from '../../src/plugins/rate-share.ts'

/** As a lane does it. */
function takeInThread(left: Int32Array): boolean {
  if (Atomics.sub(left, 0, 1) > 0) return true
  Atomics.add(left, 0, 1)
  return false
}

/** Grants all that is asked for, at a time that the test says. */
function shareOf(limit: number) {
  const clock = { now: 0, isAnswered: true }
  const asked: number[] = []
  const share = new RateShare('a', { limit, windowMs: 1_000 }, async (one, wanted) => {
    asked.push(wanted)
    if (clock.isAnswered) one.grant(wanted, clock.now)
  })
  return { share, asked, clock }
}

/** Uses it up as often as it takes to get a share of this size. */
async function grown({ share, clock }: ReturnType<typeof shareOf>, size: number): Promise<void> {
  while (share.left[0]! < size) {
    while (share.take(clock.now));
    await share.more()
  }
}

test('lanes get no share that is too small, and never more than a tenth of the rate', async () => {
  const small = shareOf(100)
  for (let round = 0; round < 20; round++) {
    while (small.share.take(0));
    await small.share.more()
  }
  expect(Math.max(...small.asked)).toBe(10)
  expect(small.share.lend()).toBeUndefined()

  const large = shareOf(10_000)
  await grown(large, 64)
  expect(large.share.lend()).toBe(large.share)
  // The next lane needs as many again.
  large.share.began()
  expect(large.share.left[0]).toBeLessThan(128)
  expect(large.share.lend()).toBeUndefined()
  large.share.ended()
  expect(large.share.lend()).toBe(large.share)
})

test('what lanes and the main thread take together was granted, in every order', async () => {
  const one = shareOf(5_000)
  const { share, asked, clock } = one
  await grown(one, 64)
  let passed = asked.reduce((sum, count) => sum + count, 0) - share.left[0]!
  let inLanes = 0
  let seed = 7
  for (let step = 0; step < 20_000; step++) {
    seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648
    const kind = (seed >> 8) % 20
    if (kind === 0) clock.now += (seed >> 16) % 300
    else if (kind === 1) share.renew(clock.now)
    else if (kind === 2) await share.more()
    else if (kind < 9) passed += Number(share.take(clock.now))
    else if (takeInThread(share.left)) {
      passed++
      inLanes++
    }
    const granted = asked.reduce((sum, count) => sum + count, 0)
    expect(passed).toBeLessThanOrEqual(granted)
    expect(share.left[0]).toBeLessThanOrEqual(500)
    asked.splice(0, asked.length, granted)
  }
  expect(inLanes).toBeGreaterThan(1_000)
})

test('a lane that takes much is ahead of its end: more is asked for while some is left, once at a time', async () => {
  const one = shareOf(100_000)
  const { share, asked } = one
  await grown(one, 1_000)
  const before = asked.length
  share.renew(1)
  expect(asked.length).toBe(before)
  for (let count = 0; count < 600; count++) takeInThread(share.left)
  share.renew(2)
  share.renew(2)
  expect(asked.length).toBe(before + 1)
  expect(asked.at(-1)).toBe(1_200)
  await share.more()
})

test('a share that waits for longer than a second is given up, also by lanes', async () => {
  const one = shareOf(10_000)
  const { share, clock } = one
  await grown(one, 64)
  clock.isAnswered = false
  share.renew(999)
  expect(takeInThread(share.left)).toBe(true)
  share.renew(1_000)
  expect(takeInThread(share.left)).toBe(false)
  expect(share.take(1_000)).toBe(false)
})
