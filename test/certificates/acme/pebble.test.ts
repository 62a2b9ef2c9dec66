// Against Pebble in strict mode, which refuses one nonce in five, and a real name server.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { X509Certificate } from 'node:crypto'
import { AcmeAuthority, type AcmeAuthorityOptions } from '../../../src/certificates/acme/authority.ts'
import { AcmeClient } from '../../../src/certificates/acme/client.ts'
import { AccountKey } from '../../../src/certificates/acme/jws.ts'
import { PendingChallenges } from '../../../src/certificates/acme/pending-challenges.ts'
import { AcmeProblem } from '../../../src/certificates/acme/problem.ts'
import { renewalId } from '../../../src/certificates/acme/renewal-id.ts'
import type { Solver } from '../../../src/certificates/acme/solver.ts'
import type { Wish } from '../../../src/certificates/authority.ts'
import { systemClock } from '../../../src/certificates/clock.ts'
import type { CertificateStore, StoredAccount } from '../../../src/store.ts'
import { certificateRequest, keyPem, newKey } from '../../../src/x509/certificate-request.ts'
import { type ChallengedServer, startChallengedServer } from '../../support/challenged-server.ts'
import { MemoryCertificates } from '../../support/memory-certificates.ts'
import { type NameServer, startNameServer } from '../../support/name-server.ts'
import { describeWith } from '../../support/needs.ts'
import { type Pebble, type PebbleOptions, startPebble } from '../../support/pebble.ts'
import { rejection } from '../../support/rejection.ts'

const never = new AbortController().signal
const wish = (names: readonly string[], more: Partial<Wish> = {}): Wish => ({
  id: names.join(),
  names,
  admit: async () => {},
  ...more,
})
const namesIn = (cert: string) => new X509Certificate(cert).subjectAltName

/** Asks until what the authority does behind its answers is done. `type`: of its refusal; `undefined`: it takes the order. */
async function eventuallyIs(type: string | undefined, ask: () => Promise<unknown>): Promise<void> {
  const deadline = performance.now() + 10_000
  for (;;) {
    const found = await ask().then(
      () => undefined,
      (error: unknown) => (error instanceof AcmeProblem ? error.type : String(error)),
    )
    if (found === type) return
    if (performance.now() > deadline) throw new Error(`the authority says ${found}, not ${type}`)
  }
}

describeWith(['pebble', 'knotd', 'dig', 'openssl'], 'an ACME authority', () => {
  const pending = new PendingChallenges(systemClock)
  let dns: NameServer
  let server: ChallengedServer
  let pebble: Pebble
  beforeAll(async () => {
    dns = await startNameServer({ 'tunnel.test.': '' })
    server = await startChallengedServer(pending)
    pebble = await startPebbleHere()
  })
  afterAll(async () => {
    for (const each of [pebble, server, dns]) await each[Symbol.asyncDispose]()
  })

  const startPebbleHere = (options: PebbleOptions = {}) =>
    startPebble({ dns: dns.address, httpPort: server.httpPort, tlsPort: server.tlsPort, ...options })

  const authority = (
    store: CertificateStore = new MemoryCertificates(),
    options: Partial<AcmeAuthorityOptions> = {},
  ) =>
    new AcmeAuthority({
      directory: pebble.directory,
      ca: pebble.ca,
      store,
      clock: systemClock,
      contact: ['operator@tunnel.test'],
      solverFor: () => pending.http,
      ...options,
    })

  test('HTTP-01: a certificate for two names, whose key fits, and no answer is left over', async () => {
    const { cert, key } = await authority().obtain(wish(['www.tunnel.test', 'api.tunnel.test']), never)
    expect(namesIn(cert)).toBe('DNS:www.tunnel.test, DNS:api.tunnel.test')
    expect(key).toStartWith('-----BEGIN PRIVATE KEY-----')
    // The chain, not the certificate alone.
    expect(cert.match(/BEGIN CERTIFICATE/g)?.length).toBeGreaterThan(1)
    const token = server.asked.at(-1)!.split('/').at(-1)!
    expect(pending.httpAnswer(token)).toBeUndefined()
  })

  test('TLS-ALPN-01: the authority accepts the certificate that is made for its check', async () => {
    const found = await authority(undefined, { solverFor: () => pending.tls }).obtain(
      wish(['shop.tunnel.test']),
      never,
    )
    expect(namesIn(found.cert)).toBe('DNS:shop.tunnel.test')
    expect(pending.tlsCertificate('shop.tunnel.test')).toBeUndefined()
  })

  test('the account is made once, found again by its key, and used by later processes', async () => {
    const store = new MemoryCertificates()
    await authority(store).obtain(wish(['one.tunnel.test']), never)
    const account = await store.account()
    await authority(store).obtain(wish(['two.tunnel.test']), never)
    expect(await store.account()).toEqual(account)
    const client = new AcmeClient(
      { directory: pebble.directory, ca: pebble.ca },
      new AccountKey(account!.key),
      systemClock,
    )
    expect(await client.register([], undefined, true)).toBe(account!.url)
  })

  test('servers with one store that register at the same moment end with one account', async () => {
    const registered: string[] = []
    let isEarly = 0
    const bothLooked = Promise.withResolvers<void>()
    class Raced extends MemoryCertificates {
      override async account() {
        const found = await super.account()
        // Both find nothing, whichever comes first.
        if (++isEarly === 2) bothLooked.resolve()
        if (isEarly <= 2) await bothLooked.promise
        return found
      }
      override saveAccount(account: StoredAccount) {
        if (account.url !== '') registered.push(`${account.url} ${account.key}`)
        return super.saveAccount(account)
      }
    }
    const store = new Raced()
    const authorities = [authority(store), authority(store)]
    await Promise.all(authorities.map((one, index) => one.obtain(wish([`both-${index}.tunnel.test`]), never)))
    expect(new Set(registered).size).toBe(1)
    expect(await store.account().then(account => `${account?.url} ${account?.key}`)).toBe(registered[0] ?? '')
  })

  test('an account that does not exist is not made when it must exist', async () => {
    const client = new AcmeClient(
      { directory: pebble.directory, ca: pebble.ca },
      new AccountKey(keyPem(newKey())),
      systemClock,
    )
    expect(await rejection(client.register([], undefined, true))).toMatchObject({
      code: 'ACME_REFUSED',
      type: 'accountDoesNotExist',
    })
  })

  test('an account that the authority has forgotten is made anew with the same key', async () => {
    const store = new MemoryCertificates()
    const forgetful = await startPebbleHere()
    const options = { directory: forgetful.directory, ca: forgetful.ca }
    const first = authority(store, options)
    await first.obtain(wish(['one.tunnel.test']), never)
    const { key } = (await store.account())!
    await forgetful[Symbol.asyncDispose]()
    await using again = await startPebbleHere({ port: forgetful.port, identity: forgetful.identity })
    expect(again.directory).toBe(forgetful.directory)
    const { cert } = await first.obtain(wish(['two.tunnel.test']), never)
    expect(namesIn(cert)).toBe('DNS:two.tunnel.test')
    expect((await store.account())?.key).toBe(key)
  })

  test('an account that was deactivated is refused with its own code, and no new one is made', async () => {
    const store = new MemoryCertificates()
    const first = authority(store)
    await first.obtain(wish(['one.tunnel.test']), never)
    const account = (await store.account())!
    await first.deactivateAccount()
    await store.saveAccount(account)
    expect(await rejection(authority(store).obtain(wish(['two.tunnel.test']), never))).toMatchObject({
      code: 'ACME_REFUSED',
      message: expect.stringContaining('deactivated'),
    })
    expect(await store.account()).toEqual(account)
  })

  test('external accounts: taken with the right key, refused with another or with none', async () => {
    const hmacKey = Buffer.from('the key that the authority handed out').toString('base64url')
    await using strict = await startPebbleHere({ externalAccounts: { 'kid-1': hmacKey } })
    const there = { directory: strict.directory, ca: strict.ca }
    const bound = { ...there, externalAccount: { keyId: 'kid-1', hmacKey } }
    const { cert } = await authority(undefined, bound).obtain(wish(['eab.tunnel.test']), never)
    expect(namesIn(cert)).toBe('DNS:eab.tunnel.test')
    const other = { ...there, externalAccount: { keyId: 'kid-1', hmacKey: 'AAAA' } }
    expect(
      await rejection(authority(undefined, other).obtain(wish(['eab.tunnel.test']), never)),
    ).toMatchObject({
      code: 'ACME_REFUSED',
    })
    expect(
      await rejection(authority(undefined, there).obtain(wish(['eab.tunnel.test']), never)),
    ).toMatchObject({
      code: 'ACME_REFUSED',
      message: expect.stringContaining('external account binding'),
    })
  })

  test('renewal: the window comes from the authority, the new order says what it replaces, once', async () => {
    const store = new MemoryCertificates()
    const acme = authority(store)
    const first = await acme.obtain(wish(['www.tunnel.test']), never)
    // Until it is saved, the order stays, and yields the same certificate.
    expect(await acme.obtain(wish(['www.tunnel.test']), never)).toEqual(first)
    await store.removeOrder('www.tunnel.test')
    const { validTo } = new X509Certificate(first.cert)
    const window = await acme.suggestedWindow(first.cert)
    expect(window!.startMs).toBeLessThan(window!.endMs)
    expect(window!.endMs).toBeLessThan(Date.parse(validTo))
    expect(window!.retryAfterMs).toBe(21_600_000)
    const second = await acme.obtain(wish(['www.tunnel.test'], { replaces: first.cert }), never)
    expect(second.cert).not.toBe(first.cert)
    await store.removeOrder('www.tunnel.test')
    // The authority refuses a second order that replaces the same one: it is placed without.
    const third = await acme.obtain(wish(['www.tunnel.test'], { replaces: first.cert }), never)
    expect(third.cert).not.toBe(second.cert)
  })

  test('the order that replaces a certificate is known to the authority as its replacement', async () => {
    const store = new MemoryCertificates()
    const acme = authority(store)
    const first = await acme.obtain(wish(['www.tunnel.test']), never)
    await store.removeOrder('www.tunnel.test')
    const { url, key } = (await store.account())!
    const client = new AcmeClient(
      { directory: pebble.directory, ca: pebble.ca },
      new AccountKey(key),
      systemClock,
      url,
    )
    const orderTo = (replaces: string) => client.newOrder(['www.tunnel.test'], renewalId(replaces))
    // Pebble hands a certificate out before it has noted which order it came from, and before it has noted what that replaced.
    await eventuallyIs(undefined, () => orderTo(first.cert))
    await acme.obtain(wish(['www.tunnel.test'], { replaces: first.cert }), never)
    await eventuallyIs('alreadyReplaced', () => orderTo(first.cert))
  })

  test('an order is placed without what it replaces when the authority does not know that, and renewed all the same', async () => {
    const store = new MemoryCertificates()
    await using other = await startPebbleHere()
    const there = authority(undefined, { directory: other.directory, ca: other.ca })
    const foreign = await there.obtain(wish(['www.tunnel.test']), never)
    const { cert } = await authority(store).obtain(
      wish(['www.tunnel.test'], { replaces: foreign.cert }),
      never,
    )
    expect(namesIn(cert)).toBe('DNS:www.tunnel.test')
  })

  test('an order of an earlier process whose check fails is followed by another one at once, and by no third', async () => {
    const store = new MemoryCertificates()
    const killed = {
      type: 'http-01',
      present: () => Promise.reject(new Error('killed')),
      withdraw: async () => {},
    } as const
    const name = 'interrupted.tunnel.test'
    await rejection(authority(store, { solverFor: () => killed }).obtain(wish([name]), never))
    const left = (await store.order(name))!.url
    let admitted = 0
    const counted = wish([name], {
      admit: async () => {
        admitted++
      },
    })
    // Its check is answered by the process that is gone.
    let rounds = 0
    const late = {
      type: 'http-01',
      present: async (...given: Parameters<Solver['present']>) => {
        if (++rounds > 1) await pending.http.present(...given)
      },
      withdraw: (...given: Parameters<Solver['withdraw']>) => pending.http.withdraw(...given),
    } as const
    const { cert } = await authority(store, { solverFor: () => late }).obtain(counted, never)
    expect(namesIn(cert)).toBe(`DNS:${name}`)
    expect((await store.order(name))!.url).not.toBe(left)
    expect([rounds, admitted]).toEqual([2, 1])

    const again = 'again.tunnel.test'
    await rejection(authority(store, { solverFor: () => killed }).obtain(wish([again]), never))
    const nowhere = { type: 'http-01', present: async () => {}, withdraw: async () => {} } as const
    expect(
      await rejection(
        authority(store, { solverFor: () => nowhere }).obtain(
          { ...counted, id: again, names: [again] },
          never,
        ),
      ),
    ).toMatchObject({ code: 'ACME_CHALLENGE_FAILED' })
    expect(admitted).toBe(2)
    expect(await store.order(again)).toBeUndefined()
  })

  test('a revoked certificate is to be renewed at once', async () => {
    const acme = authority()
    const { cert } = await acme.obtain(wish(['www.tunnel.test']), never)
    await acme.revoke(cert, 1)
    expect((await acme.suggestedWindow(cert))!.endMs).toBeLessThanOrEqual(Date.now())
  })

  test('a check that fails is reported with the words of the authority, and its order is over', async () => {
    const store = new MemoryCertificates()
    // Nothing listens where the authority looks.
    const nowhere = { type: 'http-01', present: async () => {}, withdraw: async () => {} } as const
    const acme = authority(store, { solverFor: () => nowhere })
    expect(await rejection(acme.obtain(wish(['wrong.tunnel.test']), never))).toMatchObject({
      code: 'ACME_CHALLENGE_FAILED',
      message: expect.stringMatching(/wrong\.tunnel\.test by http-01: .*404/),
    })
    expect(await store.orders(10)).toEqual([])
  })

  test('a wildcard is refused when only HTTP-01 could prove it', async () => {
    expect(await rejection(authority().obtain(wish(['*.tunnel.test']), never))).toMatchObject({
      code: 'ACME_REFUSED',
      message: expect.stringContaining('tunnel.test cannot be proved by http-01'),
    })
  })

  test('a request for names that the order does not have is refused with the reason', async () => {
    const client = new AcmeClient(
      { directory: pebble.directory, ca: pebble.ca },
      new AccountKey(keyPem(newKey())),
      systemClock,
    )
    await client.register()
    const order = await client.newOrder(['www.tunnel.test'])
    expect(
      await rejection(client.finalize(order, certificateRequest(['other.tunnel.test'], newKey()))),
    ).toMatchObject({
      code: 'ACME_REFUSED',
    })
  })
})
