// Thousands of names with a certificate each on one server, and what scanners of TLS say of it.

import { expect, test } from 'bun:test'
import { once } from 'node:events'
import { connect } from 'node:tls'
import type { Certificate } from '../../src/certificates.ts'
import { testWith } from '../support/needs.ts'
import { run } from '../support/programs.ts'
import { TEST_CERT, TEST_KEY } from '../support/tls.ts'
import { startServer } from '../support/tunnel.ts'
import { within } from '../support/within.ts'

const NAMES = 2_000
/** About 14 KB each were measured, for both ends of the handshakes. */
const MOST_BYTES = 200_000_000

test('2,000 names: each has a handshake with its own certificate, and memory stays bounded', async () => {
  const certificates = new Map<string, Certificate>()
  // Objects of their own, so that each has a TLS context of its own.
  for (let index = 0; index < NAMES; index++)
    certificates.set(`n${index}.localhost`, { cert: TEST_CERT, key: TEST_KEY })
  const asked = new Set<string>()
  const find = (name: string) => {
    asked.add(name)
    return certificates.get(name)
  }
  await using server = await startServer({ certificates: { find } })
  const before = process.memoryUsage.rss()
  const names = [...certificates.keys()]
  while (names.length > 0)
    await Promise.all(
      names.splice(0, 50).map(async servername => {
        const socket = connect({
          port: server.port,
          host: '127.0.0.1',
          servername,
          rejectUnauthorized: false,
        })
        await within(once(socket, 'secureConnect'), `a handshake for ${servername}`)
        socket.destroy()
      }),
    )
  expect(asked.size).toBe(NAMES)
  expect(process.memoryUsage.rss() - before).toBeLessThan(MOST_BYTES)
})

testWith(
  ['sslscan'],
  'sslscan finds TLS 1.2 and 1.3, ciphers with forward secrecy, and nothing old',
  async () => {
    const certificates = { find: () => ({ cert: TEST_CERT, key: TEST_KEY }) }
    await using server = await startServer({ certificates })
    // Its test for Heartbleed sends more than the server wants, and ends the scan when the connection is cut for that.
    const { out } = await run(['sslscan', '--no-colour', '--no-heartbleed', `127.0.0.1:${server.port}`])
    for (const version of ['SSLv2', 'SSLv3', 'TLSv1.0', 'TLSv1.1'])
      expect(out).toMatch(new RegExp(`${version} +disabled`))
    for (const version of ['TLSv1.2', 'TLSv1.3']) expect(out).toMatch(new RegExp(`${version} +enabled`))
    expect(out).toContain('Session renegotiation not supported')
    const ciphers = [...out.matchAll(/(?:Preferred|Accepted) +(TLSv\S+) +\d+ bits +(\S+)/g)]
    expect(ciphers.length).toBeGreaterThan(4)
    for (const [, , cipher = ''] of ciphers) expect(cipher).toMatch(/^(?:TLS|ECDHE)[-_].*(?:GCM|CHACHA20)/)
  },
)
