// Contract: what a function as an app gets besides a request. Implementation: parts/functions/.

export type Message = string | ArrayBufferLike | ArrayBufferView

/** The handlers of WebSockets that the handler of a `TunnelClient` with `fetch` upgraded, as those of `Bun.serve`. */
export interface WebSocketHandlers<Data = unknown> {
  open?(socket: AppWebSocket<Data>): unknown
  /** Called with a message: text as a string, anything else as bytes. */
  message(socket: AppWebSocket<Data>, message: string | Uint8Array): unknown
  close?(socket: AppWebSocket<Data>, code: number, reason: string): unknown
  /** Called when the bytes that waited for the visitor are sent. */
  drain?(socket: AppWebSocket<Data>): unknown
}

/**
 * A WebSocket as the app has it: with `addEventListener` and the `on…` properties of the web, or the calls of
 * `WebSocketHandlers`. A message may have 16 MiB; a longer one closes the connection with 1009. Up to 16 MiB may wait
 * for the visitor; with more, the connection is cut.
 */
export interface AppWebSocket<Data = unknown> extends EventTarget {
  data: Data
  /** The subprotocol that the response named; `''` for none. */
  readonly protocol: string
  readonly extensions: string
  binaryType: 'arraybuffer' | 'blob'
  onopen: ((event: Event) => unknown) | null
  onmessage: ((event: MessageEvent) => unknown) | null
  onclose: ((event: Event & { readonly code: number; readonly reason: string }) => unknown) | null
  onerror: ((event: Event) => unknown) | null
  readonly readyState: 0 | 1 | 2 | 3
  /** The number of bytes that wait for the visitor. */
  readonly bufferedAmount: number
  /**
   * Sends a message. Returns its size in bytes; -1 if it waits after others; 0 if the connection is not open, or was
   * cut because of it.
   */
  send(message: Message): number
  /** Closes the WebSocket once the waiting bytes are sent. `code`: 1000, the default, or 3000 to 4999. */
  close(code?: number, reason?: string): void
  /** Cuts the connection. */
  terminate(): void
}

/** The second argument of a `FetchHandler`, as `Bun.serve` has it. */
export interface HandlerServer {
  /**
   * Turns the request into a WebSocket; the handler's result is then ignored. `headers`: further lines of the response. `data`:
   * the `data` of the socket. Returns `false` if the request does not ask for a WebSocket. Needs the option `websocket`.
   */
  upgrade(
    request: Request,
    options?: { readonly headers?: ConstructorParameters<typeof Headers>[0]; readonly data?: unknown },
  ): boolean
}
