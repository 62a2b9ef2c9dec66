// Every folder of examples/ does what its README says: the programs run, the files mean something, the commands exist.

import { expect, test } from 'bun:test'
import { readdirSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { Client as McpClient } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import { jwtTokens, TunnelClient, TunnelServer } from '../src/index.ts'
import { finish, start } from './cli/bin.ts'
import { ask } from './support/ask.ts'
import { unknownWords } from './support/documented-commands.ts'
import { idleProgram } from './support/idle-program.ts'
import { closedAfterEach } from './support/opened.ts'
import { freePort } from './support/ports.ts'
import { run } from './support/programs.ts'

const ROOT = resolve(import.meta.dir, '../examples')
const folders = readdirSync(ROOT, { withFileTypes: true })
  .filter(entry => entry.isDirectory())
  .map(({ name }) => name)
/** What the files of the examples leave to their reader. */
const VARIABLES = {
  PHOTOS_PASSWORD: 'correct horse',
  GUARD_SECRET: 'a-secret-of-the-guard-0123456789-0123456789',
  API_TOKEN: 'an-api-token-0123456789',
  DEVELOPERS_TOKEN: 'a-token-0123456789',
  LOGIN_SECRET: 'a-secret',
}
const TOKEN = 'a-token-of-a-test'
const textOf = (...path: readonly string[]) => Bun.file(join(ROOT, ...path)).text()

const { defer } = closedAfterEach()

async function startServer() {
  const server = new TunnelServer({ port: 0, host: '127.0.0.1' })
  await server.start()
  defer(() => server.stop())
  return server
}

function clientOf(server: TunnelServer): TunnelClient {
  const client = new TunnelClient({ server: server.url })
  defer(() => client.disconnect())
  return client
}

test('there are eleven, and the index has each', async () => {
  const index = await textOf('README.md')
  expect(folders).toHaveLength(11)
  for (const folder of folders) expect(index).toContain(`[${folder}](${folder})`)
})

test('each command of their pages is one of localtunnels, with flags that it has', async () => {
  for (const folder of folders)
    expect([folder, unknownWords(await textOf(folder, 'README.md'))]).toEqual([folder, []])
})

test.each([
  ['postgres', 'localtunnels.toml'],
  ['game-server', 'localtunnels.toml'],
  ['home-server', 'localtunnels.toml'],
  ['team-login', 'localtunnels.toml'],
  ['team-login', 'server.toml'],
])('%s/%s is a configuration without a fault', async (folder, file) => {
  const words = ['config', 'check', ...(file === 'server.toml' ? ['--server'] : []), join(ROOT, folder, file)]
  expect(await finish(words, VARIABLES)).toMatchObject({ exitCode: 0, stderr: '' })
})

test('webhook-test: its test passes', async () => {
  const { code, err } = await run(['bun', 'test', join(ROOT, 'webhook-test')])
  expect(err).toContain('2 pass')
  expect(code).toBe(0)
})

test('game-server: two players through a tunnel hear of each other', async () => {
  const server = new TunnelServer({ port: 0, host: '127.0.0.1', udpPorts: String(freePort()) })
  await server.start()
  defer(() => server.stop())
  const port = freePort()
  const game = Bun.spawn(['bun', join(ROOT, 'game-server/server.ts')], {
    env: { ...process.env, PORT: String(port) },
    stdout: 'pipe',
  })
  defer(() => game.kill())
  await game.stdout.getReader().read()
  const tunnel = await clientOf(server).udp({ port })
  const publicPort = Number(new URL(tunnel.url).port)
  const heard: string[] = []
  const { promise, resolve: done } = Promise.withResolvers<void>()
  const player = () =>
    Bun.udpSocket({
      hostname: '127.0.0.1',
      socket: {
        data: (_, said) => {
          heard.push(said.toString())
          if (heard.filter(one => one === '2 playing: jump').length === 2) done()
        },
      },
    })
  const [one, two] = [await player(), await player()]
  defer(
    () => one.close(),
    () => two.close(),
  )
  // Datagrams may be lost.
  const again = setInterval(() => {
    one.send('run', publicPort, '127.0.0.1')
    two.send('jump', publicPort, '127.0.0.1')
  }, 50)
  defer(() => clearInterval(again))
  await promise
})

test('camera: pictures come one after the other', async () => {
  const server = await startServer()
  const port = freePort()
  const camera = Bun.spawn(['bun', join(ROOT, 'camera/camera.ts')], {
    env: { ...process.env, PORT: String(port) },
    stdout: 'pipe',
  })
  defer(() => camera.kill())
  await camera.stdout.getReader().read()
  await clientOf(server).http({ port, subdomain: 'garden' })
  const viewer = new AbortController()
  const answer = await fetch(`http://127.0.0.1:${server.port}/`, {
    headers: { host: 'garden.localhost' },
    signal: viewer.signal,
  })
  expect(answer.headers.get('content-type')).toBe('multipart/x-mixed-replace; boundary=picture')
  let text = ''
  for await (const piece of answer.body ?? []) {
    text += Buffer.from(piece).toString()
    if (text.split('--picture').length > 3) break
  }
  expect(text).toContain('<svg')
  viewer.abort()
})

/** The file of an example by `localtunnels up`, with addresses of this machine in place of those in it. */
async function startServices(folder: string, addresses: Readonly<Record<string, string | number>>) {
  const place = await mkdtemp(join(tmpdir(), 'localtunnels-example-'))
  defer(() => rm(place, { recursive: true }))
  let text = await textOf(folder, 'localtunnels.toml')
  for (const [there, here] of Object.entries(addresses)) {
    expect(text).toContain(there)
    text = text.replace(there, String(here))
  }
  await Bun.write(join(place, 'localtunnels.toml'), `token = "${TOKEN}"\n${text}`)
  const running = start(['up', '--config', join(place, 'localtunnels.toml')], {
    ...VARIABLES,
    TUNNEL_TOKEN: TOKEN,
  })
  defer(() => running[Symbol.asyncDispose]())
  return running
}

/** A server as the README of an example starts it, with one port for TCP tunnels. */
async function startCommand(tcpPort: number): Promise<number> {
  const server = start([
    'server',
    '--host',
    '127.0.0.1',
    '--port',
    '0',
    '--tcp-ports',
    `${tcpPort}`,
    '--token',
    TOKEN,
  ])
  defer(() => server[Symbol.asyncDispose]())
  return Number(/:(\d+)/.exec(await server.printed(/http:\/\/localhost:\d+/))?.[1])
}

/** What a service says to a visitor of a port; empty: the visitor was cut. */
async function greetingAt(port: number): Promise<string> {
  const heard = Promise.withResolvers<string>()
  await Bun.connect({
    hostname: '127.0.0.1',
    port,
    socket: { data: (_, bytes) => heard.resolve(String(bytes)), close: () => heard.resolve('') },
  }).catch((error: unknown) => {
    // Cut before this side knew of its connection.
    if (error instanceof Error && 'code' in error && error.code === 'ECONNRESET') heard.resolve('')
    else throw error
  })
  return heard.promise
}

function startService(): number {
  const service = Bun.listen({
    hostname: '127.0.0.1',
    port: 0,
    socket: { open: socket => void socket.write('ready'), data() {} },
  })
  defer(() => service.stop(true))
  return service.port
}

test('postgres: a colleague at the address in the file reaches the database, others do not', async () => {
  const [open, closed] = [freePort(), freePort()]
  for (const [at, address] of [
    [open, '127.0.0.1'],
    [closed, '203.0.113.7'],
  ] as const) {
    const running = await startServices('postgres', {
      'https://tunnel.example': `http://127.0.0.1:${await startCommand(at)}`,
      5432: startService(),
      20432: at,
      '203.0.113.7': address,
    })
    await running.printed(new RegExp(`:${at}`))
    expect(await greetingAt(at)).toBe(at === open ? 'ready' : '')
  }
})

test('home-server: photos ask for the password, music has a host of its own, ssh a port', async () => {
  const at = freePort()
  const port = await startCommand(at)
  const app = Bun.serve({ port: 0, fetch: () => new Response('music') })
  defer(() => app.stop(true))
  const running = await startServices('home-server', {
    'https://tunnel.example': `http://127.0.0.1:${port}`,
    2342: app.port ?? 0,
    4533: app.port ?? 0,
    'port = 22\n': `port = ${startService()}\n`,
    20022: at,
    '203.0.113.0/24': '127.0.0.0/8',
  })
  await running.printed(new RegExp(`:${at}`))
  for (const name of ['photos', 'music']) await running.printed(new RegExp(`^${name}  `, 'm'))
  const authorization = `Basic ${btoa(`family:${VARIABLES.PHOTOS_PASSWORD}`)}`
  expect((await ask(port, 'photos.localhost')).status).toBe(401)
  expect(await ask(port, 'photos.localhost', { headers: { authorization } })).toMatchObject({ status: 200 })
  expect(await ask(port, 'music.family.example')).toMatchObject({ body: 'music' })
  expect(await greetingAt(at)).toBe('ready')
})

test('static-preview: the folder is there for who has the link', async () => {
  const server = start(['server', '--host', '127.0.0.1', '--port', '0'])
  defer(() => server[Symbol.asyncDispose]())
  const [, port = ''] = /:(\d+)/.exec(await server.printed(/http:\/\/localhost:\d+/)) ?? []
  const site = join(ROOT, 'static-preview/site')
  const shared = start([
    '--serve',
    site,
    '--subdomain',
    'draft',
    '--links',
    '--server',
    `http://127.0.0.1:${port}`,
  ])
  defer(() => shared[Symbol.asyncDispose]())
  await shared.printed(/http:\/\/draft\.localhost/)
  expect((await ask(Number(port), 'draft.localhost')).status).toBe(401)
})

test('pull-request-preview: the flags of its page are those of a server that reads such tokens', async () => {
  const page = await textOf('pull-request-preview', 'README.md')
  expect(page).toContain("--token-names 'pr-*'")
  const text = await textOf('pull-request-preview', 'preview.yml')
  const workflow = Bun.YAML.parse(text)
  expect(workflow).toMatchObject({ on: 'pull_request', permissions: { 'id-token': 'write' } })
  const action = Bun.YAML.parse(await Bun.file(resolve(ROOT, '../packaging/action/action.yml')).text()) as {
    inputs: object
  } // as the file has it
  const { steps } = (workflow as { jobs: { preview: { steps: { uses?: string; with?: object }[] } } }).jobs
    .preview
  const step = steps.find(({ uses }) => uses?.includes('packaging/action@'))
  expect(action.inputs).toContainAllKeys(Object.keys({ ...action.inputs, ...step?.with }))
  const rule = {
    issuer: 'https://token.actions.githubusercontent.com',
    audience: 'tunnel.example',
    claims: { repository: 'me/shop' },
    names: ['pr-*'],
  }
  expect(() => jwtTokens([rule])).not.toThrow()
})

test('agent: the program that its file names has the tools', async () => {
  const { mcpServers } = JSON.parse(await textOf('agent', '.mcp.json'))
  const { command, args } = mcpServers.localtunnels
  expect(command).toBe('localtunnels')
  const transport = new StdioClientTransport({
    command: 'bun',
    args: [resolve(ROOT, '../bin/localtunnels.ts'), ...args, '--local'],
    stderr: 'ignore',
  })
  const agent = new McpClient({ name: 'test', version: '1' })
  await agent.connect(transport)
  defer(() => agent.close())
  const { tools } = await agent.listTools()
  expect(tools.map(({ name }) => name)).toEqual(
    expect.arrayContaining(['share_port', 'wait_for_request', 'explain_request', 'replay_request']),
  )
})

test('sidecar: the client has the flags and variables of a client, and an app that is there', async () => {
  const { services } = Bun.YAML.parse(await textOf('sidecar', 'compose.yaml')) as {
    services: Record<string, { command?: string; environment?: Record<string, string> }>
  } // as the file has it
  const [target = '', ...words] = services.tunnel?.command?.split(' ') ?? []
  expect(services).toHaveProperty(target.split(':')[0]!)
  const client = await idleProgram()
  for (const flag of words.filter(word => word.startsWith('--')))
    expect(client.options.map(({ long }) => long)).toContain(flag)
  for (const name of Object.keys(services.tunnel?.environment ?? {}))
    expect(client.options.map(({ envVar }) => envVar)).toContain(name)
})

test('cluster: both servers have the flags of a cluster, and addresses of their own', async () => {
  const { services } = Bun.YAML.parse(await textOf('cluster', 'compose.yaml')) as {
    services: Record<string, { command?: string; image: string }>
  } // as the file has it
  const server = (await idleProgram()).commands.find(command => command.name() === 'server')
  for (const name of ['one', 'two']) {
    const words = services[name]?.command?.split(' ') ?? []
    expect(words).toContain(`http://${name}:8080`)
    for (const flag of words.filter(word => word.startsWith('--')))
      expect(server?.options.map(({ long }) => long)).toContain(flag)
    expect(services[name]?.image).toBe('localtunnels')
  }
  expect(services.valkey?.image).toStartWith('valkey/valkey:')
})
