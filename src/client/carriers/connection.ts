// Contract: one connection to the server, from dial to loss. Implementations: streams-connection.ts, parts/json-wire/client/.

import type { ErrorCode, TunnelError } from '../../errors.ts'
import type { UnreportedRequests, Wishes } from '../../wire/control.ts'
import type { TunnelSettings } from '../tunnels/tunnel-settings.ts'

/** The name or port to request now, which may differ from the settings. */
export interface Wish {
  readonly name: string | undefined
  readonly port: number | undefined
  /** Proves the holder of an earlier grant. */
  readonly resume: string | undefined
  /** The options for the parts of the server. Default none. */
  readonly wishes?: Wishes
}

export interface Registration {
  readonly tunnel: number
  readonly name: string
  readonly url: string
  /** The other possible URLs, best first: existing servers of the JSON wire do not know their own port. Default none. */
  readonly otherUrls?: readonly string[]
  /** The public port of a `tcp` or `udp` tunnel. */
  readonly port?: number
  /** Proves the same holder after a reconnect; absent on the JSON wire, which knows no such thing. */
  readonly resume?: string
  /** The parts of the registration that are in force, as `Granted` of the streams wire has them. */
  readonly features?: readonly string[]
  /** The protocol that the server speaks to the app. `undefined` for HTTP/1.1. */
  readonly protocol?: 'h2c' | 'h2'
  /** The secret of probes on the JSON wire, instead of `resume`: a probe of the public side that proves it gets a response. */
  readonly probeSecret?: string
}

/** A report that a visitor's request started. */
export interface RequestSeen {
  /** The same in the report of its response. */
  readonly id: number
  readonly tunnel: string
  readonly host?: string
  readonly method: string
  readonly path: string
  /** Address of the visitor, when the server tells it. */
  readonly visitor?: string
  /** The time at the server, before it came here. */
  readonly waitedMs?: number
}

/** A report that an exchange is over. `durationMs` from its head to its end, `bytes` of the response with its head. */
export interface ResponseSeen {
  readonly id: number
  readonly status: number
  readonly durationMs: number
  readonly bytes: number
  readonly error?: ErrorCode
  readonly reason?: string
}

/** A report that a raw connection of a visitor is in transit to the origin. */
export interface VisitorSeen {
  /** The report of the connection's end has this value also. */
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

/** The events of a connection. `closed` is the last call, exactly once. */
export interface ConnectionEvents {
  request(report: RequestSeen): void
  /** The request of this number became a WebSocket. */
  switched(id: number): void
  response(report: ResponseSeen): void
  requests(counts: UnreportedRequests): void
  /** The server took the tunnel of this number back. */
  revoked(tunnel: number, error: TunnelError): void
  /** Visitors do not get to a host of this tunnel; the tunnel stays. */
  hostTroubled(tunnel: number, error: TunnelError): void
  /** Visitors find it at another URL. */
  moved(tunnel: number, url: string): void
  visitorConnected(report: VisitorSeen): void
  visitorDisconnected(report: VisitorGone): void
  /** Called for a failure that the connection survives, such as an origin that is down. */
  error(error: TunnelError): void
  /** The server is stopping: requests in progress finish, then the connection closes. */
  leaving(code: ErrorCode): void
  closed(error: TunnelError): void
}

/** A connection that speaks a wire with the server. */
export interface Connection {
  readonly wire: 'streams' | 'json'
  /** Asks for a tunnel. Rejects with the server's refusal (NAME_TAKEN, PORT_TAKEN, …) or why the connection ended. */
  register(tunnel: TunnelSettings, wish: Wish): Promise<Registration>
  /** Releases a tunnel; the connection goes on, and so does what is in progress, for up to `drainTimeoutMs`. */
  release(registration: Registration): void
  /** Releases everything. Resolves once no visitor is left, or after `drainTimeoutMs`, or when the connection is closed. */
  drain(): Promise<void>
  /** Says whether the origin of a tunnel can take visitors. */
  health(registration: Registration, isHealthy: boolean): void
  /** The guard of a tunnel has changed: links were revoked. */
  guard?(registration: Registration, tunnel: TunnelSettings): Promise<void>
  /** Asks for streams of a private service, for connections that came here. */
  dial?(registration: Registration, count: number): void
  /** Whether events of visitors and their requests are wanted: they cost the server a message each. */
  watch(on: boolean, rate: number): void
  /** Ends the connection unless a sign of life arrives in time: after the machine slept. */
  checkAlive(withinMs: number): void
  /** The smallest round trip to the server, in milliseconds. 0: not measured. */
  readonly roundTripMs: number
  /** Releases everything and closes in good order; open requests are cut. */
  leave(): Promise<void>
  /** Cuts it; `closed` follows. */
  terminate(): void
}

/** Dials the server and speaks a wire with it; rejects with a TunnelError. */
export type Connect = (events: ConnectionEvents, signal: AbortSignal) => Promise<Connection>
