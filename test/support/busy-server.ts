// A server as its operator meets it on a working day: tokens, clients, many tunnels, and visitors of an hour.

import { createHash } from 'node:crypto'
import { rmSync } from 'node:fs'
import { TunnelClient, type TunnelServer } from '../../src/index.ts'
import { SqliteOperations } from '../../src/stores/sqlite-operations.ts'
import { SqliteTokens } from '../../src/stores/sqlite-tokens.ts'
import { adminOptions } from './admin.ts'
import { ask } from './ask.ts'
import { folder } from './programs.ts'
import { startServer } from './tunnel.ts'

const DAY_MS = 86_400_000
const MINUTE_MS = 60_000

/** Name, days until it ends, what it opens, and its tunnels. */
const TOKENS: readonly (readonly [
  name: string,
  days: number | undefined,
  names: readonly string[],
  tunnels: readonly string[],
])[] = [
  ['shop-prod', undefined, [], ['shop', 'cart', 'hooks']],
  ['anna', undefined, [], ['chat', 'media']],
  ['docs', 9, ['docs-*'], Array.from({ length: 40 }, (_, at) => `docs-${at + 1}`)],
  ['ci-preview', 2, ['pr-*'], Array.from({ length: 75 }, (_, at) => `pr-${2_200 + at}`)],
  ['old-laptop', undefined, [], []],
]

/** Requests to a tunnel: `/bad` is 500, `/slow` takes longer. */
const VISITS: readonly (readonly [tunnel: string, path: string, count: number])[] = [
  ['shop', '/', 40],
  ['cart', '/', 25],
  ['hooks', '/', 18],
  ['docs-14', '/bad', 7],
  ['docs-14', '/', 9],
  ['pr-2207', '/', 12],
  ['chat', '/slow', 6],
  ['media', '/', 3],
]
/** How long a slow answer takes: more than an operator is told of. */
const SLOW_MS = 1_300

export interface BusyServer extends AsyncDisposable {
  readonly server: TunnelServer
  readonly store: SqliteOperations
  readonly tokens: SqliteTokens
}

/** `domain`: what the page names; tests reach it without DNS. */
export async function busyServer(domain = 'localhost'): Promise<BusyServer> {
  const dir = await folder('busy')
  const store = new SqliteOperations(':memory:')
  const tokens = new SqliteTokens(`${dir.path}/tokens.db`)
  const secretOf = (name: string) => `the secret of the token ${name}`.replaceAll(' ', '-')
  const now = Date.now()
  for (const [name, days, names] of TOKENS)
    tokens.add({
      name,
      hash: createHash('sha256').update(secretOf(name)).digest('hex'),
      createdAtMs: now - 200 * DAY_MS,
      ...(days !== undefined && { expiresAtMs: now + (days + 0.5) * DAY_MS }),
      scope: names.length === 0 ? {} : { names },
    })
  tokens.used(new Map(TOKENS.flatMap(([name]) => (name === 'old-laptop' ? [] : [[name, now]]))))
  history(store, now)
  const server = await startServer({
    admin: adminOptions({ store, audit: store, tokens }),
    tokens: TOKENS.map(([name]) => ({ name, token: secretOf(name) })),
    domains: [domain],
  })
  const clients: TunnelClient[] = []
  for (const [name, , , own] of TOKENS) {
    if (own.length === 0) continue
    const client = new TunnelClient({
      server: `http://127.0.0.1:${server.port}`,
      token: secretOf(name),
      reconnect: false,
    })
    clients.push(client)
    for (const subdomain of own) await client.http({ subdomain, fetch: answer })
  }
  await Promise.all(
    VISITS.flatMap(([tunnel, path, count]) =>
      Array.from({ length: count }, () => ask(server.port, `${tunnel}.${domain}`, { path })),
    ),
  )
  return {
    server,
    store,
    tokens,
    async [Symbol.asyncDispose]() {
      await Promise.all(clients.map(client => client.disconnect()))
      await server.stop()
      store.close()
      tokens.close()
      rmSync(dir.path, { recursive: true, force: true })
    },
  }
}

async function answer(request: Request): Promise<Response> {
  const { pathname } = new URL(request.url)
  if (pathname === '/slow') await Bun.sleep(SLOW_MS)
  return new Response('hello '.repeat(2_000), { status: pathname === '/bad' ? 500 : 200 })
}

/** Of an hour; 20 to 16 minutes ago the server was not there, and nobody came 30 to 28 minutes ago. */
function history(store: SqliteOperations, now: number): void {
  for (let minute = 60; minute > 0; minute--) {
    if (minute <= 20 && minute > 16) continue
    const atMs = now - minute * MINUTE_MS
    store.add(atMs, [{ tunnel: '', requests: 0, errors: 0, bytesIn: 0, bytesOut: 0 }])
    if (minute <= 30 && minute > 28) continue
    const requests = 90 + Math.round(40 * Math.sin(minute / 6)) + (minute % 7)
    const durations = [0, 0, 0, requests - 20, 12, 6, 1 + (minute % 3), 0, 0, 0, 0, 0, 0, 0, 0]
    const row = { requests, errors: minute % 5, bytesIn: requests * 700, bytesOut: requests * 21_000 }
    store.add(atMs, [
      { tunnel: 'shop', ...row, durations },
      { tunnel: 'docs-14', ...row, errors: 20, durations },
    ])
  }
}
