// One raw connection of a visitor: waits for the tunnel's client if it must, and is joined to a stream of it.

import type { ErrorCode } from '../errors.ts'
import { Join } from '../join.ts'
import type { Stream } from '../session/stream.ts'
import type { Endpoint, Endpoints, Socket, SocketHandler } from '../socket.ts'
import type { ClientConnection } from './clients.ts'
import type { Member } from './member.ts'
import type { RawVisit, RawVisitHost } from './raw-visits.ts'
import type { Tunnel } from './tunnels.ts'

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
  /** Who serves it. */
  #member: Member | undefined
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
    this.#join = new Join('CANCELLED', true, () => this.#closed())
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

  get client(): ClientConnection | undefined {
    return this.#member?.client
  }

  /** Goes on its way, or waits; with a `refusal` it is cut instead. */
  start(refusal?: ErrorCode): void {
    this.#host.began(this)
    if (refusal !== undefined) return this.cut(refusal)
    const chosen = this.tunnel.choose({ address: this.source.address })
    if (typeof chosen === 'string') return this.cut(chosen)
    if (chosen !== undefined) return this.#open(chosen)
    this.#socket.pause()
    const outcome = this.tunnel.hold(held => {
      this.#stopWaiting = undefined
      const member = typeof held === 'string' ? undefined : this.tunnel.memberOf(held)
      if (member === undefined) return this.cut(typeof held === 'string' ? held : 'CLIENT_GONE')
      this.#open(member)
      this.#socket.resume()
    })
    if (typeof outcome === 'string') this.cut(outcome)
    else this.#stopWaiting = outcome
  }

  /** Ends it: there is nobody to talk to. A visitor that is cut sees a reset, never an end. */
  cut(code: ErrorCode): void {
    this.#join.fail(code)
  }

  /** At this member, or, when it has no room, at another one of a pool: nothing was sent yet. */
  #open(member: Member, tried?: Set<Member>): void {
    const stream = member.upstream?.open(this.#join, this.#endpoints) ?? 'CLIENT_GONE'
    if (typeof stream === 'string') {
      if (this.tunnel.pool === undefined) return this.cut(stream)
      const all = new Set(tried).add(member)
      const next = this.tunnel.choose({ address: this.source.address }, all)
      return typeof next === 'object' ? this.#open(next, all) : this.cut(stream)
    }
    this.#member = member
    this.#join.charge(member.holder)
    member.began()
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
    this.#member?.finished()
  }
}
