// A public name or port: which clients hold it, the lease after a lost carrier, and the requests that wait.

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

/** The member that takes the visitor, why none does, or a wait for one. */
export type Chosen = Member | ErrorCode | Holding<Member | ErrorCode>

/** A request or connection waits for a tunnel's client to come back: this member, or a code. Called exactly once. */
export type Held = (outcome: Member | ErrorCode) => void

/** The claim of a client for a name or port. */
export interface Claimant {
  /** The token or address whose counts it goes to. */
  readonly holder: QuotaOwner
  /** Proves the holder of an earlier grant. */
  readonly resume?: string | undefined
  /** The kind of the pool, if it shares the name or port. */
  readonly pool?: Affinity | undefined
  /** The response that counts, in a pool where all get a copy. */
  readonly poolResponse?: PoolResponse | undefined
  readonly guard?: OwnGuard | undefined
  /** The custom domains, in addition to the name. */
  readonly hostNames?: readonly string[] | undefined
}

export interface PortFront {
  /** The descriptor of the socket that listens, if another program could continue with it. */
  readonly descriptor?: number | undefined
  /** The server stops: it takes no more visitors, and open connections continue. */
  drain(): void
  /** The tunnel is released: the port is free, and open connections continue as long as their client. */
  release(): void
  /** Takes no more visitors, and cuts those that are there. */
  stop(code: ErrorCode): void
  /**
   * Takes the datagrams of a visitor of another server for a UDP port, framed, and calls `opened` once they are sent on. Cuts
   * the connection of one that may not come in.
   */
  takeFlow?(socket: Socket, address: string, opened: () => void): SocketHandler
}

export interface TunnelRegistry {
  readonly limits: Bounds
  readonly deadlines: Deadlines
  readonly guards: Guarding
  readonly lanes: Pick<Laning, 'recall'>
  readonly hostNames: HostNames<Tunnel>
  /** The server stops: no client comes back. */
  readonly isDraining: boolean
  remove(tunnel: Tunnel): void
}

/** Connects clients to private services. Implementation: parts/private/. */
export interface Connecting {
  /** Decides whether a client with this rule may connect to the private service `name`. */
  claim(name: string, rule: Rule, holder: QuotaOwner): Member | ErrorCode | Promise<Member | ErrorCode>
  /** Returns what the client's user reads about a refusal. `undefined`: the text of other tunnels. */
  refusalText(code: ErrorCode, name: string, rule: Rule): string | undefined
  /** Opens `count` streams to the client, for connections to its end of the service. */
  dial(member: Member, count: number): void
}

/** A public name or port granted to a client, or to the clients of a pool. It outlives their carriers by the lease. */
export class Tunnel {
  readonly kind: GrantedKind
  /** Whether this is the other end of a private service. No visitor finds it. */
  readonly isEnd: boolean
  /** Its label, kind and port as in `tcp-20000`, or of a private service `tcp:db`. */
  readonly name: string
  /** The public port of a `tcp` or `udp` tunnel, otherwise 0. */
  readonly port: number
  /** The pool, if several clients share it. */
  readonly pool: Pool | undefined
  opening: Promise<PortFront> | undefined
  /** The same port, open. */
  front: PortFront | undefined
  /** The router of its requests. `undefined` until it is made. Only `Parts` and `routesChanged` set it. */
  router: Router | undefined
  readonly tunnels: TunnelRegistry
  readonly #members: Member[] = []
  droppedDatagrams = 0
  /** The hosts below that may have a certificate. */
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

  /** Replaces the guard. Connections that the old one let in, and the new one would not, end with it. */
  useGuard(guard: OwnGuard | undefined): void {
    const before = this.#guard
    // A client that comes back asks for the same: who was let in stays.
    if (before?.definition === guard?.definition) {
      if (guard !== undefined && guard !== before) this.tunnels.guards.close(guard)
      return
    }
    this.#guard = guard
    this.routesChanged()
    if (before !== undefined) this.tunnels.guards.close(before, guard)
  }

  /** Each of its visitors has to be asked about. */
  get isGuarded(): boolean {
    return this.tokenRate !== undefined || this.tunnels.guards.isAsked(this.#guard, this.name)
  }

  /** The limits that the rule of its token sets for visitors. */
  get tokenRate(): Guard | undefined {
    return this.holder?.tokenRate
  }

  /** The owner; that of the first client, in a pool. */
  get holder(): QuotaOwner | undefined {
    return this.#members[0]?.holder
  }

  /** The same for all tunnels of one token, or address. */
  get owner(): string {
    return this.holder?.key ?? ''
  }

  /** All that hold it, those that are reconnecting included. */
  get members(): readonly Member[] {
    return this.#members
  }

  /** The upstream for visitors that need no choice. `undefined` while every client is reconnecting. */
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

  /** The hosts below its name are its own as well: some client asked for them. */
  get isWildcard(): boolean {
    return this.#members.some(member => member.isWildcard)
  }

  /** The custom domains. */
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

  /** Which member takes this visitor. `tried`: members that had the visitor's request already and failed. */
  choose(asking: Asking, tried?: ReadonlySet<Member>): Chosen {
    const chosen = this.pool === undefined ? this.#members[0] : this.pool.pick(this.#members, asking, tried)
    if (chosen === 'ORIGIN_UNHEALTHY') return chosen
    if (chosen?.upstream !== undefined) return chosen.isHealthy ? chosen : 'ORIGIN_UNHEALTHY'
    // A server that stops grants no tunnel: a visitor that waited for the client would wait without success.
    if (this.tunnels.isDraining) return 'SERVER_DRAINING'
    return { kind: 'holding', hold: held => this.hold(held, asking.address) }
  }

  memberHeldBy(resume: string | undefined): Member | undefined {
    return this.#members.find(member => member.isHeldBy(resume))
  }

  /** The holder that asks whether it can be reached, if a visitor is one. */
  memberProbedBy(proof: string | undefined): Member | undefined {
    return this.#members.find(member => member.isProbedBy(proof))
  }

  /** Adds a client. With too many of them the one that left first is forgotten; if all are there: no. */
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
   * One client less. The last one gives the name or the port back for good: visitors that wait are refused. `code`: those
   * that have connections of their own are cut with it.
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

  /** Whether this holder may have one tunnel of this kind more. */
  isRoomOf(holder: QuotaOwner): boolean {
    return holder.hasRoomFor('tunnels') && (this.port === 0 || holder.hasRoomFor('ports'))
  }

  /** Gives the name or the port back for good, for all members. */
  remove(code: ErrorCode): void {
    for (const member of [...this.#members]) member.remove(code)
  }

  /** Whether a certificate for this host should be had, which is below its name under one of the domains. */
  mayCertify(host: string, domains: readonly string[]): boolean {
    if (!this.isWildcard || !isHostName(host)) return false
    const listed = this.#members.flatMap(({ hosts }) => hosts).slice(0, this.tunnels.limits.maxHostsBelow)
    const isListed = listed.some(labels =>
      domains.some(domain => host === `${labels}.${this.name}.${domain}`),
    )
    return this.hostsBelow.has(host, isListed)
  }

  /**
   * A visitor from this address waits for the client to come back, bounded in time and number. Returns the function that stops waiting, or a
   * code when nothing more may wait.
   */
  hold(held: Held, address: string): (() => void) | ErrorCode {
    const { holdTimeoutMs, maxHeldRequests } = this.tunnels.limits
    if (holdTimeoutMs === 0) return 'CLIENT_GONE'
    const wait = this.#waits.add(networkOf(address), maxHeldRequests, holdTimeoutMs, held)
    return wait === undefined ? 'CLIENT_RECONNECTING' : () => wait.stop()
  }

  /** Its upstream has changed: each request has to be routed again. */
  routesChanged(): void {
    this.router = undefined
    this.tunnels.lanes.recall([this])
  }

  /** Ends the wait of all visitors, with a member or a code. */
  release(outcome: Member | ErrorCode): void {
    this.#waits.finish(outcome)
  }

  /** The name belongs to another server of the cluster: waiting requests are routed again once it is gone here. */
  moveAway(remove: (member: Member) => void): void {
    const finish = this.#waits.stop()
    for (const member of [...this.#members]) remove(member)
    finish('CLUSTER_MOVED')
  }
}
