// One raw connection of a visitor: waits for the tunnel's client if necessary, and is joined to one of the client's streams.

import type { ErrorCode } from '../../errors.ts'
import { Join } from '../../join.ts'
import type { Pass } from '../../plugin.ts'
import type { ByteStream } from '../../session/byte-stream.ts'
import type { Endpoint, Endpoints, Socket, SocketHandler } from '../../socket.ts'
import type { ClientConnection } from '../contracts/clients.ts'
import type { Judgement } from '../contracts/guarding.ts'
import type { RawVisit, RawWay } from '../contracts/raw-visit.ts'
import type { Taker } from '../limits/takers.ts'
import { judge } from '../routing/judging.ts'
import { keepOpen } from '../routing/keep-open.ts'
import type { Member } from '../tunnels/member.ts'
import type { Asking } from '../tunnels/pool.ts'
import type { Tunnel } from '../tunnels/tunnel.ts'
import { refusalCodeOf } from '../upstreams/answer.ts'
import type { RawVisits } from './raw-visits.ts'

export class RawVisitor implements RawVisit, Asking, Taker {
  readonly tunnel: Tunnel
  readonly source: Endpoint
  readonly startedAt: number = performance.now()
  readonly socketHandler: SocketHandler
  readonly #visits: RawVisits
  readonly #socket: Socket
  readonly #join: Join
  readonly #left: () => void
  readonly #way: RawWay
  readonly #endpoints: Endpoints | undefined
  #stream: ByteStream | undefined
  /** The size of the PROXY header on the stream, which the visitor did not send. */
  #headerBytes = 0
  #member: Member | undefined
  #stopWaiting: (() => void) | undefined
  /** The passes that guards gave. Their conditions are checked until the connection ends. */
  #passes: readonly Pass[] = []
  #stopKeeping: (() => void) | undefined

  /** Makes a visitor. `left` is called when this server has no more to do with it. */
  constructor(socket: Socket, tunnel: Tunnel, visits: RawVisits, left: () => void, way: RawWay = {}) {
    this.tunnel = tunnel
    this.#endpoints = socket.endpoints()
    this.source = this.#endpoints?.source ?? { address: socket.remoteAddress, port: 0 }
    this.#visits = visits
    this.#left = left
    this.#way = way
    this.#join = new Join('CANCELLED', true, () => this.#closed())
    const wrapped = visits.wrap(socket, tunnel, this.address)
    this.#socket = wrapped?.socket ?? socket
    this.socketHandler = wrapped?.handlerFor(this.#join.socketHandler) ?? this.#join.socketHandler
    this.#join.useSocket(this.#socket)
  }

  get address(): string {
    return this.source.address
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

  get served(): Member['served'] {
    return this.#member?.served ?? {}
  }

  /** Sends the visitor to a client, or makes it wait; with a `refusal`, cuts it. */
  start(refusal?: ErrorCode): void {
    this.#visits.began(this)
    if (refusal !== undefined) return this.cut(refusal)
    const judgement = judge(this.#visits.context, this.tunnel, this)
    if (judgement === undefined) return this.#choose()
    if (!(judgement instanceof Promise)) return this.#judged(judgement)
    this.#socket.pause()
    let isOver = false
    this.#stopWaiting = () => {
      isOver = true
    }
    void judgement.then(one => {
      if (isOver) return
      this.#stopWaiting = undefined
      this.#socket.resume()
      this.#judged(one)
    })
  }

  /** Applies the verdict of the guards. Raw bytes have no error page, so a refused visitor gets a reset. */
  #judged(judgement: Judgement): void {
    if (judgement.kind === 'pass') {
      this.#passes = judgement.passes
      this.#choose()
    } else
      this.cut(
        judgement.kind === 'refusal'
          ? (refusalCodeOf(judgement.refusal) ?? 'GUARD_REFUSED')
          : 'GUARD_REFUSED',
      )
  }

  #choose(): void {
    const chosen = this.tunnel.choose(this)
    if (typeof chosen === 'string') return this.#refuse(chosen)
    if (chosen.kind === 'member') return this.#open(chosen)
    this.#socket.pause()
    const outcome = chosen.hold(held => {
      this.#stopWaiting = undefined
      if (typeof held === 'string') return this.#refuse(held)
      this.#open(held)
      this.#socket.resume()
    })
    if (typeof outcome === 'string') this.cut(outcome)
    else this.#stopWaiting = outcome
  }

  /** Refuses the visitor, because no client of the tunnel on this server takes it. */
  #refuse(code: ErrorCode): void {
    const isElsewhere = code === 'CLUSTER_MOVED' || code === 'SERVER_DRAINING'
    if (this.#way.moved === undefined || !isElsewhere) return this.cut(code)
    this.#left()
    this.#visits.ended(this, code)
    this.#way.moved()
  }

  /**
   * Cuts the visitor, because no client serves it any more. It gets a reset, never FIN, so that its data does not look complete.
   */
  cut(code: ErrorCode): void {
    this.#join.fail(code)
  }

  giveWay(): void {
    this.cut('TUNNEL_BUSY')
  }

  /** Opens a stream at this member. If that has no room, tries another member of the pool: nothing was sent yet. */
  #open(member: Member, tried?: Set<Member>): void {
    const stream = member.upstream?.open(this.#join, this.address, this.#endpoints) ?? 'CLIENT_GONE'
    if (typeof stream === 'string') {
      if (this.tunnel.pool === undefined) return this.cut(stream)
      const all = new Set(tried).add(member)
      const next = this.tunnel.choose(this, all)
      if (typeof next === 'string' || next.kind === 'holding') return this.cut(stream)
      return this.#open(next, all)
    }
    this.#member = member
    this.#join.charge(member.holder)
    member.began()
    this.#stream = stream
    this.#headerBytes = stream.sentBytes
    this.#way.opened?.()
    if (this.#way.first !== undefined) stream.write(this.#way.first)
    this.#join.useStream(stream)
    this.#visits.opened(this)
    if (this.#passes.length > 0) this.#keepOpen()
  }

  #keepOpen(): void {
    const { guards } = this.tunnel.tunnels
    try {
      this.#stopKeeping = keepOpen(
        this.#passes,
        () => this.cut('GUARD_REFUSED'),
        cause => guards.fail(cause),
      )
    } catch (cause) {
      guards.fail(cause)
      this.cut('PLUGIN_FAILED')
    }
  }

  #closed(): void {
    this.#stopWaiting?.()
    this.#stopKeeping?.()
    this.#left()
    this.#visits.ended(this, this.#join.failure)
    this.#member?.finished()
  }
}
