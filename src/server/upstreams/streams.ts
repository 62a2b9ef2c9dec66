// An upstream on a session: a pool of byte streams to one tunnel's origin, kept between requests.

import type { ErrorCode } from '../../errors.ts'
import type { ByteStream, StreamHandler } from '../../session/byte-stream.ts'
import type { Session } from '../../session/session.ts'
import type { Endpoints } from '../../socket.ts'
import { networkOf } from '../../wire/ip-address.ts'
import { encodeProxyV1, encodeProxyV2 } from '../../wire/proxy-protocol.ts'
import type { Reserved } from '../contracts/lane.ts'
import type { SessionLanes } from '../contracts/laning.ts'
import type { PeerTerms, StreamsApps, StreamsServer } from '../contracts/streams-context.ts'
import {
  DEAD_EXCHANGE,
  type Exchange,
  type Rewrite,
  type TunnelUpstream,
  type Visit,
} from '../contracts/upstream.ts'
import type { ConnectionLogins } from '../limits/connection-logins.ts'
import { type Taker, Takers } from '../limits/takers.ts'
import { visitorOf } from '../limits/visitor-hop.ts'
import { goesApart, PooledStream } from './pooled-stream.ts'

/** The state that the streams of one tunnel at one client share. */
export interface StreamsContext {
  readonly session: Session
  /** The idle streams of all tunnels of the client. */
  readonly idle: IdleStreams
  /** Replaces the session if the app speaks HTTP/2 or another server has the tunnel. Then there are no lanes. */
  readonly apps?: StreamsApps | undefined
  /** The lanes of the session, if it has any. */
  readonly lanes?: SessionLanes | undefined
  readonly tunnel: number
  readonly server: StreamsServer
  /** Whether the tunnel has other clients, where a failed request may be tried. */
  readonly isShared: boolean
  /** The Host and Origin that the client wants for its app. */
  readonly rewrite: Rewrite | undefined
  /** The PROXY header that each raw visitor's stream begins with. */
  readonly proxyProtocol: 1 | 2 | undefined
  /** How requests go to the server that has the tunnel. `undefined` if this server has it. */
  readonly peer?: PeerTerms | undefined
  /** Whether the tunnel was revoked, so that nothing more is sent to it. */
  isStopped: boolean
}

export class StreamsUpstream implements TunnelUpstream {
  readonly wire = 'streams'
  readonly #context: StreamsContext
  /** Idle streams, the most recently used last: those used least reach their idle time and close. */
  readonly #idle: PooledStream[] = []
  /**
   * The streams reserved for the next request of one visitor's connection, by that connection. The one that waited
   * longest is first.
   */
  readonly #private = new Map<ConnectionLogins, PooledStream>()
  readonly #takers = new Takers()
  #openCount = 0

  constructor(context: StreamsContext) {
    this.#context = context
  }

  get inFlight(): number {
    return this.#openCount - this.#idle.length - this.#private.size
  }

  stop(): void {
    const { session, tunnel } = this.#context
    this.#context.isStopped = true
    session.resetStreams(tunnel, tunnel + 1, 'CLIENT_GONE')
  }

  begin(visit: Visit): Exchange {
    const isApart = goesApart(visit.head, this.#context)
    const visitor = visitorOf(visit, this.#context.rewrite)
    const pooled = (isApart ? undefined : this.#take(visit.logins)) ?? this.#open(visitor, isApart)
    if (pooled === undefined) {
      visit.fail(this.#refusal, [])
      return DEAD_EXCHANGE
    }
    this.#taken(visitor, pooled)
    return pooled.begin(visit)
  }

  reserve(visit: Visit): Reserved | undefined {
    // Each request to a pool chooses its client again.
    const { isShared, apps, lanes } = this.#context
    if (isShared || apps !== undefined || lanes?.isReady() !== true) return undefined
    const fit = this.#idle.findLast(one => one.isLendable)
    if (fit !== undefined) this.dropIdle(fit)
    const visitor = visitorOf(visit, this.#context.rewrite)
    const pooled = fit ?? this.#open(visitor)
    if (pooled !== undefined) this.#taken(visitor, pooled)
    pooled?.reserve()
    return pooled
  }

  open(handler: StreamHandler, address: string, endpoints: Endpoints | undefined): ByteStream | ErrorCode {
    const { session, tunnel, idle, proxyProtocol, isStopped } = this.#context
    const visitor = networkOf(address)
    const stream = isStopped ? undefined : idle.open(session, tunnel, handler, visitor, this.#takers)
    if (stream === undefined) return this.#refusal
    const taker = { giveWay: () => stream.giveUp('TUNNEL_BUSY') }
    this.#taken(visitor, taker)
    stream.gone = () => this.#left(visitor, taker)
    if (proxyProtocol !== undefined) {
      const route = endpoints && { transport: 'tcp' as const, ...endpoints }
      stream.write(proxyProtocol === 1 ? encodeProxyV1(route) : encodeProxyV2(route))
    }
    return stream
  }

  get #refusal(): ErrorCode {
    return this.#context.session.isClosed || this.#context.isStopped ? 'CLIENT_GONE' : 'TUNNEL_BUSY'
  }

  #taken(visitor: string, taker: Taker): void {
    if (taker instanceof PooledStream) taker.visitor = visitor
    if (this.#takers.isEmpty) this.#context.idle.taken.add(this.#takers)
    this.#takers.add(visitor, taker)
  }

  #left(visitor: string, taker: Taker): void {
    this.#takers.delete(visitor, taker)
    if (this.#takers.isEmpty) this.#context.idle.taken.delete(this.#takers)
  }

  /** Called when the exchange is over and the stream can be used again. */
  release(pooled: PooledStream): void {
    this.#left(pooled.visitor, pooled)
    this.#context.idle.add(pooled)
    if (!pooled.isPrivate) this.#idle.push(pooled)
    else if (pooled.logins?.keep(pooled) === true) this.#private.set(pooled.logins, pooled)
    else pooled.leave()
  }

  /** Called when a stream without an exchange ended. */
  dropIdle(pooled: PooledStream): void {
    this.#context.idle.delete(pooled)
    const { logins } = pooled
    if (logins !== undefined) {
      logins.forget(pooled)
      this.#private.delete(logins)
      return
    }
    const index = this.#idle.indexOf(pooled)
    if (index !== -1) this.#idle.splice(index, 1)
  }

  closed(pooled: PooledStream): void {
    this.#left(pooled.visitor, pooled)
    this.#openCount--
  }

  #take(logins?: ConnectionLogins): PooledStream | undefined {
    const own = logins && this.#private.get(logins)
    if (own !== undefined) {
      this.dropIdle(own)
      return own
    }
    const pooled = this.#idle.pop()
    if (pooled !== undefined) this.#context.idle.delete(pooled)
    return pooled
  }

  #open(visitor: string, isApart = false): PooledStream | undefined {
    const { idle, server } = this.#context
    const { maxStreams } = server.limits
    if (this.#openCount >= maxStreams) {
      const [longest = this.#idle[0]] = this.#private.values()
      if (longest !== undefined) longest.giveWay()
      else if (!idle.makeRoomFor(visitor, this.#takers)) return undefined
    }
    if (this.#openCount >= maxStreams) return undefined
    const pooled = new PooledStream(this, this.#context, this.#takers, visitor)
    if (pooled.open(isApart) === undefined) return undefined
    this.#openCount++
    return pooled
  }
}

export class IdleStreams {
  /** The visitors that wait for a stream, the longest wait first. */
  readonly #waiting = new Set<Taker>()
  /** The tunnels with open streams: which visitors have them. */
  readonly taken: Set<Takers> = new Set<Takers>()
  #isMakingRoom = false

  add(idle: Taker): void {
    this.#waiting.add(idle)
  }

  delete(idle: Taker): void {
    this.#waiting.delete(idle)
  }

  /** Opens a stream. `undefined` if there is no room, or the session is gone. */
  open(
    session: Pick<Session, 'open' | 'isClosed'>,
    tunnel: number,
    handler: StreamHandler,
    visitor: string,
    own: Takers,
  ): ByteStream | undefined {
    // A visitor that gave way may ask again before the visitor it gave way to.
    if (this.#isMakingRoom) return undefined
    const stream = session.open(tunnel, handler)
    if (stream !== undefined || session.isClosed) return stream
    const [oldest] = this.#waiting
    if (oldest !== undefined) oldest.giveWay()
    else if (!this.makeRoomFor(visitor, own, this.taken)) return undefined
    return session.open(tunnel, handler)
  }

  /** Makes room for a visitor, as `Takers.makeRoomFor`. */
  makeRoomFor(visitor: string, own: Takers, among?: Iterable<Takers>): boolean {
    this.#isMakingRoom = true
    try {
      return own.makeRoomFor(visitor, among)
    } finally {
      this.#isMakingRoom = false
    }
  }
}
