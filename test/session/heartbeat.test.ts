// Signs of life: when a PING leaves, when a carrier is given up, and what the round trip is.

import { describe, expect, test } from 'bun:test'
import { Heartbeat } from '../../src/session/heartbeat.ts'
import { Clock } from '../support/clock.ts'

function heart(options = { pingIntervalMs: 10_000, deadAfterMs: 25_000 }) {
  const clock = new Clock()
  const pings: number[] = []
  let deaths = 0
  const heartbeat = new Heartbeat(
    clock,
    options,
    number => pings.push(number),
    () => deaths++,
  )
  return { clock, pings, heartbeat, deaths: () => deaths }
}

describe('heartbeat', () => {
  test('keeps quiet while anything is heard', () => {
    const { clock, pings, heartbeat, deaths } = heart()
    for (let second = 0; second < 120; second++) {
      heartbeat.heard()
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
