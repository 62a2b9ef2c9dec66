// A carrier on a socket of our own: writes the upgrade and WebSocket frames itself, with exact backpressure.

import { createHash, randomBytes } from 'node:crypto'
import { TunnelError } from '../../errors.ts'
import { eventLoop } from '../../event-loop.ts'
import { WebSocketCarrier } from '../../session/carriers/websocket.ts'
import type { Dial, Socket, SocketHandler } from '../../socket.ts'
import {
  type AnswerHead,
  acceptKey,
  encodeUpgradeRequest,
  endOfHead,
  MAX_ANSWER_HEAD_BYTES,
  parseAnswerHead,
  pickedProtocol,
} from '../../wire/handshake.ts'
import {
  type AcceptCarrier,
  type CarrierRequest,
  carrierHeaders,
  MAX_REFUSAL_BYTES,
  type OpenCarrier,
  refusalError,
  stopped,
} from './carrier.ts'
import { explained, labelOf, NoAnswer, unreachable } from './unreachable.ts'

/** The time in milliseconds for a response to a TLS hello. A port that speaks TLS responds at once. */
const EXPLAIN_MS = 1_000

/** Returns a function that opens carriers on connections that `dial` makes. */
export function directCarriers(dial: Dial): OpenCarrier {
  return async (request, accept) => {
    if (request.signal.aborted) throw stopped()
    try {
      return await new Upgrade(request, accept).run(dial)
    } catch (error) {
      throw error instanceof TunnelError
        ? await explained(error, request, dial, Math.min(request.timeoutMs, EXPLAIN_MS))
        : error
    }
  }
}

/** An upgrade: reads the response, then passes the socket's events to the carrier. */
class Upgrade implements SocketHandler {
  readonly #request: CarrierRequest
  readonly #accept: AcceptCarrier
  readonly #key = randomBytes(16).toString('base64')
  #resolve!: (protocol: string) => void // set by `run`, before anything happens
  #reject!: (error: TunnelError) => void
  #socket: Socket | undefined
  #isOver = false
  /** Stops a dial whose result is no longer needed. */
  readonly #dialling = new AbortController()
  #received: Uint8Array = new Uint8Array(0)
  /** The head of a refusal whose body is arriving. */
  #refusal: AnswerHead | undefined
  #carrier: SocketHandler | undefined
  /** The carrier handler's `heard`. */
  #heard: (() => void) | undefined

  constructor(request: CarrierRequest, accept: AcceptCarrier) {
    this.#request = request
    this.#accept = accept
  }

  async run(dial: Dial): Promise<string> {
    const { address, host, path, query, protocols, signal, timeoutMs } = this.#request
    const target = `${path}/${query}`
    const headers = carrierHeaders(this.#request)
    const bytes = encodeUpgradeRequest({ host, target, key: this.#key, protocols, headers })
    const answered = new Promise<string>((resolve, reject) => {
      this.#resolve = resolve
      this.#reject = reject
    })
    const abort = () => this.#fail(stopped())
    signal.addEventListener('abort', abort)
    const cancelTimeout = eventLoop.after(timeoutMs, () =>
      // A refusal whose body does not end in time is still a refusal.
      this.#refusal ? this.#refused(this.#refusal) : this.#fail(this.#timedOut()),
    )
    dial(address, this, this.#dialling.signal).then(
      socket => this.#connected(socket, bytes),
      (cause: unknown) => this.#fail(unreachable(cause, this.#request)),
    )
    try {
      return await answered
    } finally {
      cancelTimeout()
      signal.removeEventListener('abort', abort)
    }
  }

  // ── Events of the socket ───────────────────────────────────────────────────────────────────────────────────

  received(bytes: Uint8Array): void {
    if (this.#carrier !== undefined) {
      this.#heard?.()
      return this.#carrier.received(bytes)
    }
    if (this.#isOver) return
    this.#received = Buffer.concat([this.#received, bytes])
    if (this.#refusal === undefined) this.#readHead()
    else this.#readRefusal(this.#refusal)
  }

  drained(): void {
    this.#carrier?.drained()
  }

  ended(): void {
    if (this.#carrier !== undefined) return this.#carrier.ended()
    if (this.#refusal !== undefined) this.#refused(this.#refusal)
    else this.#fail(unreachable(new NoAnswer(), this.#request))
  }

  closed(error?: Error): void {
    if (this.#carrier !== undefined) return this.#carrier.closed(error)
    if (this.#refusal !== undefined) this.#refused(this.#refusal)
    else this.#fail(unreachable(new NoAnswer(error), this.#request))
  }

  // ── Steps ──────────────────────────────────────────────────────────────────────────────────────────────────

  #connected(socket: Socket, request: Uint8Array): void {
    this.#socket = socket
    // The attempt was given up before the connection was made.
    if (this.#isOver) return socket.terminate()
    // A new connection has room for a head. If it does not take one, it is broken.
    if (socket.write(request) < request.length)
      this.#fail(unreachable('the request could not be sent', this.#request))
  }

  #readHead(): void {
    const end = endOfHead(this.#received)
    if (end === -1) {
      if (this.#received.length > MAX_ANSWER_HEAD_BYTES) this.#fail(new TunnelError('SERVER_REFUSED'))
      return
    }
    const head = parseAnswerHead(this.#received.subarray(0, end))
    if (head === undefined) return this.#fail(new TunnelError('SERVER_REFUSED'))
    this.#received = this.#received.subarray(end)
    if (head.status === 101) return this.#switched(head)
    // Interim responses, such as 103, come before the final one.
    if (head.status < 200) return this.#readHead()
    this.#refusal = head
    this.#readRefusal(head)
  }

  #switched(head: AnswerHead): void {
    const accept = acceptKey(this.#key, text => createHash('sha1').update(text).digest('base64'))
    const protocol = pickedProtocol(head, accept, this.#request.protocols)
    const socket = this.#socket
    if (protocol === undefined || socket === undefined) {
      return this.#fail(
        new TunnelError('SERVER_REFUSED', 'The server did not answer as a WebSocket server must.'),
      )
    }
    this.#isOver = true
    const { maxTextBytes, text } = this.#request
    const carrier = new WebSocketCarrier(socket, {
      role: 'client',
      scheduler: eventLoop,
      maskKey,
      ...(maxTextBytes !== undefined && { maxTextBytes }),
      ...(text !== undefined && { text }),
    })
    this.#carrier = carrier.socketHandler
    const handler = this.#accept(carrier, protocol)
    this.#heard = handler && (() => handler.heard?.())
    if (handler === undefined) carrier.close()
    else carrier.handler = handler
    this.#resolve(protocol)
    if (this.#received.length > 0) this.#carrier.received(this.#received)
  }

  /** Waits for the part of the body that the user will see. */
  #readRefusal(head: AnswerHead): void {
    const length = head.headers.get('content-length')
    const expected =
      length === undefined ? MAX_REFUSAL_BYTES : Math.min(Number(length) || 0, MAX_REFUSAL_BYTES)
    if (this.#received.length >= expected) this.#refused(head)
  }

  #refused({ status, headers }: AnswerHead): void {
    const body = new TextDecoder().decode(this.#received.subarray(0, MAX_REFUSAL_BYTES))
    this.#fail(refusalError(status, headers.get('x-localtunnels-error'), body, this.#request))
  }

  #timedOut(): TunnelError {
    const { proxyLabel } = this.#request
    if (this.#socket !== undefined || proxyLabel === undefined)
      return new TunnelError('SERVER_UNREACHABLE', `${labelOf(this.#request)} did not respond in time.`)
    const detail = `The proxy ${proxyLabel} gave no connection to the tunnel server in time.`
    return new TunnelError('SERVER_UNREACHABLE', detail)
  }

  #fail(error: TunnelError): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#dialling.abort()
    this.#socket?.terminate()
    this.#reject(error)
  }
}

const maskKeys = new Uint32Array(1024)
let nextMaskKey = maskKeys.length

/** Returns 32 random bits of the system's generator, which are fetched many at a time. */
function maskKey(): number {
  if (nextMaskKey === maskKeys.length) {
    crypto.getRandomValues(maskKeys)
    nextMaskKey = 0
  }
  return maskKeys[nextMaskKey++]!
}
