// What an authority may answer that is not what was asked for: each is one of our errors, and bounded.

import { expect, test } from 'bun:test'
import { AcmeClient } from '../../../src/certificates/acme/client.ts'
import type { AcmeServer } from '../../../src/certificates/acme/connection.ts'
import { AccountKey } from '../../../src/certificates/acme/jws.ts'
import { elementsOf, renewalId } from '../../../src/certificates/acme/renewal-id.ts'
import { retryAfterMs } from '../../../src/certificates/bounded-request.ts'
import { systemClock } from '../../../src/certificates/clock.ts'
import { certificateRequest, keyPem, newKey } from '../../../src/x509/certificate-request.ts'
import { Clock } from '../../support/clock.ts'
import { testWith } from '../../support/needs.ts'
import { freePort } from '../../support/ports.ts'
import { folder, run } from '../../support/programs.ts'
import { rejection } from '../../support/rejection.ts'
import { TEST_CERT, TEST_KEY } from '../../support/tls.ts'
import { deferred } from '../../support/within.ts'

type Handler = (path: string, origin: string) => Response | Promise<Response>

const json = (value: unknown, status = 200, headers: Record<string, string> = {}) =>
  new Response(JSON.stringify(value), {
    status,
    headers: { 'content-type': 'application/json', 'replay-nonce': 'nonce', ...headers },
  })
const problem = (type: string, status: number, headers: Record<string, string> = {}) =>
  json(
    { type: `urn:ietf:params:acme:error:${type}`, detail: `the words\u001b[31m of ${type}.` },
    status,
    headers,
  )
const directoryOf = (origin: string) => ({
  newNonce: `${origin}/nonce`,
  newAccount: `${origin}/account`,
  newOrder: `${origin}/order`,
  revokeCert: `${origin}/revoke`,
  renewalInfo: `${origin}/renewal`,
})

/** `answer`: to everything but the directory and nonces. */
async function withAuthority(
  answer: Handler,
  use: (client: AcmeClient, asked: readonly string[]) => Promise<void>,
  options: Partial<AcmeServer> = {},
): Promise<void> {
  const asked: string[] = []
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    tls: { cert: TEST_CERT, key: TEST_KEY },
    fetch({ url }) {
      const { pathname, origin } = new URL(url)
      asked.push(pathname)
      if (pathname === '/directory') return Response.json(directoryOf(origin))
      if (pathname === '/nonce') return json(undefined)
      return answer(pathname, origin)
    },
  })
  const directory = `https://localhost:${server.port}/directory`
  const key = new AccountKey(keyPem(newKey()))
  const account = `https://localhost:${server.port}/account/1`
  try {
    await use(new AcmeClient({ directory, ca: TEST_CERT, ...options }, key, systemClock, account), asked)
  } finally {
    await server.stop(true)
  }
}

const newOrder = (client: AcmeClient) => client.newOrder(['a.test'])

for (const [what, answer, code] of [
  ['no JSON', () => new Response('<html>'), 'ACME_UNREACHABLE'],
  ['JSON that is no object', () => json([1]), 'ACME_UNREACHABLE'],
  ['an order of an unknown status', () => json({ status: 'odd', authorizations: [] }), 'ACME_UNREACHABLE'],
  [
    'an order with a URL that is not https',
    () => json({ status: 'pending', authorizations: ['http://ca.test/1'], finalize: 'https://ca.test/2' }),
    'ACME_UNREACHABLE',
  ],
  ['a redirect', () => new Response('', { status: 302, headers: { location: '/x' } }), 'ACME_REFUSED'],
  ['a rate limit', () => problem('rateLimited', 429), 'ACME_RATE_LIMITED'],
  ['a refusal', () => problem('rejectedIdentifier', 400), 'ACME_REFUSED'],
  ['trouble of its own', () => problem('serverInternal', 500), 'ACME_UNREACHABLE'],
  [
    'a proxy in front of it that fails',
    () => new Response('bad gateway', { status: 502 }),
    'ACME_UNREACHABLE',
  ],
  ['an account that may do nothing', () => problem('unauthorized', 403), 'ACME_REFUSED'],
] as const) {
  test(`${what} is ${code}`, async () => {
    await withAuthority(answer, async client => {
      expect(await rejection(newOrder(client))).toMatchObject({ code })
    })
  })
}

test('the words of the authority are in the message, without what a terminal would obey', async () => {
  await withAuthority(
    () => problem('rejectedIdentifier', 400),
    async client => {
      expect(await rejection(newOrder(client))).toMatchObject({
        message: expect.stringContaining(
          'The order for a.test was refused: the words [31m of rejectedIdentifier (rejectedIdentifier).',
        ),
      })
    },
  )
})

test('an authority that is not there, or is not trusted, is ACME_UNREACHABLE', async () => {
  const key = new AccountKey(keyPem(newKey()))
  const server = { directory: `https://localhost:${freePort()}/directory` }
  expect(await rejection(new AcmeClient(server, key, systemClock).register())).toMatchObject({
    code: 'ACME_UNREACHABLE',
  })
  await withAuthority(
    () => json({}),
    async (client, asked) => {
      expect(await rejection(newOrder(client))).toMatchObject({ code: 'ACME_UNREACHABLE' })
      expect(asked).toEqual([])
    },
    { ca: undefined },
  )
})

test('a directory over http is refused before anything is sent', () => {
  const key = new AccountKey(keyPem(newKey()))
  expect(() => new AcmeClient({ directory: 'http://localhost/directory' }, key, systemClock)).toThrow(
    expect.objectContaining({ code: 'OPTION_INVALID' }),
  )
})

test('an answer that does not come ends after timeoutMs', async () => {
  const { promise, resolve } = deferred<Response>()
  await withAuthority(
    () => promise,
    async client => {
      expect(await rejection(newOrder(client))).toMatchObject({
        message: expect.stringMatching(/did not answer within 100 ms/),
      })
      resolve(json({}))
    },
    { timeoutMs: 100 },
  )
})

test('an answer without end is cut at maxResponseBytes', async () => {
  const chunk = new Uint8Array(16_384)
  await withAuthority(
    () => new Response(new ReadableStream({ pull: controller => controller.enqueue(chunk) })),
    async client => {
      expect(await rejection(newOrder(client))).toMatchObject({
        message: expect.stringMatching(/larger than 100000 bytes/),
      })
    },
    { maxResponseBytes: 100_000 },
  )
})

test('a refused nonce is replaced by the one in the refusal, ten times at most', async () => {
  let refusals = 3
  await withAuthority(
    (_, origin) => {
      if (refusals-- > 0) return problem('badNonce', 400)
      const order = { status: 'ready', authorizations: [], finalize: `${origin}/finalize` }
      return json(order, 201, { location: `${origin}/order/1` })
    },
    async (client, asked) => {
      expect((await newOrder(client)).status).toBe('ready')
      // One nonce was asked for; the refusals brought the others.
      expect(asked).toEqual(['/directory', '/nonce', '/order', '/order', '/order', '/order'])
    },
  )
  await withAuthority(
    () => problem('badNonce', 400),
    async (client, asked) => {
      expect(await rejection(newOrder(client))).toMatchObject({ code: 'ACME_REFUSED', type: 'badNonce' })
      expect(asked.filter(path => path === '/order')).toHaveLength(10)
    },
  )
})

test('a rate limit says when to come back', async () => {
  await withAuthority(
    () => problem('rateLimited', 429, { 'retry-after': '120' }),
    async client => {
      expect(await rejection(newOrder(client))).toMatchObject({ retryAfterMs: 120_000 })
    },
  )
})

test('Retry-After is seconds or a date; anything else is none', () => {
  const clock = new Clock(Date.UTC(2026, 0, 1))
  const read = (value: string) => retryAfterMs(new Headers({ 'retry-after': value }), clock)
  expect(read('90')).toBe(90_000)
  expect(read('Thu, 01 Jan 2026 00:01:00 GMT')).toBe(60_000)
  expect(read('Wed, 31 Dec 2025 00:00:00 GMT')).toBe(0)
  expect(['', 'soon', '-5', '1e9'].map(read)).toEqual([undefined, undefined, undefined, undefined])
  expect(retryAfterMs(new Headers(), clock)).toBeUndefined()
})

test('a renewal window that ends before it begins is an error, not a reason to renew', async () => {
  const window = { start: '2026-02-02T00:00:00Z', end: '2026-01-01T00:00:00Z' }
  await withAuthority(
    () => json({ suggestedWindow: window }),
    async client => {
      expect(await rejection(client.renewalInfo('a.b'))).toMatchObject({ code: 'ACME_UNREACHABLE' })
    },
  )
})

test('the id for renewal is that of the example in RFC 9773', () => {
  // Appendix A: a certificate with serial 8765 4321 (a zero byte in front of it) and its key identifier.
  const pem = `-----BEGIN CERTIFICATE-----
MIIBQzCB66ADAgECAgUAh2VDITAKBggqhkjOPQQDAjAVMRMwEQYDVQQDEwpFeGFt
cGxlIENBMCIYDzAwMDEwMTAxMDAwMDAwWhgPMDAwMTAxMDEwMDAwMDBaMBYxFDAS
BgNVBAMTC2V4YW1wbGUuY29tMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEeBZu
7cbpAYNXZLbbh8rNIzuOoqOOtmxA1v7cRm//AwyMwWxyHz4zfwmBhcSrf47NUAFf
qzLQ2PPQxdTXREYEnKMjMCEwHwYDVR0jBBgwFoAUaYhba4dGQEHhs3uEe6CuLN4B
yNQwCgYIKoZIzj0EAwIDRwAwRAIge09+S5TZAlw5tgtiVvuERV6cT4mfutXIlwTb
+FYN/8oCIClDsqBklhB9KAelFiYt9+6FDj3z4KGVelYM5MdsO3pK
-----END CERTIFICATE-----`
  expect(renewalId(pem)).toBe('aYhba4dGQEHhs3uEe6CuLN4ByNQ.AIdlQyE')
  // Signed by itself, and without the extension.
  expect(renewalId(TEST_CERT)).toStartWith('b8kuFA5NHvJdYrkhFmZ5eoE06Ww.')
})

test('DER that ends early, or says that it is longer than it is, is none', () => {
  for (const hex of ['30', '3005', '300501', '3080', '308201', '30ffffffffff', '1f01', '30850000000001'])
    expect(elementsOf(Buffer.from(hex, 'hex'))).toBeUndefined()
  expect(elementsOf(new Uint8Array())).toEqual([])
})

testWith(
  ['openssl'],
  'openssl reads the certificate request: its names, its signature, no subject',
  async () => {
    await using dir = await folder('csr')
    await Bun.write(`${dir.path}/csr.der`, certificateRequest(['a.test', '*.a.test'], newKey()))
    const { out, err } = await run([
      'openssl',
      'req',
      '-inform',
      'DER',
      '-in',
      `${dir.path}/csr.der`,
      '-noout',
      '-text',
      '-verify',
    ])
    expect(err + out).toMatch(/verify OK/)
    expect(out).toContain('DNS:a.test, DNS:*.a.test')
    expect(out).toMatch(/Subject: *\n/)
  },
)
