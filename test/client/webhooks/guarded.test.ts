// Webhooks as a way in of a guard: the rest of the tunnel has a password, and what a provider has signed needs none.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type GuardOptions, guarding, TunnelClient, type TunnelServer } from '../../../src/index.ts'
import { signed } from '../../../src/signatures/signatures.ts'
import { ask } from '../../support/ask.ts'
import { codeOf } from '../../support/events.ts'
import { InspectorApi } from '../../support/inspector.ts'
import { rawDial } from '../../support/raw.ts'
import { startServer } from '../../support/tunnel.ts'

const PASSWORD = 'correct horse'
const STRIPE = 'whsec_of_stripe'
const GITHUB = 'a github secret'
const seen: string[] = []
/** What the server is told of guards. */
const definitions: string[] = []
const app = createServer((request, answer) => {
  seen.push(`${request.method} ${request.url}`)
  answer.end('app')
})
let server: TunnelServer
let client: TunnelClient

const guard: GuardOptions = {
  password: PASSWORD,
  deny: ['192.0.2.0/24'],
  paths: {
    '/hooks/stripe': { webhook: { provider: 'stripe', secret: STRIPE } },
    '/hooks/github/': { webhook: { provider: 'github', secret: ['an older one', GITHUB] } },
  },
}

beforeAll(async () => {
  await new Promise<void>(resolve => app.listen(0, '127.0.0.1', resolve))
  const make = guarding()
  server = await startServer({
    trustedProxies: ['127.0.0.1'],
    guarding(definition, tunnel) {
      definitions.push(JSON.stringify(definition))
      return make(definition, tunnel)
    },
  })
  client = new TunnelClient({
    server: server.url,
    subdomain: 'shop',
    port: (app.address() as AddressInfo).port,
    guard,
    inspect: { port: 0, rate: 0 },
  })
  await client.connect()
})
afterAll(async () => {
  await client.disconnect()
  await server.stop()
  app.close()
})

const now = () => Math.floor(Date.now() / 1_000)
const signatureOf = (provider: 'stripe' | 'github', secret: string, at = now()) =>
  signed(provider, { header: () => undefined, body: new TextEncoder().encode('paid') }, { secret, now: at })
const post = (path: string, headers = {}) =>
  ask(server.port, 'shop.localhost', { method: 'POST', path, body: 'paid', headers })

test('what the provider signed gets in without a password, at its path and below', async () => {
  seen.length = 0
  for (const path of ['/hooks/stripe', '/hooks/stripe/', '/hooks/stripe/eu?x=1'])
    expect([path, (await post(path, signatureOf('stripe', STRIPE))).status]).toEqual([path, 200])
  for (const path of ['/hooks/github', '/hooks/github/push'])
    expect([path, (await post(path, signatureOf('github', GITHUB))).status]).toEqual([path, 200])
  expect(seen).toHaveLength(5)
  const row = await new InspectorApi(client).ended('path:/hooks/github/push')
  expect(row.verified).toEqual({ provider: 'github', isValid: true })
})

test('what is not signed, or for another provider, does not reach the app, in no spelling and with no password', async () => {
  seen.length = 0
  const basic = { authorization: `Basic ${Buffer.from(`any:${PASSWORD}`).toString('base64')}` }
  for (const path of ['/hooks/stripe', '/HOOKS/Stripe/x', '/hooks/github/push']) {
    expect((await post(path)).code).toBe('SIGNATURE_INVALID')
    expect((await post(path, basic)).code).toBe('SIGNATURE_INVALID')
  }
  expect((await post('/hooks/github', signatureOf('stripe', STRIPE))).code).toBe('SIGNATURE_INVALID')
  // Below other rules when it is read in another way.
  for (const path of ['//hooks/stripe', '/x/../hooks/stripe', '/hooks/%73tripe', '/hooks;a/stripe'])
    expect([path, (await post(path)).status]).toEqual([path, 400])
  // Letters that Unicode folds to those of the path, and bytes that are no UTF-8.
  for (const method of ['GET', 'POST', 'DELETE'])
    for (const path of [
      '/hoo%E2%84%AAs/stripe/%FF?admin=1',
      '/hoo%E2%84%AAs/stripe',
      '/hook%C5%BF/stripe/%FF',
    ])
      expect([path, (await ask(server.port, 'shop.localhost', { method, path })).status]).toEqual([path, 400])
  expect((await post('/hooks/stripe/%FF')).code).toBe('SIGNATURE_INVALID')
  const visitor = await rawDial(server.port)
  await visitor.send(
    'POST http://shop.localhost/hooks/stripe HTTP/1.1\r\nHost: shop.localhost\r\nContent-Length: 0\r\n\r\n',
  )
  expect(await visitor.until('\r\n')).toStartWith('HTTP/1.1 401')
  visitor.socket.terminate()
  expect(seen).toEqual([])
})

test('all other paths have the ways in of the tunnel, and walls hold for webhooks, too', async () => {
  seen.length = 0
  for (const path of ['/', '/hooks', '/hooks/stripes', '/hooks/other'])
    expect([path, (await post(path, signatureOf('stripe', STRIPE))).code]).toEqual([path, 'ACCESS_REQUIRED'])
  const refused = await post('/hooks/stripe', {
    ...signatureOf('stripe', STRIPE),
    'x-forwarded-for': '192.0.2.9',
  })
  expect([refused.status, refused.code]).toEqual([403, 'ADDRESS_REFUSED'])
  expect(seen).toEqual([])
})

test('the same request again passes within the time of its signature, and not after it', async () => {
  const early = signatureOf('stripe', STRIPE, now() - 290)
  expect((await post('/hooks/stripe', early)).status).toBe(200)
  expect((await post('/hooks/stripe', early)).status).toBe(200)
  const late = await post('/hooks/stripe', signatureOf('stripe', STRIPE, now() - 301))
  expect([late.status, late.code]).toEqual([401, 'SIGNATURE_INVALID'])
  expect(late.body).toContain('too old')
  const future = await post('/hooks/stripe', signatureOf('stripe', STRIPE, now() + 330))
  expect(future.body).toContain('from the future')
})

test('the secret stays at the client', () => {
  expect(definitions).toEqual([expect.stringContaining('"/hooks/stripe":{}')])
  for (const secret of [STRIPE, GITHUB, 'an older one']) expect(definitions[0]).not.toContain(secret)
})

test('what could not be looked at in one place is OPTION_INVALID', async () => {
  const webhook = { provider: 'github', secret: 'x' } as const
  for (const wrong of [
    { paths: { '/hooks': { webhook, bearer: 'a-token-of-a-machine' } } },
    { paths: { '/hooks': { webhook }, '/hooks/admin': { password: PASSWORD } } },
    { paths: { '/hooks': { webhook }, '/Hooks/other': { webhook } } },
    { paths: { '/': { webhook }, '/admin': { password: PASSWORD } } },
    { paths: { '/hooks': { webhook } }, open: ['/hooks/health'] },
    { paths: { '/hooks': { webhook: { provider: 'nobody', secret: 'x' } } } },
    { paths: { '/hooks': { webhook: { provider: 'github', secret: '' } } } },
    // Where there is no path it would be no way in, and a name that is misspelled no wall.
    { webhook, password: PASSWORD },
    { pasword: PASSWORD },
    { paths: { '/a': { pasword: PASSWORD } } },
  ])
    expect([wrong, await codeOf(client.http({ port: 1, guard: wrong as GuardOptions }))]).toEqual([
      wrong,
      'OPTION_INVALID',
    ])
})

test('a rule for paths of visitors and paths that only the app has exclude each other', async () => {
  const guard = { paths: { '/app/hooks': { webhook: { provider: 'github', secret: 'x' } as const } } }
  const verify = { provider: 'github', secret: 'x', paths: ['/app/hooks'] } as const
  for (const rule of [{ guard }, { verify }, { filter: 'method:POST' }])
    for (const prefix of [
      { stripPrefix: '/app' },
      { addPrefix: '/app' },
      { routes: { '/app': { port: 2, stripPrefix: '/app' } } },
    ])
      expect([prefix, await codeOf(client.http({ port: 1, ...rule, ...prefix }))]).toEqual([
        prefix,
        'OPTION_INVALID',
      ])
})
