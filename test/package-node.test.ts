// The packed command line where there is no Bun, and in folders that set traps for it.

import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, rm, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { TunnelServer } from '../src/tunnel-server.ts'
import { VERSION } from '../src/version.ts'

// Packing builds, and installing asks a registry.
setDefaultTimeout(120_000)

const root = resolve(import.meta.dir, '..')
let folder = ''
/** Where the package is installed. */
let home = ''
/** PATH with what npx needs, and without bun. */
let withoutBun = ''

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'localtunnels-no-bun-'))
  home = join(folder, 'home')
  withoutBun = join(folder, 'bin')
  await mkdir(withoutBun)
  await mkdir(join(folder, 'sh'))
  await symlink(Bun.which('sh') ?? 'sh', join(folder, 'sh/sh'))
  for (const name of ['node', 'npm', 'npx', 'sh'])
    await symlink(Bun.which(name) ?? name, join(withoutBun, name))
  await Bun.write(join(home, 'package.json'), '{ "name": "empty", "private": true }')
  for (const [cmd, cwd] of [
    [['bun', 'pm', 'pack', '--destination', folder], root],
    [['bun', 'add', join(folder, `localtunnels-${VERSION}.tgz`)], home],
  ] as const) {
    const { exitCode, stdout, stderr } = Bun.spawnSync({ cmd: [...cmd], cwd })
    if (exitCode !== 0) throw new Error(`${cmd.join(' ')}: ${String(stdout)}${String(stderr)}`)
  }
}, 120_000)
afterAll(async () => {
  await rm(folder, { recursive: true, force: true })
})

const BIN = 'node_modules/.bin/localtunnels'
const SCRIPT = 'node_modules/localtunnels/dist/bin/localtunnels.js'

function spawn(cmd: readonly string[], env: Readonly<Record<string, string>>, cwd = home) {
  const { HOME = '' } = process.env
  const options = {
    env: { HOME, XDG_CONFIG_HOME: join(folder, 'config'), ...env },
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'pipe',
    detached: true,
  } as const
  return Bun.spawn({ cmd: [...cmd], cwd, ...options })
}

async function run(...args: Parameters<typeof spawn>) {
  const child = spawn(...args)
  const [stdout, stderr] = await Promise.all([child.stdout.text(), child.stderr.text()])
  return { exitCode: await child.exited, stdout, stderr }
}

/** What was printed up to a pattern. */
async function printed(stream: ReadableStream<Uint8Array>, pattern: RegExp): Promise<string> {
  let text = ''
  const decoder = new TextDecoder()
  // Not `for await`: its end would close the pipe, and with that end the client.
  const reader = stream.getReader()
  for (;;) {
    const { value, done } = await reader.read()
    if (done) break
    text += decoder.decode(value, { stream: true })
    if (pattern.test(text)) return text
  }
  throw new Error(`${pattern} never came:\n${text}`)
}

// ── Without Bun ──────────────────────────────────────────────────────────────────────────────────────────────────

test.each([
  ['npx', ['npx', 'localtunnels']],
  ['the installed bin', [BIN]],
  ['node with the file', ['node', SCRIPT]],
])('%s shares an app through a server elsewhere', async (_, command) => {
  using app = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: () => new Response('hello from the app') })
  const server = new TunnelServer({ port: 0, host: '127.0.0.1', tokens: ['let-me-in'] })
  const left = Promise.withResolvers<unknown>()
  server.on('disconnection', left.resolve)
  await server.start()
  const args = [`${app.port}`, '--server', `127.0.0.1:${server.port}`, '--subdomain', 'app', '--json']
  const client = spawn([...command, ...args], { PATH: withoutBun, TUNNEL_TOKEN: 'let-me-in' })
  try {
    await printed(client.stdout, /"type":"ready"/)
    const answer = await fetch(`http://127.0.0.1:${server.port}/`, { headers: { host: 'app.localhost' } })
    expect(await answer.text()).toBe('hello from the app')
    // As a terminal does at Ctrl+C: npx, its shell and the client all get it.
    process.kill(-client.pid, 'SIGINT')
    await left.promise
    await client.exited
  } finally {
    client.kill('SIGKILL')
    await server.stop()
  }
})

test('up and tcp work on Node too', async () => {
  using app = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: () => new Response('hello') })
  const server = new TunnelServer({ port: 0, host: '127.0.0.1', tcpPorts: '20000-29999' })
  await server.start()
  const config = `server = "127.0.0.1:${server.port}"\n[services.web]\nport = ${app.port}\n`
  await Bun.write(join(home, 'localtunnels.toml'), config)
  const tcp = ['tcp', `${app.port}`, '--server', `127.0.0.1:${server.port}`, '--json']
  const clients = [['up', '--json'], tcp].map(args => spawn([BIN, ...args], { PATH: withoutBun }))
  try {
    await printed(clients[0]!.stdout, /"type":"service"/)
    const ready = await printed(clients[1]!.stdout, /"type":"ready".*"url":"tcp:[^"]+"/)
    const answer = await fetch(`http://127.0.0.1:${server.port}/`, { headers: { host: 'web.localhost' } })
    expect(await answer.text()).toBe('hello')
    const port = /tcp:\/\/[^"]*:(\d+)"/.exec(ready)?.[1]
    const headers = { connection: 'close' }
    expect(await (await fetch(`http://127.0.0.1:${port}/`, { headers })).text()).toBe('hello')
    for (const client of clients) client.kill('SIGTERM')
    expect(await Promise.all(clients.map(({ exited }) => exited))).toEqual([0, 0])
  } finally {
    for (const client of clients) client.kill('SIGKILL')
    await server.stop()
    await rm(join(home, 'localtunnels.toml'))
  }
})

const SERVER = ['server', '--domain', 'tunnel.example', '--acme', 'you@tunnel.example', '--tokens-db']

test.each([
  [['server']],
  [SERVER],
  [['server', '--workers', '2']],
  [['token', 'add', 'laptop']],
  [['3000']],
  [['tcp', '3000']],
])('%j says that it needs Bun, and where to get it', async args => {
  const { exitCode, stderr } = await run([BIN, ...args], { PATH: withoutBun })
  expect(stderr).toStartWith('error RUNTIME_UNSUPPORTED: ')
  expect(stderr).toContain('https://bun.sh')
  expect(stderr).toContain('npx --yes --package bun localtunnels')
  expect(stderr).not.toContain('    at ')
  expect(exitCode).toBe(2)
})

test('npx brings Bun, as the message says', async () => {
  const { exitCode, stdout } = await run(['npx', '--yes', '--package', 'bun', 'localtunnels', 'doctor'], {
    PATH: withoutBun,
  })
  expect(stdout).toContain(' Bun 1.')
  expect(exitCode).toBe(0)
})

test('a server in a program on Node says that it needs Bun, without the code around it', async () => {
  const program = join(home, 'server.mjs')
  await Bun.write(program, "import { TunnelServer } from 'localtunnels'\nnew TunnelServer()\n")
  const { exitCode, stderr } = await run(['node', program], { PATH: withoutBun })
  expect(stderr).toContain('\nTunnelError: This needs the Bun runtime. Install Bun')
  expect(stderr.length).toBeLessThan(2_000)
  expect(exitCode).toBe(1)
})

test('doctor says that Node needs a server that is named', async () => {
  const { exitCode, stdout } = await run([BIN, 'doctor'], { PATH: withoutBun })
  expect(stdout).toMatch(/^fail +server +none named, and Node cannot start one\n +→ Name yours: --server/m)
  expect(stdout).toContain('1 of these must be fixed.')
  expect(exitCode).toBe(6)
})

test('with Bun on PATH the bin runs on Bun, also when npx starts it', async () => {
  for (const command of [[BIN], ['npx', 'localtunnels']]) {
    const { stdout } = await run([...command, 'doctor'], { PATH: process.env.PATH ?? '' })
    expect(stdout).toContain(`Bun ${Bun.version}`)
  }
})

test('without either it says what is missing', async () => {
  const { exitCode, stderr } = await run([BIN, '--version'], { PATH: join(folder, 'sh') })
  expect(stderr).toStartWith('error RUNTIME_UNSUPPORTED: ')
  expect(exitCode).toBe(2)
})

// ── Folders that set traps ───────────────────────────────────────────────────────────────────────────────────────

const WAYS: readonly (readonly [
  string,
  (home: string) => readonly string[],
  { readonly preloads?: true; readonly isNode?: true },
])[] = [
  ['the installed bin', home => [join(home, BIN)], {}],
  ['npx', () => ['npx', 'localtunnels'], {}],
  ['bunx', () => ['bunx', 'localtunnels'], {}],
  ['bunx --bun', () => ['bunx', '--bun', 'localtunnels'], {}],
  ['node with the file', home => ['node', join(home, SCRIPT)], { isNode: true }],
  // Bun has run the preload before it reads our first line: docs/security.md says so.
  ['bun with the file', home => ['bun', join(home, SCRIPT)], { preloads: true }],
  ['bun from a clone', () => ['bun', join(root, 'bin/localtunnels.ts')], { preloads: true }],
  ['the bin of a clone', () => [join(root, 'bin/localtunnels.ts')], {}],
]

/** A folder whose files would send the token to `address`, and leave a file `ran` when their code runs. */
async function setTrap(address: string): Promise<string> {
  const trap = await mkdtemp(join(home, 'trap-'))
  await Bun.write(join(trap, '.env'), `TUNNEL_SERVER=${address}\nHTTPS_PROXY=${address}\n`)
  await Bun.write(join(trap, 'bunfig.toml'), 'preload = ["./preload.js"]\n')
  await Bun.write(join(trap, 'preload.js'), `require('node:fs').writeFileSync('ran', '')\n`)
  return trap
}

/** Bun applies the aliases of the current folder to the imports of every program that is started there. */
async function setAliases(trap: string): Promise<void> {
  const aliases = JSON.stringify({ compilerOptions: { baseUrl: '.', paths: { '*': ['./preload.js'] } } })
  for (const name of ['tsconfig.json', 'jsconfig.json']) await Bun.write(join(trap, name), aliases)
}

test.each(WAYS)(
  '%s reads no .env of the folder and runs none of its code',
  async (_, command, { preloads, isNode }) => {
    const seen: string[] = []
    using thief = Bun.serve({
      port: 0,
      hostname: '127.0.0.1',
      fetch(request) {
        seen.push(`${request.url} ${request.headers.get('authorization')}`)
        return new Response()
      },
    })
    const address = `http://127.0.0.1:${thief.port}`
    const trap = await setTrap(address)
    // Where Bun starts without our options these would replace the program itself.
    if (!preloads) await setAliases(trap)
    const environment = { PATH: process.env.PATH ?? '', TUNNEL_TOKEN: 'secret', MINE: 'ä b=c' }
    const { exitCode, stdout } = await run([...command(home), 'doctor'], environment, trap)
    expect(stdout).toContain('TUNNEL_TOKEN=(set)')
    expect(stdout).not.toContain('TUNNEL_SERVER')
    expect(stdout).toContain('none named')
    expect(seen).toEqual([])
    expect(existsSync(join(trap, 'ran'))).toBe(preloads ?? false)
    expect(exitCode).toBe(isNode ? 6 : 0)
  },
)

test.each([
  ['an empty HOME', { HOME: '' }],
  ['a relative HOME', { HOME: '.' }],
  ['an empty XDG_CACHE_HOME', { HOME: '/nonexistent', XDG_CACHE_HOME: '' }],
  ['a relative XDG_CACHE_HOME', { HOME: '/nonexistent', XDG_CACHE_HOME: '.' }],
])('with %s no compiled code is looked for in the folder', async (_, environment) => {
  const trap = await setTrap('http://127.0.0.1:1')
  for (const bin of [join(home, BIN), join(root, 'bin/localtunnels.ts')]) {
    const { exitCode } = await run([bin, 'doctor'], { PATH: process.env.PATH ?? '', ...environment }, trap)
    expect(exitCode).toBe(0)
    // `.bun` of a HOME, `bun` of an XDG_CACHE_HOME.
    expect(['.bun', 'bun'].filter(name => existsSync(join(trap, name)))).toEqual([])
  }
})

test('a file of variables that is named on the command line is read', async () => {
  const file = join(home, 'mine.env')
  await Bun.write(file, 'TUNNEL_SUBDOMAIN=mine\n')
  const command = ['bun', `--env-file=${file}`, join(home, SCRIPT), 'doctor']
  const { stdout } = await run(command, { PATH: process.env.PATH ?? '' })
  expect(stdout).toContain('TUNNEL_SUBDOMAIN=mine')
})

test('a single executable that is built with the documented options reads no file of the folder', async () => {
  const docs = await Bun.file(join(root, 'docs/security.md')).text()
  const options = /bun build --compile ((?:--no-compile-[a-z-]+ ?)+)/.exec(docs)?.[1]?.trim().split(' ') ?? []
  expect(options).toHaveLength(2)
  const program = join(home, 'program.ts')
  await Bun.write(program, `console.log(process.env.TUNNEL_SERVER)`)
  const build = ['bun', 'build', '--compile', ...options, program, '--outfile', join(home, 'program')]
  expect((await run(build, { PATH: process.env.PATH ?? '' })).exitCode).toBe(0)
  const trap = await setTrap('http://127.0.0.1:1')
  await setAliases(trap)
  const { stdout } = await run([join(home, 'program')], {}, trap)
  expect(stdout).toBe('undefined\n')
  expect(existsSync(join(trap, 'ran'))).toBe(false)
})
