// The names of one client on the JSON wire: requested, granted, revoked, released.

import { type ErrorCode, TunnelError } from '../../errors.ts'
import type { ClientHost } from '../../server/contracts/wire.ts'
import type { QuotaOwner } from '../../server/limits/quotas.ts'
import type { Rule } from '../../server/settings/policy.ts'
import type { Member } from '../../server/tunnels/member.ts'
import type { Tunnel } from '../../server/tunnels/tunnel.ts'
import { refusalOfName, type Tunnels } from '../../server/tunnels/tunnels.ts'
import type { JsonConnection } from './connection.ts'
import { encodeError, encodeRegistered, encodeTaken } from './json.ts'
import type { JsonRequests } from './requests.ts'
import { JsonUpstream } from './upstream.ts'

interface Registered {
  readonly member: Member
  readonly upstream: JsonUpstream
}

export class JsonNames {
  hasRegistered = false
  readonly #host: ClientHost
  readonly #owner: JsonConnection
  readonly #requests: JsonRequests
  readonly #registered = new Map<string, Registered>()
  /** The upstreams of released or revoked names, whose open requests continue. */
  readonly #leaving: JsonUpstream[] = []

  constructor(host: ClientHost, owner: JsonConnection, requests: JsonRequests) {
    this.#host = host
    this.#owner = owner
    this.#requests = requests
  }

  has(name: string): boolean {
    return this.#registered.has(name)
  }

  get size(): number {
    return this.#registered.size
  }

  // ── Asked for ──────────────────────────────────────────────────────────────────────────────────────────────

  async register(name: string): Promise<void> {
    const { limits, deadlines } = this.#host.server
    const owner = this.#owner
    if (!this.hasRegistered) deadlines.arm(owner, limits.registerTimeoutMs)
    const own = this.#registered.get(name)
    if (own !== undefined) return this.#confirm(own.member.tunnel)
    const first = this.#claim(name)
    let claimed = first instanceof Promise ? await first : first
    if (owner.isClosed) return forsake(claimed)
    if (claimed === 'NAME_TAKEN' && (await this.#isLeftBehind(name))) {
      if (owner.isClosed) return
      // The client may have asked twice.
      const again = this.#registered.get(name)
      if (again !== undefined) return this.#confirm(again.member.tunnel)
      claimed = await this.#claim(name)
      if (owner.isClosed) return forsake(claimed)
    }
    if (typeof claimed === 'string') this.#refuse(name, claimed)
    else this.#grant(claimed)
  }

  #claim(name: string): Member | ErrorCode | Promise<Member | ErrorCode> {
    const { holder, rule } = this.#owner
    if (holder.isRefusedTooOften(performance.now())) return 'TOO_MANY_REFUSALS'
    if (this.#registered.size >= this.#host.server.limits.maxTunnels) return 'CLIENT_LIMIT'
    const refusal = this.#host.refusalOf({ kind: 'http', name }, rule)
    if (refusal !== undefined) return refusal
    const { servers, tunnels } = this.#host.server
    return servers === undefined
      ? tunnels.claim('http', name, { holder })
      : claimNameInCluster(name, holder, tunnels, servers)
  }

  /**
   * Whether the name belongs to an earlier connection of the same client that no longer responds. This wire has no secret that
   * proves it, and a client that returns must not get `name-2`: the same token from the same address counts as the same client.
   * Without tokens the address alone counts, unless it is a proxy's, which all clients behind it have.
   */
  async #isLeftBehind(name: string): Promise<boolean> {
    const { holder, remoteAddress, rule } = this.#owner
    const other = this.#host.server.tunnels.find(name)?.client
    if (other === undefined || other.wire !== 'json' || other === this.#owner) return false
    if (other.holder !== holder || other.remoteAddress !== remoteAddress) return false
    if (rule.id === undefined && this.#host.server.isTrusted(remoteAddress)) return false
    if (await other.checkAlive()) return false
    other.close('CARRIER_LOST')
    return true
  }

  #refuse(name: string, code: ErrorCode): void {
    const { holder, rule } = this.#owner
    const wish = { kind: 'http', name } as const
    holder.refused(performance.now())
    this.#host.refused(this.#owner, wish, code)
    this.#owner.sendText(
      code === 'NAME_TAKEN'
        ? encodeTaken(name)
        : encodeError(refusalText(code, this.#host.refusalText(code, wish, { rule, holder }))),
    )
  }

  #grant(member: Member): void {
    const { tunnel } = member
    const upstream = new JsonUpstream(this.#requests)
    this.#registered.set(tunnel.name, { member, upstream })
    this.hasRegistered = true
    this.#host.server.deadlines.disarm(this.#owner)
    this.#confirm(tunnel)
    member.attach(upstream, this.#owner)
    this.#host.registered(this.#owner, tunnel, this.#owner.rule)
  }

  #confirm(tunnel: Tunnel): void {
    this.#owner.sendText(encodeRegistered(tunnel.name, this.#host.urlOf(tunnel)))
  }

  // ── Taken back, returned ─────────────────────────────────────────────────────────────────────────────────

  /** Revokes names that the token no longer allows; `rule` is its current rule. Returns the code if a name was revoked. */
  takeBack(rule: Rule | undefined, endCode: ErrorCode): ErrorCode | undefined {
    let refusal: ErrorCode | undefined
    for (const { member, upstream } of [...this.#registered.values()]) {
      const { tunnel } = member
      const code = rule === undefined ? endCode : this.#host.refusalOf(tunnel, rule)
      if (code === undefined) continue
      refusal = code
      this.#registered.delete(tunnel.name)
      this.#leaving.push(upstream)
      member.remove(code)
      this.#host.released(this.#owner, tunnel, code)
    }
    return refusal
  }

  moveTo(holder: QuotaOwner): void {
    for (const { member } of this.#registered.values()) member.moveTo(holder)
  }

  /** Releases all names at once. `idle` is called after the last response. */
  release(idle: () => void): void {
    const leaving = [...this.#registered.values()]
    this.#registered.clear()
    this.#leaving.push(...leaving.map(({ upstream }) => upstream))
    let left = leaving.length + 1
    const oneLess = () => {
      if (--left === 0) idle()
    }
    for (const { member } of leaving) {
      member.remove()
      this.#host.released(this.#owner, member.tunnel, 'released')
      member.whenIdle(oneLess)
    }
    oneLess()
  }

  /** Called when the client is gone: releases all names and fails what is in progress. */
  end(reason: ErrorCode | 'released'): void {
    for (const { member, upstream } of this.#registered.values()) {
      member.detach(upstream)
      this.#host.released(this.#owner, member.tunnel, reason)
      upstream.clientGone()
    }
    for (const upstream of this.#leaving) upstream.clientGone()
    this.#registered.clear()
  }
}

/** Releases a claim whose connection closed while the directory of a cluster was asked. */
function forsake(claimed: Member | ErrorCode): void {
  if (typeof claimed !== 'string') claimed.lapse()
}

export function refusalText(code: ErrorCode, text: string = new TunnelError(code).message): string {
  return code === 'NAME_INVALID' ? 'Invalid subdomain format' : text
}

/** Claims a name if a directory decides which server of a cluster has it. This wire has no secrets. */
async function claimNameInCluster(
  name: string,
  holder: QuotaOwner,
  tunnels: Tunnels,
  servers: NonNullable<ClientHost['server']['servers']>,
): Promise<Member | ErrorCode> {
  const refusal = refusalOfName(name) ?? (holder.hasRoomFor('tunnels') ? undefined : 'CLIENT_LIMIT')
  if (refusal !== undefined) return refusal
  const claimed = await servers.claim([name], undefined, false)
  if (typeof claimed === 'string') return claimed
  const member = tunnels.claim('http', name, { holder })
  if (typeof member === 'string' && tunnels.find(name) === undefined) servers.release(name)
  return member
}
