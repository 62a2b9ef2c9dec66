// Upstream over a session: a pool of byte streams to one tunnel's origin, kept between requests.

import type { ErrorCode } from '../../errors.ts'
import type { Stream, StreamHandler } from '../../session/stream.ts'
import type { Endpoints } from '../../socket.ts'
import { encodeProxyV1, encodeProxyV2 } from '../../wire/proxy-protocol.ts'
import type { Reserved } from '../lane.ts'
import { DEAD_EXCHANGE, type Exchange, type TunnelUpstream, type Visit } from '../upstream.ts'
import type { ConnectionLogins } from './connection-logins.ts'
import { goesApart, PooledStream, type StreamPool } from './pooled-stream.ts'
import type { StreamsContext } from './streams-context.ts'

export class StreamsUpstream implements TunnelUpstream, StreamPool {
  readonly wire = 'streams'
  readonly #context: StreamsContext
  /** Idle streams, the most recently used last: the least used ones run into their idle time and close. */
  readonly #idle: PooledStream[] = []
  /** Those that wait for the next request of one visitor's connection; the one that waited longest first. */
  readonly #private = new Map<ConnectionLogins, PooledStream>()
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
    const pooled = (isApart ? undefined : this.#take(visit.logins)) ?? this.#open(isApart)
    if (pooled === undefined) {
      visit.fail(this.#refusal, [])
      return DEAD_EXCHANGE
    }
    return pooled.begin(visit)
  }

  reserve(): Reserved | undefined {
    // In a pool each request is its own choice.
    if (this.#context.isShared || this.#context.apps !== undefined) return undefined
    if (this.#context.trunk.current === undefined) {
      this.#context.trunk.request()
      return undefined
    }
    const fit = this.#idle.findLast(one => one.isLendable)
    if (fit !== undefined) this.dropIdle(fit)
    const pooled = fit ?? this.#open()
    pooled?.reserve()
    return pooled
  }

  open(handler: StreamHandler, endpoints: Endpoints | undefined): Stream | ErrorCode {
    const { session, tunnel, idle, proxyProtocol, isStopped } = this.#context
    const stream = isStopped ? undefined : idle.open(session, tunnel, handler)
    if (stream === undefined) return this.#refusal
    if (proxyProtocol !== undefined) {
      const route = endpoints && { transport: 'tcp' as const, ...endpoints }
      stream.write(proxyProtocol === 1 ? encodeProxyV1(route) : encodeProxyV2(route))
    }
    return stream
  }

  get #refusal(): ErrorCode {
    return this.#context.session.isClosed || this.#context.isStopped ? 'CLIENT_GONE' : 'TUNNEL_BUSY'
  }

  /** The exchange is over and the stream is good for another. */
  release(pooled: PooledStream): void {
    this.#context.idle.add(pooled)
    if (!pooled.isPrivate) this.#idle.push(pooled)
    else if (pooled.logins?.keep(pooled) === true) this.#private.set(pooled.logins, pooled)
    else pooled.leave()
  }

  /** A stream that no exchange uses ended. */
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

  /** The stream is gone. */
  closed(): void {
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

  #open(isApart = false): PooledStream | undefined {
    const [longest] = this.#private.values()
    if (this.#openCount >= this.#context.limits.maxStreams) longest?.giveWay()
    if (this.#openCount >= this.#context.limits.maxStreams) return undefined
    const pooled = new PooledStream(this, this.#context)
    if (pooled.open(isApart) === undefined) return undefined
    this.#openCount++
    return pooled
  }
}
