// Contract: a tunnel of a client, as the program that asked for it has it. Implementation: own-tunnel.ts.
/// <reference lib="esnext.disposable" preserve="true" />

import type { LinkOptions } from '../../guard.ts'
import type { TunnelKind } from '../../wire/tunnel-kind.ts'
import type { Watchable } from '../contracts/watching.ts'

/** A tunnel, as `client.http`, `client.tcp` and the others return it. */
export interface Tunnel extends AsyncDisposable, Watchable {
  readonly kind: TunnelKind
  /** The subdomain granted, or kind and port, as in `tcp-20000`. */
  readonly name: string
  /** The URL for visitors: `https://app.example.dev`, `tcp://example.dev:20000`. May change with a reconnect. */
  readonly url: string
  /** The public port of a TCP or UDP tunnel; `undefined` for the others. */
  readonly port: number | undefined
  /**
   * The number of a UDP service's responses that were dropped, because the server or the path to it was too slow. 0
   * for other kinds. The server's own drops are in its `droppedDatagramsByTunnel`.
   */
  readonly droppedDatagrams: number
  /**
   * Makes a link that lets its holder visit, for a tunnel whose guard has `links`. Throws `STATE_INVALID` without
   * one, and `OPTION_INVALID`. Pass the `id` to `revokeLink`.
   */
  link(options?: LinkOptions): { readonly url: string; readonly id: string }
  /** Revokes a link. The link, sessions that it started, and the tunnel's open WebSockets end at once. */
  revokeLink(id: string): Promise<void>
  /**
   * Releases the name or port, which is free at once. Open requests may finish for up to the client's
   * `drainTimeoutMs`; the client's other tunnels continue.
   */
  close(): Promise<void>
}
