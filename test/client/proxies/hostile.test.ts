// What a proxy can do wrong, told with its code and without its password; nothing hangs, nothing stays open.

import { afterEach, describe, expect, test } from 'bun:test'
import { once } from 'node:events'
import { createServer, type Socket } from 'node:net'
import { parseProxy } from '../../../src/client/carriers/proxy.ts'
import { ConnectOpening } from '../../../src/client/proxies/dial.ts'
import { Socks5Opening } from '../../../src/client/proxies/socks5.ts'
import { TunnelClient } from '../../../src/index.ts'
import type { Opening } from '../../../src/socket.ts'
import { dial } from '../../../src/sockets/dial.ts'
import { codeOf, eventually } from '../../support/events.ts'
import { Random } from '../../support/random.ts'
import { Recorder } from '../../support/recorder.ts'
import { within } from '../../support/within.ts'

const open = new Set<Socket>()
const servers = new Set<{ close(): void }>()
afterEach(() => {
  for (const server of servers) server.close()
  for (const socket of open) socket.destroy()
})

/** Something that listens and does what `answer` says with each connection. */
async function listening(answer: (socket: Socket) => void): Promise<number> {
  const server = createServer({ allowHalfOpen: true, noDelay: true }, socket => {
    open.add(socket)
    socket.on('error', () => {}) // `close` follows
    socket.on('close', () => open.delete(socket))
    answer(socket)
  })
  servers.add(server)
  server.listen({ host: '127.0.0.1', port: 0 })
  await once(server, 'listening')
  const address = server.address()
  return typeof address === 'object' && address !== null ? address.port : 0
}

/** Says each of the lines after one more piece of the client arrived. */
const saying =
  (...lines: readonly (string | readonly number[])[]) =>
  (socket: Socket) => {
    let next = 0
    socket.on('data', () => {
      const line = lines[next++]
      if (line !== undefined) socket.write(typeof line === 'string' ? Buffer.from(line) : Buffer.from(line))
    })
  }

const failure = async (proxy: string, timeoutMs = 5_000) => {
  const client = new TunnelClient({
    server: 'ws://192.0.2.1:80',
    port: 1,
    proxy,
    connectTimeoutMs: timeoutMs,
  })
  const error: unknown = await within(
    client.connect().then(
      () => 'connected',
      (reason: unknown) => reason,
    ),
    'the refusal',
  )
  return error as Error & { readonly code: string } // of our own client: a TunnelError
}

interface Case {
  readonly name: string
  readonly scheme?: 'http' | 'socks5'
  readonly answer: (socket: Socket) => void
  readonly code: string
  readonly says: RegExp
}

const LOGIN = 'anna:hidden@'
const CASES: readonly Case[] = [
  {
    name: 'wants another password',
    answer: saying('HTTP/1.1 407 No\r\nProxy-Authenticate: Basic realm="x"\r\nContent-Length: 4\r\n\r\nnope'),
    code: 'PROXY_AUTH_REFUSED',
    says: /did not accept user and password/,
  },
  {
    name: 'wants another password, and says so as tinyproxy does',
    answer: saying('HTTP/1.1 401 Unauthorized\r\nServer: tinyproxy/1.11.1\r\n\r\n<html>'),
    code: 'PROXY_AUTH_REFUSED',
    says: /did not accept user and password/,
  },
  {
    name: 'wants a login of a kind that is not spoken',
    answer: saying('HTTP/1.1 407 No\r\nProxy-Authenticate: Negotiate\r\nProxy-Authenticate: NTLM\r\n\r\n'),
    code: 'PROXY_AUTH_REFUSED',
    says: /does not take Basic/,
  },
  {
    name: 'forbids the port',
    answer: saying('HTTP/1.1 403 Forbidden\r\n\r\n<html>'),
    code: 'PROXY_FAILED',
    says: /status 403.*443/,
  },
  {
    name: 'cannot reach the server',
    answer: saying('HTTP/1.1 503 Service Unavailable\r\n\r\n'),
    code: 'SERVER_UNREACHABLE',
    says: /cannot reach the tunnel server: it answered with status 503/,
  },
  {
    name: 'is no proxy',
    answer: saying('SSH-2.0-OpenSSH_9.2\r\n\r\n'),
    code: 'PROXY_FAILED',
    says: /is not an HTTP proxy/,
  },
  {
    name: 'speaks before it is asked',
    answer: socket => socket.write('220 mail.example ESMTP\r\n\r\n'),
    code: 'PROXY_FAILED',
    says: /is not an HTTP proxy/,
  },
  {
    name: 'sends a head without end',
    answer: socket => socket.on('data', () => socket.write(`HTTP/1.1 200 OK\r\nx: ${'y'.repeat(20_000)}`)),
    code: 'PROXY_FAILED',
    says: /more than 16384 bytes/,
  },
  {
    name: 'sends interim answers without end',
    answer: socket =>
      socket.once('data', () => socket.write('HTTP/1.1 103 Early Hints\r\n\r\n'.repeat(2_000))),
    code: 'PROXY_FAILED',
    says: /more than 16384 bytes/,
  },
  {
    name: 'closes in the middle of its answer',
    answer: socket => socket.once('data', () => socket.end('HTTP/1.1 200 Conn')),
    code: 'PROXY_FAILED',
    says: /broken: .*ECONNRESET/,
  },
  {
    name: 'resets',
    answer: socket => socket.once('data', () => socket.resetAndDestroy()),
    code: 'PROXY_FAILED',
    says: /broken: /,
  },
  {
    name: 'speaks HTTP where SOCKS5 is expected',
    scheme: 'socks5',
    answer: saying('HTTP/1.1 400 Bad Request\r\n\r\n'),
    code: 'PROXY_FAILED',
    says: /is not a SOCKS5 proxy/,
  },
  {
    name: 'picks a method that was not offered',
    scheme: 'socks5',
    answer: saying([5, 1]),
    code: 'PROXY_FAILED',
    says: /not offered/,
  },
  {
    name: 'takes none of the methods',
    scheme: 'socks5',
    answer: saying([5, 0xff]),
    code: 'PROXY_AUTH_REFUSED',
    says: /does not take user and password/,
  },
  {
    name: 'does not accept the password',
    scheme: 'socks5',
    answer: saying([5, 2], [1, 1]),
    code: 'PROXY_AUTH_REFUSED',
    says: /did not accept/,
  },
  {
    name: 'answers what was not asked yet',
    scheme: 'socks5',
    answer: saying([5, 0, 5, 0, 0, 1, 0, 0, 0, 0, 0, 80]),
    code: 'PROXY_FAILED',
    says: /before it was asked/,
  },
  {
    name: 'has rules against it',
    scheme: 'socks5',
    answer: saying([5, 0], [5, 2, 0, 1, 0, 0, 0, 0, 0, 0]),
    code: 'PROXY_FAILED',
    says: /its rules forbid it/,
  },
  {
    name: 'cannot reach the server, by SOCKS5',
    scheme: 'socks5',
    answer: saying([5, 0], [5, 4, 0, 1, 0, 0, 0, 0, 0, 0]),
    code: 'SERVER_UNREACHABLE',
    says: /cannot reach the tunnel server: it cannot reach that host/,
  },
  {
    name: 'replies with a number that nobody knows',
    scheme: 'socks5',
    answer: saying([5, 0], [5, 77]),
    code: 'PROXY_FAILED',
    says: /it replied 77/,
  },
  {
    name: 'binds an address of an unknown kind',
    scheme: 'socks5',
    answer: saying([5, 0], [5, 0, 0, 9, 0, 0, 0, 0, 0, 0]),
    code: 'PROXY_FAILED',
    says: /unknown kind/,
  },
]

describe('a proxy that', () => {
  test.each(CASES)('$name: $code', async ({ scheme = 'http', answer, code, says }) => {
    const port = await listening(answer)
    const error = await failure(`${scheme}://${LOGIN}127.0.0.1:${port}`)
    expect(error.code).toBe(code)
    expect(error.message).toMatch(says)
    expect(Bun.inspect(error)).not.toMatch(/hidden|YW5uYTpoaWRkZW4/)
    expect(error.message).not.toContain('\n')
    await eventually(() => open.size === 0, 'the connection to the proxy to close')
  })

  test.each(['http', 'socks5', 'https'])(
    'hangs, spoken to as %s, costs the connect timeout',
    async scheme => {
      const port = await listening(() => {})
      const error = await failure(`${scheme}://127.0.0.1:${port}`, 100)
      expect(error.code).toBe('SERVER_UNREACHABLE')
      expect(error.message).toContain(`The proxy ${scheme}://127.0.0.1:${port} gave no connection`)
      await eventually(() => open.size === 0, 'the connection to the proxy to close')
    },
  )

  test('is given up with disconnect() is left at once', async () => {
    const port = await listening(() => {})
    const client = new TunnelClient({ server: 'ws://192.0.2.1', port: 1, proxy: `http://127.0.0.1:${port}` })
    const connecting = client.connect().catch((error: unknown) => error)
    await eventually(() => open.size === 1, 'the client to reach the proxy')
    await client.disconnect()
    expect(await connecting).toMatchObject({ code: 'STATE_INVALID' })
    await eventually(() => open.size === 0, 'the connection to the proxy to close')
  })
})

// ── What comes behind the opening is the server's ──────────────────────────────────────────────────────────────

const proxyAt = (port: number) => parseProxy(`http://127.0.0.1:${port}`, 'proxy')
const OPENINGS: readonly [string, (port: number) => Opening, readonly Uint8Array[]][] = [
  [
    'CONNECT',
    port => new ConnectOpening(proxyAt(port), 'tunnel.example', 443),
    [Buffer.from('HTTP/1.1 100 Continue\r\n\r\nHTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\n')],
  ],
  [
    'SOCKS5',
    port => new Socks5Opening(parseProxy(`socks5://a:b@127.0.0.1:${port}`, 'proxy'), 'tunnel.example', 443),
    [Buffer.of(5, 2), Buffer.of(1, 0), Buffer.of(5, 0, 0, 3, 4, 1, 2, 3, 4, 0, 80)],
  ],
]

describe.each(OPENINGS)('%s', (_, opening, answers) => {
  const SERVER_SPEAKS = 'and this is the server'

  /** A proxy that writes its last answer in pieces, the server's first bytes behind it. */
  const start = (piecesOf: (bytes: Buffer) => readonly Buffer[], isAtOnce: boolean) =>
    listening(socket => {
      let turn = 0
      socket.on('data', () => {
        const answer = answers[turn++]
        if (answer === undefined) return
        const isLast = turn === answers.length
        const bytes = Buffer.concat([answer, ...(isLast ? [Buffer.from(SERVER_SPEAKS)] : [])])
        if (isAtOnce || !isLast) return void socket.write(bytes)
        const pieces = [...piecesOf(bytes)]
        const write = () => {
          const piece = pieces.shift()
          if (piece !== undefined) socket.write(piece, () => setImmediate(write))
        }
        write()
      })
    })

  test.each([true, false])(
    'trailing bytes reach the handler, at once (%p) and after the dial',
    async isAtOnce => {
      const port = await start(bytes => [...bytes].map(byte => Buffer.of(byte)), isAtOnce)
      const events = new Recorder()
      const address = {
        host: 'tunnel.example',
        port: 443,
        via: { address: { host: '127.0.0.1', port }, opening: opening(port) },
      }
      let heardBefore = -1
      const socket = await within(
        dial(address, events).then(one => {
          heardBefore = events.receivedBytes
          return one
        }),
        'the dial',
      )
      expect(heardBefore).toBe(0)
      await events.until(() => events.receivedBytes === SERVER_SPEAKS.length, 'what the server says')
      expect(events.text).toBe(SERVER_SPEAKS)
      socket.terminate()
      await events.happened('closed')
    },
  )

  test('before TLS they are refused: no TLS server speaks first', async () => {
    const port = await start(bytes => [bytes], true)
    const via = { address: { host: '127.0.0.1', port }, opening: opening(port) }
    const address = { host: 'tunnel.example', port: 443, tls: {}, via }
    expect(await codeOf(dial(address, new Recorder()))).toBe('EPROTO')
    await eventually(() => open.size === 0, 'the connection to the proxy to close')
  })

  test('reads the same from any slices, and random bytes never get through or throw anything else', () => {
    const random = new Random(7)
    for (let round = 0; round < 300; round++) {
      const one = opening(1)
      one.begin()
      let rest = ''
      for (const [index, answer] of answers.entries()) {
        const isLast = index === answers.length - 1
        let bytes = Buffer.concat([answer, ...(isLast ? [Buffer.from(SERVER_SPEAKS)] : [])])
        while (bytes.length > 0) {
          const length = 1 + random.below(Math.min(isLast ? 50 : 1, bytes.length))
          const result = one.take(bytes.subarray(0, length))
          bytes = bytes.subarray(length)
          if (result === undefined || result instanceof Uint8Array) continue
          rest = Buffer.concat([result.rest, bytes]).toString()
          break
        }
      }
      expect(rest).toBe(SERVER_SPEAKS)
      const fuzzed = opening(1)
      fuzzed.begin()
      try {
        for (let piece = 0; piece < 20; piece++) {
          const result = fuzzed.take(random.bytes(1 + random.below(64)))
          if (result !== undefined && !(result instanceof Uint8Array)) throw new Error('it was let through')
        }
      } catch (error) {
        expect(error).toHaveProperty('code', expect.stringMatching(/^(PROXY_|SERVER_UNREACHABLE)/))
      }
    }
  })
})

test('SOCKS5 writes every kind of address as RFC 1928 has it', () => {
  const asked = (host: string) => {
    const opening = new Socks5Opening(parseProxy('socks5://p', 'proxy'), host, 0x1234)
    opening.begin()
    return Buffer.from(opening.take(Buffer.of(5, 0)) as Uint8Array).toString('hex') // what to send next
  }
  expect(asked('10.1.2.3')).toBe('050100010a0102031234')
  expect(asked('a.b')).toBe('0501000303612e621234')
  expect(asked('::1')).toBe(`05010004${'00'.repeat(15)}011234`)
  expect(asked('::')).toBe(`05010004${'00'.repeat(16)}1234`)
  expect(asked('2001:db8::a:1')).toBe('0501000420010db800000000000000000'.concat('00a00011234'))
  expect(asked('1:2:3:4:5:6:7:8')).toBe('05010004000100020003000400050006000700081234')
  expect(asked('::ffff:1.2.3.4')).toBe('0501000400000000000000000000ffff010203041234')
})
