// Contract: one connection to the server, from dial to loss. Implementations: streams-connection.ts, parts/json-wire/client/.

import type { ErrorCode, TunnelError } from '../../errors.ts'
import type { UnreportedRequests, Wishes } from '../../wire/control.ts'
import type { TunnelSettings } from '../tunnels/tunnel-settings.ts'

/** The name or port to request now, which may differ from the settings. */
export interface Wish {
  readonly name: string | undefined
  readonly port: number | undefined
  /** The secret of an earlier grant, which proves the same client. */
  readonly resume: string | undefined
  /** The options for the parts of the server. Default none. */
  readonly wishes?: Wishes
}

export interface Registration {
  readonly tunnel: number
  readonly name: string
  readonly url: string
  /** The other possible URLs, best first, because existing servers of the JSON wire do not know their own port. Default none. */
  readonly otherUrls?: readonly string[]
  /** The public port of a `tcp` or `udp` tunnel. */
  readonly port?: number
  /** The secret that proves the same client after a reconnect. Absent on the JSON wire, which has none. */
  readonly resume?: string
  /** The features that the server applies, as in `Granted` of the streams wire. */
  readonly features?: readonly string[]
  /** The protocol between server and app. `undefined` for HTTP/1.1. */
  readonly protocol?: 'h2c' | 'h2'
  /** The secret of probes on the JSON wire, in place of `resume`. */
  readonly probeSecret?: string
}

/** A report that a visitor's request has started. */
export interface RequestSeen {
  /** The id of the request, which the report of its response repeats. */
  readonly id: number
  readonly tunnel: string
  readonly host?: string
  readonly method: string
  readonly path: string
  /** The address of the visitor, if the server reports it. */
  readonly visitor?: string
  /** The time in milliseconds that the request waited at the server. */
  readonly waitedMs?: number
}

/**
 * A report that an exchange ended. `durationMs` is counted from its request head; `bytes` are those of the response,
 * with its head.
 */
export interface ResponseSeen {
  readonly id: number
  readonly status: number
  readonly durationMs: number
  readonly bytes: number
  readonly error?: ErrorCode
  readonly reason?: string
}

/** A report that a raw connection of a visitor was sent to the origin. */
export interface VisitorSeen {
  /** The id of the connection, which the report of its end repeats. */
  readonly id: number
  readonly tunnel: string
  readonly remoteAddress: string
  readonly remotePort: number
}

export interface VisitorGone {
  readonly id: number
  readonly durationMs: number
  readonly bytesIn: number
  readonly bytesOut: number
  readonly error?: ErrorCode
}

/** Receives the events of a connection. `closed` is the last call, exactly once. */
export interface ConnectionEvents {
  request(report: RequestSeen): void
  /** Called when the request with this id became a WebSocket. */
  switched(id: number): void
  response(report: ResponseSeen): void
  requests(counts: UnreportedRequests): void
  /** Called when the server revoked the tunnel with this number. */
  revoked(tunnel: number, error: TunnelError): void
  /** Called when visitors cannot reach a host of this tunnel. The tunnel stays. */
  hostTroubled(tunnel: number, error: TunnelError): void
  /** Called when the tunnel has another URL. */
  moved(tunnel: number, url: string): void
  visitorConnected(report: VisitorSeen): void
  visitorDisconnected(report: VisitorGone): void
  /** Called for a failure that the connection survives, such as an origin that is down. */
  error(error: TunnelError): void
  /** Called when the server stops: requests in progress finish, then the connection closes. */
  leaving(code: ErrorCode): void
  closed(error: TunnelError): void
}

/** A connection that has agreed on a wire with the server. */
export interface Connection {
  readonly wire: 'streams' | 'json'
  /** Requests a tunnel. Rejects with the server's refusal (NAME_TAKEN, PORT_TAKEN, …), or the reason why the connection ended. */
  register(tunnel: TunnelSettings, wish: Wish): Promise<Registration>
  /** Releases a tunnel. Its open requests continue for up to `drainTimeoutMs`; the connection stays open. */
  release(registration: Registration): void
  /** Releases all tunnels. Resolves once no visitor is left, after `drainTimeoutMs`, or when the connection is closed. */
  drain(): Promise<void>
  /** Tells the server whether the origin of a tunnel can take visitors. */
  health(registration: Registration, isHealthy: boolean): void
  /** Sends the changed guard of a tunnel, because links were revoked. */
  guard?(registration: Registration, tunnel: TunnelSettings): Promise<void>
  /** Asks for streams of a private service, for connections that programs opened here. */
  dial?(registration: Registration, count: number): void
  /** Turns reports of visitors and their requests on or off. Each report costs the server a message. */
  watch(on: boolean, rate: number): void
  /** Ends the connection unless a sign of life arrives in time. Used after the machine slept. */
  checkAlive(withinMs: number): void
  /** The smallest round trip to the server, in milliseconds. 0: not measured. */
  readonly roundTripMs: number
  /** Releases all tunnels and closes in good order. Open requests are cut. */
  leave(): Promise<void>
  /** Cuts the connection; `closed` follows. */
  terminate(): void
}

/** Connects to the server and agrees on a wire. Rejects with a TunnelError. */
export type Connect = (events: ConnectionEvents, signal: AbortSignal) => Promise<Connection>
