// A live server, a client per wire and an app, all in this process: what the mitata suites send requests through.

import { TunnelClient, TunnelServer } from '../src/index.ts'
import { type App, startApp } from './origin/app.ts'

export type Wire = 'streams' | 'json'
export const WIRES: readonly Wire[] = ['streams', 'json']

/** Where a request goes: straight to the app, or through a tunnel by its Host. */
export interface Target {
  readonly title: string
  ask(path: string, init?: RequestInit): Promise<Response>
}

export interface Live {
  readonly app: App
  readonly server: TunnelServer
  readonly direct: Target
  /** Through the tunnel of each wire. */
  readonly streams: Target
  readonly json: Target
  stop(): Promise<void>
}

export async function startServer(): Promise<TunnelServer> {
  const server = new TunnelServer({ port: 0, host: '127.0.0.1', domains: ['localhost'] })
  await server.start()
  return server
}

export function newClient(server: TunnelServer, app: App, subdomain: string, wire: Wire): TunnelClient {
  return new TunnelClient({
    server: `http://127.0.0.1:${server.port}`,
    host: '127.0.0.1',
    port: app.port,
    subdomain,
    wire,
  })
}

export async function startLive(): Promise<Live> {
  const app = startApp()
  const server = await startServer()
  const clients = WIRES.map(wire => newClient(server, app, wire, wire))
  await Promise.all(clients.map(client => client.connect()))
  const through = (wire: Wire): Target => target(`tunnel, ${wire} wire`, server.port, `${wire}.localhost`)
  const live = {
    app,
    server,
    direct: target('direct', app.port),
    streams: through('streams'),
    json: through('json'),
    async stop() {
      for (const client of clients) await client.disconnect()
      await server.stop()
      await app.stop()
    },
  }
  await check(live)
  return live
}

export function target(title: string, port: number, host?: string): Target {
  const own: Readonly<Record<string, string>> = host === undefined ? {} : { host }
  return {
    title,
    ask: (path, init = {}) =>
      fetch(`http://127.0.0.1:${port}${path}`, {
        ...init,
        headers: { ...own, ...(init.headers as object | undefined) },
      }),
  }
}

/** Sends and reads to the end: what one iteration of a benchmark does. */
export async function exchange(to: Target, path: string, init?: RequestInit): Promise<number> {
  const response = await to.ask(path, init)
  const body = await response.arrayBuffer()
  if (response.status !== 200) throw new Error(`${to.title} ${path}: status ${response.status}`)
  return body.byteLength
}

/** Several at once. */
export function together(count: number, to: Target, path: string): Promise<unknown> {
  return Promise.all(Array.from({ length: count }, () => exchange(to, path)))
}

/** What is measured must be right first: every tunnel gives the same bytes and statuses as the app itself. */
async function check(live: Pick<Live, 'direct' | 'streams' | 'json'>): Promise<void> {
  for (const path of ['/', '/20', '/1k', '/64k', '/512k', '/1m', '/json', '/headers', '/not-there']) {
    const expected = await fingerprint(live.direct, path)
    for (const tunnel of [live.streams, live.json]) {
      const got = await fingerprint(tunnel, path)
      if (got !== expected) throw new Error(`${tunnel.title} ${path}: ${got} instead of ${expected}`)
    }
  }
}

async function fingerprint(to: Target, path: string): Promise<string> {
  const response = await to.ask(path)
  const bytes = await response.arrayBuffer()
  return `status ${response.status}, ${bytes.byteLength} bytes, hash ${Bun.hash(bytes)}`
}
