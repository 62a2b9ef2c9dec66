// Consecutive ports, as in `27015-27030`: one service, with a tunnel for each.

/**
 * The maximum number of ports in a range. Each port is a tunnel, and a server grants 256 to a client by default (`maxTunnels`).
 */
export const MAX_RANGE_PORTS = 256

/** Returns all ports of a port or a range, in order. `undefined` for anything else. */
export function portsOf(given: number | string): readonly number[] | undefined {
  const match = /^(\d{1,5})(?:-(\d{1,5}))?$/.exec(String(given).trim())
  if (match === null) return undefined
  const first = Number(match[1])
  const last = Number(match[2] ?? match[1])
  const count = last - first + 1
  if (first < 1 || last > 65_535 || count < 1 || count > MAX_RANGE_PORTS) return undefined
  return Array.from({ length: count }, (_, index) => first + index)
}
