// Clients, with a tunnel each, and the app behind them: `clients-process.ts SPEC`. Prints `at NAME URL` when one is connected.

import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { TunnelClient } from '../../src/index.ts'
import { body } from '../hostile/scene/pattern.ts'

export interface ClientsSpec {
  readonly servers: readonly string[]
  readonly token: string
  readonly names: readonly string[]
  /** Their secrets outlive a killed process there. */
  readonly stateFolder: string
}

const { servers, token, names, stateFolder } = JSON.parse(process.argv[2] ?? '') as ClientsSpec // its own type

const PIECES = 20

/** Bytes of request `id` in pieces, one every `everyMs`; `isCut`: the connection ends before the last one. */
async function inPieces(
  answer: ServerResponse,
  id: number,
  bytes: number,
  everyMs: number,
  isCut: boolean,
): Promise<void> {
  const size = Math.ceil(bytes / PIECES)
  for (let at = 0; at < bytes && !answer.destroyed; at += size) {
    if (isCut && at + size >= bytes) return void answer.destroy()
    if (!answer.write(body(id, Math.min(size, bytes - at), at)))
      await new Promise<void>(resolve => {
        answer.once('drain', resolve)
        answer.once('close', resolve)
      })
    await Bun.sleep(everyMs)
  }
  answer.end()
}

const app = createServer((request, answer) => {
  const { pathname, searchParams } = new URL(request.url ?? '/', 'http://app')
  const [id, bytes, everyMs] = ['id', 'bytes', 'ms'].map(name => Number(searchParams.get(name))) as [
    number,
    number,
    number,
  ]
  // Whose request it was, as the app saw it: an answer that went to another visitor shows.
  answer.setHeader('X-Id', `${request.headers.host?.split('.')[0]} ${id}`)
  answer.on('error', () => {})
  if (pathname === '/echo') {
    const pieces: Buffer[] = []
    request.on('data', (piece: Buffer) => pieces.push(piece))
    request.on('end', () => answer.end(Buffer.concat(pieces)))
    return
  }
  if (pathname === '/bytes') return void answer.end(body(id, bytes))
  if (pathname === '/long') answer.setHeader('Content-Length', bytes)
  void inPieces(answer, id, bytes, everyMs, pathname === '/cut')
})

/** Echoes WebSocket messages with the name that was asked for in front. */
const sockets = Bun.serve({
  hostname: '127.0.0.1',
  port: 0,
  fetch(request, server) {
    const name = request.headers.get('host')?.split('.')[0] ?? ''
    return server.upgrade(request, { data: name }) ? undefined : new Response('no WebSocket', { status: 400 })
  },
  websocket: {
    data: '' as string,
    message(socket, text) {
      socket.send(`${socket.data} ${String(text)}`)
    },
  },
})

await new Promise<void>(resolve => app.listen(0, '127.0.0.1', resolve))
const { port } = app.address() as AddressInfo
/** Each has another one first, and another one next. */
function orderOf(at: number): readonly string[] {
  const from = at % servers.length
  const order = [...servers.slice(from), ...servers.slice(0, from)]
  return Math.floor(at / servers.length) % 2 === 0 ? order : [order[0] ?? '', ...order.slice(1).toReversed()]
}

const clients = names.map((subdomain, at) => {
  const client = new TunnelClient({
    server: orderOf(at),
    token,
    subdomain,
    exact: true,
    // Nobody else is in the network of the places.
    insecureToken: true,
    stateFolder,
    host: '127.0.0.1',
    port,
    routes: { '/ws': { host: '127.0.0.1', port: sockets.port ?? 0 } },
  })
  client.on('connected', ({ url }: { url: string }) => console.log(`at ${subdomain} ${url}`))
  client.on('error', (error: Error) => console.log(`error ${subdomain} ${error.message}`))
  client.on('disconnected', ({ error }) => console.log(`lost ${subdomain} ${error?.message}`))
  return client
})
process.on('SIGTERM', () => {
  void Promise.all(clients.map(client => client.disconnect())).then(() => process.exit(0))
})
await Promise.all(clients.map(client => client.connect()))
console.log('ready')
