// Counters of a server, and their public form.

/** What `getStats()` returns. Counts since `start()`. */
export interface ServerStats {
  readonly status: 'operational' | 'draining' | 'stopped'
  readonly version: string
  /** Clients connected now. */
  readonly connections: number
  readonly totalConnections: number
  /** Names held now, those of reconnecting clients included. */
  readonly activeSubdomains: number
  /** Those names: only when asked for. */
  readonly subdomains?: readonly string[]
  /** Requests under way. */
  readonly pendingResponses: number
  readonly requests: number
  readonly uptimeSeconds: number
  /** As `uptimeSeconds`, in the form that existing monitoring of the JSON wire's servers reads. */
  readonly uptime: string
  /** Request bytes taken from visitors, heads included. */
  readonly bytesIn: number
  /** Answer bytes sent to visitors, heads included. */
  readonly bytesOut: number
}

export class Counters {
  totalConnections = 0
  pending = 0
  requests = 0
  bytesIn = 0
  bytesOut = 0
}
