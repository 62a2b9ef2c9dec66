// Clients that connect with tokens of an issuer: a real one, one that goes away, and tokens that end.

import { afterEach, expect, test } from 'bun:test'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import Provider from 'oidc-provider'
import { type JwtTokenRule, jwtTokens, TunnelClient, type TunnelServer } from '../../src/index.ts'
import { ask } from '../support/ask.ts'
import { codeOf, next } from '../support/events.ts'
import { AUDIENCE, startIssuer } from '../support/issuer.ts'
import { startServer } from '../support/tunnel.ts'

const clients: TunnelClient[] = []
afterEach(async () => {
  await Promise.all(clients.splice(0).map(client => client.disconnect()))
})

function clientOf(server: TunnelServer, token: string | undefined, subdomain = 'ci-1'): TunnelClient {
  const client = new TunnelClient({
    server: `http://127.0.0.1:${server.port}`,
    subdomain,
    exact: true,
    fetch: () => new Response('here'),
    ...(token !== undefined && { token }),
  })
  clients.push(client)
  return client
}

const secondsFromNow = (seconds: number) => Math.floor(Date.now() / 1_000) + seconds

/** An OpenID Connect provider that gives its clients tokens for the tunnel server. */
async function startProvider() {
  const server = createServer()
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const provider = new Provider(issuer, {
    clients: [
      {
        client_id: 'pipeline-7',
        client_secret: 'a-secret-that-stays-there',
        grant_types: ['client_credentials'],
        redirect_uris: [],
        response_types: [],
      },
    ],
    features: {
      clientCredentials: { enabled: true },
      devInteractions: { enabled: false },
      resourceIndicators: {
        enabled: true,
        getResourceServerInfo: () => ({
          scope: 'tunnels',
          audience: AUDIENCE,
          accessTokenFormat: 'jwt',
          jwt: { sign: { alg: 'RS256' } },
        }),
      },
    },
  })
  server.on('request', provider.callback())
  return {
    issuer,
    async token(): Promise<string> {
      const answer = await fetch(`${issuer}/token`, {
        method: 'POST',
        headers: { authorization: `Basic ${btoa('pipeline-7:a-secret-that-stays-there')}` },
        body: new URLSearchParams({ grant_type: 'client_credentials', resource: AUDIENCE, scope: 'tunnels' }),
      })
      return ((await answer.json()) as { readonly access_token: string }).access_token
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise(resolve => server.close(resolve))
    },
  }
}

test('a client of a real issuer gets the names of its claims, and the server never had a secret of its', async () => {
  await using provider = await startProvider()
  const tokenReader = jwtTokens([
    { issuer: provider.issuer, audience: AUDIENCE, claims: { scope: 'tunnels' }, names: ['{client_id}--*'] },
  ])
  await using server = await startServer({ tokenReader })
  const seen = next(server, 'connection')
  const token = await provider.token()
  await clientOf(server, token, 'pipeline-7--app').connect()
  expect(await seen).toMatchObject({ subdomain: 'pipeline-7--app', token: 'pipeline-7' })
  expect((await ask(server.port, 'pipeline-7--app.localhost')).body).toBe('here')
  expect(await codeOf(clientOf(server, token, 'shop').connect())).toBe('NOT_ALLOWED')
  expect(await codeOf(clientOf(server, undefined).connect())).toBe('TOKEN_REFUSED')
  expect(await codeOf(clientOf(server, `${token.slice(0, -8)}AAAAAAAA`).connect())).toBe('TOKEN_REFUSED')
})

async function withIssuer(rule: Partial<JwtTokenRule> = {}) {
  const issuer = await startIssuer()
  const reader = (more: Partial<JwtTokenRule> = {}) =>
    jwtTokens([{ issuer: issuer.url, audience: AUDIENCE, keyCooldownMs: 0, ...rule, ...more }])
  const server = await startServer({ tokenReader: reader(), tokens: [{ token: 'fixed', names: ['fixed'] }] })
  return {
    issuer,
    server,
    reader,
    async [Symbol.asyncDispose]() {
      await server.stop()
      issuer[Symbol.dispose]()
    },
  }
}

test('tokens of the server work beside them, also one that looks like one of an issuer', async () => {
  await using one = await withIssuer()
  await clientOf(one.server, 'fixed', 'fixed').connect()
  await one.server.reload({ tokens: ['dotted.like.these'], tokenReader: one.reader() })
  await clientOf(one.server, 'dotted.like.these', 'other').connect()
})

test('while the issuer is away a client is told to try again, and gets in when it is back', async () => {
  await using one = await withIssuer()
  const token = await one.issuer.sign()
  one.issuer.isAway = true
  expect(await codeOf(clientOf(one.server, token).connect())).toBe('ISSUER_UNAVAILABLE')
  // That was no guess: nobody is slowed down for it.
  one.issuer.isAway = false
  await clientOf(one.server, token).connect()
})

test('with the end of its token a client loses its tunnels, and hears why', async () => {
  await using one = await withIssuer({ sessionMs: 0 })
  // Clocks may differ by 30 seconds: two are left.
  const token = await one.issuer.sign({ exp: secondsFromNow(-28) })
  const client = clientOf(one.server, token)
  await client.connect()
  expect((await next(client, 'close')).error).toMatchObject({ code: 'TOKEN_EXPIRED' })
  expect((await ask(one.server.port, 'ci-1.localhost')).code).toBe('TUNNEL_NOT_FOUND')
  expect(await codeOf(clientOf(one.server, token).connect())).toBe('TOKEN_EXPIRED')
})

test('a token for one tunnel ends with that tunnel alone', async () => {
  await using one = await withIssuer({ sessionMs: 0, names: ['ci-*'] })
  const client = clientOf(one.server, 'fixed', 'fixed')
  await client.connect()
  const token = await one.issuer.sign({ exp: secondsFromNow(-28) })
  const revoked = new Promise(resolve =>
    client.on('error', error => resolve('code' in error ? error.code : error)),
  )
  await client.http({ subdomain: 'ci-7', token, fetch: () => new Response('for a moment') })
  expect((await ask(one.server.port, 'ci-7.localhost')).body).toBe('for a moment')
  expect(await revoked).toBe('TOKEN_EXPIRED')
  expect((await ask(one.server.port, 'ci-7.localhost')).code).toBe('TUNNEL_NOT_FOUND')
  expect((await ask(one.server.port, 'fixed.localhost')).body).toBe('here')
})

test('a reload that has the rule no more takes it back, and one that has it leaves its clients alone', async () => {
  await using one = await withIssuer()
  const client = clientOf(one.server, await one.issuer.sign({ team: 'shop' }))
  await client.connect()
  const tokens = ['another']
  await one.server.reload({ tokens, tokenReader: one.reader({ claims: { team: 'shop' } }) })
  expect(client.isConnected()).toBe(true)
  const closed = next(client, 'close')
  await one.server.reload({ tokens, tokenReader: one.reader({ claims: { team: 'blog' } }) })
  expect((await closed).error).toMatchObject({ code: 'TOKEN_REFUSED' })
})

test('all clients of a rule share its bounds', async () => {
  await using one = await withIssuer({ maxTunnels: 1 })
  await clientOf(one.server, await one.issuer.sign({ sub: 'one' }), 'ci-1').connect()
  expect(await codeOf(clientOf(one.server, await one.issuer.sign({ sub: 'two' }), 'ci-2').connect())).toBe(
    'CLIENT_LIMIT',
  )
})

test('scopes that cannot be used are refused when the server is made', async () => {
  const issuer = 'https://id.example'
  for (const rule of [{ names: [] }, { names: ['a b'] }, { tcpPorts: 'many' }, { maxTunnels: 0 }])
    expect(
      await codeOf(startServer({ tokenReader: jwtTokens([{ issuer, audience: AUDIENCE, ...rule }]) })),
    ).toBe('OPTION_INVALID')
})
