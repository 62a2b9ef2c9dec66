// Contract: what an app that is a function gets besides a request. Implementation: parts/functions/.

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
 * A WebSocket as the app has it: `addEventListener` and the `on…` properties of the web, or the calls of `WebSocketHandlers`. A
 * message may have 16 MiB; above, the connection is closed with 1009. Bytes that the visitor does not read wait, up to 16 MiB;
 * above, the connection is cut.
 */
export interface AppWebSocket<Data = unknown> extends EventTarget {
  data: Data
  /** The subprotocol that the response named; `''`: none. */
  readonly protocol: string
  readonly extensions: string
  binaryType: 'arraybuffer' | 'blob'
  onopen: ((event: Event) => unknown) | null
  onmessage: ((event: MessageEvent) => unknown) | null
  onclose: ((event: Event & { readonly code: number; readonly reason: string }) => unknown) | null
  onerror: ((event: Event) => unknown) | null
  readonly readyState: 0 | 1 | 2 | 3
  /** Bytes that wait for the visitor. */
  readonly bufferedAmount: number
  /** Sends a message. Returns its bytes; -1 where it waits behind others; 0 where the connection is not open, or was cut for it. */
  send(message: Message): number
  /** Closes it, once what waits is sent. `code`: 1000, the default, or 3000 to 4999. */
  close(code?: number, reason?: string): void
  /** Cuts the connection. */
  terminate(): void
}

/** The second argument of a `FetchHandler`, as `Bun.serve` has it. */
export interface HandlerServer {
  /**
   * Makes a WebSocket of the request; the result of the handler is then ignored. `headers`: more lines of
   * the response. `data`: what the socket has as `data`. `false`: the request asks for none. Needs the option `websocket`.
   */
  upgrade(
    request: Request,
    options?: { readonly headers?: ConstructorParameters<typeof Headers>[0]; readonly data?: unknown },
  ): boolean
}
