// Contract: a tunnel that can be measured. One file per peer beside this one; ours and "no tunnel" are among them.

import type { Processes } from '../measure/proc.ts'

/** Where a load generator sends requests, and what it must say to reach the origin behind it. */
export interface Endpoint {
  readonly host: '127.0.0.1'
  readonly port: number
  readonly hostHeader: string
  /** Further headers that the peer insists on. */
  readonly headers: Readonly<Record<string, string>>
}

/** Local ports by name: each gets an endpoint of the same name. */
export type Origins = Readonly<Record<string, number>>

export interface Tunnel {
  readonly endpoints: Readonly<Record<string, Endpoint>>
  /** Its own processes, for processor time and memory. Empty where there is no tunnel. */
  readonly processes: Processes
  /** Spawn to listening, and spawn to the first request answered through the tunnel. */
  readonly readyMs: { readonly server: number; readonly client: number }
  stop(): Promise<void>
}

export type Detected = { readonly version: string } | { readonly missing: string }

export interface Peer {
  readonly name: string
  /** `http` reads requests and routes by Host; `tcp` moves bytes. */
  readonly kind: 'none' | 'ours' | 'http' | 'tcp'
  /** How it is run here, in one line. */
  readonly how: string
  detect(): Promise<Detected>
  start(origins: Origins): Promise<Tunnel>
}

export function endpoint(
  port: number,
  hostHeader = `127.0.0.1:${port}`,
  headers: Readonly<Record<string, string>> = {},
): Endpoint {
  return { host: '127.0.0.1', port, hostHeader, headers }
}

/** Where each origin of its own Host below `domain` is reached, all on one port. */
export function byHost(origins: Origins, port: number, domain: string): Readonly<Record<string, Endpoint>> {
  return Object.fromEntries(Object.keys(origins).map(name => [name, endpoint(port, `${name}.${domain}`)]))
}
