// Contract: exchanges as programs read them. Implementation: program.ts.

import type { ExchangeRow, Field, Frame } from '../../exchange.ts'

/** A request with its response, or a connection, once it has ended. Nothing of it is masked: the program is its owner. */
export interface Exchange extends ExchangeRow {
  /** The request. `undefined` for what the server refused, and for connections. */
  readonly request: SeenMessage | undefined
  /** The response. `undefined` also if there was none. */
  readonly response: SeenMessage | undefined
  /** The stored WebSocket messages and server-sent events. */
  readonly messages: readonly Frame[]
}

/** A request or a response. */
export interface SeenMessage {
  /** Names in any case; values of a name that comes more than once are joined. */
  readonly headers: Headers
  /** The same as sent: order, case and repeats. */
  readonly fields: readonly Field[]
  readonly trailers: readonly Field[]
  /** The stored part of the body, without chunk framing. */
  readonly bytes: Uint8Array
  /** Whether there was more of it than is stored. */
  readonly isCut: boolean
  /** The body with gzip, deflate, br and zstd undone. Throws `BODY_TRUNCATED` when there was more, or when it cannot be decoded. */
  text(): string
  /** The same, parsed. Throws `BODY_TRUNCATED`, and a `SyntaxError` for what is not JSON. */
  json(): ReturnType<JSON['parse']>
}

export interface WaitOptions {
  /** Milliseconds, from 1 to 600,000. Default 30,000. If exceeded: `WAIT_TIMEOUT`, which says what came instead. */
  readonly timeout?: number
  /** Whether only exchanges count that end from now on. Default `false`: also what is here already. */
  readonly fresh?: boolean
  /** Ends the wait with `CANCELLED`. */
  readonly signal?: AbortSignal
}

/** The exchanges of a tunnel that is inspected, for programs. */
export interface Watchable {
  /**
   * The exchanges, each once it has ended: the stored ones first, then new ones. The loop ends with the tunnel. A loop that is
   * slower than visitors misses exchanges that are dropped in the meantime. Throws `STATE_INVALID` without `inspect`.
   */
  readonly exchanges: AsyncIterable<Exchange>
  /**
   * The oldest exchange that has ended, matches the filter (`POST /hooks`, `status:5xx`: docs/inspector.md) and was not the
   * result of an earlier call with the same filter; waits for one. Rejects with `WAIT_TIMEOUT`, `OPTION_INVALID`, `CANCELLED`
   * at the end of the tunnel, and `STATE_INVALID` without `inspect`.
   */
  waitFor(filter: string, options?: WaitOptions): Promise<Exchange>
}
