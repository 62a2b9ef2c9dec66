// One raw visitor of a TCP, TLS or private tunnel, before a client takes it and while one serves it.

import type { Endpoint, SocketHandler } from '../../socket.ts'
import type { Member } from '../tunnels/member.ts'
import type { Tunnel } from '../tunnels/tunnel.ts'
import type { ClientConnection } from './clients.ts'

/** The facts about a raw visitor's connection for reports. */
export interface RawVisit {
  readonly tunnel: Tunnel
  /** The address of the visitor; see `Admittance`. */
  readonly address: string
  /** The client that serves it, once a stream is open. */
  readonly client: ClientConnection | undefined
  /** The client that serves it, as observers see it. */
  readonly served: Member['served']
  readonly source: Endpoint
  /** The time of the beginning, on the clock of `performance.now()`. */
  readonly startedAt: number
  /** The number of bytes that the visitor sent and the server passed on. */
  readonly bytesIn: number
  /** The number of bytes that the visitor was sent. */
  readonly bytesOut: number
}

/** The tunnel that a raw visitor wants. */
export interface RawWish {
  readonly kind: 'tcp' | 'udp' | 'tls' | 'private'
  /** The requested port, the host of the TLS hello, or the name of the private service. */
  readonly wanted: string
  /** The name of the tunnel in the cluster's directory. */
  readonly name: string
  find(): Tunnel | undefined
}

export interface RawWay {
  /** Bytes of the visitor that were already read. */
  readonly first?: Uint8Array | undefined
  /** Called once it is joined to a stream. */
  opened?(): void
  /**
   * Called instead of cutting the connection if another server has the tunnel by now and nothing was sent yet: the
   * caller has the connection again. Default: cut it.
   */
  moved?(): void
}

/** Ignores all events of a connection that has left this server. */
export const UNHEARD: SocketHandler = { received() {}, drained() {}, ended() {}, closed() {} }
