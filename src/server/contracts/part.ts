// Contract between the server and its optional parts. The server knows no part by name: who makes it installs them, in the order in
// which requests pass their layers.

import type { ServerSettings } from '../settings.ts'
import type { Clock } from './clock.ts'
import type { Layer } from './layer.ts'

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
  /** The settings are others: what was made of those before is made anew. */
  reloaded?(): void
}
