// The contract of kept tokens, for each implementation.

import { Database } from 'bun:sqlite'
import { afterAll, describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { SqliteTokens } from '../../src/stores/sqlite-tokens.ts'
import type { KeptToken, TokenStore } from '../../src/tokens.ts'

const folder = mkdtempSync(join(tmpdir(), 'localtunnels-tokens-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))
let files = 0

const token = (name: string, hash: string, rest: Partial<KeptToken> = {}): KeptToken => ({
  name,
  hash: hash.repeat(64),
  createdAtMs: 1,
  scope: {},
  ...rest,
})

describe.each<[string, () => TokenStore]>([
  ['in a file', () => new SqliteTokens(join(folder, `${++files}.db`))],
])('tokens %s', (_where, open) => {
  test('are listed by name, as they were added', () => {
    const store = open()
    const second = token('b', '2', {
      expiresAtMs: 5,
      scope: { names: ['b-*'], rate: { limit: 1, windowMs: 2 } },
    })
    expect([store.add(second), store.add(token('a', '1'))]).toEqual([true, true])
    expect(store.list()).toEqual([token('a', '1'), second])
    store.close()
  })

  test('have a name and a secret of their own', () => {
    const store = open()
    store.add(token('a', '1'))
    expect([store.add(token('a', '2')), store.add(token('b', '1'))]).toEqual([false, false])
    expect(store.list()).toEqual([token('a', '1')])
    store.close()
  })

  test('get another secret, are used, and are taken back', () => {
    const store = open()
    store.add(token('a', '1'))
    expect([store.rehash('a', '3'.repeat(64)), store.rehash('b', '4'.repeat(64))]).toEqual([true, false])
    store.used(
      new Map([
        ['a', 7],
        ['b', 8],
      ]),
    )
    expect(store.list()).toEqual([token('a', '3', { lastUsedAtMs: 7 })])
    expect([store.remove('a'), store.remove('a')]).toEqual([true, false])
    expect(store.list()).toEqual([])
    store.close()
  })
})

test('a file has a write-ahead log, and its version changes with what another process writes', () => {
  const path = join(folder, 'two.db')
  const [one, other] = [new SqliteTokens(path), new SqliteTokens(path)]
  const before = one.version()
  one.add(token('own', '1'))
  expect(one.version()).toBe(before)
  other.add(token('a', '2'))
  expect(one.version()).not.toBe(before)
  const database = new Database(path)
  expect(database.query('pragma journal_mode').get()).toEqual({ journal_mode: 'wal' })
  database.close()
  one.close()
  other.close()
})
