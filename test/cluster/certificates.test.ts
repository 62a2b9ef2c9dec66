// Certificates that the servers of a cluster share.

import { afterAll, expect, test } from 'bun:test'
import { openRedis } from '../../src/directories/redis.ts'
import { RedisCertificates } from '../../src/directories/redis-certificates.ts'
import type { CertificateStore, StoredCertificate } from '../../src/store.ts'
import { CopiedCertificates } from '../../src/stores/copied-certificates.ts'
import { certificateStoreSuite } from '../suites/certificate-store.ts'
import { MemoryCertificates } from '../support/memory-certificates.ts'
import { describeWith } from '../support/needs.ts'
import { Redis } from '../support/redis.ts'
import { rejection } from '../support/rejection.ts'

const AUTHORITY = 'https://ca.test/directory'

certificateStoreSuite(
  'CopiedCertificates',
  async () => new CopiedCertificates(new MemoryCertificates(), new MemoryCertificates()),
)

for (const program of ['redis-server', 'valkey-server'] as const)
  describeWith([program], program, () => {
    let redis: Promise<Redis> | undefined
    let count = 0
    const open = async (more: object = {}): Promise<RedisCertificates> => {
      redis ??= Redis.start(program)
      const { url } = await redis
      return RedisCertificates.open({ url, prefix: `p${++count}`, authority: AUTHORITY, ...more })
    }

    certificateStoreSuite('RedisCertificates', () => open())
    certificateStoreSuite('RedisCertificates with a secret', () => open({ secret: 's'.repeat(32) }))

    test('with a secret no key is in Redis, and without it no certificate is read', async () => {
      redis ??= Redis.start(program)
      const { url } = await redis
      const place = { url, prefix: 'sealed', authority: AUTHORITY }
      const sealed = await RedisCertificates.open({ ...place, secret: 's'.repeat(32) })
      await sealed.saveCertificate(certificate('a.test', 9e15))
      await sealed.saveAccount({ url: 'https://ca.test/1', key: 'the private key of the account' })
      const connection = await openRedis({ url })
      const dump = String(await connection.eval(DUMP, 0))
      connection.disconnect()
      expect(dump).toContain('sealed:acme:')
      expect(dump).not.toContain('private')
      for (const secret of [undefined, 't'.repeat(32)]) {
        const other = await RedisCertificates.open({ ...place, ...(secret !== undefined && { secret }) })
        expect(await rejection(other.certificate('a.test'))).toMatchObject({
          code: 'STORE_FAILED',
        })
        await other.close()
      }
      await sealed.close()
    })

    test('another authority has nothing of this one', async () => {
      const [one, other] = [
        await open({ prefix: 'both' }),
        await open({ prefix: 'both', authority: 'https://other.test/' }),
      ]
      await one.saveCertificate(certificate('a.test', 9e15))
      expect(await other.certificate('a.test')).toBeUndefined()
      await one.close()
      await other.close()
    })

    afterAll(async () => {
      await (await redis)?.[Symbol.asyncDispose]()
    })
  })

/** All strings, and all fields of hashes. */
const DUMP = `
local text = ''
for _, key in ipairs(redis.call('keys', '*')) do
  local kind = redis.call('type', key).ok
  text = text .. key .. ' '
  if kind == 'string' then text = text .. redis.call('get', key) end
  if kind == 'hash' then text = text .. table.concat(redis.call('hgetall', key), ' ') end
end
return text`

const certificate = (id: string, notAfterMs: number): StoredCertificate => ({
  id,
  names: [id],
  cert: `cert of ${id} until ${notAfterMs}`,
  key: `private key of ${id}`,
  notAfterMs,
  renewAtMs: 1,
  lookAtMs: 1,
})

/** A store that cannot be asked. */
const away = (): CertificateStore =>
  new Proxy({} as CertificateStore, { get: () => () => Promise.reject(new Error('away')) })

test('what a server has served it has while the others cannot be asked, and brings back when they have lost it', async () => {
  const own = new MemoryCertificates()
  const later = Date.now() + 60_000
  await new CopiedCertificates(own, away()).saveCertificate(certificate('a.test', later))
  expect(await new CopiedCertificates(own, away()).certificate('a.test')).toEqual(
    certificate('a.test', later),
  )
  expect(await rejection(new CopiedCertificates(own, away()).certificate('b.test'))).toMatchObject({
    message: 'away',
  })
  const empty = new MemoryCertificates()
  const copied = new CopiedCertificates(own, empty)
  expect(await copied.certificate('a.test')).toEqual(certificate('a.test', later))
  expect(await empty.certificate('a.test')).toEqual(certificate('a.test', later))
  // Another server has renewed it.
  await empty.saveCertificate(certificate('a.test', later + 1))
  expect((await copied.certificate('a.test'))?.notAfterMs).toBe(later + 1)
  expect((await own.certificate('a.test'))?.notAfterMs).toBe(later + 1)
  // One that has ended is not brought back.
  await own.saveCertificate(certificate('old.test', Date.now() - 1))
  expect(await copied.certificate('old.test')).toBeUndefined()
  expect(await empty.certificate('old.test')).toBeUndefined()
})
