// The issuer with a real authority: away and back, slow, asked in a handshake, and saying when to renew.

import { expect, test } from 'bun:test'
import { SqliteCertificates } from '../../../src/stores/sqlite-certificates.ts'
import { Clock } from '../../support/clock.ts'
import { startIssuing } from '../../support/issuing.ts'
import { startNameServer } from '../../support/name-server.ts'
import { testWith } from '../../support/needs.ts'
import { startPebble } from '../../support/pebble.ts'
import { freePort } from '../../support/ports.ts'
import { folder } from '../../support/programs.ts'
import { watchAuthority } from '../../support/watched-authority.ts'
import { deferred, within } from '../../support/within.ts'

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

testWith(
  ['pebble', 'knotd', 'openssl'],
  'a window that the authority moves to the past renews the certificate at the next look',
  async () => {
    await using dir = await folder('renewal')
    await using dns = await startNameServer({ 'tunnel.test.': '' })
    const httpPort = freePort()
    await using pebble = await startPebble({ dns: dns.address, httpPort })
    const { directory, ca } = pebble
    const clock = new Clock(Date.now())
    const path = `${dir.path}/c.db`
    await using issuing = await startIssuing({ directory, ca, path, httpPort, name: 'tunnel.test', clock })
    await within(issuing.issued, 'the first certificate')
    const first = (await issuing.store.certificate('tunnel.test'))!
    const window = { start: new Date(clock.now() - 7_200_000), end: new Date(clock.now() - 3_600_000) }
    const response = JSON.stringify({ suggestedWindow: window })
    const asked = await pebble.manage(
      '/set-renewal-info/',
      JSON.stringify({ Certificate: first.cert, ARIResponse: response }),
    )
    expect(asked.status).toBe(200)
    const { promise, resolve } = deferred<boolean>()
    issuing.issuer.on('issued', ({ isRenewal }) => resolve(isRenewal))
    // Pebble says Retry-After: six hours.
    clock.advance(6 * 3_600_000 + 1_000)
    expect(await within(promise, 'the renewal')).toBe(true)
    expect(issuing.issuer.find('tunnel.test')).toMatchObject({
      cert: (await issuing.store.certificate('tunnel.test'))!.cert,
    })
    expect((await issuing.store.certificate('tunnel.test'))!.cert).not.toBe(first.cert)
  },
)

testWith(
  ['pebble', 'knotd', 'openssl'],
  'an order that takes too long ends, and is continued later',
  async () => {
    await using dir = await folder('slow')
    await using dns = await startNameServer({ 'tunnel.test.': '' })
    const httpPort = freePort()
    await using pebble = await startPebble({ dns: dns.address, httpPort, badNonces: 0 })
    await using watched = watchAuthority(pebble)
    const { directory } = watched
    const options = { directory, ca: pebble.ca, path: `${dir.path}/c.db`, httpPort, name: 'tunnel.test' }
    // Directory, nonce, account, order: then it hangs.
    void watched.hold(6, 'answer')
    await using issuing = await startIssuing({ ...options, orderTimeoutMs: 500 })
    const { error } = await within(issuing.failed, 'the failure')
    expect(error).toMatchObject({
      code: 'ACME_UNREACHABLE',
      message: expect.stringContaining('tunnel.test took more than 500 ms'),
    })
    expect(await issuing.store.order('tunnel.test')).toBeDefined()
  },
)

test('a store that cannot be opened is an error of its own', () => {
  expect(() => new SqliteCertificates('/proc/no/such.db', 'https://ca.test')).toThrow(
    expect.objectContaining({ code: 'STORE_FAILED' }),
  )
})
