// Requests made from the OpenAPI document, and broken in all the ways that it allows: none of them gets a 5xx.

import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { addToken } from '../../../src/kept-tokens.ts'
import { OPEN_API } from '../../../src/parts/admin/open-api.ts'
import { SqliteOperations } from '../../../src/stores/sqlite-operations.ts'
import { SqliteTokens } from '../../../src/stores/sqlite-tokens.ts'
import { ADMIN_TOKEN, adminOptions } from '../../support/admin.ts'
import { OddRequests } from '../../support/odd-requests.ts'
import { folder } from '../../support/programs.ts'
import { Random } from '../../support/random.ts'
import { startTunnel } from '../../support/tunnel.ts'

const ROUNDS = 1_500
// The name of the tunnel comes often: requests end and ban it, and some have to reach it before.
const WORDS = [
  ...Array<string>(24).fill('app'),
  'x',
  '192.0.2.1',
  '192.0.2.0/24',
  'fe80::1',
  '2026-01-31T12:00:00Z',
]

test('no request that the schema describes, or nearly describes, gets a 5xx', async () => {
  const requests = new OddRequests(OPEN_API, new Random(20_261_123), WORDS)
  const store = new SqliteOperations(':memory:')
  await using dir = await folder('tokens')
  const tokens = new SqliteTokens(join(dir.path, 'tokens.db'))
  for (const name of ['app', 'x', '0', '1', '2', '127.0.0.1', '2026-01-01', 'NaN'])
    addToken(tokens, { name, forMs: undefined, scope: {} })
  const upgrade = { isSuccessor: false, run: () => Promise.resolve(1) }
  const admin = adminOptions({ store, audit: store, tokens, upgrade })
  await using tunnel = await startTunnel({ fetch: () => new Response('hello') }, { server: { admin } })
  const faults: string[] = []
  tunnel.server.on('error', error => faults.push(error.message))
  const seen = new Map<string, Set<number>>()
  for (let round = 0; round < ROUNDS; round++) {
    const { operation, target, method, headers, body } = requests.next()
    const answer = await fetch(`${tunnel.server.adminUrl}/api/v1${target}`, {
      method,
      headers: { ...headers, authorization: `Bearer ${ADMIN_TOKEN}` },
      ...(body !== undefined && { body }),
    })
    const text = await answer.text()
    if (answer.status >= 500) throw new Error(`${method} ${target} ${body ?? ''}: ${answer.status} ${text}`)
    if (answer.headers.get('content-type') === 'application/json') JSON.parse(text)
    const statuses = seen.get(operation) ?? new Set()
    seen.set(operation, statuses.add(answer.status))
  }
  expect(faults).toEqual([])
  // The fuzz reached every operation, and most of them in good order, too.
  expect(seen.size).toBe(requests.count)
  const good = [...seen.values()].filter(statuses => statuses.has(200) || statuses.has(201))
  expect(good.length).toBeGreaterThan(requests.count - 4)
}, 60_000)
