// A server that is killed at any moment of an order: the next one has the certificate, and only one was issued.
// About ten seconds: a process is started and killed for each request of an order, before it arrived and after.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { X509Certificate } from 'node:crypto'
import { join } from 'node:path'
import { startIssuing } from '../../support/issuing.ts'
import { type NameServer, startNameServer } from '../../support/name-server.ts'
import { describeWith } from '../../support/needs.ts'
import { type Pebble, startPebble } from '../../support/pebble.ts'
import { freePort } from '../../support/ports.ts'
import { folder } from '../../support/programs.ts'
import { type WatchedAuthority, watchAuthority } from '../../support/watched-authority.ts'
import { within } from '../../support/within.ts'

const PROGRAM = join(import.meta.dir, '../../support/issuing.ts')

describeWith(['pebble', 'knotd', 'openssl'], 'an issuer that is killed', () => {
  const httpPort = freePort()
  let dns: NameServer
  let pebble: Pebble
  let watched: WatchedAuthority
  beforeAll(async () => {
    dns = await startNameServer({ 'tunnel.test.': '' })
    // Without refused nonces the requests of an order are the same each time.
    pebble = await startPebble({ dns: dns.address, httpPort, badNonces: 0 })
    watched = watchAuthority(pebble)
  })
  afterAll(async () => {
    for (const each of [watched, pebble, dns]) await each[Symbol.asyncDispose]()
  })

  test('loses no certificate and gets none twice, whichever request it was at', async () => {
    await using dir = await folder('killed')
    const base = { directory: watched.directory, ca: pebble.ca, httpPort }
    const seen: string[] = []
    let kills = 0
    for (const what of ['request', 'answer'] as const) {
      for (let number = 1; ; number++) {
        const name = `${what}-${number}.tunnel.test`
        const options = { ...base, path: `${dir.path}/${name}.db`, name }
        const before = watched.certificates.size
        const held = watched.hold(number, what)
        const child = Bun.spawn(['bun', PROGRAM, JSON.stringify(options)], {
          stdio: ['ignore', 'ignore', 'inherit'],
        })
        const isHeld = await within(
          Promise.race([held.then(() => true), child.exited.then(() => false)]),
          `exchange ${number}`,
        )
        child.kill('SIGKILL')
        await child.exited
        watched.release()
        if (!isHeld) break
        kills++
        await using next = await startIssuing(options)
        const failed = next.failed.then(({ error }) => Promise.reject(error))
        const { names } = await within(
          Promise.race([next.issued, failed]),
          `the certificate after a kill at ${what} ${number}`,
        )
        const { cert } = (await next.store.certificate(names[0]!))!
        seen.push(`${new X509Certificate(cert).subjectAltName}: ${watched.certificates.size - before}`)
        expect(await next.store.orders(10)).toEqual([])
        expect(seen.at(-1)).toBe(`DNS:${name}: 1`)
      }
    }
    // Directory, nonce, account, order, authorization, challenge, checks, finalization, order, certificate, window.
    expect(kills).toBeGreaterThan(20)
  }, 60_000)

  test('that is stopped while the authority hangs ends at once, and the next one goes on', async () => {
    await using dir = await folder('stopped')
    const name = 'stopped.tunnel.test'
    const options = { directory: watched.directory, ca: pebble.ca, httpPort, path: `${dir.path}/c.db`, name }
    const before = watched.certificates.size
    const held = watched.hold(8, 'request')
    const issuing = await startIssuing(options)
    await within(held, 'the request')
    // Less than the 30 s that a request may take: `within` has 10.
    await within(Promise.resolve(issuing[Symbol.asyncDispose]()), 'the end')
    watched.release()
    await using next = await startIssuing(options)
    expect(await next.store.refusal(name)).toBeUndefined()
    await within(next.issued, 'the certificate')
    expect(watched.certificates.size - before).toBe(1)
  })
})
