// TCP tunnels on real sockets: bytes both ways, half-close, reset told from end, ports given and given back.

import { expect, test } from 'bun:test'
import { connect, createServer, type Socket } from 'node:net'
import { TunnelClient } from '../../src/index.ts'
import { startServer } from '../support/tunnel.ts'

interface App extends AsyncDisposable {
  readonly port: number
}

async function app(onConnection: (socket: Socket) => void): Promise<App> {
  const server = createServer({ allowHalfOpen: true }, socket => {
    socket.on('error', () => {})
    onConnection(socket)
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('no port')
  return {
    port: address.port,
    async [Symbol.asyncDispose]() {
      server.close()
    },
  }
}

/** What a visitor reads until the end; rejects when it is reset. */
function readAll(socket: Socket): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = ''
    socket.on('data', piece => {
      text += piece.toString('latin1')
    })
    socket.on('end', () => resolve(text))
    socket.on('error', reject)
  })
}

/** With what code a promise rejects. */
const codeOf = (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    () => 'nothing',
    (error: unknown) => (error instanceof Error && 'code' in error ? error.code : error),
  )

const dialled = (port: number): Socket => connect({ port, host: '127.0.0.1', allowHalfOpen: true })

async function client(serverPort: number): Promise<TunnelClient> {
  return new TunnelClient({ server: `http://127.0.0.1:${serverPort}` })
}

test('bytes go both ways, whoever speaks first, and each side ends on its own', async () => {
  await using echo = await app(socket => {
    socket.write('hello ')
    let text = ''
    socket.on('data', piece => {
      text += piece.toString()
    })
    socket.on('end', () => socket.end(text.toUpperCase()))
  })
  const server = await startServer()
  await using tunnels = await client(server.port)
  const tunnel = await tunnels.tcp({ port: echo.port, host: '127.0.0.1' })
  expect(tunnel.url).toBe(`tcp://localhost:${tunnel.port}`)
  const visitor = dialled(tunnel.port ?? 0)
  const all = readAll(visitor)
  visitor.end('and goodbye')
  expect(await all).toBe('hello AND GOODBYE')
  await tunnels.disconnect()
  await server.stop()
})

test('a reset of either side is a reset on the other', async () => {
  let appSide: Socket | undefined
  let broken: (() => void) | undefined
  const wasReset = new Promise<void>(resolve => {
    broken = resolve
  })
  await using origin = await app(socket => {
    appSide = socket
    socket.on('error', error => {
      if ('code' in error && error.code === 'ECONNRESET') broken?.()
    })
    socket.write('x')
  })
  const server = await startServer()
  await using tunnels = await client(server.port)
  const { port = 0 } = await tunnels.tcp({ port: origin.port, host: '127.0.0.1' })
  const first = dialled(port)
  await new Promise(resolve => first.once('data', resolve))
  first.resetAndDestroy()
  await wasReset
  const second = dialled(port)
  const all = readAll(second)
  all.catch(() => {})
  await new Promise(resolve => second.once('data', resolve))
  appSide?.resetAndDestroy()
  expect(await codeOf(all)).toBe('ECONNRESET')
  await tunnels.disconnect()
  await server.stop()
})

test('several tunnels share one connection; one that is closed leaves the others alone', async () => {
  await using one = await app(socket => socket.end('one'))
  await using two = await app(socket => socket.end('two'))
  const server = await startServer()
  await using tunnels = await client(server.port)
  const [first, second, web] = await Promise.all([
    tunnels.tcp({ port: one.port, host: '127.0.0.1' }),
    tunnels.tcp({ port: two.port, host: '127.0.0.1' }),
    tunnels.http({ subdomain: 'web', fetch: () => new Response('web') }),
  ])
  expect(server.getStats().connections).toBe(1)
  expect(await readAll(dialled(first.port ?? 0))).toBe('one')
  await first.close()
  // The server works off what it is told in turn: this answer says that the release was seen.
  const again = await tunnels.tcp({
    port: one.port,
    host: '127.0.0.1',
    ...(first.port && { remotePort: first.port }),
  })
  expect(again.port).toBe(first.port)
  expect(await readAll(dialled(second.port ?? 0))).toBe('two')
  const answer = await fetch(`http://127.0.0.1:${server.port}/`, { headers: { host: 'web.localhost' } })
  expect(await answer.text()).toBe('web')
  expect(web.url).toContain('//web.localhost')
  await tunnels.disconnect()
  expect(await codeOf(readAll(dialled(second.port ?? 0)))).toBe('ECONNREFUSED')
  await server.stop()
})

test('ports: outside, taken, exhausted, none at all', async () => {
  await using origin = await app(socket => socket.end())
  const occupied = createServer()
  await new Promise<void>(resolve => occupied.listen(0, '0.0.0.0', resolve))
  const address = occupied.address()
  const taken = address === null || typeof address === 'string' ? 0 : address.port
  const server = await startServer({ tcpPorts: `${taken}` })
  await using tunnels = await client(server.port)
  const ask = (remotePort?: number) =>
    tunnels.tcp({ port: origin.port, host: '127.0.0.1', ...(remotePort !== undefined && { remotePort }) })
  expect(await codeOf(ask(1))).toBe('NOT_ALLOWED')
  expect(await codeOf(ask(taken))).toBe('PORT_TAKEN')
  expect(await codeOf(ask())).toBe('CLIENT_LIMIT')
  occupied.close()
  await server.stop()
  const closed = await startServer({ tcpPorts: '' })
  await using other = await client(closed.port)
  expect(await codeOf(other.tcp({ port: 1 }))).toBe('KIND_REFUSED')
  await closed.stop()
})
