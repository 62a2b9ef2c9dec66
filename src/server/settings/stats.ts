// Counters of a server, and their public form, whose types must not expose the server's internals.

/** The statistics that `getStats()` returns. Counts since `start()`. */
export interface ServerStats {
  /** The status: `operational` from `start()` to `stop()`. */
  readonly status: 'operational' | 'draining' | 'stopped'
  /** The version of this package. */
  readonly version: string
  /** Clients connected now. */
  readonly connections: number
  /** Clients that ever connected. */
  readonly totalConnections: number
  /** The number of names in use, including those of reconnecting clients. */
  readonly activeSubdomains: number
  /** The names, only on request. */
  readonly subdomains?: readonly string[]
  /** Connections to TCP tunnels open now. */
  readonly rawVisitors: number
  /** The total number of connections to TCP tunnels. */
  readonly totalRawVisitors: number
  /** The dropped datagrams of visitors for each UDP tunnel, since it was granted. */
  readonly droppedDatagramsByTunnel?: Readonly<Record<string, number>>
  /** Visitors of UDP tunnels now, by address and port. */
  readonly flows: number
  /**
   * Datagrams of visitors that were dropped: no client, no room for another flow, or more than the carrier could take. Drops of
   * the kernel before the server read them are not among them.
   */
  readonly droppedDatagrams: number
  /** The number of requests in progress. */
  readonly pendingResponses: number
  /** Requests to tunnels, those in progress included. */
  readonly requests: number
  /** The whole seconds since `start()`; 0 before it. */
  readonly uptimeSeconds: number
  /** The same as `uptimeSeconds`, in the form that existing monitoring of the JSON wire's servers reads. */
  readonly uptime: string
  /** The number of request bytes from visitors, heads included, and from closed raw connections. */
  readonly bytesIn: number
  /** The number of response bytes to visitors, heads included, and to closed raw connections. */
  readonly bytesOut: number
}

export class Counters {
  /** The time of the start, on the clock of `Date.now()`; 0 before it. */
  startedAt = 0
  totalConnections = 0
  pending = 0
  requests = 0
  rawVisitors = 0
  droppedDatagrams = 0
  /** The number of credit stalls of clients that have left. */
  creditStalls = 0
  bytesIn = 0
  bytesOut = 0
}
