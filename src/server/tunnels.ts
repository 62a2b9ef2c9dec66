// The names and ports of a server: which client holds which, the lease after a lost carrier, and the requests that wait.

import { isPortName } from '../directory.ts'
import type { ErrorCode } from '../errors.ts'
import { isReservedName, isValidSubdomain } from '../names.ts'
import type { Guard } from '../plugin.ts'
import type { Socket, SocketHandler } from '../socket.ts'
import type { Affinity, PoolAnswer } from '../wire/control.ts'
import type { TunnelKind } from '../wire/tunnel-kind.ts'
import type { ClientConnection } from './clients.ts'
import type { Deadline, Deadlines } from './deadlines.ts'
import { FreePorts } from './free-ports.ts'
import { Guards, type OwnGuard } from './guards.ts'
import type { Holder } from './holdings.ts'
import { HostNames } from './host-names.ts'
import { HostsBelow, isHostName } from './hosts-below.ts'
import { Lanes } from './lanes/lanes.ts'
import { Member } from './member.ts'
import type { ServerLimits } from './options.ts'
import { type Asking, type Choice, MAX_MEMBERS, Pool } from './pool.ts'
import type { TunnelUpstream } from './upstream.ts'

/** A request or connection waits for a tunnel's client to come back: this member, or a code. Called exactly once. */
export type Held = (outcome: Member | ErrorCode) => void

/** How a client asks for a name or port. */
export interface Claimant {
  /** Whose count it goes to. */
  readonly holder: Holder
  /** Proves the holder of an earlier grant. */
  readonly resume?: string | undefined
  /** It shares the name or port, and how. */
  readonly pool?: Affinity | undefined
  /** Of a pool where all get a copy: whose answer counts. */
  readonly poolAnswer?: PoolAnswer | undefined
  /** Who may visit. */
  readonly guard?: OwnGuard | undefined
  /** Whole host names outside of the server's domains, besides the name. */
  readonly hostNames?: readonly string[] | undefined
}

/** The public port of a tunnel, open for visitors. */
export interface PortFront {
  /** Of the socket that listens, where another program could go on with it. */
  readonly descriptor?: number | undefined
  /** The server stops: takes no more visitors; those that are there go on. */
  drain(): void
  /** The tunnel is given back: the port is free, and connections that are there go on for as long as their client does. */
  release(): void
  /** Takes no more visitors, and cuts those that are there. */
  stop(code: ErrorCode): void
  /**
   * Of a UDP port: takes the datagrams of a visitor of another server, framed, and calls `opened` once they are on their way.
   * Cuts the connection of one that may not come in.
   */
  takeFlow?(socket: Socket, address: string, opened: () => void): SocketHandler
}

/** A public name or port granted to a client, or to the clients of a pool. It outlives their carriers by the lease. */
export class Tunnel {
  readonly kind: TunnelKind
  /** Its label, or kind and port: `tcp-20000`. */
  readonly name: string
  /** The public port of a `tcp` or `udp` tunnel, else 0. */
  readonly port: number
  /** Who takes which visitor, when several clients share it. */
  readonly pool: Pool | undefined
  /** The same port, being opened. */
  opening: Promise<PortFront> | undefined
  /** The same port, open. */
  front: PortFront | undefined
  readonly tunnels: Tunnels
  readonly #members: Member[] = []
  /** Datagrams of its visitors that were dropped, when it is a UDP tunnel. */
  droppedDatagrams = 0
  /** Webhooks for it are kept while its client is away, and marked when they are delivered. */
  hasInbox = false
  /** Those that may have a certificate. */
  readonly hostsBelow: HostsBelow
  readonly #held = new Set<Waiter>()
  #guard: OwnGuard | undefined

  constructor(
    tunnels: Tunnels,
    kind: TunnelKind,
    name: string,
    port: number,
    { pool, poolAnswer }: Claimant,
  ) {
    this.tunnels = tunnels
    this.kind = kind
    this.name = name
    this.port = port
    this.pool = pool && new Pool(pool, poolAnswer)
    this.hostsBelow = new HostsBelow(() => tunnels.limits)
  }

  /** Who may visit, as its client asked for; `undefined`: everybody. */
  get guard(): OwnGuard | undefined {
    return this.#guard
  }

  /** Another guard decides from now on. Connections that the old one let in, and the new one would not, end with it. */
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
    return this.hasInbox || this.wall !== undefined || this.tunnels.guards.isAsked(this.#guard, this.name)
  }

  /** What the rule of its token allows visitors. */
  get wall(): Guard | undefined {
    return this.holder?.wall
  }

  /** Whose it is; of a pool, of the first that is there. */
  get holder(): Holder | undefined {
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

  /** Where visitors go that need no choice; `undefined` while every client is reconnecting. */
  get upstream(): TunnelUpstream | undefined {
    return this.#present?.upstream
  }

  /** Whose that is; `undefined` likewise. */
  get client(): ClientConnection | undefined {
    return this.#present?.client
  }

  /** The hosts below its name are its own, too: some client asked for them. */
  get isWildcard(): boolean {
    return this.#members.some(member => member.isWildcard)
  }

  /** Whole host names that it answers besides its own. */
  get hostNames(): readonly string[] {
    const [first, ...others] = this.#members
    if (others.length === 0) return first?.hostNames ?? []
    return [...new Set(this.#members.flatMap(({ hostNames }) => hostNames))]
  }

  get #present(): Member | undefined {
    return this.#members.find(member => member.upstream !== undefined)
  }

  /** Who can take visitors now. */
  get able(): readonly Member[] {
    return this.#members.filter(member => member.upstream !== undefined && member.isHealthy)
  }

  /** Who takes this visitor. */
  choose(asking: Asking, tried?: ReadonlySet<Member>): Choice {
    if (this.pool !== undefined) return this.pool.pick(this.#members, asking, tried)
    const member = this.#members[0]
    if (member?.upstream === undefined) return undefined
    return member.isHealthy ? member : 'ORIGIN_UNHEALTHY'
  }

  /** The member that was granted this secret. */
  memberHeldBy(resume: string | undefined): Member | undefined {
    return this.#members.find(member => member.isHeldBy(resume))
  }

  /** The holder that asks whether it can be reached, if a visitor is one. */
  memberProbedBy(proof: string | undefined): Member | undefined {
    return this.#members.find(member => member.isProbedBy(proof))
  }

  /** One more client. With too many of them the one that left first is forgotten; if all are there: no. */
  join(holder: Holder): Member | 'CLIENT_LIMIT' {
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
  isRoomOf(holder: Holder): boolean {
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
   * Waits for the client to come back, bounded in time and number. Returns the function that stops waiting, or a
   * code when nothing more may wait.
   */
  hold(held: Held): (() => void) | ErrorCode {
    const { holdTimeoutMs, maxHeldRequests } = this.tunnels.limits
    if (holdTimeoutMs === 0) return 'CLIENT_GONE'
    if (this.#held.size >= maxHeldRequests) return 'CLIENT_RECONNECTING'
    const waiter = new Waiter(this.tunnels.deadlines, holdTimeoutMs, held, () => this.#held.delete(waiter))
    this.#held.add(waiter)
    return () => waiter.stop()
  }

  /** What serves it has changed: each request has to be routed again. */
  routesChanged(): void {
    this.tunnels.lanes.recall([this])
  }

  /** Ends the wait of all that wait. */
  release(outcome: Member | ErrorCode): void {
    for (const waiter of [...this.#held]) waiter.finish(outcome)
  }

  /** Another server of the cluster has the name: those that wait are routed again once it is not here any more. */
  moveAway(remove: (member: Member) => void): void {
    const waiting = [...this.#held]
    for (const waiter of waiting) waiter.stop()
    for (const member of [...this.#members]) remove(member)
    for (const waiter of waiting) waiter.finish('CLUSTER_MOVED')
  }
}

class Waiter implements Deadline {
  dueTick = 0
  readonly #deadlines: Deadlines
  readonly #held: Held
  readonly #removed: () => void

  constructor(deadlines: Deadlines, timeoutMs: number, held: Held, removed: () => void) {
    this.#deadlines = deadlines
    this.#held = held
    this.#removed = removed
    deadlines.watch(this)
    deadlines.arm(this, timeoutMs)
  }

  expired(): void {
    this.finish('CLIENT_RECONNECTING')
  }

  finish(outcome: Member | ErrorCode): void {
    this.stop()
    this.#held(outcome)
  }

  stop(): void {
    this.#deadlines.forget(this)
    this.#removed()
  }
}

/** All tunnels of a server, by name: a port is one, too. */
export class Tunnels {
  readonly deadlines: Deadlines
  readonly guards: Guards
  readonly lanes: Lanes<Tunnel> = new Lanes()
  /** Which ports have no tunnel. */
  readonly ports: Readonly<Record<'tcp' | 'udp', FreePorts>> = { tcp: new FreePorts(), udp: new FreePorts() }
  /** Hosts of customers. */
  readonly hostNames: HostNames<Tunnel> = new HostNames()
  /** A name or port has no tunnel any more. */
  freed: ((name: string) => void) | undefined
  readonly #byName = new Map<string, Tunnel>()
  readonly #limits: () => ServerLimits

  /** `limits`: those of now. */
  constructor(limits: () => ServerLimits, deadlines: Deadlines, guards: Guards = new Guards()) {
    this.#limits = limits
    this.deadlines = deadlines
    this.guards = guards
  }

  get limits(): ServerLimits {
    return this.#limits()
  }

  find(name: string): Tunnel | undefined {
    return this.#byName.get(name)
  }

  all(): Tunnel[] {
    return [...this.#byName.values()]
  }

  /** Where requests go, or who gets reports of them, has changed for all of them. */
  routesChanged(): void {
    this.lanes.recall(this.all())
  }

  names(): string[] {
    return [...this.#byName.keys()]
  }

  /** By UDP tunnel. */
  droppedDatagrams(): Record<string, number> {
    const counts: Record<string, number> = {}
    for (const { kind, name, droppedDatagrams } of this.#byName.values())
      if (kind === 'udp') counts[name] = droppedDatagrams
    return counts
  }

  get count(): number {
    return this.#byName.size
  }

  /**
   * Takes a name for a client. A name with a connected client, or within its lease, only goes to a client that proves to
   * be the same one, which takes it over at once, whether its old carrier looks dead or not; or to one more of a pool.
   */
  claim(kind: 'http' | 'tls', name: string, claimant: Claimant): Member | ErrorCode {
    const refusal = refusalOfName(name)
    if (refusal !== undefined) return refusal
    const existing = this.#byName.get(name)
    const { hostNames = [] } = claimant
    const code = this.#refusalOfHosts(hostNames, existing, claimant)
    if (code !== undefined) {
      const isOurs = existing?.pool !== undefined || existing?.memberHeldBy(claimant.resume) !== undefined
      return existing === undefined || isOurs ? code : 'NAME_TAKEN'
    }
    const member =
      existing === undefined
        ? this.#add(new Tunnel(this, kind, name, 0, claimant), claimant)
        : (existing.kind === kind && admit(existing, claimant)) || 'NAME_TAKEN'
    if (typeof member !== 'string') member.useHostNames(hostNames)
    return member
  }

  #refusalOfHosts(
    hostNames: readonly string[],
    tunnel: Tunnel | undefined,
    { holder, resume }: Claimant,
  ): ErrorCode | undefined {
    if (hostNames.length === 0) return undefined
    if (this.hostNames.areTaken(hostNames, tunnel)) return 'HOST_TAKEN'
    const own = tunnel?.memberHeldBy(resume)
    const more = hostNames.length - (own?.holder === holder ? own.hostNames.length : 0)
    return more <= 0 || holder.hasRoomFor('hosts', more) ? undefined : 'CLIENT_LIMIT'
  }

  /** The same for a port. The tunnel of the one returned is new when it has no `front`. */
  claimPort(kind: 'tcp' | 'udp', port: number, claimant: Claimant): Member | ErrorCode {
    const name = `${kind}-${port}`
    const existing = this.#byName.get(name)
    if (existing === undefined) return this.#add(new Tunnel(this, kind, name, port, claimant), claimant)
    return admit(existing, claimant) || 'PORT_TAKEN'
  }

  #add(tunnel: Tunnel, { holder, guard }: Claimant): Member | ErrorCode {
    const member = tunnel.join(holder)
    if (typeof member === 'string') return member
    tunnel.useGuard(guard)
    this.#byName.set(tunnel.name, tunnel)
    this.#portsOf(tunnel)?.take(tunnel.port)
    return member
  }

  remove(tunnel: Tunnel): void {
    if (this.#byName.get(tunnel.name) !== tunnel) return
    this.#byName.delete(tunnel.name)
    this.#portsOf(tunnel)?.free(tunnel.port)
    this.freed?.(tunnel.name)
  }

  #portsOf({ kind }: Tunnel): FreePorts | undefined {
    return kind === 'tcp' || kind === 'udp' ? this.ports[kind] : undefined
  }

  /** Ports take no new visitors, and nothing waits any longer: no client can come back. */
  drain(code: ErrorCode): void {
    for (const tunnel of [...this.#byName.values()]) {
      tunnel.front?.drain()
      tunnel.release(code)
    }
  }

  /** Gives all names back: whatever waits fails. */
  clear(code: ErrorCode): void {
    for (const tunnel of [...this.#byName.values()]) tunnel.remove(code)
  }
}

/** A name or port that exists: for the holder that comes back, and for one more of a pool. Both must mean a pool, or neither. */
function admit(tunnel: Tunnel, { resume, pool, holder, guard }: Claimant): Member | ErrorCode | undefined {
  if ((tunnel.pool === undefined) !== (pool === undefined)) return undefined
  const own = tunnel.memberHeldBy(resume)
  if (own === undefined && pool === undefined) return undefined
  // One that expects every webhook must not get some of them, nor the others all of a sudden.
  const isCopied = (affinity: Affinity | undefined) => affinity === 'all'
  if (isCopied(tunnel.pool?.affinity) !== isCopied(pool)) return 'POOL_DIFFERS'
  // Each client of a pool must be able to count on its guard.
  const isAlone = tunnel.members.every(member => member === own)
  if (!isAlone && tunnel.guard?.definition !== guard?.definition) return 'GUARD_DIFFERS'
  if (own === undefined) return tunnel.join(holder)
  // With another token than before, it counts as a tunnel of that one.
  if (own.holder !== holder && !tunnel.isRoomOf(holder)) return 'CLIENT_LIMIT'
  own.moveTo(holder)
  tunnel.useGuard(guard)
  return own
}

/** Why no client of any server may have this name. */
export function refusalOfName(name: string): ErrorCode | undefined {
  if (!isValidSubdomain(name)) return 'NAME_INVALID'
  return isReservedName(name) || isPortName(name) ? 'NAME_RESERVED' : undefined
}
