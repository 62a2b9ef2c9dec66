// Probes of the server on their way through the inspector: marked, hidden, never the latest; and no visitor passes for one.

import { expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TunnelClientOptions } from '../../../src/client/options.ts'
import { TunnelClient, type TunnelServer } from '../../../src/index.ts'
import { adminOptions, askAdmin } from '../../support/admin.ts'
import { ask } from '../../support/ask.ts'
import { next } from '../../support/events.ts'
import { InspectorApi } from '../../support/inspector.ts'
import { closedAfterEach } from '../../support/opened.ts'
import { freePort } from '../../support/ports.ts'
import { startServer } from '../../support/tunnel.ts'

const AGENT = 'localtunnels-probe'
const PROBE = 'x-localtunnels-probe'

const { defer } = closedAfterEach()

/** `seen`: the values of the header of the probe that the app got. */
async function inspected(wire: 'streams' | 'json', store?: string) {
  const seen: (string | null)[] = []
  const app = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    fetch: ({ headers }) => {
      if (headers.has(PROBE)) seen.push(headers.get(PROBE))
      return new Response('ok')
    },
  })
  defer(() => app.stop(true))
  const server = await startServer({ admin: adminOptions() })
  defer(() => server.stop())
  const inspect = { port: 0, ...(store !== undefined && { store }) }
  const client = new TunnelClient({
    server: server.url,
    port: app.port!,
    host: '127.0.0.1',
    subdomain: 'shop',
    wire,
    inspect,
  })
  defer(() => client.disconnect())
  await client.connect()
  return { server, client, api: new InspectorApi(client), seen }
}

async function probed(server: TunnelServer) {
  const { body } = await askAdmin(server, '/tunnels/shop/probe', { method: 'POST' })
  expect(body).toMatchObject({ status: 200 })
}

const visit = (server: TunnelServer, method: string, path: string, headers: Record<string, string> = {}) =>
  ask(server.port, 'shop.localhost', { method, path, headers })

for (const wire of ['streams', 'json'] as const) {
  test(`${wire}: a probe is not listed, waited for or taken as the latest, unless it is asked for`, async () => {
    const { server, client, api } = await inspected(wire)
    await probed(server)
    const [probe] = await api.rows('?filter=is:probe')
    expect(probe).toMatchObject({ method: 'HEAD', path: '/', isProbe: true })
    expect(await api.rows()).toEqual([])
    expect((await api.ask('exchanges/latest')).json.error.code).toBe('EXCHANGE_NOT_FOUND')
    const waited = api.send('POST', 'wait', { filter: 'HEAD', after: '0', timeoutMs: 4_000 })
    await visit(server, 'POST', '/hooks/paid')
    await probed(server)
    expect(await api.rows()).toMatchObject([{ method: 'POST', isProbe: false }])
    expect(await api.detail('latest')).toMatchObject({ path: '/hooks/paid' })
    await visit(server, 'HEAD', '/real')
    expect((await waited).json.exchange).toMatchObject({ path: '/real' })
    expect(await client.waitFor('is:probe')).toMatchObject({ isProbe: true })
    const { value } = await client.exchanges[Symbol.asyncIterator]().next()
    expect(value).toMatchObject({ path: '/hooks/paid' })
    expect(await api.rows('?filter=is:probe,http')).toHaveLength(4)
    // The list that is cleared is that which is shown, with what is hidden in it.
    await api.send('DELETE', 'exchanges')
    expect(await api.rows('?filter=is:probe')).toEqual([])
  })

  test(`${wire}: a visitor who takes all that he can know of a probe is listed`, async () => {
    const { server, api, seen } = await inspected(wire)
    await visit(server, 'HEAD', '/', { 'User-Agent': AGENT })
    await visit(server, 'HEAD', '/', { 'User-Agent': AGENT, [PROBE]: 'x' })
    await visit(server, 'HEAD', '/', { 'User-Agent': AGENT, probe: 'true' })
    expect(await api.rows()).toMatchObject([{ isProbe: false }, { isProbe: false }, { isProbe: false }])
    // Even the app, which sees the proof, can hide no other request than this one.
    await probed(server)
    const proof = seen.at(-1) ?? ''
    expect(proof).toHaveLength(43)
    await visit(server, 'POST', '/', { [PROBE]: proof })
    await visit(server, 'HEAD', '/admin', { [PROBE]: proof })
    expect((await api.rows()).map(({ method, path }) => `${method} ${path}`)).toEqual([
      'HEAD /admin',
      'POST /',
      'HEAD /',
      'HEAD /',
      'HEAD /',
    ])
    expect(await api.rows('?filter=is:probe')).toHaveLength(1)
  })
}

test('a probe that is kept in a file stays one', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'localtunnels-probes-'))
  defer(() => rmSync(folder, { recursive: true }))
  const store = join(folder, 'requests.db')
  const first = await inspected('streams', store)
  await probed(first.server)
  expect(await first.api.rows('?filter=is:probe')).toHaveLength(1)
  await first.client.disconnect()
  const second = await inspected('streams', store)
  expect(await second.api.rows()).toEqual([])
  expect(await second.api.rows('?filter=is:probe')).toHaveLength(1)
})

for (const [how, options] of [
  ['streams', { wire: 'streams' }],
  ['json', { wire: 'json' }],
  ['a socket', { unix: '/nowhere/app.sock' }],
] satisfies [string, TunnelClientOptions][])
  test(`${how}: a probe of an app that is away is nothing to report, and a visit of it is`, async () => {
    const server = await startServer({ admin: adminOptions() })
    defer(() => server.stop())
    const client = new TunnelClient({
      server: server.url,
      ...(!('unix' in options) && { host: '127.0.0.1', port: freePort() }),
      subdomain: 'shop',
      ...options,
    })
    defer(() => client.disconnect())
    const seen: string[] = []
    client.on('error', error => seen.push('code' in error ? String(error.code) : error.message))
    client.on('request', ({ method }) => seen.push(method))
    client.on('response', ({ error }) => seen.push(error ?? ''))
    await client.connect()
    for (let count = 0; count < 2; count++) {
      const { body } = await askAdmin(server, '/tunnels/shop/probe', { method: 'POST' })
      expect(body).toMatchObject({ status: 0, code: expect.stringMatching(/^ORIGIN_/) })
    }
    const over = next(client, 'response')
    await visit(server, 'GET', '/real')
    await over
    expect([...new Set(seen)].sort()).toEqual(['GET', seen.find(one => one.startsWith('ORIGIN_')) ?? ''])
    expect(seen).toHaveLength(3)
  })
