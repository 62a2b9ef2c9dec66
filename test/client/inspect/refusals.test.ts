// What the server refuses before the app gets it is a row with its code: who asked for what, and why not.

import { expect, test } from 'bun:test'
import type { ErrorCode } from '../../../src/errors.ts'
import { type GuardOptions, guarding, TunnelClient } from '../../../src/index.ts'
import type { TunnelServerOptions } from '../../../src/server/settings/options.ts'
import { ask } from '../../support/ask.ts'
import { InspectorApi } from '../../support/inspector.ts'
import { RawOrigin } from '../../support/raw.ts'
import { startServer, startTunnel } from '../../support/tunnel.ts'

const HOST = '127.0.0.1'

async function refusing(guard: GuardOptions | undefined, server: TunnelServerOptions = {}) {
  const tunnel = await startTunnel(
    { fetch: () => new Response('the app'), inspect: true, ...(guard && { guard }) },
    { server: { guarding: guarding(), ...server } },
  )
  const api = new InspectorApi(tunnel.client)
  return {
    api,
    tunnel,
    visit: (path: string, options: Parameters<typeof ask>[2] = {}) =>
      ask(tunnel.port, tunnel.host, { path, ...options }),
    [Symbol.asyncDispose]: () => tunnel[Symbol.asyncDispose](),
  }
}

const cases: readonly {
  readonly what: string
  readonly guard?: GuardOptions
  readonly server?: TunnelServerOptions
  readonly code: ErrorCode
  readonly status: number
  readonly body?: string
}[] = [
  { what: 'no password', guard: { password: 'correct horse' }, code: 'ACCESS_REQUIRED', status: 401 },
  { what: 'an address', guard: { deny: ['127.0.0.0/8'] }, code: 'ADDRESS_REFUSED', status: 403 },
  {
    what: 'a rate',
    guard: { rate: { limit: 1, windowMs: 3_600_000 } },
    code: 'RATE_LIMITED',
    status: 429,
  },
  {
    what: "a guard of the server's operator that fails",
    server: {
      guards: [
        {
          name: 'broken',
          admit() {
            throw new Error('of the operator, and no business of others')
          },
        },
      ],
    },
    code: 'PLUGIN_FAILED',
    status: 500,
  },
  {
    what: 'a body above the limit',
    server: { tunnelRules: [{ maxContentLength: 3 }] },
    code: 'BODY_TOO_LARGE',
    status: 413,
    body: 'four',
  },
]

for (const { what, guard, server, code, status, body } of cases)
  test(`refused for ${what}`, async () => {
    await using one = await refusing(guard, server)
    // The rate lets the first one pass.
    if (code === 'RATE_LIMITED') await one.visit('/first')
    const answer = await one.visit('/refused?a=1', { method: 'POST', ...(body !== undefined && { body }) })
    expect([answer.status, answer.code]).toEqual([status, code])
    const row = await one.api.ended('/refused')
    expect(row).toMatchObject({
      kind: 'http',
      method: 'POST',
      path: '/refused?a=1',
      tunnel: 'app',
      visitor: HOST,
      status,
      code,
      state: 'failed',
      isRefused: true,
      service: '',
    })
    expect((await one.api.rows('?filter=is:refused')).length).toBe(1)
    const { request, replayable } = await one.api.detail(row.id)
    expect([request, replayable]).toEqual([undefined, 'REPLAY_IMPOSSIBLE'])
  })

test('an app that does not answer in time, and one that is not there', async () => {
  using app = new RawOrigin()
  await using tunnel = await startTunnel(
    { port: app.port, inspect: true },
    { server: { limits: { originTimeoutMs: 60 } } },
  )
  tunnel.client.on('error', () => {})
  const api = new InspectorApi(tunnel.client)
  expect(await ask(tunnel.port, tunnel.host, { path: '/slow' })).toMatchObject({ status: 504 })
  // Its bytes are here: it was not refused before it came.
  expect(await api.ended('/slow')).toMatchObject({
    status: 504,
    code: 'ORIGIN_TIMEOUT',
    state: 'failed',
    isRefused: false,
  })
  app[Symbol.dispose]()
  for (const connection of app.connections) connection.socket.terminate()
  expect(await ask(tunnel.port, tunnel.host, { path: '/down' })).toMatchObject({ status: 502 })
  expect(await api.ended('/down')).toMatchObject({ status: 502, code: 'ORIGIN_REFUSED', isRefused: true })
})

test('a pool: of what no client gets, the one that joined first learns', async () => {
  await using server = await startServer({ guarding: guarding() })
  const join = async () => {
    const client = new TunnelClient({
      server: `http://${HOST}:${server.port}`,
      subdomain: 'app',
      pool: true,
      guard: { password: 'correct horse', secret: 'x'.repeat(32) },
      inspect: true,
      fetch: () => new Response('the app'),
    })
    await client.connect()
    return client
  }
  await using first = await join()
  await using second = await join()
  await ask(server.port, 'app.localhost', { path: '/refused' })
  expect(await new InspectorApi(first).ended('/refused')).toMatchObject({ code: 'ACCESS_REQUIRED' })
  expect(await new InspectorApi(second).rows()).toEqual([])
})

test('how long a request waited at the server before it came is a part of its times', async () => {
  const WAIT_MS = 30
  const slow = { name: 'slow', admit: () => Bun.sleep(WAIT_MS).then(() => undefined) }
  await using one = await refusing(undefined, { guards: [slow] })
  await one.visit('/waited')
  const { id } = await one.api.ended('/waited')
  const { times } = await one.api.detail(id)
  expect(times.waitingMs).toBeGreaterThanOrEqual(WAIT_MS - 1)
  expect(times.totalMs).toBeGreaterThanOrEqual(0)
})
