// `--app-insecure` and its like are for the app: the server is verified as ever, and gets no token before that.

import { afterAll, expect, test } from 'bun:test'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { makeCertificate } from '../support/certificates.ts'
import { startServer } from '../support/tunnel.ts'
import { finish, start } from './bin.ts'

const folder = await mkdtemp(join(tmpdir(), 'localtunnels-'))
afterAll(() => rm(folder, { recursive: true }))
const own = await makeCertificate(['app.localhost', 'localhost'])
const ca = join(folder, 'ca.pem')
await Bun.write(ca, own.cert)
const TOKEN = 'a-secret-of-the-user'

// Not an address that counts as this machine's own by its name: `app.localhost` is one, and is not verified unless asked to.
const app = () =>
  Bun.serve({ port: 0, hostname: '127.0.0.1', tls: own, fetch: () => new Response('from the app') })

test.each(['share', 'doctor', 'up'])(
  '%s: an impostor of the server gets no token, whatever the app may do',
  async command => {
    let heard = ''
    using impostor = Bun.serve({
      port: 0,
      hostname: '127.0.0.1',
      tls: await makeCertificate(['localhost']),
      fetch: request => {
        heard += request.headers.get('authorization') ?? 'a request'
        return new Response('no')
      },
    })
    using target = app()
    const server = `https://localhost:${impostor.port}`
    const url = `https://127.0.0.1:${target.port}`
    const file = join(folder, 'up.toml')
    await Bun.write(
      file,
      `server = "${server}"\ntoken = "${TOKEN}"\n[services.nas]\nurl = "${url}"\napp-insecure = true\n`,
    )
    const args = {
      share: [url, '--server', server, '--app-insecure'],
      doctor: ['doctor', url, '--server', server, '--app-insecure'],
      up: ['up', '--config', file],
    }[command]
    const { stdout, stderr, exitCode } = await finish(args ?? [], { TUNNEL_TOKEN: TOKEN })
    expect(stdout + stderr).toContain('is not trusted')
    expect(exitCode).not.toBe(0)
    expect(heard).toBe('')
  },
)

test('the flags lead through to the app, and its refusal names them in the words of the command line', async () => {
  using target = app()
  await using server = await startServer()
  // By a name that is not this machine's own only for the program: the authority makes it verify.
  const url = `https://127.0.0.1:${target.port}`
  const shared = ['--server', `http://127.0.0.1:${server.port}`, '--subdomain', 'nas', '--exact']
  const visit = () => fetch(`http://127.0.0.1:${server.port}/`, { headers: { host: 'nas.localhost' } })
  {
    await using run = start([url, ...shared, '--app-ca', ca])
    await run.printed(/nas\.localhost/)
    expect((await visit()).status).toBe(502)
    await run.printed(/ORIGIN_TLS: .* Give a name that the certificate has with --app-server-name\.\n/)
    await run.end()
  }
  await using run = start([url, ...shared, '--app-ca', ca, '--app-server-name', 'app.localhost'])
  await run.printed(/nas\.localhost/)
  expect(await (await visit()).text()).toBe('from the app')
  await run.end()
})

test('in a file they are keys, for the routes too, and so they are named', async () => {
  using target = app()
  await using server = await startServer()
  const url = `https://127.0.0.1:${target.port}`
  const file = join(folder, 'localtunnels.toml')
  const visit = (path: string) =>
    fetch(`http://127.0.0.1:${server.port}${path}`, { headers: { host: 'nas.localhost' } })
  const lines = [
    `server = "http://127.0.0.1:${server.port}"`,
    '[services.nas]',
    'port = 1',
    'app-ca = "ca.pem"',
  ]
  await Bun.write(file, [...lines, `routes = { "/nas" = "${url}" }`, ''].join('\n'))
  {
    await using run = start(['up', '--config', file])
    await run.printed(/nas\.localhost/)
    expect((await visit('/nas')).status).toBe(502)
    await run.printed(/ORIGIN_TLS: .* Give a name that the certificate has with app-server-name\.\n/)
    await run.end()
  }
  await Bun.write(
    file,
    [...lines, 'app-server-name = "app.localhost"', `routes = { "/nas" = "${url}" }`, ''].join('\n'),
  )
  await using run = start(['up', '--config', file])
  await run.printed(/nas\.localhost/)
  expect(await (await visit('/nas')).text()).toBe('from the app')
  await run.end()
})

test('doctor says that the app wants TLS', async () => {
  using target = app()
  const { stdout, exitCode } = await finish(['doctor', `${target.port}`])
  expect(stdout).toMatch(/^fail +app TLS +.* speaks TLS$/m)
  expect(stdout).toContain(`→ Give https://localhost:${target.port}`)
  expect(exitCode).not.toBe(0)
})

test('doctor speaks TLS with the app', async () => {
  using target = app()
  const url = `https://127.0.0.1:${target.port}`
  const bad = await finish(['doctor', url, '--app-ca', ca])
  expect(bad.stdout).toMatch(
    /fail +app TLS +The certificate of \S+ is not trusted: .* with --app-server-name\.\n/,
  )
  expect(bad.exitCode).toBe(6)
  const good = await finish(['doctor', url, '--app-ca', ca, '--app-server-name', 'localhost'])
  expect(good.stdout).toMatch(/ok +app TLS +the TLS handshake with \S+ works\n/)
})

test('for no https app the flags are refused', async () => {
  for (const args of [
    ['3000', '--app-ca', ca],
    ['3000', '--route', '/a=4000', '--app-insecure'],
    ['doctor', '3000', '--app-insecure'],
  ]) {
    const { stderr, exitCode } = await finish(args)
    expect(stderr).toMatch(/OPTION_INVALID: --app-\S+ is for an https:\/\/ app, and none is given\./)
    expect(exitCode).toBe(2)
  }
})

test.each(['/x', '?a=1', '#a', 'user:pw@'])(
  'an app whose URL has %s is refused, not shared without',
  async part => {
    const url = part.endsWith('@') ? `http://${part}localhost:3000` : `http://localhost:3000${part}`
    const says = /has an? (?:path|query|fragment|login), and none is used: give (?:http:\/\/)?localhost:3000/
    const bare = url.slice('http://'.length)
    for (const args of [[url], [bare], ['tcp', bare], ['3000', '--route', `/a=${url}`], ['doctor', url]])
      expect((await finish(args)).stderr).toMatch(says)
    const file = join(folder, 'parts.toml')
    for (const line of [`url = "${url}"`, `port = 1\nroutes = { "/a" = "${url}" }`]) {
      await Bun.write(file, `[services.a]\n${line}\n`)
      expect((await finish(['up', '--config', file])).stderr).toMatch(says)
      expect((await finish(['config', 'check', file])).stdout).toMatch(says)
    }
  },
)
