// Where the app is, in all the ways it can be said.

import { expect, test } from 'bun:test'
import { parseService, parseTarget, type TargetFlags } from '../../src/cli/settings/target.ts'
import { TunnelError } from '../../src/errors.ts'

const flags = (positional?: string, more: Partial<TargetFlags> = {}): TargetFlags => ({
  positional,
  port: undefined,
  host: undefined,
  ...more,
})

test.each([
  [flags(), { port: 3000, host: 'localhost' }, ':3000'],
  [flags('8000'), { port: 8000, host: 'localhost' }, ':8000'],
  [flags(undefined, { port: 5, host: '127.0.0.1' }), { port: 5, host: '127.0.0.1' }, ':5'],
  [flags('app.lan:81'), { port: 81, host: 'app.lan' }, 'http://app.lan:81'],
  [flags('[::1]:81'), { port: 81, host: '::1' }, ':81'],
  [flags('https://localhost:3000/'), { url: 'https://localhost:3000', appInsecure: true }, ':3000'],
  [flags('https://app.lan'), { url: 'https://app.lan' }, 'https://app.lan'],
  [
    flags('https://app.lan', { tls: { appInsecure: true } }),
    { url: 'https://app.lan', appInsecure: true },
    'https://app.lan',
  ],
  [flags('unix:/run/app.sock'), { unix: '/run/app.sock' }, '/run/app.sock'],
  [flags(undefined, { folder: './dist' }), { folder: './dist', spa: false }, './dist/'],
  [flags(undefined, { folder: '/srv/a//', isSpa: true }), { folder: '/srv/a//', spa: true }, '/srv/a/'],
] as const)('%j', (given, options, shortLabel) => {
  const target = parseTarget(given)
  expect<unknown>(target.options).toEqual(options)
  expect(target.shortLabel).toBe(shortLabel)
})

test('localhost is looked for on both address families', () => {
  expect(parseTarget(flags('3000')).dial).toEqual({ host: 'localhost', port: 3000 })
})

test.each([
  ['99999', 'OPTION_INVALID'],
  ['0', 'OPTION_INVALID'],
  ['sever', 'OPTION_INVALID'],
  ['app.lan:x', 'OPTION_INVALID'],
  ['ftp://app.lan', 'OPTION_INVALID'],
  ['http://', 'OPTION_INVALID'],
  ['unix:', 'OPTION_INVALID'],
  ['-', 'OPTION_INVALID'],
  ['./dist', 'OPTION_INVALID'],
])('%p is refused with %p', (positional, code) => {
  expect(codeOf(() => parseTarget(flags(positional)))).toBe(code)
})

test.each([
  ['22', { port: 22, host: 'localhost' }, 'localhost:22', ':22'],
  ['db.lan:5432', { port: 5432, host: 'db.lan' }, 'db.lan:5432', 'db.lan:5432'],
  ['[::1]:5432', { port: 5432, host: '::1' }, '[::1]:5432', ':5432'],
  ['unix:/run/db.sock', { unix: '/run/db.sock' }, '/run/db.sock', '/run/db.sock'],
] as const)('service %s', (text, options, label, shortLabel) => {
  const service = parseService(text)
  expect<unknown>(service.options).toEqual(options)
  expect(service).toMatchObject({ label, shortLabel })
})

test.each([
  ['0', 'OPTION_INVALID'],
  ['99999', 'OPTION_INVALID'],
  ['db.lan', 'OPTION_INVALID'],
  ['tcp://db.lan:5432', 'OPTION_INVALID'],
  ['unix:', 'OPTION_INVALID'],
])('service %p is refused with %p', (text, code) => {
  expect(codeOf(() => parseService(text))).toBe(code)
})

function codeOf(run: () => unknown): string | undefined {
  try {
    run()
  } catch (error) {
    return error instanceof TunnelError ? error.code : String(error)
  }
}
