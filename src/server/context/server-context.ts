// The context that the parts of one server share: its current settings, its clock, its counts, its tunnels, its events.

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
  /** The settings, replaced as a whole by `reload()`: read them when you need them. */
  settings: ServerSettings
  state: ServerState = 'idle'
  isHeard = false
  /** Names the UDP port for HTTP/3, with its CRLF; `undefined`: there is none. */
  altSvcLine: Uint8Array | undefined
  /** No visitor comes in any more: from now on each response is the last on its connection. */
  isShut = false
  readonly deadlines: Deadlines = new Deadlines(error => this.failed(error))
  /** The faults of guards, middlewares and observers. */
  readonly faults: PluginFaults = new PluginFaults(this.deadlines, error => this.failed(error))
  /** The turns: which visitor or client may do more than one portion of work in this turn of the event loop. */
  readonly turns: Turns = new Turns(eventLoop, error => this.failed(error))
  readonly counters: Counters = new Counters()
  readonly tunnels: Tunnels = new Tunnels(() => this.limits, this.deadlines)
  /** The parts around the routing of requests, installed by the maker of the server. */
  readonly parts: Parts = new Parts()
  servers: Servers | undefined
  bans: BanList | undefined
  /** Sockets that listened before the server did; `undefined`: it was given none. */
  inheritance: Inheritance | undefined
  /** Called when something has ended, while `stop()` waits. */
  whileDraining: (() => void) | undefined
  /** The operator takes this tunnel back just now. */
  #closing: string | undefined
  /** The counts of clients, by token or address. */
  readonly quotas: Quotas = new Quotas(() => this.limits)
  /** Flows of all UDP tunnels. */
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

  /** Whether the operator does not allow this name or port. */
  isBlocked(name: string): boolean {
    return this.#closing === name || this.parts.isBlocked(name)
  }

  /**
   * The operator revokes the tunnel: its clients get the reason; a client that is away finds it gone. Returns whether there was a tunnel,
   * or something that a part keeps for its visitors.
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

  /** Whether this is a proxy whose forwarding headers are believed, and whose connections are those of many visitors. */
  isTrusted(address: string): boolean {
    return this.settings.trusted?.has(address) ?? false
  }

  /** Address of a request's visitor, also behind trusted proxies. */
  addressOf({ remoteAddress, head }: Arrival): string {
    return clientAddress(remoteAddress, head, address => this.isTrusted(address))
  }

  destinationOf(host: string): Destination {
    const destination = destinationOf(host, this.settings.domainsByLength)
    return (
      (destination.kind === 'unknown' ? this.tunnels.hostNames.destinationOf(host) : undefined) ?? destination
    )
  }

  /** Whether a certificate for this host should be had: the domains themselves and live tunnels. */
  isKnownHost(host: string): boolean {
    const { domains } = this.settings
    const destination = this.destinationOf(host)
    if (destination.kind !== 'tunnel')
      return destination.kind === 'control' && domains.some(domain => host.endsWith(domain))
    const tunnel = this.tunnels.find(destination.name)
    // A port has no certificate.
    if (tunnel === undefined || tunnel.port !== 0) return false
    return !destination.isBelow || tunnel.mayCertify(host, domains)
  }

  ownerOfHost(host: string): string | undefined {
    const destination = this.destinationOf(host)
    if (destination.kind !== 'tunnel') return undefined
    return this.tunnels.find(destination.name)?.owner
  }

  /** Whether visitors come with https, also when that ends in front of this server. */
  get isSecure(): boolean {
    const { publicUrl, isTls } = this.settings
    return publicUrl === undefined ? isTls : publicUrl.protocol === 'https:'
  }

  /** The URL of the control host, or of a name below it. `port`: where the server listens. */
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

  /** Ends a tunnel whose name another server has. Requests that wait for its client go there. */
  lost(name: string): void {
    const tunnel = this.tunnels.hostNames.ownerOf(name) ?? this.tunnels.find(name)
    if (tunnel === undefined) return
    tunnel.moveAway(member => {
      const { client } = member
      member.remove()
      // The server asks again for its names, and learns whether they are still its own.
      client?.close('CARRIER_LOST')
    })
  }

  /** Reports an error that no visitor or client gets. */
  failed(error: Error): void {
    this.#events.emit('error', error)
  }

  /** A request, a connection or a visitor is gone: `stop()` may be waiting for that. */
  somethingEnded(): void {
    this.whileDraining?.()
  }
}

export interface ServerEvents {
  emit<Name extends keyof TunnelServerEvents>(event: Name, payload: TunnelServerEvents[Name]): void
}
