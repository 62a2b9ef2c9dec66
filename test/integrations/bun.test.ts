// A server of Bun with a public URL: pages, WebSockets, a unix socket, and `bun --hot`'s second call.

import { expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { share } from '../../src/integrations/bun.ts'
import { ask } from '../support/ask.ts'
import { codeOf } from '../support/events.ts'
import { freePort } from '../support/ports.ts'
import { startServer } from '../support/tunnel.ts'

test('pages and WebSockets of Bun.serve at a public URL; close gives the name back', async () => {
  await using server = await startServer()
  using app = Bun.serve({
    port: 0,
    fetch: (request, own) => (own.upgrade(request) ? undefined : new Response('page')),
    websocket: { message: (socket, text) => void socket.send(`echo ${String(text)}`) },
  })
  const shared = await share(app, { server: server.url, subdomain: 'shop' })
  expect(shared.url).toBe(`http://shop.localhost:${server.port}`)
  expect(await ask(server.port, 'shop.localhost')).toMatchObject({ status: 200, body: 'page' })

  const socket = new WebSocket(`ws://127.0.0.1:${server.port}`, { headers: { host: 'shop.localhost' } })
  const message = new Promise(resolve => socket.addEventListener('message', ({ data }) => resolve(data)))
  socket.addEventListener('open', () => socket.send('hats'))
  expect(await message).toBe('echo hats')
  socket.close()

  await shared.close()
  expect(await ask(server.port, 'shop.localhost')).toMatchObject({ code: 'TUNNEL_NOT_FOUND' })
})

test('the same server again keeps its tunnel, another server has its own', async () => {
  await using server = await startServer()
  using one = Bun.serve({ port: 0, hostname: '0.0.0.0', fetch: () => new Response('one') })
  using two = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: () => new Response('two') })
  await using first = await share(one, { server: server.url })
  await using again = await share(one, { server: server.url })
  await using other = await share(two, { server: server.url })
  expect(again.url).toBe(first.url)
  expect(other.url).not.toBe(first.url)
  expect(await ask(server.port, new URL(first.url).hostname)).toMatchObject({ body: 'one' })
  expect(await ask(server.port, new URL(other.url).hostname)).toMatchObject({ body: 'two' })
})

test('a unix socket; a server that is not there is an error with its code', async () => {
  await using server = await startServer()
  const folder = mkdtempSync(join(tmpdir(), 'lt-bun-'))
  try {
    using app = Bun.serve({ unix: join(folder, 'app.sock'), fetch: () => new Response('by path') })
    await using shared = await share(app, { server: server.url })
    expect(await ask(server.port, new URL(shared.url).hostname)).toMatchObject({ body: 'by path' })
    expect(await codeOf(share(app, { server: `http://127.0.0.1:${freePort()}` }))).toBe('SERVER_UNREACHABLE')
  } finally {
    rmSync(folder, { recursive: true })
  }
})
