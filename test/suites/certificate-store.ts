// What every CertificateStore does, run against each of them.

import { describe, expect, test } from 'bun:test'
import type { CertificateStore, StoredCertificate, StoredOrder } from '../../src/store.ts'
import { rejection } from '../support/rejection.ts'

const certificate = (id: string, more: Partial<StoredCertificate> = {}): StoredCertificate => ({
  id,
  names: [id, `*.${id}`],
  cert: `cert of ${id}`,
  key: `key of ${id}`,
  notAfterMs: 9_000,
  renewAtMs: 6_000,
  lookAtMs: 3_000,
  ...more,
})

const order = (id: string, startedAtMs = 1_000): StoredOrder => ({
  id,
  names: [id],
  url: `https://ca.test/order/${id}`,
  key: `key of ${id}`,
  startedAtMs,
})

const LIMITS = { perName: 2, perNameMs: 1_000, total: 3, totalMs: 5_000 }

export function certificateStoreSuite(name: string, open: () => Promise<CertificateStore>): void {
  describe(`${name} as a certificate store`, () => {
    test('keeps one account, and forgets it when asked to', async () => {
      const store = await open()
      expect(await store.account()).toBeUndefined()
      await store.saveAccount({ url: 'https://ca.test/1', key: 'one' })
      await store.saveAccount({ url: 'https://ca.test/2', key: 'two' })
      expect(await store.account()).toEqual({ url: 'https://ca.test/2', key: 'two' })
      await store.removeAccount()
      expect(await store.account()).toBeUndefined()
      await store.close()
    })

    test('keeps one certificate for each id, with and without a window', async () => {
      const store = await open()
      expect(await store.certificate('a.test')).toBeUndefined()
      const window = { startMs: 4_000, endMs: 5_000 }
      await store.saveCertificate(certificate('a.test'))
      await store.saveCertificate(certificate('b.test', { window }))
      await store.saveCertificate(certificate('a.test', { cert: 'newer' }))
      expect(await store.certificate('a.test')).toEqual(certificate('a.test', { cert: 'newer' }))
      expect(await store.certificate('b.test')).toEqual(certificate('b.test', { window }))
      await store.removeCertificate('a.test')
      expect(await store.certificate('a.test')).toBeUndefined()
      await store.close()
    })

    test('a saved certificate settles its order and its refusal, and no others', async () => {
      const store = await open()
      for (const id of ['a.test', 'b.test']) {
        await store.saveOrder(order(id))
        await store.saveRefusal({ id, failures: 1, untilMs: 5_000, code: 'ACME_REFUSED', message: 'no' })
      }
      await store.saveCertificate(certificate('a.test'))
      expect([await store.order('a.test'), await store.refusal('a.test')]).toEqual([undefined, undefined])
      expect((await store.order('b.test'))?.id).toBe('b.test')
      expect((await store.refusal('b.test'))?.failures).toBe(1)
      await store.close()
    })

    test('says which certificates are due, the longest due first', async () => {
      const store = await open()
      expect(await store.nextLookAtMs()).toBeUndefined()
      await store.saveCertificate(certificate('late.test', { lookAtMs: 3_000 }))
      await store.saveCertificate(certificate('early.test', { lookAtMs: 2_000 }))
      await store.saveCertificate(certificate('far.test', { lookAtMs: 8_000 }))
      expect(await store.nextLookAtMs()).toBe(2_000)
      expect(await store.dueCertificates(1_999, 10)).toEqual([])
      expect(await store.dueCertificates(3_000, 10)).toEqual(['early.test', 'late.test'])
      expect(await store.dueCertificates(3_000, 1)).toEqual(['early.test'])
      await store.close()
    })

    test('reschedules a certificate, and makes none that is not there', async () => {
      const store = await open()
      await store.saveCertificate(certificate('a.test', { window: { startMs: 1, endMs: 2 } }))
      await store.reschedule('a.test', { renewAtMs: 7_000, lookAtMs: 6_500 })
      expect(await store.certificate('a.test')).toEqual(
        certificate('a.test', { renewAtMs: 7_000, lookAtMs: 6_500 }),
      )
      await store.reschedule('none.test', { renewAtMs: 7_000, lookAtMs: 6_500 })
      expect(await store.certificate('none.test')).toBeUndefined()
      await store.close()
    })

    test('lists orders under way, the oldest first', async () => {
      const store = await open()
      await store.saveOrder(order('b.test', 2_000))
      await store.saveOrder(order('a.test', 1_000))
      expect(await store.order('a.test')).toEqual(order('a.test', 1_000))
      expect((await store.orders(10)).map(({ id }) => id)).toEqual(['a.test', 'b.test'])
      expect((await store.orders(1)).map(({ id }) => id)).toEqual(['a.test'])
      await store.removeOrder('a.test')
      expect((await store.orders(10)).map(({ id }) => id)).toEqual(['b.test'])
      await store.close()
    })

    test('keeps the last refusal of a name until it is removed', async () => {
      const store = await open()
      const refusal = { id: 'a.test', failures: 3, untilMs: 9_000, code: 'ACME_REFUSED', message: 'no' }
      await store.saveRefusal({ ...refusal, failures: 2 })
      await store.saveRefusal(refusal)
      expect(await store.refusal('a.test')).toEqual(refusal)
      await store.removeRefusal('a.test')
      expect(await store.refusal('a.test')).toBeUndefined()
      await store.close()
    })

    test('admits orders up to the limit of a name, and says when the next is allowed', async () => {
      const store = await open()
      expect(await store.admitOrder('a.test', 100, LIMITS)).toBeUndefined()
      expect(await store.admitOrder('a.test', 300, LIMITS)).toBeUndefined()
      expect(await store.admitOrder('a.test', 400, LIMITS)).toBe(1_100)
      expect(await store.admitOrder('a.test', 1_099, LIMITS)).toBe(1_100)
      expect(await store.admitOrder('a.test', 1_100, LIMITS)).toBeUndefined()
      await store.close()
    })

    test('admits orders up to the limit of all names; 0 is no limit', async () => {
      const store = await open()
      for (const id of ['a.test', 'b.test', 'c.test'])
        expect(await store.admitOrder(id, 100, LIMITS)).toBeUndefined()
      expect(await store.admitOrder('d.test', 200, LIMITS)).toBe(5_100)
      expect(await store.admitOrder('d.test', 200, { ...LIMITS, total: 0 })).toBeUndefined()
      expect(await store.admitOrder('d.test', 5_100, LIMITS)).toBeUndefined()
      await store.close()
    })

    test('a claim keeps others out until it is released or its time has passed', async () => {
      const store = await open()
      expect(await store.claim('a.test', 'one', 0, 1_000)).toBe(true)
      expect(await store.claim('a.test', 'two', 500, 1_500)).toBe(false)
      expect(await store.claim('a.test', 'one', 500, 2_000)).toBe(true)
      expect(await store.claim('b.test', 'two', 500, 1_500)).toBe(true)
      await store.release('a.test', 'two')
      expect(await store.claim('a.test', 'two', 1_999, 3_000)).toBe(false)
      expect(await store.claim('a.test', 'two', 2_000, 3_000)).toBe(true)
      await store.release('a.test', 'two')
      expect(await store.claim('a.test', 'one', 2_001, 3_000)).toBe(true)
      await store.close()
    })

    test('forgets old orders, refusals and claims, and nothing else', async () => {
      const store = await open()
      const refusal = { failures: 1, code: 'ACME_REFUSED', message: 'no' }
      await store.saveCertificate(certificate('kept.test'))
      for (const [id, atMs] of [
        ['old.test', 1_000],
        ['new.test', 2_000],
      ] as const) {
        await store.saveOrder(order(id, atMs))
        await store.saveRefusal({ ...refusal, id, untilMs: atMs })
        await store.claim(id, 'one', 0, atMs)
      }
      await store.prune(2_000)
      expect((await store.orders(10)).map(({ id }) => id)).toEqual(['new.test'])
      expect([await store.refusal('old.test'), (await store.refusal('new.test'))?.failures]).toEqual([
        undefined,
        1,
      ])
      expect(await store.claim('old.test', 'two', 500, 3_000)).toBe(true)
      expect(await store.claim('new.test', 'two', 500, 3_000)).toBe(false)
      expect(await store.certificate('kept.test')).toEqual(certificate('kept.test'))
      await store.close()
    })

    test('refuses everything once it is closed', async () => {
      const store = await open()
      await store.close()
      for (const use of [
        store.account(),
        store.saveOrder(order('a.test')),
        store.admitOrder('a.test', 1, LIMITS),
      ]) {
        expect(await rejection(use)).toMatchObject({ code: 'STORE_FAILED' })
      }
    })
  })
}
