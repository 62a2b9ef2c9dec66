// Tokens by the admin API: shown once, never again, and written down.

import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { connectTo, TunnelClient } from '../../../src/index.ts'
import { SqliteOperations } from '../../../src/stores/sqlite-operations.ts'
import { SqliteTokens } from '../../../src/stores/sqlite-tokens.ts'
import { adminOptions, askAdmin } from '../../support/admin.ts'
import { folder } from '../../support/programs.ts'
import { startServer } from '../../support/tunnel.ts'

test('made, listed without its secret, given another, taken back', async () => {
  await using dir = await folder('tokens')
  const tokens = new SqliteTokens(join(dir.path, 'tokens.db'))
  const audit = new SqliteOperations(':memory:')
  await using server = await startServer({ admin: adminOptions({ tokens, audit }) })
  const wish = { name: 'ci', names: ['pr-*'], kinds: ['http'], forSeconds: 3_600 }
  const made = await askAdmin(server, '/tokens', { method: 'POST', body: wish })
  expect(made).toMatchObject({
    status: 201,
    body: { name: 'ci', token: expect.stringMatching(/^lt_.{43}$/) },
  })
  const listed = await askAdmin(server, '/tokens')
  expect(listed.body).toMatchObject({
    isKept: true,
    tokens: [{ name: 'ci', scope: { names: ['pr-*'], kinds: ['http'] } }],
  })
  expect(JSON.stringify(listed.body)).not.toMatch(/lt_|hash/)
  const { body: rotated } = await askAdmin(server, '/tokens/ci/rotate', { method: 'POST' })
  expect(rotated.token).not.toBe(made.body.token)
  expect((await askAdmin(server, '/tokens/ci', { method: 'DELETE' })).body).toEqual({ revoked: 'ci' })
  expect(tokens.list()).toEqual([])
  expect(
    audit.entries(Number.MAX_SAFE_INTEGER, 10).map(({ action, subject }) => `${action} ${subject}`),
  ).toEqual(['token.revoke ci', 'token.rotate ci', 'token.add ci'])
  tokens.close()
  audit.close()
})

test('what cannot be is said, and nothing is made', async () => {
  await using dir = await folder('tokens')
  const tokens = new SqliteTokens(join(dir.path, 'tokens.db'))
  await using server = await startServer({ admin: adminOptions({ tokens }) })
  for (const body of [
    {},
    { name: 'a b' },
    { name: '' },
    { name: 'x', names: 'shop' },
    { name: 'x', names: ['('] },
    { name: 'x', kinds: ['ftp'] },
    { name: 'x', forSeconds: 0 },
    { name: 'x', reserve: 'yes' },
    { name: 'x', reserve: true, names: ['shop-*'] },
  ])
    expect([body, (await askAdmin(server, '/tokens', { method: 'POST', body })).status]).toEqual([body, 400])
  expect(tokens.list()).toEqual([])
  for (const [method, path] of [
    ['DELETE', '/tokens/none'],
    ['POST', '/tokens/none/rotate'],
  ] as const)
    expect((await askAdmin(server, path, { method })).status).toBe(404)
  await using alone = await startServer({ admin: adminOptions() })
  expect((await askAdmin(alone, '/tokens')).body).toEqual({ isKept: false, tokens: [] })
  expect((await askAdmin(alone, '/tokens', { method: 'POST', body: { name: 'x' } })).body).toMatchObject({
    error: { code: 'ADMIN_INVALID', message: expect.stringContaining('--tokens-db') },
  })
  tokens.close()
})

test('who connects to a private service is written down, with the name of the token', async () => {
  const audit = new SqliteOperations(':memory:')
  const tokens = ['share', { token: 'connect', name: 'anna', connect: ['db'] }]
  await using server = await startServer({ tokens, admin: adminOptions({ audit }) })
  const url = `http://127.0.0.1:${server.port}`
  await using sharing = new TunnelClient({ server: url, token: 'share' })
  await sharing.tcp({ port: 1, private: 'db' })
  const end = await connectTo({ name: 'db', server: url, token: 'connect' })
  await end.close()
  await connectTo({ name: 'dc', server: url, token: 'connect' }).catch(() => {})
  expect(
    audit
      .entries(Number.MAX_SAFE_INTEGER, 10)
      .map(({ action, actor, subject, detail }) => [action, actor, subject, detail]),
  ).toEqual([
    ['client.refuse', '127.0.0.1', 'tcp:dc', 'NOT_ALLOWED'],
    ['private.end', 'server', 'tcp:db', 'released'],
    ['private.connect', 'anna', 'tcp:db', 'streams from 127.0.0.1'],
    ['tunnel.open', '127.0.0.1', 'tcp:db', 'streams from 127.0.0.1'],
  ])
  audit.close()
})
