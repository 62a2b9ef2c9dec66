// The small public functions: names, ids, hosts, URLs, backoff, headers.

import { describe, expect, test } from 'bun:test'
import { TunnelError } from '../src/errors.ts'
import {
  ADJECTIVES,
  alternativeNames,
  calculateBackoff,
  formatUrl,
  generateId,
  generateSubdomain,
  headersToRecord,
  isReservedName,
  isValidPort,
  isValidSubdomain,
  NOUNS,
  parseHost,
  RESERVED_NAMES,
  slugOf,
} from '../src/names.ts'

const ROUNDS = Number(process.env.LT_FUZZ ?? 2_000)

function codeOf(run: () => unknown): string | undefined {
  try {
    run()
  } catch (error) {
    return error instanceof TunnelError ? error.code : String(error)
  }
}

describe('generated names', () => {
  test('are made of 128 different adjectives and 128 different nouns, each one a label', () => {
    for (const words of [ADJECTIVES, NOUNS]) {
      expect(new Set(words).size).toBe(128)
      expect(words.filter(word => !/^[a-z]+$/.test(word))).toEqual([])
    }
  })

  test('are valid, not reserved, and rarely repeat', () => {
    const names = Array.from({ length: ROUNDS }, generateSubdomain)
    expect(names.filter(name => !isValidSubdomain(name) || isReservedName(name))).toEqual([])
    expect(new Set(names.slice(0, 100)).size).toBeGreaterThan(90)
  })

  test('reach the first and the last word of both lists', () => {
    const seen = new Set(Array.from({ length: 20_000 }, generateSubdomain).flatMap(name => name.split('-')))
    for (const word of [ADJECTIVES[0]!, ADJECTIVES[127]!, NOUNS[0]!, NOUNS[127]!])
      expect(seen).toContain(word)
  })
})

describe('generateId', () => {
  test('has the length asked for, is URL-safe and does not repeat', () => {
    for (const length of [1, 2, 15, 16, 33, 1_024])
      expect(generateId(length)).toMatch(new RegExp(`^[\\w-]{${length}}$`))
    expect(new Set(Array.from({ length: ROUNDS }, () => generateId())).size).toBe(ROUNDS)
  })

  test('uses all 64 characters about equally', () => {
    const counts = new Map<string, number>()
    for (let round = 0; round < 64; round++) {
      for (const character of generateId(1_000)) counts.set(character, (counts.get(character) ?? 0) + 1)
    }
    expect(counts.size).toBe(64)
    // Expected 1,000 each; 200 away would be more than six standard deviations.
    for (const count of counts.values()) expect(Math.abs(count - 1_000)).toBeLessThan(200)
  })

  test('refuses a length that is no length', () => {
    for (const length of [0, -1, 1.5, 1_025, Number.NaN])
      expect(codeOf(() => generateId(length))).toBe('OPTION_INVALID')
  })
})

describe('isValidSubdomain', () => {
  test.each(['a', '0', 'swift-fox', 'a--b', 'a'.repeat(63), 'xn-a', '1-2-3'])('takes %p', name => {
    expect(isValidSubdomain(name)).toBe(true)
  })
  test.each([
    '',
    '-a',
    'a-',
    'A',
    'a_b',
    'a.b',
    'ä',
    'a b',
    'a\n',
    'xn--mnchen-3ya',
    'a'.repeat(64),
    '__proto__',
  ])('refuses %p', name => {
    expect(isValidSubdomain(name)).toBe(false)
  })
  test('agrees with a reading of the rule character by character', () => {
    const alphabet = 'ab9-_.A\n'
    for (let round = 0; round < ROUNDS; round++) {
      const name = Array.from({ length: round % 6 }, () => alphabet[(Math.random() * 8) | 0]).join('')
      const characters = name.split('')
      const expected =
        characters.length > 0 &&
        characters.every(character => 'ab9-'.includes(character)) &&
        characters[0] !== '-' &&
        characters.at(-1) !== '-'
      expect([name, isValidSubdomain(name)]).toEqual([name, expected])
    }
  })
})

test('reserved names are labels and hold the server’s own', () => {
  expect([...RESERVED_NAMES].filter(name => !isValidSubdomain(name))).toEqual([])
  expect(['api', 'www', 'admin', 'localhost'].every(isReservedName)).toBe(true)
  expect(isReservedName('shop')).toBe(false)
})

test('isValidPort takes whole numbers from 1 to 65535', () => {
  expect([1, 80, 65_535].every(isValidPort)).toBe(true)
  expect(
    [0, -1, 65_536, 99_999, 80.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 32 + 80].some(isValidPort),
  ).toBe(false)
})

describe('parseHost', () => {
  test.each([
    ['localhost', 'localhost', undefined],
    ['example.com:8080', 'example.com', 8080],
    ['a_b.Example.com', 'a_b.Example.com', undefined],
    ['127.0.0.1:80', '127.0.0.1', 80],
    ['[::1]:80', '::1', 80],
    ['[fe80::1%eth0]', 'fe80::1%eth0', undefined],
    ['::1', '::1', undefined],
    ['bücher.example:1', 'bücher.example', 1],
  ] as const)('reads %p', (host, hostname, port) => {
    expect(parseHost(host)).toEqual({ hostname, port })
  })
  test.each([
    '',
    ':80',
    'a b',
    'a/b',
    'user@host',
    'http://a',
    'a?b',
    '[::1',
    '[::1]x',
    '[]',
    '[a]:80',
    'a\r\nb',
    'é\u0000',
  ])('refuses %p as no host', host => {
    expect(codeOf(() => parseHost(host))).toBe('OPTION_INVALID')
  })
  test.each(['a:0', 'a:99999', 'a:', 'a:8o', 'a:123456', '[::1]:', '[::1]:70000', 'a:+1', 'a:1e3'])(
    'refuses the port of %p',
    host => {
      expect(codeOf(() => parseHost(host))).toBe('OPTION_INVALID')
    },
  )
})

test('formatUrl leaves out the scheme’s own port and brackets IPv6', () => {
  expect(formatUrl({ hostname: 'a.example' })).toBe('http://a.example')
  expect(formatUrl({ hostname: 'a.example', port: 80 })).toBe('http://a.example')
  expect(formatUrl({ hostname: 'a.example', port: 443 })).toBe('http://a.example:443')
  expect(formatUrl({ secure: true, hostname: 'a.example', port: 443 })).toBe('https://a.example')
  expect(formatUrl({ secure: true, subdomain: 'x', hostname: 'a.example', port: 8443 })).toBe(
    'https://x.a.example:8443',
  )
  expect(formatUrl({ hostname: '::1', port: 3000 })).toBe('http://[::1]:3000')
})

test.each([
  ['My Shop (beta)', 'my-shop-beta'],
  ['  Café Crème ', 'cafe-creme'],
  ['xn--abc', 'xn-abc'],
  ['---', ''],
  ['日本', ''],
  [`${'a'.repeat(62)} b`, 'a'.repeat(62)],
  ['@scope/pkg_name', 'scope-pkg-name'],
])('slugOf(%p) is %p', (appName, slug) => {
  expect(slugOf(appName)).toBe(slug)
  if (slug) expect(isValidSubdomain(slug)).toBe(true)
})

describe('alternativeNames', () => {
  test('counts up first, then turns to random names, then ends', () => {
    const names = [...alternativeNames('shop')]
    expect(names.slice(0, 2)).toEqual(['shop-2', 'shop-3'])
    expect(names).toHaveLength(9)
    for (const name of names.slice(2)) expect(name).not.toStartWith('shop')
  })
  test('stays within 63 characters and valid, whatever stands at the cut', () => {
    for (const name of [
      'a'.repeat(63),
      `${'a'.repeat(60)}-bc`,
      `${`${'a'.repeat(58)}-----`.slice(0, 62)}z`,
    ]) {
      for (const alternative of alternativeNames(name))
        expect([alternative, isValidSubdomain(alternative)]).toEqual([alternative, true])
    }
  })
})

describe('calculateBackoff', () => {
  test('goes at once first, then doubles its bound up to the maximum', () => {
    const bounds = [1, 2, 3, 4, 5, 6, 7, 100, 5_000].map(attempt =>
      calculateBackoff(attempt, { random: () => 0.999_999 }),
    )
    expect(bounds).toEqual([0, 499, 999, 1_999, 3_999, 4_999, 4_999, 4_999, 4_999])
  })
  test('spreads over the whole range from 0', () => {
    expect(calculateBackoff(4, { random: () => 0 })).toBe(0)
    expect(calculateBackoff(4, { random: () => 0.5, baseMs: 100, maxMs: 1_000 })).toBe(200)
    expect(calculateBackoff(Number.NaN)).toBe(0)
  })
})

describe('headersToRecord', () => {
  test('joins repeats, lower-cases names and keeps the last Set-Cookie', () => {
    const pairs: [string, string][] = [
      ['Accept', 'a'],
      ['accept', 'b'],
      ['Set-Cookie', 'x=1'],
      ['Set-Cookie', 'y=2'],
    ]
    const expected = { accept: 'a, b', 'set-cookie': 'y=2' }
    expect({ ...headersToRecord(pairs) }).toEqual(expected)
    expect({ ...headersToRecord(new Headers(pairs)) }).toEqual(expected)
  })
  test('takes __proto__ for a header like any other', () => {
    const record = headersToRecord([['__proto__', 'x']])
    expect(Object.entries(record)).toEqual([['__proto__', 'x']])
    expect(JSON.stringify(record)).toBe('{"__proto__":"x"}')
  })
})
