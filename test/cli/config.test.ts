// `localtunnels config`, run for real.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { DOCUMENTATION } from '../../src/cli/documentation.ts'
import { jsonSchema } from '../../src/config/json-schema.ts'
import { makeCertificate } from '../support/certificates.ts'
import { ConfigFiles } from '../support/config-files.ts'
import { finish } from './bin.ts'

let files: ConfigFiles
beforeAll(async () => {
  files = await ConfigFiles.make()
})
afterAll(() => files[Symbol.asyncDispose]())

// As the command shows it: the page where it is.
const ADVICE = `See ${DOCUMENTATION}/configuration.md for every key and examples.`

test('says what a file means, without secrets', async () => {
  const path = await files.write(
    'localtunnels.toml',
    'server = "https://tunnel.example"\ntoken = "${SECRET}"\nmax-backoff = 2000\n[services.shop]\nport = "${PORT:-3000}"\nroutes = { "/api" = 8080 }\n[services.db]\nkind = "tcp"\nport = 5432\nhost = "db.local"\nremote-port = 25432\ntoken = "secret too"\n[services.pages]\nfolder = "dist"\n',
  )
  const broken = await finish(['config', 'check', path], { SECRET: 'hidden' })
  expect(broken.stdout).toBe(
    `${path}:12:1 services.db.token must be a token: visible ASCII without spaces, 1 to 8192 of it, not this value\n`,
  )
  await Bun.write(path, (await Bun.file(path).text()).replace('secret too', 'secret-too'))
  await files.write('dist/index.html', '')
  const { stdout, stderr, exitCode } = await finish(['config', 'check', path], { SECRET: 'hidden' })
  expect(stdout).toBe(`${path}: a client with 3 services

  server       https://tunnel.example
  token        (set)
  max-backoff  2s

  shop   http    localhost:3000  subdomain shop, routes."/api" 8080
  db     tcp     db.local:5432   remote-port 25432, token (set)
  pages  folder  dist            subdomain pages
`)
  expect({ stderr, exitCode }).toEqual({ stderr: '', exitCode: 0 })
})

test("says what a server's file means, told by its keys", async () => {
  const path = await files.write(
    'server.yaml',
    'domains: a.example\nlimits: {max-body: 2MiB}\ntokens: [{token: t, names: [x]}]\n',
  )
  const { stdout, exitCode } = await finish(['config', 'check', path])
  expect(stdout).toBe(`${path}: a server

  domains             a.example
  limits.max-body     2MiB
  tokens[0].token     (set)
  tokens[0].names[0]  x
`)
  expect(exitCode).toBe(0)
})

test('prints a line for every fault on stdout, and one that sums them up on stderr', async () => {
  const path = await files.write('faulty.toml', '[services.web]\nport = 99999\nsubdomian = "x\u202e"\n')
  const { stdout, stderr, exitCode } = await finish(['config', 'check', path])
  expect(stdout.split('\n')).toEqual([
    `${path}:2:1 services.web.port must be a port from 1 to 65535, or a range of at most 256 such as "27015-27030", not 99999`,
    `${path}:3:1 unknown key "subdomian" in services.web: did you mean "subdomain"?`,
    '',
  ])
  expect(stderr).toBe(`error CONFIG_INVALID: ${path} has 2 faults. ${ADVICE}\n`)
  expect(exitCode).toBe(2)
})

test('finds what `up` would find: a folder that is missing, a token that would go in clear', async () => {
  const path = await files.write(
    'missing.toml',
    'server = "http://tunnel.example"\ntoken = "secret"\n[services.web]\nport = 3000\n[services.pages]\nfolder = "no-such-folder"\n',
  )
  const { stdout, stderr, exitCode } = await finish(['config', 'check', path])
  const [token, folder, rest] = stdout.split('\n')
  expect(token).toStartWith(`${path} The token would go to http://tunnel.example unencrypted`)
  expect(folder).toStartWith(`${path}:6:1 services.pages.folder: Cannot serve "`)
  expect(folder).toEndWith('there is no such folder')
  expect(rest).toBe('')
  expect(stderr).toContain('has 2 faults')
  expect(exitCode).toBe(2)
})

test('finds what `server` would find: a key of another certificate, a certificate that is none', async () => {
  const [own, other] = await Promise.all([makeCertificate(['localhost']), makeCertificate(['localhost'])])
  await files.write('own.crt', own.cert)
  await files.write('own.key', own.key)
  await files.write('other.key', other.key)
  const check = async (cert: string, key: string) => {
    const path = await files.write('tls.toml', `port = 8443\ntls = { cert = "${cert}", key = "${key}" }\n`)
    const { stdout, exitCode } = await finish(['config', 'check', path])
    return [stdout.replace(`${path}:`, ''), exitCode]
  }
  expect(await check('own.crt', 'other.key')).toEqual([
    '2:1 tls: The key does not belong to the certificate\n',
    2,
  ])
  expect(await check('own.key', 'own.key')).toEqual([
    '2:1 tls: The certificate is not a certificate in PEM format\n',
    2,
  ])
  expect((await check('own.crt', 'own.key'))[1]).toBe(0)
})

test('notes that `server` would refuse a file without a token, unless a flag brings one', async () => {
  const refused = 'note: localtunnels server refuses this file without a token'
  const open = await files.write('server.toml', 'port = 8443\n')
  const { stdout, exitCode } = await finish(['config', 'check', '--server', open])
  expect(stdout).toContain(`  ${refused}: give it tokens here, --token, host = "127.0.0.1" or open = true\n`)
  expect(exitCode).toBe(0)
  const proxied = await files.write('server.toml', 'host = "127.0.0.1"\nbase-path = "/tunnel"\n')
  const { stdout: behind } = await finish(['config', 'check', '--server', proxied])
  expect(behind).toContain(`  ${refused}: give it tokens here, --token or open = true\n`)
  for (const [text, env] of [
    ['port = 8443\nopen = true\n', {}],
    ['port = 8443\ntokens-db = "tokens.db"\n', {}],
    ['port = 8443\nhost = "127.0.0.1"\n', {}],
    ['port = 8443\ntokens = ["secret"]\n', {}],
    ['port = 8443\n', { TUNNEL_SERVER_TOKEN: 'secret' }],
    ['port = 8443\n', { TUNNEL_SERVER_OPEN: '1' }],
  ] as const) {
    const path = await files.write('server.toml', text)
    expect((await finish(['config', 'check', '--server', path], env)).stdout).not.toContain(refused)
  }
})

test('--server takes a file for that of a server', async () => {
  const path = await files.write('either.toml', 'port = 1\nhost = "a"\n[services.web]\nport = 1\n')
  const { stdout } = await finish(['config', 'check', '--server', path])
  expect(stdout).toBe(`${path}:3:2 unknown key "services": it belongs in a client's file\n`)
})

test('what foreign text hides is made visible', async () => {
  const path = await files.write('hidden.json', '{"services": {"web": {"port": 1, "\\u001b[31m\\u202e": 1}}}')
  const { stdout } = await finish(['config', 'check', path])
  expect(stdout).toContain('unknown key "\\u001b[31m\\u202e"')
  expect(['\u001b', '\u202e'].filter(character => stdout.includes(character))).toEqual([])
})

test.each([
  [['config', 'check', 'nowhere.toml'], 'CONFIG_INVALID', `nowhere.toml has 1 fault. ${ADVICE}`],
  [['config', 'chek'], 'OPTION_INVALID', "Unknown command 'chek'. Did you mean check?"],
  [['config', 'check', 'a', 'b'], 'OPTION_INVALID', 'Too many arguments'],
] as const)('%p is %s', async (args, code, says) => {
  const { stderr, exitCode } = await finish(args)
  expect(stderr).toStartWith(`error ${code}: ${says}`)
  expect(stderr.trimEnd()).not.toContain('\n')
  expect(exitCode).toBe(2)
})

test('without a file it is the one in this folder, if there is exactly one', async () => {
  const inFolder = async (...names: readonly string[]) => {
    await using own = await ConfigFiles.make()
    for (const name of names) await own.write(name, '{"services": {"web": {"port": 1}}}')
    return await finish(['config', 'check'], {}, own.folder)
  }
  const none = await inFolder('other.toml')
  expect(none.stderr).toBe(
    `error CONFIG_INVALID: There is no localtunnels.toml (nor .yaml, .yml, .json, .ts) in this folder. ${ADVICE}\n`,
  )
  const two = await inFolder('localtunnels.json', 'localtunnels.yaml')
  expect(two.stderr).toContain(
    'There are two configuration files, localtunnels.yaml and localtunnels.json: name one of them.',
  )
  const one = await inFolder('localtunnels.yml')
  expect(one.stdout).toStartWith('localtunnels.yml: a client with 1 service\n')
  expect([none, two, one].map(({ exitCode }) => exitCode)).toEqual([2, 2, 0])
})

test('config schema prints the schema', async () => {
  const { stdout, exitCode } = await finish(['config', 'schema'])
  expect(JSON.parse(stdout)).toEqual(jsonSchema())
  expect(exitCode).toBe(0)
})

test('no parser is loaded by whatever reads no file', async () => {
  const child = Bun.spawn({
    cmd: [
      'bun',
      '-e',
      `await import('${import.meta.dir}/../../src/cli/main.ts'); await import('${import.meta.dir}/../../src/index.ts'); console.log(Object.keys(require.cache).filter(path => /yaml|toml|jsonc/.test(path)))`,
    ],
    stdout: 'pipe',
  })
  expect((await child.stdout.text()).trim()).toBe('[]')
})

test('the file is also named with --config, and --server takes an address', async () => {
  const path = await files.write('named.toml', '[services.web]\nport = 3000\n')
  expect((await finish(['config', 'check', '--config', path])).stdout).toStartWith(
    `${path}: a client with 1 service\n`,
  )
  const twice = await finish(['config', 'check', path, '--config', path])
  expect(twice).toMatchObject({ exitCode: 2, stderr: expect.stringContaining('The file is given twice') })
  // Of a client: the token of the environment belongs to another server.
  const env = { TUNNEL_TOKEN: 'a', TUNNEL_SERVER: 'https://tunnel.example' }
  const there = await finish(['config', 'check', '--server', 'https://other.example', '--config', path], env)
  expect(there).toMatchObject({ exitCode: 0, stderr: '' })
  const server = await files.write('server.toml', 'port = 8080\nhost = "127.0.0.1"\n')
  for (const args of [
    ['--server', server],
    [server, '--server'],
  ])
    expect((await finish(['config', 'check', ...args])).stdout).toStartWith(`${server}: a server\n`)
})

test('a file of localtunnels 0.2 is named where there is none of ours', async () => {
  const folder = files.path('old')
  await files.write('old/localtunnels.config.ts', 'export default { localPort: 3000 }\n')
  const { stderr } = await finish(['config', 'check'], {}, folder)
  expect(stderr).toContain('localtunnels.config.ts is one of localtunnels 0.2.')
})
