// A file that came with a folder shares this machine's own ports on a server that the user has not chosen, and nothing else.

import { afterAll, describe, expect, test } from 'bun:test'
import { mkdtemp, rm, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { loadClientConfig } from '../../src/config/load.ts'

const folder = await mkdtemp(join(tmpdir(), 'localtunnels-'))
afterAll(() => rm(folder, { recursive: true }))
await Bun.write(join(folder, 'clone/own.pem'), 'text')
await Bun.write(join(folder, 'secret.pem'), 'text')
await symlink(join(folder, 'secret.pem'), join(folder, 'clone/link.pem'))

const FORMS = {
  toml: (config: object) => Bun.TOML.stringify(config),
  yaml: (config: object) => Bun.YAML.stringify(config),
  json: (config: object) => JSON.stringify(config),
}

async function faultsOf(
  config: object,
  form: keyof typeof FORMS = 'json',
  trusts: (() => boolean) | null = () => false,
) {
  const path = join(folder, 'clone', `localtunnels.${form}`)
  await Bun.write(path, FORMS[form](config))
  const { faults } = await loadClientConfig(path, {}, trusts ?? undefined)
  return faults.map(({ message }) => message)
}

const server = 'https://stranger.example'
const shared = (service: object) => ({ server, services: { web: service } })

const ELSEWHERE = [
  { port: 80, host: '10.0.0.5' },
  { port: 80, host: '169.254.169.254' },
  { port: 80, host: 'redis' },
  { port: 80, host: '0.0.0.0' },
  { port: 80, host: '::' },
  { port: 80, host: '[::ffff:10.0.0.5]' },
  { port: 80, host: 'fe80::1' },
  { port: 80, host: '2130706433' },
  { port: 80, host: '0x7f000001' },
  { port: 80, host: '127.0.0.1.nip.io' },
  { port: 80, host: 'localhost.example' },
  { port: 80, host: 'notlocalhost' },
  { port: 5432, host: 'db', kind: 'tcp' },
  { port: 53, host: '192.168.1.1', kind: 'udp' },
  { port: 8443, host: '10.0.0.5', kind: 'tls' },
  { url: 'http://169.254.169.254' },
  { url: 'https://nas.lan:8443' },
  { url: 'http://[fe80::1]:80' },
  { url: 'http://0' },
  { url: 'http://2852039166' },
  { port: 1, routes: { '/a': 'db:80' } },
  { port: 1, routes: { '/a': 'http://10.0.0.5' } },
  { folder: '.', routes: { '/a': 'h2c://10.0.0.5:1' } },
]

describe.each(['toml', 'yaml', 'json'] as const)('%s', form => {
  test.each(ELSEWHERE)('%j is refused, and named it is not', async service => {
    const [message = '', ...others] = await faultsOf(shared(service), form)
    expect(others).toEqual([])
    expect(message).toMatch(
      /^services\.web\.\S+: "\S+" is not an address of this machine, and this file was found and not named, .*: name it with --config, or run: localtunnels login https:\/\/stranger\.example$/,
    )
    expect(await faultsOf(shared(service), form, null)).toEqual([])
    expect(await faultsOf(shared(service), form, () => true)).toEqual([])
  })
})

test.each([
  { port: 80 },
  { port: 80, host: 'localhost' },
  { port: 80, host: 'app.localhost' },
  { port: 80, host: '127.0.0.1' },
  { port: 80, host: '127.1.2.3' },
  { port: 80, host: '::1' },
  { url: 'http://localhost:3000' },
  { url: 'https://[::1]:3000' },
  // The URL parser has one spelling for these.
  { url: 'http://2130706433' },
  { url: 'http://LOCALHOST:1' },
  { port: 1, routes: { '/a': 8080, '/b': 'http://127.0.0.1:1' } },
])('%j is this machine', async service => {
  expect(await faultsOf(shared(service))).toEqual([])
})

test('a way to the server that the file names is not one that the user has chosen', async () => {
  const config = { ...shared({ port: 80, host: 'db' }), proxy: 'http://stranger.example' }
  expect(await faultsOf(config, 'json', () => true)).toHaveLength(1)
})

test.each(['ca', 'cert', 'key'])('%s comes from the folder', async key => {
  const config = (path: string) => ({ ...shared({ port: 80 }), [key]: path })
  expect(await faultsOf(config('own.pem'))).toEqual([])
  for (const path of ['../secret.pem', join(folder, 'secret.pem'), 'link.pem', '../missing.pem'])
    expect(await faultsOf(config(path))).toEqual([
      `${key}: leads out of the folder of this file, which was found and not named: name it with --config`,
    ])
  expect(await faultsOf(config('../secret.pem'), 'json', null)).toEqual([])
})

test('a link to what is not there yet leads where it will be', async () => {
  const clone = (name: string) => join(folder, 'clone', name)
  await symlink(join(folder, 'later'), clone('outside'))
  await symlink('../later', clone('above'))
  await symlink('outside', clone('through'))
  await symlink('ring', clone('ring'))
  await symlink('built', clone('current'))
  const places = (path: string) => [
    shared({ folder: path }),
    shared({ unix: path }),
    shared({ port: 1, routes: { '/a': `unix:${path}` } }),
    { ...shared({ port: 1 }), inspect: { store: path } },
  ]
  for (const path of ['outside', 'above', 'through', 'ring', 'outside/below'])
    for (const config of places(path)) {
      const [message, ...others] = await faultsOf(config)
      expect(message).toContain('leads out of the folder of this file')
      expect(others).toEqual([])
    }
  for (const path of ['current', 'current/below', 'new/below'])
    for (const config of places(path)) expect(await faultsOf(config)).toEqual([])
})

test('app-ca of a service likewise', async () => {
  const config = shared({ url: 'https://localhost:1', 'app-ca': '../secret.pem' })
  expect(await faultsOf(config)).toHaveLength(1)
})
