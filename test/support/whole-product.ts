// HTTP, a WebSocket, bulk both ways and a TCP tunnel through server and client, each byte checked. Prints what came of it.

import { TunnelClient, TunnelServer } from '../../src/index.ts'
import { Link } from '../../src/session/link.ts'

const BULK_BYTES = 8 * 1_048_576
const host = '127.0.0.1'
const bulk = new Uint8Array(BULK_BYTES).map((_, index) => index * 31 + (index >> 8))
const hashOf = (bytes: Uint8Array) => Bun.hash(bytes).toString()

let boundStreams = 0
const bind: Link['bind'] = Reflect.get(Link.prototype, 'bind')
Link.prototype.bind = function (...args) {
  boundStreams++
  return bind.apply(this, args)
}

const app = Bun.serve({
  port: 0,
  hostname: host,
  async fetch(request, server) {
    if (server.upgrade(request)) return undefined
    const { pathname } = new URL(request.url)
    if (pathname === '/bulk') return new Response(bulk)
    if (pathname === '/upload') return new Response(hashOf(await request.bytes()))
    return new Response(pathname)
  },
  websocket: { message: (socket, message) => void socket.send(message) },
})
const echo = Bun.listen({
  port: 0,
  hostname: host,
  socket: { data: (socket, bytes) => void socket.write(bytes) },
})
await using server = new TunnelServer({ port: 0, host, tcpPorts: '20000-29999' })
await server.start()
await using client = new TunnelClient({ server: server.url, port: app.port, host, subdomain: 'app' })
await client.connect()
const { port: tcpPort } = await client.tcp({ port: echo.port, host })

const headers = { Host: 'app.localhost' }
const ask = (path: string, init: RequestInit = {}) => fetch(`${server.url}${path}`, { ...init, headers })

const answers: string[] = []
// Easy ones, one after the other: lanes would begin.
for (let request = 0; request < 200; request++) answers.push(await (await ask(`/${request}`)).text())
const download = hashOf(await (await ask('/bulk')).bytes())
const upload = await (await ask('/upload', { method: 'POST', body: bulk })).text()

const socket = new WebSocket(`${server.url.replace('http', 'ws')}/`, { headers })
const message = Promise.withResolvers<string>()
socket.onopen = () => socket.send('hello')
socket.onmessage = ({ data }) => message.resolve(String(data))
socket.onerror = () => message.reject(new Error('no WebSocket'))
const webSocket = await message.promise
socket.close()

let echoed = 0
const pieces = Promise.withResolvers<void>()
const raw = await Bun.connect({
  hostname: host,
  port: tcpPort ?? 0,
  socket: {
    open(one: Bun.Socket) {
      one.write('piece')
    },
    data(one: Bun.Socket, bytes: Uint8Array) {
      echoed += bytes.length
      if (echoed >= 2_000) pieces.resolve()
      else one.write('piece')
    },
  },
})
await pieces.promise
raw.end()

console.log(
  JSON.stringify({
    easy: answers.every((answer, index) => answer === `/${index}`),
    download: download === hashOf(bulk),
    upload: upload === hashOf(bulk),
    webSocket,
    echoed: echoed >= 2_000,
    links: boundStreams > 0,
  }),
)
await client.close()
await server.stop()
await app.stop(true)
echo.stop(true)
process.exit(0)
