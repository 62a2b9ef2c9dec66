// Contract between a client and its optional parts. The client knows no part by name: who makes it installs them, in the order in
// which bytes for the app pass them.

import type { TunnelError } from '../../errors.ts'
import type { Wishes } from '../../wire/control.ts'
import type { RequestSeen, ResponseSeen, VisitorGone, VisitorSeen } from '../carriers/connection.ts'
import type { OriginOptions, TunnelClientOptions } from '../options.ts'
import type { Origin } from '../origins/origin.ts'
import type { Probing } from '../tunnels/health.ts'
import type { TunnelSettings } from '../tunnels/tunnel-settings.ts'
import type { Laning } from './laning.ts'
import type { Watchable } from './watching.ts'
import type { TextWire } from './wire.ts'

/**
 * Makes a part of a client. Called while the client is made; `undefined`: its options do not ask for the part. Throws
 * `OPTION_INVALID`.
 */
export type Install = (client: PartClient) => Part | undefined

export interface PartClient {
  readonly options: TunnelClientOptions
  /** Reports a failure after which the part continues. */
  failed(error: TunnelError): void
}

/** All that a part may do. A part has the members that it needs. */
export interface Part {
  /** The wire for servers that negotiate no subprotocol. Without it the client leaves them. */
  readonly textWire?: TextWire
  /** Loads the health checks of apps that speak HTTP/2. Without it a tunnel to such an app cannot have any. */
  readonly loadHttp2Probing?: () => Promise<Probing>
  /** Makes the origin of an app that has no address. `undefined`: the part knows none for these options. Throws `OPTION_INVALID`. */
  originOf?(options: OriginOptions): Origin | undefined
  /** The tunnel as the server is asked for it. Throws `OPTION_INVALID` or `NAME_INVALID`. */
  settle?(tunnel: TunnelSettings): TunnelSettings
  /** The client wants this tunnel. Throws `OPTION_INVALID` for what cannot be used. `undefined`: nothing is to be done for it. */
  follow?(tunnel: TunnelSettings): TunnelPart | undefined
  readonly lanes?: Laning
  /** Starts before the client dials. Rejects with what the client cannot connect without. */
  start?(): Promise<void>
  /** The client ends; it may start again. */
  stop?(): void
  /** The number of reports of visitors per second that the part wants. `undefined` if it wants none. */
  readonly reportRate?: number
  /** Gets them; `undefined`: not yet. */
  readonly reports?: ReportsFollower | undefined
  /** The URL of its page for the user of this machine. */
  readonly url?: string | undefined
  /** Watches exchanges, for programs. */
  watch?(watched: Watched): Watchable
}

export interface TunnelPart {
  /** Puts the part before one of its origins. `protocol`: of the app, if it is not HTTP/1.1. */
  wrap?(origin: Origin, protocol: TunnelSettings['protocol']): Origin
  /** Returns the options for the parts of the server, for each registration. */
  wishes?(): Wishes
  /** The server granted it, or moved it to another URL. `probeSecret`: the server proves its own probes with it. */
  granted?(name: string, url: string, probeSecret: string | undefined): void
  /** The client does not want it any more. */
  dropped?(): void
}

/** The exchanges to watch, and their end. */
export interface Watched {
  /** Returns the name of the tunnel. `undefined` for all. */
  readonly tunnel: () => string | undefined
  readonly over: AbortSignal
}

/** Learns what the server reports of visitors. */
export interface ReportsFollower {
  requested(report: RequestSeen): void
  counted(begun: number): void
  /** Returns the name of the webhook's event or GraphQL operation. `undefined` if none is known. */
  responded(report: ResponseSeen): string | undefined
  visitorConnected(report: VisitorSeen): void
  visitorLeft(report: VisitorGone): void
  /** The connection to the server is gone: there will be no further reports of these. */
  forget(): void
}
