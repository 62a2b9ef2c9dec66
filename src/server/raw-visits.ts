// The books of raw visitors, whatever carries their bytes: counts them, and reports them to the server's listeners and to
// their clients.

import type { ErrorCode } from '../errors.ts'
import type { Endpoint } from '../socket.ts'
import type { ClientConnection } from './clients.ts'
import { msSince } from './exchanges.ts'
import type { Member } from './member.ts'
import type { Watched } from './observers.ts'
import type { ServerRoom } from './room.ts'
import type { Shapes } from './shaping.ts'
import type { Tunnel } from './tunnels.ts'
import type { VisitorGate } from './visitor-gate.ts'

/** What is reported of a raw visitor's connection. */
export interface RawVisit {
  readonly tunnel: Tunnel
  /** Of the visitor; see `Admittance`. */
  readonly address: string
  /** Serves it, once it is opened. */
  readonly client: ClientConnection | undefined
  /** The same for observers. */
  readonly served: Member['served']
  readonly source: Endpoint
  /** On the clock of `performance.now()`. */
  readonly startedAt: number
  /** Bytes of the visitor that went on their way. */
  readonly bytesIn: number
  /** Bytes that the visitor was sent. */
  readonly bytesOut: number
}

interface Entry {
  readonly id: number
  /** The client that gets reports of it, under which number. */
  client: ClientConnection | undefined
  report: number
  served: Member['served']
  readonly watched: Watched | undefined
}

/** Each visit begins and ends once; in between it is opened, or waits in vain. */
export class RawVisits {
  /** Where raw visitors find the member that takes them. */
  readonly gate: VisitorGate
  readonly #room: ServerRoom
  readonly #open = new Map<RawVisit, Entry>()
  #lastId = 0

  constructor(room: ServerRoom, gate: VisitorGate) {
    this.#room = room
    this.gate = gate
  }

  /** How fast the visitor may be; `undefined`: as fast as it goes. */
  shapesOf(tunnel: Tunnel, address: string): Shapes | undefined {
    return this.#room.shaping.of(tunnel, address)
  }

  get count(): number {
    return this.#open.size
  }

  /** The visitor is there; whether its client is, too, is not known yet. */
  began(visit: RawVisit): void {
    const id = ++this.#lastId
    const { tunnel, address } = visit
    const watched = this.#room.observers.began(tunnel.name, () => ({
      kind: tunnel.kind,
      address,
      method: '',
      target: '',
      host: '',
    }))
    this.#open.set(visit, { id, client: undefined, report: 0, served: {}, watched })
    this.#room.counters.rawVisitors++
    this.#room.emit('visitorConnected', { id, ...facts(visit) })
  }

  /** It is on its way to the origin. */
  opened(visit: RawVisit): void {
    const entry = this.#open.get(visit)
    const { client } = visit
    if (entry === undefined || client === undefined) return
    entry.client = client
    entry.served = visit.served
    entry.watched?.sent()
    entry.report = client.reports.rawBegan(visit.tunnel, visit.source)
  }

  /** Its connection is closed; `code` says why, when it failed. */
  ended(visit: RawVisit, code: ErrorCode | undefined): void {
    const entry = this.#open.get(visit)
    if (entry === undefined) return
    this.#open.delete(visit)
    const { bytesIn, bytesOut, startedAt, tunnel } = visit
    const { counters } = this.#room
    counters.bytesIn += bytesIn
    counters.bytesOut += bytesOut
    const durationMs = msSince(startedAt)
    const end = { durationMs, bytesIn, bytesOut, ...(code !== undefined && { error: code }) }
    entry.client?.reports.rawEnded(tunnel, entry.report, end)
    this.#room.metrics?.rawEnded(tunnel.name, bytesIn, bytesOut, code)
    entry.watched?.ended({
      status: 0,
      requestBytes: bytesIn,
      answerBytes: bytesOut,
      ...(code !== undefined && { code }),
      ...entry.served,
    })
    this.#room.emit('visitorDisconnected', { id: entry.id, ...facts(visit), ...end })
    if (this.#open.size === 0) this.#room.somethingEnded()
  }
}

function facts({ tunnel, source }: RawVisit) {
  return { tunnel: tunnel.name, remoteAddress: source.address, remotePort: source.port }
}
