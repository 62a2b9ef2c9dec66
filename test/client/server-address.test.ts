// The address of a server as it is written, and whether a token may go there.

import { describe, expect, test } from 'bun:test'
import { createServer } from 'node:net'
import { parseServer, serverOrigin } from '../../src/client/carriers/server-address.ts'
import type { TunnelError } from '../../src/errors.ts'
import { TunnelClient } from '../../src/tunnel-client.ts'

test.each([
  ['tunnel.example', 'https://tunnel.example'],
  ['tunnel.example:8443', 'https://tunnel.example:8443'],
  ['tunnel.example:443', 'https://tunnel.example'],
  ['tunnel.example:80', 'https://tunnel.example:80'],
  ['Tunnel.Example', 'https://tunnel.example'],
  ['192.0.2.1', 'https://192.0.2.1'],
  ['128.0.0.1', 'https://128.0.0.1'],
  ['[2001:db8::1]:8080', 'https://[2001:db8::1]:8080'],
  ['localhost.example', 'https://localhost.example'],
  ['notlocalhost', 'https://notlocalhost'],
  ['127.0.0.1.example', 'https://127.0.0.1.example'],
  ['localhost', 'http://localhost'],
  ['localhost:443', 'http://localhost:443'],
  ['LOCALHOST:8080', 'http://localhost:8080'],
  ['a.b.localhost:8080', 'http://a.b.localhost:8080'],
  ['127.0.0.1:8080', 'http://127.0.0.1:8080'],
  ['127.1', 'http://127.0.0.1'],
  ['127.255.0.9', 'http://127.255.0.9'],
  ['[::1]:8080', 'http://[::1]:8080'],
  ['ws://tunnel.example', 'http://tunnel.example'],
  ['http://tunnel.example:80', 'http://tunnel.example'],
  ['wss://tunnel.example:443', 'https://tunnel.example'],
  ['https://tunnel.example/', 'https://tunnel.example'],
  ['localhost:8080/', 'http://localhost:8080'],
  ['https://127.0.0.1', 'https://127.0.0.1'],
  ['http://tunnel.example/foo', 'http://tunnel.example/foo'],
  ['site.example/tunnel/', 'https://site.example/tunnel'],
  ['localhost:8080/a/../b//', 'http://localhost:8080/b'],
  ['wss://site.example/my tunnel', 'https://site.example/my%20tunnel'],
])('%s is %s', (server, origin) => {
  expect(serverOrigin(server)).toBe(origin)
  expect(parseServer(server).isSecure).toBe(origin.startsWith('https:'))
})

test.each([
  ['https://tunnel.example/foo?a=b', 'a query', 'https://tunnel.example/foo'],
  ['wss://tunnel.example/?a=b', 'a query', 'https://tunnel.example'],
  ['https://tunnel.example#top', 'a fragment', 'https://tunnel.example'],
  ['https://user:password@tunnel.example', 'a login', 'https://tunnel.example'],
])(
  '%s has %s, which a server has not: it is refused, and the message says what to use',
  (server, part, use) => {
    const error = codeAndMessage(() => parseServer(server))
    expect(error).toEqual([
      'OPTION_INVALID',
      `The address of the server has ${part}, and none is used: give ${use}.`,
    ])
  },
)

function codeAndMessage(task: () => unknown): unknown {
  try {
    return task()
  } catch (error) {
    return [(error as TunnelError).code, (error as TunnelError).message] // what parseServer throws
  }
}

test.each(['', 'a b', 'ftp://tunnel.example', '::1', 'http://'])(
  '%j is not the address of a server',
  text => {
    expect(() => parseServer(text)).toThrow(
      'is not the address of a server, such as tunnel.example or http://localhost:8080.',
    )
  },
)

describe('a token goes to another machine over TLS only', () => {
  function codeOf(make: () => unknown): string | undefined {
    try {
      make()
      return undefined
    } catch (error) {
      return (error as TunnelError).code // nothing else is thrown, or the test fails
    }
  }
  const REFUSED = 'TOKEN_UNENCRYPTED'

  test.each([
    ['http://tunnel.example', {}, REFUSED],
    ['ws://192.0.2.1:8080', {}, REFUSED],
    ['http://[2001:db8::1]', {}, REFUSED],
    ['http://tunnel.example', { insecureToken: true }, undefined],
    ['tunnel.example', {}, undefined],
    ['wss://tunnel.example', {}, undefined],
    ['http://127.0.0.1:8080', {}, undefined],
    ['http://shop.localhost', {}, undefined],
    // It would go to the proxy, and from there to what the proxy takes for 127.0.0.1.
    ['http://127.0.0.1:8080', { proxy: 'http://proxy.example:3128' }, REFUSED],
    ['https://tunnel.example', { proxy: 'http://proxy.example:3128' }, undefined],
  ] as const)('%s with %j: %s', (server, more, code) => {
    expect(codeOf(() => new TunnelClient({ server, port: 3000, token: 'secret', ...more }))).toBe(code)
    expect(codeOf(() => new TunnelClient({ server, port: 3000, token: '', ...more }))).toBeUndefined()
  })

  test('also one for a single tunnel, before anything is dialled', async () => {
    let connections = 0
    const listener = createServer(socket => {
      connections++
      socket.destroy()
    })
    await new Promise<void>(done => listener.listen(0, '127.0.0.1', done))
    const { port } = listener.address() as { port: number } // of a TCP server
    try {
      const proxy = `http://127.0.0.1:${port}`
      const client = new TunnelClient({ server: 'http://tunnel.example', proxy, reconnect: false })
      const outcomes = [
        client.http({ port: 3000, token: 'secret' }),
        client.tcp({ port: 3000, token: 'secret' }),
        client.tls({ port: 3000, token: 'secret' }),
        client.udp({ port: 3000, token: 'secret' }),
      ].map(opened => opened.catch((error: TunnelError) => error.code))
      expect(await Promise.all(outcomes)).toEqual([REFUSED, REFUSED, REFUSED, REFUSED])
      expect(connections).toBe(0)
      // Without a token the proxy is asked: it would have been seen.
      await client.http({ port: 3000 }).catch(() => {})
      expect(connections).toBe(1)
    } finally {
      listener.close()
    }
  })
})
