// The server end of carriers under test: listenBun, a plain upgrade answer, the hand-framed carrier.

import { eventLoop } from '../../src/event-loop.ts'
import { WebSocketCarrier } from '../../src/session/carriers/websocket.ts'
import type { Socket, SocketHandler } from '../../src/socket.ts'
import { listenBun } from '../../src/sockets/bun.ts'
import { acceptKey, endOfHead } from '../../src/wire/handshake.ts'
import { CarrierRecorder } from './carrier-recorder.ts'
import { TEST_CERT, TEST_KEY } from './tls.ts'
import { deferred, within } from './within.ts'

export interface CarrierEnd {
  readonly carrier: WebSocketCarrier
  readonly events: CarrierRecorder
  /** What it is carried by, to be paused or cut. */
  readonly socket: Socket
}

export interface CarrierServer {
  readonly port: number
  /** The next carrier that comes in. */
  accepted(): Promise<CarrierEnd>
  /** The head of the last request. */
  readonly lastHead: string
  stop(): void
}

export interface CarrierServerOptions {
  readonly tls?: boolean
  /** Answers instead of 101. */
  readonly answer?: string
  /** Default: the first one offered. */
  readonly protocol?: string
  /** Goes out in one packet with the 101. */
  readonly greeting?: Uint8Array
  readonly text?: (message: string, carrier: WebSocketCarrier) => void
}

export function carrierServer(options: CarrierServerOptions = {}): CarrierServer {
  const arrived: CarrierEnd[] = []
  let waiting: ((end: CarrierEnd) => void) | undefined
  let lastHead = ''
  const accept = (socket: Socket): SocketHandler => {
    let head = new Uint8Array(0)
    let inner: SocketHandler | undefined
    return {
      received(bytes) {
        if (inner !== undefined) return inner.received(bytes)
        head = Buffer.concat([head, bytes])
        const end = endOfHead(head)
        if (end === -1) return
        lastHead = Buffer.from(head.subarray(0, end)).toString('latin1')
        if (options.answer !== undefined) {
          socket.write(Buffer.from(options.answer))
          socket.end()
          return
        }
        const { protocol, greeting = new Uint8Array(0) } = options
        socket.write(Buffer.concat([Buffer.from(switching(lastHead, protocol)), greeting]))
        const events = new CarrierRecorder()
        const { text } = options
        const carrier: WebSocketCarrier = new WebSocketCarrier(socket, {
          role: 'server',
          scheduler: eventLoop,
          ...(text && { maxTextBytes: 1_000_000, text: message => text(message, carrier) }),
        })
        carrier.handler = events
        inner = carrier.socketHandler
        const arrival = { carrier, events, socket }
        if (waiting) waiting(arrival)
        else arrived.push(arrival)
        waiting = undefined
        if (end < head.length) inner.received(head.slice(end))
      },
      drained: () => inner?.drained(),
      ended: () => (inner === undefined ? socket.end() : inner.ended()),
      closed: error => inner?.closed(error),
    }
  }
  const listening = listenBun({
    hostname: '127.0.0.1',
    ...(options.tls && { tls: { cert: TEST_CERT, key: TEST_KEY } }),
    accept,
  })
  return {
    port: listening.port,
    accepted() {
      const first = arrived.shift()
      if (first) return Promise.resolve(first)
      const { promise, resolve } = deferred<CarrierEnd>()
      waiting = resolve
      return within(promise, 'a carrier at the server')
    },
    get lastHead() {
      return lastHead
    },
    stop: () => listening.stop(true),
  }
}

function switching(head: string, protocol: string | undefined): string {
  const key = /^sec-websocket-key: (.*)\r$/im.exec(head)?.[1] ?? ''
  const accept = acceptKey(key, text => new Bun.CryptoHasher('sha1').update(text).digest('base64'))
  const picked = protocol ?? /^sec-websocket-protocol: ([^,\r]*)/im.exec(head)?.[1] ?? ''
  const line = picked === '' ? '' : `Sec-WebSocket-Protocol: ${picked}\r\n`
  return `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${accept}\r\n${line}\r\n`
}
