// Contract between the server and its optional parts. The server knows no part by name: who makes it installs them, in the order in
// which requests pass their layers.

import type { ExchangeCounts, LaneExchange, LaneTerms } from '../../accelerator.ts'
import type { RequestHead } from '../../http/head.ts'
import type { Socket, SocketHandler } from '../../socket.ts'
import type { ServerSettings } from '../settings.ts'
import type { Clock } from './clock.ts'
import type { Layer, LayeredTunnel, ServedBy } from './layer.ts'

/** Makes a part of a server. Called while the server is made: no tunnel exists, and nothing is loaded that is not needed. */
export type Install = (server: PartServer) => Part

/** What a part may use of its server. */
export interface PartServer {
  /** As they are now. */
  readonly settings: ServerSettings
  readonly deadlines: Clock
  failed(error: Error): void
}

/** All that a part may do. A part has the members that it needs. */
export interface Part {
  /** For messages and tests. */
  readonly name: string
  /** Around the routing of each request to a tunnel. */
  readonly layer?: Layer
  /** The connection of a raw visitor with this part in front of it; `undefined`: as it is. */
  wrap?(socket: Socket, tunnel: LayeredTunnel, address: string): WrappedSocket | undefined
  /**
   * On what terms a lane may serve requests of this visitor, past the layers. `undefined`: on any. Default: a tunnel that has the
   * part's layer has no lanes.
   */
  lane?(asking: LaneAsking): LaneClause | 'none' | undefined
  /** While there are lanes, about four times a second. */
  harvest?(): void
  /** The settings are others: what was made of those before is made anew. */
  reloaded?(): void
}

export interface WrappedSocket {
  readonly socket: Socket
  /** What the events of the bare socket go to, and from there to `handler`. */
  handlerFor(handler: SocketHandler): SocketHandler
}

/** Who asks for a lane. */
export interface LaneAsking {
  readonly tunnel: LayeredTunnel
  readonly head: RequestHead
  /** Of the connection: a trusted proxy's, where `isProxy` says so. */
  readonly address: string
  readonly isProxy: boolean
  readonly served: ServedBy
}

/** What one part wants of a lane. The lane keeps to the clauses of all parts. */
export interface LaneClause {
  readonly terms?: Partial<Pick<LaneTerms, 'isForGets' | 'isMeasured' | 'isReported' | 'allotted' | 'log'>>
  began?(): void
  ended?(): void
  /** Exchanges that are over and were not reported one by one. */
  tally?(counts: ExchangeCounts): void
  /** One exchange is over, if exchanges are reported one by one. */
  exchanged?(exchange: LaneExchange): void
  /** Only with `isMeasured`: what was measured since the last time. */
  measured?(measures: Float64Array, bytesIn: number, bytesOut: number): void
  /** Only with a `log`. */
  logged?(lines: Uint8Array, count: number): void
}
