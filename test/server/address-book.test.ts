// Which addresses count as one, and what is forgotten.

import { expect, test } from 'bun:test'
import { AddressCounter } from '../../src/server/settings/address-counter.ts'
import { networkOf } from '../../src/wire/ip-address.ts'

test('IPv4 addresses count one by one, IPv6 ones by their first 64 bits', () => {
  expect(networkOf('203.0.113.7')).toBe('203.0.113.7')
  expect(networkOf('::ffff:203.0.113.7')).toBe('203.0.113.7')
  expect(networkOf('2001:db8:1:2:3:4:5:6')).toBe('2001:db8:1:2::/64')
  expect(networkOf('2001:db8:1:2::6')).toBe('2001:db8:1:2::/64')
  expect(networkOf('2001:0db8:0001:0002:0:0:0:6')).toBe('2001:db8:1:2::/64')
  expect(networkOf('2001:db8::1')).toBe('2001:db8::/64')
  expect(networkOf('fe80::1%eth0')).toBe('fe80::/64')
  expect(networkOf('::1')).toBe('::1')
  // Proxies and libraries spell the same address in several ways.
  expect(networkOf('2001:DB8:A::1')).toBe(networkOf('2001:db8:a:0:7::'))
  expect(networkOf('::ffff:cb00:7107')).toBe('203.0.113.7')
  expect(networkOf('0:0:0:0:0:FFFF:cb00:7108')).toBe('203.0.113.8')
  expect(networkOf('0:0:0:0:0:0:0:1')).toBe('::1')
})

test('the loopback is counted only if the bounds say so', () => {
  const bounds = { maxOpen: 1, maxPerSecond: 0, includesLoopback: false }
  const book = new AddressCounter(() => bounds)
  for (const address of ['127.0.0.1', '127.0.0.1', '::1', '::1']) expect(book.enter(address)).toBe('')
  bounds.includesLoopback = true
  expect(book.enter('127.0.0.1')).toBe('127.0.0.1')
  expect(book.enter('127.0.0.1')).toBeUndefined()
  book.leave('127.0.0.1')
  expect(book.enter('127.0.0.1')).toBe('127.0.0.1')
})

test('what could not be refused counts against the rate, for two seconds at most', () => {
  const book = new AddressCounter(() => ({ maxOpen: 0, maxPerSecond: 10, includesLoopback: true }))
  const key = book.enter('203.0.113.7')!
  book.didAgain(key, 5)
  const allowed = Array.from({ length: 20 }, () => book.mayDoAgain(key)).filter(Boolean).length
  // Four are left, and those that came back while this ran.
  expect(allowed).toBeGreaterThanOrEqual(4)
  expect(allowed).toBeLessThan(10)
  expect(book.enter('203.0.113.8')).toBe('203.0.113.8')
  book.didAgain(key, 1_000_000)
  expect(book.enter('203.0.113.7')).toBeUndefined()
})
