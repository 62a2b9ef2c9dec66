// Signs of life: when a PING leaves, when a carrier is given up, and what the round trip is.

import { describe, expect, test } from 'bun:test'
import { Heartbeat, type HeartbeatOptions } from '../../src/session/heartbeat.ts'
import { DEFAULT_BOUNDS } from '../support/bounded-server.ts'
import { Clock } from '../support/clock.ts'

function heart(
  options: HeartbeatOptions = { pingIntervalMs: 10_000, deadAfterMs: 25_000 },
  isAwaited: () => boolean = () => false,
) {
  const clock = new Clock()
  const pings: number[] = []
  let deaths = 0
  const heartbeat = new Heartbeat(
    clock,
    options,
    number => pings.push(number),
    () => deaths++,
    isAwaited,
  )
  return { clock, pings, heartbeat, deaths: () => deaths }
}

describe('heartbeat', () => {
  test('keeps quiet while anything is heard', () => {
    const { clock, pings, heartbeat, deaths } = heart()
    for (let second = 0; second < 120; second++) {
      heartbeat.hasHeard = true
      clock.advance(1000)
    }
    expect([pings.length, deaths()]).toEqual([0, 0])
  })

  test('pings after ten seconds of silence, and gives up after twenty-five', () => {
    const { clock, pings, deaths } = heart()
    clock.advance(9_900)
    expect(pings.length).toBe(0)
    clock.advance(200)
    expect(pings.length).toBe(1)
    clock.advance(14_800)
    expect(deaths()).toBe(0)
    clock.advance(200)
    expect([deaths(), clock.timerCount]).toEqual([1, 0])
  })

  describe('with a visitor that waits', () => {
    const { pingIntervalMs, deadAfterMs, hungAfterMs } = DEFAULT_BOUNDS
    const options = { pingIntervalMs, deadAfterMs, hungAfterMs }

    test.each([0, 1, 1_700, 2_499, 9_000, 13_000])(
      'who came %d ms after the last sign of life: a ping at once, and an end within 13 s',
      ms => {
        let isAwaited = false
        const { clock, pings, deaths } = heart(options, () => isAwaited)
        clock.advance(ms)
        const before = pings.length
        isAwaited = true
        clock.advance(2_501)
        expect(pings.length).toBeGreaterThan(before)
        clock.advance(4_500)
        expect(deaths()).toBe(0)
        clock.advance(13_000 - 7_001)
        expect(deaths()).toBe(1)
      },
    )

    test('who came right after a sign of life waits no longer', () => {
      const { clock, heartbeat, deaths } = heart(options, () => true)
      heartbeat.hasHeard = true
      clock.advance(12_600)
      expect(deaths()).toBe(1)
    })

    test('for an answer that takes minutes it lives on, if it answers pings', () => {
      const { clock, pings, heartbeat, deaths } = heart(options, () => true)
      for (let second = 0; second < 600; second++) {
        const last = pings.at(-1)
        clock.advance(1_000)
        if (pings.at(-1) !== last) heartbeat.hasHeard = true
      }
      expect(deaths()).toBe(0)
      // One for each silence, not one for each look.
      expect(pings.length).toBeLessThan(150)
    })

    test('a wait that ends does not shorten the life of a silent carrier', () => {
      let isAwaited = true
      const { clock, deaths } = heart(options, () => isAwaited)
      clock.advance(9_000)
      isAwaited = false
      clock.advance(15_000)
      expect(deaths()).toBe(0)
      clock.advance(1_500)
      expect(deaths()).toBe(1)
    })
  })

  test('knows the smallest round trip', () => {
    const { clock, pings, heartbeat } = heart()
    for (const ms of [40, 15, 90]) {
      heartbeat.ping()
      clock.advance(ms)
      heartbeat.answered(pings.at(-1) ?? 0)
    }
    expect(heartbeat.roundTripMs).toBe(15)
  })

  test('takes an answer within one tick of the clock for a short round trip, not for none', () => {
    const { pings, heartbeat } = heart()
    heartbeat.ping()
    heartbeat.answered(pings[0] ?? 0)
    expect(heartbeat.roundTripMs).toBeGreaterThan(0)
  })

  test('tells of an answer once, and ignores one that nobody waits for', () => {
    const { pings, heartbeat } = heart()
    let answers = 0
    heartbeat.ping(() => answers++)
    heartbeat.answered(99)
    expect(answers).toBe(0)
    heartbeat.answered(pings[0] ?? 0)
    heartbeat.answered(pings[0] ?? 0)
    expect(answers).toBe(1)
  })

  test('remembers eight unanswered pings and no more', () => {
    const { pings, heartbeat } = heart()
    const answered: number[] = []
    for (let count = 0; count < 9; count++) heartbeat.ping(() => answered.push(count))
    heartbeat.answered(pings[0] ?? 0)
    expect(answered).toEqual([])
    heartbeat.answered(pings[1] ?? 0)
    expect(answered).toEqual([1])
  })

  test('stopped while it pings leaves no timer', () => {
    const clock = new Clock()
    const heartbeat: Heartbeat = new Heartbeat(
      clock,
      { pingIntervalMs: 10, deadAfterMs: 25 },
      () => heartbeat.stop(),
      () => {},
    )
    clock.advance(100)
    expect(clock.timerCount).toBe(0)
  })
})
