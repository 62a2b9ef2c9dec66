// Contract: a UDP socket that talks to one address. Implementations: sockets/bun-datagrams.ts, sockets/node-datagrams.ts.

/**
 * The kernel's buffer to ask for, in which datagrams wait while the event loop is at something else. Linux gives 212,992
 * bytes unasked, room for 92 datagrams of 1,400 bytes, and a busy loop loses most of a burst; it grants up to
 * `net.core.rmem_max`. A larger buffer would be delay, because this one holds 20 ms at 400 Mbit/s.
 */
export const RECEIVE_BUFFER_BYTES = 1_048_576

/** The sending side. The one who opened it closes it. */
export interface DatagramSocket {
  /**
   * Sends in order and says how many the kernel took: fewer than given means full, and `drained` follows. A datagram that
   * cannot be sent at all, for its size or because no socket listens there, counts as taken. They may be overwritten at once.
   */
  send(datagrams: readonly Uint8Array[]): number
  /** Closes the socket. No event follows. */
  close(): void
}

export interface DatagramSocketHandler {
  /** A datagram arrived, possibly an empty one. The array is the handler's to keep. */
  received(datagram: Uint8Array): void
  /** A datagram arrived that is one too many in this turn of the event loop: it is lost. */
  dropped(): void
  /** The kernel takes datagrams again. */
  drained(): void
  /** The far side's machine said that no socket listens there (ICMP). One may later. */
  refused(error: Error): void
}

/** Opens a socket of its own to an address; rejects with the platform's error. `localhost` is 127.0.0.1 here. */
export type Associate = (
  address: { readonly host: string; readonly port: number },
  handler: DatagramSocketHandler,
) => Promise<DatagramSocket>
