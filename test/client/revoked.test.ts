// A tunnel that the server takes back: nothing of it goes on at the client.

import { expect, test } from 'bun:test'
import { TunnelClient } from '../../src/index.ts'
import { eventually, next } from '../support/events.ts'
import { startServer } from '../support/tunnel.ts'

/** An app that counts the checks of its health. */
function app() {
  const seen = { checks: 0 }
  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    fetch() {
      seen.checks++
      return new Response('well')
    },
  })
  return { seen, port: server.port ?? 0, [Symbol.dispose]: () => void server.stop(true) }
}

test('the health of its app is asked no more, and that of the others still is', async () => {
  using gone = app()
  using staying = app()
  const server = await startServer()
  await using client = new TunnelClient({ server: `http://127.0.0.1:${server.port}` })
  const health = { kind: 'http', path: '/', intervalMs: 10 } as const
  await client.http({ subdomain: 'gone', port: gone.port, host: '127.0.0.1', health })
  await client.http({ subdomain: 'staying', port: staying.port, host: '127.0.0.1', health })
  await eventually(() => gone.seen.checks > 0, 'the first check')
  const told = next(client, 'error')
  await server.reload({ port: 0, host: '127.0.0.1', reservedNames: ['gone'] })
  expect(await told).toMatchObject({ code: 'NAME_RESERVED' })
  // One may have been on its way.
  const most = gone.seen.checks + 1
  const before = staying.seen.checks
  await eventually(() => staying.seen.checks > before + 10, 'ten more checks of the other')
  expect(gone.seen.checks).toBeLessThanOrEqual(most)
  await client.disconnect()
  await server.stop()
})
