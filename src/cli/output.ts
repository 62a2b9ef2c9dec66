// Contract: the output of a run, for a person or a program. Implementations: outputs/terminal.ts, outputs/plain.ts,
// outputs/json.ts.

import type { TunnelKind } from '../wire/tunnel-kind.ts'

/**
 * The events of the command line. The `type` and field names are what `--json` prints, so they are public: they are added,
 * never renamed. docs/cli.md lists them.
 */
export type CliEvent =
  | { readonly type: 'connecting'; readonly server: string }
  | ReadyEvent
  | {
      readonly type: 'request'
      readonly id: number
      /** The requested host of a wildcard tunnel. */
      readonly host?: string
      readonly method: string
      readonly path: string
      readonly service?: string
    }
  | UpgradedEvent
  | ResponseEvent
  | {
      readonly type: 'visitorConnected'
      readonly id: number
      readonly tunnel: string
      readonly remoteAddress: string
      readonly remotePort: number
      readonly service?: string
    }
  | VisitorDisconnectedEvent
  | { readonly type: 'disconnected'; readonly code?: string; readonly message?: string }
  | { readonly type: 'reconnecting'; readonly attempt: number; readonly delayMs: number }
  | { readonly type: 'connected'; readonly url: string; readonly subdomain: string; readonly wire: string }
  | { readonly type: 'origin'; readonly origin: string; readonly isUp: boolean; readonly service?: string }
  | {
      readonly type: 'notice'
      readonly code: string
      readonly message: string
      /** The names of a certificate. */
      readonly names?: readonly string[]
    }
  | {
      readonly type: 'error'
      readonly code: string
      readonly message: string
      readonly service?: string
      /** The names of a certificate that was not issued. */
      readonly names?: readonly string[]
      /** The earliest time of the next order: ISO 8601, UTC. */
      readonly retryAt?: string
      /** Whether an earlier certificate is still used. */
      readonly hasCertificate?: boolean
    }
  | ServiceEvent
  | { readonly type: 'removed'; readonly service: string }
  | ConfiguredEvent
  | ConfigErrorEvent
  | SuppressedEvent
  | DrainingEvent
  | TotalsEvent
  | ListeningEvent
  | {
      readonly type: 'connection'
      readonly subdomain: string
      readonly wire: string
      readonly remoteAddress: string
      /** The name of the token. */
      readonly token?: string
      /** Set to `connect` if the client connected to a private service. */
      readonly kind?: 'connect'
    }
  | {
      readonly type: 'disconnection'
      readonly subdomain: string
      readonly reason: string
      /** Set to `connect` if the client had connected to a private service. */
      readonly kind?: 'connect'
    }
  | RefusedEvent

/** A server accepts clients and visitors. */
export interface ListeningEvent {
  readonly type: 'listening'
  readonly url: string
  readonly port: number
  /** The port of TLS tunnels. */
  readonly tlsPort?: number
  readonly domains: readonly string[]
}

/** A request to the public URL succeeded; or none did for too long, which an earlier notice said. Comes once. */
export interface ReadyEvent {
  readonly type: 'ready'
  readonly kind: TunnelKind
  readonly url: string
  readonly subdomain: string
  readonly wire: string
  readonly origin: string
  readonly server: string
  /** The round trip to the server, in milliseconds. Left out if not measured. */
  readonly roundTripMs?: number
  /** Whether the server runs in this process, for this machine only. */
  readonly isEmbedded: boolean
  /** The URL of the inspector with its token: only for this user. */
  readonly inspector?: string
  /** Whether `url` is the connecting end, on this machine, of another client's private service. */
  readonly isEnd?: boolean
}

/** A service of the configuration file has an address. Comes again when the address changes. */
export interface ServiceEvent {
  readonly type: 'service'
  readonly service: string
  readonly kind: string
  readonly url: string
  readonly origin: string
}

/** A configuration file is now used. */
export interface ConfiguredEvent {
  readonly type: 'configured'
  readonly file: string
  readonly services: number
  /** The number of services of the file that the server refused. */
  readonly refused?: number
  /** The URL of the inspector with its token: only for this user. */
  readonly inspector?: string
}

/** A fault of the configuration file. */
export interface ConfigErrorEvent {
  readonly type: 'configError'
  readonly file: string
  readonly line?: number
  readonly column?: number
  readonly message: string
}

/** A WebSocket was opened. */
export interface UpgradedEvent {
  readonly type: 'upgraded'
  readonly id: number
  readonly host?: string
  readonly method: string
  readonly path: string
  /** The service, from the `up` command only. */
  readonly service?: string
}

export interface ResponseEvent {
  readonly type: 'response'
  readonly id: number
  readonly host?: string
  readonly method: string
  readonly path: string
  readonly status: number
  readonly durationMs: number
  readonly bytes: number
  readonly error?: string
  /** The reason in detail: the fault of the app's response, or the text of a guard of the server (`server` only). */
  readonly reason?: string
  /** The name of a webhook's event or GraphQL operation, with the inspector only. */
  readonly event?: string
  /** The service, from the `up` command only. */
  readonly service?: string
  /** The name of the tunnel, from the `server` command only. */
  readonly subdomain?: string
}

/** A client was refused. From the `server` command only. */
export interface RefusedEvent {
  readonly type: 'refused'
  readonly code: string
  readonly remoteAddress: string
  readonly wire: string
  /** The number of refusals with this code since the last line about it. */
  readonly count: number
}

/** A connection of a raw tunnel was closed. */
export interface VisitorDisconnectedEvent {
  readonly type: 'visitorDisconnected'
  readonly id: number
  readonly tunnel: string
  readonly remoteAddress: string
  readonly remotePort: number
  readonly durationMs: number
  readonly bytesIn: number
  readonly bytesOut: number
  readonly error?: string
  /** The service, from the `up` command only. */
  readonly service?: string
}

/** Counts events without a line of their own, because there were too many in this second. */
export interface SuppressedEvent {
  readonly type: 'suppressed'
  /** The number of requests that started, and of those that ended. */
  readonly started: number
  readonly requests: number
  /** The number of connections to raw tunnels. */
  readonly opened: number
  readonly connections: number
  /** The number of failed ones. */
  readonly errors: number
  /** The number of events of other types. */
  readonly others: number
}

/** The command has begun to end. */
export interface DrainingEvent {
  readonly type: 'draining'
  readonly requests: number
  /** The number of connections of raw tunnels, if there are any. */
  readonly connections?: number
}

export interface TotalsEvent {
  readonly type: 'totals'
  readonly requests: number
  /** The number of connections to raw tunnels, if there are any. */
  readonly connections?: number
  readonly errors: number
  readonly bytes: number
  readonly durationMs: number
}

/** The flags of the output. */
export interface OutputWish {
  readonly isJson: boolean
  /** The maximum number of lines per second; `0`: no limit. Default: by the kind of output. */
  readonly logRate: number | undefined
  /** Whether to print no lines about visitors and clients. */
  readonly isQuiet: boolean
}

/** A key and its effect, such as `['o', 'open']`. */
export type OfferedKey = readonly [key: string, what: string]

export interface Output {
  event(event: CliEvent): void
  /** Prints finished lines for a person, such as a QR code. */
  block(text: string): void
  /** Shows keys and their effects, while the run lasts. Only a terminal does. */
  offer?(keys: readonly OfferedKey[]): void
  /** Leaves the screen as a shell expects it. No call may follow. */
  close(): void
}

/** The destination of an output. Text comes in whole lines, except for the status line of a terminal. */
export interface Sink {
  write(text: string): void
  /** The width of the terminal. */
  readonly columns: number
}
