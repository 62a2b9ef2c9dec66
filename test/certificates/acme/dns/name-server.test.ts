// DNS-01 against a real name server: updates signed with TSIG, CNAME delegation, a command, and Pebble that checks it.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { X509Certificate } from 'node:crypto'
import { chmod } from 'node:fs/promises'
import { AcmeAuthority } from '../../../../src/certificates/acme/authority.ts'
import { ExecHook } from '../../../../src/certificates/acme/dns/exec.ts'
import { DnsLookups } from '../../../../src/certificates/acme/dns/lookups.ts'
import type { DnsProvider } from '../../../../src/certificates/acme/dns/provider.ts'
import { Rfc2136, type Rfc2136Options } from '../../../../src/certificates/acme/dns/rfc2136.ts'
import { DnsSolver } from '../../../../src/certificates/acme/dns/solver.ts'
import type { Challenge } from '../../../../src/certificates/acme/solver.ts'
import { systemClock } from '../../../../src/certificates/clock.ts'
import { MemoryCertificates } from '../../../support/memory-certificates.ts'
import { type NameServer, startNameServer } from '../../../support/name-server.ts'
import { describeWith } from '../../../support/needs.ts'
import { type Pebble, startPebble } from '../../../support/pebble.ts'
import { freePort } from '../../../support/ports.ts'
import { folder } from '../../../support/programs.ts'
import { rejection } from '../../../support/rejection.ts'

const never = new AbortController().signal
const challenge = (name: string, token = 'token'): Challenge => ({
  name,
  token,
  keyAuthorization: `${token}.thumb`,
})

describeWith(['pebble', 'knotd', 'dig', 'nsupdate', 'openssl'], 'DNS-01', () => {
  let dns: NameServer
  let pebble: Pebble
  beforeAll(async () => {
    dns = await startNameServer({
      'tunnel.test.':
        '_acme-challenge.shop CNAME shop.challenges.test.\n_acme-challenge.near CNAME near.challenges\n_acme-challenge.loop CNAME _acme-challenge.loop',
      'challenges.test.': '',
    })
    pebble = await startPebble({ dns: dns.address })
  })
  afterAll(async () => {
    for (const each of [pebble, dns]) await each[Symbol.asyncDispose]()
  })

  const provider = (options: Partial<Rfc2136Options> = {}) =>
    new Rfc2136({
      host: '127.0.0.1',
      port: dns.port,
      zone: 'tunnel.test',
      key: { name: dns.keyName, secret: dns.secret },
      clock: systemClock,
      ...options,
    })
  const solver = (dnsProvider: DnsProvider, visibleTimeoutMs = 10_000) =>
    new DnsSolver(dnsProvider, {
      clock: systemClock,
      resolvers: [dns.address],
      servers: [dns.address],
      visibleTimeoutMs,
    })
  const authority = (dnsProvider: DnsProvider) =>
    new AcmeAuthority({
      directory: pebble.directory,
      ca: pebble.ca,
      store: new MemoryCertificates(),
      clock: systemClock,
      solverFor: () => solver(dnsProvider),
    })
  const obtain = (dnsProvider: DnsProvider, names: readonly string[]) =>
    authority(dnsProvider).obtain({ id: 'any', names, admit: async () => {} }, never)

  for (const transport of ['tcp', 'udp'] as const) {
    test(`a name and its wildcard by RFC 2136 over ${transport}: two texts at one name, both gone afterwards`, async () => {
      const { cert } = await obtain(provider({ transport }), ['tunnel.test', '*.tunnel.test'])
      expect(new X509Certificate(cert).subjectAltName).toBe('DNS:tunnel.test, DNS:*.tunnel.test')
      expect(await dns.texts('_acme-challenge.tunnel.test')).toEqual([])
    })
  }

  test('a CNAME leads the record into another zone', async () => {
    const elsewhere = provider({ zone: 'challenges.test' })
    const dnsSolver = solver(elsewhere)
    await dnsSolver.present([challenge('shop.tunnel.test')], never)
    expect(await dns.texts('shop.challenges.test')).toHaveLength(1)
    await dnsSolver.withdraw([challenge('shop.tunnel.test')])
    expect(await dns.texts('shop.challenges.test')).toEqual([])
    // Pebble leaves it to its resolver to follow, and a name server follows within one zone only.
    const { cert } = await obtain(provider(), ['*.near.tunnel.test'])
    expect(new X509Certificate(cert).subjectAltName).toBe('DNS:*.near.tunnel.test')
    expect(await dns.texts('near.challenges.tunnel.test')).toEqual([])
  })

  test('CNAME records that lead to themselves are an error', async () => {
    expect(await rejection(solver(provider()).present([challenge('loop.tunnel.test')], never))).toMatchObject(
      {
        code: 'ACME_CHALLENGE_FAILED',
        message: expect.stringContaining('_acme-challenge.loop.tunnel.test'),
      },
    )
  })

  test('the servers of a zone are found from any name below it, and asked without a cache between', async () => {
    const lookups = new DnsLookups([dns.address])
    expect(await lookups.serversOf('_acme-challenge.a.b.tunnel.test')).toEqual(['127.0.0.1'])
    expect(await lookups.texts(dns.address, 'nothing.tunnel.test')).toEqual([])
    expect(await lookups.texts(`127.0.0.1:${freePort()}`, 'nothing.tunnel.test')).toBe('silent')
  })

  test('a server that is silent is not waited for while another has the record; when all are, it is an error', async () => {
    const closed = `127.0.0.1:${freePort()}`
    const via = (servers: readonly string[]) =>
      new DnsSolver(provider(), {
        clock: systemClock,
        resolvers: [dns.address],
        servers,
        visibleTimeoutMs: 600,
      })
    const checks = [challenge('tunnel.test')]
    await via([closed, dns.address]).present(checks, never)
    expect(await rejection(via([closed]).present(checks, never))).toMatchObject({
      code: 'ACME_CHALLENGE_FAILED',
      message: expect.stringContaining(`no server of _acme-challenge.tunnel.test answers: ${closed}`),
    })
    await via([]).withdraw(checks)
  })

  test('setting a record twice, and removing one that is not there, are no errors', async () => {
    const record = { name: '_acme-challenge.twice.tunnel.test', value: 'once' }
    const updates = provider()
    await updates.add(record, never)
    await updates.add(record, never)
    expect(await dns.texts(record.name)).toEqual(['once'])
    await updates.remove(record, never)
    await updates.remove(record, never)
    expect(await dns.texts(record.name)).toEqual([])
  })

  test('other texts of the name stay', async () => {
    const name = '_acme-challenge.both.tunnel.test'
    await provider().add({ name, value: 'one' }, never)
    await provider().add({ name, value: 'two' }, never)
    await provider().remove({ name, value: 'one' }, never)
    expect(await dns.texts(name)).toEqual(['two'])
  })

  test('a wrong secret, an unknown key, a foreign zone and a closed port each say what is wrong', async () => {
    const record = { name: '_acme-challenge.tunnel.test', value: 'x' }
    const { keyName, secret } = dns
    for (const [options, words] of [
      [{ key: { name: keyName, secret: Buffer.alloc(32).toString('base64') } }, /NOTAUTH.*BADSIG/],
      [{ key: { name: 'other-key', secret } }, /NOTAUTH.*BADKEY/],
      [{ zone: 'foreign.test' }, /NOTAUTH/],
      [{ zone: 'challenges.test' }, /NOTZONE|FORMERR|REFUSED/],
      [{ clock: { ...systemClock, now: () => Date.now() - 3_600_000 } }, /BADTIME/],
      [{ port: 1 }, /127\.0\.0\.1/],
    ] as const) {
      expect(await rejection(provider(options).add(record, never))).toMatchObject({
        code: 'ACME_CHALLENGE_FAILED',
        message: expect.stringMatching(words),
      })
    }
    expect(await dns.texts(record.name)).toEqual([])
  })

  test('a record that does not become visible is reported with the server that lacks it', async () => {
    const idle: DnsProvider = { add: async () => {}, remove: async () => {} }
    expect(await rejection(solver(idle, 600).present([challenge('tunnel.test')], never))).toMatchObject({
      code: 'ACME_CHALLENGE_FAILED',
      message: expect.stringContaining(`_acme-challenge.tunnel.test is not at ${dns.address}`),
    })
    // 0: it is not checked.
    await solver(idle, 0).present([challenge('tunnel.test')], never)
  })

  test('the check waits until the record is there', async () => {
    const updates = provider()
    let set: Promise<void> | undefined
    const slow: DnsProvider = {
      async add(record) {
        set = Bun.sleep(300).then(() => updates.add(record, never))
      },
      remove: (record, signal) => updates.remove(record, signal),
    }
    const dnsSolver = solver(slow)
    await dnsSolver.present([challenge('late.tunnel.test')], never)
    expect(await dns.texts('_acme-challenge.late.tunnel.test')).toHaveLength(1)
    await set
    await dnsSolver.withdraw([challenge('late.tunnel.test')])
  })

  test('a command sets and removes the records, with arguments and variables', async () => {
    await using dir = await folder('hook')
    const hook = `${dir.path}/hook.sh`
    await Bun.write(
      hook,
      `#!/bin/sh
[ "$2 $3 $4" = "$ACME_ACTION $ACME_RECORD_NAME $ACME_RECORD_VALUE" ] || exit 9
case "$2" in add) change="add $3 1 TXT $4" ;; remove) change="delete $3 TXT $4" ;; esac
nsupdate -y "hmac-sha256:${dns.keyName}:${dns.secret}" <<END
server 127.0.0.1 ${dns.port}
zone tunnel.test
update $change
send
END
`,
    )
    await chmod(hook, 0o700)
    const { cert } = await obtain(new ExecHook({ command: [hook, 'first'] }), ['*.tunnel.test'])
    expect(new X509Certificate(cert).subjectAltName).toBe('DNS:*.tunnel.test')
    expect(await dns.texts('_acme-challenge.tunnel.test')).toEqual([])
  })
})
