// GCRA against a bucket of tokens that is counted out, and its bound.

import { expect, test } from 'bun:test'
import { Gcra } from '../../src/gcra.ts'
import { Rate, rate } from '../../src/plugins/rate.ts'

test('the verdicts are those of a bucket that fills evenly', () => {
  const rule = { limit: 5, windowMs: 1_000 }
  const gcra = new Gcra(rule)
  let tokens = rule.limit
  let last = 0
  let seed = 42
  for (let asked = 0, now = 0; asked < 2_000; asked++) {
    seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648
    now += seed % 400
    tokens = Math.min(rule.limit, tokens + ((now - last) * rule.limit) / rule.windowMs)
    last = now
    const isFree = tokens >= 1 - 1e-9
    if (isFree) tokens--
    expect(gcra.take('a', now) === 0).toBe(isFree)
  }
})

test('it says how long to wait, and then lets one pass', () => {
  const gcra = new Gcra({ limit: 2, windowMs: 1_000 })
  expect([gcra.take('a', 0), gcra.take('a', 0)]).toEqual([0, 0])
  const wait = gcra.take('a', 0)
  expect(wait).toBe(500)
  expect(gcra.take('a', wait - 1)).toBe(1)
  expect(gcra.take('a', wait)).toBe(0)
})

test('one address does not use up the allowance of another', () => {
  const rate = new Rate({ limit: 1, windowMs: 60_000 })
  expect(rate.admit({ address: '192.0.2.1' }, 0)).toBeUndefined()
  expect(rate.admit({ address: '192.0.2.1' }, 0)?.code).toBe('RATE_LIMITED')
  expect(rate.admit({ address: '192.0.2.2' }, 0)).toBeUndefined()
})

test('a refusal has RateLimit, RateLimit-Policy and Retry-After', () => {
  const rate = new Rate({ limit: 1, windowMs: 60_000 })
  rate.admit({ address: '192.0.2.1' }, 0)
  expect(rate.admit({ address: '192.0.2.1' }, 1_000)?.headers).toEqual([
    ['ratelimit-policy', '"visitor";q=1;w=60'],
    ['ratelimit', '"visitor";r=0;t=59'],
    ['retry-after', '59'],
  ])
})

test('no more addresses are remembered than the bound, and the quietest is forgotten', () => {
  const gcra = new Gcra({ limit: 1, windowMs: 60_000 }, 3)
  for (const key of ['a', 'b', 'c']) gcra.take(key, 0)
  gcra.count('a', 0)
  gcra.take('d', 0)
  expect(gcra.size).toBe(3)
  expect(gcra.waitOf('b', 0)).toBe(0)
  expect(gcra.waitOf('a', 0)).toBeGreaterThan(0)
})

test('a rate that cannot be used is OPTION_INVALID', () => {
  for (const rule of [
    { limit: 0, windowMs: 60_000 },
    { limit: 1, windowMs: 10 },
    { limit: 1.5, windowMs: 60_000 },
  ])
    expect(() => new Rate(rule)).toThrow(expect.objectContaining({ code: 'OPTION_INVALID' }))
})

test('what threads take of an allotment counts like what is asked for: never more than the bucket has', () => {
  const rule = { limit: 50, windowMs: 1_000 }
  const gcra = new Gcra(rule)
  const allotment = gcra.allot('a', 0)
  if (allotment === undefined) throw new Error('none')
  expect(gcra.allot('a', 0)).toBe(allotment)
  allotment.began()
  const { left } = allotment
  /** As a lane does it. */
  const takeInThread = () => {
    if (Atomics.sub(left, 0, 1) > 0) return true
    Atomics.add(left, 0, 1)
    return false
  }
  let tokens = rule.limit
  let last = 0
  let [passed, seed] = [0, 7]
  for (let asked = 0, now = 0; asked < 5_000; asked++) {
    seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648
    now += seed % 30
    tokens = Math.min(rule.limit, tokens + ((now - last) * rule.limit) / rule.windowMs)
    last = now
    const hasPassed = seed % 3 === 0 ? gcra.take('a', now) === 0 : takeInThread()
    if (!hasPassed) continue
    passed++
    tokens--
    // A thread does not see what came in since the last renewal, so it may pass fewer, and never more.
    expect(tokens).toBeGreaterThan(-1e-6)
  }
  expect(passed).toBeGreaterThan(1_000)
  allotment.ended()
  expect(takeInThread()).toBe(false)
})

test('a key that has too few left gets no allotment, and those that nothing takes from are dropped', () => {
  const gcra = new Gcra({ limit: 20, windowMs: 60_000 })
  for (let taken = 0; taken < 5; taken++) gcra.take('few', 0)
  expect(gcra.allot('few', 0)).toBeUndefined()
  const first = gcra.allot('0', 0)
  for (let key = 1; key <= 64; key++) gcra.allot(String(key), 0)
  expect(gcra.allot('0', 0)).not.toBe(first)
  // What was taken is known to the bucket after that.
  expect(gcra.availableOf('0', 0)).toBe(20)
})

test('by tunnel, all visitors of one share it, and those of another do not', () => {
  const guard = rate({ limit: 2, windowMs: 3_600_000, by: 'tunnel', tunnels: ['a', 'b'] })
  const visitor = { kind: 'http', isSecure: false, owner: 'anna' } as const
  const admit = (tunnel: string, address: string) => guard.admit({ ...visitor, tunnel, address })
  expect([admit('a', '192.0.2.1'), admit('a', '192.0.2.2')]).toEqual([undefined, undefined])
  expect(admit('a', '192.0.2.3')).toMatchObject({ code: 'RATE_LIMITED' })
  expect(admit('b', '192.0.2.3')).toBeUndefined()
  expect(guard.tunnels).toEqual(['a', 'b'])
})

test('by token, the visitors of all its tunnels share one, and those of another token do not', () => {
  const guard = rate({ limit: 2, windowMs: 3_600_000, by: 'token' })
  const visitor = { kind: 'http', isSecure: false, address: '192.0.2.1' } as const
  const admit = (owner: string, tunnel: string) => guard.admit({ ...visitor, owner, tunnel })
  expect([admit('anna', 'a'), admit('anna', 'b')]).toEqual([undefined, undefined])
  expect(admit('anna', 'c')).toMatchObject({
    code: 'RATE_LIMITED',
    headers: expect.arrayContaining([['ratelimit-policy', '"token";q=2;w=3600']]),
  })
  expect(admit('ben', 'a')).toBeUndefined()
})
