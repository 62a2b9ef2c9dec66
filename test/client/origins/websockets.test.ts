// WebSockets of an app that is a function: what visitors made of other code see, and what the app does.

import { expect, test } from 'bun:test'
import { once } from 'node:events'
import { connect } from 'node:net'
import WebSocket from 'ws'
import {
  type AppWebSocket,
  type FetchHandler,
  type TunnelError,
  upgradeWebSocket,
  type WebSocketHandlers,
} from '../../../src/index.ts'
import { next } from '../../support/events.ts'
import { startTunnel } from '../../support/tunnel.ts'
import { within } from '../../support/within.ts'

const start = (fetch: FetchHandler, websocket?: WebSocketHandlers) =>
  startTunnel({ fetch, ...(websocket && { websocket }) } as never)

function visit(port: number, path = '/', protocols: string[] = []): WebSocket {
  return new WebSocket(`ws://127.0.0.1:${port}${path}`, protocols, { headers: { Host: 'app.localhost' } })
}

async function message(socket: WebSocket): Promise<string | Buffer> {
  const [data, isBinary] = (await within(once(socket, 'message'), 'a message')) as [Buffer, boolean]
  return isBinary ? data : data.toString()
}

async function closed(socket: WebSocket): Promise<[number, string]> {
  const [code, reason] = (await within(once(socket, 'close'), 'the close')) as [number, Buffer]
  return [code, reason.toString()]
}

test('the shape of Bun: upgrade, data, headers, text and bytes both ways, close', async () => {
  const seen: unknown[] = []
  const ended = Promise.withResolvers<void>()
  await using live = await start(
    (request, server) => {
      const { pathname } = new URL(request.url)
      const headers = { 'Sec-WebSocket-Protocol': 'chat', 'Set-Cookie': 'a=1' }
      if (server.upgrade(request, { data: pathname, headers })) return undefined
      return new Response('no WebSocket')
    },
    {
      open: socket => void socket.send(`hello ${String(socket.data)}`),
      message: (socket, got) => void socket.send(typeof got === 'string' ? `${got}!` : got.toReversed()),
      close: (socket, code, reason) => {
        seen.push(socket.data, code, reason)
        ended.resolve()
      },
    },
  )
  const socket = visit(live.port, '/room', ['chat'])
  const [answer] = (await once(socket, 'upgrade')) as [{ headers: Record<string, unknown> }]
  expect(answer.headers['set-cookie']).toEqual(['a=1'])
  expect(await message(socket)).toBe('hello /room')
  expect(socket.protocol).toBe('chat')
  socket.send('héllo')
  expect(await message(socket)).toBe('héllo!')
  socket.send(Buffer.from([1, 2, 3]))
  expect(await message(socket)).toEqual(Buffer.from([3, 2, 1]))
  const large = Buffer.alloc(3_000_000, 7)
  socket.send(large)
  expect(large.equals((await message(socket)) as Buffer)).toBe(true)
  socket.send('')
  expect(await message(socket)).toBe('!')
  socket.send(new Uint8Array(0))
  expect(await message(socket)).toEqual(Buffer.alloc(0))
  socket.close(4_001, 'enough')
  expect(await closed(socket)).toEqual([4_001, 'enough'])
  await ended.promise
  expect(seen).toEqual(['/room', 4_001, 'enough'])
  const plain = await fetch(`http://127.0.0.1:${live.port}/`, { headers: { host: 'app.localhost' } })
  expect(await plain.text()).toBe('no WebSocket')
})

test('the shape of the web: a socket with events, and a response', async () => {
  const events: string[] = []
  await using live = await start(request => {
    const { socket, response } = upgradeWebSocket(request, { protocol: 'b' })
    expect(() => upgradeWebSocket(request)).toThrow('already')
    socket.onopen = () => events.push('open')
    socket.addEventListener('message', event => {
      const { data } = event as MessageEvent
      socket.send(data instanceof ArrayBuffer ? data : `${data}, too`)
    })
    socket.onclose = ({ code }) => events.push(`close ${code}`)
    return response
  })
  const gone = next(live.client, 'response')
  const socket = visit(live.port, '/', ['a', 'b'])
  await once(socket, 'open')
  socket.send('me')
  expect(await message(socket)).toBe('me, too')
  socket.send(Buffer.from('bytes'))
  expect(await message(socket)).toEqual(Buffer.from('bytes'))
  expect(socket.protocol).toBe('b')
  socket.close()
  expect(await closed(socket)).toEqual([1_005, ''])
  expect((await gone).status).toBe(101)
  expect(events).toEqual(['open', 'close 1005'])
})

test('the app closes, with a code that apps may send, and a visitor that is cut off is 1006', async () => {
  const codes: number[] = []
  const sockets: AppWebSocket[] = []
  let ended = Promise.withResolvers<void>()
  await using live = await start(
    (request, server) => (server.upgrade(request) ? undefined : new Response()),
    {
      open: socket => void sockets.push(socket),
      message() {},
      close: (_socket, code) => {
        codes.push(code)
        ended.resolve()
      },
    },
  )
  const one = visit(live.port)
  await once(one, 'open')
  expect(() => sockets[0]!.close(1_006)).toThrow(RangeError)
  sockets[0]!.close(3_000, 'bye')
  expect(sockets[0]!.send('late')).toBe(0)
  expect(await closed(one)).toEqual([3_000, 'bye'])
  await ended.promise
  ended = Promise.withResolvers()
  const other = visit(live.port)
  await once(other, 'open')
  other.terminate()
  await within(ended.promise, 'the close at the app')
  expect(codes).toEqual([3_000, 1_006])
  expect(sockets.map(({ readyState }) => readyState)).toEqual([3, 3])
})

test('what a handler of a socket throws is an error event, and cuts this connection alone', async () => {
  await using live = await start(
    (request, server) => (server.upgrade(request) ? undefined : new Response()),
    {
      message: async (_socket, got) => {
        if (got === 'bad') throw new Error('boom')
      },
    },
  )
  const [one, other] = [visit(live.port), visit(live.port)]
  await Promise.all([once(one, 'open'), once(other, 'open')])
  one.send('bad')
  expect((await closed(one))[0]).toBe(1_006)
  expect(other.readyState).toBe(WebSocket.OPEN)
  other.close()
  await closed(other)
})

test('a visitor that does not read holds nobody up, and is cut when 16 MiB wait', async () => {
  const ended = Promise.withResolvers<number>()
  const opened = Promise.withResolvers<AppWebSocket>()
  await using live = await start(
    (request, server) => (server.upgrade(request) ? undefined : new Response()),
    {
      open: opened.resolve,
      message() {},
      close: (_socket, code) => ended.resolve(code),
    },
  )
  const visitor = connect(live.port, '127.0.0.1')
  visitor.on('error', () => {})
  visitor.write(
    'GET / HTTP/1.1\r\nHost: app.localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n',
  )
  const socket = await within(opened.promise, 'the socket')
  visitor.pause()
  const results = new Set<number>()
  const piece = new Uint8Array(65_536)
  for (let count = 0; count < 4_000 && socket.readyState === 1; count++) {
    results.add(socket.send(piece))
    await new Promise(setImmediate)
  }
  expect(await within(ended.promise, 'the cut')).toBe(1_006)
  expect(results).toEqual(new Set([65_536, -1, 0]))
  visitor.destroy()
})

test('requests that ask for no WebSocket, or wrongly, are not upgraded', async () => {
  const upgraded: boolean[] = []
  await using live = await start(
    (request, server) => {
      upgraded.push(server.upgrade(request))
      expect(() => upgradeWebSocket(request)).toThrow(TypeError)
      return new Response('plain')
    },
    { message() {} },
  )
  const visitor = connect(live.port, '127.0.0.1')
  visitor.write(
    'GET / HTTP/1.1\r\nHost: app.localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 8\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n',
  )
  const [bytes] = (await within(once(visitor, 'data'), 'an answer')) as [Buffer]
  expect(bytes.toString()).toStartWith('HTTP/1.1 200 ')
  visitor.destroy()
  await fetch(`http://127.0.0.1:${live.port}/`, { headers: { host: 'app.localhost' } })
  expect(upgraded).toEqual([false, false])
})

test('a handler that answers nothing is an error; websocket without fetch, and upgrade without websocket, are faults', async () => {
  const failed: unknown[] = []
  await using live = await start((request, server) => {
    if (request.headers.has('upgrade')) server.upgrade(request)
    return undefined
  })
  live.client.on('error', error => failed.push((error as TunnelError).code, error.message))
  const answer = await fetch(`http://127.0.0.1:${live.port}/`, { headers: { host: 'app.localhost' } })
  expect(answer.status).toBe(500)
  await once(
    visit(live.port).on('error', () => {}),
    'unexpected-response',
  )
  expect(failed[0]).toBe('HANDLER_FAILED')
  expect(failed[1]).toContain('answered nothing')
  expect(failed[3]).toContain('needs the option websocket')
  const refused = await startTunnel({ port: 1, websocket: { message() {} } }).catch(String)
  expect(refused).toContain('websocket belongs to fetch')
})
