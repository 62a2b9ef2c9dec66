// The inspector of the command line: where it is on, where it is off, and that its address is the one printed.

import { expect, test } from 'bun:test'
import { existsSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { closedAfterEach } from '../support/opened.ts'
import { finish, start, startOnTerminal } from './bin.ts'

const { open, defer } = closedAfterEach()

const app = () => {
  const server = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: () => new Response('here') })
  defer(() => server.stop(true))
  return `127.0.0.1:${server.port}`
}

const INSPECT = /Inspect +\S*?(http:\/\/127\.0\.0\.1:\d+\/#[\w-]{43})/

/** What the API of the inspector lists. */
async function paths(inspector: string): Promise<readonly string[]> {
  const { origin, hash } = new URL(inspector)
  const answer = await fetch(`${origin}/api/v1/exchanges`, {
    headers: { authorization: `Bearer ${hash.slice(1)}` },
  })
  const { exchanges } = (await answer.json()) as { readonly exchanges: readonly { readonly path: string }[] }
  return exchanges.map(({ path }) => path)
}

test('on a terminal its address stands below the URL, and what a visitor asked for is there', async () => {
  const running = open(startOnTerminal([app(), '--local', '--inspect']))
  const inspector = await running.printed(INSPECT)
  const url = new URL(await running.printed(/(http:\/\/[\w-]+\.localhost:\d+)/))
  await fetch(`http://127.0.0.1:${url.port}/seen`, { headers: { host: url.host, connection: 'close' } })
  expect(await paths(inspector)).toContain('/seen')
  expect(await (await fetch(inspector)).text()).toContain('<title>localtunnels inspector</title>')
})

test('on a terminal it is on by itself, but in a container', async () => {
  const inDocker = existsSync('/.dockerenv')
  for (const [container, isOn] of [
    ['', !inDocker],
    ['podman', false],
  ] as const) {
    const running = open(startOnTerminal([app(), '--local'], container === '' ? {} : { container }))
    await running.printed(/live/)
    expect(INSPECT.test(running.stdout)).toBe(isOn)
    // That it is off, and why, is said where the user would look for its address.
    if (!isOn) await running.printed(/The inspector is off, because this is a container\./)
  }
})

test('in a pipe it is off, and on when asked for, with --json as a field', async () => {
  const off = open(start([app(), '--local']))
  await off.printed(/ready, forwarding/)
  expect(off.stdout + off.stderr).not.toContain('inspect')
  const on = open(start([app(), '--local', '--json'], { TUNNEL_INSPECT: '0', TUNNEL_NO_INSPECT: '1' }))
  expect(JSON.parse(await on.printed(/^(\{"type":"ready".*\})$/m)).inspector).toBeUndefined()
  const asked = open(start([app(), '--local', '--json', '--inspect']))
  const { inspector } = JSON.parse(await asked.printed(/^(\{"type":"ready".*\})$/m))
  expect(inspector).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/#/)
})

test('--no-inspect leaves it out on a terminal, and a port that is none is a mistake', async () => {
  const running = open(startOnTerminal([app(), '--local', '--no-inspect']))
  await running.printed(/live/)
  expect(running.stdout).not.toContain('inspect:')
  const { stderr, exitCode } = await finish([app(), '--local', '--inspect', '99999'])
  expect(stderr).toContain('error OPTION_INVALID: --inspect "99999": a port is a number from 0 to 65535.')
  expect(exitCode).toBe(2)
})

test('up keeps what its file says, with an address, keys and a file that outlives it', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'localtunnels-inspect-'))
  defer(() => rm(folder, { recursive: true }))
  const config = join(folder, 'localtunnels.toml')
  const file = (inspect: string) =>
    `[services.web]\nport = ${app().split(':')[1]}\nhost = "127.0.0.1"\n${inspect}\n`
  await Bun.write(config, file(''))
  const up = ['up', '--local', '--config', config]
  const without = open(startOnTerminal(up))
  await without.printed(/1 service/)
  expect(without.stdout).not.toContain('inspect:')
  without.type('\x03')
  await without.exited
  await Bun.write(config, file('[inspect]\nstore = "kept.sqlite"'))
  for (const path of ['/first', '/second']) {
    const running = open(startOnTerminal(up, { NO_COLOR: '1' }))
    const inspector = await running.printed(INSPECT)
    await running.printed(/i inspect {2}r replay/)
    const url = new URL(await running.printed(/(http:\/\/web\.localhost:\d+)/))
    await (await fetch(`http://127.0.0.1:${url.port}${path}`, { headers: { host: url.host } })).text()
    await running.printed(new RegExp(`GET .*${path}`))
    running.type('r')
    await running.printed(new RegExp(`↻ GET ${path}`))
    if (path === '/second') expect(await paths(inspector)).toEqual(['/second', '/second', '/first', '/first'])
    running.type('\x03')
    expect(await running.exited).toBe(0)
  }
  await Bun.write(config, file('[inspect]\nmax-body = "20MiB"'))
  const wrong = await finish(['config', 'check', config])
  expect(wrong.stdout + wrong.stderr).toContain('inspect.max-body may be at most half of inspect.memory')
})
