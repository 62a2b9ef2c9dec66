// `localtunnels server --workers --admin`: one listener for all processes.

import { afterEach, describe, expect, test } from 'bun:test'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { type IncomingMessage, request } from 'node:http'
import { join } from 'node:path'
import { ask } from '../support/ask.ts'
import { eventually } from '../support/events.ts'
import { freePort } from '../support/ports.ts'
import { folder } from '../support/programs.ts'
import { finish } from './bin.ts'
import { closeAll, signal, Team } from './team.ts'

afterEach(closeAll)

/** Visitors have it, the client has another. */
const BANNED = '127.0.0.9'
const TOKEN = 'the-token-of-the-operator'

async function withAdmin(count: number) {
  const port = freePort()
  const team = await Team.start(count, '--admin', `127.0.0.1:${port}`, '--admin-token', TOKEN)
  await team.run.printed(/"code":"ADMIN"/)
  return { team, admin: new AdminCaller(port) }
}

class AdminCaller {
  readonly #url: string

  constructor(port: number) {
    this.#url = `http://127.0.0.1:${port}`
  }

  fetch(path: string, { method = 'GET', body, token = TOKEN }: Asked = {}): Promise<Response> {
    return fetch(`${this.#url}${path}`, {
      method,
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
  }

  // biome-ignore lint/suspicious/noExplicitAny: what the API answers is compared with what is expected of it
  async json(path: string, asked?: Asked): Promise<any> {
    const answer = await this.fetch(`/api/v1${path}`, asked)
    return { status: answer.status, body: await answer.json() }
  }

  commands(...words: readonly string[]) {
    return finish(['admin', ...words, '--url', this.#url, '--admin-token', TOKEN])
  }
}

interface Asked {
  readonly method?: string
  readonly body?: unknown
  readonly token?: string
}

const isLinux = process.platform === 'linux'

describe.if(isLinux)('the admin listener of several workers', () => {
  test('tells of the tunnels and clients of all, and finds each for what is done with it', async () => {
    const { team, admin } = await withAdmin(2)
    await team.client(1, 'one', () => new Response('1'))
    const two = await team.client(2, 'two', () => new Response('2'))
    for (const name of ['one', 'two', 'two'])
      expect((await ask(team.port, `${name}.localhost`)).status).toBe(200)

    expect((await admin.json('/status')).body).toMatchObject({
      status: 'operational',
      connections: 2,
      totalConnections: 2,
      activeSubdomains: 2,
    })
    const { tunnels } = (await admin.json('/tunnels')).body
    expect(tunnels).toHaveLength(2)
    expect(tunnels).toContainEqual(
      expect.objectContaining({ name: 'two', state: 'up', requests: 2, clients: [expect.any(Number)] }),
    )
    const clients: readonly { number: number; tunnels: readonly string[] }[] = (await admin.json('/clients'))
      .body.clients
    expect(clients.flatMap(({ tunnels }) => tunnels).toSorted()).toEqual(['one', 'two'])
    expect(new Set(clients.map(({ number }) => number)).size).toBe(2)

    // What the list calls a client is what closes it, and nothing else.
    const number = clients.find(({ tunnels }) => tunnels.includes('two'))!.number
    const ended = new Promise(resolve => two.on('disconnected', resolve))
    expect((await admin.json(`/clients/${number}`, { method: 'DELETE' })).body).toEqual({ closed: number })
    await ended
    expect((await admin.json('/clients/999999', { method: 'DELETE' })).status).toBe(404)
    expect((await admin.commands('tunnels')).stdout).toContain('one')
    expect(await admin.json('/tunnels/one')).toMatchObject({ body: { name: 'one' } })
    expect(await admin.json('/tunnels/one/probe', { method: 'POST' })).toMatchObject({
      body: { status: 200 },
    })
    expect((await admin.json('/tunnels/none')).status).toBe(404)
    expect((await admin.json('/tunnels/one', { method: 'DELETE' })).status).toBe(200)
    expect((await admin.json('/tunnels/one')).status).toBe(404)
  })

  test('a ban holds at every worker, also at one that is started again', async () => {
    const { team, admin } = await withAdmin(2)
    const client = await team.client(1, 'shop', () => new Response('open'))
    // On many connections, so that each worker has some of them.
    const statuses = async () => new Set(await Promise.all(Array.from({ length: 40 }, () => statusOf(team))))
    expect(await statuses()).toEqual(new Set([200]))
    const { id } = (await admin.json('/bans', { method: 'POST', body: { value: BANNED } })).body
    expect(await statuses()).toEqual(new Set([403]))
    const first = team.pid(1)
    signal(first, 'SIGKILL')
    await eventually(() => team.workers().size === 2 && team.pid(1) !== first, 'a new worker')
    await eventually(() => client.isConnected(), 'the client')
    expect(await statuses()).toEqual(new Set([403]))
    expect((await admin.json('/bans')).body.bans).toHaveLength(1)
    expect((await admin.json(`/bans/${id}`, { method: 'DELETE' })).status).toBe(200)
    expect(await admin.json('/bans')).toEqual({ status: 200, body: { bans: [] } })
    const entries: readonly { readonly action: string }[] = (await admin.json('/audit')).body.entries
    expect(entries.map(({ action }) => action).filter(action => action.startsWith('ban'))).toEqual([
      'ban.remove',
      'ban.address',
    ])
  })

  test('metrics have the worker as a label, and each family once', async () => {
    const { team, admin } = await withAdmin(2)
    await team.client(2, 'shop', () => new Response('open'))
    await ask(team.port, 'shop.localhost')
    const text = await (await admin.fetch('/metrics')).text()
    expect(text.match(/^# TYPE localtunnels_clients gauge$/gm)).toHaveLength(1)
    expect(text).toContain('localtunnels_clients{worker="1",wire="streams"} 0')
    expect(text).toContain('localtunnels_clients{worker="2",wire="streams"} 1')
    expect(text).toMatch(/^localtunnels_uptime_seconds\{worker="1"\} \d+$/m)
    const promtool = Bun.which('promtool')
    if (promtool === null) return
    const check = Bun.spawn([promtool, 'check', 'metrics'], {
      stdin: new Blob([text]),
      stdout: 'pipe',
      stderr: 'pipe',
    })
    expect(await check.exited, await new Response(check.stderr).text()).toBe(0)
  })

  test('strangers learn nothing, and a worker that is away is left out', async () => {
    const { team, admin } = await withAdmin(2)
    for (const path of ['/metrics', '/api/v1/status', '/api/v1/openapi.json'])
      expect((await admin.fetch(path, { token: 'another-token-of-16' })).status).toBe(401)
    expect((await admin.fetch('/health', { token: '' })).status).toBe(200)
    expect((await admin.fetch('/')).headers.get('content-type')).toStartWith('text/html')
    expect((await admin.json('/nothing')).status).toBe(404)
    for (const path of ['/metrics', '/api/v1/status', '/api/v1/clients']) {
      const refused = await admin.fetch(path, { method: 'PUT' })
      expect([path, refused.status, refused.headers.get('allow')]).toEqual([path, 405, 'GET, HEAD'])
    }
    signal(team.pid(2), 'SIGKILL')
    expect((await admin.json('/status')).status).toBe(200)
  })
})

/** Of a visit from the address that is banned. */
async function statusOf({ port }: Team): Promise<number> {
  const visit = request({
    port,
    host: '127.0.0.1',
    localAddress: BANNED,
    headers: { host: 'shop.localhost' },
  })
  visit.end()
  const [answer] = (await once(visit, 'response')) as [IncomingMessage] // what http gives it
  answer.resume()
  await once(answer, 'end')
  return answer.statusCode ?? 0
}

test.if(isLinux)('lines of the access log say which process counted their id', async () => {
  await using dir = await folder('access-log')
  const file = join(dir.path, 'visits.log')
  const team = await Team.start(2, '--access-log', file)
  await team.client(1, 'one', () => new Response('1'))
  await team.client(2, 'two', () => new Response('2'))
  for (let visit = 0; visit < 20; visit++)
    for (const name of ['one', 'two']) await ask(team.port, `${name}.localhost`)
  const lines = () => readFileSync(file, 'utf8').trim().split('\n')
  await eventually(() => lines().length === 40, 'the lines')
  const ids = lines()
    .map(line => JSON.parse(line))
    .map(({ id, worker }) => `${worker} ${id}`)
  expect(ids.filter(id => !/^[12] \d+$/.test(id))).toEqual([])
  expect(new Set(ids).size).toBe(40)
})
