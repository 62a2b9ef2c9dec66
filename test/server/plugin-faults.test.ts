// Plugins that fail: for each the first fault is told at once, the others are counted.

import { expect, test } from 'bun:test'
import { PluginFaults } from '../../src/server/context/plugin-faults.ts'
import { Deadlines } from '../../src/server/limits/deadlines.ts'
import { eventually } from '../support/events.ts'

const ACTION = ' Correct the plugin, or what it waits for.'

function faultsOf(everyMs?: number) {
  const deadlines = new Deadlines(() => {})
  const told: string[] = []
  const faults = new PluginFaults(deadlines, error => told.push(error.message.replace(ACTION, '')), everyMs)
  const fail = (plugin: object, text: string) => faults.report(plugin, 'PLUGIN_FAILED', text, undefined)
  return { deadlines, told, faults, fail }
}

test('of each plugin the first is told at once, the others with their count and the last of them', () => {
  const { told, faults, fail } = faultsOf()
  const [one, other] = [{}, {}]
  fail(one, 'The first.')
  for (let count = 0; count < 9; count++) fail(one, `Number ${count}.`)
  fail(other, 'Of another.')
  expect(told).toEqual(['The first.', 'Of another.'])
  faults.flush()
  expect(told.slice(2)).toEqual(['Number 8. Failures since the last report: 9.'])
  faults.flush()
  expect(told).toHaveLength(3)
})

test('the count comes when its time is over, again while there are more, and then the next is a first one', async () => {
  const { deadlines, told, fail } = faultsOf(1)
  const plugin = {}
  deadlines.start()
  fail(plugin, 'A.')
  for (const text of ['B.', 'C.']) {
    const before = told.length
    fail(plugin, text)
    expect(told).toHaveLength(before)
    await eventually(() => told.length > before, 'the count')
    expect(told.at(-1)).toBe(`${text} Failures since the last report: 1.`)
  }
  const start = deadlines.tick
  await eventually(() => deadlines.tick > start + 3, 'a time without failures')
  expect(told).toHaveLength(3)
  fail(plugin, 'D.')
  expect(told.at(-1)).toBe('D.')
  deadlines.stop()
})

test('of very many plugins the last are counted together', () => {
  const { told, faults, fail } = faultsOf()
  for (let count = 0; count < 1_010; count++) fail({}, `Number ${count}.`)
  expect(told).toHaveLength(1_001)
  faults.flush()
  expect(told.at(-1)).toBe('Number 1009. Failures since the last report: 9.')
})
