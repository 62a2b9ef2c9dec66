// Access rules by country, from an MMDB file of the operator.

import { expect, test } from 'bun:test'
import { join } from 'node:path'
import {
  type GuardOptions,
  guarding,
  openCountries,
  TunnelClient,
  type TunnelError,
} from '../../src/index.ts'
import { Addresses } from '../../src/plugins/addresses.ts'
import { finish, start } from '../cli/bin.ts'
import { ask } from '../support/ask.ts'
import { codeOf, eventually } from '../support/events.ts'
import { mmdb } from '../support/mmdb.ts'
import { closedAfterEach } from '../support/opened.ts'
import { folder } from '../support/programs.ts'
import { rawDial } from '../support/raw.ts'
import { rejection } from '../support/rejection.ts'
import { startServer, startTunnel } from '../support/tunnel.ts'

const { open, defer } = closedAfterEach()
const [GERMAN, FRENCH, UNKNOWN] = ['192.0.2.7', '198.51.100.7', '203.0.113.7']
const ROWS = [
  ['192.0.2.0/24', { country: { iso_code: 'DE' }, continent: { code: 'EU' } }],
  ['198.51.100.0/25', { country: { iso_code: 'FR' } }],
  ['2001:db8::/33', { country: { iso_code: 'DE' } }],
  ['127.0.0.0/8', { country: { iso_code: 'ZZ' } }],
  // As other makers write them.
  ['100.64.0.0/10', { country: 'IT', country_code: 'IT' }],
  ['100.128.0.0/10', { country: 'Italy', country_code: 'IT' }],
  ['101.0.0.0/8', { continent: { code: 'EU' } }],
] as const

async function file(rows: Parameters<typeof mmdb>[0] = ROWS) {
  const dir = open(await folder('countries'))
  const path = join(dir.path, 'countries.mmdb')
  await Bun.write(path, mmdb(rows))
  return path
}

async function countries(failed?: (error: Error) => void) {
  const path = await file()
  const opened = await openCountries(path, failed)
  defer(() => opened.close())
  return Object.assign(opened, { path })
}

test('the country of an address, of either family, as several makers write it', async () => {
  const known = await countries()
  const all = [
    GERMAN,
    FRENCH,
    '198.51.100.200',
    UNKNOWN,
    '2001:db8::1',
    '2001:db8:8000::1',
    '100.64.0.1',
    '100.128.0.1',
    '101.0.0.1',
    '',
    'x',
    '::',
  ]
  expect(all.map(address => known.of(address) ?? '-')).toEqual([
    'DE',
    'FR',
    '-',
    '-',
    'DE',
    '-',
    'IT',
    'IT',
    '-',
    '-',
    '-',
    '-',
  ])
})

test.each<[string, readonly string[] | undefined, readonly string[] | undefined, readonly boolean[]]>([
  ['only one', ['country:DE'], undefined, [true, false, false]],
  ['several, in any case', ['country:de', 'Country:FR'], undefined, [true, true, false]],
  ['with a network', ['country:DE', UNKNOWN], undefined, [true, false, true]],
  ['all others', undefined, ['country:DE'], [false, true, true]],
  ['unknown ones are in no country', ['country:unknown'], undefined, [false, false, true]],
  ['without unknown ones', undefined, ['country:unknown'], [true, true, false]],
  ['deny wins', ['country:DE', 'country:FR'], ['country:FR'], [true, false, false]],
])('allow and deny: %s', async (_, allow, deny, expected) => {
  const wall = new Addresses(allow, deny, await countries())
  expect([GERMAN, FRENCH, UNKNOWN].map(address => wall.admit({ address }) === undefined)).toEqual([
    ...expected,
  ])
  const [first] = expected
  expect(wall.admit({ address: '::ffff:192.0.2.7' }) === undefined).toBe(first!)
  expect(wall.admit({ address: '2001:DB8::1' }) === undefined).toBe(first!)
  expect(wall.admit({ address: '' })).toEqual({ code: 'ADDRESS_REFUSED' })
})

test.each(['country:D', 'country:DEU', 'country:', 'country:1A', 'land:DE', 'DE'])(
  'not a country: %s',
  entry => {
    expect(() => new Addresses([entry], undefined)).toThrow(
      'is not an address, a range such as 10.0.0.0/8, or a country',
    )
  },
)

test('without a file the tunnel is refused, with a code that says so', async () => {
  const guard: GuardOptions = { deny: ['country:DE'] }
  const error = startTunnel({ port: 1, guard }, { server: { guarding: guarding() } })
  const { code, message } = (await rejection(error)) as TunnelError
  expect(code).toBe('GUARD_UNAVAILABLE')
  expect(message).toEndWith(
    'Remove the rules with country:, or ask the operator to set --countries (countries).',
  )
})

test('a file that is missing is one that there is not', async () => {
  expect(await rejection(openCountries('/nowhere.mmdb'))).toMatchObject({
    message: 'countries: /nowhere.mmdb cannot be read: there is no such file.',
  })
})

test('behind a proxy that the server trusts, the visitor counts; a stranger cannot choose a country', async () => {
  const known = await countries()
  const app = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: () => new Response('app') })
  defer(() => app.stop(true))
  const from = (address: string) => ({ 'x-forwarded-for': address })
  const statuses = async (trustedProxies: readonly string[]) => {
    const server = { guarding: guarding({ countries: known }), trustedProxies }
    await using tunnel = await startTunnel({ port: app.port, guard: { allow: ['country:DE'] } }, { server })
    const asked = [GERMAN, FRENCH, `${GERMAN}, ${FRENCH}`].map(one =>
      ask(tunnel.port, tunnel.host, { headers: from(one) }),
    )
    return (await Promise.all(asked)).map(({ status, code }) => code ?? status)
  }
  expect(await statuses(['127.0.0.1'])).toEqual([200, 'ADDRESS_REFUSED', 'ADDRESS_REFUSED'])
  expect(await statuses([])).toEqual(['ADDRESS_REFUSED', 'ADDRESS_REFUSED', 'ADDRESS_REFUSED'])
})

test('a TCP tunnel', async () => {
  const echo = Bun.listen({
    hostname: '127.0.0.1',
    port: 0,
    socket: { data: (socket, bytes) => void socket.write(bytes) },
  })
  defer(() => echo.stop(true))
  const server = open(
    await startServer({ tcpPorts: '20000-29999', guarding: guarding({ countries: await countries() }) }),
  )
  const client = open(new TunnelClient({ server: `http://127.0.0.1:${server.port}` }))
  const tcp = (guard: GuardOptions) => client.tcp({ port: echo.port, host: '127.0.0.1', guard })
  const [here, elsewhere] = [await tcp({ allow: ['country:ZZ'] }), await tcp({ allow: ['country:DE'] })]
  const visitor = await rawDial(here.port!)
  await visitor.send('hello')
  await visitor.until('hello')
  visitor.socket.terminate()
  const refused = await rawDial(elsewhere.port!)
  await refused.closed()
  expect(refused.text).toBe('')
})

test('a file that changes is read again, and one that cannot be read leaves the earlier one in use', async () => {
  const errors: Error[] = []
  const known = await countries(error => errors.push(error))
  await Bun.write(known.path, mmdb([['192.0.2.0/24', { country: { iso_code: 'AT' } }]]))
  await eventually(() => known.of(GERMAN) === 'AT', 'the new file')
  expect(known.of(FRENCH)).toBeUndefined()
  await Bun.write(known.path, 'not a database')
  await eventually(() => errors.length > 0, 'the fault')
  expect(errors[0]).toMatchObject({ code: 'OPTION_INVALID' })
  expect(known.of(GERMAN)).toBe('AT')
  expect(await codeOf(openCountries('/nowhere.mmdb'))).toBe('OPTION_INVALID')
})

test('localtunnels server --countries, or a file, and a client with --allow', async () => {
  const path = await file()
  const config = join(open(await folder('countries-config')).path, 'server.toml')
  await Bun.write(config, `countries = ${JSON.stringify(path)}\n`)
  for (const words of [
    ['--countries', path],
    ['--config', config],
  ]) {
    const server = open(start(['server', '--host', '127.0.0.1', '--port', '0', '--json', ...words]))
    const port = await server.printed(/"type":"listening".*"port":(\d+)/)
    const client = open(
      start(['1', '--server', `http://127.0.0.1:${port}`, '--subdomain', 'shop', '--allow', 'country:DE']),
    )
    await client.printed(/ready/)
    expect(await ask(Number(port), 'shop.localhost')).toMatchObject({ status: 403, code: 'ADDRESS_REFUSED' })
  }
  const { stderr, exitCode } = await finish([
    'server',
    '--host',
    '127.0.0.1',
    '--port',
    '0',
    '--countries',
    config,
  ])
  expect(stderr).toContain(`error OPTION_INVALID: countries: ${config} cannot be read as an MMDB file.`)
  expect(exitCode).toBe(2)
})
