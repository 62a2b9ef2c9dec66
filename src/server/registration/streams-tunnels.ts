// The tunnels of one client on the streams wire: granted, changed, revoked, released.

import { type ErrorCode, TunnelError } from '../../errors.ts'
import type {
  Dial,
  encodeControl,
  GrantedFeature,
  Guarded,
  GuardFields,
  Register,
} from '../../wire/control.ts'
import type { ClientConnection } from '../contracts/clients.ts'
import type { OwnGuard } from '../contracts/guarding.ts'
import type { TunnelUpstream } from '../contracts/upstream.ts'
import type { ClientHost } from '../contracts/wire.ts'
import type { Deadline } from '../limits/deadlines.ts'
import type { QuotaOwner } from '../limits/quotas.ts'
import type { TokenThrottle } from '../limits/token-throttle.ts'
import type { Rule } from '../settings/policy.ts'
import type { Claiming } from '../tunnels/claims.ts'
import type { Member } from '../tunnels/member.ts'
import type { Tunnel } from '../tunnels/tunnel.ts'
import type { LinkRegistry } from './links.ts'
import type { StreamsReports } from './streams-reports.ts'
import type { StreamsUpstreams } from './streams-upstreams.ts'

/** The operations of the server that only clients on the streams wire use. */
export interface StreamsHost extends ClientHost {
  readonly linkRegistry: LinkRegistry
  readonly tokenThrottle: TokenThrottle
  /** Whether one more link of this owner leaves enough descriptors for others. */
  hasRoomForLink(holder: QuotaOwner): boolean
  /** Claims a tunnel within the rights of the token. Returns a code if it is refused. */
  claim(wish: Register, claiming: Claiming): Member | ErrorCode | Promise<Member | ErrorCode>
}

export interface TunnelsOwner extends ClientConnection, Deadline {
  readonly isClosed: boolean
  readonly rule: Rule
  readonly reports: StreamsReports
  /** The secret of the client's links. `undefined` if it may have none. */
  readonly linkSecret: string | undefined
  send(message: Parameters<typeof encodeControl>[0]): void
  /** Reports an error that no session catches. */
  broke(cause: unknown): void
}

interface Held {
  readonly member: Member
  readonly upstream: TunnelUpstream
  /** The rule of the token when the tunnel was granted. */
  rule: Rule
  url: string
}

/** The time in milliseconds between two reports of trouble with the same host. */
const TELL_AGAIN_MS = 60_000

export class StreamsTunnels {
  readonly #host: StreamsHost
  readonly #owner: TunnelsOwner
  readonly #upstreams: StreamsUpstreams
  readonly #held = new Map<number, Held>()
  #guardChange: Promise<void> = Promise.resolve()

  constructor(host: StreamsHost, owner: TunnelsOwner, upstreams: StreamsUpstreams) {
    this.#host = host
    this.#owner = owner
    this.#upstreams = upstreams
  }

  get size(): number {
    return this.#held.size
  }

  grant(message: Register, member: Member, rule: Rule): void {
    const { tunnel } = member
    const owner = this.#owner
    const host = this.#host
    const url = host.urlOf(tunnel)
    const { number, upstream } = this.#upstreams.make(message, tunnel.pool !== undefined)
    owner.reports.add(tunnel, number)
    this.#held.set(number, { member, upstream, rule, url })
    host.server.deadlines.disarm(owner)
    owner.send(grantOf(message, member, number, url, owner.linkSecret))
    member.isWildcard = message.wildcard === true
    member.label = message.poolLabel
    // More hosts than this would be stored and never used.
    member.hosts = (message.hosts ?? []).slice(0, host.server.limits.maxHostsBelow)
    member.attach(upstream, owner)
    host.registered(owner, tunnel, rule, message)
  }

  release(number: number): void {
    const held = this.#held.get(number)
    if (held === undefined) return
    const { member, upstream } = held
    this.#forget(number, member.tunnel)
    if (member.upstream === upstream) member.remove()
    this.#host.released(this.#owner, member.tunnel, 'released')
    member.whenIdle(() => {
      this.#owner.reports.flush()
      this.#owner.send({ type: 'released', tunnel: number })
    })
  }

  /** Asks the client for streams, for connections to its end of a private service. */
  dial({ tunnel, count }: Dial): void {
    const member = this.#held.get(tunnel)?.member
    if (member?.tunnel.isEnd) this.#host.server.parts.connecting?.dial(member, count)
  }

  /** Called when the client says whether its app responds. Returns `false` if nothing changes. */
  health(number: number, isHealthy: boolean): boolean {
    const member = this.#held.get(number)?.member
    if (member === undefined || member.isHealthy === isHealthy) return false
    member.isHealthy = isHealthy
    return true
  }

  /** Called when reports to the client started or stopped, which decides whether requests may use a lane. */
  routesChanged(): void {
    this.#host.server.tunnels.lanes.recall([...this.#held.values()].map(({ member }) => member.tunnel))
  }

  /**
   * Called after a reload: revokes what the new settings would not grant. `rule`: the current rights of the connection's token.
   */
  reloaded(rule: Rule | undefined): void {
    const { remoteAddress } = this.#owner
    for (const [number, held] of [...this.#held]) {
      const { tunnel } = held.member
      const own = rule && held.rule.in(this.#host.server.settings.policy)
      const code = own === undefined ? held.rule.endCode : this.#host.refusalOf(tunnel, own)
      if (own === undefined || code !== undefined) {
        this.#revoke(number, held, code ?? 'TOKEN_REFUSED')
        continue
      }
      held.rule = own
      held.member.moveTo(this.#host.server.quotas.of(own, remoteAddress))
      const url = this.#host.urlOf(tunnel)
      if (url === held.url) continue
      held.url = url
      this.#owner.send({ type: 'moved', tunnel: number, url })
    }
  }

  hostTroubled(tunnel: Tunnel, host: string, { code, message }: TunnelError): void {
    const [[number, held] = []] = [...this.#held].filter(([, { member }]) => member.tunnel === tunnel)
    if (number === undefined || held === undefined) return
    const { toldAt, hostNames } = held.member
    const now = performance.now()
    const told = toldAt.get(host)
    if (told !== undefined && now - told < TELL_AGAIN_MS) return
    // Remembers only current hosts, however often they change.
    for (const one of toldAt.keys()) if (!hostNames.includes(one)) toldAt.delete(one)
    toldAt.set(host, now)
    this.#owner.send({ type: 'host-troubled', tunnel: number, code, message })
  }

  close(code: ErrorCode): void {
    for (const { member, upstream } of this.#held.values()) {
      member.detach(upstream)
      this.#host.released(this.#owner, member.tunnel, code)
    }
    this.#held.clear()
  }

  #revoke(number: number, { member, upstream }: Held, code: ErrorCode): void {
    this.#forget(number, member.tunnel)
    this.#owner.send({ type: 'revoked', tunnel: number, code, message: new TunnelError(code).message })
    if (member.upstream === upstream) member.remove(code)
    // Requests in progress still get their responses, even if the name is no longer allowed. Connections to private services end.
    if (code === 'TOKEN_REFUSED' || code === 'TOKEN_EXPIRED' || code === 'BLOCKED' || member.tunnel.isEnd)
      upstream.stop?.()
    this.#host.released(this.#owner, member.tunnel, code)
  }

  #forget(number: number, tunnel: Tunnel): void {
    this.#held.delete(number)
    this.#owner.reports.remove(tunnel, number)
  }

  // ── Guards of their own ────────────────────────────────────────────────────────────────────────────────────

  makeGuard(
    guard: GuardFields,
    { kind, name = '', port = 0 }: Pick<Register, 'kind' | 'name' | 'port'>,
  ): Promise<OwnGuard | TunnelError> {
    const { rule, remoteAddress } = this.#owner
    const { key: owner } = this.#host.server.quotas.of(rule, remoteAddress)
    const tunnel = {
      kind: kind === 'unknown' || kind === 'connect' ? 'http' : kind,
      name: name || `${kind}-${port}`,
      owner,
    }
    return this.#host.server.tunnels.guards.make(guard, tunnel)
  }

  /** Replaces the guard of a tunnel. Changes run one after the other, so that the last one applies in the end. */
  changeGuard({ tunnel: number, guard }: Guarded): void {
    const before = this.#held.get(number)
    if (before === undefined) return
    const { tunnel } = before.member
    const making = this.makeGuard(guard, tunnel)
    this.#guardChange = this.#guardChange.then(async () => this.#useGuard(number, tunnel, await making))
  }

  #useGuard(number: number, tunnel: Tunnel, made: OwnGuard | TunnelError): void {
    const { guards } = this.#host.server.tunnels
    const held = this.#held.get(number)
    if (made instanceof TunnelError) {
      if (held !== undefined) this.#revoke(number, held, made.code)
    } else if (held === undefined) guards.close(made)
    else if (tunnel.members.length > 1 && tunnel.guard?.definition !== made.definition) {
      guards.close(made)
      this.#revoke(number, held, 'POOL_DIFFERS')
    } else tunnel.useGuard(made)
  }
}

function grantOf(
  message: Register,
  member: Member,
  number: number,
  url: string,
  linkSecret: string | undefined,
): Parameters<typeof encodeControl>[0] {
  const { tunnel } = member
  const { ref, resume, guard, hostNames, inbox, protocol, routes = [] } = message
  const features: GrantedFeature[] = []
  if (guard !== undefined) features.push('guard')
  if (hostNames !== undefined) features.push('hosts')
  if (inbox !== undefined) features.push('inbox')
  if (routes.some(route => route.protocol !== undefined)) features.push('routes')
  return {
    type: 'granted',
    ref,
    tunnel: number,
    name: tunnel.name,
    url,
    resume: member.secretFor(resume),
    ...(tunnel.port !== 0 && { port: tunnel.port }),
    ...(linkSecret !== undefined && { linkSecret }),
    ...(features.length > 0 && { features }),
    ...(protocol !== undefined && { protocol }),
  }
}
