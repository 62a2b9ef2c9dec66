// `localtunnels link`: links to a tunnel that another process has, on disk in between.

import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'bun:test'
import { chmod, mkdtemp, readdir, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { guarding } from '../../src/index.ts'
import type { TunnelServer } from '../../src/tunnel-server.ts'
import { eventually } from '../support/events.ts'
import { startServer } from '../support/tunnel.ts'
import { finish, start } from './bin.ts'

let app: Bun.Server<undefined>
let server: TunnelServer
let state = ''

beforeAll(() => {
  app = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: () => new Response('the app') })
})
afterAll(() => app.stop(true))
beforeEach(async () => {
  state = await mkdtemp(join(tmpdir(), 'localtunnels-link-'))
  server = await startServer({ guarding: guarding() })
})
afterEach(async () => {
  await server.stop()
  await rm(state, { recursive: true, force: true })
})

const env = () => ({ XDG_STATE_HOME: state })
const share = (...args: string[]) =>
  start(
    [String(app.port), '--server', `http://127.0.0.1:${server.port}`, '--subdomain', 'shop', ...args],
    env(),
  )
const run = (...args: string[]) => finish(['link', ...args], env())

/** Visits a path of the tunnel, wherever the URL says that it is. */
async function visit(path: string, cookie = ''): Promise<{ status: number; cookie: string }> {
  const answer = await fetch(`http://127.0.0.1:${server.port}${path}`, {
    redirect: 'manual',
    headers: { host: 'shop.localhost', cookie },
  })
  await answer.arrayBuffer()
  return { status: answer.status, cookie: answer.headers.getSetCookie()[0]?.split(';')[0] ?? '' }
}

test('a link is made beside the client, lets in, and is taken back at once', async () => {
  await using client = share('--links')
  await client.printed(/shop\.localhost/)
  expect((await visit('/')).status).toBe(401)
  const { stdout, exitCode } = await run('shop', '--path', '/preview', '--for', '2h', '--json')
  expect(exitCode).toBe(0)
  const { url, id } = JSON.parse(stdout)
  const { cookie, status } = await visit(new URL(url).pathname)
  expect(status).toBe(303)
  expect((await visit('/preview/x', cookie)).status).toBe(200)
  expect((await visit('/other', cookie)).status).toBe(401)
  const plain = await run('shop')
  expect(plain.stdout).toMatch(/^https?:\/\/\S+\n$/)
  expect(plain.stderr).toMatch(/^To revoke it: localtunnels link shop --revoke \S+\n$/)
  expect((await run('shop', '--revoke', id)).stdout).toContain('stops working within a second')
  const startedAt = performance.now()
  for (let last = 0; last !== 401; ) last = (await visit('/preview/x', cookie)).status
  expect(performance.now() - startedAt).toBeLessThan(3_000)
})

test('the server is named as for the client, and there has to be one', async () => {
  await using client = share('--links')
  await client.printed(/shop\.localhost/)
  expect((await run('shop', '--server', `127.0.0.1:${server.port}`)).exitCode).toBe(0)
  const { stderr, exitCode } = await run('shop', '--server', 'elsewhere.example')
  expect(exitCode).toBe(2)
  expect(stderr).toContain('needs --server')
})

test('sessions and links outlive the client, and so does what was taken back', async () => {
  let made = ''
  let cookie = ''
  {
    await using client = share('--links')
    await client.printed(/shop\.localhost/)
    made = (await run('shop', '--json')).stdout
    cookie = (await visit(new URL(JSON.parse(made).url).pathname)).cookie
    expect((await visit('/', cookie)).status).toBe(200)
  }
  const { id } = JSON.parse(made)
  {
    await using client = share('--links')
    await client.printed(/shop\.localhost/)
    expect((await visit('/', cookie)).status).toBe(200)
  }
  // Nobody runs: the next client reads it.
  await run('shop', '--revoke', id)
  await using client = share('--links')
  await client.printed(/shop\.localhost/)
  expect((await visit('/', cookie)).status).toBe(401)
}, 60_000)

test('what signs links is readable by this user alone', async () => {
  await using client = share('--links')
  await client.printed(/shop\.localhost/)
  await eventually(() => client.stdout !== '', 'the client')
  const folder = join(state, 'localtunnels/guards')
  const [file = ''] = await readdir(folder)
  expect((await stat(join(folder, file))).mode & 0o777).toBe(0o600)
  expect((await stat(folder)).mode & 0o777).toBe(0o700)
  await chmod(join(folder, file), 0o644)
  expect((await run('shop')).exitCode).toBe(2)
})

test('a tunnel without links, a name that is not there and an option that is none are refused', async () => {
  await using client = share('--password', 'correct horse')
  await client.printed(/shop\.localhost/)
  for (const args of [['shop'], ['other'], ['shop', '--for', 'ever'], ['shop', '--revoke', '../x']]) {
    const { exitCode, stderr } = await run(...args)
    expect([args, exitCode]).toEqual([args, 2])
    expect(stderr).toContain('OPTION_INVALID')
  }
})
