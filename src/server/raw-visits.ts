// The books of raw visitors, whatever carries their bytes: counts them, and tells the server's listeners and the client.

import type { ErrorCode } from '../errors.ts'
import type { Endpoint } from '../socket.ts'
import type { ClientConnection } from './clients.ts'
import type { TunnelServerEvents } from './options.ts'
import { msSince } from './serving.ts'
import type { Counters } from './stats.ts'
import type { Tunnel } from './tunnels.ts'

/** What is told of a raw visitor's connection. */
export interface RawVisit {
  readonly tunnel: Tunnel
  /** Who serves it, once it is opened. */
  readonly client: ClientConnection | undefined
  readonly source: Endpoint
  /** On the clock of `performance.now()`. */
  readonly startedAt: number
  /** Bytes of the visitor that went on their way. */
  readonly bytesIn: number
  /** Bytes that the visitor was sent. */
  readonly bytesOut: number
}

/** What a front of raw visitors tells. Each visit begins and ends once; in between it is opened, or waits in vain. */
export interface RawVisitHost {
  /** The visitor is there; whether its client is, too, is not known yet. */
  began(visit: RawVisit): void
  /** It is on its way to the origin. */
  opened(visit: RawVisit): void
  /** Its connection is closed; `code` says why, when it failed. */
  ended(visit: RawVisit, code: ErrorCode | undefined): void
}

/** What the books need of their server. */
export interface RawVisitsOwner {
  readonly counters: Counters
  connected(event: TunnelServerEvents['visitorConnected']): void
  disconnected(event: TunnelServerEvents['visitorDisconnected']): void
  /** The last one has ended. */
  noneLeft(): void
}

interface Entry {
  readonly id: number
  /** Who is told of it, under which number. */
  client: ClientConnection | undefined
  report: number
}

export class RawVisits implements RawVisitHost {
  readonly #owner: RawVisitsOwner
  readonly #open = new Map<RawVisit, Entry>()
  #lastId = 0

  constructor(owner: RawVisitsOwner) {
    this.#owner = owner
  }

  get count(): number {
    return this.#open.size
  }

  began(visit: RawVisit): void {
    const id = ++this.#lastId
    this.#open.set(visit, { id, client: undefined, report: 0 })
    this.#owner.counters.rawVisitors++
    this.#owner.connected({ id, ...facts(visit) })
  }

  opened(visit: RawVisit): void {
    const entry = this.#open.get(visit)
    const { client } = visit
    if (entry === undefined || client === undefined) return
    entry.client = client
    entry.report = client.rawBegan(visit.tunnel, visit.source)
  }

  ended(visit: RawVisit, code: ErrorCode | undefined): void {
    const entry = this.#open.get(visit)
    if (entry === undefined) return
    this.#open.delete(visit)
    const { bytesIn, bytesOut, startedAt, tunnel } = visit
    this.#owner.counters.bytesIn += bytesIn
    this.#owner.counters.bytesOut += bytesOut
    const durationMs = msSince(startedAt)
    const end = { durationMs, bytesIn, bytesOut, ...(code !== undefined && { error: code }) }
    entry.client?.rawEnded(tunnel, entry.report, end)
    this.#owner.disconnected({ id: entry.id, ...facts(visit), ...end })
    if (this.#open.size === 0) this.#owner.noneLeft()
  }
}

function facts({ tunnel, source }: RawVisit) {
  return { tunnel: tunnel.name, remoteAddress: source.address, remotePort: source.port }
}
