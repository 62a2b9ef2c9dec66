// Contract between a client and its optional parts. The client knows no part by name: who makes it installs them, in the order in
// which bytes for the app pass them.

import type { TunnelError } from '../../errors.ts'
import type { Probing } from '../health.ts'
import type { TunnelClientOptions } from '../options.ts'
import type { TextWire } from './wire.ts'

/**
 * Makes a part of a client. Called while the client is made; `undefined`: its options do not ask for the part. Throws
 * `OPTION_INVALID`.
 */
export type Install = (client: PartClient) => Part | undefined

/** What a part may use of its client. */
export interface PartClient {
  readonly options: TunnelClientOptions
  /** Something failed that the part goes on after. */
  failed(error: TunnelError): void
}

/** All that a part may do. A part has the members that it needs. */
export interface Part {
  /** For servers that agree on no subprotocol. Without it the client leaves them. */
  readonly textWire?: TextWire
  /** Loads the health checks of apps that speak HTTP/2. Without it a tunnel to such an app cannot have any. */
  readonly loadHttp2Probing?: () => Promise<Probing>
}
