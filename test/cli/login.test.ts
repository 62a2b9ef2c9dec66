// `localtunnels login`, `logout`, `whoami`, and where the tokens that they keep go.

import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { chmod, mkdir, mkdtemp, rm, stat, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { TunnelServer } from '../../src/tunnel-server.ts'
import { makeCertificate } from '../support/certificates.ts'
import { startServer } from '../support/tunnel.ts'
import { type Finished, finish, start, startOnTerminal } from './bin.ts'

const BIN = join(import.meta.dir, '../../bin/localtunnels.ts')
const SECRET = 'the-secret-of-the-server'
const opened: AsyncDisposable[] = []
let home = ''
/** Where logins are kept. */
let kept = ''

beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), 'localtunnels-login-'))
  kept = join(home, 'localtunnels/logins.json')
})
afterEach(async () => {
  for (const one of opened.splice(0).reverse()) await one[Symbol.asyncDispose]()
  await rm(home, { recursive: true, force: true })
})

function open<T extends AsyncDisposable>(one: T): T {
  opened.push(one)
  return one
}

async function server(...tokens: readonly string[]): Promise<string> {
  const one = open(new TunnelServer({ port: 0, host: '127.0.0.1', tokens }))
  await one.start()
  return `http://127.0.0.1:${one.port}`
}

/** A server of an attacker: it records the tokens that it is sent. */
function thief(): { readonly url: string; readonly seen: (string | null)[] } {
  const seen: (string | null)[] = []
  const one = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    fetch(request) {
      seen.push(request.headers.get('authorization'))
      return new Response('not a tunnel server', { status: 404 })
    },
  })
  open({ [Symbol.asyncDispose]: () => one.stop(true) })
  return { url: `http://127.0.0.1:${one.port}`, seen }
}

const env = (more: Readonly<Record<string, string>> = {}) => ({ XDG_CONFIG_HOME: home, ...more })
const run = (args: readonly string[], more?: Readonly<Record<string, string>>, folder?: string) =>
  finish(args, env(more), folder)

async function login(
  url: string,
  token: string,
  more: Readonly<Record<string, string>> = {},
  ...flags: readonly string[]
): Promise<Finished> {
  const { PATH = '', HOME = '' } = process.env
  const child = Bun.spawn({
    cmd: ['bun', BIN, 'login', url, ...flags],
    env: { PATH, HOME, ...env(more) },
    stdin: new Blob([`${token}\n`]),
    stdout: 'pipe',
    stderr: 'pipe',
  })
  const [stdout, stderr] = await Promise.all([child.stdout.text(), child.stderr.text()])
  return { stdout, stderr, exitCode: await child.exited }
}

describe('login', () => {
  test('asks without showing what is typed, keeps it for this user alone, and becomes the default', async () => {
    const url = await server(SECRET)
    const asking = open(startOnTerminal(['login', url], env()))
    await asking.printed(/Token for .*: /)
    asking.type(`wrong\x15${SECRET}x\x7f\r`)
    expect(await asking.exited).toBe(0)
    expect(asking.stdout).toContain(`${url} accepts it.`)
    expect(asking.stdout).not.toContain('secret')
    expect((await stat(kept)).mode & 0o777).toBe(0o600)
    expect((await stat(join(home, 'localtunnels'))).mode & 0o777).toBe(0o700)

    const known = await run(['whoami'])
    expect(known).toMatchObject({ exitCode: 0, stderr: '' })
    expect(known.stdout).toBe(`${url}  token saved, default\n\nSaved in ${kept}\n`)

    using app = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: () => new Response('hello') })
    const sharing = open(start([`${app.port}`, '--subdomain', 'app', '--json'], env()))
    const ready = await sharing.printed(/.*"type":"ready".*/)
    expect(JSON.parse(ready)).toMatchObject({ server: url, isEmbedded: false })
    const answer = await fetch(url, { headers: { host: 'app.localhost' } })
    expect(await answer.text()).toBe('hello')
  })

  test('a login that works is no refusal in the log of the server', async () => {
    const one = open(new TunnelServer({ port: 0, host: '127.0.0.1', tokens: [SECRET] }))
    const refused: string[] = []
    one.on('refused', ({ code }) => refused.push(code))
    await one.start()
    const url = `http://127.0.0.1:${one.port}`
    expect((await login(url, SECRET)).stdout).toContain(`${url} accepts it.`)
    expect(refused).toEqual([])
    await login(url, 'wrong')
    expect(refused).toEqual(['TOKEN_REFUSED'])
  })

  test('keeps no token for a server that asks for none, unless it is forced to', async () => {
    const url = await server()
    const { stdout, stderr, exitCode } = await login(url, SECRET)
    expect([stdout, exitCode]).toEqual(['', 2])
    expect(stderr).toContain(`${url} asks for no token: it would take any, and this one is not kept.`)
    expect((await run(['whoami'])).stdout).toBe('Not logged in to any server.\n')
    const forced = await login(url, SECRET, {}, '--force')
    expect(forced).toMatchObject({ exitCode: 0, stderr: '' })
    expect(forced.stdout).toStartWith(`${url} asks for no token. Saved in`)
    expect((await run(['whoami'])).stdout).toContain(`${url}  token saved, default`)
  })

  test.each(['\x03', 'half\x04'])('is given up by %j', async keys => {
    const asking = open(startOnTerminal(['login', 'tunnel.example'], env()))
    await asking.printed(/Token for .*: /)
    asking.type(keys)
    expect(await asking.exited).toBe(130)
    expect((await run(['whoami'])).stdout).toBe('Not logged in to any server.\n')
  })

  test('keeps no token that the server refuses, and no address of something else', async () => {
    const refused = await login(await server(SECRET), 'wrong')
    expect(refused).toMatchObject({ exitCode: 4, stdout: '' })
    expect(refused.stderr).toStartWith('error TOKEN_REFUSED: ')
    const other = await login(thief().url, SECRET)
    expect(other).toMatchObject({ exitCode: 3, stdout: '' })
    expect(other.stderr).toStartWith('error SERVER_REFUSED: ')
    expect((await run(['whoami'])).stdout).toBe('Not logged in to any server.\n')
  })

  test('keeps none for an address that cannot be right, or a certificate that is not trusted', async () => {
    const plain = await server(SECRET)
    const wrong = await login(plain.replace('http:', 'https:'), SECRET)
    expect(wrong).toMatchObject({ exitCode: 3, stdout: '' })
    expect(wrong.stderr).toStartWith('error SERVER_SCHEME: ')
    const secure = open(await startServer({ tls: await makeCertificate(['localhost']), tokens: [SECRET] }))
    const untrusted = await login(`https://localhost:${secure.port}`, SECRET)
    expect(untrusted).toMatchObject({ exitCode: 3, stdout: '' })
    expect(untrusted.stderr).toStartWith('error SERVER_UNTRUSTED: ')
    expect(await Bun.file(kept).exists()).toBe(false)
  })

  test('keeps the authority of --ca, for this server and no other', async () => {
    const issuer = await makeCertificate(['localhost'])
    const serverOf = async () =>
      `https://localhost:${open(await startServer({ tls: issuer, tokens: [SECRET] })).port}`
    const [one, other] = [await serverOf(), await serverOf()]
    const file = join(home, 'authority.pem')
    await Bun.write(file, issuer.cert)
    expect(await login(one, SECRET, {}, '--ca', file)).toMatchObject({ exitCode: 0, stderr: '' })
    expect((await stat(kept)).mode & 0o777).toBe(0o600)
    // The text and not the path: the file may be gone.
    await rm(file)
    const project = join(home, 'project')
    await Bun.write(join(project, 'localtunnels.toml'), `server = "${one}"\n[services.web]\nport = 3000\n`)
    for (const args of [
      ['3000'],
      ['3000', '--server', one],
      ['up'],
      ['up', '--config', 'localtunnels.toml'],
    ]) {
      const sharing = open(start([...args, '--json'], env(), project))
      expect(await sharing.printed(/.*"type":"(?:ready|service)".*/)).toContain('localhost')
    }
    expect((await run(['whoami'])).stdout).toStartWith(`${one}  token saved, authority saved, default\n`)
    expect((await run(['doctor'])).stdout).not.toContain('SERVER_UNTRUSTED')
    // As when the token is another one.
    expect(await login(one, SECRET)).toMatchObject({ exitCode: 0 })
    expect((await run(['3000', '--server', other, '--json'])).stdout).toContain('SERVER_UNTRUSTED')
    expect((await login(other, SECRET)).stderr).toStartWith('error SERVER_UNTRUSTED: ')
    await run(['logout', one])
    expect((await run(['3000', '--server', one, '--json'])).stdout).toContain('SERVER_UNTRUSTED')
  })

  test('--default without a login says so, and asks for no token', async () => {
    const { stderr, exitCode } = await run(['login', '--default', 'tunnel.example'])
    expect(stderr).toBe(
      'error OPTION_INVALID: There is no login for https://tunnel.example: run localtunnels login https://tunnel.example\n',
    )
    expect(exitCode).toBe(2)
  })

  test('keeps one for a server that cannot be asked, and says so', async () => {
    const { stdout, exitCode } = await login('http://127.0.0.1:1', SECRET)
    expect(stdout).toStartWith('Not verified: ')
    expect(exitCode).toBe(0)
    expect((await run(['whoami'])).stdout).toContain('http://127.0.0.1:1  token saved, default')
  })

  test.each([
    ['http://tunnel.example', SECRET, 'TOKEN_UNENCRYPTED'],
    ['tunnel.example', '', 'OPTION_INVALID'],
    ['tunnel.example', 'two words', 'OPTION_INVALID'],
    ['tunnel.example', 'x'.repeat(300), 'OPTION_INVALID'],
    ['tunnel.example', 'x'.repeat(10_000), 'OPTION_INVALID'],
    ['ftp://tunnel.example', SECRET, 'OPTION_INVALID'],
  ])('refuses %s with a token such as %.20s', async (url, token, code) => {
    const { exitCode, stderr } = await login(url, token)
    expect(stderr).toStartWith(`error ${code}: `)
    expect(stderr).not.toContain('words')
    expect(exitCode).toBe(2)
    expect(await Bun.file(kept).exists()).toBe(false)
  })

  test('without a token on standard input it says where one is asked for', async () => {
    const { exitCode, stderr } = await login('https://tunnel.example', '')
    expect(stderr).toBe(
      'error OPTION_INVALID: No token came on standard input: pipe it in, or run this on a terminal, which asks for it.\n',
    )
    expect(exitCode).toBe(2)
  })

  test('of several servers the last one is the default, or the one that is made it', async () => {
    const [one, two] = [await server('first'), await server('second')]
    await login(one, 'first', {}, '--token-stdin')
    await login(two, 'second')
    expect((await run(['whoami'])).stdout).toStartWith(`${one}  token saved\n${two}  token saved, default\n`)
    const preferred = await run(['login', one, '--default'])
    expect(preferred).toMatchObject({ exitCode: 0, stdout: `${one} is the default server.\n` })
    expect((await run(['logout'])).stdout).toBe(
      `Removed the login for ${one}.\nNo server is the default now. Choose one with: localtunnels login --default <server>\n`,
    )
    expect((await run(['whoami'])).stdout).toContain('\nNo server is the default now. ')
    expect((await run(['logout', one])).stdout).toBe(`There is no login for ${one}.\n`)
    expect(await run(['logout'])).toMatchObject({ exitCode: 2 })
    expect((await run(['logout', two])).exitCode).toBe(0)
    expect((await run(['whoami'])).stdout).toBe('Not logged in to any server.\n')
  })

  test.each([
    ['may be read by other users', '{}', 0o644],
    ['is not a file of logins', '{', 0o600],
    ['is not a file of logins', `{"servers":{"x":{"token":"${SECRET}"}}}`, 0o600],
    ['is not a file of logins', '{"servers":{"https://x":{"ca":1}}}', 0o600],
    ['is not a file of logins', '[]', 0o600],
  ])('a file that %s is refused', async (why, text, mode) => {
    await mkdir(join(home, 'localtunnels'))
    await Bun.write(kept, text)
    await chmod(kept, mode)
    for (const args of [['whoami'], ['3000'], ['login', 'tunnel.example']]) {
      const { exitCode, stderr } = await run(args)
      expect(stderr).toStartWith(`error LOGIN_INVALID: ${kept} ${why}`)
      expect(stderr).not.toContain(SECRET)
      expect(exitCode).toBe(2)
    }
    // What names server and token needs no logins.
    const { stderr } = await run([
      '3000',
      '--server',
      '127.0.0.1:1',
      '--token',
      'x',
      '--proxy',
      'http://127.0.0.1:1',
    ])
    expect(stderr).not.toContain('LOGIN_INVALID')
  })
})

test('without a folder of its own nothing is known, and nothing can be kept', async () => {
  const nowhere = { XDG_CONFIG_HOME: '/dev/null/config' }
  expect(await run(['whoami'], nowhere)).toMatchObject({
    exitCode: 0,
    stdout: 'Not logged in to any server.\n',
  })
  const { stderr, exitCode } = await login('http://127.0.0.1:1', SECRET, nowhere)
  expect(stderr).toStartWith(
    'error LOGIN_INVALID: /dev/null/config/localtunnels/logins.json cannot be written',
  )
  expect(exitCode).toBe(2)
})

describe('a token goes only to its server', () => {
  const share = (args: readonly string[], more?: Readonly<Record<string, string>>) =>
    run(['3000', ...args, '--json'], more)

  test('a saved one: not to another server, nor to another port or scheme of its own', async () => {
    const { url, seen } = thief()
    await login('http://127.0.0.1:1', SECRET)
    await share(['--server', url])
    await share([], { TUNNEL_SERVER: url })
    expect(seen.length).toBeGreaterThan(0)
    expect(new Set(seen)).toEqual(new Set([null]))
  })

  test('one of the environment: to a server of flags or environment, not to the default one', async () => {
    const { url, seen } = thief()
    await Bun.write(
      kept,
      JSON.stringify({ version: 1, default: url, servers: { [url]: { token: 'saved' } } }),
    )
    await chmod(kept, 0o600)
    const withDefault = await share([], { TUNNEL_TOKEN: SECRET })
    expect(withDefault.stdout).toContain('"code":"TOKEN_WITHHELD"')
    expect(new Set(seen.splice(0))).toEqual(new Set(['Bearer saved']))
    await share(['--server', url], { TUNNEL_TOKEN: SECRET })
    await share([], { TUNNEL_SERVER: url, TUNNEL_TOKEN: SECRET })
    await share(['--token', SECRET])
    expect(new Set(seen.splice(0))).toEqual(new Set([`Bearer ${SECRET}`]))
  })

  test('one beside TUNNEL_SERVER: not to another server that has a login of its own', async () => {
    const { url, seen } = thief()
    await Bun.write(kept, JSON.stringify({ version: 1, servers: { [url]: { token: 'saved' } } }))
    await chmod(kept, 0o600)
    await share(['--server', url], { TUNNEL_SERVER: 'https://a.example', TUNNEL_TOKEN: SECRET })
    expect(new Set(seen.splice(0))).toEqual(new Set(['Bearer saved']))
    await share(['--server', url, '--token', 'typed'], { TUNNEL_SERVER: 'https://a.example' })
    expect(new Set(seen.splice(0))).toEqual(new Set(['Bearer typed']))
  })

  test('--local is a server in this process, whatever was logged in to', async () => {
    const { url, seen } = thief()
    await Bun.write(
      kept,
      JSON.stringify({ version: 1, default: url, servers: { [url]: { token: 'saved' } } }),
    )
    await chmod(kept, 0o600)
    const sharing = open(start(['3000', '--local', '--json'], env({ TUNNEL_SERVER: url })))
    expect(JSON.parse(await sharing.printed(/.*"type":"ready".*/))).toMatchObject({ isEmbedded: true })
    expect(seen).toEqual([])
    const both = await run(['3000', '--local', '--server', url])
    expect(both).toMatchObject({ exitCode: 2 })
    expect(both.stderr).toContain('--local and --server exclude each other')
  })

  test('in the clear with a warning, when it is allowed', async () => {
    const { url, seen } = thief()
    const proxied = ['3000', '--server', 'http://tunnel.example', '--proxy', url, '--token', SECRET, '--json']
    const refused = await run(proxied)
    expect(refused.stdout).toContain('"code":"TOKEN_UNENCRYPTED"')
    expect(refused.exitCode).toBe(2)
    expect(seen).toEqual([])
    const allowed = await run([...proxied, '--insecure-token'])
    expect(allowed.stdout).toMatch(/"type":"notice",.*"code":"TOKEN_UNENCRYPTED"/)
    expect(allowed.exitCode).toBe(3)
  })
})

describe('a configuration file that was found in the folder', () => {
  const SERVICE = '\n[services.web]\nport = 3000\n'

  /** Runs `up` in a folder with this file, and collects what the attacker's server was sent. */
  async function seenBy(
    { url, seen }: ReturnType<typeof thief>,
    file: string,
    more: Readonly<Record<string, string>> = {},
    args: readonly string[] = [],
  ): Promise<Finished & { readonly tokens: readonly (string | null)[] }> {
    const folder = await mkdtemp(join(home, 'project-'))
    await Bun.write(join(folder, 'localtunnels.toml'), file.replaceAll('URL', url))
    const finished = await run(['up', '--json', ...args], more, folder)
    return { ...finished, tokens: [...new Set(seen.splice(0))] }
  }

  test('gets no token of the environment for a server that it names itself', async () => {
    const one = thief()
    const implied = await seenBy(one, `server = "URL"${SERVICE}`, { TUNNEL_TOKEN: SECRET })
    expect(implied.tokens).toEqual([null])
    expect(implied.stdout).toContain('"code":"TOKEN_WITHHELD"')
    // Named or not: only flags, the environment and logins say where that one goes.
    const named = await seenBy(one, `server = "URL"${SERVICE}`, { TUNNEL_TOKEN: SECRET }, [
      '--config',
      'localtunnels.toml',
    ])
    expect(named.tokens).toEqual([null])
    const same = await seenBy(one, `server = "URL"${SERVICE}`, {
      TUNNEL_TOKEN: SECRET,
      TUNNEL_SERVER: one.url,
    })
    expect(same.tokens).toEqual([`Bearer ${SECRET}`])
    const elsewhere = { TUNNEL_TOKEN: SECRET, TUNNEL_SERVER: 'http://127.0.0.1:1' }
    expect((await seenBy(one, `server = "URL"${SERVICE}`, elsewhere)).tokens).toEqual([null])
  })

  test.each([
    ['token = "${MINE}"', 'token'],
    ['token = "a${MINE}b"', 'token'],
    ['token = "${MINE:-x}"', 'token'],
    ['proxy = "http://${MINE}@127.0.0.1:1"', 'proxy'],
  ])('gets no variable for a server of its own: %s', async (line, key) => {
    const one = thief()
    const found = await seenBy(one, `server = "URL"\n${line}${SERVICE}`, { MINE: SECRET })
    expect(found).toMatchObject({ exitCode: 2, tokens: [] })
    expect(found.stdout).toContain(`${key}: the variable MINE is not used, because this file was found`)
    expect(found.stdout + found.stderr).not.toContain(SECRET)
  })

  test('gets them when it is named, or its server was logged in to or set', async () => {
    const one = thief()
    const file = `server = "URL"\ntoken = "\${MINE}"${SERVICE}`
    const mine = { MINE: SECRET }
    const named = await seenBy(one, file, mine, ['--config', 'localtunnels.toml'])
    expect(named.tokens).toEqual([`Bearer ${SECRET}`])
    const byVariable = await seenBy(one, file, { ...mine, TUNNEL_CONFIG: 'localtunnels.toml' })
    expect(byVariable.tokens).toEqual([`Bearer ${SECRET}`])
    const set = await seenBy(one, file, { ...mine, TUNNEL_SERVER: one.url })
    expect(set.tokens).toEqual([`Bearer ${SECRET}`])
    const wholly = await seenBy(one, file.replace('"URL"', '"${TEAM}"'), { ...mine, TEAM: one.url })
    expect(wholly.tokens).toEqual([`Bearer ${SECRET}`])
    await Bun.write(kept, JSON.stringify({ version: 1, servers: { [one.url]: { token: 'saved' } } }))
    await chmod(kept, 0o600)
    expect((await seenBy(one, file, mine)).tokens).toEqual([`Bearer ${SECRET}`])
    expect((await seenBy(one, `server = "URL"${SERVICE}`)).tokens).toEqual(['Bearer saved'])
    expect((await seenBy(one, SERVICE, { TUNNEL_SERVER: one.url })).tokens).toEqual(['Bearer saved'])
  })

  test.each(['proxy = "URL"', 'verify-server = false', 'insecure-token = true', 'ca = "localtunnels.toml"'])(
    'gets no token of the user when it says how the server is reached: %s',
    async line => {
      const one = thief()
      const mine = { TUNNEL_SERVER: one.url, TUNNEL_TOKEN: SECRET }
      const found = await seenBy(one, `${line}${SERVICE}`, mine)
      expect(found.stdout).toContain('"code":"TOKEN_WITHHELD"')
      expect(found.tokens.filter(token => token !== null)).toEqual([])
      const variable = await seenBy(one, `${line}\ntoken = "\${TUNNEL_TOKEN}"${SERVICE}`, mine)
      expect(variable.exitCode).toBe(2)
      expect(variable.tokens).toEqual([])
    },
  )

  test.each([
    'host = "${MINE}.thief.example"',
    'host-header = "${MINE}"',
    'health = { path = "/${MINE}" }',
    'routes = { "/api" = "${MINE}:80" }',
  ])('gets no variable for a host or path of an app: %s', async line => {
    const one = thief()
    const found = await seenBy(one, `${SERVICE}${line}\n`, { MINE: 'mine', TUNNEL_SERVER: one.url })
    expect(found.exitCode).toBe(2)
    expect(found.stdout).toContain('the variable MINE is not used')
  })

  test('may use variables where nothing is sent, and defaults of those that are not set', async () => {
    const folder = await mkdtemp(join(home, 'project-'))
    const lines = ['host = "${NOT_SET:-localhost}"', 'port = "${PORT}"', 'origin-connect-timeout = "${TIME}"']
    await Bun.write(
      join(folder, 'localtunnels.toml'),
      `server = "a.example"\n[services.web]\n${lines.join('\n')}\n`,
    )
    const checked = await run(['config', 'check'], { PORT: '3000', TIME: '3s' }, folder)
    expect(checked).toMatchObject({ exitCode: 0 })
  })

  test.each([
    ['folder = "../localtunnels"', 'folder'],
    ['folder = "${XDG_CONFIG_HOME}/localtunnels"', 'folder'],
    ['folder = "/"', 'folder'],
    ['folder = "link"', 'folder'],
    ['folder = "link/not-there-yet"', 'folder'],
    ['unix = "${SSH_AUTH_SOCK}"', 'unix'],
    ['port = 1\nroutes = { "/api" = "unix:../agent.sock" }', 'routes./api'],
  ])('shares no folder and no socket outside of its own: %s', async (line, key) => {
    const folder = await mkdtemp(join(home, 'project-'))
    await mkdir(join(home, 'localtunnels'))
    await symlink(join(home, 'localtunnels'), join(folder, 'link'))
    await Bun.write(join(folder, 'localtunnels.toml'), `[services.web]\n${line}\n`)
    const agent = { SSH_AUTH_SOCK: join(home, 'agent.sock') }
    const checked = await run(['config', 'check'], agent, folder)
    expect(checked.stdout.replaceAll('"', '')).toContain(`services.web.${key}: leads out of the folder`)
    expect(checked.exitCode).toBe(2)
    const named = await run(['config', 'check', 'localtunnels.toml'], agent, folder)
    expect(named.stdout).not.toContain('leads out')
  })

  test('shares folders and sockets of its own', async () => {
    const folder = await mkdtemp(join(home, 'project-'))
    const services = ['folder = "."', 'folder = "dist/..a"', 'unix = "run/app.sock"']
    const text = services.map((line, index) => `[services.s${index}]\n${line}\n`).join('')
    await mkdir(join(folder, 'dist/..a'), { recursive: true })
    await Bun.write(join(folder, 'localtunnels.toml'), text)
    expect(await run(['config', 'check'], {}, folder)).toMatchObject({ exitCode: 0 })
  })

  test('config check says what up would say of tokens', async () => {
    const folder = await mkdtemp(join(home, 'project-'))
    const check = (file: string, more: Readonly<Record<string, string>> = {}) =>
      Bun.write(join(folder, 'localtunnels.toml'), file).then(() => run(['config', 'check'], more, folder))
    const withheld = await check(`server = "a.example"${SERVICE}`, { TUNNEL_TOKEN: SECRET })
    expect(withheld).toMatchObject({ exitCode: 0 })
    expect(withheld.stdout).toContain('note: TUNNEL_TOKEN is not sent to a.example')
    const clear = await check(`server = "http://a.example"\ntoken = "x"${SERVICE}`)
    expect(clear).toMatchObject({ exitCode: 2 })
    expect(clear.stdout).toContain('unencrypted')
    const clearForOne = await check(`server = "http://a.example"${SERVICE}token = "x"\n`)
    expect(clearForOne.stdout).toContain('services.web: The token would go to http://a.example unencrypted')
  })

  test('is not run when it is a program; it is when it is named', async () => {
    const folder = await mkdtemp(join(home, 'project-'))
    const text = `require('node:fs').writeFileSync('ran', '')\nexport default { server: '127.0.0.1:1', services: { web: { port: 1 } } }`
    await Bun.write(join(folder, 'localtunnels.ts'), text)
    for (const args of [['up'], ['config', 'check']]) {
      const found = await run(args, {}, folder)
      expect(found.exitCode).toBe(2)
      expect(found.stdout + found.stderr).toContain('is a program, and was found')
      expect(await Bun.file(join(folder, 'ran')).exists()).toBe(false)
    }
    expect((await run(['config', 'check', 'localtunnels.ts'], {}, folder)).exitCode).toBe(0)
    expect(await Bun.file(join(folder, 'ran')).exists()).toBe(true)
  })
})
