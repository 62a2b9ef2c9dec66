// Contract: what the inspector's API shows of an exchange. The page, the commands and programs read these types; the
// store keeps entries of its own (entry.ts). Everything here is JSON.

import type { ErrorCode } from './errors.ts'

/** `http` until its response shows what it is: 101 to a WebSocket, or `text/event-stream`. Connections and flows are rows. */
export type ExchangeKind = 'http' | 'websocket' | 'sse' | 'tcp' | 'tls' | 'udp'

/** `failed`: it did not end in good order, or the server refused it; `code` says why. */
export type ExchangeState = 'open' | 'done' | 'failed'

/** How much of something was seen, and how much of that is kept. */
export interface Kept {
  readonly totalBytes: number
  readonly keptBytes: number
}

/** A line of a head or of trailers, in order, spelled as sent. */
export interface Field {
  readonly name: string
  /** Masked when it is a secret and was not asked for with `reveal`. Characters are bytes (Latin-1). */
  readonly value: string
  /** It is one of Authorization, Cookie, Set-Cookie, Proxy-Authorization, or of the fields that the user named. */
  readonly isSecret?: true
}

/** A body, without chunk framing. Its bytes are at `request.body` and `response.body`. */
export interface Body extends Kept {
  /** Its last byte was seen. `false`: it goes on, or was cut off. */
  readonly isComplete: boolean
  /** Value of Content-Type, empty without one. */
  readonly type: string
  /** Value of Content-Encoding, empty without one. */
  readonly encoding: string
}

/** A request or an answer. */
export interface Message {
  /** First line and fields up to the blank line, byte for byte as sent, each character a byte; secrets masked as in `fields`. */
  readonly head: string
  readonly fields: readonly Field[]
  readonly body: Body
  readonly trailers: readonly Field[]
}

/** Milliseconds, to the hundredth. */
export interface Times {
  /** From the first byte of the request to its last. `undefined`: it goes on. */
  readonly requestMs?: number
  /** At the server, before the request came here: held until a client was back, or in a queue. Absent when not known. */
  readonly waitingMs?: number
  /** From the last byte of the request to the first byte of the response, or from its first where the response came earlier. */
  readonly appMs?: number
  /** From the first byte of the response to its last. */
  readonly transferMs?: number
  /** From the first byte of the request to the end. Rows of connections: from open to close. */
  readonly totalMs?: number
}

/** What checking a webhook's signature came to. */
export interface Verified {
  readonly provider: 'standard' | 'stripe' | 'github' | 'slack' | 'shopify'
  readonly isValid: boolean
  /** Why not, in a few words: `no signature`, `too old`, `does not match`, `the body was cut`. */
  readonly reason?: string
}

/** One line of the list. */
export interface ExchangeRow {
  /** Decimal digits. Later ones are greater numbers. */
  readonly id: string
  readonly kind: ExchangeKind
  readonly state: ExchangeState
  /** When its first byte came, ISO 8601 with milliseconds. */
  readonly startedAt: string
  /** The public name: `shop`, `tcp-20000`. */
  readonly tunnel: string
  /** Where the client sent it: `localhost:3000`. Empty for what the server refused. */
  readonly service: string
  /** Empty for connections and flows. */
  readonly method: string
  /** With query, as sent. Empty for connections and flows. */
  readonly path: string
  /** Host as the app got it. */
  readonly host: string
  /** 0 without an answer. */
  readonly status: number
  /** Its reason phrase as sent; may be empty. */
  readonly reason: string
  /** Why it failed or was refused. */
  readonly code?: ErrorCode
  /** The server refused it before it came here: there are no bytes of it. */
  readonly isRefused: boolean
  /** The server asked whether the app answers. Filters without `is:probe` leave these out. */
  readonly isProbe: boolean
  /** Address of the visitor, when the server tells it. */
  readonly visitor?: string
  readonly requestBody: Kept
  readonly responseBody: Kept
  /** Content-Type of the response, else empty. */
  readonly type: string
  readonly times: Times
  /** WebSocket messages and server-sent events; `keptBytes` and `totalBytes` count their content. */
  readonly frames: Kept & { readonly total: number; readonly kept: number }
  /** Raw bytes of connections and flows: towards the service and back. */
  readonly bytesIn: number
  readonly bytesOut: number
  /** It was sent again from here: the exchange that it repeats. */
  readonly replayOf?: string
  readonly isPinned: boolean
  /** The user's words about it; empty without. */
  readonly note: string
  readonly verified?: Verified
  /** Name of a webhook's event (`invoice.paid`, `push`) or an operation of GraphQL (`query Products`). */
  readonly event?: string
  /** The capture fell behind: bytes of it were not kept although they were within the bounds. */
  readonly isIncomplete: boolean
}

/** One exchange in full. */
export interface ExchangeDetail extends ExchangeRow {
  /** Absent for what the server refused, and for connections and flows. */
  readonly request?: Message
  /** Heads of 1xx answers in front of the response, each character a byte. A 101 is the response itself. */
  readonly interim: readonly string[]
  readonly response?: Message
  /** Subprotocol and extensions of a WebSocket as agreed. */
  readonly websocket?: { readonly protocol: string; readonly isCompressed: boolean }
  /** What its `code` means, what is wrong with the app's response, and what to do. */
  readonly explanation?: string
  /** Whether it can be sent again; else the code that says why not. */
  readonly replayable: true | ErrorCode
}

/** A WebSocket message or a server-sent event. */
export interface Frame extends Kept {
  /** From 0, in the order in which they came, both directions counted together. */
  readonly index: number
  /** Milliseconds since `startedAt`. */
  readonly atMs: number
  readonly from: 'visitor' | 'app'
  readonly type: 'text' | 'binary' | 'ping' | 'pong' | 'close' | 'event'
  /** Content of text messages, of events (their `data`), and a close's reason. */
  readonly text?: string
  /** Content of everything else. */
  readonly base64?: string
  /** Of a close. */
  readonly closeCode?: number
  /** It was sent with permessage-deflate; content and bytes are those after inflating. */
  readonly isCompressed?: true
  /** Of an event: its `event` and `id` fields. */
  readonly event?: string
  readonly eventId?: string
}

/** What the session is: shown in the page's head and in its empty state. */
export interface Session {
  readonly version: string
  readonly startedAt: string
  readonly tunnels: readonly {
    readonly name: string
    readonly kind: 'http' | 'tcp' | 'tls' | 'udp'
    readonly url: string
    /** `localhost:3000` */
    readonly service: string
  }[]
  /** See `InspectOptions`. */
  readonly bounds: Bounds
  readonly used: {
    readonly memoryBytes: number
    readonly exchanges: number
    readonly frames: number
    readonly pinned: number
  }
  /** Since the start: what the capture did not keep although it was asked to. */
  readonly dropped: {
    /** The oldest ones, when a bound was reached. */
    readonly exchanges: number
    /** Bytes that came faster than they could be read here. */
    readonly bytes: number
    /** Requests that passed uncaptured while it sampled. */
    readonly unsampled: number
  }
  /** More requests come than a person can read: only some are captured. */
  readonly isSampling: boolean
  /** Path of the SQLite file, when entries are kept across restarts. */
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
  /** It began, or something of it changed; at most about ten a second for each exchange. */
  | { readonly type: 'exchange'; readonly exchange: ExchangeRow }
  | { readonly type: 'frame'; readonly id: string; readonly frame: Frame }
  | { readonly type: 'removed'; readonly ids: readonly string[] }
  /** They changed, and the filter does not match them, or not any more. */
  | { readonly type: 'unmatched'; readonly ids: readonly string[] }
  | { readonly type: 'session'; readonly session: Session }
  /** Every 15 s without another line. */
  | { readonly type: 'ping' }
  /** The reader was too slow, and lines are missing: read the list again. */
  | { readonly type: 'behind' }

/** What to change of a request before it is sent again. Everything else stays byte for byte. */
export interface Edit {
  readonly method?: string
  /** With query. */
  readonly path?: string
  /**
   * All fields, in order. Content-Length and Transfer-Encoding are left out and follow from the body. A value that still is the
   * mask stands for the captured one.
   */
  readonly fields?: readonly { readonly name: string; readonly value: string }[]
  /** As text (UTF-8), or as base64. In a form, a value that still is the mask stands for the captured one, too. */
  readonly body?: string
  readonly bodyBase64?: string
}

/** Body of `POST exchanges/:id/replay`. */
export interface ReplayRequest {
  readonly edit?: Edit
  /** 1 to 100, one after the other. Default 1. */
  readonly times?: number
  /**
   * `true`: with a fresh signature of the service's provider (`verify`); no webhook: `REPLAY_IMPOSSIBLE`. `false`: as it was captured.
   * Default: fresh for a webhook whose signature was valid, because that would be too old by now.
   */
  readonly resign?: boolean
}

/** Its response, once all of them are over. */
export interface ReplayResult {
  readonly replays: readonly {
    readonly exchange: ExchangeRow
    /** `same`: status and body are. `fixed`: an error (5xx or none) became none. `regressed`: the other way round. */
    readonly verdict: 'same' | 'fixed' | 'regressed' | 'different'
  }[]
}

/** A line of a text, or a run of them: `same`, only in `a`, only in `b`. */
export interface DiffPart {
  readonly op: 'same' | 'removed' | 'added'
  readonly text: string
}

/** Two versions of something, and whether they are equal. */
export interface Compared<Value> {
  readonly a: Value
  readonly b: Value
  readonly isSame: boolean
}

/** How two messages differ. Secrets are masked, and equal masks may hide different values: `isSame` compares the real ones. */
export interface MessageDiff {
  /** Method and path, or status and reason. */
  readonly first: Compared<string>
  /** Those in `a` in their order, then those only in `b`. A name that comes twice is two entries. */
  readonly fields: readonly (Compared<string | null> & { readonly name: string })[]
  readonly body: {
    readonly isSame: boolean
    /** `binary`: no parts. `cut`: one of them was not kept whole, and what is kept is compared. */
    readonly kind: 'text' | 'json' | 'binary' | 'cut'
    readonly parts: readonly DiffPart[]
  }
}

/** Answer of `GET diff?a&b`. */
export interface Diff {
  readonly a: ExchangeRow
  readonly b: ExchangeRow
  readonly verdict: ReplayResult['replays'][number]['verdict']
  readonly request: MessageDiff
  readonly response: MessageDiff
}

/** Body of `POST wait`. */
export interface WaitRequest {
  /** Default: every exchange. */
  readonly filter?: string
  /** Default 30,000; at most 600,000. Above: 408 `WAIT_TIMEOUT`. */
  readonly timeoutMs?: number
  /** Also those that are here already and came later than this id. Default: those that end from now on. */
  readonly after?: string
}

/** Any response with a status of 400 or above. */
export interface ApiError {
  readonly error: { readonly code: ErrorCode; readonly message: string }
}

/** Stands for a secret. */
export const MASK = '••••••'
