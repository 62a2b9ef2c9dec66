// The certificate stores: what they share, and what a file adds.

import { expect, test } from 'bun:test'
import { chmod, stat } from 'node:fs/promises'
import { SqliteCertificates } from '../../src/stores/sqlite-certificates.ts'
import { certificateStoreSuite } from '../suites/certificate-store.ts'
import { folder } from '../support/programs.ts'

const CA = 'https://ca.test/directory'

certificateStoreSuite('SqliteCertificates', async () => new SqliteCertificates(':memory:', CA))

test('the SQLite file and those beside it are for its owner only, also when it was open to others', async () => {
  await using dir = await folder('certificates')
  const path = `${dir.path}/state/certificates.db`
  const modes = async () => {
    const files = [path, `${path}-wal`, `${path}-shm`]
    return Promise.all(files.map(async file => (await stat(file)).mode & 0o777))
  }
  const first = new SqliteCertificates(path, CA)
  await first.saveAccount({ url: 'https://ca.test/1', key: 'secret' })
  expect(await modes()).toEqual([0o600, 0o600, 0o600])
  expect((await stat(`${dir.path}/state`)).mode & 0o777).toBe(0o700)
  await first.close()
  await chmod(path, 0o644)
  const second = new SqliteCertificates(path, CA)
  expect(await second.account()).toEqual({ url: 'https://ca.test/1', key: 'secret' })
  expect(await modes()).toEqual([0o600, 0o600, 0o600])
  await second.close()
})

test('each authority of a SQLite file sees only what is its own', async () => {
  await using dir = await folder('certificates')
  const staging = new SqliteCertificates(`${dir.path}/c.db`, 'https://staging.test/directory')
  const production = new SqliteCertificates(`${dir.path}/c.db`, CA)
  await staging.saveAccount({ url: 'https://staging.test/1', key: 'one' })
  await staging.saveOrder({ id: 'a.test', names: ['a.test'], url: 'x', key: 'k', startedAtMs: 1 })
  expect(await production.account()).toBeUndefined()
  expect(await production.orders(10)).toEqual([])
  await staging.close()
  await production.close()
})

test('two processes that share a SQLite file do not hold one claim both', async () => {
  await using dir = await folder('certificates')
  const one = new SqliteCertificates(`${dir.path}/c.db`, CA)
  const two = new SqliteCertificates(`${dir.path}/c.db`, CA)
  expect(await one.claim('a.test', 'one', 0, 1_000)).toBe(true)
  expect(await two.claim('a.test', 'two', 0, 1_000)).toBe(false)
  await one.close()
  await two.close()
})

test('a file that is no database, or of a newer version, is refused and left as it is', async () => {
  await using dir = await folder('certificates')
  const path = `${dir.path}/c.db`
  const text = 'not a database, although long enough to look like the head of one: '.repeat(40)
  await Bun.write(path, text)
  expect(() => new SqliteCertificates(path, CA)).toThrow(expect.objectContaining({ code: 'STORE_FAILED' }))
  expect(await Bun.file(path).text()).toBe(text)
  const { Database } = await import('bun:sqlite')
  const newer = new Database(`${dir.path}/newer.db`)
  newer.run('pragma user_version = 2')
  newer.close()
  expect(() => new SqliteCertificates(`${dir.path}/newer.db`, CA)).toThrow(/newer version/)
})
