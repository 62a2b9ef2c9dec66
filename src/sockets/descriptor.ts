// The number with which the kernel identifies a socket of Bun.

/** Returns the descriptor of a socket. Bun does not document the property, which is absent once the connection is gone. */
export function descriptorOf(socket: object): number | undefined {
  const fd: unknown = 'fd' in socket ? socket.fd : undefined
  return typeof fd === 'number' && fd >= 0 ? fd : undefined
}
