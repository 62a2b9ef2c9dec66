// What a guard let in and lasts: it ends with its permission, and stays where the next guard would let it in as well.

import { expect, test } from 'bun:test'
import type { GuardOptions } from '../../src/guard.ts'
import { makeLink, OwnGuard } from '../../src/own-guard.ts'
import type { Guard, Verdict } from '../../src/plugin.ts'
import { guarding } from '../../src/plugins/guarding.ts'
import { Kept, type Permission } from '../../src/plugins/kept.ts'
import { codeOf, cookieOf, guardOf, headOf, isPass, refusalOf, submit } from '../support/guards.ts'

const SECRET = 's'.repeat(32)
const TOKEN = 'a-token-of-a-machine'
const BEARER = `Authorization: Bearer ${TOKEN}`

/** Keeps what was let in; `isCut` says whether it still is. */
function open(verdict: Verdict) {
  if (!isPass(verdict)) throw new Error(`not let in: ${codeOf(verdict)}`)
  const state = { isCut: false, over: () => {} }
  state.over = verdict.whileOpen?.(() => (state.isCut = true)) ?? state.over
  return state
}

/** The guard that takes the place of another one, when the client asks for that. */
const next = async (options: GuardOptions, kind: 'http' | 'tcp' = 'http'): Promise<Guard> =>
  (await guardOf({ secret: SECRET, ...options }, {}, kind)).guard

test('what the next guard would let in stays, and ends with that one', async () => {
  const { guard, ask } = await guardOf({ secret: SECRET, bearer: TOKEN, open: ['/feed'] })
  const machine = open(await ask('GET /', [BEARER]))
  const reader = open(await ask('GET /feed'))
  const after = await next({ bearer: TOKEN, password: 'correct horse' })
  guard.close?.(after)
  expect([machine.isCut, reader.isCut]).toEqual([false, true])
  reader.over()
  after.close?.(await next({ bearer: 'another-token-of-a-machine' }))
  expect(machine.isCut).toBe(true)
  machine.over()
})

test('an address that the next guard refuses is cut, of raw bytes as well', async () => {
  const { guard, ask } = await guardOf({ secret: SECRET, deny: ['203.0.113.1'] }, {}, 'tcp')
  const one = open(await ask('', [], { address: '192.0.2.1' }))
  const other = open(await ask('', [], { address: '192.0.2.2' }))
  guard.close?.(await next({ deny: ['192.0.2.2'] }, 'tcp'))
  expect([one.isCut, other.isCut]).toEqual([false, true])
})

test('a rate that is used up cuts nobody who was counted when they came', async () => {
  const rate = { limit: 1, windowMs: 60_000 }
  const { guard, ask } = await guardOf({ secret: SECRET, rate })
  const one = open(await ask('GET /'))
  const after = await next({ rate, deny: ['203.0.113.1'] })
  guard.close?.(after)
  expect(one.isCut).toBe(false)
  expect(codeOf(await after.admit({ ...VISITOR, head: headOf('GET /') }))).toBe('passed')
})

const VISITOR = { kind: 'http', tunnel: 'shop', owner: 'anna', address: '192.0.2.1', isSecure: true } as const

test('a link that is taken back cuts what it let in, and leaves alone what others did', async () => {
  const first = await guardOf({ secret: SECRET, links: true })
  const enter = async (link: { readonly url: string }) => {
    const { pathname } = new URL(link.url)
    return cookieOf(refusalOf(await first.ask(`GET ${pathname}`)))
  }
  const links = [makeLink('https://shop.example', SECRET), makeLink('https://shop.example', SECRET)] as const
  const sockets = []
  for (const link of links) sockets.push(open(await first.ask('GET /socket', [await enter(link)])))
  const own = new OwnGuard({ links: true, secret: SECRET })
  own.revoke(links[0].id)
  first.guard.close?.(await guarding()(await own.define('shop'), { kind: 'http', name: 'shop' }))
  expect(sockets.map(({ isCut }) => isCut)).toEqual([true, false])
})

test('who signed out, and a link that was used, stay so under the next guard', async () => {
  const options = { secret: SECRET, password: 'correct horse', links: true }
  const first = await guardOf(options)
  const form = await first.ask('POST /.localtunnels/password', ['Content-Length: 1'])
  const cookie = cookieOf(await submit(form, 'password=correct horse'))
  await submit(await first.ask('POST /.localtunnels/logout', ['Content-Length: 0', cookie]), '')
  const { pathname } = new URL(makeLink('https://shop.example', SECRET, { once: true }).url)
  const press = async (guard: Guard) =>
    guard.admit({ ...VISITOR, head: headOf(`POST ${pathname}`, ['Content-Length: 1']) })
  expect(cookieOf(await submit(await press(first.guard), ''))).toContain('localtunnels')
  const after = await next({ ...options, allow: ['192.0.2.0/24'] })
  first.guard.close?.(after)
  expect(codeOf(await after.admit({ ...VISITOR, head: headOf('GET /', [cookie]) }))).toBe('ACCESS_REQUIRED')
  expect(codeOf(await press(after))).toBe('LINK_REFUSED')
})

test('with another secret, what sessions let in ends', async () => {
  const { guard, ask } = await guardOf({ secret: SECRET, password: 'correct horse' })
  const form = await ask('POST /.localtunnels/password', ['Content-Length: 1'])
  const socket = open(await ask('GET /', [cookieOf(await submit(form, 'password=correct horse'))]))
  guard.close?.(await next({ password: 'correct horse', secret: 't'.repeat(32) }))
  expect(socket.isCut).toBe(true)
})

test('when the time of a tunnel is over, so is what was let in', async () => {
  const { ask } = await guardOf({ ttlMs: 100 }, {}, 'tcp')
  const cut = Promise.withResolvers<void>()
  const verdict = await ask('')
  if (!isPass(verdict)) throw new Error(codeOf(verdict))
  verdict.whileOpen?.(cut.resolve)
  await cut.promise
  // The two clocks may differ by a moment.
  while (codeOf(await ask('')) !== 'TUNNEL_EXPIRED') await Bun.sleep(1)
})

test('one timer serves all: the first that ends is cut first, and what is over leaves nothing behind', async () => {
  const kept = new Kept()
  const order: string[] = []
  const last = Promise.withResolvers<void>()
  const permission = (endsAt: number | undefined): Permission => ({
    visitor: VISITOR,
    path: '/',
    way: undefined,
    ids: ['one'],
    endsAt,
  })
  const now = Date.now()
  const stays = kept.keep(permission(undefined), () => order.push('never'))
  for (const [name, afterMs] of [
    ['second', 120],
    ['first', 40],
  ] as const) {
    const over = kept.keep(permission(now + afterMs), () => {
      order.push(name)
      over()
      if (name === 'second') last.resolve()
    })
  }
  await last.promise
  expect(order).toEqual(['first', 'second'])
  expect(kept.size).toBe(1)
  stays()
  expect(kept.size).toBe(0)
})
