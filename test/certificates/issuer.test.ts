// When certificates are ordered and renewed, on a clock of its own. The authority is scripted: what a real one does is in
// acme/.

import { expect, test } from 'bun:test'
import { challengeCertificate } from '../../src/certificates/acme/pending-challenges.ts'
import type { Authority, SuggestedWindow, Wish } from '../../src/certificates/authority.ts'
import { backOffMs } from '../../src/certificates/back-off.ts'
import { Issuer, type IssuerEvents, type IssuerOptions } from '../../src/certificates/issuer.ts'
import { renewalTimes } from '../../src/certificates/renewal-times.ts'
import type { Certificate } from '../../src/certificates.ts'
import { ERRORS, TunnelError } from '../../src/errors.ts'
import { Clock } from '../support/clock.ts'
import { MemoryCertificates } from '../support/memory-certificates.ts'
import { rejection } from '../support/rejection.ts'
import { deferred } from '../support/within.ts'

const HOUR = 3_600_000
const DAY = 24 * HOUR
const START = Date.UTC(2026, 0, 1)

/** Certificates that began a day ago and end in a day, unless the test says what happens instead. */
class ScriptedAuthority implements Authority {
  readonly wishes: Wish[] = []
  /** Orders of an earlier process: they are continued. */
  readonly underWay = new Set<string>()
  readonly #clock: Clock
  window: SuggestedWindow | undefined
  failure: Error | undefined
  /** Orders wait for it. */
  gate: Promise<void> | undefined

  constructor(clock: Clock) {
    this.#clock = clock
  }

  async obtain(wish: Wish): Promise<Certificate> {
    if (!this.underWay.has(wish.id)) await wish.admit()
    this.wishes.push(wish)
    await this.gate
    if (this.failure !== undefined) throw this.failure
    return challengeCertificate(wish.names[0]!, 'any', this.#clock.now())
  }

  async suggestedWindow(): Promise<SuggestedWindow | undefined> {
    return this.window
  }
}

function setUp(options: Partial<IssuerOptions> = {}) {
  const clock = options.clock instanceof Clock ? options.clock : new Clock(START)
  const authority = new ScriptedAuthority(clock)
  const store = options.store ?? new MemoryCertificates()
  const issuer = new Issuer({ authority, store, clock, random: () => 0, isAllowed: () => true, ...options })
  const failures: IssuerEvents['failed'][] = []
  const errors: TunnelError[] = []
  issuer.on('failed', failure => failures.push(failure))
  issuer.on('error', error => errors.push(error))
  return { clock, authority, store, issuer, failures, errors }
}

type Ends = ReturnType<typeof setUp>

/** Lets promises that wait for nothing but each other go on. */
async function settle(): Promise<void> {
  for (let turn = 0; turn < 5; turn++) await new Promise(resolve => setImmediate(resolve))
}

/** Time passes in steps, so that what timers start can finish before the next one. */
async function pass(clock: Clock, ms: number): Promise<void> {
  const endMs = clock.now() + ms
  for (;;) {
    await settle()
    const nextMs = clock.nextInMs
    if (nextMs === undefined || clock.now() + nextMs > endMs) break
    clock.advance(nextMs)
  }
  clock.advance(endMs - clock.now())
  await settle()
}

const failure = (more: object = {}) => Object.assign(new TunnelError('ACME_UNREACHABLE'), more)

test('a name is ordered when it is asked for first, and is at hand from then on', async () => {
  const { issuer, authority } = setUp()
  const first = await issuer.find('www.a.test')
  expect(issuer.find('WWW.A.test.')).toBe(first!)
  expect(authority.wishes.map(({ names }) => names)).toEqual([['www.a.test']])
})

test('concurrent handshakes of one name share one order', async () => {
  const { issuer, authority } = setUp()
  const found = await Promise.all(Array.from({ length: 20 }, async () => issuer.find('www.a.test')))
  expect(new Set(found).size).toBe(1)
  expect(authority.wishes).toHaveLength(1)
})

test('a name that is not allowed costs nothing: no order, no look into the store', async () => {
  const store = new MemoryCertificates()
  await store.close()
  const { issuer, authority } = setUp({ store, isAllowed: name => name === 'yes.a.test' })
  expect(issuer.find('no.a.test')).toBeUndefined()
  expect(issuer.find('127.0.0.1')).toBeUndefined()
  expect(issuer.find('localhost')).toBeUndefined()
  expect(issuer.find('../../etc/passwd')).toBeUndefined()
  expect(authority.wishes).toEqual([])
})

test('who is asked whether a name is allowed may answer later, or fail', async () => {
  const later = setUp({ isAllowed: async name => name === 'yes.a.test' })
  expect(await later.issuer.find('no.a.test')).toBeUndefined()
  expect(await later.issuer.find('yes.a.test')).toBeDefined()
  for (const isAllowed of [
    () => {
      throw new Error('broken')
    },
    () => Promise.reject(new Error('broken')),
  ]) {
    const { issuer } = setUp({ isAllowed })
    expect(await rejection(Promise.resolve(issuer.find('a.test')))).toMatchObject({ code: 'INTERNAL' })
  }
})

test('a wildcard of `always` serves one label below it, and hellos without a name; no other name is ordered', async () => {
  const { issuer, authority, clock } = setUp({
    always: [['tunnel.test', '*.tunnel.test']],
    isAllowed: () => false,
  })
  await issuer.start()
  await pass(clock, 1)
  const found = issuer.find('shop.tunnel.test')
  expect(found).toHaveProperty('cert')
  expect(issuer.find('tunnel.test')).toBe(found!)
  expect(issuer.find('')).toBe(found!)
  expect(issuer.find('a.b.tunnel.test')).toBeUndefined()
  expect(authority.wishes.map(({ names }) => names)).toEqual([['tunnel.test', '*.tunnel.test']])
  await issuer.stop()
})

test('a certificate is renewed when its window begins, and the old one serves until the new one is there', async () => {
  const { issuer, authority, clock } = setUp({ always: [['a.test']] })
  authority.window = { startMs: START + 6 * HOUR, endMs: START + 8 * HOUR, retryAfterMs: 2 * HOUR }
  await issuer.start()
  await pass(clock, 1)
  const first = issuer.find('a.test')
  await pass(clock, 6 * HOUR - 2)
  expect(authority.wishes).toHaveLength(1)
  const { promise, resolve } = deferred()
  authority.gate = promise
  await pass(clock, 2 * HOUR)
  expect(authority.wishes).toHaveLength(2)
  expect(issuer.find('a.test')).toBe(first!)
  resolve()
  await settle()
  // A certificate of fifteen hours ago says so: `replaces`.
  expect(authority.wishes[1]!.replaces).toBe((first as Certificate).cert)
  expect(issuer.find('a.test')).not.toBe(first!)
  await issuer.stop()
})

test('a window that moves to the past, as after a revocation, renews at the next look', async () => {
  const { issuer, authority, clock } = setUp({ always: [['a.test']] })
  authority.window = { startMs: START + 10 * HOUR, endMs: START + 12 * HOUR, retryAfterMs: HOUR }
  await issuer.start()
  await pass(clock, HOUR / 2)
  authority.window = { startMs: START - DAY, endMs: START - HOUR, retryAfterMs: HOUR }
  await pass(clock, HOUR)
  expect(authority.wishes.length).toBeGreaterThan(1)
  await issuer.stop()
})

test('without advice a certificate is renewed after two thirds of its lifetime', async () => {
  const { issuer, authority, clock } = setUp({ always: [['a.test']] })
  await issuer.start()
  // Its lifetime began a day before it was ordered.
  await pass(clock, 8 * HOUR - 2)
  expect(authority.wishes).toHaveLength(1)
  await pass(clock, HOUR / 2)
  expect(authority.wishes).toHaveLength(2)
  await issuer.stop()
})

test('an order that fails waits 1, 3, 9 minutes and so on, and the visitor reads why and until when', async () => {
  const { issuer, authority, clock, failures } = setUp()
  authority.failure = failure()
  const code = async () => rejection(Promise.resolve(issuer.find('a.test')))
  expect(await code()).toMatchObject({ code: 'ACME_UNREACHABLE' })
  expect(await code()).toMatchObject({
    code: 'CERTIFICATE_DELAYED',
    message: expect.stringContaining('2026-01-01T00:01:00.000Z'),
  })
  expect(authority.wishes).toHaveLength(1)
  for (const minutes of [1, 3, 9, 27]) {
    await pass(clock, minutes * 60_000 - 1)
    expect(await code()).toMatchObject({ code: 'CERTIFICATE_DELAYED' })
    await pass(clock, 1)
    expect(await code()).toMatchObject({ code: 'ACME_UNREACHABLE' })
  }
  expect(failures).toHaveLength(5)
  authority.failure = undefined
  await pass(clock, 81 * 60_000)
  expect(await issuer.find('a.test')).toBeDefined()
})

test('what the authority asks for is waited for: Retry-After of a rate limit', async () => {
  const { issuer, authority, failures } = setUp()
  authority.failure = failure({ retryAfterMs: 5 * HOUR })
  await rejection(Promise.resolve(issuer.find('a.test')))
  expect(failures[0]!.untilMs).toBe(START + 5 * HOUR)
})

test('failures survive a restart', async () => {
  const store = new MemoryCertificates()
  const before = setUp({ store })
  before.authority.failure = failure()
  await rejection(Promise.resolve(before.issuer.find('a.test')))
  await before.issuer.stop()
  const after = setUp({ store, always: [['a.test']] })
  await after.issuer.start()
  await pass(after.clock, 59_000)
  expect(after.authority.wishes).toEqual([])
  // Told anew, once: whoever started it again sees why there is no certificate.
  const [told, ...more] = after.failures
  expect(told).toMatchObject({ names: ['a.test'], untilMs: START + 60_000, hasCertificate: false })
  expect(told?.error).toMatchObject(before.failures[0]!.error)
  expect(more).toEqual([])
  await pass(after.clock, 1_000)
  expect(after.authority.wishes).toHaveLength(1)
  await after.issuer.stop()
})

test('a renewal that fails is tried again, and the certificate serves on', async () => {
  const { issuer, authority, clock, failures } = setUp({ always: [['a.test']] })
  await issuer.start()
  await pass(clock, HOUR)
  const first = issuer.find('a.test')
  authority.failure = failure()
  await pass(clock, 7 * HOUR + 20 * 60_000)
  expect(failures.length).toBeGreaterThanOrEqual(3)
  expect(failures.every(({ hasCertificate }) => hasCertificate)).toBe(true)
  expect(issuer.find('a.test')).toBe(first!)
  authority.failure = undefined
  await pass(clock, 2 * HOUR)
  expect(issuer.find('a.test')).not.toBe(first!)
  await issuer.stop()
})

test('of an ended certificate that cannot be renewed, the visitor gets that one: the true reason', async () => {
  const { issuer, authority, clock } = setUp()
  const first = await issuer.find('a.test')
  authority.failure = failure()
  clock.advance(2 * DAY)
  expect(await issuer.find('a.test')).toBe(first!)
})

test('a name that is not allowed any more is not renewed, and its certificate is forgotten when it ends', async () => {
  let isAllowed = true
  const { issuer, authority, clock, store } = setUp({ isAllowed: () => isAllowed })
  await issuer.start()
  await issuer.find('a.test')
  isAllowed = false
  await pass(clock, 23 * HOUR)
  expect(await store.certificate('a.test')).toBeDefined()
  await pass(clock, 2 * HOUR)
  expect(await store.certificate('a.test')).toBeUndefined()
  expect(issuer.find('a.test')).toBeUndefined()
  expect(authority.wishes).toHaveLength(1)
  await issuer.stop()
})

test('orders for one name are bounded within a day', async () => {
  const { issuer, authority, clock } = setUp({ maxOrdersPerName: 2 })
  authority.failure = failure()
  for (let attempt = 0; attempt < 2; attempt++) {
    await rejection(Promise.resolve(issuer.find('a.test')))
    clock.advance(3 * 60_000)
  }
  expect(await rejection(Promise.resolve(issuer.find('a.test')))).toMatchObject({
    code: 'CERTIFICATE_DELAYED',
    message: expect.stringContaining('2026-01-02T00:00:00.000Z'),
  })
  expect(authority.wishes).toHaveLength(2)
  authority.failure = undefined
  clock.advance(DAY)
  expect(await issuer.find('a.test')).toBeDefined()
})

test('orders for all names are bounded within three hours, also over restarts', async () => {
  const store = new MemoryCertificates()
  const { issuer } = setUp({ store, maxOrders: 2 })
  await issuer.find('a.test')
  await issuer.find('b.test')
  expect(await rejection(Promise.resolve(issuer.find('c.test')))).toMatchObject({
    code: 'CERTIFICATE_DELAYED',
  })
  const next = setUp({ store, maxOrders: 2, clock: new Clock(START + 3 * HOUR - 1) })
  expect(await rejection(Promise.resolve(next.issuer.find('d.test')))).toMatchObject({
    code: 'CERTIFICATE_DELAYED',
  })
  const later = setUp({ store, maxOrders: 2, clock: new Clock(START + 3 * HOUR) })
  expect(await later.issuer.find('d.test')).toBeDefined()
})

test('a tunnel that is gone before its order is placed gets none, so that no owner escapes the count of its orders', async () => {
  const tunnels = new Set(['a.test'])
  const store = new MemoryCertificates()
  const { issuer, authority, failures } = setUp({
    store,
    isAllowed: name => tunnels.has(name),
    ownerOf: name => (tunnels.has(name) ? 'owner' : undefined),
    maxOrdersPerOwner: 1,
  })
  const found = rejection(Promise.resolve(issuer.find('a.test')))
  tunnels.delete('a.test')
  expect(await found).toMatchObject({
    code: 'CERTIFICATE_DELAYED',
    message:
      'No tunnel has the name a.test any more. Its certificate is ordered when a visitor comes to a tunnel of this name.',
  })
  // Nothing has failed, and there is no time to wait for.
  expect(failures).toEqual([])
  expect(authority.wishes).toHaveLength(0)
  // It comes back: it has not used up anything, and waits for nothing.
  tunnels.add('a.test')
  expect(await issuer.find('a.test')).toBeDefined()
})

test('orders that tunnels use up leave room for the domains of the server and for renewals', async () => {
  const store = new MemoryCertificates()
  const clock = new Clock(START)
  const { issuer } = setUp({ store, clock, maxOrders: 2 })
  for (const name of ['a.test', 'b.test']) await issuer.find(name)
  const own = setUp({ store, clock, maxOrders: 2, always: [['tunnel.test']] })
  expect(await rejection(Promise.resolve(own.issuer.find('c.test')))).toMatchObject({
    code: 'CERTIFICATE_DELAYED',
  })
  expect(await own.issuer.find('tunnel.test')).toBeDefined()
  // The reserve is bounded, too: a fifth, and one at least.
  const more = setUp({ store, clock, maxOrders: 2, always: [['other.test']] })
  expect(await rejection(Promise.resolve(more.issuer.find('other.test')))).toMatchObject({
    code: 'CERTIFICATE_DELAYED',
  })
})

test('handshakes that wait are bounded, in number and in time; the order goes on', async () => {
  const { issuer, authority, clock } = setUp({ maxWaiting: 2, maxWaitMs: 5_000 })
  const { promise, resolve } = deferred()
  authority.gate = promise
  const waiting = [issuer.find('a.test'), issuer.find('b.test')].map(found =>
    rejection(Promise.resolve(found)),
  )
  expect(await rejection(Promise.resolve(issuer.find('c.test')))).toMatchObject({
    code: 'CERTIFICATE_DELAYED',
    message: expect.stringContaining('2 handshakes'),
  })
  await settle()
  clock.advance(5_000)
  for (const reason of await Promise.all(waiting))
    expect(reason).toMatchObject({ code: 'CERTIFICATE_DELAYED' })
  resolve()
  await settle()
  expect(issuer.find('a.test')).toHaveProperty('cert')
  expect(authority.wishes).toHaveLength(2)
})

test('orders under way are bounded; the others wait in line', async () => {
  const { issuer, authority } = setUp({ maxUnderWay: 2 })
  const { promise, resolve } = deferred()
  authority.gate = promise
  const found = ['a', 'b', 'c', 'd'].map(async name => issuer.find(`${name}.test`))
  await settle()
  expect(authority.wishes).toHaveLength(2)
  resolve()
  for (const each of await Promise.all(found)) expect(each).toBeDefined()
  expect(authority.wishes).toHaveLength(4)
})

test('a host whose DNS leads elsewhere when its turn comes is not ordered, and asked again a minute later', async () => {
  let isHere = true
  const refusalOf = async () => (isHere ? undefined : new TunnelError('HOST_NOT_POINTED_HERE'))
  const { issuer, authority, clock, failures } = setUp({ maxUnderWay: 1, refusalOf })
  const { promise, resolve } = deferred()
  authority.gate = promise
  const first = issuer.find('first.test')
  const moved = rejection(Promise.resolve(issuer.find('moved.test')))
  await settle()
  isHere = false
  resolve()
  expect(await first).toBeDefined()
  // Each thing is said once, also to who asks while the time to wait is not over.
  const { meaning, action } = ERRORS.HOST_NOT_POINTED_HERE
  const reason = `${meaning} It is tried again at 2026-01-01T00:01:00.000Z.`
  expect(await moved).toMatchObject({ code: 'HOST_NOT_POINTED_HERE', message: `${reason} ${action}` })
  expect(await rejection(Promise.resolve(issuer.find('moved.test')))).toMatchObject({
    code: 'CERTIFICATE_DELAYED',
    message: `${reason} ${ERRORS.CERTIFICATE_DELAYED.action}`,
  })
  expect(authority.wishes.map(({ id }) => id)).toEqual(['first.test'])
  expect(failures).toMatchObject([{ names: ['moved.test'], untilMs: START + 60_000 }])
  isHere = true
  clock.advance(60_000)
  expect(await issuer.find('moved.test')).toBeDefined()
})

test('a host whose DNS led elsewhere meanwhile is not renewed, and its certificate serves on until it ends', async () => {
  let isHere = true
  const refusalOf = async () => (isHere ? undefined : new TunnelError('HOST_NOT_POINTED_HERE'))
  const { issuer, authority, clock, failures } = setUp({ refusalOf })
  await issuer.start()
  await issuer.find('a.test')
  isHere = false
  await pass(clock, 20 * HOUR)
  expect(authority.wishes).toHaveLength(1)
  expect(failures.map(({ error }) => error.code)).toContain('HOST_NOT_POINTED_HERE')
  expect(issuer.find('a.test')).toHaveProperty('cert')
  await issuer.stop()
})

test('certificates in memory are bounded; others come from the store, without an order', async () => {
  const { issuer, authority } = setUp({ maxKept: 2 })
  for (const name of ['a.test', 'b.test', 'c.test']) await issuer.find(name)
  expect(issuer.find('c.test')).not.toBeInstanceOf(Promise)
  const again = issuer.find('a.test')
  expect(again).toBeInstanceOf(Promise)
  expect(await again).toBeDefined()
  expect(authority.wishes).toHaveLength(3)
})

test('two processes with one store: one orders, the other waits and serves the same certificate', async () => {
  const store = new MemoryCertificates()
  const clock = new Clock(START)
  const one = setUp({ store, clock })
  const two = setUp({ store, clock })
  const { promise, resolve } = deferred()
  one.authority.gate = promise
  const first = one.issuer.find('a.test')
  await settle()
  const second = two.issuer.find('a.test')
  // The claim is prolonged for as long as the order takes.
  await pass(clock, 20_000)
  expect(two.authority.wishes).toEqual([])
  resolve()
  await pass(clock, 2_000)
  expect((await second)?.cert).toBe((await first)!.cert)
  expect(two.authority.wishes).toEqual([])
})

test('what another process orders after an order failed here is told as issued', async () => {
  const store = new MemoryCertificates()
  const clock = new Clock(START)
  const here = setUp({ store, clock, always: [['a.test']] })
  const issued: IssuerEvents['issued'][] = []
  here.issuer.on('issued', one => issued.push(one))
  here.authority.failure = failure()
  await here.issuer.start()
  await settle()
  expect(here.failures).toMatchObject([{ hasCertificate: false }])
  const other = setUp({ store, clock, always: [['a.test']] })
  await pass(clock, 59_000)
  await store.removeRefusal('a.test')
  await other.issuer.start()
  await pass(clock, 10_000)
  expect(issued).toMatchObject([{ names: ['a.test'], isRenewal: false }])
  expect(here.authority.wishes).toHaveLength(1)
  await Promise.all([here.issuer.stop(), other.issuer.stop()])
})

test('of processes that want the same certificate one orders; when it fails, the others wait as long as it does', async () => {
  const store = new MemoryCertificates()
  const clock = new Clock(START)
  const [one, two] = [0, 1].map(() => setUp({ store, clock, always: [['a.test']] })) as [Ends, Ends]
  const orders = () => one.authority.wishes.length + two.authority.wishes.length
  const { promise, resolve } = deferred()
  one.authority.gate = promise
  for (const { authority } of [one, two]) authority.failure = failure()
  await one.issuer.start()
  await settle()
  // It waits for the claim of the first.
  await two.issuer.start()
  await pass(clock, 5_000)
  resolve()
  await pass(clock, 5_000)
  expect(orders()).toBe(1)
  // Each of them says why there is no certificate, and until when.
  const told = { names: ['a.test'], untilMs: START + 65_000, hasCertificate: false }
  for (const { failures } of [one, two]) expect(failures).toMatchObject([told])
  await pass(clock, 60_000)
  expect(orders()).toBe(2)
  expect(await store.refusal('a.test')).toMatchObject({ failures: 2 })
  for (const { authority } of [one, two]) authority.failure = undefined
  await pass(clock, 4 * 60_000)
  expect(orders()).toBe(3)
  for (const { issuer } of [one, two]) expect(issuer.find('a.test')).toHaveProperty('cert')
  await Promise.all([one.issuer.stop(), two.issuer.stop()])
})

test('a process that was killed keeps the next one from its names for 30 s at most', async () => {
  const store = new MemoryCertificates()
  await store.claim('a.test', 'killed', START, START + 30_000)
  const { issuer, authority, clock } = setUp({ store, maxWaitMs: 60_000 })
  const found = issuer.find('a.test')
  await pass(clock, 29_000)
  expect(authority.wishes).toEqual([])
  await pass(clock, 2_000)
  expect(await found).toBeDefined()
})

test('a certificate that another process renewed is served soon after', async () => {
  const store = new MemoryCertificates()
  const { issuer, clock } = setUp({ store })
  const first = await issuer.find('a.test')
  const newer = challengeCertificate('a.test', 'newer', START)
  const stored = (await store.certificate('a.test'))!
  await store.saveCertificate({
    ...stored,
    ...newer,
    renewAtMs: START + 20 * HOUR,
    lookAtMs: START + 20 * HOUR,
  })
  expect(issuer.find('a.test')).toBe(first!)
  clock.advance(9 * HOUR)
  expect(issuer.find('a.test')).toBe(first!)
  await settle()
  expect(issuer.find('a.test')).toMatchObject({ cert: newer.cert })
})

test('orders of an earlier process are continued at the start, those of last week are forgotten', async () => {
  const store = new MemoryCertificates()
  const order = { url: 'https://ca.test/1', key: 'key' }
  await store.saveOrder({ ...order, id: 'a.test', names: ['a.test'], startedAtMs: START - HOUR })
  await store.saveOrder({ ...order, id: 'old.test', names: ['old.test'], startedAtMs: START - 8 * DAY })
  const { issuer, authority } = setUp({ store, isAllowed: () => false })
  authority.underWay.add('a.test')
  await issuer.start()
  await settle()
  expect(authority.wishes.map(({ id }) => id)).toEqual(['a.test'])
  expect(await store.orders(10)).toEqual([])
  await issuer.stop()
})

test('a certificate in the store that cannot be read keeps no other from being renewed', async () => {
  const { issuer, authority, clock, store, errors } = setUp({ always: [['a.test']] })
  const broken = { cert: 'broken', key: 'broken', notAfterMs: START + 9 * DAY, renewAtMs: START + DAY }
  await store.saveCertificate({ id: 'b.test', names: ['b.test'], ...broken, lookAtMs: START })
  await issuer.start()
  await pass(clock, 9 * HOUR)
  expect(errors).toHaveLength(1)
  expect(authority.wishes.map(({ id }) => id)).toEqual(['a.test', 'a.test'])
  await issuer.stop()
})

test('stop ends what waits, and leaves no timer', async () => {
  const store = new MemoryCertificates()
  await store.claim('a.test', 'other', START, START + DAY)
  const { issuer, clock, failures } = setUp({ store, always: [['a.test']] })
  await issuer.start()
  await settle()
  await issuer.stop()
  expect(clock.timerCount).toBe(0)
  // The end of this process is no failure of the name.
  expect(failures).toEqual([])
  expect(issuer.find('b.test')).toBeUndefined()
})

test('names that no authority can certify are refused as `always`', () => {
  for (const names of [[], ['localhost'], ['127.0.0.1'], ['*.*.test'], ['a b.test']]) {
    expect(() => setUp({ always: [names] })).toThrow(expect.objectContaining({ code: 'OPTION_INVALID' }))
  }
})

test('the moment of a renewal is drawn once from a window, and never leaves too little time', () => {
  const lifetime = { notBeforeMs: 0, notAfterMs: 100 * DAY }
  const window = { startMs: 60 * DAY, endMs: 70 * DAY, retryAfterMs: undefined }
  const drawn = renewalTimes(lifetime, window, DAY, () => 0.5)
  expect(drawn.renewAtMs).toBe(65 * DAY)
  expect(drawn.lookAtMs).toBe(DAY + 6 * HOUR)
  expect(renewalTimes(lifetime, window, 2 * DAY, () => 0.9, drawn).renewAtMs).toBe(65 * DAY)
  const moved = { ...window, startMs: 50 * DAY, endMs: 52 * DAY }
  expect(renewalTimes(lifetime, moved, 2 * DAY, () => 0.5, drawn).renewAtMs).toBe(51 * DAY)
  const late = { ...window, startMs: 200 * DAY, endMs: 300 * DAY }
  expect(renewalTimes(lifetime, late, DAY, () => 0.5).renewAtMs).toBe(95 * DAY)
  // An authority that cannot be asked takes back nothing of what it said.
  expect(renewalTimes(lifetime, undefined, 2 * DAY, () => 0.9, drawn).renewAtMs).toBe(65 * DAY)
  expect(renewalTimes(lifetime, { ...window, retryAfterMs: 1 }, DAY, () => 0).lookAtMs).toBe(DAY + 60_000)
})

test('waits after failures grow to half a day, and spread', () => {
  expect(backOffMs(1, undefined, () => 0)).toBe(60_000)
  expect(backOffMs(1, undefined, () => 1)).toBe(66_000)
  expect(backOffMs(100, undefined, () => 0)).toBe(12 * HOUR)
  expect(backOffMs(1, 365 * DAY, () => 0)).toBe(7 * DAY)
})
