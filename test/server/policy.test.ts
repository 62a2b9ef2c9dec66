// Tokens and what each of them opens, asked for over both wires.

import { describe, expect, test } from 'bun:test'
import type { TunnelClientOptions } from '../../src/client/options.ts'
import { TunnelClient, TunnelServer } from '../../src/index.ts'
import { sha256 } from '../../src/own-guard.ts'
import { Bearer } from '../../src/plugins/making.ts'
import type { TokenRule, TunnelServerOptions } from '../../src/server/settings/options.ts'
import { Policy } from '../../src/server/settings/policy.ts'
import { ask } from '../support/ask.ts'
import { NaiveJsonClient } from '../support/json-client.ts'
import { startServer } from '../support/tunnel.ts'

const here = () => new Response('here')

const codeOf = (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    () => 'granted',
    (error: unknown) => (error instanceof Error && 'code' in error ? error.code : error),
  )

const clientOf = (server: TunnelServer, options: TunnelClientOptions = {}) =>
  new TunnelClient({ server: `http://127.0.0.1:${server.port}`, ...options })

/** What one name comes to with the token that has this rule. */
async function outcomeOf(
  wire: 'streams' | 'json',
  rule: Omit<TokenRule, 'token'>,
  subdomain: string,
): Promise<unknown> {
  const server = await startServer({ tokens: [{ token: 'mine', ...rule }, 'other'] })
  await using client = clientOf(server, { wire, token: 'mine', subdomain, fetch: here })
  const outcome = await codeOf(client.connect())
  await client.disconnect()
  await server.stop()
  return outcome
}

for (const wire of ['streams', 'json'] as const) {
  describe(`${wire}: who may have what`, () => {
    test('without a token, with a wrong one, with the right one', async () => {
      const server = await startServer({ tokens: ['right', 'another'] })
      for (const [token, outcome] of [
        [undefined, 'TOKEN_REFUSED'],
        ['wrong', 'TOKEN_REFUSED'],
        ['righ', 'TOKEN_REFUSED'],
        ['rightt', 'TOKEN_REFUSED'],
        ['RIGHT', 'TOKEN_REFUSED'],
        ['right', 'granted'],
        ['another', 'granted'],
      ] as const) {
        const client = clientOf(server, { wire, fetch: here, ...(token !== undefined && { token }) })
        expect([token, await codeOf(client.connect())]).toEqual([token, outcome])
        await client.disconnect()
      }
      await server.stop()
    })

    const names: [patterns: string[], name: string, outcome: string][] = [
      [['app'], 'app', 'granted'],
      [['app'], 'apps', 'NOT_ALLOWED'],
      [['app'], 'my-app', 'NOT_ALLOWED'],
      [['app', 'web'], 'web', 'granted'],
      [['APP'], 'app', 'granted'],
      [['team-*'], 'team-a', 'granted'],
      [['team-*'], 'team', 'NOT_ALLOWED'],
      [['team-*'], 'ateam-a', 'NOT_ALLOWED'],
      [['*-team'], 'a-team', 'granted'],
      [['*-team'], 'a-teams', 'NOT_ALLOWED'],
      [['a*b*c'], 'a1b2c', 'granted'],
      [['a*b*c'], 'a1c', 'NOT_ALLOWED'],
      [['*'], 'anything', 'granted'],
      [['a*a'], 'a', 'NOT_ALLOWED'],
      [['a*a'], 'aa', 'granted'],
      [['ab*ba'], 'aba', 'NOT_ALLOWED'],
      [['*a*a*'], 'banana', 'granted'],
      [['a*a*a*a*a*a*a*a*a*a*a*a*b'], 'a'.repeat(63), 'NOT_ALLOWED'],
    ]
    test.each(names)('%p and the name %s', async (patterns, name, outcome) => {
      expect(await outcomeOf(wire, { names: patterns }, name)).toBe(outcome)
    })

    test('a kind that it has not', async () => {
      expect(await outcomeOf(wire, { kinds: ['tcp', 'udp', 'tls'] }, 'app')).toBe('NOT_ALLOWED')
      expect(await outcomeOf(wire, { kinds: ['http'] }, 'app')).toBe('granted')
    })

    test('a token opens names that others hold no more than any other', async () => {
      const server = await startServer({ tokens: ['one', 'two'] })
      await using holder = clientOf(server, { wire, token: 'one', subdomain: 'app', fetch: here })
      await holder.connect()
      await using other = clientOf(server, { wire, token: 'two', subdomain: 'app', fetch: here })
      await other.connect()
      expect(other.getSubdomain()).toBe('app-2')
      await server.stop()
    })

    test('a token for one name does not come by another: NAME_TAKEN is what it is told', async () => {
      const tokens = ['one', { token: 'narrow', names: ['app'] }, { token: 'wide', names: ['app', 'app-3'] }]
      const server = await startServer({ tokens })
      await using holder = clientOf(server, { wire, token: 'one', subdomain: 'app', fetch: here })
      await holder.connect()
      await using narrow = clientOf(server, { wire, token: 'narrow', subdomain: 'app', fetch: here })
      expect(await codeOf(narrow.connect())).toBe('NAME_TAKEN')
      expect(server.getStats(true).subdomains).toEqual(['app'])
      await server.stop()
    })
  })
}

describe('JSON wire, several names of one connection', () => {
  test('what is refused is told in words, and the connection goes on', async () => {
    const server = await startServer({
      tokens: [{ token: 't', names: ['one', 'two', 'three'], maxTunnels: 2 }],
    })
    using stranger = new NaiveJsonClient(server.port)
    await stranger.closed()
    using client = new NaiveJsonClient(server.port, undefined, undefined, 't')
    const answers = []
    for (const name of ['other', 'one', 'two', 'three', 'one']) answers.push(await client.register(name))
    expect(answers.map(({ type }) => type)).toEqual([
      'error',
      'registered',
      'registered',
      'error',
      'registered',
    ])
    expect(answers[0]?.message).toContain('token does not allow')
    expect(answers[3]?.message).toContain('allows')
    await server.stop()
  })
})

describe('streams: several tunnels of one connection', () => {
  test('a tunnel may have a token of its own, which counts instead of that of the connection', async () => {
    const server = await startServer({
      tokens: [
        { token: 'connection', names: ['nothing-else'] },
        { token: 'app', names: ['app'] },
        { token: 'ports', kinds: ['tcp'], tcpPorts: '21000-21999' },
      ],
    })
    await using client = clientOf(server, { token: 'connection' })
    const http = (subdomain: string, token?: string) =>
      codeOf(client.http({ subdomain, fetch: here, ...(token !== undefined && { token }) }))
    const tcp = (remotePort: number | undefined, token?: string) =>
      codeOf(
        client.tcp({
          port: 1,
          ...(remotePort !== undefined && { remotePort }),
          ...(token !== undefined && { token }),
        }),
      )
    expect(await http('app')).toBe('NOT_ALLOWED')
    expect(await http('app', 'app')).toBe('granted')
    expect(await http('nothing-else')).toBe('granted')
    expect(await http('nothing-else-2', 'app')).toBe('NOT_ALLOWED')
    expect(await http('other', 'unknown')).toBe('TOKEN_REFUSED')
    expect(await http('other', 'ports')).toBe('NOT_ALLOWED')
    expect(await tcp(20_000, 'ports')).toBe('NOT_ALLOWED')
    expect(await tcp(undefined, 'ports')).toBe('granted')
    const [, , ported] = client.tunnels
    expect(ported?.port).toBeGreaterThanOrEqual(21_000)
    expect(ported?.port).toBeLessThanOrEqual(21_999)
    expect(await tcp(undefined, 'app')).toBe('NOT_ALLOWED')
    expect(await ask(server.port, 'app.localhost')).toMatchObject({ body: 'here' })
    await server.stop()
  })

  test('names without kinds open no port, unless the rule lists ports too', async () => {
    const server = await startServer({
      tokens: [
        { token: 'names', names: ['app'] },
        { token: 'ports', names: ['app'], tcpPorts: '21000-21999' },
        { token: 'kinds', names: ['app'], kinds: ['http', 'udp'] },
      ],
    })
    const outcomes: unknown[] = []
    for (const token of ['names', 'ports', 'kinds']) {
      await using client = clientOf(server, { token })
      outcomes.push([
        token,
        await codeOf(client.tcp({ port: 1 })),
        await codeOf(client.udp({ port: 1 })),
        await codeOf(client.http({ subdomain: 'app', fetch: here })),
      ])
    }
    expect(outcomes).toEqual([
      ['names', 'NOT_ALLOWED', 'NOT_ALLOWED', 'granted'],
      ['ports', 'granted', 'NOT_ALLOWED', 'granted'],
      ['kinds', 'NOT_ALLOWED', 'granted', 'granted'],
    ])
    await server.stop()
  })

  test('ports of a token that the server has not: none can be had', async () => {
    const server = await startServer({
      tcpPorts: '21000-21009',
      tokens: [{ token: 't', tcpPorts: '22000-22009' }],
    })
    await using client = clientOf(server, { token: 't' })
    expect(await codeOf(client.tcp({ port: 1 }))).toBe('NOT_ALLOWED')
    expect(await codeOf(client.tcp({ port: 1, remotePort: 21_000 }))).toBe('NOT_ALLOWED')
    expect(await codeOf(client.tcp({ port: 1, remotePort: 22_000 }))).toBe('NOT_ALLOWED')
    await server.stop()
  })

  test('more tunnels than the token has', async () => {
    const tokens = [{ token: 't', maxTunnels: 2 }, 'free']
    const server = await startServer({ tokens, limits: { maxTunnels: 3 } })
    await using client = clientOf(server, { token: 't' })
    const add = (subdomain: string, token?: string) =>
      codeOf(client.http({ subdomain, fetch: here, ...(token !== undefined && { token }) }))
    expect([await add('one'), await add('two'), await add('three')]).toEqual([
      'granted',
      'granted',
      'CLIENT_LIMIT',
    ])
    expect([await add('three', 'free'), await add('four', 'free')]).toEqual(['granted', 'CLIENT_LIMIT'])
    await client.tunnels[0]?.close()
    expect(await add('four', 'free')).toBe('granted')
    await server.stop()
  })
})

describe('rules that cannot be used', () => {
  const bad: [what: string, tokens: TunnelServerOptions['tokens']][] = [
    ['an empty token', ['']],
    ['a token with a space', ['a b']],
    ['a token that is not ASCII', ['ä']],
    ['a token that no client can send', ['x'.repeat(256)]],
    ['the same token twice', ['one', { token: 'one', names: ['app'] }]],
    ['no names', [{ token: 't', names: [] }]],
    ['an empty name', [{ token: 't', names: [''] }]],
    ['a name with a dot', [{ token: 't', names: ['a.b'] }]],
    ['a name that would be a regular expression', [{ token: 't', names: ['(a+)+'] }]],
    ['no kinds', [{ token: 't', kinds: [] }]],
    ['a kind that there is not', [{ token: 't', kinds: ['ftp' as never] }]],
    ['a range from more to less', [{ token: 't', tcpPorts: '9-5' }]],
    ['a range of three', [{ token: 't', tcpPorts: '1-2-3' }]],
    ['a port of 0', [{ token: 't', tcpPorts: '0' }]],
    ['a port of 65536', [{ token: 't', udpPorts: '65536' }]],
    ['a port with a sign', [{ token: 't', udpPorts: '-5' }]],
    ['no number', [{ token: 't', udpPorts: 'ssh' }]],
    ['no tunnels', [{ token: 't', maxTunnels: 0 }]],
    ['half a tunnel', [{ token: 't', maxTunnels: 1.5 }]],
    ['no ports', [{ token: 't', maxPorts: 0 }]],
    ['no clients', [{ token: 't', maxClients: 0 }]],
  ]
  test.each(bad)('%s', (_what, tokens = []) => {
    expect(() => new TunnelServer({ tokens })).toThrow(expect.objectContaining({ code: 'OPTION_INVALID' }))
  })

  test('an error names what is wrong, and no token', () => {
    const secret = 'very-secret'
    for (const rule of [
      { names: ['a.b'] },
      { kinds: ['ftp' as never] },
      { tcpPorts: 'x' },
      { maxTunnels: 0 },
    ]) {
      const make = () => new TunnelServer({ tokens: [{ token: secret, ...rule }] })
      expect(make).toThrow(/tokens\./)
      expect(make).not.toThrow(secret)
    }
  })
})

describe('comparison', () => {
  test('every token is found by all of it and by nothing less, wherever it stands', () => {
    const tokens = Array.from({ length: 200 }, (_, index) => ({
      token: `token-${index}`,
      maxTunnels: index + 1,
    }))
    const policy = new Policy(tokens)
    for (const [index, { token }] of tokens.entries()) {
      expect(policy.ruleOf(token)?.maxTunnels).toBe(index + 1)
      expect(policy.ruleOf(`${token}\0`)).toBeUndefined()
    }
    expect(policy.ruleOf('')).toBeUndefined()
    expect(policy.ruleOf('token-')).toBeUndefined()
    expect(policy.ruleOf(undefined)).toBeUndefined()
  })

  test('the time that it takes says nothing about where a token stands', () => {
    const policy = new Policy(Array.from({ length: 2_000 }, (_, index) => `token-${index}`))
    const timeOf = (token: string): number => {
      const times = Array.from({ length: 60 }, () => {
        const from = performance.now()
        policy.ruleOf(token)
        return performance.now() - from
      })
      return times.toSorted((one, other) => one - other)[10] ?? 0
    }
    timeOf('warm')
    const [first, last, none] = [timeOf('token-0'), timeOf('token-1999'), timeOf('unknown')]
    // One that stopped at the match would find the first in a thousandth of the time.
    for (const time of [last, none]) expect(first).toBeGreaterThan(time / 4)
  })
})

test('time says neither whether a token is right nor which one it is', () => {
  // With so many, one that matches early would be found a thousand times as fast as the last.
  const tokens = Array.from({ length: 4_000 }, (_, index) => `token-${index}`)
  const policy = new Policy(tokens)
  const bearer = new Bearer(
    tokens.map(token => sha256(token).toString('base64url')),
    'shop',
  )
  const visitorWith = (token: string) =>
    ({ head: { header: () => `Bearer ${token}` } }) as unknown as Parameters<Bearer['recognise']>[0]
  for (const judge of [
    (token: string) => policy.ruleOf(token),
    (token: string) => bearer.recognise(visitorWith(token)),
  ]) {
    const times = new Map<string, number[]>([
      ['token-0', []],
      ['token-3999', []],
      ['none', []],
    ])
    // In turns, and the least of each: what else the machine does is in all of them.
    for (let round = 0; round < 30; round++)
      for (const [token, all] of times) {
        const startedAt = performance.now()
        judge(token)
        all.push(performance.now() - startedAt)
      }
    const least = [...times.values()].map(all => Math.min(...all))
    expect(Math.max(...least) / Math.min(...least)).toBeLessThan(10)
  }
})
