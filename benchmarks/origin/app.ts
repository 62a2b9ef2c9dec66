// The app on Bun: fixed sizes, an answer in pieces, an echo by POST and WebSocket, JSON, a webhook, delays, headers.

import { FILE_SIZES, fileBytes, PIECES, Upload } from './files.ts'

export interface App {
  readonly port: number
  stop(): Promise<void>
}

/** The JSON API's answer: a list of ten. */
export const ITEMS: readonly object[] = Array.from({ length: 10 }, (_, i) => ({
  id: i,
  name: `Item ${i}`,
  price: i * 9.99,
  tags: ['a', 'b'],
}))
const MANY_HEADERS = Object.fromEntries(
  Array.from({ length: 20 }, (_, i) => [`x-custom-${i}`, `value number ${i}`]),
)
const SMALL_FILES = ['20', '1k', '10k', '64k', '100k', '512k', '1m']

export function startApp(tls?: { readonly cert: string; readonly key: string }): App {
  const files: ReadonlyMap<string, Uint8Array<ArrayBuffer>> = new Map(
    SMALL_FILES.map(name => [`/${name}`, fileBytes(FILE_SIZES[name]!)] as const),
  )
  const server = Bun.serve({
    hostname: process.env.BENCH_LISTEN ?? '127.0.0.1',
    port: 0,
    idleTimeout: 0,
    ...(tls && { tls: { cert: tls.cert, key: tls.key } }),
    websocket: { message: (socket, message) => void socket.send(message), perMessageDeflate: false },
    async fetch(request, server) {
      const path = request.url.slice(request.url.indexOf('/', 8))
      if (path === '/ws')
        return server.upgrade(request) ? undefined : new Response('no WebSocket', { status: 400 })
      const response = await answered(request, path, files.get(path))
      response.headers.set('X-Answer', `${request.method} ${path}`)
      return response
    },
  })
  return { port: server.port!, stop: () => server.stop(true) }
}

async function answered(
  request: Request,
  path: string,
  file: Uint8Array<ArrayBuffer> | undefined,
): Promise<Response> {
  if (file) return new Response(file)
  switch (path) {
    case '/': {
      if (request.method !== 'POST') return new Response('OK')
      const upload = new Upload()
      upload.take(await request.bytes())
      return new Response(upload.verdict)
    }
    case '/chunked':
      return new Response(inPieces(fileBytes(1024)))
    case '/json':
      return Response.json(ITEMS)
    case '/headers':
      return new Response('OK', { headers: MANY_HEADERS })
    case '/echo':
      return new Response(await request.bytes())
    case '/webhook':
      return Response.json({ received: true, type: ((await request.json()) as { type: string }).type })
    case '/account':
      return request.headers.get('authorization') === 'Bearer bench-token'
        ? Response.json({ user: 1 })
        : new Response('who?', { status: 401 })
    case '/10ms':
    case '/50ms':
      await Bun.sleep(Number.parseInt(path.slice(1), 10))
      return new Response('OK')
    default:
      return new Response('no such page', { status: 404 })
  }
}

function inPieces(bytes: Uint8Array<ArrayBuffer>): ReadableStream<Uint8Array> {
  const size = bytes.length / PIECES
  let at = 0
  return new ReadableStream({
    pull(controller) {
      controller.enqueue(bytes.subarray(at, at + size))
      at += size
      if (at >= bytes.length) controller.close()
    },
  })
}
