// The real bin sharing a service with a certificate of its own, by name.

import { afterEach, expect, test } from 'bun:test'
import { once } from 'node:events'
import { createServer, connect as secure } from 'node:tls'
import { TEST_CERT, TEST_KEY } from '../support/tls.ts'
import { within } from '../support/within.ts'
import { finish, start } from './bin.ts'

const opened: AsyncDisposable[] = []
afterEach(async () => {
  await Promise.all(opened.splice(0).map(one => one[Symbol.asyncDispose]()))
})

function open<T extends AsyncDisposable>(one: T): T {
  opened.push(one)
  return one
}

/** A TLS service that says which name it was asked for. */
async function service(): Promise<number> {
  const server = createServer({ cert: TEST_CERT, key: TEST_KEY }, socket => {
    socket.on('error', () => {})
    socket.end(`<${socket.servername}>`)
  })
  server.on('tlsClientError', () => {}) // the program looks whether anybody listens, and says nothing
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  open({
    async [Symbol.asyncDispose]() {
      server.close()
    },
  })
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('no port')
  return address.port
}

async function visit(port: number, servername: string): Promise<string> {
  const visitor = secure({ host: '127.0.0.1', port, servername, rejectUnauthorized: false })
  const [said] = await within(once(visitor, 'data'), 'what the service says')
  visitor.destroy()
  return String(said)
}

test('here: stdout is the address alone', async () => {
  const run = open(start(['tls', `127.0.0.1:${await service()}`, '--subdomain', 'Shop', '--wildcard']))
  const port = Number(await run.printed(/^tls:\/\/shop\.localhost:(\d+)\n/m))
  expect(await visit(port, 'shop.localhost')).toBe('<shop.localhost>')
  expect(await visit(port, 'a.shop.localhost')).toBe('<a.shop.localhost>')
  run.kill('SIGTERM')
  expect(await run.exited).toBe(0)
  expect(run.stdout).toBe(`tls://shop.localhost:${port}\n`)
})

test('through a server with --tls-port; one without refuses', async () => {
  const args = ['server', '--host', '127.0.0.1', '--port', '0']
  const listening = open(start([...args, '--tls-port', '0']))
  const url = await listening.printed(/(http:\/\/localhost:\d+)/)
  const run = open(start(['tls', `127.0.0.1:${await service()}`, '--server', url]))
  const [name, port] = (await run.printed(/^tls:\/\/([a-z0-9-]+\.localhost:\d+)\n/m)).split(':')
  expect(await visit(Number(port), name ?? '')).toBe(`<${name}>`)
  const without = open(start(args))
  const closed = await without.printed(/(http:\/\/localhost:\d+)/)
  const { exitCode, stderr } = await finish(['tls', '8443', '--server', closed])
  expect(stderr).toContain('KIND_REFUSED')
  expect(exitCode).toBe(4)
})

test('a name that cannot be one', async () => {
  const { exitCode, stderr } = await finish(['tls', '8443', '--subdomain', 'a.b'])
  expect(stderr).toContain('NAME_INVALID')
  expect(exitCode).toBe(2)
})
