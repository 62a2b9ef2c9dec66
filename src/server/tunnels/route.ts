// From a Host to what serves it: a label under a domain is a tunnel, the domain itself is the control host.

/** The meaning of a host for this server. */
export type Destination =
  | ({ readonly kind: 'tunnel' } & NamedTunnel)
  | { readonly kind: 'control' }
  | { readonly kind: 'unknown' }

export interface NamedTunnel {
  readonly name: string
  /** Whether more labels are before the name: only a wildcard tunnel has those. */
  readonly isBelow: boolean
}

const CONTROL: Destination = { kind: 'control' }
const UNKNOWN: Destination = { kind: 'unknown' }

/** Returns the destination of `host`, which is lower-case and without port; `domains` are the longest first. */
export function destinationOf(host: string, domains: readonly string[]): Destination {
  for (const domain of domains) {
    if (host === domain) return CONTROL
    if (!host.endsWith(domain) || host[host.length - domain.length - 1] !== '.') continue
    const end = host.length - domain.length - 1
    const start = host.lastIndexOf('.', end - 1) + 1
    const name = host.slice(start, end)
    const isBelow = start > 0
    // Labels of the server's own: they belong to the control host.
    if (name === 'api' || name === 'www') return isBelow ? UNKNOWN : CONTROL
    return { kind: 'tunnel', name, isBelow }
  }
  // Plain addresses: a server that has no name yet, health checks, clients on the same machine.
  return host === 'localhost' || isAddress(host) ? CONTROL : UNKNOWN
}

function isAddress(host: string): boolean {
  return host.startsWith('[') || /^\d{1,3}(?:\.\d{1,3}){3}$/.test(host)
}
