// A tunnel that visitors reach by HTTPS, and an app behind it that answers what tests of HTTP/2 ask.

import type { TunnelClientOptions } from '../../src/client/options.ts'
import { TunnelClient, type TunnelServer } from '../../src/index.ts'
import type { BoundedOptions } from './bounded-server.ts'
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
  readonly server?: BoundedOptions
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
      return new Response('hello\n')
    },
  })
  return { port: app.port ?? 0, [Symbol.dispose]: () => void app.stop(true) }
}

/** An app that answers a request only when all of it is there, whatever its method: faults behind a head come first then. */
export function startPatientApp(): { readonly port: number } & Disposable {
  const app = Bun.listen<{ text: string }>({
    hostname: '127.0.0.1',
    port: 0,
    socket: {
      open(socket) {
        socket.data = { text: '' }
      },
      data(socket, bytes) {
        socket.data.text += bytes.toString('latin1')
        for (let end = endOfRequest(socket.data.text); end > 0; end = endOfRequest(socket.data.text)) {
          const isHead = socket.data.text.startsWith('HEAD ')
          socket.data.text = socket.data.text.slice(end)
          socket.write(`HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n${isHead ? '' : 'hello\n'}`)
        }
      },
    },
  })
  return { port: app.port, [Symbol.dispose]: () => app.stop(true) }
}

/** Index behind the first request, 0 when it is not complete. */
function endOfRequest(text: string): number {
  const head = text.indexOf('\r\n\r\n') + 4
  if (head < 4) return 0
  if (/^transfer-encoding: chunked\r$/im.test(text.slice(0, head))) {
    const last = text.indexOf('0\r\n', head)
    const end = last < 0 ? -1 : text.indexOf('\r\n\r\n', last)
    return end < 0 ? 0 : end + 4
  }
  const [, length = '0'] = /^content-length: (\d+)\r$/im.exec(text.slice(0, head)) ?? []
  return text.length < head + Number(length) ? 0 : head + Number(length)
}
