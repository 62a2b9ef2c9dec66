// The app of the suites that run in one process: fixed sizes, an echo, JSON, a webhook, delays, headers.

import { FILE_SIZES, fileBytes } from './origin.ts'

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

export function startApp(): App {
  const files: ReadonlyMap<string, Uint8Array<ArrayBuffer>> = new Map(
    SMALL_FILES.map(name => [`/${name}`, fileBytes(FILE_SIZES[name]!)] as const),
  )
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    idleTimeout: 0,
    async fetch(request) {
      const path = request.url.slice(request.url.indexOf('/', 8))
      const file = files.get(path)
      if (file) return new Response(file)
      switch (path) {
        case '/':
          return new Response('OK')
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
          await Bun.sleep(10)
          return new Response('OK')
        case '/50ms':
          await Bun.sleep(50)
          return new Response('OK')
        default:
          return new Response('no such page', { status: 404 })
      }
    },
  })
  return { port: server.port!, stop: () => server.stop(true) }
}
