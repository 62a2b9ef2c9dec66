// Streams whose bytes travel on links beside the carrier, in every order that two connections can bring about.

import { describe, expect, test } from 'bun:test'
import { Random } from '../support/random.ts'
import type { StreamLog } from '../support/sessions.ts'
import { LinkedPair } from '../support/wires.ts'

const pair = (links = 1) => {
  const made = new LinkedPair(new Random(1), 600_000, {})
  for (let count = 0; count < links; count++) made.addLink()
  made.settle()
  return made
}

/** Writes bulk that begins to travel on a link, and then some more there. */
const bulk = (log: StreamLog, fill: number): Uint8Array => {
  const bytes = new Uint8Array(100_000).fill(fill)
  log.stream?.write(bytes.subarray(0, 40_000))
  log.stream?.write(bytes.subarray(40_000))
  return bytes
}

describe('a link', () => {
  test('never gives the bytes of one stream to another, however late the carrier is', () => {
    const made = pair()
    const first = made.join()
    const second = made.join()
    const one = bulk(first.far, 1)
    made.settle()
    first.far.stream?.end()
    const two = bulk(second.far, 2)
    made.clock.tick()
    for (let steps = 0; steps < 50; steps++) made.stepLinks()
    made.settle()
    expect(Buffer.compare(first.near.bytes, one)).toBe(0)
    expect(Buffer.compare(second.near.bytes, two)).toBe(0)
    expect(made.serverLog.closes).toEqual([])
  })

  test('never gives them to another after a reset either', () => {
    const made = pair()
    const first = made.join()
    const second = made.join()
    const one = bulk(first.far, 1)
    made.settle()
    first.far.stream?.reset('ORIGIN_CLOSED')
    const two = bulk(second.far, 2)
    made.clock.tick()
    for (let steps = 0; steps < 50; steps++) made.stepLinks()
    made.settle()
    expect(Buffer.compare(first.near.bytes, one)).toBe(0)
    expect(first.near.resetWith).toBe('ORIGIN_CLOSED')
    expect(Buffer.compare(second.near.bytes, two)).toBe(0)
  })
})
