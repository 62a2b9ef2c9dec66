// Serves clients: checks who may connect and what they may have, and reports it.

import type { ErrorCode } from '../../errors.ts'
import { eventLoop } from '../../event-loop.ts'
import { WebSocketCarrier } from '../../session/carriers/websocket.ts'
import type { Socket, SocketHandler } from '../../socket.ts'
import type { Register } from '../../wire/control.ts'
import type { ServerContext } from '../context/server-context.ts'
import type { ClientConnection } from '../contracts/clients.ts'
import type { Adopt } from '../contracts/wire.ts'
import type { PublicPorts } from '../fronts/public-ports.ts'
import type { Admission } from '../limits/admission.ts'
import type { QuotaOwner } from '../limits/quotas.ts'
import type { TokenThrottle } from '../limits/token-throttle.ts'
import type { StartupHold } from '../routing/startup-hold.ts'
import type { Rule } from '../settings/policy.ts'
import { MAX_TIMER_MS } from '../settings/settings.ts'
import { type Claiming, claim, claimInCluster, refusalOf, refusalText, type Wish } from '../tunnels/claims.ts'
import type { Member } from '../tunnels/member.ts'
import type { Tunnel } from '../tunnels/tunnel.ts'
import { LinkRegistry } from './links.ts'
import { StreamsConnection } from './streams-connection.ts'
import type { StreamsHost } from './streams-tunnels.ts'
import type { Applicant } from './upgrade.ts'

/** A timer may fire up to this many milliseconds before `Date.now()` reaches its time. */
const CLOCK_STEP_MS = 20

export interface Addresses {
  urlOf(tunnel: Tunnel): string
}

export class ClientRegistry implements StreamsHost {
  readonly server: ServerContext
  readonly linkRegistry: LinkRegistry = new LinkRegistry()
  readonly tokenThrottle: TokenThrottle
  readonly clients: Set<ClientConnection> = new Set()
  #lastNumber = 0
  /** The functions that end the watch for a token's expiry, by client and token. */
  readonly #ends = new Map<ClientConnection, Map<string, () => void>>()
  readonly #admission: Admission
  readonly #ports: PublicPorts
  readonly #startupHold: StartupHold
  readonly #addresses: Addresses

  constructor(
    context: ServerContext,
    tokenThrottle: TokenThrottle,
    admission: Admission,
    ports: PublicPorts,
    startupHold: StartupHold,
    addresses: Addresses,
  ) {
    this.tokenThrottle = tokenThrottle
    this.server = context
    this.#admission = admission
    this.#ports = ports
    this.#startupHold = startupHold
    this.#addresses = addresses
  }

  // ── Connections ────────────────────────────────────────────────────────────────────────────────────────────

  /** Returns why a client with this rule and address may not connect. `undefined` if it may. */
  refusalOfClient(rule: Rule, address: string): ErrorCode | undefined {
    if (!this.server.isRunning) return 'SERVER_DRAINING'
    const code = this.server.parts.judge(address)
    if (code !== undefined) return code
    const holder = this.server.quotas.of(rule, address)
    return holder.hasRoomFor('clients') && this.#ports.hasRoomFor(holder) ? undefined : 'CLIENT_LIMIT'
  }

  /** Makes the socket a client's connection, with the rights of its token. */
  adopt(socket: Socket, applicant: Applicant, rule: Rule): SocketHandler {
    const { wire, remoteAddress, agent } = applicant
    const other = wire === 'json' ? this.server.parts.adopt : undefined
    const { client, handler } =
      other === undefined
        ? this.#adoptStreams(socket, remoteAddress, rule)
        : other(socket, remoteAddress, this, rule)
    this.#endWith(client, rule)
    client.number = ++this.#lastNumber
    client.agent = agent
    this.clients.add(client)
    client.holder.take('clients')
    this.server.counters.totalConnections++
    return handler
  }

  #adoptStreams(socket: Socket, remoteAddress: string, rule: Rule): ReturnType<Adopt> {
    const { turns } = this.server
    const carrier = new WebSocketCarrier(socket, { role: 'server', scheduler: eventLoop, turns })
    const client = new StreamsConnection(carrier, remoteAddress, this, rule)
    carrier.handler = client.carrierHandler
    carrier.account = client.use
    return { client, handler: carrier.socketHandler }
  }

  gone(client: ClientConnection): void {
    if (!this.clients.delete(client)) return
    for (const cancel of this.#ends.get(client)?.values() ?? []) cancel()
    this.#ends.delete(client)
    client.holder.give('clients')
    this.server.counters.creditStalls += client.creditStalls
  }

  #endWith(client: ClientConnection, { id = '', endsAtMs }: Rule): void {
    if (endsAtMs === undefined) return
    const ends = this.#ends.get(client) ?? new Map<string, () => void>()
    this.#ends.set(client, ends)
    ends.get(id)?.()
    const waitMs = Math.min(MAX_TIMER_MS, Math.max(0, endsAtMs - Date.now()) + CLOCK_STEP_MS)
    ends.set(
      id,
      eventLoop.after(waitMs, () => client.reloaded()),
    )
  }

  // ── What they may have ─────────────────────────────────────────────────────────────────────────────────────

  hasRoomForLink(holder: QuotaOwner): boolean {
    const { descriptorCountWithLinks } = this.server.quotas
    return this.#admission.hasRoomForLink(holder.descriptorCountWithLinks, descriptorCountWithLinks)
  }

  refusalOf(wish: Wish, rule: Rule): ErrorCode | undefined {
    const { kind, port = 0, name = port === 0 ? '' : `${kind}-${port}` } = wish
    return [name, ...(wish.hostNames ?? [])].some(one => this.server.isBlocked(one))
      ? 'BLOCKED'
      : refusalOf(wish, rule, this.server.settings)
  }

  refusalText(code: ErrorCode, wish: Wish, claiming: Claiming): string {
    const { connecting } = this.server.parts
    const own =
      wish.kind === 'connect' ? connecting?.refusalText(code, wish.name ?? '', claiming.rule) : undefined
    if (own !== undefined) return own
    const ofWish = code === 'FEATURE_UNSUPPORTED' ? this.server.parts.refusalOf(wish) : undefined
    return ofWish?.message ?? refusalText(code, wish, claiming, this.server.settings)
  }

  claim(wish: Register, claiming: Claiming): Member | ErrorCode | Promise<Member | ErrorCode> {
    const context = this.server
    if (context.state === 'draining') return 'SERVER_DRAINING'
    const { kind, name = '', protocol, routes = [] } = wish
    if (kind === 'private' || kind === 'connect') {
      if (context.parts.connecting === undefined) return 'KIND_REFUSED'
      if (kind === 'connect')
        return context.isBlocked(name)
          ? 'BLOCKED'
          : context.parts.connecting.claim(name, claiming.rule, claiming.holder)
    }
    const isHttp2 = [protocol, ...routes.map(route => route.protocol)].some(one => one !== undefined)
    if (isHttp2 && context.parts.appsOf === undefined) return 'KIND_REFUSED'
    if (context.parts.refusalOf(wish) !== undefined) return 'FEATURE_UNSUPPORTED'
    const host = {
      tunnels: context.tunnels,
      open: this.#ports,
      isBlocked: (name: string) => context.isBlocked(name),
      get terms() {
        return context.settings
      },
    }
    return context.servers === undefined
      ? claim(wish, claiming, host)
      : claimInCluster(wish, claiming, host, context.servers)
  }

  urlOf(tunnel: Tunnel): string {
    return this.#addresses.urlOf(tunnel)
  }

  // ── Events ─────────────────────────────────────────────────────────────────────────────────────────────────

  registered(
    client: ClientConnection,
    tunnel: Tunnel,
    rule: Rule,
    { inbox, wishes = {} }: Pick<Register, 'inbox' | 'wishes'> = {},
  ): void {
    const { name, hostNames, isEnd } = tunnel
    const { wire, remoteAddress } = client
    this.#endWith(client, rule)
    // Comes before requests that waited continue.
    if (tunnel.kind === 'http')
      this.server.parts.registered(tunnel, { rule, address: remoteAddress, inbox, wishes })
    this.#startupHold.arrived(name)
    for (const host of hostNames) this.#startupHold.arrived(host)
    const token = rule.name
    this.server.emit('connection', {
      subdomain: name,
      wire,
      remoteAddress,
      ...(token !== undefined && { token }),
      ...(isEnd && { kind: 'connect' as const }),
    })
  }

  refused({ remoteAddress, wire }: ClientConnection, { kind, name, port = 0 }: Wish, code: ErrorCode): void {
    const wished = name ?? (port === 0 ? kind : `${kind}-${port}`)
    this.server.emit('refused', { remoteAddress, wire, code, kind, name: wished })
  }

  released(_client: ClientConnection, { name, isEnd }: Tunnel, reason: ErrorCode | 'released'): void {
    this.server.emit('disconnection', { subdomain: name, reason, ...(isEnd && { kind: 'connect' as const }) })
  }
}
