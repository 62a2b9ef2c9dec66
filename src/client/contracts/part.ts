// Contract between a client and its optional parts. The client names no part: its caller installs them, in the order
// in which bytes for the app pass them.

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

/** Makes a part. Called while the client is made. `undefined` if the options do not ask for the part. Throws `OPTION_INVALID`. */
export type Install = (client: PartClient) => Part | undefined

export interface PartClient {
  readonly options: TunnelClientOptions
  /** Reports a failure after which the part continues. */
  failed(error: TunnelError): void
}

/** The members that a part may have. Each part has only those that it needs. */
export interface Part {
  /** The wire for servers that negotiate no subprotocol. Without it, the client refuses such servers. */
  readonly textWire?: TextWire
  /** Loads the health checks of apps that speak HTTP/2. Without it, a tunnel to such an app can have none. */
  readonly loadHttp2Probing?: () => Promise<Probing>
  /**
   * Makes the origin of an app that has no address. `undefined` if the part has none for these options. Throws `OPTION_INVALID`.
   */
  originOf?(options: OriginOptions): Origin | undefined
  /** Returns the tunnel in the form in which the server is asked for it. Throws `OPTION_INVALID` or `NAME_INVALID`. */
  settle?(tunnel: TunnelSettings): TunnelSettings
  /**
   * Called when the client wants this tunnel. Returns `undefined` if the part has nothing to do for it. Throws `OPTION_INVALID`.
   */
  follow?(tunnel: TunnelSettings): TunnelPart | undefined
  readonly lanes?: Laning
  /** Starts before the client dials. If it rejects, the client does not connect. */
  start?(): Promise<void>
  /** Called when the client ends. It may start again. */
  stop?(): void
  /** The number of reports of visitors per second that the part wants. `undefined` if it wants none. */
  readonly reportRate?: number
  /** The receiver of these reports. `undefined` while there is none. */
  readonly reports?: ReportsFollower | undefined
  /** The URL of the part's page for the user of this machine. */
  readonly url?: string | undefined
  /** Watches exchanges, for programs. */
  watch?(watched: Watched): Watchable
}

export interface TunnelPart {
  /** Puts the part before one of the tunnel's origins. `protocol`: that of the app, if it is not HTTP/1.1. */
  wrap?(origin: Origin, protocol: TunnelSettings['protocol']): Origin
  /** Returns the options for parts of the server, for each registration. */
  wishes?(): Wishes
  /** Called when the server granted the tunnel, or moved it to another URL. `probeSecret` proves the server's own probes. */
  granted?(name: string, url: string, probeSecret: string | undefined): void
  /** Called when the client does not want the tunnel any more. */
  dropped?(): void
}

/** Which exchanges to watch, and for how long. */
export interface Watched {
  /** Returns the name of the tunnel. `undefined` for all tunnels. */
  readonly tunnel: () => string | undefined
  readonly over: AbortSignal
}

/** Gets the server's reports of visitors. */
export interface ReportsFollower {
  requested(report: RequestSeen): void
  counted(begun: number): void
  /** Returns the name of the webhook's event or GraphQL operation. `undefined` if none is known. */
  responded(report: ResponseSeen): string | undefined
  visitorConnected(report: VisitorSeen): void
  visitorLeft(report: VisitorGone): void
  /** Called when the connection to the server is gone, and with it further reports of these requests. */
  forget(): void
}
