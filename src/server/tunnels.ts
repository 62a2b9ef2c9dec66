// The names and ports of a server: who holds which, for how long after a lost carrier, and what waits for whom.

import { createHash, randomBytes, timingSafeEqual } from 'node:crypto'
import type { ErrorCode } from '../errors.ts'
import { isReservedName, isValidSubdomain } from '../names.ts'
import { probeProof, type TunnelKind } from '../wire/control.ts'
import type { ClientConnection } from './clients.ts'
import type { Deadline, Deadlines } from './deadlines.ts'
import type { ServerLimits } from './options.ts'
import type { TunnelUpstream } from './upstream.ts'

/** Someone who waits for a tunnel's client to come back. Called exactly once. */
export type Held = (upstream: TunnelUpstream | ErrorCode) => void

/** The public port of a tunnel, open for visitors. */
export interface PortFront {
  /** Takes no more visitors; those that are there go on. */
  drain(): void
  /** Takes no more visitors, and cuts those that are there. */
  stop(code: ErrorCode): void
}

/** A public name or port granted to a client. It outlives the client's carrier by the lease. */
export class Tunnel implements Deadline {
  readonly kind: TunnelKind
  /** Its label, or kind and port: `tcp-20000`. */
  readonly name: string
  /** The public port of a `tcp` or `udp` tunnel, else 0. */
  readonly port: number
  /** The same, open. */
  front: PortFront | undefined
  /** Where visitors go; `undefined` while the client is reconnecting. */
  upstream: TunnelUpstream | undefined
  /** Whose it is; `undefined` likewise. */
  client: ClientConnection | undefined
  /** The hosts below its name are its own, too. */
  isWildcard = false
  /** Those that may have a certificate. */
  readonly #hostsBelow = new Set<string>()
  /** SHA-256 of the resume secret; `undefined` for a JSON client, which has none. */
  #resumeHash: Buffer | undefined
  #probeHash: Buffer | undefined
  dueTick = 0
  readonly #tunnels: Tunnels
  readonly #held = new Set<Waiter>()

  constructor(tunnels: Tunnels, kind: TunnelKind, name: string, port = 0) {
    this.#tunnels = tunnels
    this.kind = kind
    this.name = name
    this.port = port
  }

  /**
   * The resume secret to grant: the one that `resume` proved already, else a fresh one, of which only the hash stays.
   * It does not change from grant to grant: the carrier may break before the client has read the new one.
   */
  secretFor(resume: string | undefined): string {
    if (resume !== undefined && this.isHeldBy(resume)) return resume
    const secret = randomBytes(24).toString('base64url')
    this.#resumeHash = sha256(secret)
    this.#probeHash = sha256(probeProof(secret, text => sha256(text).toString('base64url')))
    return secret
  }

  isHeldBy(resume: string | undefined): boolean {
    if (resume === undefined || this.#resumeHash === undefined) return false
    return timingSafeEqual(sha256(resume), this.#resumeHash)
  }

  /** Whether a visitor is the holder itself, asking whether it can be reached. */
  isProbedBy(proof: string | undefined): boolean {
    if (proof === undefined || this.#probeHash === undefined) return false
    return timingSafeEqual(sha256(proof), this.#probeHash)
  }

  /**
   * Whether a certificate for a host below the name should be had: for the first so many. Whoever asks the server by TLS
   * makes up the host, and authorities give out only so many certificates.
   */
  knowsHostBelow(host: string): boolean {
    if (!this.isWildcard || !isHostName(host)) return false
    if (this.#hostsBelow.has(host)) return true
    if (this.#hostsBelow.size >= this.#tunnels.limits.maxHostsBelow) return false
    this.#hostsBelow.add(host)
    return true
  }

  /** The client is there: exchanges flow, also those that waited. */
  attach(upstream: TunnelUpstream, client: ClientConnection): void {
    const before = this.client
    this.upstream = upstream
    this.client = client
    // The same holder came back while its old connection still looked alive.
    if (before !== undefined && before !== client) before.close('CARRIER_LOST')
    this.#tunnels.deadlines.disarm(this)
    this.release(upstream)
  }

  /** The carrier is lost. With a resume secret the name is kept for the lease; without one it is free at once. */
  detach(upstream: TunnelUpstream): void {
    if (this.upstream !== upstream) return
    this.upstream = undefined
    this.client = undefined
    this.lapse()
  }

  /** Nobody holds it now: it is kept for the lease when whoever held it can prove it, else it is free. */
  lapse(): void {
    if (this.upstream !== undefined) return
    if (this.#resumeHash === undefined) this.remove()
    else this.#tunnels.deadlines.arm(this, Math.max(this.#tunnels.limits.leaseMs, 1))
  }

  /** Gives the name or the port back for good. Visitors that wait, or have connections of their own, are cut. */
  remove(code: ErrorCode = 'CLIENT_GONE'): void {
    this.upstream = undefined
    this.client = undefined
    this.release(code)
    this.front?.stop(code)
    this.front = undefined
    this.#tunnels.remove(this)
  }

  /** The lease ran out. */
  expired(): void {
    if (this.upstream === undefined) this.remove()
  }

  /**
   * Waits for the client to come back, bounded in time and number. Returns the function that stops waiting, or a
   * code when nothing more may wait.
   */
  hold(held: Held): (() => void) | ErrorCode {
    const { holdTimeoutMs, maxHeldRequests } = this.#tunnels.limits
    if (holdTimeoutMs === 0) return 'CLIENT_GONE'
    if (this.#held.size >= maxHeldRequests) return 'CLIENT_RECONNECTING'
    const waiter = new Waiter(this.#tunnels.deadlines, holdTimeoutMs, held, () => this.#held.delete(waiter))
    this.#held.add(waiter)
    return () => waiter.stop()
  }

  /** Ends the wait of all that wait. */
  release(outcome: TunnelUpstream | ErrorCode): void {
    for (const waiter of [...this.#held]) waiter.finish(outcome)
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

  finish(outcome: TunnelUpstream | ErrorCode): void {
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
  readonly #byName = new Map<string, Tunnel>()
  readonly #limits: () => ServerLimits

  /** `limits`: those of now. */
  constructor(limits: () => ServerLimits, deadlines: Deadlines) {
    this.#limits = limits
    this.deadlines = deadlines
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

  names(): string[] {
    return [...this.#byName.keys()]
  }

  get count(): number {
    return this.#byName.size
  }

  /**
   * Takes a name for a client. A name with a live holder, or within its lease, only goes to whoever proves to be the
   * same holder; that one takes it over at once, however dead its old carrier looks.
   */
  claim(kind: 'http' | 'tls', name: string, resume: string | undefined): Tunnel | ErrorCode {
    if (!isValidSubdomain(name)) return 'NAME_INVALID'
    if (isReservedName(name) || isNameOfPort(name)) return 'NAME_RESERVED'
    const existing = this.#byName.get(name)
    if (existing !== undefined)
      return existing.kind === kind && existing.isHeldBy(resume) ? existing : 'NAME_TAKEN'
    return this.#add(new Tunnel(this, kind, name))
  }

  /** The same for a port. The one returned is new when it has no `front`. */
  claimPort(kind: 'tcp' | 'udp', port: number, resume: string | undefined): Tunnel | 'PORT_TAKEN' {
    const name = `${kind}-${port}`
    const existing = this.#byName.get(name)
    if (existing !== undefined) return existing.isHeldBy(resume) ? existing : 'PORT_TAKEN'
    return this.#add(new Tunnel(this, kind, name, port))
  }

  #add(tunnel: Tunnel): Tunnel {
    this.#byName.set(tunnel.name, tunnel)
    this.deadlines.watch(tunnel)
    return tunnel
  }

  remove(tunnel: Tunnel): void {
    if (this.#byName.get(tunnel.name) === tunnel) this.#byName.delete(tunnel.name)
    this.deadlines.forget(tunnel)
  }

  /** Ports take nobody new, and nothing waits any longer: no client can come back. */
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

/** What a tunnel with a port is called: as a label it would be taken for one. */
function isNameOfPort(name: string): boolean {
  return /^(?:tcp|udp)-\d{1,5}$/.test(name)
}

/** What an authority would certify: letters, digits and inner hyphens. */
function isHostName(host: string): boolean {
  const isLabel = (label: string) => /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/.test(label)
  return host.length <= 253 && host.split('.').every(isLabel)
}

function sha256(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}
