// One raw visitor, before a member of a tunnel takes it and while one serves it.

import type { Endpoint, SocketHandler } from '../../socket.ts'
import type { Member } from '../tunnels/member.ts'
import type { Tunnel } from '../tunnels/tunnel.ts'
import type { ClientConnection } from './clients.ts'

/** The report of a raw visitor's connection. */
export interface RawVisit {
  readonly tunnel: Tunnel
  /** The address of the visitor; see `Admittance`. */
  readonly address: string
  /** Serves it, once it is opened. */
  readonly client: ClientConnection | undefined
  /** The same for observers. */
  readonly served: Member['served']
  readonly source: Endpoint
  /** The time of its beginning on the clock of `performance.now()`. */
  readonly startedAt: number
  /** Bytes of the visitor that were passed on. */
  readonly bytesIn: number
  /** Bytes that the visitor was sent. */
  readonly bytesOut: number
}

/** The tunnel that a raw visitor wants. */
export interface RawWish {
  readonly kind: 'tcp' | 'udp' | 'tls' | 'private'
  /** The port, the host of its TLS hello, or the name of the private service. */
  readonly wanted: string
  /** The name of the tunnel in the directory of a cluster. */
  readonly name: string
  find(): Tunnel | undefined
}

export interface RawWay {
  /** Bytes of the visitor that were read already. */
  readonly first?: Uint8Array | undefined
  /** Called once it is joined to a stream. */
  opened?(): void
  /**
   * Called in place of a cut when another server has the tunnel by now: the connection is the caller's again, and nothing of it was
   * sent. Default: it is cut.
   */
  moved?(): void
}

/** The handler of a connection that has left this server: it ignores all events. */
export const UNHEARD: SocketHandler = { received() {}, drained() {}, ended() {}, closed() {} }
