// The honest app: HTTP with bodies known at every place, a TCP echo, a UDP echo. `app-process.ts` prints its ports.

import { body } from './pattern.ts'

/** One answer is at most this large; `/endless` has no end. */
const CHUNK_BYTES = 65_536

const http = Bun.serve({
  hostname: '127.0.0.1',
  port: 0,
  idleTimeout: 0,
  maxRequestBodySize: Number.MAX_SAFE_INTEGER,
  async fetch(request) {
    const url = new URL(request.url)
    const id = Number(url.searchParams.get('id') ?? 0)
    const headers = { 'X-Id': `${id}` }
    if (url.pathname === '/echo') return new Response(await request.bytes(), { headers })
    if (url.pathname === '/swallow') {
      for await (const _ of request.body ?? []) {
        // Read at the pace of the visitor, and forgotten.
      }
      return new Response('read', { headers })
    }
    if (url.pathname === '/slow') {
      await Bun.sleep(Number(url.searchParams.get('ms') ?? 20))
      return new Response(body(id, 200), { headers })
    }
    const bytes = Number(url.pathname.slice('/bytes/'.length))
    if (bytes <= CHUNK_BYTES * 32) return new Response(body(id, bytes), { headers })
    return new Response(pieces(id, bytes), { headers: { ...headers, 'Content-Length': `${bytes}` } })
  },
})

function pieces(id: number, bytes: number): ReadableStream<Uint8Array> {
  let at = 0
  return new ReadableStream({
    pull(controller) {
      const piece = body(id, Math.min(CHUNK_BYTES, bytes - at), at)
      at += piece.length
      controller.enqueue(piece)
      if (at === bytes) controller.close()
    },
  })
}

const tcp = Bun.listen<{ unsent: Buffer[] }>({
  hostname: '127.0.0.1',
  port: 0,
  socket: {
    open(socket) {
      socket.data = { unsent: [] }
    },
    data(socket, bytes) {
      socket.data.unsent.push(Buffer.from(bytes))
      send(socket)
    },
    drain: send,
    close() {},
    error() {},
  },
})

function send(socket: Bun.Socket<{ unsent: Buffer[] }>): void {
  const { unsent } = socket.data
  for (let first = unsent[0]; first !== undefined; first = unsent[0]) {
    const taken = Math.max(0, socket.write(first))
    if (taken < first.length) {
      unsent[0] = first.subarray(taken)
      return
    }
    unsent.shift()
  }
}

const udp = await Bun.udpSocket({
  hostname: '127.0.0.1',
  port: 0,
  socket: {
    data(socket, bytes, port, address) {
      try {
        socket.send(bytes, port, address)
      } catch {
        // Bun throws what an earlier answer met: a flow that had ended. An app goes on.
      }
    },
    error() {},
  },
})

console.log(`ready ${http.port} ${tcp.port} ${udp.port}`)
