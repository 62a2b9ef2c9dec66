// Contract: the form of an exchange in the inspector's API. The page, the commands and programs read these types; the
// store has entries of its own (entry.ts). Everything is JSON.

import type { ErrorCode } from './errors.ts'

/**
 * The kind of an exchange. It is `http` until the response shows another: a 101 to a WebSocket, or
 * `text/event-stream`. Raw connections and UDP flows are exchanges too.
 */
export type ExchangeKind = 'http' | 'websocket' | 'sse' | 'tcp' | 'tls' | 'udp'

/** The state of an exchange. It is `failed` if it was cut or the server refused it; `code` says why. */
export type ExchangeState = 'open' | 'done' | 'failed'

/** The number of bytes that were seen, and of those that are stored. */
export interface Kept {
  readonly totalBytes: number
  readonly keptBytes: number
}

/** A line of a head or of trailers, spelled as sent. */
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

/** The times of an exchange, in milliseconds rounded to hundredths. */
export interface Times {
  /** The time from the first byte of the request to its last. `undefined` while it continues. */
  readonly requestMs?: number
  /** The time that the request waited at the server, for a client or in a queue. Absent if unknown. */
  readonly waitingMs?: number
  /**
   * The time from the last byte of the request to the first byte of the response, or from the first byte of the request if the
   * response came earlier.
   */
  readonly appMs?: number
  /** The time from the first byte of the response to its last. */
  readonly transferMs?: number
  /** The time from the first byte of the request to the end; for connections, from open to close. */
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
  /** The id in decimal digits. Later exchanges have greater numbers. */
  readonly id: string
  readonly kind: ExchangeKind
  readonly state: ExchangeState
  /** The time of the first byte, as ISO 8601 with milliseconds. */
  readonly startedAt: string
  /** The public name: `shop`, `tcp-20000`. */
  readonly tunnel: string
  /** The address to which the client sent it, such as `localhost:3000`. Empty if the server refused the request. */
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
  /** Whether the server refused the request, so that none of its bytes came here. */
  readonly isRefused: boolean
  /** Whether the server sent it to check the app. Filters without `is:probe` leave these out. */
  readonly isProbe: boolean
  /** The address of the visitor, if the server reports it. */
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
  /** The id of the exchange that this replay repeats. */
  readonly replayOf?: string
  readonly isPinned: boolean
  /** The user's note; empty without one. */
  readonly note: string
  readonly verified?: Verified
  /** The name of a webhook's event (`invoice.paid`, `push`) or of a GraphQL operation (`query Products`). */
  readonly event?: string
  /** Whether the capture fell behind, so that bytes within the limits are missing. */
  readonly isIncomplete: boolean
}

export interface ExchangeDetail extends ExchangeRow {
  /** The request. Absent if the server refused it, and for connections and flows. */
  readonly request?: Message
  /** The heads of 1xx responses before the response, with one character per byte. A 101 is the response itself. */
  readonly interim: readonly string[]
  readonly response?: Message
  /** The agreed subprotocol and extensions of a WebSocket. */
  readonly websocket?: { readonly protocol: string; readonly isCompressed: boolean }
  /** The meaning of `code`, the fault of the app's response, and the next step. */
  readonly explanation?: string
  /** Whether the exchange can be sent again; otherwise the code that says why not. */
  readonly replayable: true | ErrorCode
}

/** A WebSocket message or a server-sent event. */
export interface Frame extends Kept {
  /** The position from 0, in the order of arrival, with both directions counted together. */
  readonly index: number
  /** The time in milliseconds since `startedAt`. */
  readonly atMs: number
  readonly from: 'visitor' | 'app'
  readonly type: 'text' | 'binary' | 'ping' | 'pong' | 'close' | 'event'
  /** The content of a text message or of an event (its `data`), or the reason of a close. */
  readonly text?: string
  /** The content of any other message, in base64. */
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
  /** The losses of the capture since the start. */
  readonly dropped: {
    /** The number of exchanges that were dropped, the oldest first, because a limit was reached. */
    readonly exchanges: number
    /** The number of bytes that arrived faster than the capture reads. */
    readonly bytes: number
    /** The number of requests that were not captured during sampling. */
    readonly unsampled: number
  }
  /** Whether only some requests are captured, because more come than a person can read. */
  readonly isSampling: boolean
  /** The path of the SQLite file that stores entries across restarts. */
  readonly store?: string
}

/** The current limits. Each is an option of the same name. */
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
  /** An exchange started or changed. At most about ten such events per second for each exchange. */
  | { readonly type: 'exchange'; readonly exchange: ExchangeRow }
  | { readonly type: 'frame'; readonly id: string; readonly frame: Frame }
  | { readonly type: 'removed'; readonly ids: readonly string[] }
  /** These exchanges changed and do not match the filter (any more). */
  | { readonly type: 'unmatched'; readonly ids: readonly string[] }
  | { readonly type: 'session'; readonly session: Session }
  /** Sent if there was no other line for 15 s. */
  | { readonly type: 'ping' }
  /** The reader was too slow, and lines are missing: read the list again. */
  | { readonly type: 'behind' }

/** The changes to a request before it is sent again. All other bytes stay as captured. */
export interface Edit {
  readonly method?: string
  /** The path with its query. */
  readonly path?: string
  /**
   * All fields, in order. Leave out Content-Length and Transfer-Encoding, which follow from the body, and Content-Encoding
   * if `body` is text. A value that is the mask means the captured value.
   */
  readonly fields?: readonly { readonly name: string; readonly value: string }[]
  /** The body, as text (UTF-8) or base64. In a form, a value that is the mask also means the captured value. */
  readonly body?: string
  readonly bodyBase64?: string
}

/** The body of `POST exchanges/:id/replay`. */
export interface ReplayRequest {
  readonly edit?: Edit
  /** The number of times to send it, 1 to 100, one after the other. Default 1. */
  readonly times?: number
  /**
   * Whether to sign again with the service's provider (`verify`). If it is not a webhook: `REPLAY_IMPOSSIBLE`. `false`: the
   * captured signature. Default: a new one for a webhook whose signature was valid, because that would be too old by now.
   */
  readonly resign?: boolean
}

/** The response to a replay, once all repetitions have ended. */
export interface ReplayResult {
  readonly replays: readonly {
    readonly exchange: ExchangeRow
    /**
     * The comparison with the first response. `same`: status and body are equal. `fixed`: the first was an error (5xx
     * or none), this one is not. `regressed`: the opposite.
     */
    readonly verdict: 'same' | 'fixed' | 'regressed' | 'different'
  }[]
}

/** One or more lines of a text: in both (`same`), only in `a`, or only in `b`. */
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
 * The differences between two messages. Secrets are masked, and equal masks may hide different values: `isSame`
 * compares the real ones.
 */
export interface MessageDiff {
  /** The method and path, or the status and reason. */
  readonly first: Compared<string>
  /** The fields of `a` in their order, then those only in `b`. A repeated name has several entries. */
  readonly fields: readonly (Compared<string | null> & { readonly name: string })[]
  readonly body: {
    readonly isSame: boolean
    /**
     * The kind of the comparison. `binary`: without parts. `cut`: only a part of one body is stored, and the stored
     * parts are compared.
     */
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
  /** The id of an exchange: only later ones count, including those that have ended. Default: those that end from now on. */
  readonly after?: string
}

/** The body of every response with a status of 400 or above. */
export interface ApiError {
  readonly error: { readonly code: ErrorCode; readonly message: string }
}

/** The text in place of a secret. */
export const MASK = '••••••'
