// What all share: each bound of the whole server is in the table of docs/security.md, which says who has which share of it.

import { expect, test } from 'bun:test'
import { DEFAULT_BOUNDS } from '../support/bounded-server.ts'

/** Bounds of one head, connection, tunnel, client, token or address: what is above them harms nobody else. Where visitors share one, it has a row. */
const OF_ONE: ReadonlySet<string> = new Set([
  'maxHeadBytes',
  'maxHeaderCount',
  'maxTargetBytes',
  'maxHttp2Streams',
  'maxHttp2Resets',
  'maxHttp2Noise',
  'maxResponseTimeoutMs',
  'maxInterimAnswers',
  'maxCopyBodyBytes',
  'maxAddressVisitors',
  'maxAddressRate',
  'maxPipelinedBytes',
  'maxBodyBytes',
  'maxTunnels',
  'maxTokenTunnels',
  'maxTokenPorts',
  'maxTokenHosts',
  'maxTokenClients',
  'maxTokenStreams',
  'maxTokenBufferedBytes',
  'maxTokenRefusals',
  'maxTokenGuesses',
  'maxTokenWaits',
  'maxLinks',
  'maxTokenLinks',
  'maxFlowRate',
  'maxAskedFlows',
  'maxAddressStartupHeld',
  'maxHostsBelow',
  'maxCarrierBacklogBytes',
  'maxMessageBytes',
  'maxStreamWindowBytes',
  'maxSessionWindowBytes',
])

test('a bound that is one number for all has a row that says who has which share of it', async () => {
  const text = await Bun.file(`${import.meta.dir}/../../docs/security.md`).text()
  const [, table = ''] = /## Budgets of the whole server\n(.*?)\n## /s.exec(text) ?? []
  const rows = table.split('\n').filter(line => line.startsWith('| '))
  const shared = new Set(rows.flatMap(row => row.split('|')[1]?.match(/max\w+/g) ?? []))
  const bounds = Object.keys(DEFAULT_BOUNDS).filter(name => name.startsWith('max'))
  expect(bounds.filter(name => !OF_ONE.has(name) && !shared.has(name))).toEqual([])
  expect(bounds.filter(name => OF_ONE.has(name) && shared.has(name))).toEqual([])
  for (const row of rows) expect(row.split('|')[2]?.trim()).not.toBe('')
})
