// Has a file of its own, so that the package's type declarations refer to nothing else of the wire.

/** The kind of a tunnel: requests, raw connections, datagrams, or TLS that only the origin can read. */
export type TunnelKind = 'http' | 'tcp' | 'udp' | 'tls'

/** The kinds that a server grants: a tunnel, or a service without a public address. */
export type GrantedKind = TunnelKind | 'private'
