// The books of raw visitors, whatever carries their bytes: counts them, and reports them to their clients.

import type { ErrorCode } from '../../errors.ts'
import type { Socket, SocketHandler } from '../../socket.ts'
import type { ServerContext } from '../context/server-context.ts'
import type { ClientConnection } from '../contracts/clients.ts'
import type { RawFollower, WrappedSocket } from '../contracts/part.ts'
import { type RawVisit, type RawWay, type RawWish, UNHEARD } from '../contracts/raw-visit.ts'
import type { RawTaken, RawTaker } from '../contracts/servers.ts'
import { msSince } from '../routing/exchanges.ts'
import type { Tunnel } from '../tunnels/tunnel.ts'
import { RawVisitors } from './raw-visitors.ts'

/**
 * A raw connection may be silent without limit, such as that of a shell. After this time in milliseconds of silence,
 * the system asks whether the visitor's machine is still there.
 */
const KEEP_ALIVE_MS = 60_000

interface Entry {
  /** The client that gets reports about the visitor, and the visitor's number in them. */
  client: ClientConnection | undefined
  report: number
  followers: readonly RawFollower[]
}

/** Counts visits: each one begins and ends once; in between it is opened, unless it waits without success. */
export class RawVisits implements RawTaker {
  readonly context: ServerContext
  readonly #open = new Map<RawVisit, Entry>()
  readonly #visitors = new WeakMap<Tunnel, RawVisitors>()
  #passing = 0

  constructor(context: ServerContext) {
    this.context = context
  }

  wrap(socket: Socket, tunnel: Tunnel, address: string): WrappedSocket | undefined {
    return this.context.parts.wrap(socket, tunnel, address)
  }

  /** The number of visitors of tunnels of this server. */
  get count(): number {
    return this.#open.size
  }

  /** Whether there are no raw visitors here, and none in transit to another server. */
  get isIdle(): boolean {
    return this.#open.size === 0 && this.#passing === 0
  }

  passing(count: number): void {
    this.#passing += count
    if (this.isIdle) this.context.somethingEnded()
  }

  /** Takes a connection of a public port. `first`: bytes of the visitor that were already read. */
  accept(socket: Socket, wish: RawWish, first?: Uint8Array): SocketHandler {
    socket.keepAlive?.(KEEP_ALIVE_MS)
    const { servers } = this.context
    if (servers !== undefined) return servers.accept(socket, wish, this, first)
    const tunnel = wish.find()
    if (tunnel === undefined) {
      socket.terminate()
      return UNHEARD
    }
    const visitor = this.take(socket, tunnel, { first })
    visitor.start()
    return visitor.socketHandler
  }

  take(socket: Socket, tunnel: Tunnel, way: RawWay): RawTaken {
    const visitors = this.of(tunnel)
    const visitor = visitors.add(socket, way)
    return { socketHandler: visitor.socketHandler, start: () => visitor.start(visitors.refusalOf(visitor)) }
  }

  of(tunnel: Tunnel): RawVisitors {
    const known = this.#visitors.get(tunnel)
    if (known !== undefined) return known
    const visitors = new RawVisitors(tunnel, this)
    this.#visitors.set(tunnel, visitors)
    // The port of TLS tunnels belongs to the server, and private tunnels have none.
    if (tunnel.port === 0) tunnel.front = { drain() {}, release() {}, stop: code => visitors.cut(code) }
    return visitors
  }

  /** Called when the visitor has arrived. Its client may be away. */
  began(visit: RawVisit): void {
    this.context.counters.rawVisitors++
    const entry: Entry = { client: undefined, report: 0, followers: [] }
    this.#open.set(visit, entry)
    entry.followers = this.context.parts.followRaw(visit)
  }

  opened(visit: RawVisit): void {
    const entry = this.#open.get(visit)
    const { client } = visit
    if (entry === undefined || client === undefined) return
    entry.client = client
    for (const follower of entry.followers) follower.sent?.()
    entry.report = client.reports.rawBegan(visit.tunnel, visit.source)
  }

  /** Called when the visitor's connection is closed. `code` is the reason of a failure. */
  ended(visit: RawVisit, code: ErrorCode | undefined): void {
    const entry = this.#open.get(visit)
    if (entry === undefined) return
    this.#open.delete(visit)
    const { bytesIn, bytesOut, startedAt, tunnel } = visit
    const { counters } = this.context
    counters.bytesIn += bytesIn
    counters.bytesOut += bytesOut
    const durationMs = msSince(startedAt)
    const end = { durationMs, bytesIn, bytesOut, ...(code !== undefined && { error: code }) }
    entry.client?.reports.rawEnded(tunnel, entry.report, end)
    for (const follower of entry.followers) follower.ended?.(end)
    if (this.isIdle) this.context.somethingEnded()
  }
}
