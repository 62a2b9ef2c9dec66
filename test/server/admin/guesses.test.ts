// Wrong tokens at the admin listener: counted, told, written down, and slowed down as those of clients are.

import { expect, test } from 'bun:test'
import { AdminGateway } from '../../../src/parts/admin/gateway.ts'
import { SqliteOperations } from '../../../src/stores/sqlite-operations.ts'
import { ADMIN_TOKEN, adminOptions, askAdmin, metricsOf, sampleOf } from '../../support/admin.ts'
import { DEFAULT_BOUNDS } from '../../support/bounded-server.ts'
import { startServer } from '../../support/tunnel.ts'

const limits = { ...DEFAULT_BOUNDS, maxTokenGuesses: 3, tokenDelayMs: 300, maxTokenWaits: 2 }

test('they are counted and written down, and then each token of the address waits, the right one too', async () => {
  const audit = new SqliteOperations(':memory:')
  await using server = await startServer({ admin: adminOptions({ audit }), limits })
  const refused: unknown[] = []
  server.on('refused', event => refused.push(event))
  const wrong = () => askAdmin(server, '/status', { token: 'a-wrong-token' })
  for (let guess = 0; guess < 3; guess++) expect((await wrong()).status).toBe(401)
  // No token is no guess.
  expect((await fetch(`${server.adminUrl}/api/v1/status`)).status).toBe(401)
  const event = { remoteAddress: '127.0.0.1', wire: 'admin', code: 'ADMIN_REFUSED', kind: 'admin' }
  expect(refused).toEqual([event, event, event])
  const before = performance.now()
  expect((await askAdmin(server, '/status')).status).toBe(200)
  expect(performance.now() - before).toBeGreaterThan(95)
  const all = await Promise.all([1, 2, 3, 4].map(wrong))
  expect(all.map(({ status }) => status).toSorted((one, other) => one - other)).toEqual([401, 401, 429, 429])
  expect(all.find(({ status }) => status === 429)?.body.error.code).toBe('TOO_MANY_REFUSALS')
  const metrics = await metricsOf(server)
  expect(sampleOf(metrics, 'localtunnels_failed_total{tunnel="",code="ADMIN_REFUSED"}')).toBe(5)
  const written = audit.entries(Number.MAX_SAFE_INTEGER, 10)
  expect(written.map(({ action, actor, detail }) => `${action} ${actor} ${detail}`)).toContain(
    'client.refuse 127.0.0.1 ADMIN_REFUSED',
  )
  audit.close()
})

test('behind a trusted proxy, each address that it names waits by itself', async () => {
  await using server = await startServer({ admin: adminOptions(), limits, trustedProxies: ['127.0.0.1'] })
  const refused: string[] = []
  server.on('refused', ({ remoteAddress }) => refused.push(remoteAddress))
  const ask = async (token: string, forwarded: string) => {
    const headers = { authorization: `Bearer ${token}`, 'x-forwarded-for': forwarded }
    return { forwarded, status: (await fetch(`${server.adminUrl}/api/v1/status`, { headers })).status }
  }
  // What a stranger says in front does not count.
  for (let guess = 0; guess < 3; guess++) await ask('wrong', `198.51.100.${guess}, 192.0.2.1`)
  expect(refused).toEqual(['192.0.2.1', '192.0.2.1', '192.0.2.1'])
  const all = [ask('wrong', '192.0.2.1'), ask(ADMIN_TOKEN, '192.0.2.2')]
  expect(await Promise.race(all)).toEqual({ forwarded: '192.0.2.2', status: 200 })
  await Promise.all(all)
})

test('so are those for the listener of all workers, each address by itself', async () => {
  const refused: string[] = []
  const gateway = new AdminGateway({
    members: () => [],
    token: ADMIN_TOKEN,
    memberToken: 'of-members',
    upgrade: { isSuccessor: false, run: () => Promise.reject(new Error('none')) },
    limits: () => limits,
    refused: (address, code) => refused.push(`${address} ${code}`),
    failed: () => {},
  })
  const ask = async (token: string, address: string) => {
    const request = new Request('http://127.0.0.1/api/v1/none', {
      headers: { authorization: `Bearer ${token}` },
    })
    const { status } = await gateway.fetch(request, address)
    return { status, address }
  }
  for (let guess = 0; guess < 3; guess++) expect((await ask('wrong', '192.0.2.1')).status).toBe(401)
  expect(refused).toEqual(Array.from({ length: 3 }, () => '192.0.2.1 ADMIN_REFUSED'))
  const all = [ask('wrong', '192.0.2.1'), ask(ADMIN_TOKEN, '192.0.2.2')]
  expect((await Promise.race(all)).address).toBe('192.0.2.2')
  await Promise.all(all)
})
