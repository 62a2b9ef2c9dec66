// Counters of a server, and their public form: published types must not lead to what the server is made of.

/** What `getStats()` returns. Counts since `start()`. */
export interface ServerStats {
  /** `operational` from `start()` to `stop()`. */
  readonly status: 'operational' | 'draining' | 'stopped'
  /** Version of this package. */
  readonly version: string
  /** Clients connected now. */
  readonly connections: number
  /** Clients that ever connected. */
  readonly totalConnections: number
  /** Names held now, those of reconnecting clients included. */
  readonly activeSubdomains: number
  /** Those names: only when asked for. */
  readonly subdomains?: readonly string[]
  /** Connections to TCP tunnels open now. */
  readonly rawVisitors: number
  /** Those that ever came. */
  readonly totalRawVisitors: number
  /** Datagrams of visitors that were dropped, by UDP tunnel. Since the tunnel was granted. */
  readonly droppedDatagramsByTunnel?: Readonly<Record<string, number>>
  /** Visitors of UDP tunnels now, by address and port. */
  readonly flows: number
  /**
   * Datagrams of visitors that were dropped: no client, no room for another flow, or more than the carrier could take.
   * What the kernel dropped before the server read it is not among them.
   */
  readonly droppedDatagrams: number
  /** Requests under way. */
  readonly pendingResponses: number
  /** Requests to tunnels, those under way included. */
  readonly requests: number
  /** Whole seconds since `start()`; 0 before it. */
  readonly uptimeSeconds: number
  /** As `uptimeSeconds`, in the form that existing monitoring of the JSON wire's servers reads. */
  readonly uptime: string
  /** Request bytes taken from visitors, heads included, and what raw connections that are over brought. */
  readonly bytesIn: number
  /** Answer bytes sent to visitors, heads included, and what raw connections that are over were sent. */
  readonly bytesOut: number
}

export class Counters {
  /** On the clock of `Date.now()`; 0 before the start. */
  startedAt = 0
  totalConnections = 0
  pending = 0
  requests = 0
  rawVisitors = 0
  droppedDatagrams = 0
  /** Of clients that are gone. */
  creditStalls = 0
  bytesIn = 0
  bytesOut = 0
}
