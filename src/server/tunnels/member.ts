// One client's membership in a tunnel. Most tunnels have one member; a pool has one for each client.

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
  /** Whether the client also takes hosts below the tunnel's name. */
  isWildcard = false
  /** The hosts below the name that may have certificates, as labels before the name. */
  hosts: readonly string[] = []
  #hostNames: readonly string[] = []
  /** The time when trouble with each host was last reported to the client, on the clock of `performance.now()`. */
  readonly toldAt: Map<string, number> = new Map<string, number>()
  #inFlight = 0
  #idle: (() => void) | undefined
  /** The id of the member in a pool: the same after a reconnect. It can be neither guessed nor traced back to the secret. */
  tag = ''
  /** The name that the client chose for itself in a pool. */
  label: string | undefined
  dueTick = 0
  /** The SHA-256 of the resume secret. `undefined` for a JSON client, which has none. */
  #resumeHash: Buffer | undefined
  #probeHash: Buffer | undefined
  /**
   * The mark with which this server's probes are recognised by the client. `undefined` for a JSON client, whose
   * messages have a field for it.
   */
  serverProbe: string | undefined
  /** The resume secret until it is sent with the grant. */
  #given: string | undefined

  #holder: QuotaOwner
  #isGivenBack = false

  constructor(tunnel: Tunnel, holder: QuotaOwner) {
    this.tunnel = tunnel
    this.#holder = holder
    this.#count('take')
  }

  /** The token or address whose quota this member uses. */
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

  /** Replaces the custom domains. None of them may belong to another tunnel. */
  useHostNames(hosts: readonly string[]): void {
    const { tunnel } = this
    const before = this.#hostNames
    if (before.length === 0 && hosts.length === 0) return
    tunnel.routesChanged()
    // The new ones are added first, so that a host in both lists is never free.
    tunnel.tunnels.hostNames.take(hosts, tunnel)
    tunnel.tunnels.hostNames.give(before, tunnel)
    this.#holder.take('hosts', hosts.length - before.length)
    this.#hostNames = hosts
  }

  /** Moves it to another owner, after its client has shown another token. */
  moveTo(holder: QuotaOwner): void {
    // A client that registered the tunnel twice may still refer to it after its removal.
    if (holder === this.#holder || this.#isGivenBack) return
    // The new token may set limits for visitors, which layers apply.
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

  /** Whether the app can take visitors, by the client's last message. A reconnect does not change it. */
  get isHealthy(): boolean {
    return this.#isHealthy
  }

  set isHealthy(isHealthy: boolean) {
    if (isHealthy === this.#isHealthy) return
    this.#isHealthy = isHealthy
    this.tunnel.routesChanged()
  }

  /** The number of exchanges, lanes and connections that the member serves. */
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

  /** Calls `idle` once the member serves no visitor. Give it no new ones until then. */
  whenIdle(idle: () => void): void {
    if (this.#inFlight === 0) idle()
    else this.#idle = idle
  }

  /**
   * Returns the resume secret to grant: the one that `resume` proved, or a new one, of which only the hash is stored.
   * All grants have the same secret, because the carrier may break before the client has read a new one.
   */
  secretFor(resume: string | undefined): string {
    if (resume !== undefined && this.isHeldBy(resume)) return resume
    const secret = this.#given ?? randomBytes(24).toString('base64url')
    this.#useSecret(secret)
    this.#given = undefined
    return secret
  }

  /** Sets the secret that the cluster's directory has. */
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

  /** Whether a visitor is the client itself, which probes whether its tunnel can be reached. */
  isProbedBy(proof: string | undefined): boolean {
    if (proof === undefined || this.#probeHash === undefined) return false
    return timingSafeEqual(sha256(proof), this.#probeHash)
  }

  /** Called when the client is connected: requests go to it, including those that waited. */
  attach(upstream: TunnelUpstream, client: ClientConnection): void {
    const before = this.client
    this.tunnel.routesChanged()
    this.upstream = upstream
    this.client = client
    // The same client came back while its old connection still looked alive.
    if (before !== undefined && before !== client) before.close('CARRIER_LOST')
    this.tunnel.tunnels.deadlines.disarm(this)
    this.tunnel.release(this.isHealthy ? this : 'ORIGIN_UNHEALTHY')
  }

  /** Called when the carrier is lost. With a resume secret, the name is reserved for the lease; otherwise it is free at once. */
  detach(upstream: TunnelUpstream): void {
    if (this.upstream !== upstream) return
    this.tunnel.routesChanged()
    this.upstream = undefined
    this.client = undefined
    this.lapse()
  }

  /** Reserves the name for the lease if there is a resume secret; otherwise frees it. No client is connected. */
  lapse(): void {
    if (this.upstream !== undefined) return
    const { deadlines, limits } = this.tunnel.tunnels
    if (this.#resumeHash === undefined) this.remove()
    else deadlines.arm(this, Math.max(limits.leaseMs, 1))
  }

  /** Removes the member for good. `code` cuts its open requests; without it, they may continue while the carrier lasts. */
  remove(code?: ErrorCode): void {
    this.upstream = undefined
    this.client = undefined
    this.tunnel.leave(this, code)
  }

  /** Called at the end of the lease. */
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
