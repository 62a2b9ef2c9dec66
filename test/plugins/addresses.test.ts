import { expect, test } from 'bun:test'
import { plainAddress } from '../../src/networks.ts'
import { Addresses, sourceOf } from '../../src/plugins/addresses.ts'

const passes = (address: string, allow?: string[], deny?: string[]) =>
  new Addresses(allow, deny).admit({ address }) === undefined

test('only addresses of the allowed ranges pass', () => {
  const allow = ['203.0.113.0/24', '2001:db8::/32', '198.51.100.7']
  expect(passes('203.0.113.255', allow)).toBe(true)
  expect(passes('203.0.114.0', allow)).toBe(false)
  expect(passes('198.51.100.7', allow)).toBe(true)
  expect(passes('198.51.100.8', allow)).toBe(false)
  expect(passes('2001:db8:ffff::1', allow)).toBe(true)
  expect(passes('2001:db9::1', allow)).toBe(false)
})

test('deny wins over allow, and alone lets all others pass', () => {
  expect(passes('203.0.113.9', ['203.0.113.0/24'], ['203.0.113.9'])).toBe(false)
  expect(passes('203.0.113.8', undefined, ['203.0.113.9'])).toBe(true)
})

test('an IPv4 visitor on an IPv6 socket is that IPv4 visitor, in every spelling', () => {
  const spellings = [
    '::ffff:203.0.113.9',
    '::FFFF:cb00:7109',
    '0:0:0:0:0:ffff:203.0.113.9',
    '::ffff:203.0.113.9%eth0',
  ]
  for (const address of spellings) {
    expect(plainAddress(address)).toBe('203.0.113.9')
    expect(passes(address, ['203.0.113.0/24'])).toBe(true)
    expect(passes(address, undefined, ['203.0.113.9'])).toBe(false)
    expect(passes(address, ['::ffff:203.0.113.0/120'])).toBe(true)
  }
  expect(plainAddress('::ffff:1')).toBe('::ffff:1')
})

test('a network is one of its own family: ::/0 is every IPv6 address, and no IPv4 one', () => {
  for (const wide of ['::/0', '::/1']) {
    expect(passes('203.0.113.9', [wide])).toBe(false)
    expect(passes('::ffff:203.0.113.9', [wide])).toBe(false)
    expect(passes('203.0.113.9', undefined, [wide])).toBe(true)
    expect(passes('2001:db8::1', [wide])).toBe(true)
    expect(passes('2001:db8::1', undefined, [wide])).toBe(false)
  }
  expect(passes('2001:db8::1', ['0.0.0.0/0'])).toBe(false)
  expect(passes('203.0.113.9', ['::ffff:0:0/96'])).toBe(true)
  expect(passes('2001:db8::1', ['::ffff:0:0/96'])).toBe(false)
})

test('a visitor without an address is refused where addresses count', () => {
  expect(passes('', undefined, ['203.0.113.9'])).toBe(false)
})

test('an empty allow list lets nobody pass', () => {
  expect(passes('203.0.113.9', [])).toBe(false)
})

test('what is no address is OPTION_INVALID', () => {
  for (const entry of [
    '',
    'example.com',
    '10.0.0.0/33',
    '10.0.0.0/',
    '10.0.0.0/8/8',
    '::1/129',
    '10.0.0',
    'fe80::1%eth0',
    '::ffff:10.0.0.0/90',
  ])
    expect(() => new Addresses([entry], undefined)).toThrow(
      expect.objectContaining({ code: 'OPTION_INVALID' }),
    )
})

test('rates count an IPv6 visitor by its /64', () => {
  expect(sourceOf('2001:db8:0:1::5')).toBe(sourceOf('2001:db8:0:1:ffff:ffff:ffff:ffff'))
  expect(sourceOf('2001:db8:0:1::5')).not.toBe(sourceOf('2001:db8:0:2::5'))
  expect(sourceOf('::1')).toBe('0:0:0:0::/64')
  expect(sourceOf('::ffff:192.0.2.1')).toBe('192.0.2.1')
})

test('both lists have at most 1,000 entries together', () => {
  const many = Array.from({ length: 999 }, (_, index) => `10.0.${index >> 8}.${index & 255}`)
  expect(passes('192.0.2.1', ['192.0.2.1'], many)).toBe(true)
  expect(() => new Addresses(['192.0.2.1', '192.0.2.2'], many)).toThrow(
    expect.objectContaining({ code: 'OPTION_INVALID' }),
  )
})
