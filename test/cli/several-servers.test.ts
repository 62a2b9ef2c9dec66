// Several servers of one cluster, named by flags, by the variable and by a file: the next one at once, and each gets its own token.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { TunnelServer } from '../../src/tunnel-server.ts'
import { freePort } from '../support/ports.ts'
import { finish, start } from './bin.ts'

let home = ''
beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), 'localtunnels-'))
})
afterAll(() => rm(home, { recursive: true }))

const server = async (...tokens: readonly string[]) => {
  const one = new TunnelServer({
    port: 0,
    host: '127.0.0.1',
    tokens,
    limits: { startupHoldMs: 0, drainTimeoutMs: 10 },
  })
  await one.start()
  return Object.assign(one, { address: `http://127.0.0.1:${one.port}` })
}

/** It refuses everybody, and keeps the tokens that it is sent. */
function listener() {
  const seen: (string | null)[] = []
  const one = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    fetch(request) {
      seen.push(request.headers.get('authorization'))
      return new Response('no', { status: 503, headers: { 'x-localtunnels-error': 'SERVER_DRAINING' } })
    },
  })
  return { seen, address: `http://127.0.0.1:${one.port}`, [Symbol.dispose]: () => void one.stop(true) }
}

async function logins(...of: readonly { readonly address: string; readonly token: string }[]) {
  const folder = await mkdtemp(join(home, 'config-'))
  const servers = Object.fromEntries(of.map(({ address, token }) => [address, { token }]))
  const path = join(folder, 'localtunnels/logins.json')
  await Bun.write(path, JSON.stringify({ version: 1, servers }))
  await Bun.spawn(['chmod', '600', path]).exited
  return { XDG_CONFIG_HOME: folder }
}

const file = async (text: string) => {
  const path = join(await mkdtemp(join(home, 'file-')), 'localtunnels.toml')
  await Bun.write(path, text)
  return path
}

const ways = (first: string, second: string) =>
  [
    ['flags', async () => start(['3000', '--server', first, '--server', second, '--subdomain', 'shop'])],
    [
      'the variable',
      async () => start(['3000', '--subdomain', 'shop'], { TUNNEL_SERVER: `${first}, ${second}` }),
    ],
    [
      'a file',
      async () =>
        start([
          'up',
          '--config',
          await file(`server = ["${first}", "${second}"]\n[services.shop]\nport = 3000\n`),
        ]),
    ],
    ['tcp', async () => start(['tcp', '22', '--server', first, '--server', second])],
  ] as const

test('one that is not there: the next at once, without a word', async () => {
  const there = await server()
  for (const [, run] of ways(`http://127.0.0.1:${freePort()}`, there.address)) {
    await using client = await run()
    await client.printed(/\w+:\/\/\S+/)
    expect(client.stderr).not.toContain('SERVER_UNREACHABLE')
    await client.end()
  }
  await there.stop()
})

test('one that leaves: the tunnel is at the next', async () => {
  const [first, second] = [await server(), await server()]
  await using client = start([
    '--serve',
    home,
    '--server',
    first.address,
    '--server',
    second.address,
    '--subdomain',
    'shop',
  ])
  await client.printed(/shop\.localhost/)
  await first.stop()
  const visit = () => fetch(`${second.address}/`, { headers: { host: 'shop.localhost' } })
  while ((await visit()).headers.get('x-localtunnels-error') === 'TUNNEL_NOT_FOUND') await Bun.sleep(10)
  await client.end()
  await second.stop()
})

test('the token of a login goes to its server alone', async () => {
  using thief = listener()
  const own = await server('secret-of-own')
  const environment = await logins(
    { address: own.address, token: 'secret-of-own' },
    { address: 'http://localhost:1', token: 'other' },
  )
  for (const order of [
    [thief.address, own.address],
    [own.address, thief.address],
  ]) {
    await using client = start(['3000', ...order.flatMap(one => ['--server', one])], environment)
    await client.printed(/^http:\/\/\S+/m)
    await client.end()
  }
  const path = await file(`server = ["${thief.address}", "${own.address}"]\n[services.a]\nport = 1\n`)
  await using client = start(['up', '--config', path], environment)
  await client.printed(/^a +http/m)
  await client.end()
  expect(thief.seen.length).toBeGreaterThanOrEqual(2)
  expect(new Set(thief.seen)).toEqual(new Set([null]))
  await own.stop()
})

test('TUNNEL_TOKEN goes to the servers of TUNNEL_SERVER, and to no other that a file names', async () => {
  using thief = listener()
  const own = await server('from-the-variable')
  const variables = { TUNNEL_TOKEN: 'from-the-variable', TUNNEL_SERVER: `http://localhost:1,${own.address}` }
  const path = await file(`server = ["${thief.address}", "${own.address}"]\n[services.a]\nport = 1\n`)
  await using client = start(['up', '--config', path], variables)
  await client.printed(/^a +http/m)
  expect(client.stderr).toContain(`TUNNEL_TOKEN is not sent to ${thief.address}`)
  await client.end()
  expect(new Set(thief.seen)).toEqual(new Set([null]))
  await own.stop()
})

test('beside TUNNEL_SERVER it does not go to another --server with a login, and to the others it does', async () => {
  using first = listener()
  using second = listener()
  const environment = await logins({ address: first.address, token: 'kept' })
  const variables = { ...environment, TUNNEL_TOKEN: 'typed-elsewhere', TUNNEL_SERVER: 'http://localhost:1' }
  await using client = start(['3000', '--server', first.address, '--server', second.address], variables)
  await client.printed(/SERVER_DRAINING/)
  expect(new Set(first.seen)).toEqual(new Set(['Bearer kept']))
  expect(new Set(second.seen)).toEqual(new Set(['Bearer typed-elsewhere']))
})

test('a found file is trusted with variables only if the user has chosen all of its servers', async () => {
  const environment = await logins({ address: 'http://localhost:1', token: 'kept' })
  const path = await file(
    'server = ["http://localhost:1", "http://localhost:2"]\ntoken = "${MINE}"\n[services.a]\nport = 1\n',
  )
  const { stderr, stdout } = await finish(
    ['up'],
    { ...environment, MINE: 'secret' },
    path.replace('/localtunnels.toml', ''),
  )
  expect(stdout + stderr).toContain('the variable MINE is not used')
})

test('doctor looks at each of them', async () => {
  const one = await server()
  const gone = `http://127.0.0.1:${freePort()}`
  const { stdout, exitCode } = await finish(['doctor', '--server', one.address, '--server', gone])
  expect(stdout).toContain(`${one.address} responds`)
  expect(stdout).toContain(`${gone} does not respond`)
  expect(exitCode).toBe(6)
  await one.stop()
})
