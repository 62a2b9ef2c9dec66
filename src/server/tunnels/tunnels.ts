// All tunnels of a server by name or port: finds the tunnel of a host, decides who may have a name, and knows which are free.

import { isPortName } from '../../directory.ts'
import type { ErrorCode } from '../../errors.ts'
import { isReservedName, isValidSubdomain } from '../../names.ts'
import type { Affinity } from '../../wire/control.ts'
import type { GrantedKind } from '../../wire/tunnel-kind.ts'
import type { Guarding } from '../contracts/guarding.ts'
import type { Laning } from '../contracts/laning.ts'
import type { Deadlines } from '../limits/deadlines.ts'
import type { Bounds } from '../settings/bounds.ts'
import { FreePorts } from './free-ports.ts'
import { HostNames } from './host-names.ts'
import type { Member } from './member.ts'
import { NoGuards } from './no-guards.ts'
import { type Claimant, Tunnel, type TunnelRegistry } from './tunnel.ts'

export class Tunnels implements TunnelRegistry {
  readonly deadlines: Deadlines
  guards: Guarding = new NoGuards()
  lanes: Laning = NO_LANES
  /** The ports that have no tunnel. */
  readonly ports: Readonly<Record<'tcp' | 'udp', FreePorts>> = { tcp: new FreePorts(), udp: new FreePorts() }
  readonly hostNames: HostNames<Tunnel> = new HostNames()
  isDraining = false
  /** Called when a name or port has no tunnel any more. */
  freed: ((name: string) => void) | undefined
  readonly #byName = new Map<string, Tunnel>()
  readonly #limits: () => Bounds

  /** Makes the set. `limits` returns the current limits. */
  constructor(limits: () => Bounds, deadlines: Deadlines) {
    this.#limits = limits
    this.deadlines = deadlines
  }

  get limits(): Bounds {
    return this.#limits()
  }

  find(name: string): Tunnel | undefined {
    return this.#byName.get(name)
  }

  all(): Tunnel[] {
    return [...this.#byName.values()]
  }

  /** Routes the requests of all tunnels again, because their destination or their reports have changed. */
  routesChanged(): void {
    for (const tunnel of this.#byName.values()) tunnel.router = undefined
    this.lanes.recall(this.all())
  }

  names(): string[] {
    return [...this.#byName.keys()]
  }

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
   * Takes a name for a client. A name whose client is connected, or within its lease, goes only to a client that proves to be the
   * same one, or to a further client of a pool. The same client gets it at once, even if its old carrier still looks alive.
   */
  claim(kind: 'http' | 'tls' | 'private', name: string, claimant: Claimant): Member | ErrorCode {
    const refusal = refusalOfName(name, kind)
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

  /** Takes a port for a client, as `claim`. The tunnel is new if it has no `front`. */
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

  /** Closes ports for new visitors, and ends all waits: no client can come back. */
  drain(code: ErrorCode): void {
    this.isDraining = true
    for (const tunnel of [...this.#byName.values()]) {
      tunnel.front?.drain()
      tunnel.release(code)
    }
  }

  /** Removes all tunnels; visitors that wait get an error. */
  clear(code: ErrorCode): void {
    for (const tunnel of [...this.#byName.values()]) tunnel.remove(code)
  }
}

/**
 * Admits a client to a name or port that exists: the same client, or a further one of a pool. The claim and the
 * tunnel must agree on being a pool.
 */
function admit(tunnel: Tunnel, { resume, pool, holder, guard }: Claimant): Member | ErrorCode | undefined {
  if ((tunnel.pool === undefined) !== (pool === undefined)) return undefined
  const own = tunnel.memberHeldBy(resume)
  if (own === undefined && pool === undefined) return undefined
  // A pool either copies requests to all clients or shares them out: a mix would give a client only some of its webhooks.
  const isCopied = (affinity: Affinity | undefined) => affinity === 'all'
  if (isCopied(tunnel.pool?.affinity) !== isCopied(pool)) return 'POOL_DIFFERS'
  // Each client of a pool must be able to rely on its guard.
  const isAlone = tunnel.members.every(member => member === own)
  if (!isAlone && tunnel.guard?.definition !== guard?.definition) return 'POOL_DIFFERS'
  if (own === undefined) return tunnel.join(holder)
  // A tunnel whose client shows another token counts for that token.
  if (own.holder !== holder && !tunnel.isRoomOf(holder)) return 'CLIENT_LIMIT'
  own.moveTo(holder)
  tunnel.useGuard(guard)
  return own
}

/** Returns the reason why no client of any server may have this name. */
export function refusalOfName(name: string, kind?: GrantedKind): ErrorCode | undefined {
  if (kind === 'private') return isValidSubdomain(labelOf(name)) ? undefined : 'NAME_INVALID'
  if (!isValidSubdomain(name)) return 'NAME_INVALID'
  return isReservedName(name) || isPortName(name) ? 'NAME_RESERVED' : undefined
}

/** The meaning of a host for this server. */
export type Destination =
  | ({ readonly kind: 'tunnel' } & NamedTunnel)
  | { readonly kind: 'control' }
  | { readonly kind: 'unknown' }

export interface NamedTunnel {
  readonly name: string
  /** Whether the host has more labels in front of the name, which only a wildcard tunnel serves. */
  readonly isBelow: boolean
}

const CONTROL: Destination = { kind: 'control' }
const UNKNOWN: Destination = { kind: 'unknown' }

/**
 * Returns what a host means for this server. `host` is lower-case, without a port, as the head parser leaves it;
 * `domains` are sorted, longest first.
 */
export function destinationOf(host: string, domains: readonly string[]): Destination {
  for (const domain of domains) {
    if (host === domain) return CONTROL
    if (!host.endsWith(domain) || host[host.length - domain.length - 1] !== '.') continue
    const end = host.length - domain.length - 1
    const start = host.lastIndexOf('.', end - 1) + 1
    const name = host.slice(start, end)
    const isBelow = start > 0
    // These labels belong to the control host.
    if (name === 'api' || name === 'www') return isBelow ? UNKNOWN : CONTROL
    return { kind: 'tunnel', name, isBelow }
  }
  // Plain addresses reach the control host: for servers without a name, health checks, and clients on this machine.
  return host === 'localhost' || isAddress(host) ? CONTROL : UNKNOWN
}

function isAddress(host: string): boolean {
  return host.startsWith('[') || /^\d{1,3}(?:\.\d{1,3}){3}$/.test(host)
}

/** Returns the name of a private service without `tcp:` or `udp:`, which no host and no port has. `''` for any other name. */
export function labelOf(name: string): string {
  return /^(?:tcp|udp):(.*)$/.exec(name)?.[1] ?? ''
}

export const NO_LANES: Laning = {
  count: 0,
  recall() {},
  harvest() {},
  addedTo: served => served,
  forVisitor: () => undefined,
  forSession: () => undefined,
}
