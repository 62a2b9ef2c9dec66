// A carrier on the `ws` package, for connections that only a Node `agent` can make.

import type { Agent, IncomingMessage } from 'node:http'
import { WebSocket } from 'ws'
import { copyOf } from '../../bytes.ts'
import { TunnelError } from '../../errors.ts'
import type { CarrierHandler } from '../../session/carrier.ts'
import { authorities } from '../../sockets/authorities.ts'
import {
  type CarrierRequest,
  carrierHeaders,
  MAX_REFUSAL_BYTES,
  type OpenCarrier,
  refusalError,
  stopped,
  type TextCarrier,
  tooLate,
} from './carrier.ts'
import { unreachable } from './unreachable.ts'

/** The number of bytes that may wait in `ws` before the session is paused: a full batch of frames. */
const MAX_WAITING_BYTES = 262_144
/** The maximum size of a message. `ws` joins its pieces first; a session of ours sends far smaller ones. */
const MAX_MESSAGE_BYTES = 16_777_216

const NO_HANDLER: CarrierHandler = { received() {}, drained() {}, closed() {} }

/** Opens carriers with `ws`, through `agent` if there is one. */
export function wsCarriers(agent?: Agent): OpenCarrier {
  return (request, accept) =>
    new Promise((resolve, reject) => {
      const { address, host, path, query, protocols, signal, timeoutMs, maxTextBytes = 0 } = request
      const { serverName, verify = true, ca, cert, key } = address.tls ?? {}
      if (signal.aborted) throw stopped()
      const trusted = verify && address.tls !== undefined ? authorities(ca) : undefined
      const socket = new WebSocket(
        `${address.tls === undefined ? 'ws' : 'wss'}://${urlHost(address.host)}:${address.port}${path}/${query}`,
        [...protocols],
        {
          headers: { ...carrierHeaders(request), Host: host },
          perMessageDeflate: false,
          maxPayload: Math.max(MAX_MESSAGE_BYTES, maxTextBytes),
          handshakeTimeout: timeoutMs,
          rejectUnauthorized: verify,
          ...(serverName !== undefined && { servername: serverName }),
          ...(trusted !== undefined && { ca: trusted }),
          ...(cert !== undefined && key !== undefined && { cert, key }),
          ...(agent !== undefined && { agent }),
        },
      )
      const fail = (error: TunnelError) => {
        reject(error)
        socket.terminate()
      }
      const abort = () => fail(stopped())
      signal.addEventListener('abort', abort)
      const carrier = new WsCarrier(socket, request.text, maxTextBytes)
      for (const sign of ['message', 'ping', 'pong']) socket.on(sign, () => carrier.handler.heard?.())
      socket.once('open', () => {
        signal.removeEventListener('abort', abort)
        const handler = accept(carrier, socket.protocol)
        if (handler === undefined) carrier.close()
        else carrier.handler = handler
        resolve(socket.protocol)
      })
      socket.once('unexpected-response', (_request, answer) => {
        void readRefusal(answer, request).then(fail)
      })
      socket.once('close', () => signal.removeEventListener('abort', abort))
      // After `open` this promise is settled, and the carrier reports errors to its handler.
      socket.on('error', error => fail(failureOf(error, request)))
    })
}

class WsCarrier implements TextCarrier {
  readonly headroom = 0
  handler: CarrierHandler = NO_HANDLER
  readonly #socket: WebSocket
  readonly #left: () => void
  #owesDrained = false
  #error: Error | undefined

  constructor(socket: WebSocket, text: ((message: string) => void) | undefined, maxTextBytes: number) {
    this.#socket = socket
    this.#left = () => {
      if (!this.#owesDrained || socket.bufferedAmount > 0 || socket.readyState !== WebSocket.OPEN) return
      this.#owesDrained = false
      this.handler.drained()
    }
    socket.binaryType = 'nodebuffer'
    // A Buffer, which is the default type of `ws`.
    socket.on('message', (data, isBinary) => this.#received(data as Buffer, isBinary, text, maxTextBytes))
    socket.on('error', error => {
      this.#error = error
    })
    socket.on('close', (code, reason) => {
      if (code !== 1000 && code !== 1005)
        this.#error ??= new TunnelError('CARRIER_LOST', closing(code, reason))
      this.handler.closed(this.#error)
    })
  }

  send(batch: Uint8Array, start: number, end: number): boolean {
    // `ws` masks the array in place and keeps it until the network took it.
    return this.#send(copyOf(batch, start, end), true)
  }

  sendText(message: string): boolean {
    return this.#send(message, false)
  }

  close(): void {
    this.#socket.close(1000)
  }

  terminate(): void {
    this.#error ??= new TunnelError('CARRIER_LOST', 'The connection was cut by this side.')
    this.#socket.terminate()
  }

  #send(data: Uint8Array | string, binary: boolean): boolean {
    if (this.#socket.readyState !== WebSocket.OPEN) return true
    this.#socket.send(data, { binary, compress: false }, this.#left)
    if (this.#socket.bufferedAmount <= MAX_WAITING_BYTES) return true
    this.#owesDrained = true
    return false
  }

  #received(
    data: Buffer,
    isBinary: boolean,
    text: ((message: string) => void) | undefined,
    max: number,
  ): void {
    if (isBinary) this.handler.received(data, 0, data.length)
    else if (data.length <= max) text?.(data.toString())
    else this.#socket.close(max === 0 ? 1003 : 1009)
  }
}

function closing(code: number, reason: Buffer): string {
  const why = reason.length === 0 ? '' : `: ${reason.toString()}`
  return `The other side closed with ${code}${why}.`
}

function urlHost(host = 'localhost'): string {
  return host.includes(':') ? `[${host}]` : host
}

function failureOf(error: Error, request: CarrierRequest): TunnelError {
  if (error.message.includes('handshake has timed out')) return tooLate()
  // The errors of `ws` about an invalid 101.
  if (/^Invalid|^Server sent|^Missing/.test(error.message)) {
    return new TunnelError('SERVER_REFUSED', undefined, { cause: error })
  }
  return unreachable(error, request)
}

async function readRefusal(answer: IncomingMessage, request: CarrierRequest): Promise<TunnelError> {
  const pieces: Buffer[] = []
  let length = 0
  try {
    for await (const piece of answer as AsyncIterable<Buffer>) {
      pieces.push(piece)
      length += piece.length
      if (length >= MAX_REFUSAL_BYTES) break
    }
  } catch {
    // the connection broke during the body; the error contains the part that arrived
  }
  const body = Buffer.concat(pieces).subarray(0, MAX_REFUSAL_BYTES).toString()
  const named = answer.headers['x-localtunnels-error']
  return refusalError(answer.statusCode ?? 0, typeof named === 'string' ? named : undefined, body, request)
}
