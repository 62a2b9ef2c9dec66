// Contract between the server and the connections of its clients, whatever wire they speak.

import type { ExchangeCounts } from '../../accelerator.ts'
import type { ErrorCode, TunnelError } from '../../errors.ts'
import type { Endpoint } from '../../socket.ts'
import type { Holder } from '../limits/holdings.ts'
import type { Tunnel } from '../tunnels/tunnel.ts'

/** How a raw visitor's connection ended. */
export interface RawEnd {
  readonly durationMs: number
  /** Bytes of the visitor that went on their way. */
  readonly bytesIn: number
  /** Bytes that the visitor was sent. */
  readonly bytesOut: number
  readonly error?: ErrorCode
}

/** What reports say of a request. */
export interface Asked {
  /** Lower-case, without port. */
  readonly host: string
  readonly method: string
  readonly target: string
}

/** What reports say of how it came. */
export interface AskedBy {
  /** Of the visitor. */
  readonly address: string
  /** Since it came: in guards and queues, or held until a client was back. */
  readonly waitedMs: number
}

/** What a client gets reports of. */
export interface ClientReports {
  /** It wants reports of requests. */
  readonly isWatching: boolean
  /** So many a second are reported one by one, the others by their number; `0`: all one by one. */
  readonly reportRate: number
  /** It does not read its reports. */
  readonly isBehind: boolean
  /** This was asked of the tunnel. Returns the number for `finished`; 0 when the client wants no reports, or does not read them. */
  begun(tunnel: Tunnel, asked: Asked, by?: AskedBy): number
  /** Requests of its tunnels began and ended that were not reported one by one. */
  counted(counts: ExchangeCounts): void
  /** It became a WebSocket; `id` as `begun` returned it. */
  switched(tunnel: Tunnel, id: number): void
  /** It is over: `durationMs` since it began, `bytes` of the answer; `id` as `begun` returned it. */
  finished(
    tunnel: Tunnel,
    id: number,
    status: number,
    durationMs: number,
    bytes: number,
    error?: ErrorCode,
    reason?: string,
  ): void
  /** A raw visitor of the tunnel is on its way to the origin. Returns the number for `rawEnded`, likewise. */
  rawBegan(tunnel: Tunnel, source: Endpoint): number
  /** Its connection is closed. */
  rawEnded(tunnel: Tunnel, id: number, end: RawEnd): void
}

/** For a client that gets none. */
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

/** One connected client. */
export interface ClientConnection {
  /** Counts up, in this server's run; the desk gives it. */
  number: number
  /** What it says it is; `''`: nothing. */
  agent: string
  /** On the clock of `Date.now()`. */
  readonly connectedAtMs: number
  /** The smallest round trip so far; 0: not measured. */
  readonly roundTripMs: number
  /** Streams that had to wait for its credit, so far. */
  readonly creditStalls: number
  readonly wire: 'streams' | 'json'
  /** Where it dials from: behind trusted proxies, as they say. */
  readonly remoteAddress: string
  /** Whose connection it is. */
  readonly holder: Holder
  /** Resolves with whether the client gave a sign of life in time. */
  checkAlive(): Promise<boolean>
  /** The server stops, or another program has taken over: tells the client, which finishes what is under way. */
  drain(code: 'SERVER_DRAINING' | 'SERVER_REPLACED'): void
  /** Tells the client why, and closes. */
  close(code: ErrorCode): void
  /** Visitors do not get to this host of a tunnel of its own. */
  hostTroubled?(tunnel: Tunnel, host: string, error: TunnelError): void
  /** The server works by other settings now: gives up what they do not allow, and tells the client what changed. */
  reloaded(): void
  /** Of its tunnels' requests and raw visitors. */
  readonly reports: ClientReports
}
