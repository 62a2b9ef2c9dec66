// Contract: what a user or a program sees of a run. Implementations: outputs/terminal.ts, outputs/plain.ts, outputs/json.ts.

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
      /** An earlier one goes on serving. */
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
      /** The client connected to a private service. */
      readonly kind?: 'connect'
    }
  | {
      readonly type: 'disconnection'
      readonly subdomain: string
      readonly reason: string
      /** `connect` if the client had connected to a private service. */
      readonly kind?: 'connect'
    }
  | RefusedEvent

/** A server takes clients and visitors. */
export interface ListeningEvent {
  readonly type: 'listening'
  readonly url: string
  readonly port: number
  /** The port of TLS tunnels. */
  readonly tlsPort?: number
  readonly domains: readonly string[]
}

/** A request through the public side came back, or none did for too long, which a notice said before. Comes once. */
export interface ReadyEvent {
  readonly type: 'ready'
  readonly kind: TunnelKind
  readonly url: string
  readonly subdomain: string
  readonly wire: string
  readonly origin: string
  readonly server: string
  /** The round trip to the server. Left out: not measured. */
  readonly roundTripMs?: number
  /** The server runs in this process, for this machine only. */
  readonly isEmbedded: boolean
  /** The URL of the inspector with its token: only for this user. */
  readonly inspector?: string
  /** Whether `url` is the end on this machine of a private service of another client. */
  readonly isEnd?: boolean
}

/** A service of the configuration file has an address. Comes again when it has another. */
export interface ServiceEvent {
  readonly type: 'service'
  readonly service: string
  readonly kind: string
  readonly url: string
  readonly origin: string
}

/** A configuration file is in force. */
export interface ConfiguredEvent {
  readonly type: 'configured'
  readonly file: string
  readonly services: number
  /** Services of the file that could not be had. */
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

/** A WebSocket is open. */
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
  /** The details of the reason: the fault of the app's response, or the text of a guard of the server (`server` only). */
  readonly reason?: string
  /** The name of a webhook's event or GraphQL operation, with the inspector only. */
  readonly event?: string
  /** The service, from the `up` command only. */
  readonly service?: string
  /** The name of the tunnel, from the `server` command only. */
  readonly subdomain?: string
}

/** A client was refused: from the `server` command only. */
export interface RefusedEvent {
  readonly type: 'refused'
  readonly code: string
  readonly remoteAddress: string
  readonly wire: string
  /** The number of times with this code since its last line. */
  readonly count: number
}

/** A connection of a raw tunnel is closed. */
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

/** Events that had no line of their own, as there were too many in this second. */
export interface SuppressedEvent {
  readonly type: 'suppressed'
  /** Requests that started, and those that ended. */
  readonly started: number
  readonly requests: number
  /** Connections to raw tunnels. */
  readonly opened: number
  readonly connections: number
  /** The number of failed ones. */
  readonly errors: number
  /** The number of events of other types. */
  readonly others: number
}

/** The end started. */
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
  /** Lines a second; `0`: all. Default: by the kind of output. */
  readonly logRate: number | undefined
  /** No lines for what visitors and clients do. */
  readonly isQuiet: boolean
}

/** A key and its effect, such as `['o', 'open']`. */
export type OfferedKey = readonly [key: string, what: string]

export interface Output {
  event(event: CliEvent): void
  /** Lines that are ready to be shown to a human, such as a QR code. */
  block(text: string): void
  /** Shows keys and what they do, as long as the run lasts. Only a terminal does. */
  offer?(keys: readonly OfferedKey[]): void
  /** Leaves the screen as a shell expects it. No call follows. */
  close(): void
}

/** The receiver of an output. Text comes in whole lines, except for the status line of a terminal. */
export interface Sink {
  write(text: string): void
  /** The width of the terminal. */
  readonly columns: number
}
