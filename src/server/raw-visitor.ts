// One raw connection of a visitor: waits for the tunnel's client if it must, and is joined to a stream of it.

import type { ErrorCode } from '../errors.ts'
import { Join } from '../join.ts'
import type { Stream } from '../session/stream.ts'
import type { Endpoint, Endpoints, Socket, SocketHandler } from '../socket.ts'
import type { RawVisit, RawVisitHost } from './raw-visits.ts'
import type { Tunnel } from './tunnels.ts'
import type { TunnelUpstream } from './upstream.ts'

export class RawVisitor implements RawVisit {
  readonly tunnel: Tunnel
  readonly source: Endpoint
  readonly startedAt: number = performance.now()
  readonly #host: RawVisitHost
  readonly #socket: Socket
  readonly #join: Join
  readonly #left: () => void
  readonly #first: Uint8Array | undefined
  readonly #endpoints: Endpoints | undefined
  #stream: Stream | undefined
  /** Bytes on the stream that are not the visitor's: a PROXY header. */
  #headerBytes = 0
  #stopWaiting: (() => void) | undefined

  /** `left`: its connection is closed. `first`: bytes of the visitor that were read already. */
  constructor(socket: Socket, tunnel: Tunnel, host: RawVisitHost, left: () => void, first?: Uint8Array) {
    this.#socket = socket
    this.tunnel = tunnel
    this.#endpoints = socket.endpoints()
    this.source = this.#endpoints?.source ?? { address: socket.remoteAddress, port: 0 }
    this.#host = host
    this.#left = left
    this.#first = first
    this.#join = new Join('CANCELLED', () => this.#closed())
    this.#join.useSocket(socket)
  }

  /** What the events of the socket go to. */
  get socketHandler(): SocketHandler {
    return this.#join.socketHandler
  }

  get bytesIn(): number {
    return this.#stream === undefined ? 0 : this.#stream.sentBytes - this.#headerBytes
  }

  get bytesOut(): number {
    return this.#stream?.deliveredBytes ?? 0
  }

  /** Goes on its way, or waits; with a `refusal` it is cut instead. */
  start(refusal?: ErrorCode): void {
    this.#host.began(this)
    if (refusal !== undefined) return this.cut(refusal)
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
    const stream = upstream.open(this.#join, this.#endpoints)
    if (typeof stream === 'string') return this.cut(stream)
    this.#stream = stream
    this.#headerBytes = stream.sentBytes
    if (this.#first !== undefined) stream.write(this.#first)
    this.#join.useStream(stream)
    this.#host.opened(this)
  }

  #closed(): void {
    this.#stopWaiting?.()
    this.#left()
    this.#host.ended(this, this.#join.failure)
  }
}
