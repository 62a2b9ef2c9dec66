// Contract between the server and the connections of its clients, for every wire.

import type { ExchangeCounts } from '../../accelerator.ts'
import type { ErrorCode, TunnelError } from '../../errors.ts'
import type { Endpoint } from '../../socket.ts'
import type { QuotaOwner } from '../limits/quotas.ts'
import type { Tunnel } from '../tunnels/tunnel.ts'

/** The byte counts of a raw visitor's connection at its end. */
export interface RawEnd {
  readonly durationMs: number
  /** The number of bytes that the visitor sent and the server passed on. */
  readonly bytesIn: number
  /** The number of bytes that the visitor was sent. */
  readonly bytesOut: number
  readonly error?: ErrorCode
}

/** The description of a request in reports to clients. */
export interface Asked {
  /** The host in lower case, without port. */
  readonly host: string
  readonly method: string
  readonly target: string
}

/** How a request arrived, for reports to clients. */
export interface AskedBy {
  readonly address: string
  /** The time in milliseconds that the request waited in guards, in queues, or for a client. */
  readonly waitedMs: number
}

export interface ClientReports {
  readonly isWatching: boolean
  /**
   * The number of requests per second that are reported one by one. The others are only counted. `0`: all are
   * reported one by one.
   */
  readonly reportRate: number
  /** Whether the client has stopped reading its reports, so that none are sent. */
  readonly isBehind: boolean
  /** Reports a request. Returns the number for `finished`; 0 when the client wants no reports, or does not read them. */
  begun(tunnel: Tunnel, asked: Asked, by?: AskedBy): number
  /** Reports the numbers of requests that started and ended without reports of their own. */
  counted(counts: ExchangeCounts): void
  /** Reports that the request became a WebSocket; `id` is the result of `begun`. */
  switched(tunnel: Tunnel, id: number): void
  /**
   * Reports the end of a request, with `durationMs` since its beginning and the `bytes` of the response; `id` is the
   * result of `begun`.
   */
  finished(
    tunnel: Tunnel,
    id: number,
    status: number,
    durationMs: number,
    bytes: number,
    error?: ErrorCode,
    reason?: string,
  ): void
  /** Reports a raw visitor that is sent to the origin. Returns the number for `rawEnded`. */
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
  /** The number that the client registry gave this client: it counts up while the server runs. */
  number: number
  /** The program and version that the client reports. Empty if it reports none. */
  agent: string
  /** The time of connection, on the clock of `Date.now()`. */
  readonly connectedAtMs: number
  /** The smallest round trip so far, in milliseconds; 0 before the first measurement. */
  readonly roundTripMs: number
  /** The number of times a stream had to wait for credit from the client. */
  readonly creditStalls: number
  readonly wire: 'streams' | 'json'
  readonly remoteAddress: string
  readonly holder: QuotaOwner
  /** Asks the client for a sign of life. Resolves with whether it came in time. */
  checkAlive(): Promise<boolean>
  /** Notifies the client that the server stops, or that another program took over. The client finishes what is in progress. */
  drain(code: 'SERVER_DRAINING' | 'SERVER_REPLACED'): void
  close(code: ErrorCode): void
  /** Reports to the client that visitors cannot reach this host of its tunnel. */
  hostTroubled?(tunnel: Tunnel, host: string, error: TunnelError): void
  /** Called after a reload: revokes tunnels that the settings no longer allow, and notifies the client of changed limits. */
  reloaded(): void
  /** Sends the client reports of requests and raw visitors. */
  readonly reports: ClientReports
}
