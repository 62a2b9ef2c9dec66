// Contract: what the inspector's API shows of an exchange. The page, the commands and programs read these types; the
// store keeps entries of its own (entry.ts). Everything here is JSON.

import type { ErrorCode } from './errors.ts'

/**
 * The kind of an exchange. It is `http` until the response shows another: 101 to a WebSocket, or `text/event-stream`.
 * Connections and flows are rows.
 */
export type ExchangeKind = 'http' | 'websocket' | 'sse' | 'tcp' | 'tls' | 'udp'

/** The state of an exchange. It is `failed` if it was cut or the server refused it; `code` says why. */
export type ExchangeState = 'open' | 'done' | 'failed'

/** The seen and the stored bytes of something. */
export interface Kept {
  readonly totalBytes: number
  readonly keptBytes: number
}

/** A line of a head or of trailers, in order, spelled as sent. */
export interface Field {
  readonly name: string
  /** The value, masked if it is a secret and the request does not have `reveal`. Characters are bytes (Latin-1). */
  readonly value: string
  /** Whether it is Authorization, Cookie, Set-Cookie, Proxy-Authorization, or a field that the user named. */
  readonly isSecret?: true
}

/** A body, without chunk framing. Its bytes are at `request.body` and `response.body`. */
export interface Body extends Kept {
  /** Whether the last byte was seen. `false`: the message continues, or was cut off. */
  readonly isComplete: boolean
  /** The value of Content-Type. Empty without one. */
  readonly type: string
  /** The value of Content-Encoding. Empty without one. */
  readonly encoding: string
}

/** A request or a response. */
export interface Message {
  /**
   * The first line and the fields up to the blank line, byte for byte as sent, each character a byte; secrets masked as in
   * `fields`.
   */
  readonly head: string
  readonly fields: readonly Field[]
  readonly body: Body
  readonly trailers: readonly Field[]
}

/** Milliseconds, to the hundredth. */
export interface Times {
  /** The time from the first byte of the request to its last. `undefined`: it goes on. */
  readonly requestMs?: number
  /** The time at the server before the request came here: it waited for a client, or in a queue. Absent when not known. */
  readonly waitingMs?: number
  /**
   * The time from the last byte of the request to the first byte of the response, or from the first byte of the request if the
   * response came earlier.
   */
  readonly appMs?: number
  /** The time from the first byte of the response to its last. */
  readonly transferMs?: number
  /** The time from the first byte of the request to the end. Rows of connections: from open to close. */
  readonly totalMs?: number
}

/** The result of the check of a webhook's signature. */
export interface Verified {
  readonly provider: 'standard' | 'stripe' | 'github' | 'slack' | 'shopify'
  readonly isValid: boolean
  /** The reason for a wrong signature, in a few words: `no signature`, `too old`, `does not match`, `the body was cut`. */
  readonly reason?: string
}

export interface ExchangeRow {
  /** The id, in decimal digits. Later ones are greater numbers. */
  readonly id: string
  readonly kind: ExchangeKind
  readonly state: ExchangeState
  /** The time of its first byte, ISO 8601 with milliseconds. */
  readonly startedAt: string
  /** The public name: `shop`, `tcp-20000`. */
  readonly tunnel: string
  /** The address to which the client sent it, such as `localhost:3000`. Empty for what the server refused. */
  readonly service: string
  /** The method. Empty for connections and flows. */
  readonly method: string
  /** The path with its query, as sent. Empty for connections and flows. */
  readonly path: string
  /** The Host that the app got. */
  readonly host: string
  /** The status. 0 without a response. */
  readonly status: number
  /** The reason phrase as sent. May be empty. */
  readonly reason: string
  /** The code of the failure or refusal. */
  readonly code?: ErrorCode
  /** The server refused it before it came here: there are no bytes of it. */
  readonly isRefused: boolean
  /** The server asked whether the app responds. Filters without `is:probe` leave these out. */
  readonly isProbe: boolean
  /** Address of the visitor, when the server tells it. */
  readonly visitor?: string
  readonly requestBody: Kept
  readonly responseBody: Kept
  /** The Content-Type of the response. Empty without one. */
  readonly type: string
  readonly times: Times
  /** The WebSocket messages and server-sent events; `keptBytes` and `totalBytes` count their content. */
  readonly frames: Kept & { readonly total: number; readonly kept: number }
  /** The raw bytes of a connection or flow to the service. */
  readonly bytesIn: number
  readonly bytesOut: number
  /** The exchange that this replay repeats. */
  readonly replayOf?: string
  readonly isPinned: boolean
  /** The user's words about it; empty without. */
  readonly note: string
  readonly verified?: Verified
  /** The name of a webhook's event (`invoice.paid`, `push`) or of a GraphQL operation (`query Products`). */
  readonly event?: string
  /** The capture fell behind: bytes of it were not kept although they were within the bounds. */
  readonly isIncomplete: boolean
}

export interface ExchangeDetail extends ExchangeRow {
  /** The request. Absent if the server refused it, and for connections and flows. */
  readonly request?: Message
  /** Heads of 1xx responses in front of the response, each character a byte. A 101 is the response itself. */
  readonly interim: readonly string[]
  readonly response?: Message
  /** The agreed subprotocol and extensions of a WebSocket. */
  readonly websocket?: { readonly protocol: string; readonly isCompressed: boolean }
  /** The meaning of `code`, the fault of the app's response, and what to do. */
  readonly explanation?: string
  /** Whether it can be sent again; otherwise the code that says why not. */
  readonly replayable: true | ErrorCode
}

/** A WebSocket message or a server-sent event. */
export interface Frame extends Kept {
  /** The position from 0, in the order of arrival, with both directions counted together. */
  readonly index: number
  /** Milliseconds since `startedAt`. */
  readonly atMs: number
  readonly from: 'visitor' | 'app'
  readonly type: 'text' | 'binary' | 'ping' | 'pong' | 'close' | 'event'
  /** The content of a text message or an event (its `data`), or the reason of a close. */
  readonly text?: string
  /** The content of any other message. */
  readonly base64?: string
  readonly closeCode?: number
  /** Whether it was sent with permessage-deflate; content and bytes are those after inflating. */
  readonly isCompressed?: true
  /** The `event` field of an event. */
  readonly event?: string
  readonly eventId?: string
}

/** A session of the inspector, for the head of the page and its empty state. */
export interface Session {
  readonly version: string
  readonly startedAt: string
  readonly tunnels: readonly {
    readonly name: string
    readonly kind: 'http' | 'tcp' | 'tls' | 'udp'
    readonly url: string
    /** The address of the app, such as `localhost:3000`. */
    readonly service: string
  }[]
  /** The bounds, as in `InspectOptions`. */
  readonly bounds: Bounds
  readonly used: {
    readonly memoryBytes: number
    readonly exchanges: number
    readonly frames: number
    readonly pinned: number
  }
  /** The amounts since the start that the capture lost although it should have stored them. */
  readonly dropped: {
    /** The oldest ones, when a bound was reached. */
    readonly exchanges: number
    /** Bytes that came faster than they could be read here. */
    readonly bytes: number
    /** Requests that passed uncaptured while it sampled. */
    readonly unsampled: number
  }
  /** Whether only some requests are captured, because more come than a person can read. */
  readonly isSampling: boolean
  /** The path of the SQLite file that stores entries across restarts. */
  readonly store?: string
}

/** The bounds in force; each is an option of the same name. */
export interface Bounds {
  readonly memoryBytes: number
  readonly maxBodyBytes: number
  readonly maxExchanges: number
  readonly maxFrames: number
  /** Requests a second above which it samples, after a burst of `maxExchanges`. */
  readonly rate: number
}

/** A line of `GET events`. */
export type InspectEvent =
  /** An exchange started or changed. At most about ten such events a second for each exchange. */
  | { readonly type: 'exchange'; readonly exchange: ExchangeRow }
  | { readonly type: 'frame'; readonly id: string; readonly frame: Frame }
  | { readonly type: 'removed'; readonly ids: readonly string[] }
  /** These exchanges changed and do not match the filter (any more). */
  | { readonly type: 'unmatched'; readonly ids: readonly string[] }
  | { readonly type: 'session'; readonly session: Session }
  /** Every 15 s without another line. */
  | { readonly type: 'ping' }
  /** The reader was too slow, and lines are missing: read the list again. */
  | { readonly type: 'behind' }

/** The changes to a request before it is sent again. Everything else stays byte for byte. */
export interface Edit {
  readonly method?: string
  /** The path with its query. */
  readonly path?: string
  /**
   * All fields, in order. Content-Length and Transfer-Encoding are left out and follow from the body, as does Content-Encoding where
   * `body` is text. A value that still is the
   * mask stands for the captured one.
   */
  readonly fields?: readonly { readonly name: string; readonly value: string }[]
  /** The body, as text (UTF-8) or base64. In a form, a value that still is the mask stands for the captured one as well. */
  readonly body?: string
  readonly bodyBase64?: string
}

/** The body of `POST exchanges/:id/replay`. */
export interface ReplayRequest {
  readonly edit?: Edit
  /** The number of times, 1 to 100, one after the other. Default 1. */
  readonly times?: number
  /**
   * Whether to sign again with the service's provider (`verify`). If it is not a webhook: `REPLAY_IMPOSSIBLE`. `false`:
   * unchanged. Default: fresh for a webhook whose signature was valid, because that would be too old by now.
   */
  readonly resign?: boolean
}

/** The response to a replay, once all repetitions have ended. */
export interface ReplayResult {
  readonly replays: readonly {
    readonly exchange: ExchangeRow
    /**
     * The comparison with the first response. `same`: status and body are equal. `fixed`: an error (5xx or none) became none.
     * `regressed`: the other way round.
     */
    readonly verdict: 'same' | 'fixed' | 'regressed' | 'different'
  }[]
}

/** A line of a text, or a run of them: `same`, only in `a`, only in `b`. */
export interface DiffPart {
  readonly op: 'same' | 'removed' | 'added'
  readonly text: string
}

/** Two versions of a value, and whether they are equal. */
export interface Compared<Value> {
  readonly a: Value
  readonly b: Value
  readonly isSame: boolean
}

/**
 * The differences of two messages. Secrets are masked, and equal masks may hide different values: `isSame` compares the real
 * ones.
 */
export interface MessageDiff {
  /** The method and path, or the status and reason. */
  readonly first: Compared<string>
  /** The fields of `a` in their order, then those only in `b`. A name that comes twice is two entries. */
  readonly fields: readonly (Compared<string | null> & { readonly name: string })[]
  readonly body: {
    readonly isSame: boolean
    /** The kind of the comparison. `binary`: no parts. `cut`: one of them was not kept whole, and what is kept is compared. */
    readonly kind: 'text' | 'json' | 'binary' | 'cut'
    readonly parts: readonly DiffPart[]
  }
}

/** The body of the response to `GET diff?a&b`. */
export interface Diff {
  readonly a: ExchangeRow
  readonly b: ExchangeRow
  readonly verdict: ReplayResult['replays'][number]['verdict']
  readonly request: MessageDiff
  readonly response: MessageDiff
}

/** The body of `POST wait`. */
export interface WaitRequest {
  /** The filter. Default: every exchange. */
  readonly filter?: string
  /** The longest wait, in milliseconds. Default 30,000; at most 600,000. If exceeded: 408 `WAIT_TIMEOUT`. */
  readonly timeoutMs?: number
  /**
   * The id of an exchange: earlier ones do not count, and later ones that have ended do. Default: those that end from now on.
   */
  readonly after?: string
}

/** The body of every response with a status of 400 or above. */
export interface ApiError {
  readonly error: { readonly code: ErrorCode; readonly message: string }
}

/** Stands for a secret. */
export const MASK = '••••••'
