// The state that the parts of one server share: settings, clock, counters, tunnels, events.

import { eventLoop } from '../../event-loop.ts'
import { formatUrl } from '../../names.ts'
import type { BanList } from '../../operations.ts'
import { Turns } from '../../session/turns.ts'
import { Shares } from '../../shares.ts'
import type { Arrival } from '../contracts/front.ts'
import type { Servers } from '../contracts/servers.ts'
import { Deadlines } from '../limits/deadlines.ts'
import { Quotas } from '../limits/quotas.ts'
import { clientAddress } from '../limits/visitor-hop.ts'
import type { Bounds } from '../settings/bounds.ts'
import type { TunnelServerEvents } from '../settings/options.ts'
import type { ServerSettings } from '../settings/settings.ts'
import { Counters } from '../settings/stats.ts'
import { type Destination, destinationOf, Tunnels } from '../tunnels/tunnels.ts'
import type { Inheritance } from './inheritance.ts'
import { Parts } from './parts.ts'
import { PluginFaults } from './plugin-faults.ts'

export type ServerState = 'idle' | 'starting' | 'running' | 'draining' | 'stopped'

export class ServerContext {
  /** The settings. `reload()` replaces the whole object, so read it when you need it. */
  settings: ServerSettings
  state: ServerState = 'idle'
  isHeard = false
  /** The Alt-Svc header line that names the UDP port for HTTP/3, with its CRLF. `undefined` if there is no HTTP/3. */
  altSvcLine: Uint8Array | undefined
  /** Whether each response is now the last on its connection, because the server accepts no more visitors. */
  isShut = false
  readonly deadlines: Deadlines = new Deadlines(error => this.failed(error))
  /** Reports faults of guards, middlewares and observers. */
  readonly faults: PluginFaults = new PluginFaults(this.deadlines, error => this.failed(error))
  /** Decides which connection may do more than one portion of work in this turn of the event loop. */
  readonly turns: Turns = new Turns(eventLoop, error => this.failed(error))
  readonly counters: Counters = new Counters()
  readonly tunnels: Tunnels = new Tunnels(() => this.limits, this.deadlines)
  /** The parts that the caller of the constructor installed. */
  readonly parts: Parts = new Parts()
  servers: Servers | undefined
  bans: BanList | undefined
  /** Sockets that another program opened for the server. `undefined` if there are none. */
  inheritance: Inheritance | undefined
  /** Called when a request or connection has ended, while `stop()` waits. */
  whileDraining: (() => void) | undefined
  /** The name of the tunnel that the operator is closing now. */
  #closing: string | undefined
  /** The quotas of clients, by token or address. */
  readonly quotas: Quotas = new Quotas(() => this.limits)
  /** The number of flows of all UDP tunnels, by owner. */
  readonly flows: Shares = new Shares()
  readonly #events: ServerEvents

  constructor(settings: ServerSettings, events: ServerEvents) {
    this.settings = settings
    this.#events = events
    const release = (name: string): void => this.servers?.release(name)
    this.tunnels.freed = release
    this.tunnels.hostNames.freed = release
  }

  // ── Settings ───────────────────────────────────────────────────────────────────────────────────────────────

  get limits(): Bounds {
    return this.settings.limits
  }

  /** Whether the operator forbids this name or port. */
  isBlocked(name: string): boolean {
    return this.#closing === name || this.parts.isBlocked(name)
  }

  /**
   * Revokes the tunnel for the operator. Its clients get the reason; a client that is away finds it gone. Returns
   * whether there was a tunnel, or a part stored something for its visitors.
   */
  closeTunnel(name: string): boolean {
    const wasKept = this.parts.closed(name)
    const tunnel = this.tunnels.find(name)
    if (tunnel === undefined) return wasKept
    this.#closing = name
    try {
      for (const { client } of [...tunnel.members]) client?.reloaded()
      tunnel.remove('BLOCKED')
    } finally {
      this.#closing = undefined
    }
    return true
  }

  /** Whether this is a proxy whose forwarding headers are trusted, and whose connections carry many visitors. */
  isTrusted(address: string): boolean {
    return this.settings.trusted?.has(address) ?? false
  }

  /** Returns the address of a request's visitor, even if trusted proxies are in front of the server. */
  addressOf({ remoteAddress, head }: Arrival): string {
    return clientAddress(remoteAddress, head, address => this.isTrusted(address))
  }

  destinationOf(host: string): Destination {
    const destination = destinationOf(host, this.settings.domainsByLength)
    return (
      (destination.kind === 'unknown' ? this.tunnels.hostNames.destinationOf(host) : undefined) ?? destination
    )
  }

  /** Whether a host should have a certificate: the server's domains, and hosts of live tunnels. */
  isKnownHost(host: string): boolean {
    const { domains } = this.settings
    const destination = this.destinationOf(host)
    if (destination.kind !== 'tunnel')
      return destination.kind === 'control' && domains.some(domain => host.endsWith(domain))
    const tunnel = this.tunnels.find(destination.name)
    // A tunnel with a port of its own needs no certificate from the server.
    if (tunnel === undefined || tunnel.port !== 0) return false
    return !destination.isBelow || tunnel.mayCertify(host, domains)
  }

  ownerOfHost(host: string): string | undefined {
    const destination = this.destinationOf(host)
    if (destination.kind !== 'tunnel') return undefined
    return this.tunnels.find(destination.name)?.owner
  }

  /** Whether visitors use HTTPS, including HTTPS that a proxy in front of this server ends. */
  get isSecure(): boolean {
    const { publicUrl, isTls } = this.settings
    return publicUrl === undefined ? isTls : publicUrl.protocol === 'https:'
  }

  /** Returns the URL of the control host, or of a name below it. `port` is the port that the server listens on. */
  urlOf(port: number, subdomain?: string): string {
    const { publicUrl, domains } = this.settings
    const shown = publicUrl === undefined ? port : publicUrl.port === '' ? undefined : Number(publicUrl.port)
    return formatUrl({
      secure: this.isSecure,
      hostname: domains[0] ?? 'localhost',
      ...(subdomain !== undefined && { subdomain }),
      ...(shown !== undefined && { port: shown }),
    })
  }

  // ── State and events ───────────────────────────────────────────────────────────────────────────────────────

  get isRunning(): boolean {
    return this.state === 'running'
  }

  emit<Name extends keyof TunnelServerEvents>(event: Name, payload: TunnelServerEvents[Name]): void {
    this.#events.emit(event, payload)
  }

  // ── Cluster ────────────────────────────────────────────────────────────────────────────────────────────────

  isServedHere(name: string): boolean {
    const { name: tunnel } = this.tunnels.hostNames.destinationOf(name) ?? { name }
    return this.tunnels.find(tunnel)?.upstream !== undefined
  }

  /** Ends a tunnel whose name another server has. Requests that wait for its client go to that server. */
  lost(name: string): void {
    const tunnel = this.tunnels.hostNames.ownerOf(name) ?? this.tunnels.find(name)
    if (tunnel === undefined) return
    tunnel.moveAway(member => {
      const { client } = member
      member.remove()
      // The client reconnects and registers again, which shows which names are still its own.
      client?.close('CARRIER_LOST')
    })
  }

  /** Reports an error that no visitor or client gets. */
  failed(error: Error): void {
    this.#events.emit('error', error)
  }

  /** Called when a request, a connection or a visitor is gone: `stop()` may be waiting for it. */
  somethingEnded(): void {
    this.whileDraining?.()
  }
}

export interface ServerEvents {
  emit<Name extends keyof TunnelServerEvents>(event: Name, payload: TunnelServerEvents[Name]): void
}
