// Tokens that a command makes and takes back while the server runs.

import { Database } from 'bun:sqlite'
import { afterAll, afterEach, beforeAll, expect, test } from 'bun:test'
import { statSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { serviceFiles } from '../../src/cli/commands/token.ts'
import { TunnelClient } from '../../src/index.ts'
import { ask } from '../support/ask.ts'
import { codeOf, next } from '../support/events.ts'
import { AUDIENCE, startIssuer } from '../support/issuer.ts'
import { within } from '../support/within.ts'
import { finish, start } from './bin.ts'

let folder = ''
const opened: AsyncDisposable[] = []
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'localtunnels-tokens-'))
})
afterEach(async () => {
  await Promise.all(opened.splice(0).map(one => one[Symbol.asyncDispose]()))
})
afterAll(() => rm(folder, { recursive: true, force: true }))

let files = 0
const file = (): string => join(folder, `${++files}.db`)

async function token(db: string, ...words: readonly string[]) {
  return finish(['token', ...words, '--tokens-db', db])
}

/** The secret of a new token. */
async function made(db: string, ...words: readonly string[]): Promise<string> {
  const { stdout, stderr, exitCode } = await token(db, 'add', ...words, '--json')
  expect({ stderr, exitCode }).toEqual({ stderr: '', exitCode: 0 })
  return (JSON.parse(stdout) as { readonly token: string }).token
}

async function server(db: string, ...words: readonly string[]): Promise<string> {
  const running = start(['server', '--port', '0', '--host', '127.0.0.1', '--tokens-db', db, ...words])
  opened.push(running)
  return `http://127.0.0.1:${await running.printed(/listening on port (\d+)/)}`
}

function client(address: string, secret: string | undefined, subdomain = 'shop'): TunnelClient {
  const one = new TunnelClient({
    server: address,
    subdomain,
    exact: true,
    fetch: () => new Response('here'),
    ...(secret !== undefined && { token: secret }),
  })
  opened.push(one)
  return one
}

test('a token is shown once, kept as a hash in a file of this user, and listed with what it opens', async () => {
  const db = file()
  const secret = await made(db, 'ci', '--names', 'ci-*', '--kinds', 'http', '--for', '30d')
  expect(secret).toMatch(/^lt_[\w-]{43}$/)
  expect(statSync(db).mode & 0o777).toBe(0o600)
  expect(Buffer.from(await Bun.file(db).arrayBuffer()).includes(secret)).toBe(false)
  const { stdout } = await token(db, 'list')
  expect(stdout).toMatch(/^ci {2}created .* ago {2}never used {2}expires in .* {2}names ci-\*, kinds http\n$/)
  const [listed] = JSON.parse((await token(db, 'list', '--json')).stdout)
  expect(listed).toMatchObject({ name: 'ci', scope: { names: ['ci-*'], kinds: ['http'] } })
  expect(listed.hash).toBeUndefined()
})

test('a secret is alone on standard output; the rest says which file it is in, and whether a server uses that', async () => {
  const db = file()
  const lonely = await token(db, 'add', 'anna')
  expect(lonely.stdout).toMatch(/^lt_[\w-]{43}\n$/)
  expect(lonely.stderr).toBe(
    `This is the only time that it is shown.\nThe file is ${db}. No server has it open now; a server of another user has another file.\n`,
  )
  const running = start(['server', '--port', '0', '--host', '127.0.0.1', '--tokens-db', db])
  opened.push(running)
  await running.printed(/listening on port/)
  const served = await token(db, 'rotate', 'anna')
  expect(served.stdout).toMatch(/^lt_[\w-]{43}\n$/)
  expect(served.stderr).toBe(`This is the only time that it is shown.\nThe file is ${db}.\n`)
  expect((await token(db, 'revoke', 'anna')).stderr).toBe(`The file is ${db}.\n`)
  expect(running.stderr).not.toContain('There is no token')
  const empty = file()
  await using waiting = start(['server', '--port', '0', '--host', '127.0.0.1', '--tokens-db', empty])
  await waiting.printed(new RegExp(`As this user run: localtunnels token add <name> --tokens-db ${empty}`))
  expect(JSON.parse((await token(db, 'add', 'ben', '--json')).stdout)).toMatchObject({
    name: 'ben',
    file: db,
  })
})

test('a token that was used is never listed as unused, however short the time', async () => {
  const db = file()
  const secret = await made(db, 'ci')
  const address = await server(db)
  const one = client(address, secret)
  await one.connect()
  await one.disconnect()
  const isListed = async () => /^ci .* used \d+ ?m?s ago /.test((await token(db, 'list')).stdout)
  await within(
    (async () => {
      while (!(await isListed())) await new Promise(resolve => setImmediate(resolve))
    })(),
    'the use to be listed',
  )
})

test('files of services are named, in which the server of this machine may look', async () => {
  const state = join(folder, 'lib')
  for (const path of ['localtunnels/tokens.db', 'localtunnels-2/localtunnels/tokens.db', 'mysql/tokens.db'])
    await Bun.write(join(state, path), '')
  expect(serviceFiles(state).toSorted()).toEqual([
    join(state, 'localtunnels-2/localtunnels/tokens.db'),
    join(state, 'localtunnels/tokens.db'),
  ])
  expect(serviceFiles(join(state, 'nowhere'))).toEqual([])
})

test('a server without any is closed, takes one that is made, and drops the tunnels of one that is taken back', async () => {
  const db = file()
  const address = await server(db)
  expect(await codeOf(client(address, undefined).connect())).toBe('TOKEN_REFUSED')
  const secret = await made(db, 'anna')
  const anna = client(address, secret)
  // The server looks for changes twice a second.
  const connected = async () => {
    while (
      (await anna.connect().then(
        () => 'in',
        error => error.code,
      )) === 'TOKEN_REFUSED'
    );
  }
  await connected()
  expect(anna.getSubdomain()).toBe('shop')
  const gone = next(anna, 'close')
  expect((await token(db, 'revoke', 'anna')).stdout).toBe('The token anna stops working within a second.\n')
  expect((await gone).error).toMatchObject({ code: 'TOKEN_REFUSED' })
})

test('a scope is kept to, a rotated secret is another one, and a reserved name is for its token alone', async () => {
  const db = file()
  const scoped = await made(db, 'ci', '--names', 'ci-*')
  const old = await made(db, 'anna', '--names', 'shop', '--reserve')
  const all = await made(db, 'all')
  const { stdout } = await token(db, 'rotate', 'anna', '--json')
  const fresh = (JSON.parse(stdout) as { readonly token: string }).token
  const address = await server(db)
  expect(await codeOf(client(address, scoped).connect())).toBe('NAME_RESERVED')
  expect(await codeOf(client(address, scoped, 'other').connect())).toBe('NOT_ALLOWED')
  expect(await codeOf(client(address, all).connect())).toBe('NAME_RESERVED')
  expect(await codeOf(client(address, old).connect())).toBe('TOKEN_REFUSED')
  await client(address, fresh).connect()
  await client(address, scoped, 'ci-1').connect()
})

test('a configuration file names the file of tokens, and a rate of a token is kept', async () => {
  const db = file()
  const config = join(folder, 'server.toml')
  await writeFile(config, `port = 0\nhost = "127.0.0.1"\ntokens-db = "${db}"\n`)
  const secret = await made(db, 'anna', '--rate', '1/1h', '--max-ports', '1')
  expect((await token(db, 'list')).stdout).toContain('maxPorts 1, rate 1/1h')
  const running = start(['server', '--config', config])
  opened.push(running)
  const port = Number(await running.printed(/listening on port (\d+)/))
  expect(await codeOf(client(`http://127.0.0.1:${port}`, undefined).connect())).toBe('TOKEN_REFUSED')
  await client(`http://127.0.0.1:${port}`, secret).connect()
  expect((await ask(port, 'shop.localhost')).body).toBe('here')
  expect((await ask(port, 'shop.localhost')).code).toBe('RATE_LIMITED')
  await writeFile(config, `port = 0\nhost = "127.0.0.1"\ntokens-db = "${db}2"\n`)
  await running.printed(/tokens-db cannot change while the server runs/)
})

test('tokens of an issuer: by flags, in a file, and mistakes', async () => {
  using issuer = await startIssuer()
  const flags = ['--token-issuer', issuer.url, '--token-audience', AUDIENCE, '--token-claim', 'sub=ci']
  const address = await server(file(), ...flags, '--token-names', '{sub}--*')
  const secret = await issuer.sign()
  await client(address, secret, 'ci--1').connect()
  expect(await codeOf(client(address, secret, 'shop').connect())).toBe('NOT_ALLOWED')
  expect(await codeOf(client(address, await issuer.sign({ sub: 'you' }), 'ci--2').connect())).toBe(
    'TOKEN_REFUSED',
  )
  const config = join(folder, 'issuers.toml')
  await writeFile(
    config,
    `port = 0\nhost = "0.0.0.0"\n[[jwt-tokens]]\nissuer = "${issuer.url}"\naudience = "${AUDIENCE}"\nclaims = { sub = "ci" }\n`,
  )
  const running = start(['server', '--config', config])
  opened.push(running)
  const port = await running.printed(/listening on port (\d+)/)
  await using app = start(['1', '--server', `http://127.0.0.1:${port}`, '--subdomain', 'job'], {
    TUNNEL_TOKEN: secret,
  })
  await app.printed(/http:\/\/job\./)
  for (const words of [
    ['--token-issuer', issuer.url],
    ['--token-claim', 'a=b'],
    [...flags, '--token-claim', 'a'],
  ]) {
    const { stderr, exitCode } = await finish(['server', '--port', '0', ...words])
    expect(stderr).toMatch(
      /--token-issuer and --token-audience belong together|"a" is not a claim with its value/,
    )
    expect(exitCode).toBe(2)
  }
})

test('a token that is over closes its tunnels, and those of the file stay beside those of a flag', async () => {
  const db = file()
  const secret = await made(db, 'brief', '--for', '1h')
  const address = await server(db, '--token', 'of-the-flag')
  await client(address, 'of-the-flag', 'other').connect()
  const brief = client(address, secret)
  await brief.connect()
  const database = new Database(db)
  database.run('update token set expiresAtMs = ?', [Date.now() + 1_000])
  database.close()
  expect((await next(brief, 'close')).error).toMatchObject({ code: 'TOKEN_REFUSED' })
})

test('names that are taken, or none, and scopes that cannot be used are mistakes', async () => {
  const db = file()
  await made(db, 'anna', '--names', 'shop', '--reserve')
  for (const [words, says] of [
    [['add', 'anna'], 'There is a token called anna: rotate it, or revoke it first.'],
    [['add', 'a b'], '"a b" is not a name'],
    [['add', 'x', '--kinds', 'smtp'], '--kinds "smtp" is none of http, tcp, udp, tls and private.'],
    [['add', 'x', '--reserve'], 'tokens.reserve needs names'],
    [['add', 'x', '--names', 'shop', '--reserve'], 'Two of the tokens reserve the name shop.'],
    [['add', 'x', '--tcp-ports', 'many'], '"many" is neither a port'],
    [['rotate', 'nobody'], 'There is no token called nobody.'],
    [['revoke', 'nobody'], 'There is no token called nobody.'],
  ] as const) {
    const { stderr, exitCode } = await token(db, ...words)
    expect(stderr).toContain(says)
    expect(exitCode).toBe(2)
  }
  await writeFile(db, 'this is no database')
  const damaged = await token(db, 'list')
  expect(damaged.stderr).toContain(`The file of tokens ${db} cannot be used: `)
  expect(damaged.exitCode).toBe(2)
})

// LT_FUZZ=100 makes a thousand of them, of at most two seconds each beside busy neighbours.
const KILLS = 10 * Number(process.env.LT_FUZZ ?? 1)

test(
  'a process that is killed while it writes loses no token that it has shown',
  async () => {
    const db = file()
    const program = `import { SqliteTokens } from '${join(import.meta.dir, '../../src/stores/sqlite-tokens.ts')}'
    const store = new SqliteTokens('${db}')
    for (let index = 0; ; index++) {
      const name = process.pid + '-' + index
      store.add({ name, hash: Bun.hash(name).toString(16).padStart(64, '0'), createdAtMs: Date.now(), scope: {} })
      console.log(name)
    }`
    const shown: string[] = []
    for (let round = 0; round < KILLS; round++) {
      const writer = Bun.spawn(['bun', '-e', program], { stdout: 'pipe', stderr: 'inherit' })
      let text = ''
      const wanted = 1 + Math.floor(Math.random() * 20)
      for await (const bytes of writer.stdout) {
        text += new TextDecoder().decode(bytes)
        if (text.split('\n').length > wanted) writer.kill('SIGKILL')
      }
      await writer.exited
      shown.push(...text.split('\n').slice(0, -1))
    }
    const database = new Database(db)
    const kept = new Set(
      database
        .query<{ name: string }, []>('select name from token')
        .all()
        .map(({ name }) => name),
    )
    database.close()
    expect(shown.length).toBeGreaterThan(KILLS)
    expect(shown.filter(name => !kept.has(name))).toEqual([])
  },
  KILLS * 2_000,
)
