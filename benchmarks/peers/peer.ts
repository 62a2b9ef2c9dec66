// Contract: a tunnel that can be measured, as the programs that it takes. Peers are in the files beside this one.

export interface Endpoint {
  readonly host: string
  readonly port: number
  readonly hostHeader: string
  /** Further headers that the peer insists on. */
  readonly headers: Readonly<Record<string, string>>
  readonly tls: boolean
  /** What stands before the command of a visitor that is not on this machine's own network. */
  readonly visitor?: readonly string[]
}

/** Local ports by name: each gets an endpoint of the same name. */
export type Ports = Readonly<Record<string, number>>

export interface Program {
  readonly command: readonly string[]
  readonly cwd?: string
  readonly env?: Readonly<Record<string, string>>
  /** It is up when a line of its output matches. */
  readonly ready?: RegExp
  /** Its output is a terminal, as in the shell of a person. */
  readonly terminal?: boolean
  /** Sees every line of its output. */
  onLine?(this: void, line: string): void
}

export interface Plan {
  readonly server: readonly Program[]
  readonly client: readonly Program[]
  /** Ports on which the server listens when it is up. */
  readonly listens: readonly number[]
  readonly endpoints: Readonly<Record<string, Endpoint>>
}

/** Where a tunnel runs: on loopback, with a proxy in its carrier, or across a slow road. */
export interface Site {
  /** Address of the server, for clients and visitors. */
  readonly host: string
  /** What a client dials to reach a port of the server. */
  dial(port: number): { readonly host: string; readonly port: number }
  /** A file for a program to read. Gone when the tunnel stops. */
  file(name: string, content: string): string
}

/** Shown as reference and never the mark: `floor`. */
export type Role = 'ours' | 'peer' | 'floor'

export type Detected = { readonly version: string } | { readonly missing: string }

export interface Peer {
  readonly name: string
  readonly role: Role
  /** What it carries: requests routed by Host, bytes of one port, or both. */
  readonly carries: 'http' | 'tcp' | 'both'
  /** Visitors come by TLS. */
  readonly tls?: boolean
  /** How it is run here, in one line: with its best options, or as shipped. */
  readonly how: string
  detect(): Promise<Detected>
  plan(ports: Ports, site: Site): Plan
}

/** Processes of each end. A restart gives it new ones. */
export interface Processes {
  readonly server: readonly number[]
  readonly client: readonly number[]
}

export interface Tunnel {
  readonly endpoints: Readonly<Record<string, Endpoint>>
  readonly processes: Processes
  /** Spawn to listening, and spawn to the first request answered through the tunnel. */
  readonly readyMs: { readonly server: number; readonly client: number }
  /** Kills one end at once and starts it again, without waiting until the tunnel works. */
  restart(end: 'server' | 'client'): Promise<void>
  stop(): Promise<void>
}

export function endpoint(
  port: number,
  hostHeader = `127.0.0.1:${port}`,
  more: Partial<Endpoint> = {},
): Endpoint {
  return { host: '127.0.0.1', port, hostHeader, headers: {}, tls: false, ...more }
}

/** An origin of this name speaks no HTTP: that its port is open is all that can be awaited. */
export const RAW_ORIGIN = 'raw'

export function eachPort<T>(ports: Ports, make: (name: string, port: number) => T): Record<string, T> {
  return Object.fromEntries(Object.entries(ports).map(([name, port]) => [name, make(name, port)]))
}
