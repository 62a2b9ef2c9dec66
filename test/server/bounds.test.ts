// Bounds that no option changes: they grow with the limits that they depend on, and only tests make them small.

import { expect, test } from 'bun:test'
import { TunnelServer } from '../../src/index.ts'
import { settingsAfter } from '../../src/server/reload.ts'
import { boundsOf, FIXED_BOUNDS } from '../../src/server/settings/bounds.ts'
import { DEFAULT_LIMITS } from '../../src/server/settings/options.ts'
import { serverSettings } from '../../src/server/settings/settings.ts'

test('without options the fixed bounds are as they are written', () => {
  expect(boundsOf(DEFAULT_LIMITS)).toEqual({ ...DEFAULT_LIMITS, ...FIXED_BOUNDS })
})

test('a raised limit raises what is a part or a multiple of it, and a lower one lowers nothing', () => {
  const raised = boundsOf({
    ...DEFAULT_LIMITS,
    maxVisitors: 131_072,
    maxClients: 40_000,
    maxStreams: 8_192,
    maxTunnels: 100_000,
    maxFlows: 4_096,
    maxMessageBytes: 134_217_728,
  })
  expect(raised).toMatchObject({
    maxAllInputBytes: 1_073_741_824,
    maxTokenStreams: 131_072,
    maxAllStreams: 262_144,
    maxAllLinks: 32_768,
    maxPeerStreams: 32_768,
    maxTokenClients: 20_000,
    maxClientStreams: 16_384,
    maxTokenTunnels: 100_000,
    maxAllTunnels: 200_000,
    maxAllFlows: 65_536,
    maxUnfinishedMessageBytes: 268_435_456,
  })
  const low = { ...DEFAULT_LIMITS, maxVisitors: 3, maxClients: 1, maxStreams: 1, maxTunnels: 1, maxFlows: 1 }
  expect(boundsOf(low)).toEqual({ ...low, ...FIXED_BOUNDS })
})

test('no option names a fixed bound', () => {
  for (const name of Object.keys(FIXED_BOUNDS))
    expect(() => new TunnelServer({ limits: { [name]: 10 } })).toThrow(`limits has no option "${name}"`)
})

test('a bound that a test has made small stays so through a reload', () => {
  const small = serverSettings({}, { maxHellos: 4 })
  expect(settingsAfter(small, { limits: { maxHeadBytes: 2_000 } }).limits).toMatchObject({
    maxHellos: 4,
    maxHeadBytes: 2_000,
  })
})
