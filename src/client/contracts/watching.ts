// Contract: exchanges in the form for programs. Implementation: program.ts.

import type { ExchangeRow, Field, Frame } from '../../exchange.ts'

/** A request with its response, or a connection, after its end. Nothing is masked, because the program is the app owner's. */
export interface Exchange extends ExchangeRow {
  /** The request. `undefined` for connections, and for requests that the server refused. */
  readonly request: SeenMessage | undefined
  /** The response. `undefined` if `request` is, and if there was no response. */
  readonly response: SeenMessage | undefined
  /** The stored WebSocket messages and server-sent events. */
  readonly messages: readonly Frame[]
}

/** A request or a response. */
export interface SeenMessage {
  /** The headers, with names in any case. Values of a repeated name are joined. */
  readonly headers: Headers
  /** The header lines as sent: order, case and repeats. */
  readonly fields: readonly Field[]
  readonly trailers: readonly Field[]
  /** The stored part of the body, without chunk framing. */
  readonly bytes: Uint8Array
  /** Whether only a part of the body is stored. */
  readonly isCut: boolean
  /**
   * Returns the body with gzip, deflate, br and zstd decoded. Throws `BODY_TRUNCATED` if only a part is stored, or it
   * cannot be decoded.
   */
  text(): string
  /** Returns the body parsed as JSON. Throws `BODY_TRUNCATED`, or a `SyntaxError` if it is not JSON. */
  json(): ReturnType<JSON['parse']>
}

export interface WaitOptions {
  /**
   * The time limit in milliseconds, from 1 to 600,000. Default 30,000. If exceeded: `WAIT_TIMEOUT`, which lists the
   * requests that came instead.
   */
  readonly timeout?: number
  /** Whether only exchanges that end from now on count. Default `false`: stored ones count also. */
  readonly fresh?: boolean
  /** Ends the wait with `CANCELLED`. */
  readonly signal?: AbortSignal
}

/** The exchanges of a tunnel that is inspected, for programs. */
export interface Watchable {
  /**
   * The exchanges, each after its end: stored ones first, then new ones. The loop ends with the tunnel. A loop that
   * is slower than visitors misses exchanges that were dropped. Throws `STATE_INVALID` without `inspect`.
   */
  readonly exchanges: AsyncIterable<Exchange>
  /**
   * Waits for an exchange. Resolves with the oldest one that has ended, matches the filter (`POST /hooks`,
   * `status:5xx`: docs/inspector.md) and was not the result of an earlier call with the same filter. Rejects with
   * `WAIT_TIMEOUT`, `OPTION_INVALID`, `CANCELLED` at the end of the tunnel, and `STATE_INVALID` without `inspect`.
   */
  waitFor(filter: string, options?: WaitOptions): Promise<Exchange>
}
