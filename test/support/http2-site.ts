// A tunnel that visitors reach by HTTPS, and an app behind it that answers what tests of HTTP/2 ask.

import type { TunnelClientOptions } from '../../src/client/options.ts'
import { TunnelClient, type TunnelServer } from '../../src/index.ts'
import type { TunnelServerOptions } from '../../src/server/options.ts'
import { TEST_CERT, TEST_KEY } from './tls.ts'
import { startServer } from './tunnel.ts'

export interface Http2Site extends AsyncDisposable {
  readonly server: TunnelServer
  readonly client: TunnelClient
  readonly port: number
  /** Of the tunnel. */
  readonly host: string
}

export interface Http2SiteSetup {
  readonly server?: TunnelServerOptions
  readonly client?: TunnelClientOptions
  /** The server reads hellos itself, as where certificates depend on the name. */
  readonly readsHellos?: boolean
  /** Port at which the client finds the server: that of a proxy in between. */
  readonly via?: (serverPort: number) => number
  /** Of the tunnel. Default `app`. */
  readonly name?: string
}

/** `origin`: the port of the app. */
export async function startHttp2Site(origin: number, setup: Http2SiteSetup = {}): Promise<Http2Site> {
  const pair = { cert: TEST_CERT, key: TEST_KEY }
  const tls = setup.readsHellos === true ? { certificates: { find: () => pair } } : { tls: pair }
  const server = await startServer({ ...tls, ...setup.server })
  const name = setup.name ?? 'app'
  const client = new TunnelClient({
    server: `https://localhost:${setup.via?.(server.port) ?? server.port}`,
    verifyServer: false,
    host: '127.0.0.1',
    port: origin,
    subdomain: name,
    maxBackoffMs: 50,
    ...setup.client,
  })
  client.on('error', () => {})
  await client.connect()
  return {
    server,
    client,
    port: server.port,
    host: `${name}.localhost:${server.port}`,
    async [Symbol.asyncDispose]() {
      await client.disconnect()
      await server.stop()
    },
  }
}

/** An app: `/` says hello, `/echo` sends the body back, `/big` is a megabyte, `/head` lists the request's headers, `/ws` echoes. */
export function startApp(): { readonly port: number } & Disposable {
  const app = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    websocket: { message: (socket, message) => void socket.send(message) },
    async fetch(request, server) {
      const { pathname } = new URL(request.url)
      if (pathname === '/ws')
        return server.upgrade(request) ? undefined : new Response('no upgrade', { status: 400 })
      if (pathname === '/echo') return new Response(await request.arrayBuffer())
      if (pathname === '/big') return new Response(new Uint8Array(1_048_576).fill(97))
      if (pathname === '/head') return Response.json([...request.headers])
      if (pathname === '/page')
        return new Response('<!doctype html><title>page</title>', {
          headers: { 'content-type': 'text/html' },
        })
      // The body first: h2spec sends faults behind complete heads.
      await request.arrayBuffer()
      return new Response('hello\n')
    },
  })
  return { port: app.port ?? 0, [Symbol.dispose]: () => void app.stop(true) }
}
