// The log lines of refused clients: one for each that matters, few for one that never stops.

import { expect, test } from 'bun:test'
import type { CliEvent, Output } from '../../src/cli/output.ts'
import { Refusals } from '../../src/cli/server/refusals.ts'

function recorded() {
  const events: CliEvent[] = []
  const output: Output = { event: event => events.push(event), block() {}, close() {} }
  const clock = { now: 5_000 }
  const refusals = new Refusals(output, () => clock.now)
  const refuse = (remoteAddress: string, code = 'TOKEN_REFUSED') =>
    refusals.refused({ remoteAddress, wire: 'streams', code })
  return { events, clock, refuse }
}

test('the first of an address has a line at once, the next ones a minute later, counted', () => {
  const { events, clock, refuse } = recorded()
  for (let index = 0; index < 100; index++) refuse('192.0.2.1')
  clock.now += 60_000
  refuse('192.0.2.1')
  const line = {
    type: 'refused',
    code: 'TOKEN_REFUSED',
    remoteAddress: '192.0.2.1',
    wire: 'streams',
  } as const
  expect(events).toEqual([
    { ...line, count: 1 },
    { ...line, count: 100 },
  ])
})

test('each address and each code has its own; names that are taken have none', () => {
  const { events, refuse } = recorded()
  refuse('192.0.2.1')
  refuse('192.0.2.2')
  refuse('192.0.2.2', 'CLIENT_LIMIT')
  refuse('192.0.2.2', 'NAME_TAKEN')
  refuse('192.0.2.2', 'PORT_TAKEN')
  expect(events.length).toBe(3)
})

test('ever new addresses have five lines a second', () => {
  const { events, clock, refuse } = recorded()
  for (let index = 0; index < 5_000; index++) refuse(`10.0.${index >> 8}.${index & 255}`)
  expect(events.length).toBe(5)
  clock.now += 1_000
  for (let index = 0; index < 5_000; index++) refuse(`10.1.${index >> 8}.${index & 255}`)
  expect(events.length).toBe(10)
})
