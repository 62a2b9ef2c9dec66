// Refused tokens: told, slowed down by address, and never in the way of a good one.

import { describe, expect, test } from 'bun:test'
import { TunnelClient, type TunnelServer } from '../../src/index.ts'
import { TokenThrottle, type Verdict } from '../../src/server/limits/token-throttle.ts'
import type { TunnelServerEvents } from '../../src/server/settings/options.ts'
import { Policy } from '../../src/server/settings/policy.ts'
import { DEFAULT_BOUNDS } from '../support/bounded-server.ts'
import { Clock } from '../support/clock.ts'
import { codeOf, eventually, next } from '../support/events.ts'
import { NaiveJsonClient } from '../support/json-client.ts'
import { type RawConnection, rawDial } from '../support/raw.ts'
import { control, SpeakingClient } from '../support/speaker.ts'
import { startServer } from '../support/tunnel.ts'
import { within } from '../support/within.ts'

const here = () => new Response('here')

function gateAt(limits: Partial<typeof DEFAULT_BOUNDS> = {}) {
  const errors: Error[] = []
  const clock = new Clock()
  const policy = new Policy(['good'])
  const throttle = new TokenThrottle({
    limits: () => ({ ...DEFAULT_BOUNDS, ...limits }),
    scheduler: clock,
    ruleOf: token => policy.ruleOf(token),
    failed: error => errors.push(error),
  })
  return { clock, gate: throttle, errors }
}

test('where looking at a token fails, the verdict says so, now and later, and the address is not slowed down', () => {
  const errors: Error[] = []
  const clock = new Clock()
  const throttle = new TokenThrottle({
    limits: () => ({ ...DEFAULT_BOUNDS, maxTokenGuesses: 1 }),
    scheduler: clock,
    ruleOf: () => {
      throw new Error('the store is locked')
    },
    failed: error => errors.push(error),
  })
  const verdicts: Verdict[] = [throttle.judge('good', '192.0.2.1')]
  throttle.judgeLater('good', '192.0.2.1', verdict => verdicts.push(verdict))
  clock.advance(1)
  expect(verdicts).toEqual(['INTERNAL', 'INTERNAL'])
  expect(errors.map(({ message }) => message)).toEqual(['the store is locked', 'the store is locked'])
  expect(throttle.delayOf('192.0.2.1')).toBe(0)
})

describe('the delay of an address', () => {
  test('begins behind maxTokenGuesses refusals, doubles up to tokenDelayMs, and is forgotten with time', () => {
    const { clock, gate: throttle } = gateAt()
    const delays: number[] = []
    for (let refusal = 0; refusal < 20; refusal++) {
      delays.push(throttle.delayOf('192.0.2.1'))
      expect(throttle.judge('bad', '192.0.2.1')).toBe('TOKEN_REFUSED')
    }
    expect(delays).toEqual([
      ...Array.from({ length: 10 }, () => 0),
      100,
      200,
      400,
      800,
      1_600,
      3_200,
      5_000,
      5_000,
      5_000,
      5_000,
    ])
    expect(throttle.delayOf('192.0.2.2')).toBe(0)
    clock.advance(60_000)
    expect(throttle.delayOf('192.0.2.1')).toBe(100)
    clock.advance(10_000)
    expect(throttle.delayOf('192.0.2.1')).toBe(0)
  })

  test('is that of the first 64 bits of an IPv6 address', () => {
    const { gate: throttle } = gateAt({ maxTokenGuesses: 1 })
    throttle.judge('bad', '2001:db8::1')
    expect([throttle.delayOf('2001:db8::2'), throttle.delayOf('2001:db8:0:1::1')]).toEqual([100, 0])
  })

  test('is none with tokenDelayMs 0, and goes up to another one at its bound', () => {
    const none = gateAt({ tokenDelayMs: 0, maxTokenGuesses: 1 }).gate
    const short = gateAt({ tokenDelayMs: 150, maxTokenGuesses: 1 }).gate
    for (const throttle of [none, short])
      for (let index = 0; index < 5; index++) throttle.judge('bad', '192.0.2.1')
    expect([none.delayOf('192.0.2.1'), short.delayOf('192.0.2.1')]).toEqual([0, 150])
  })

  test('what a listener throws behind the delay is reported, and does not reach the event loop', () => {
    const { clock, gate: throttle, errors } = gateAt({ maxTokenGuesses: 1 })
    throttle.judge('bad', '192.0.2.1')
    const thrown = new Error('thrown')
    throttle.judgeLater('good', '192.0.2.1', () => {
      throw thrown
    })
    clock.advance(10_000)
    expect(errors).toEqual([thrown])
  })

  test('a good token waits as long as a bad one, and is good; more than maxTokenWaits do not wait', () => {
    const { clock, gate: throttle } = gateAt({ maxTokenGuesses: 1, maxTokenWaits: 3 })
    throttle.judge('bad', '192.0.2.1')
    const verdicts: (Verdict | 'good')[] = []
    const told = (verdict: Verdict) => verdicts.push(typeof verdict === 'string' ? verdict : 'good')
    throttle.judgeLater('bad', '192.0.2.1', told)
    throttle.judgeLater('good', '192.0.2.1', told)
    const stop = throttle.judgeLater('good', '192.0.2.1', told)
    expect(throttle.judgeLater('good', '192.0.2.1', told)).toBe('TOO_MANY_REFUSALS')
    if (typeof stop === 'function') stop()
    expect(typeof throttle.judgeLater('good', '192.0.2.1', told)).toBe('function')
    clock.advance(99)
    expect(verdicts).toEqual([])
    clock.advance(2)
    expect(verdicts).toEqual(['TOKEN_REFUSED', 'good', 'good'])
    expect(clock.timerCount).toBe(0)
    expect(typeof throttle.judgeLater('good', '192.0.2.1', told)).toBe('function')
  })

  test('says nothing to a client that shows no token: it guesses nothing, is not counted, and is refused at once', () => {
    const { gate: throttle } = gateAt({ maxTokenGuesses: 1 })
    for (let index = 0; index < 20; index++)
      expect(throttle.judge(undefined, '192.0.2.1')).toBe('TOKEN_REFUSED')
    expect(throttle.delayOf('192.0.2.1')).toBe(0)
    for (let index = 0; index < 5; index++) throttle.judge('bad', '192.0.2.1')
    expect([throttle.isQuick('good', '192.0.2.1'), throttle.isQuick(undefined, '192.0.2.1')]).toEqual([
      false,
      true,
    ])
  })

  test('is kept for a bounded number of addresses', () => {
    const { gate: throttle } = gateAt({ maxTokenGuesses: 1 })
    throttle.judge('bad', '192.0.2.1')
    for (let index = 0; index < 16_384; index++) throttle.judge('bad', `10.0.${index >> 8}.${index & 255}`)
    expect([throttle.delayOf('192.0.2.1'), throttle.delayOf('10.0.0.0')]).toEqual([0, 100])
  })
})

// ── Against a live server ──────────────────────────────────────────────────────────────────────────────────────

/** An upgrade as a proxy at the loopback passes it on. */
async function upgrade(server: TunnelServer, token: string, from = '203.0.113.7'): Promise<RawConnection> {
  return await upgradeWith(server, `Authorization: Bearer ${token}\r\n`, from)
}

async function upgradeWith(server: TunnelServer, lines: string, from: string): Promise<RawConnection> {
  const raw = await rawDial(server.port)
  await raw.send(
    'GET / HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n' +
      `Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n${lines}X-Forwarded-For: ${from}\r\n\r\n`,
  )
  return raw
}

/** What was answered. A connection that was refused is over then. */
async function statusOf(raw: RawConnection): Promise<string> {
  const status = (await raw.until('\r\n\r\n')).slice(9, 12)
  if (status !== '101') raw.socket.terminate()
  return status
}

const proxied = { tokens: ['good'], trustedProxies: ['127.0.0.1'] }

describe('a refused token', () => {
  test('by header is a refused event with address, wire and code, and the end of the connection', async () => {
    await using server = await startServer(proxied)
    const refused = next(server, 'refused')
    const raw = await upgrade(server, 'bad')
    expect(await raw.end()).toStartWith('HTTP/1.1 401 ')
    raw.socket.terminate()
    expect(await refused).toEqual({ remoteAddress: '203.0.113.7', wire: 'json', code: 'TOKEN_REFUSED' })
  })

  test('by message is one, too; after too many of them the connection is closed', async () => {
    await using server = await startServer({ tokens: ['good'], limits: { maxTokenGuesses: 3 } })
    const told: TunnelServerEvents['refused'][] = []
    server.on('refused', event => told.push(event))
    const client = await SpeakingClient.connect(server.port, { authorization: 'Bearer good' })
    const guess = (ref: number) =>
      control({ type: 'register', ref, kind: 'http', name: 'app', token: `bad-${ref}` })
    client.say(...[1, 2, 3, 4, 5].map(guess))
    await within(client.closed, 'the connection to close')
    expect(told.length).toBe(3)
    expect(told[0]).toEqual({
      remoteAddress: '127.0.0.1',
      wire: 'streams',
      code: 'TOKEN_REFUSED',
      kind: 'http',
      name: 'app',
    })
  })

  test('slows its address down, where a good one gets in after the same delay, and no other address', async () => {
    await using server = await startServer({ ...proxied, limits: { maxTokenGuesses: 3, tokenDelayMs: 400 } })
    for (let guess = 0; guess < 8; guess++) expect(await statusOf(await upgrade(server, 'bad'))).toBe('401')
    const startedAt = performance.now()
    const slow = statusOf(await upgrade(server, 'good'))
    expect(await statusOf(await upgrade(server, 'good', '203.0.113.8'))).toBe('101')
    expect(await statusOf(await upgrade(server, 'bad', '203.0.113.8'))).toBe('401')
    expect(await slow).toBe('101')
    expect(performance.now() - startedAt).toBeGreaterThanOrEqual(390)
    expect(server.getStats().connections).toBe(2)
  })

  test.each(['', 'Authorization: Basic Z29vZA==\r\n', 'Sec-WebSocket-Protocol: localtunnels.streams.1\r\n'])(
    'is none where none is shown (%j): 401 at once, told, and the next good one does not wait',
    async lines => {
      await using server = await startServer({
        ...proxied,
        limits: { maxTokenGuesses: 3, tokenDelayMs: 60_000 },
      })
      const codes: string[] = []
      server.on('refused', ({ code }) => codes.push(code))
      for (let index = 0; index < 30; index++)
        expect(await statusOf(await upgradeWith(server, lines, '203.0.113.7'))).toBe('401')
      expect(codes).toEqual(Array(30).fill('TOKEN_REFUSED'))
      expect(await statusOf(await upgrade(server, 'good'))).toBe('101')
    },
  )

  test('a thousand guesses of one address at once: few are looked at, the rest are refused unlooked', async () => {
    await using server = await startServer({ ...proxied, limits: { maxTokenWaits: 5, tokenDelayMs: 2_000 } })
    const codes: string[] = []
    server.on('refused', ({ code }) => codes.push(code))
    const guesses = await Promise.all(
      Array.from({ length: 200 }, (_, index) => upgrade(server, `bad-${index}`)),
    )
    await eventually(() => codes.length >= 195, 'the refusals')
    expect(codes.filter(code => code === 'TOO_MANY_REFUSALS').length).toBeGreaterThanOrEqual(180)
    const throttled = await Promise.race(
      guesses.map(async raw => {
        const head = await raw.until('\r\n\r\n')
        return head.startsWith('HTTP/1.1 429') ? head : new Promise<string>(() => {})
      }),
    )
    expect(throttled.toLowerCase()).toContain('retry-after: ')
    for (const raw of guesses) raw.socket.terminate()
  })

  test('that waits and leaves is forgotten, and one of a message waits past the time for a registration', async () => {
    await using server = await startServer({
      tokens: ['good', 'other'],
      limits: { maxTokenGuesses: 1, tokenDelayMs: 700, registerTimeoutMs: 100, maxTokenWaits: 1 },
    })
    for (let guess = 0; guess < 4; guess++) {
      using bad = new NaiveJsonClient(server.port, undefined, undefined, 'bad')
      await bad.closed()
    }
    const leaving = await upgrade(server, 'good')
    expect(await statusOf(await upgrade(server, 'good'))).toBe('429')
    leaving.socket.terminate()
    await eventually(() => server.getStats().connections === 0, 'nothing')
    const client = await SpeakingClient.connect(server.port, { authorization: 'Bearer good' })
    client.say(control({ type: 'register', ref: 1, kind: 'http', name: 'app', token: 'other' }))
    expect((await client.verdicts(1))[0]).toMatchObject({ type: 'granted', name: 'app' })
    client.close()
  })

  test('our own client takes the delay as it comes', async () => {
    await using server = await startServer({
      tokens: ['good'],
      limits: { maxTokenGuesses: 1, tokenDelayMs: 300 },
    })
    const client = (token: string) =>
      new TunnelClient({ server: `http://127.0.0.1:${server.port}`, token, subdomain: 'app', fetch: here })
    for (let guess = 0; guess < 3; guess++)
      expect(await codeOf(client('bad').connect())).toBe('TOKEN_REFUSED')
    await using good = client('good')
    expect(await codeOf(good.connect())).toBe('resolved')
  })
})

describe('where a client comes from', () => {
  test.each([
    ['203.0.113.7', '203.0.113.7'],
    ['6.6.6.6, 203.0.113.7', '203.0.113.7'],
    ['6.6.6.6, 203.0.113.7, 10.0.0.1', '203.0.113.7'],
    ['203.0.113.7:443', '203.0.113.7'],
    ['[2001:db8::7]:443', '2001:db8::7'],
    ['203.0.113.7, nonsense', '127.0.0.1'],
    ['', '127.0.0.1'],
  ])('X-Forwarded-For: %s of a trusted proxy is %s', async (header, address) => {
    await using server = await startServer({ tokens: ['good'], trustedProxies: ['127.0.0.1', '10.0.0.0/8'] })
    const refused = next(server, 'refused')
    await statusOf(await upgrade(server, 'bad', header))
    expect((await refused).remoteAddress).toBe(address)
  })

  test('of others it is not believed', async () => {
    await using server = await startServer({ tokens: ['good'] })
    const refused = next(server, 'refused')
    await statusOf(await upgrade(server, 'bad'))
    expect((await refused).remoteAddress).toBe('127.0.0.1')
  })
})
