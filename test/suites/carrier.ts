// What every carrier of a client must do, against a real server end.

import { expect, test } from 'bun:test'
import type {
  CarrierRequest,
  OpenCarrier,
  TextCarrier,
  UpgradeRefusal,
} from '../../src/client/carriers/carrier.ts'
import { TunnelError } from '../../src/errors.ts'
import { STREAMS_SUBPROTOCOL } from '../../src/wire/frame.ts'
import { CarrierRecorder } from '../support/carrier-recorder.ts'
import { type CarrierEnd, type CarrierServer, carrierServer } from '../support/carrier-server.ts'
import { Random } from '../support/random.ts'
import { TEST_CERT } from '../support/tls.ts'
import { within } from '../support/within.ts'

interface Opened {
  readonly carrier: TextCarrier
  readonly events: CarrierRecorder
  readonly far: CarrierEnd
  readonly protocol: string
}

export const requestTo = (port: number, more: Partial<CarrierRequest> = {}): CarrierRequest => ({
  address: { host: '127.0.0.1', port },
  host: `127.0.0.1:${port}`,
  path: '',
  query: '?subdomain=app',
  protocols: [STREAMS_SUBPROTOCOL],
  timeoutMs: 5_000,
  signal: new AbortController().signal,
  ...more,
})

export async function openTo(
  open: OpenCarrier,
  server: CarrierServer,
  more: Partial<CarrierRequest> = {},
): Promise<Opened> {
  const events = new CarrierRecorder()
  let carrier: TextCarrier | undefined
  const opening = open(requestTo(server.port, more), made => {
    carrier = made
    return events
  })
  const far = await server.accepted()
  const protocol = await within(opening, 'the carrier to open')
  return { carrier: carrier!, events, far, protocol }
}

/** A batch as a session makes it: headroom in front, an array that is used again once it was taken. */
function sendWhole(carrier: Opened['carrier'] | CarrierEnd['carrier'], bytes: Uint8Array): boolean {
  const batch = new Uint8Array(carrier.headroom + bytes.length)
  batch.set(bytes, carrier.headroom)
  const taken = carrier.send(batch, carrier.headroom, batch.length)
  if (taken) batch.fill(0xee)
  return taken
}

async function sendAll(
  carrier: Opened['carrier'] | CarrierEnd['carrier'],
  events: CarrierRecorder,
  batches: readonly Uint8Array[],
): Promise<void> {
  for (const batch of batches) {
    const before = events.count('drained')
    if (!sendWhole(carrier, batch)) await events.until(() => events.count('drained') > before, 'drained')
  }
}

export function carrierSuite(open: OpenCarrier): void {
  const withServer = async (body: (server: CarrierServer) => Promise<void>, options = {}) => {
    const server = carrierServer(options)
    try {
      await body(server)
    } finally {
      server.stop()
    }
  }
  const refused = async (
    server: { port: number },
    more: Partial<CarrierRequest> = {},
  ): Promise<TunnelError> => {
    const error: unknown = await within(
      open(requestTo(server.port, more), () => {
        throw new Error('accepted')
      }).catch((reason: unknown) => reason),
      'the refusal',
    )
    if (!(error instanceof TunnelError)) throw new Error(`not a TunnelError: ${String(error)}`)
    return error
  }

  for (const tls of [false, true]) {
    test(`every byte arrives, both ways${tls ? ', over TLS' : ''}`, () =>
      withServer(
        async server => {
          const address = { host: '127.0.0.1', port: server.port, ...(tls && { tls: { ca: TEST_CERT } }) }
          const { carrier, events, far } = await openTo(open, server, { address })
          const random = new Random(1)
          const batches = [1, 125, 126, 70_000, 65_535, 262_144].map(length => random.bytes(length))
          const whole = Buffer.concat(batches)
          await Promise.all([sendAll(carrier, events, batches), sendAll(far.carrier, far.events, batches)])
          await events.until(() => events.receivedBytes >= whole.length, 'all bytes at the client')
          await far.events.until(() => far.events.receivedBytes >= whole.length, 'all bytes at the server')
          expect(Buffer.compare(events.bytes, whole)).toBe(0)
          expect(Buffer.compare(far.events.bytes, whole)).toBe(0)
          carrier.terminate()
        },
        { tls },
      ))
  }

  test('the request says who is asked for what', () =>
    withServer(async server => {
      const { carrier, protocol } = await openTo(open, server, { token: 'secret', host: 'tunnel.test' })
      expect(protocol).toBe(STREAMS_SUBPROTOCOL)
      expect(server.lastHead).toStartWith('GET /?subdomain=app HTTP/1.1\r\n')
      expect(server.lastHead).toMatch(/^host: tunnel\.test\r$/im)
      expect(server.lastHead).toMatch(/^authorization: Bearer secret\r$/im)
      expect(server.lastHead).toMatch(/^sec-websocket-protocol: localtunnels\.streams\.1\r$/im)
      expect(server.lastHead).not.toMatch(/^(origin|sec-websocket-extensions):/im)
      carrier.terminate()
    }))

  test('a server that reads nothing makes send return false, and drained follows', () =>
    withServer(async server => {
      const { carrier, events, far } = await openTo(open, server)
      far.socket.pause()
      const batch = new Random(2).bytes(262_144)
      let sent = 0
      do sent++
      while (sendWhole(carrier, batch) && sent < 200)
      expect(sent).toBeLessThan(200)
      // Words that cannot wait, each in an array of its own.
      sendWhole(carrier, new Uint8Array(10).fill(7))
      sendWhole(carrier, new Uint8Array(10).fill(8))
      expect(events.count('drained')).toBe(0)
      far.socket.resume()
      await events.happened('drained')
      const expected = sent * batch.length + 20
      await far.events.until(() => far.events.receivedBytes >= expected, 'everything')
      expect(Buffer.compare(far.events.bytes.subarray(0, batch.length), batch)).toBe(0)
      expect([...far.events.bytes.subarray(-11)]).toEqual(
        [batch.at(-1)!, ...Array(10).fill(7), ...Array(10).fill(8)].slice(-11),
      )
      expect(events.count('drained')).toBe(1)
      carrier.terminate()
    }))

  test('close() lets everything arrive and ends in good order on both sides', () =>
    withServer(async server => {
      const { carrier, events, far } = await openTo(open, server)
      far.socket.pause()
      const batch = new Random(3).bytes(262_144)
      let sent = 0
      do sent++
      while (sendWhole(carrier, batch) && sent < 200)
      carrier.close()
      far.socket.resume()
      await far.events.happened('closed')
      expect(far.events.receivedBytes).toBe(sent * batch.length)
      expect(far.events.error).toBeUndefined()
      await events.happened('closed')
      expect(events.error).toBeUndefined()
    }))

  test('a close of the server is told once, and nothing after it', () =>
    withServer(async server => {
      const { carrier, events, far } = await openTo(open, server)
      sendWhole(far.carrier, new Uint8Array(5))
      far.carrier.close()
      await events.happened('closed')
      expect(events.error).toBeUndefined()
      expect(events.receivedBytes).toBe(5)
      carrier.close()
      carrier.terminate()
      expect(sendWhole(carrier, new Uint8Array(5))).toBe(true)
      await far.events.happened('closed')
      expect(far.events.error).toBeUndefined()
      expect(events.count('closed')).toBe(1)
    }))

  test('a close for a reason is an error that says it', () =>
    withServer(async server => {
      const { events, far } = await openTo(open, server)
      far.carrier.close(1013, 'Connection limit reached')
      await events.happened('closed')
      expect(events.error?.message).toContain('1013: Connection limit reached')
    }))

  test('terminate() is an error on both sides', () =>
    withServer(async server => {
      const { carrier, events, far } = await openTo(open, server)
      carrier.terminate()
      expect(events.count('closed')).toBe(0)
      await events.happened('closed')
      await far.events.happened('closed')
      expect(events.error).toBeInstanceOf(Error)
      expect(far.events.error).toBeInstanceOf(Error)
      expect(far.events.count('closed')).toBe(1)
    }))

  test('a connection that breaks is an error', () =>
    withServer(async server => {
      const { events, far } = await openTo(open, server)
      far.socket.terminate()
      await events.happened('closed')
      expect(events.error).toBeInstanceOf(Error)
    }))

  test('text messages go both ways', () =>
    withServer(
      async server => {
        const texts: string[] = []
        const { carrier, events, far } = await openTo(open, server, {
          maxTextBytes: 1000,
          text: message => {
            texts.push(message)
            events.drained()
          },
        })
        carrier.sendText('{"grüße":"世界"}')
        await events.happened('drained')
        expect(texts).toEqual(['echo {"grüße":"世界"}'])
        far.carrier.sendText('x'.repeat(1001))
        await far.events.happened('closed')
        carrier.terminate()
      },
      { text: (message: string, carrier: CarrierEnd['carrier']) => carrier.sendText(`echo ${message}`) },
    ))

  test('text ends a carrier that takes none', () =>
    withServer(async server => {
      const { far } = await openTo(open, server)
      far.carrier.sendText('hello')
      await far.events.happened('closed')
      expect(far.events.error?.message).toContain('1003')
    }))

  test('a carrier that nobody accepts is closed', () =>
    withServer(
      async server => {
        const opening = open(requestTo(server.port, { protocols: [] }), () => undefined)
        const far = await server.accepted()
        expect(await within(opening, 'the answer')).toBe('')
        await far.events.happened('closed')
        expect(far.events.error).toBeUndefined()
      },
      { protocol: '' },
    ))

  const refusals: [string, string, string][] = [
    ['401', 'HTTP/1.1 401 Unauthorized\r\nContent-Length: 6\r\n\r\nnobody', 'TOKEN_REFUSED'],
    [
      'a code of ours',
      'HTTP/1.1 503 No\r\nx-localtunnels-error: CLIENT_LIMIT\r\nContent-Length: 6\r\n\r\nnobody',
      'CLIENT_LIMIT',
    ],
    [
      'an unknown code',
      'HTTP/1.1 400 No\r\nx-localtunnels-error: __proto__\r\nContent-Length: 6\r\n\r\nnobody',
      'SERVER_REFUSED',
    ],
    ['404', 'HTTP/1.1 404 Not Found\r\nContent-Length: 6\r\n\r\nnobody', 'SERVER_REFUSED'],
    ['a page', 'HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nnobody', 'SERVER_REFUSED'],
    [
      'a redirect',
      'HTTP/1.1 301 Moved\r\nLocation: https://else.test/\r\nContent-Length: 6\r\n\r\nnobody',
      'SERVER_REFUSED',
    ],
    ['502 of a proxy', 'HTTP/1.1 502 Bad Gateway\r\nContent-Length: 6\r\n\r\nnobody', 'SERVER_UNREACHABLE'],
  ]
  for (const [name, answer, code] of refusals) {
    test(`${name} instead of 101 is ${code}`, () =>
      withServer(
        async server => {
          const error = await refused(server)
          expect(error.code).toBe(code as TunnelError['code'])
          const cause = error.cause as UpgradeRefusal
          expect(cause.body).toBe('nobody')
          expect(cause.status).toBe(Number(answer.slice(9, 12)))
        },
        { answer },
      ))
  }

  const wrong: [string, string][] = [
    ['no accept key', 'Upgrade: websocket\r\nConnection: Upgrade\r\n'],
    [
      'a wrong accept key',
      'Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: AAAAAAAAAAAAAAAAAAAAAAAAAAA=\r\n',
    ],
  ]
  for (const [name, headers] of wrong) {
    test(`101 with ${name} is SERVER_REFUSED`, () =>
      withServer(async server => expect((await refused(server)).code).toBe('SERVER_REFUSED'), {
        answer: `HTTP/1.1 101 Switching Protocols\r\n${headers}\r\n`,
      }))
  }

  test('a subprotocol that was not offered is SERVER_REFUSED', () =>
    withServer(async server => expect((await refused(server)).code).toBe('SERVER_REFUSED'), {
      protocol: 'other',
    }))

  test('something that speaks no HTTP is refused', async () => {
    const server = carrierServer({ answer: 'SSH-2.0-OpenSSH_9.6\r\n\r\n' })
    expect(['SERVER_REFUSED', 'SERVER_UNREACHABLE']).toContain((await refused(server)).code)
    server.stop()
  })

  test('nobody at the port is SERVER_UNREACHABLE', async () => {
    const server = carrierServer()
    server.stop()
    const error = await refused(server)
    expect(error.code).toBe('SERVER_UNREACHABLE')
  })

  test('a certificate that is not trusted is SERVER_UNTRUSTED, and is taken without verification', () =>
    withServer(
      async server => {
        const address = { host: '127.0.0.1', port: server.port, tls: {} }
        const error = await refused(server, { address })
        expect(error.code).toBe('SERVER_UNTRUSTED')
        const { carrier } = await openTo(open, server, { address: { ...address, tls: { verify: false } } })
        carrier.terminate()
      },
      { tls: true },
    ))

  test('a server that never answers is SERVER_UNREACHABLE', async () => {
    const server = Bun.listen({ hostname: '127.0.0.1', port: 0, socket: { data() {} } })
    expect((await refused(server, { timeoutMs: 50 })).code).toBe('SERVER_UNREACHABLE')
    server.stop(true)
  })

  test('an attempt can be given up', async () => {
    const stopping = new AbortController()
    const server = Bun.listen({
      hostname: '127.0.0.1',
      port: 0,
      socket: { data: () => stopping.abort() },
    })
    expect((await refused(server, { signal: stopping.signal })).code).toBe('STATE_INVALID')
    expect((await refused(server, { signal: stopping.signal })).code).toBe('STATE_INVALID')
    server.stop(true)
  })

  test('a token that could end its header line is OPTION_INVALID', async () => {
    const error = await refused({ port: 1 }, { token: 'a\r\nHost: evil' })
    expect(error.code).toBe('OPTION_INVALID')
  })
}
