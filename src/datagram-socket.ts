// Contract: a UDP socket for one address. Implementations: sockets/bun-datagrams.ts, sockets/node-datagrams.ts.

/**
 * The requested size of the kernel's buffer, in which datagrams wait while the event loop is busy. Linux gives
 * 212,992 bytes by default, room for 92 datagrams of 1,400 bytes, so that a busy loop loses most of a burst; it
 * grants up to `net.core.rmem_max`. A larger buffer would add delay: this one holds 20 ms at 400 Mbit/s.
 */
export const RECEIVE_BUFFER_BYTES = 1_048_576

/** The sending side. The code that opened it closes it. */
export interface DatagramSocket {
  /**
   * Sends datagrams in order. Returns how many the kernel took: fewer than given mean that it is full, and `drained`
   * follows. A datagram that cannot be sent, because of its size or because no socket listens, counts as taken. The
   * arrays may be overwritten at once.
   */
  send(datagrams: readonly Uint8Array[]): number
  /** Closes the socket. No event follows. */
  close(): void
}

export interface DatagramSocketHandler {
  /** Called with a datagram, which may be empty. The handler may keep the array. */
  received(datagram: Uint8Array): void
  /** Called for a datagram that is lost, because there are too many in this turn of the event loop. */
  dropped(): void
  /** Called when the kernel takes datagrams again. */
  drained(): void
  /** Called when the far side's machine reports that no socket listens there (ICMP). One may listen later. */
  refused(error: Error): void
}

/** Opens a socket for an address. Rejects with the platform's error. `localhost` means 127.0.0.1 here. */
export type Associate = (
  address: { readonly host: string; readonly port: number },
  handler: DatagramSocketHandler,
) => Promise<DatagramSocket>
