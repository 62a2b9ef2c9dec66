// Contract: one connection to the server, from dial to loss. Implementations: streams-connection.ts, json-connection.ts.

import type { ErrorCode, TunnelError } from '../errors.ts'

/** What registration gave. */
export interface Registration {
  readonly name: string
  readonly url: string
  /** Proves the same holder after a reconnect; absent on the JSON wire, which knows no such thing. */
  readonly resume?: string
}

/** A report that a visitor's request began. */
export interface RequestSeen {
  /** The same in the report of its answer. */
  readonly id: number
  readonly method: string
  readonly path: string
}

/** A report that an exchange is over. `durationMs` from its head to its end, `bytes` of the answer with its head. */
export interface ResponseSeen {
  readonly id: number
  readonly status: number
  readonly durationMs: number
  readonly bytes: number
  readonly error?: ErrorCode
}

/** What a connection tells its client. `closed` is the last call, exactly once. */
export interface ConnectionEvents {
  request(report: RequestSeen): void
  response(report: ResponseSeen): void
  /** Something failed that the connection survives, such as an origin that is down. */
  error(error: TunnelError): void
  /** The server is stopping: requests under way finish, then the connection closes. */
  leaving(code: ErrorCode): void
  closed(error: TunnelError): void
}

/** A connection that speaks a wire with the server. */
export interface Connection {
  readonly wire: 'streams' | 'json'
  /** Asks for a name. Rejects with NAME_TAKEN, NAME_INVALID, NAME_RESERVED or the reason the connection ended. */
  register(name: string, resume: string | undefined): Promise<Registration>
  /** Whether `request` and `response` events are wanted: they cost the server a message each. */
  watch(on: boolean): void
  /** Ends the connection unless a sign of life arrives in time: after the machine slept. */
  checkAlive(withinMs: number): void
  /** Gives the name back and closes in good order. */
  leave(): Promise<void>
  /** Cuts it; `closed` follows. */
  terminate(): void
}

/** Dials the server and speaks a wire with it; rejects with a TunnelError. */
export type Connect = (events: ConnectionEvents, signal: AbortSignal) => Promise<Connection>
