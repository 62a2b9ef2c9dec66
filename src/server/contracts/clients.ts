// Contract between the server and the connections of its clients, whatever wire they speak.

import type { ExchangeCounts } from '../../accelerator.ts'
import type { ErrorCode, TunnelError } from '../../errors.ts'
import type { Endpoint } from '../../socket.ts'
import type { QuotaOwner } from '../limits/quotas.ts'
import type { Tunnel } from '../tunnels/tunnel.ts'

/** The end of a raw visitor's connection. */
export interface RawEnd {
  readonly durationMs: number
  /** Bytes of the visitor that were passed on. */
  readonly bytesIn: number
  /** Bytes that the visitor was sent. */
  readonly bytesOut: number
  readonly error?: ErrorCode
}

/** The description of a request in reports. */
export interface Asked {
  /** The host in lower case, without port. */
  readonly host: string
  readonly method: string
  readonly target: string
}

/** The description of how a request came, in reports. */
export interface AskedBy {
  readonly address: string
  /** The time since it came: in guards and queues, or waiting for a client. */
  readonly waitedMs: number
}

export interface ClientReports {
  readonly isWatching: boolean
  /** The number of requests per second that are reported one by one; the others are counted. `0`: all one by one. */
  readonly reportRate: number
  /** Whether the client does not read its reports. */
  readonly isBehind: boolean
  /** Reports a request. Returns the number for `finished`; 0 when the client wants no reports, or does not read them. */
  begun(tunnel: Tunnel, asked: Asked, by?: AskedBy): number
  /** Requests of its tunnels started and ended that were not reported one by one. */
  counted(counts: ExchangeCounts): void
  /** Reports that the request became a WebSocket; `id` as `begun` returned it. */
  switched(tunnel: Tunnel, id: number): void
  /** Reports the end, with `durationMs` since the beginning and the `bytes` of the response; `id` as `begun` returned it. */
  finished(
    tunnel: Tunnel,
    id: number,
    status: number,
    durationMs: number,
    bytes: number,
    error?: ErrorCode,
    reason?: string,
  ): void
  /** A raw visitor of the tunnel is in transit to the origin. Returns the number for `rawEnded`. */
  rawBegan(tunnel: Tunnel, source: Endpoint): number
  /** Reports that the connection of a raw visitor is closed. */
  rawEnded(tunnel: Tunnel, id: number, end: RawEnd): void
}

export const NO_REPORTS: ClientReports = {
  isWatching: false,
  reportRate: 0,
  isBehind: false,
  begun: () => 0,
  counted() {},
  switched() {},
  finished() {},
  rawBegan: () => 0,
  rawEnded() {},
}

export interface ClientConnection {
  /** Counts up, in this server's run; the registry gives it. */
  number: number
  /** The agent that the client names. Empty if it names none. */
  agent: string
  /** The time of the connection on the clock of `Date.now()`. */
  readonly connectedAtMs: number
  /** The smallest round trip so far; 0: not measured. */
  readonly roundTripMs: number
  /** Streams that had to wait for its credit, so far. */
  readonly creditStalls: number
  readonly wire: 'streams' | 'json'
  readonly remoteAddress: string
  readonly holder: QuotaOwner
  /** Resolves with whether the client gave a sign of life in time. */
  checkAlive(): Promise<boolean>
  /** The server stops, or another program has taken over: tells the client, which finishes what is in progress. */
  drain(code: 'SERVER_DRAINING' | 'SERVER_REPLACED'): void
  close(code: ErrorCode): void
  /** Visitors do not get to this host of a tunnel of its own. */
  hostTroubled?(tunnel: Tunnel, host: string, error: TunnelError): void
  /** The server works by other settings now: gives up what they do not allow, and tells the client what changed. */
  reloaded(): void
  /** The reports of its tunnels' requests and raw visitors. */
  readonly reports: ClientReports
}
