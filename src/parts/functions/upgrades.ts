// Which requests to an app that is a function may become WebSockets, and which did.

import { createHash } from 'node:crypto'
import type { AppWebSocket, HandlerServer, WebSocketHandlers } from '../../client/contracts/handler.ts'
import type { HandlerSink, Switched } from '../../handler/connection.ts'
import { acceptKey } from '../../wire/handshake.ts'
import { HandlerWebSocket } from './app-websocket.ts'

interface Upgradable {
  readonly key: string
  readonly failed: (cause: unknown) => void
  headers: Headers
  socket: HandlerWebSocket | undefined
}

const upgradable = new WeakMap<Request, Upgradable>()

/** A pattern for a handshake's key: 16 bytes in base64. The version must be 13 (RFC 6455 section 4.1). */
const KEY = /^[A-Za-z0-9+/]{22}==$/
const VERSION = '13'

/** Notes a request that asks for a WebSocket, with what is needed to open it. `failed` is called if the app's code threw. */
export function offerUpgrade(request: Request, failed: (cause: unknown) => void): void {
  const key = request.headers.get('sec-websocket-key') ?? ''
  if (request.method !== 'GET' || request.headers.get('sec-websocket-version') !== VERSION || !KEY.test(key))
    return
  upgradable.set(request, { key, failed, headers: new Headers(), socket: undefined })
}

/**
 * Makes a WebSocket of a request that a `FetchHandler` got, as in Deno: the handler returns `response`, and then
 * `socket` is open. `protocol`: the subprotocol, one of those that the request offers. Throws `TypeError` for a
 * request that does not ask for a WebSocket, or that already became one.
 */
export function upgradeWebSocket(
  request: Request,
  options: { readonly protocol?: string } = {},
): { readonly socket: AppWebSocket; readonly response: Response } {
  const known = upgradable.get(request)
  if (known === undefined) throw new TypeError('the request asks for no WebSocket, or is none of a tunnel')
  if (known.socket !== undefined) throw new TypeError('the request has become a WebSocket already')
  const { protocol = '' } = options
  if (protocol !== '') known.headers.set('Sec-WebSocket-Protocol', protocol)
  known.socket = new HandlerWebSocket<unknown>(undefined, protocol, undefined, known.failed)
  // Not every platform allows a Response with the status 101.
  return { socket: known.socket, response: new Response(null, { status: 204 }) }
}

/** Makes the server argument of a handler. `handlers` are those for sockets of `upgrade`. */
export function handlerServer(handlers: WebSocketHandlers | undefined): HandlerServer {
  return {
    upgrade(request, { headers, data } = {}) {
      if (handlers === undefined)
        throw new TypeError('server.upgrade needs the option websocket: what the sockets do')
      const known = upgradable.get(request)
      if (known === undefined || known.socket !== undefined) return false
      known.headers = new Headers(headers)
      const protocol = known.headers.get('sec-websocket-protocol') ?? ''
      known.socket = new HandlerWebSocket<unknown>(data, protocol, handlers, known.failed)
      return true
    },
  }
}

/**
 * Called when the handler has responded. Sends the response and returns the socket that the handler made of the
 * request. `undefined` if it made none.
 */
export function takeUpgrade(request: Request, sink: HandlerSink): Switched | undefined {
  const known = upgradable.get(request)
  const { socket } = known ?? {}
  if (known === undefined || socket === undefined) return undefined
  upgradable.delete(request)
  const accept = acceptKey(known.key, text => createHash('sha1').update(text).digest('base64'))
  const lines = [...known.headers]
    .filter(([name]) => !OWN.has(name))
    .map(([name, value]) => `${name}: ${value}\r\n`)
  sink.write(
    Buffer.from(
      `HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: ${accept}\r\n${lines.join('')}\r\n`,
      'latin1',
    ),
  )
  socket.begin(sink)
  return socket
}

/** The header lines that the response already has. */
const OWN: ReadonlySet<string> = new Set([
  'connection',
  'upgrade',
  'sec-websocket-accept',
  'sec-websocket-extensions',
  'content-length',
  'transfer-encoding',
])
