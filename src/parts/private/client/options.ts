// What `connectTo` takes.

/** A private service, and where it is found on this machine. */
export interface ConnectOptions {
  /** The name of the service, such as `db`; of a UDP service `udp:dns`. Not a name: `NAME_INVALID`. */
  readonly name: string
  /** Port of 127.0.0.1 and ::1 where it is found; of UDP of 127.0.0.1. Default any free one. In use: `PORT_IN_USE`. */
  readonly port?: number
  /** A token for this service alone. Default: that of the connection. One that does not open it: `CONNECT_NOT_ALLOWED`. */
  readonly token?: string
  /** How long a silent address and port of UDP keeps its flow. Default 60,000 ms. Above: the next datagram begins another. */
  readonly idleTimeoutMs?: number
}
