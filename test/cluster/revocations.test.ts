// A token that one server takes back opens nothing at any server of the cluster.

import { describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import type { TunnelServerOptions } from '../../src/server/settings/options.ts'
import { SqliteTokens } from '../../src/stores/sqlite-tokens.ts'
import type { TokenStore } from '../../src/tokens.ts'
import type { TunnelServer } from '../../src/tunnel-server.ts'
import { adminOptions, askAdmin } from '../support/admin.ts'
import { TestCluster } from '../support/clusters.ts'
import { type Directories, memoryDirectories, redisDirectories } from '../support/directories.ts'
import { codeOf, eventually, next } from '../support/events.ts'
import { describeWith } from '../support/needs.ts'
import { folder } from '../support/programs.ts'

const open = () => new Response('open')
const hashOf = (token: string) => new Bun.CryptoHasher('sha256').update(token).digest('hex')
const keep = (store: TokenStore, name: string, token: string) =>
  store.add({ name, hash: hashOf(token), createdAtMs: Date.now(), scope: {} })
const tokensOf = (store: TokenStore): Pick<TunnelServerOptions, 'tokens'> => ({
  tokens: store.list().map(({ name, hash }) => ({ name, tokenHash: hash })),
})

function suite(directories: () => Promise<Directories>): void {
  test('a token taken back, or given another secret, at one server is refused at the others', async () => {
    await using dir = await folder('revocations')
    await using kept = await directories()
    const paths = ['a.db', 'b.db', 'c.db'].map(name => join(dir.path, name))
    const stores = paths.map(path => new SqliteTokens(path))
    const [ofA, ofB, ofC] = stores as [SqliteTokens, SqliteTokens, SqliteTokens]
    for (const store of stores)
      for (const name of ['first', 'second', 'third', 'stays']) keep(store, name, `token-${name}`)
    {
      await using cluster = new TestCluster({}, kept.open)
      const a = await cluster.server({ ...tokensOf(ofA), admin: adminOptions({ tokens: ofA }) })
      const b = await cluster.server({ ...tokensOf(ofB), cluster: { tokens: ofB } })
      const clientOf = (server: TunnelServer, name: string) =>
        cluster.client({ server: server.url, token: `token-${name}`, reconnect: false, fetch: open })
      const [first, second, third, stays] = [
        await clientOf(b, 'first'),
        await clientOf(b, 'second'),
        await clientOf(b, 'third'),
        await clientOf(b, 'stays'),
      ]
      let hasEnded = false
      stays.once('close', () => {
        hasEnded = true
      })
      const from = performance.now()
      // By the admin API, and by another process with the same file.
      const ends = [next(first, 'close'), next(second, 'close'), next(third, 'close')]
      await askAdmin(a, '/tokens/first', { method: 'DELETE' })
      await askAdmin(a, '/tokens/second/rotate', { method: 'POST' })
      const command = new SqliteTokens(paths[0]!)
      command.remove('third')
      command.close()
      await Promise.all(ends)
      expect(performance.now() - from).toBeLessThan(1_500)
      for (const name of ['first', 'second', 'third'])
        expect(await codeOf(clientOf(b, name)), name).toBe('TOKEN_REFUSED')
      expect(hasEnded).toBe(false)
      // The store of the other has what the first has, the new secret included.
      const content = (store: TokenStore) => store.list().map(({ name, hash }) => `${name} ${hash}`)
      await eventually(() => content(ofB).length === 2, 'the tokens to leave the store')
      expect(content(ofB)).toEqual(content(ofA))
      expect(content(ofC)).toHaveLength(4)
      const c = await cluster.server({ ...tokensOf(ofC), cluster: { tokens: ofC } })
      for (const name of ['first', 'second', 'third'])
        expect(await codeOf(clientOf(c, name)), name).toBe('TOKEN_REFUSED')
      await clientOf(c, 'stays')
      expect(content(ofC)).toEqual(content(ofA))
      // A reload has other tokens, and refuses the same.
      await c.reload({
        tokens: ['token-first', 'token-stays'],
        cluster: { directory: await kept.open(), tokens: ofC },
      })
      expect(await codeOf(clientOf(c, 'first'))).toBe('TOKEN_REFUSED')
    }
    for (const store of stores) store.close()
  })
}

describe('with a directory in memory', () => suite(memoryDirectories))
for (const program of ['redis-server', 'valkey-server'] as const)
  describeWith([program], program, () => suite(() => redisDirectories(program)))
