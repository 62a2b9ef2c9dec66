// What an app calls itself becomes what its visitors call it, and the other way: header by header.

import { describe, expect, test } from 'bun:test'
import { isRewriteTerms, REWRITABLE, type RewriteTerms, Rewriting } from '../../src/paths/rewriting.ts'
import { workedMs } from '../support/within.ts'

const PUBLIC = 'https://shop.tunnel.example'
const HOST = 'shop.tunnel.example'
const make = (terms: Partial<RewriteTerms> = {}) =>
  new Rewriting({
    app: 'http://localhost:3000',
    hostHeader: 'localhost:3000',
    headers: REWRITABLE,
    ...terms,
  })
const shop = make()
const response = (name: string, value: string, rewriting = shop) =>
  rewriting.responseValue(name, value, PUBLIC)
const location = (value: string, rewriting = shop) => response('location', value, rewriting)
const cookie = (value: string, rewriting = shop) => response('set-cookie', value, rewriting)
const request = (name: string, value: string, rewriting = shop) => rewriting.requestValue(name, value, HOST)

describe('Location', () => {
  test.each([
    ['http://localhost:3000/a?b=http://localhost:3000/', `${PUBLIC}/a?b=http://localhost:3000/`],
    ['https://LOCALHOST:3000/a', `${PUBLIC}/a`],
    ['http://localhost:3000', PUBLIC],
    ['http://localhost:3000?a#b', `${PUBLIC}?a#b`],
    ['http://127.0.0.1:3000/', `${PUBLIC}/`],
    ['http://[::1]:3000/', `${PUBLIC}/`],
    // As behind the mapped port of a container.
    ['http://localhost/login', `${PUBLIC}/login`],
    ['//localhost:3000/a', `//${HOST}/a`],
  ])('%s names the app', (value, own) => {
    expect(location(value)).toBe(own)
    expect(response('content-location', value)).toBe(own)
  })

  test.each([
    '/a',
    'a/b',
    '',
    '?a',
    'http://localhost:4000/',
    'http://localhost.example:3000/',
    'http://user@localhost:3000/',
    'https://other.example/?to=http://localhost:3000/',
    'ftp://localhost:3000/',
    '//other.example/',
    'http:/localhost:3000/',
    'http:///a',
    PUBLIC,
  ])('%s does not, and stays', value => {
    expect(location(value)).toBe(value)
  })

  test('names of the app are its Host and its address, with the port that is the scheme’s own or another', () => {
    const other = make({ app: 'https://10.0.0.5', hostHeader: 'nas.lan' })
    for (const name of [
      'https://nas.lan/',
      'http://nas.lan:8080/',
      'https://10.0.0.5:443/',
      'https://10.0.0.5/',
    ])
      expect(location(name, other)).toBe(`${PUBLIC}/`)
    expect(location('https://10.0.0.5:9443/', other)).toBe('https://10.0.0.5:9443/')
    const socket = make({ app: 'http://localhost', hostHeader: 'localhost' })
    expect(location('http://localhost:5000/', socket)).toBe(`${PUBLIC}/`)
  })
})

describe('Set-Cookie', () => {
  test.each([
    ['a=1; Domain=localhost; Path=/; HttpOnly', 'a=1; Path=/; HttpOnly'],
    ['a=1;domain = "x"', 'a=1;domain = "x"'],
    ['a=1; Path=/x; SameSite=Lax', 'a=1; Path=/x; SameSite=Lax'],
    ['a=domain=localhost', 'a=domain=localhost'],
    ['', ''],
  ])('%s', (value, own) => expect(cookie(value)).toBe(own))

  test('a domain that the app is below belongs to it, and none else does', () => {
    const www = make({ hostHeader: 'www.shop.lan' })
    for (const domain of ['.shop.lan', 'shop.lan', 'WWW.SHOP.LAN', 'lan'])
      expect(cookie(`a=1; Domain=${domain}; Secure`, www)).toBe('a=1; Secure')
    for (const domain of ['hop.lan', 'a.www.shop.lan', HOST, ''])
      expect(cookie(`a=1; Domain=${domain}`, www)).toBe(`a=1; Domain=${domain}`)
  })

  test('a long value takes no time', () => {
    const spaces = `a=1; Path${' '.repeat(60_000)}=${' '.repeat(60_000)}x`
    const startedAt = workedMs()
    expect(cookie(spaces)).toBe(spaces)
    location(`http://${':1'.repeat(60_000)}`)
    expect(workedMs() - startedAt).toBeLessThan(500)
  })
})

describe('a request', () => {
  test('Origin, Referer and Destination that name the public host name the app', () => {
    expect(request('origin', `https://${HOST.toUpperCase()}`)).toBe('http://localhost:3000')
    expect(request('origin', `http://${HOST}`)).toBe('http://localhost:3000')
    expect(request('origin', `https://${HOST}:443`)).toBe('http://localhost:3000')
    expect(request('referer', `${PUBLIC}/a?b`)).toBe('http://localhost:3000/a?b')
    expect(request('destination', `${PUBLIC}/b%20c`)).toBe('http://localhost:3000/b%20c')
    expect(request('destination', '/b')).toBe('/b')
  })

  test.each([
    'https://b',
    'null',
    `https://${HOST}.b`,
    `https://x${HOST}`,
    `ftp://${HOST}`,
    HOST,
    `https://${HOST}:1`,
  ])('%s is another origin', value => {
    for (const name of ['origin', 'referer', 'destination']) expect(request(name, value)).toBe(value)
  })

  test('other headers stay, whatever they say', () => {
    for (const name of ['host', 'x-origin', 'constructor', '__proto__'])
      expect([request(name, PUBLIC), response(name, 'http://localhost:3000/')]).toEqual([
        PUBLIC,
        'http://localhost:3000/',
      ])
  })
})

test('only the headers that are named are translated', () => {
  for (const header of REWRITABLE) {
    const one = make({ headers: [header, 'of-a-newer-client'] })
    expect(location('http://localhost:3000/', one) === `${PUBLIC}/`).toBe(header === 'location')
    expect(cookie('a=1; Domain=localhost', one) === 'a=1').toBe(header === 'cookies')
    for (const name of ['referer', 'origin', 'destination'])
      expect(request(name, PUBLIC, one) === 'http://localhost:3000').toBe(header === name)
  }
})

describe('a prefix that is removed', () => {
  const strip = make({ stripPrefix: '/app' })

  test('of the path', () => {
    for (const [path, own] of [
      ['/app', '/'],
      ['/app/', '/'],
      ['/app/a?b', '/a?b'],
      ['/app?a', '/?a'],
      ['/apple', undefined],
      ['/', undefined],
      ['*', '*'],
      // However an app reads it.
      ['/app/../x', undefined],
      ['/app/a/..%2f..%2fx', undefined],
      ['/app/a/../x', '/a/../x'],
      ['/app//evil.example/x', undefined],
      [`/app/${'%20a/'.repeat(1_000)}`, `/${'%20a/'.repeat(1_000)}`],
    ] as const)
      expect(strip.target(path)).toBe(own)
  })

  test('comes back in Location and Path, unless the app has put it there', () => {
    expect(location('/login', strip)).toBe('/app/login')
    expect(location('/', strip)).toBe('/app/')
    expect(location('/app/login', strip)).toBe('/app/login')
    expect(location('http://localhost:3000', strip)).toBe(`${PUBLIC}/app/`)
    expect(location('http://localhost:3000?a', strip)).toBe(`${PUBLIC}/app/?a`)
    expect(location(`${PUBLIC}/login`, strip)).toBe(`${PUBLIC}/app/login`)
    expect(location('login', strip)).toBe('login')
    expect(location('//other.example/login', strip)).toBe('//other.example/login')
    expect(cookie('a=1; path=/', strip)).toBe('a=1; Path=/app')
    expect(cookie('a=1; path=/x', strip)).toBe('a=1; Path=/app/x')
    expect(cookie('__Host-a=1; Path=/; Secure', strip)).toBe('__Host-a=1; Path=/; Secure')
  })

  test('is removed from Destination and Referer', () => {
    expect(request('destination', `${PUBLIC}/app/b`, strip)).toBe('http://localhost:3000/b')
    expect(request('destination', '/app/b', strip)).toBe('/b')
    // Without its prefix it would name a host.
    expect(request('destination', '/app//evil.example/b', strip)).toBe('/app//evil.example/b')
    expect(request('referer', `${PUBLIC}/app`, strip)).toBe('http://localhost:3000/')
  })
})

describe('a prefix that is added', () => {
  const add = make({ addPrefix: '/app' })

  test('to the path, and gone from Location and Path', () => {
    expect(add.target('/a?b')).toBe('/app/a?b')
    expect(add.target('/')).toBe('/app/')
    expect(location('/app/login', add)).toBe('/login')
    expect(location('/app', add)).toBe('/')
    expect(location('http://localhost:3000/app/login', add)).toBe(`${PUBLIC}/login`)
    expect(cookie('a=1; Path=/app', add)).toBe('a=1; Path=/')
    expect(cookie('a=1; Path=/', add)).toBe('a=1; Path=/')
    expect(request('destination', `${PUBLIC}/b`, add)).toBe('http://localhost:3000/app/b')
    // Not below it: no visitor has a path for it.
    expect(location('/other', add)).toBe('/other')
    expect(location('/apple', add)).toBe('/apple')
  })

  test('a redirect to the path of a request names no other host without it', () => {
    for (const path of [
      '//evil.example/',
      '/\\evil.example/',
      '///evil.example',
      '/\t/evil.example/',
      '/\t\\evil.example',
    ]) {
      expect(location(`/app${path}`, add)).toBe(PUBLIC + path)
      expect(location(`http://localhost:3000/app${path}`, add)).toBe(PUBLIC + path)
    }
  })

  test('both: what the visitors have is exchanged for what the app has', () => {
    const both = make({ stripPrefix: '/a', addPrefix: '/b' })
    expect(both.target('/a/x')).toBe('/b/x')
    expect(location('/b/x', both)).toBe('/a/x')
    expect(cookie('c=1; Path=/b', both)).toBe('c=1; Path=/a')
  })
})

test('an app that gets the Host of its visitors keeps the names that it has from them', () => {
  const preserved = make({ addPrefix: '/app' })
  const kept = new Rewriting({ app: 'http://localhost:3000', headers: REWRITABLE, addPrefix: '/app' })
  expect(request('referer', `${PUBLIC}/a`, preserved)).toBe('http://localhost:3000/app/a')
  expect(request('referer', `${PUBLIC}/a`, kept)).toBe(`${PUBLIC}/app/a`)
  expect(request('origin', PUBLIC, kept)).toBe(PUBLIC)
  expect(location(`${PUBLIC}/app/a`, kept)).toBe(`${PUBLIC}/a`)
  expect(location('http://localhost:3000/app/a', kept)).toBe(`${PUBLIC}/a`)
})

test.each([
  ['a text', 'http://a'],
  ['null', null],
  ['no headers', { app: 'http://a' }],
  ['an app with a line end', { app: 'http://a\n', headers: [] }],
  ['an app without a scheme', { app: 'a', headers: [] }],
  ['a host header with a line end', { app: 'http://a', headers: [], hostHeader: 'a\r\nX-Evil: 1' }],
  ['17 headers', { app: 'http://a', headers: Array(17).fill('a') }],
  ['a prefix with a space', { app: 'http://a', headers: [], addPrefix: '/a b' }],
  ['a prefix with a query', { app: 'http://a', headers: [], stripPrefix: '/a?' }],
])('terms of a client that are %s cannot be used', (_what, terms) => {
  expect(isRewriteTerms(terms)).toBe(false)
})

test('a newer client may name headers that are unknown here', () => {
  expect(isRewriteTerms({ app: 'http://a', headers: ['location', 'of-a-newer-client'] })).toBe(true)
})
