// Whether the app is there: found out without harm to it.

import { afterAll, expect, test } from 'bun:test'
import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { parseTarget } from '../../src/cli/settings/target.ts'
import { accepts, OriginWatch } from '../../src/cli/sharing/origin-watch.ts'
import { testWith } from '../support/needs.ts'
import { freePort } from '../support/ports.ts'
import { folder } from '../support/programs.ts'
import { startServer } from '../support/tunnel.ts'
import { start } from './bin.ts'

const closing: (() => unknown)[] = []
afterAll(() => {
  for (const close of closing) close()
})

/** Where the kernel's tables do not name it as a listener of this machine's loopback: the check has to connect. */
async function elsewhere(accept: (socket: Socket) => void): Promise<number> {
  const listener = createServer({ allowHalfOpen: true }, accept)
  listener.listen(0, '127.0.0.2')
  await once(listener, 'listening')
  closing.push(() => listener.close())
  return (listener.address() as AddressInfo).port // it listens on a port
}

test('a connection of the check ends by FIN, also at an app that speaks first', async () => {
  const seen: string[] = []
  const { promise, resolve } = Promise.withResolvers<void>()
  const port = await elsewhere(socket => {
    socket.on('error', error => seen.push(error.message)).on('end', () => seen.push('FIN'))
    socket.on('close', () => resolve())
    // Reading would be polite.
    socket.end('hello\n'.repeat(20_000))
    socket.resume()
  })
  expect(await accepts({ host: '127.0.0.2', port })).toBe(true)
  await promise
  expect(seen).toEqual(['FIN'])
})

test('an app that never ends its side is left after a moment, too', async () => {
  const { promise, resolve } = Promise.withResolvers<void>()
  const port = await elsewhere(socket => {
    socket.on('error', () => {}).on('close', () => resolve())
    socket.resume()
  })
  expect(await accepts({ host: '127.0.0.2', port })).toBe(true)
  await promise
})

test.each(['127.0.0.1', '::1', '0.0.0.0', '::'])(
  'a listener on %s is seen without a connection',
  async address => {
    let connections = 0
    const listener = createServer(() => connections++)
    listener.listen(0, address)
    await once(listener, 'listening')
    const { port } = listener.address() as AddressInfo // it listens on a port
    expect(await accepts({ host: 'localhost', port })).toBe(true)
    expect(await accepts({ host: address.includes(':') ? '::1' : '127.0.0.1', port })).toBe(true)
    listener.close()
    await once(listener, 'close')
    if (process.platform === 'linux') expect(connections).toBe(0)
    expect(await accepts({ host: 'localhost', port })).toBe(false)
  },
)

test.skipIf(process.platform !== 'linux')('so is one of many', async () => {
  let connections = 0
  const listeners = await Promise.all(
    Array.from({ length: 100 }, async () => {
      const listener = createServer(() => connections++)
      listener.listen(0, '127.0.0.1')
      await once(listener, 'listening')
      return listener
    }),
  )
  for (const listener of listeners) {
    const { port } = listener.address() as AddressInfo // it listens on a port
    expect(await accepts({ host: 'localhost', port })).toBe(true)
  }
  for (const listener of listeners) listener.close()
  expect(connections).toBe(0)
})

testWith(['nc'], 'an app for one connection serves the first visitor', async () => {
  await using own = await folder('one-shot')
  await Bun.write(`${own.path}/answer`, 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi')
  const port = freePort()
  const app = Bun.spawn(['nc', '-l', '-p', `${port}`, '-s', '127.0.0.1', '-q', '1'], {
    stdin: Bun.file(`${own.path}/answer`),
    stdout: 'ignore',
    stderr: 'ignore',
  })
  await using server = await startServer()
  await using run = start([`${port}`, '--server', `http://127.0.0.1:${server.port}`, '--subdomain', 'one'])
  await run.printed(/one\.localhost/)
  const answer = await fetch(`http://127.0.0.1:${server.port}/`, { headers: { host: 'one.localhost' } })
  expect(await answer.text()).toBe('hi')
  app.kill()
  await app.exited
})

test.skipIf(process.platform !== 'linux')(
  'an app that dies and comes back between requests is noticed, without a connection',
  async () => {
    const seen: boolean[] = []
    let changed = Promise.withResolvers<void>()
    let connections = 0
    const listener = createServer(() => connections++)
    listener.listen(0, '127.0.0.1')
    await once(listener, 'listening')
    const { port } = listener.address() as AddressInfo // it listens on a port
    const watch = new OriginWatch(
      parseTarget({ positional: `${port}`, port: undefined, host: undefined }),
      isUp => {
        seen.push(isUp)
        changed.resolve()
      },
    )
    await watch.check()
    changed = Promise.withResolvers()
    listener.close()
    await changed.promise
    changed = Promise.withResolvers()
    listener.listen(port, '127.0.0.1')
    await changed.promise
    expect(seen).toEqual([true, false, true])
    expect(connections).toBe(0)
    watch.stop()
    listener.close()
  },
)
