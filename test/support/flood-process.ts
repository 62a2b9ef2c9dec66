// An attacker in a process of its own: many connections that send the same bytes without end, as fast as they are taken.

import { TunnelClient } from '../../src/index.ts'
import { encodeWebSocketMessage } from '../../src/wire/websocket.ts'
import { clientHello } from './client-hello.ts'
import { control, frame } from './speaker.ts'

/** What each connection of an attack does. */
interface Flood {
  /** Sent first, before anything is answered. */
  readonly first?: string
  /** Sent again and again. */
  readonly payload: Uint8Array
  readonly port?: 'tls'
  /** After the first payload the connection is opened anew. */
  readonly isOnce?: boolean
  /** A tunnel of the attacker's own, which its connections ask. */
  readonly tunnel?: string
}

/** As much as one read of the server takes. */
const BYTES_AT_ONCE = 524_288
const many = (one: string | Uint8Array): Buffer =>
  Buffer.concat(Array(Math.ceil(BYTES_AT_ONCE / one.length)).fill(Buffer.from(one as string)))
const upgrade = (wire: 'streams' | 'json'): string =>
  `GET / HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n${wire === 'streams' ? 'Sec-WebSocket-Protocol: localtunnels.streams.1\r\n' : ''}\r\n`
const message = (opcode: number, payload: string | Uint8Array): Uint8Array =>
  encodeWebSocketMessage(opcode, Buffer.from(payload as string), 0)
const nested = (bytes: number): string =>
  `{"type":"none","x":${'['.repeat(bytes / 2)}${']'.repeat(bytes / 2)}}`

export const FLOODS: Readonly<Record<string, Flood>> = {
  'requests to a tunnel of its own': {
    payload: many('GET / HTTP/1.1\r\nHost: own.localhost\r\n\r\n'),
    tunnel: 'own',
  },
  'requests to a host without a tunnel': { payload: many('GET / HTTP/1.1\r\nHost: none.localhost\r\n\r\n') },
  'requests for the status': { payload: many('GET /status HTTP/1.1\r\nHost: localhost\r\n\r\n') },
  'chunks of one byte': {
    first: 'POST / HTTP/1.1\r\nHost: own.localhost\r\nTransfer-Encoding: chunked\r\n\r\n',
    payload: many('1\r\nx\r\n'),
    tunnel: 'own',
  },
  'WebSocket pings': { first: upgrade('streams'), payload: many(message(9, 'ping')) },
  'WebSocket pongs': { first: upgrade('streams'), payload: many(message(10, '')) },
  'empty WebSocket messages': { first: upgrade('streams'), payload: many(message(2, '')) },
  'control messages of unknown type': {
    first: upgrade('streams'),
    payload: many(message(2, control({ type: 'none' }))),
  },
  'control messages of nested JSON': {
    first: upgrade('streams'),
    payload: many(message(2, control(nested(60_000)))),
  },
  registrations: {
    first: upgrade('streams'),
    payload: many(message(2, control({ type: 'register', ref: 1, kind: 'http', name: 'many' }))),
  },
  'PINGs and PONGs': { first: upgrade('streams'), payload: many(message(2, frame(6, 0, Buffer.alloc(8)))) },
  'text messages': { first: upgrade('json'), payload: many(message(1, '{"type":"ping"}')) },
  'text messages of nested JSON': {
    first: `${upgrade('json')}${Buffer.from(message(1, '{"type":"ready","subdomain":"texts"}')).toString('latin1')}`,
    payload: many(message(1, nested(16_000))),
  },
  hellos: { port: 'tls', payload: clientHello('none.localhost'), isOnce: true },
}

export interface FloodTask {
  /** A key of `FLOODS`. */
  readonly flood: string
  readonly port: number
  readonly tlsPort: number
  readonly connections: number
}

if (import.meta.main) await run(JSON.parse(process.argv[2] ?? '{}') as FloodTask) // what `Flooding` passes

/** Until stdin ends. Says `flooding` once every connection has been opened, and at the end how many bytes were taken. */
async function run({ flood, port, tlsPort, connections }: FloodTask): Promise<void> {
  const what = FLOODS[flood]
  if (what === undefined) throw new Error(`there is no flood called "${flood}"`)
  const first = Buffer.from(what.first ?? '', 'latin1')
  let isOver = false
  let takenBytes = 0
  let opened = 0
  const client =
    what.tunnel === undefined
      ? undefined
      : new TunnelClient({
          server: `127.0.0.1:${port}`,
          subdomain: what.tunnel,
          fetch: () => new Response('x'),
        })
  client?.on('error', () => {})
  await client?.connect()
  const open = (): Promise<void> =>
    Bun.connect<{ at: number; part: Uint8Array }>({
      hostname: '127.0.0.1',
      port: what.port === 'tls' ? tlsPort : port,
      data: { at: 0, part: first.length > 0 ? first : what.payload },
      socket: {
        open: socket => {
          opened++
          if (opened === connections) console.log('flooding')
          pour(socket)
        },
        data() {},
        drain: pour,
        close: again,
        error() {},
        connectError: again,
      },
    }).then(
      () => {},
      () => {},
    )
  const again = (): void => {
    if (!isOver) setTimeout(() => void open(), 1)
  }
  const pour = (socket: Bun.Socket<{ at: number; part: Uint8Array }>): void => {
    const { data } = socket
    for (;;) {
      const taken = socket.write(data.part, data.at)
      if (taken < 0) return
      takenBytes += taken
      data.at += taken
      if (data.at < data.part.length) return
      if (what.isOnce && data.part === what.payload) return
      data.at = 0
      data.part = what.payload
    }
  }
  for (let count = 0; count < connections; count++) void open()
  for await (const _ of console) break
  isOver = true
  console.log(`${takenBytes}`)
  process.exit()
}

/** An attack that goes on until it is disposed of. */
export class Flooding implements AsyncDisposable {
  readonly #child: Bun.Subprocess<'pipe', 'pipe', 'inherit'>
  readonly #lines: { read(): Promise<{ readonly value?: Uint8Array | undefined }> }

  private constructor(task: FloodTask) {
    this.#child = Bun.spawn({
      cmd: ['bun', import.meta.path, JSON.stringify(task)],
      stdin: 'pipe',
      stdout: 'pipe',
      stderr: 'inherit',
    })
    this.#lines = this.#child.stdout.getReader()
  }

  static async start(task: FloodTask): Promise<Flooding> {
    const flooding = new Flooding(task)
    await flooding.#lines.read()
    return flooding
  }

  /** Bytes that the server's system took. */
  async stop(): Promise<number> {
    await this.#child.stdin.end()
    const { value } = await this.#lines.read()
    await this.#child.exited
    return Number(Buffer.from(value ?? []).toString())
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#child.kill('SIGKILL')
    await this.#child.exited
  }
}
