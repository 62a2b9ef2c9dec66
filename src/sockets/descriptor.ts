// The number by which the kernel knows a socket of Bun.

/** Returns the descriptor of a socket: undocumented, and absent once the connection is gone. */
export function descriptorOf(socket: object): number | undefined {
  const fd: unknown = 'fd' in socket ? socket.fd : undefined
  return typeof fd === 'number' && fd >= 0 ? fd : undefined
}
