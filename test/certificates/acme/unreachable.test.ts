// An authority that is away, and comes back: the issuer says so, goes on serving, and has the certificate later.

import { expect, test } from 'bun:test'
import { SqliteCertificates } from '../../../src/stores/sqlite-certificates.ts'
import { startIssuing } from '../../support/issuing.ts'
import { startNameServer } from '../../support/name-server.ts'
import { testWith } from '../../support/needs.ts'
import { startPebble } from '../../support/pebble.ts'
import { freePort } from '../../support/ports.ts'
import { folder } from '../../support/programs.ts'
import { within } from '../../support/within.ts'

testWith(
  ['pebble', 'knotd', 'openssl'],
  'an authority that is away is reported, waited for, and used when it is back',
  async () => {
    await using dir = await folder('unreachable')
    await using dns = await startNameServer({ 'tunnel.test.': '' })
    const httpPort = freePort()
    const pebble = await startPebble({ dns: dns.address, httpPort })
    const { directory, ca, port, identity } = pebble
    await pebble[Symbol.asyncDispose]()
    const options = { directory, ca, path: `${dir.path}/c.db`, httpPort, name: 'www.tunnel.test' }
    {
      await using issuing = await startIssuing(options)
      const { error, untilMs } = await within(issuing.failed, 'the failure')
      expect(error.code).toBe('ACME_UNREACHABLE')
      expect(untilMs).toBeGreaterThan(Date.now() + 30_000)
    }
    await using _ = await startPebble({ dns: dns.address, httpPort, port, identity })
    {
      // A restart does not ask at once again.
      await using issuing = await startIssuing(options)
      expect((await issuing.store.refusal('www.tunnel.test'))?.failures).toBe(1)
      expect(await issuing.store.orders(10)).toEqual([])
      expect(await issuing.store.certificate('www.tunnel.test')).toBeUndefined()
    }
    // A minute later, in short.
    const store = new SqliteCertificates(options.path, directory)
    const refusal = (await store.refusal('www.tunnel.test'))!
    await store.saveRefusal({ ...refusal, untilMs: Date.now() })
    await store.close()
    await using issuing = await startIssuing(options)
    const { names } = await within(issuing.issued, 'the certificate')
    expect(names).toEqual(['www.tunnel.test'])
    expect(issuing.issuer.find('www.tunnel.test')).toHaveProperty('cert')
    expect(await issuing.store.refusal('www.tunnel.test')).toBeUndefined()
  },
)

testWith(
  ['pebble', 'knotd', 'openssl'],
  'a name is ordered during the first handshake, a stranger is not',
  async () => {
    await using dir = await folder('on-demand')
    await using dns = await startNameServer({ 'tunnel.test.': '' })
    const httpPort = freePort()
    await using pebble = await startPebble({ dns: dns.address, httpPort })
    const { directory, ca } = pebble
    const always = { directory, ca, path: `${dir.path}/c.db`, httpPort, name: 'tunnel.test' }
    await using issuing = await startIssuing({ ...always, allowed: ['shop.tunnel.test'] })
    expect(issuing.issuer.find('stranger.tunnel.test')).toBeUndefined()
    const found = issuing.issuer.find('shop.tunnel.test')
    expect(found).toBeInstanceOf(Promise)
    const certificate = await within(Promise.resolve(found), 'the certificate')
    expect(issuing.issuer.find('shop.tunnel.test')).toBe(certificate!)
  },
)

test('a store that cannot be opened is an error of its own', () => {
  expect(() => new SqliteCertificates('/proc/no/such.db', 'https://ca.test')).toThrow(
    expect.objectContaining({ code: 'CERTIFICATE_STORE_FAILED' }),
  )
})
