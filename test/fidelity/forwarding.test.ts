// What the app learns about its visitors: from the connection, and from others only when they are trusted.

import { expect, test } from 'bun:test'
import { exchange, get, headerOf, ok, rawTunnel } from '../support/exchange.ts'

const FORGED =
  'X-Forwarded-For: 6.6.6.6\r\nx-forwarded-for: 7.7.7.7\r\nX-Forwarded-Host: evil.example\r\nX-Forwarded-Proto: https\r\n' +
  'Forwarded: for=6.6.6.6\r\nX-Real-IP: 6.6.6.6\r\nX-Forwarded-Port: 1\r\n'

const values = (head: string, name: string): string[] =>
  head
    .split('\r\n')
    .filter(line => line.toLowerCase().startsWith(`${name}:`))
    .map(line => line.slice(name.length + 2)) // prettier-ignore

test('forged forwarding headers are replaced', async () => {
  await using raw = await rawTunnel()
  const { seen } = await exchange(raw, get(raw.host, '/', FORGED), ok(''))
  expect(values(seen.head, 'x-forwarded-for')).toEqual(['127.0.0.1'])
  expect(values(seen.head, 'x-forwarded-host')).toEqual([raw.host])
  expect(values(seen.head, 'x-forwarded-proto')).toEqual(['http'])
  expect(values(seen.head, 'forwarded')).toEqual([`for=127.0.0.1;host=${raw.host};proto=http`])
  expect(seen.head).not.toContain('6.6.6.6')
  expect(seen.head).not.toContain('7.7.7.7')
  expect(seen.head).not.toContain('X-Forwarded-Port')
})

const CLIENT_ADDRESS_HEADERS = [
  'X-Real-IP',
  'True-Client-IP',
  'CF-Connecting-IP',
  'Fastly-Client-IP',
  'X-Client-IP',
  'X-Cluster-Client-IP',
] as const

test.each(CLIENT_ADDRESS_HEADERS)(
  '%s of a visitor does not reach the app; that of a trusted proxy does',
  async name => {
    const forged = `${name}: 6.6.6.6\r\n${name.toLowerCase().replaceAll('-', '_')}: 6.6.6.6\r\n`
    await using raw = await rawTunnel()
    const { seen } = await exchange(raw, get(raw.host, '/', forged), ok(''))
    expect(seen.head).not.toContain('6.6.6.6')
    await using behind = await rawTunnel({ server: { trustedProxies: ['127.0.0.1'] } })
    const { seen: believed } = await exchange(behind, get(behind.host, '/', forged), ok(''))
    expect(values(believed.head, name.toLowerCase())).toEqual(['6.6.6.6'])
    expect(believed.head).not.toContain('_')
  },
)

test('a trusted proxy is believed, and its list goes on', async () => {
  await using raw = await rawTunnel({ server: { trustedProxies: ['10.0.0.0/8', '127.0.0.1'] } })
  const { seen } = await exchange(raw, get(raw.host, '/', FORGED), ok(''))
  expect(values(seen.head, 'x-forwarded-for')).toEqual(['6.6.6.6, 7.7.7.7, 127.0.0.1'])
  expect(values(seen.head, 'x-forwarded-host')).toEqual(['evil.example'])
  expect(values(seen.head, 'x-forwarded-proto')).toEqual(['https'])
  expect(values(seen.head, 'x-real-ip')).toEqual(['6.6.6.6'])
})

test('a trusted network has addresses of its own family only: ::/0 trusts no IPv4 proxy', async () => {
  await using raw = await rawTunnel({ server: { trustedProxies: ['::/0'] } })
  const { seen } = await exchange(raw, get(raw.host, '/', FORGED), ok(''))
  expect(values(seen.head, 'x-forwarded-for')).toEqual(['127.0.0.1'])
  await using behind = await rawTunnel({ server: { trustedProxies: ['::ffff:127.0.0.0/104'] } })
  const { seen: believed } = await exchange(behind, get(behind.host, '/', FORGED), ok(''))
  expect(values(believed.head, 'x-forwarded-for')).toEqual(['6.6.6.6, 7.7.7.7, 127.0.0.1'])
})

test('a proxy that is not on the list is a visitor like any other', async () => {
  await using raw = await rawTunnel({ server: { trustedProxies: ['10.0.0.0/8'] } })
  const { seen } = await exchange(raw, get(raw.host, '/', FORGED), ok(''))
  expect(values(seen.head, 'x-forwarded-for')).toEqual(['127.0.0.1'])
})

test('Connection cannot nominate forwarding headers away', async () => {
  await using raw = await rawTunnel()
  const lines = 'Connection: X-Forwarded-For, X-Forwarded-Proto, Forwarded\r\n'
  const { seen } = await exchange(raw, get(raw.host, '/', lines + FORGED), ok(''))
  expect(values(seen.head, 'x-forwarded-for')).toEqual(['127.0.0.1'])
  expect(values(seen.head, 'forwarded').length).toBe(1)
})

test('Host reaches the app as the visitor sent it', async () => {
  await using raw = await rawTunnel()
  const { seen } = await exchange(
    raw,
    get('APP.localhost:4711', '/', 'Origin: http://APP.localhost:4711\r\n'),
    ok(''),
  )
  expect(headerOf(seen.head, 'host')).toBe('APP.localhost:4711')
  expect(headerOf(seen.head, 'origin')).toBe('http://APP.localhost:4711')
})

test('rewriting takes Host and Origin together, and leaves foreign origins alone', async () => {
  await using raw = await rawTunnel({ client: { hostHeader: 'rewrite' } })
  const local = `127.0.0.1:${raw.origin.port}`
  const { seen, visitor, app } = await exchange(
    raw,
    get(raw.host, '/', `Origin: https://${raw.host}\r\nReferer: x\r\n`),
    ok(''),
  )
  expect(headerOf(seen.head, 'host')).toBe(local)
  expect(headerOf(seen.head, 'origin')).toBe(`http://${local}`)
  expect(headerOf(seen.head, 'x-forwarded-host')).toBe(raw.host)
  await visitor.send(get(raw.host, '/', 'Origin: https://evil.example\r\n'))
  expect(headerOf(await app.until('\r\n\r\n'), 'origin')).toBe('https://evil.example')
})

test('any host may stand in for the public one', async () => {
  await using raw = await rawTunnel({ client: { hostHeader: 'dev.internal:3000' } })
  const { seen } = await exchange(raw, get(raw.host, '/', `Origin: http://${raw.host}\r\n`), ok(''))
  expect(headerOf(seen.head, 'host')).toBe('dev.internal:3000')
  expect(headerOf(seen.head, 'origin')).toBe('http://dev.internal:3000')
})
