// A live server, a client per wire and an app, all in this process: what the mitata suites send requests through.

import type { TunnelClient as Client, TunnelServer as Server } from '../src/index.ts'
import { bench } from './measure/mitata.ts'
import { type App, startApp } from './origin/app.ts'
import { TunnelClient, TunnelServer } from './ours/tunnel.ts'

export type Wire = 'streams' | 'json'
export const WIRES: readonly Wire[] = ['streams', 'json']

/** The wire that is spoken by default has the plain name. */
export function titled(name: string, wire: Wire): string {
  return wire === 'streams' ? name : `${name} · JSON wire`
}

/** Where a request goes: straight to the app, or through a tunnel by its Host. */
export interface Target {
  readonly title: string
  readonly app: App
  ask(path: string, init?: RequestInit): Promise<Response>
}

export interface Live {
  readonly app: App
  readonly server: Server
  readonly direct: Target
  /** Through the tunnel of each wire. */
  readonly streams: Target
  readonly json: Target
  stop(): Promise<void>
}

export async function startServer(): Promise<Server> {
  const server = new TunnelServer({ port: 0, host: '127.0.0.1', domains: ['localhost'] })
  await server.start()
  return server
}

export function newClient(server: Server, app: App, subdomain: string, wire: Wire): Client {
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
  const through = (wire: Wire): Target => target(`tunnel, ${wire} wire`, app, server, `${wire}.localhost`)
  const live = {
    app,
    server,
    direct: target('direct', app),
    streams: through('streams'),
    json: through('json'),
    async stop() {
      for (const client of clients) await client.disconnect()
      await server.stop()
      await app.stop()
    },
  }
  // What is measured must be right first.
  for (const path of ['/', '/20', '/1k', '/64k', '/512k', '/1m', '/json', '/headers'])
    for (const tunnel of [live.streams, live.json]) await exchange(tunnel, path)
  return live
}

/** The app itself, or through `server` by a name. */
export function target(title: string, app: App, server?: Server, host = ''): Target {
  const own: Readonly<Record<string, string>> = server === undefined ? {} : { host }
  const port = server?.port ?? app.port
  return {
    title,
    app,
    ask: (path, init = {}) =>
      fetch(`http://127.0.0.1:${port}${path}`, {
        ...init,
        headers: { ...own, ...(init.headers as object | undefined) },
      }),
  }
}

/** What the app itself answers, by its port, method, path and body. */
const expected = new Map<string, Buffer>()

/** Sends, reads to the end and compares each byte: what one iteration of a benchmark does. */
export async function exchange(to: Target, path: string, init?: RequestInit): Promise<number> {
  const response = await to.ask(path, init)
  const body = await response.arrayBuffer()
  const where = `${to.title} ${path}`
  if (response.status !== 200) throw new Error(`${where}: status ${response.status}`)
  const name = `${init?.method ?? 'GET'} ${path}`
  if (response.headers.get('x-answer') !== name) throw new Error(`${where}: wrong header lines`)
  const bodyKey = typeof init?.body === 'string' ? init.body : (init?.body as Uint8Array | undefined)?.length
  const key = `${to.app.port} ${name} ${bodyKey}`
  let wanted = expected.get(key)
  if (!wanted) {
    wanted = Buffer.from(await (await target('direct', to.app).ask(path, init)).arrayBuffer())
    expected.set(key, wanted)
  }
  if (!wanted.equals(new Uint8Array(body))) throw new Error(`${where}: wrong bytes in the answer`)
  return body.byteLength
}

/** Requests at a time, through the tunnel of each wire. */
export function concurrent(live: Live, path: string): void {
  for (const wire of WIRES)
    for (const count of [1, 5, 10, 25])
      bench(titled(count === 1 ? '1 request' : `${count} concurrent`, wire), () =>
        together(count, live[wire], path),
      )
}

/** Several at once. */
export function together(count: number, to: Target, path: string): Promise<unknown> {
  return Promise.all(Array.from({ length: count }, () => exchange(to, path)))
}
