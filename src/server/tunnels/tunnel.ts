// A public name or port: the clients that have it, the lease after a lost carrier, and the requests that wait.

import type { ErrorCode } from '../../errors.ts'
import type { Guard } from '../../plugin.ts'
import type { Socket, SocketHandler } from '../../socket.ts'
import type { Affinity, PoolResponse } from '../../wire/control.ts'
import { networkOf } from '../../wire/ip-address.ts'
import type { GrantedKind } from '../../wire/tunnel-kind.ts'
import type { ClientConnection } from '../contracts/clients.ts'
import type { Holding } from '../contracts/front.ts'
import type { Guarding, OwnGuard } from '../contracts/guarding.ts'
import type { Laning } from '../contracts/laning.ts'
import type { Router } from '../contracts/layer.ts'
import type { TunnelUpstream } from '../contracts/upstream.ts'
import type { Deadlines } from '../limits/deadlines.ts'
import type { QuotaOwner } from '../limits/quotas.ts'
import { Waits } from '../limits/waits.ts'
import type { Bounds } from '../settings/bounds.ts'
import type { Rule } from '../settings/policy.ts'
import type { HostNames } from './host-names.ts'
import { HostsBelow, isHostName } from './hosts-below.ts'
import { Member } from './member.ts'
import { type Asking, MAX_MEMBERS, Pool } from './pool.ts'

/** The member that takes the visitor, a code why none does, or a wait for one. */
export type Chosen = Member | ErrorCode | Holding<Member | ErrorCode>

/** Called once when the wait of a request or connection ends: with the member that takes it, or a code. */
export type Held = (outcome: Member | ErrorCode) => void

/** The claim of a client to a name or port. */
export interface Claimant {
  /** The token or address whose quota is used. */
  readonly holder: QuotaOwner
  /** The secret of an earlier grant, which proves the same client. */
  readonly resume?: string | undefined
  /** How the pool distributes visitors, if the name or port is shared. */
  readonly pool?: Affinity | undefined
  /** Which response counts, in a pool where all clients get a copy. */
  readonly poolResponse?: PoolResponse | undefined
  readonly guard?: OwnGuard | undefined
  /** The custom domains, in addition to the name. */
  readonly hostNames?: readonly string[] | undefined
}

export interface PortFront {
  /** The descriptor of the listening socket. `undefined` if another program could not continue with it. */
  readonly descriptor?: number | undefined
  /** Called when the server stops: takes no more visitors; open connections continue. */
  drain(): void
  /** Called when the tunnel is released: the port is free, and open connections continue while their client does. */
  release(): void
  /** Takes no more visitors, and cuts open connections. */
  stop(code: ErrorCode): void
  /**
   * Takes the framed datagrams of another server's visitor for a UDP port, and calls `opened` once they are sent on.
   * Cuts the connection of a visitor that is refused.
   */
  takeFlow?(socket: Socket, address: string, opened: () => void): SocketHandler
}

export interface TunnelRegistry {
  readonly limits: Bounds
  readonly deadlines: Deadlines
  readonly guards: Guarding
  readonly lanes: Pick<Laning, 'recall'>
  readonly hostNames: HostNames<Tunnel>
  /** Whether the server stops, so that no client comes back. */
  readonly isDraining: boolean
  remove(tunnel: Tunnel): void
}

/** Connects clients to private services. Implementation: parts/private/. */
export interface Connecting {
  /** Decides whether a client with this rule may connect to the private service `name`. */
  claim(name: string, rule: Rule, holder: QuotaOwner): Member | ErrorCode | Promise<Member | ErrorCode>
  /** Returns the text of a refusal for the client's user. `undefined`: the same text as for other tunnels. */
  refusalText(code: ErrorCode, name: string, rule: Rule): string | undefined
  /** Opens `count` streams to the client, for connections to its end of the service. */
  dial(member: Member, count: number): void
}

/** A public name or port granted to a client, or to the clients of a pool. It outlives their carriers by the lease. */
export class Tunnel {
  readonly kind: GrantedKind
  /** Whether this is the connecting end of a private service, which no visitor can reach. */
  readonly isEnd: boolean
  /** The label; for a port, kind and number as in `tcp-20000`; for a private service, as in `tcp:db`. */
  readonly name: string
  /** The public port of a `tcp` or `udp` tunnel, otherwise 0. */
  readonly port: number
  /** The pool. `undefined` if the tunnel is not shared. */
  readonly pool: Pool | undefined
  opening: Promise<PortFront> | undefined
  /** The open port of a TCP or UDP tunnel. */
  front: PortFront | undefined
  /** The routing of its requests. `undefined` until `Parts` makes it. Only `Parts` and `routesChanged` set it. */
  router: Router | undefined
  readonly tunnels: TunnelRegistry
  readonly #members: Member[] = []
  droppedDatagrams = 0
  /** The hosts below the name that may have a certificate. */
  readonly hostsBelow: HostsBelow
  /** Requests that wait until its client is back. */
  readonly #waits: Waits<Member | ErrorCode>
  #guard: OwnGuard | undefined

  constructor(
    tunnels: TunnelRegistry,
    kind: GrantedKind,
    name: string,
    port: number,
    { pool, poolResponse }: Claimant,
    isEnd = false,
  ) {
    this.isEnd = isEnd
    this.tunnels = tunnels
    this.kind = kind
    this.name = name
    this.port = port
    this.pool = pool && new Pool(pool, poolResponse)
    this.#waits = new Waits<Member | ErrorCode>(tunnels.deadlines, 'CLIENT_RECONNECTING')
    this.hostsBelow = new HostsBelow(() => tunnels.limits)
  }

  /** The guard that its client asked for. `undefined` if everybody may visit. */
  get guard(): OwnGuard | undefined {
    return this.#guard
  }

  /** Replaces the guard. Connections that only the old guard admitted end with it. */
  useGuard(guard: OwnGuard | undefined): void {
    const before = this.#guard
    // A client that reconnects sends the same definition: admitted visitors stay.
    if (before?.definition === guard?.definition) {
      if (guard !== undefined && guard !== before) this.tunnels.guards.close(guard)
      return
    }
    this.#guard = guard
    this.routesChanged()
    if (before !== undefined) this.tunnels.guards.close(before, guard)
  }

  /** Whether every visitor must be checked by a guard. */
  get isGuarded(): boolean {
    return this.tokenRate !== undefined || this.tunnels.guards.isAsked(this.#guard, this.name)
  }

  /** The limits that the rule of its token sets for visitors. */
  get tokenRate(): Guard | undefined {
    return this.holder?.tokenRate
  }

  /** The quota owner; in a pool, that of the first client. */
  get holder(): QuotaOwner | undefined {
    return this.#members[0]?.holder
  }

  /** The owner: the same text for all tunnels of one token, or of one address without a token. */
  get owner(): string {
    return this.holder?.key ?? ''
  }

  /** All members, including those that are reconnecting. */
  get members(): readonly Member[] {
    return this.#members
  }

  /** The upstream if no choice between clients is needed. `undefined` while every client is reconnecting. */
  get upstream(): TunnelUpstream | undefined {
    return this.#present?.upstream
  }

  get serverProbe(): string | undefined {
    return this.#present?.serverProbe
  }

  /** The client of that upstream. `undefined` while every client is reconnecting. */
  get client(): ClientConnection | undefined {
    return this.#present?.client
  }

  /** Whether hosts below the name belong to the tunnel, because a client asked for them. */
  get isWildcard(): boolean {
    return this.#members.some(member => member.isWildcard)
  }

  get hostNames(): readonly string[] {
    const [first, ...others] = this.#members
    if (others.length === 0) return first?.hostNames ?? []
    return [...new Set(this.#members.flatMap(({ hostNames }) => hostNames))]
  }

  get #present(): Member | undefined {
    return this.#members.find(member => member.upstream !== undefined)
  }

  /** The members that can take visitors now. */
  get able(): readonly Member[] {
    return this.#members.filter(member => member.upstream !== undefined && member.isHealthy)
  }

  /** Chooses the member for this visitor. `tried`: members that already had the request and failed. */
  choose(asking: Asking, tried?: ReadonlySet<Member>): Chosen {
    const chosen = this.pool === undefined ? this.#members[0] : this.pool.pick(this.#members, asking, tried)
    if (chosen === 'ORIGIN_UNHEALTHY') return chosen
    if (chosen?.upstream !== undefined) return chosen.isHealthy ? chosen : 'ORIGIN_UNHEALTHY'
    // A server that stops grants no tunnel, so the visitor would wait without success.
    if (this.tunnels.isDraining) return 'SERVER_DRAINING'
    return { kind: 'holding', hold: held => this.hold(held, asking.address) }
  }

  memberHeldBy(resume: string | undefined): Member | undefined {
    return this.#members.find(member => member.isHeldBy(resume))
  }

  /** Returns the member whose client sent this probe, if it is one. */
  memberProbedBy(proof: string | undefined): Member | undefined {
    return this.#members.find(member => member.isProbedBy(proof))
  }

  /**
   * Adds a client. If there are too many members, removes the one whose client left first; if all clients are
   * connected, returns a code.
   */
  join(holder: QuotaOwner): Member | 'CLIENT_LIMIT' {
    if (!this.isRoomOf(holder)) return 'CLIENT_LIMIT'
    this.routesChanged()
    if (this.#members.length >= MAX_MEMBERS) {
      const gone = this.#members.find(member => member.upstream === undefined)
      if (gone === undefined) return 'CLIENT_LIMIT'
      this.leave(gone)
    }
    const member = new Member(this, holder)
    this.#members.push(member)
    this.tunnels.deadlines.watch(member)
    return member
  }

  /**
   * Removes a member. After the last one, the name or port is free and waiting visitors are refused. `code`: also
   * cuts visitors with connections of their own.
   */
  leave(member: Member, code?: ErrorCode): void {
    this.routesChanged()
    const at = this.#members.indexOf(member)
    if (at === -1) return
    this.#members.splice(at, 1)
    member.giveBack()
    this.tunnels.deadlines.forget(member)
    if (this.#members.length > 0) return
    this.release(code ?? 'CLIENT_GONE')
    if (code === undefined) this.front?.release()
    else this.front?.stop(code)
    this.front = undefined
    this.useGuard(undefined)
    this.tunnels.remove(this)
  }

  /** Whether the quota of this owner allows one more tunnel of this kind. */
  isRoomOf(holder: QuotaOwner): boolean {
    return holder.hasRoomFor('tunnels') && (this.port === 0 || holder.hasRoomFor('ports'))
  }

  /** Releases the name or port for all members. */
  remove(code: ErrorCode): void {
    for (const member of [...this.#members]) member.remove(code)
  }

  /** Whether a host below this name, under one of the domains, should have a certificate. */
  mayCertify(host: string, domains: readonly string[]): boolean {
    if (!this.isWildcard || !isHostName(host)) return false
    const listed = this.#members.flatMap(({ hosts }) => hosts).slice(0, this.tunnels.limits.maxHostsBelow)
    const isListed = listed.some(labels =>
      domains.some(domain => host === `${labels}.${this.name}.${domain}`),
    )
    return this.hostsBelow.has(host, isListed)
  }

  /**
   * Makes a visitor from this address wait for the client, bounded in time and number. Returns the function that ends
   * the wait, or a code if too many wait.
   */
  hold(held: Held, address: string): (() => void) | ErrorCode {
    const { holdTimeoutMs, maxHeldRequests } = this.tunnels.limits
    if (holdTimeoutMs === 0) return 'CLIENT_GONE'
    const wait = this.#waits.add(networkOf(address), maxHeldRequests, holdTimeoutMs, held)
    return wait === undefined ? 'CLIENT_RECONNECTING' : () => wait.stop()
  }

  /** Called when routes may have changed: each request is routed again. */
  routesChanged(): void {
    this.router = undefined
    this.tunnels.lanes.recall([this])
  }

  /** Ends the wait of all visitors, with a member or a code. */
  release(outcome: Member | ErrorCode): void {
    this.#waits.finish(outcome)
  }

  /** Removes the tunnel, because another server of the cluster has the name. Waiting requests are then routed again. */
  moveAway(remove: (member: Member) => void): void {
    const finish = this.#waits.stop()
    for (const member of [...this.#members]) remove(member)
    finish('CLUSTER_MOVED')
  }
}
