// One raw connection of a visitor: waits for the tunnel's client if it must, and is joined to a stream of it.

import type { ErrorCode } from '../errors.ts'
import { Join } from '../join.ts'
import type { Stream } from '../session/stream.ts'
import type { Socket, SocketHandler } from '../socket.ts'
import type { Tunnel } from './tunnels.ts'
import type { TunnelUpstream } from './upstream.ts'

/** What a raw visitor needs of its server. */
export interface RawVisitorHost {
  /** It is on its way to the origin, or waits for a client. */
  rawBegan(visitor: RawVisitor): void
  /** Its connection is closed; `code` says why, when it failed. */
  rawEnded(visitor: RawVisitor, code: ErrorCode | undefined): void
}

export class RawVisitor {
  readonly tunnel: Tunnel
  readonly remoteAddress: string
  /** On the clock of `performance.now()`. */
  readonly startedAt: number = performance.now()
  readonly #host: RawVisitorHost
  readonly #socket: Socket
  readonly #join: Join
  readonly #first: Uint8Array | undefined
  #stream: Stream | undefined
  #stopWaiting: (() => void) | undefined

  /** `first`: what the origin gets before anything else, such as a PROXY header or what was read already. */
  constructor(socket: Socket, tunnel: Tunnel, host: RawVisitorHost, first?: Uint8Array) {
    this.#socket = socket
    this.tunnel = tunnel
    this.remoteAddress = socket.remoteAddress
    this.#host = host
    this.#first = first
    this.#join = new Join('CANCELLED', () => this.#closed())
    this.#join.useSocket(socket)
  }

  /** What the events of the socket go to. */
  get socketHandler(): SocketHandler {
    return this.#join.socketHandler
  }

  /** Bytes of the visitor that went on their way. */
  get bytesIn(): number {
    return this.#stream?.sentBytes ?? 0
  }

  /** Bytes that the visitor was sent. */
  get bytesOut(): number {
    return this.#stream?.deliveredBytes ?? 0
  }

  start(): void {
    this.#host.rawBegan(this)
    const { upstream } = this.tunnel
    if (upstream !== undefined) return this.#open(upstream)
    this.#socket.pause()
    const outcome = this.tunnel.hold(held => {
      this.#stopWaiting = undefined
      if (typeof held === 'string') return this.cut(held)
      this.#open(held)
      this.#socket.resume()
    })
    if (typeof outcome === 'string') this.cut(outcome)
    else this.#stopWaiting = outcome
  }

  /** Ends it: there is nobody to talk to. A visitor that is cut sees a reset, never an end. */
  cut(code: ErrorCode): void {
    this.#join.fail(code)
  }

  #open(upstream: TunnelUpstream): void {
    const stream = upstream.open(this.#join)
    if (typeof stream === 'string') return this.cut(stream)
    this.#stream = stream
    this.#join.useStream(stream)
    if (this.#first !== undefined) stream.write(this.#first)
  }

  #closed(): void {
    this.#stopWaiting?.()
    this.#host.rawEnded(this, this.#join.failure)
  }
}
