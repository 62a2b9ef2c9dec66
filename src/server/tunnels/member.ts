// One client's hold on a tunnel. Most tunnels have one; those of a pool have one for each of its clients.

import { createHash, randomBytes, timingSafeEqual } from 'node:crypto'
import type { ErrorCode } from '../../errors.ts'
import { probeProof, serverProbeProof } from '../../wire/control.ts'
import type { ClientConnection } from '../contracts/clients.ts'
import type { TunnelUpstream } from '../contracts/upstream.ts'
import type { Deadline } from '../limits/deadlines.ts'
import type { QuotaOwner } from '../limits/quotas.ts'
import type { Tunnel } from './tunnel.ts'

export class Member implements Deadline {
  readonly kind = 'member'
  readonly tunnel: Tunnel
  /** The upstream of its visitors. `undefined` while the client is reconnecting. */
  upstream: TunnelUpstream | undefined
  /** The client. `undefined` while it is reconnecting. */
  client: ClientConnection | undefined
  #isHealthy = true
  /** Whether it also takes the hosts below the tunnel's name. */
  isWildcard = false
  /** The names below that may have certificates, as labels before the name. */
  hosts: readonly string[] = []
  #hostNames: readonly string[] = []
  /** The time of the last report of trouble with a host, on the clock of `performance.now()`. */
  readonly toldAt: Map<string, number> = new Map<string, number>()
  #inFlight = 0
  #idle: (() => void) | undefined
  /** The mark of the member in a pool: the same after a reconnect; it can be neither guessed nor traced back to the secret. */
  tag = ''
  /** The name that its client gives itself in a pool. */
  label: string | undefined
  dueTick = 0
  /** The SHA-256 of the resume secret. `undefined` for a JSON client, which has none. */
  #resumeHash: Buffer | undefined
  #probeHash: Buffer | undefined
  /** Marks probes by this server for the client. `undefined` for a JSON client: its messages have a field for that. */
  serverProbe: string | undefined
  /** The secret until it is granted. */
  #given: string | undefined

  #holder: QuotaOwner
  #isGivenBack = false

  constructor(tunnel: Tunnel, holder: QuotaOwner) {
    this.tunnel = tunnel
    this.#holder = holder
    this.#count('take')
  }

  /** The token or address whose counts this member is in. */
  get holder(): QuotaOwner {
    return this.#holder
  }

  get served(): { readonly client?: number; readonly token?: string } {
    const { client } = this
    const token = this.#holder.rule.name
    return { ...(client !== undefined && { client: client.number }), ...(token !== undefined && { token }) }
  }

  get hostNames(): readonly string[] {
    return this.#hostNames
  }

  /** Replaces its custom domains. None of them may be another tunnel's. */
  useHostNames(hosts: readonly string[]): void {
    const { tunnel } = this
    const before = this.#hostNames
    if (before.length === 0 && hosts.length === 0) return
    tunnel.routesChanged()
    // First the new ones: what stays is at no moment free.
    tunnel.tunnels.hostNames.take(hosts, tunnel)
    tunnel.tunnels.hostNames.give(before, tunnel)
    this.#holder.take('hosts', hosts.length - before.length)
    this.#hostNames = hosts
  }

  /** Moves it to another owner, after its client has shown another token. */
  moveTo(holder: QuotaOwner): void {
    // A client that registered it twice still knows it when it is gone.
    if (holder === this.#holder || this.#isGivenBack) return
    // The operations of the token that its layers need.
    this.tunnel.routesChanged()
    this.#count('give')
    this.#holder = holder
    this.#count('take')
  }

  giveBack(): void {
    this.useHostNames([])
    this.#isGivenBack = true
    this.#count('give')
  }

  #count(change: 'take' | 'give'): void {
    this.#holder[change]('tunnels')
    this.#holder[change]('hosts', this.#hostNames.length)
    if (this.tunnel.port !== 0) this.#holder[change]('ports')
  }

  /** Whether its origin can take visitors, by the last message of the client. Kept through a reconnect. */
  get isHealthy(): boolean {
    return this.#isHealthy
  }

  set isHealthy(isHealthy: boolean) {
    if (isHealthy === this.#isHealthy) return
    this.#isHealthy = isHealthy
    this.tunnel.routesChanged()
  }

  /** Exchanges, lanes and connections that it serves. */
  get inFlight(): number {
    return this.#inFlight
  }

  /** Counts one more open request. */
  began(): void {
    this.#inFlight++
  }

  /** Counts one open request less, after its events were emitted. */
  finished(): void {
    if (--this.#inFlight > 0 || this.#idle === undefined) return
    const idle = this.#idle
    this.#idle = undefined
    idle()
  }

  /** Calls `idle` once the member serves no visitor. Do not give it new ones. */
  whenIdle(idle: () => void): void {
    if (this.#inFlight === 0) idle()
    else this.#idle = idle
  }

  /**
   * The resume secret to grant: the one that `resume` proved already, otherwise a fresh one, of which only the hash stays.
   * It does not change from grant to grant: the carrier may break before the client has read the new one.
   */
  secretFor(resume: string | undefined): string {
    if (resume !== undefined && this.isHeldBy(resume)) return resume
    const secret = this.#given ?? randomBytes(24).toString('base64url')
    this.#useSecret(secret)
    this.#given = undefined
    return secret
  }

  /** The secret that the directory of the cluster knows. */
  giveSecret(secret: string): void {
    if (this.isHeldBy(secret)) return
    this.#useSecret(secret)
    this.#given = secret
  }

  #useSecret(secret: string): void {
    this.#resumeHash = sha256(secret)
    this.#probeHash = sha256(probeProof(secret, sha256Text))
    this.serverProbe = serverProbeProof(secret, sha256Text)
    this.tag = sha256(`member ${secret}`).toString('base64url', 0, 12)
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

  /** The client is there: exchanges flow, also those that waited. */
  attach(upstream: TunnelUpstream, client: ClientConnection): void {
    const before = this.client
    this.tunnel.routesChanged()
    this.upstream = upstream
    this.client = client
    // The same holder came back while its old connection still looked alive.
    if (before !== undefined && before !== client) before.close('CARRIER_LOST')
    this.tunnel.tunnels.deadlines.disarm(this)
    this.tunnel.release(this.isHealthy ? this : 'ORIGIN_UNHEALTHY')
  }

  /** The carrier is lost. With a resume secret the name is kept for the lease; without one it is free at once. */
  detach(upstream: TunnelUpstream): void {
    if (this.upstream !== upstream) return
    this.tunnel.routesChanged()
    this.upstream = undefined
    this.client = undefined
    this.lapse()
  }

  /** No client is connected for it now: with a resume secret it is kept for the lease, otherwise it is free. */
  lapse(): void {
    if (this.upstream !== undefined) return
    const { deadlines, limits } = this.tunnel.tunnels
    if (this.#resumeHash === undefined) this.remove()
    else deadlines.arm(this, Math.max(limits.leaseMs, 1))
  }

  /** Releases the tunnel for good. `code` cuts its open requests; without it, they continue as long as the carrier. */
  remove(code?: ErrorCode): void {
    this.upstream = undefined
    this.client = undefined
    this.tunnel.leave(this, code)
  }

  /** The lease ran out. */
  expired(): void {
    if (this.upstream === undefined) this.remove()
  }
}

function sha256Text(text: string): string {
  return sha256(text).toString('base64url')
}

function sha256(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}
