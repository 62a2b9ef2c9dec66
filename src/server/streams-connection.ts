// One client on the streams wire: its session, the tunnels it registered, what it wants to hear.

import { deferred } from '../deferred.ts'
import { ERRORS, type ErrorCode, TunnelError } from '../errors.ts'
import { eventLoop } from '../event-loop.ts'
import type { Carrier, CarrierHandler } from '../session/carrier.ts'
import { Session } from '../session/session.ts'
import {
  encodeControl,
  type Guarded,
  type GuardFields,
  type HostRewrite,
  parseClientMessage,
  type Register,
} from '../wire/control.ts'
import type { Claiming } from './claims.ts'
import type { ClientHost } from './client-host.ts'
import { ClientUse } from './client-use.ts'
import type { ClientConnection } from './clients.ts'
import type { Deadline } from './deadlines.ts'
import type { Guards, OwnGuard } from './guards.ts'
import type { Holder } from './holdings.ts'
import { SessionTrunk } from './lanes/session-trunk.ts'
import type { SessionLinks } from './links.ts'
import type { Member } from './member.ts'
import type { Rule } from './policy.ts'
import { StreamsReports } from './streams-reports.ts'
import type { Verdict } from './token-gate.ts'
import type { Tunnel } from './tunnels.ts'
import type { TunnelUpstream } from './upstream.ts'
import { Http2Apps } from './upstreams/http2-apps.ts'
import { IdleStreams } from './upstreams/idle-streams.ts'
import { RoutedUpstream } from './upstreams/routed.ts'
import { StreamsUpstream } from './upstreams/streams.ts'

/** A client that brings no link is asked again after this long: it may have been refused one, or have had enough. */
const LINK_WISH_MS = 5_000

interface Registered {
  readonly member: Member
  readonly upstream: TunnelUpstream
  /** What the token opened that it was granted for. */
  rule: Rule
  /** As the client knows it. */
  url: string
}

/** Of trouble with the same host. */
const TELL_AGAIN_MS = 60_000

export class StreamsConnection implements ClientConnection, Deadline {
  readonly wire = 'streams'
  readonly remoteAddress: string
  number = 0
  agent = ''
  readonly connectedAtMs: number = Date.now()
  dueTick = 0
  readonly #host: ClientHost
  /** What the token of the connection opens. */
  #rule: Rule
  /** What it counts at its holder: bytes that wait for the client, for example. */
  readonly use: ClientUse
  readonly reports: StreamsReports
  readonly #session: Session
  readonly #registered = new Map<number, Registered>()
  /** Registrations whose port is being opened, or whose token waits. */
  #claiming = 0
  /** What ends the wait of a token that is not looked at yet. */
  readonly #waits = new Map<Register, () => void>()
  /** Registrations that were refused for their own token. */
  #refusedTokens = 0
  #guardChange: Promise<void> = Promise.resolve()
  #nextTunnel = 1
  readonly #links: SessionLinks
  readonly #idle = new IdleStreams()
  readonly #trunk = new SessionTrunk(() => this.#report({ type: 'trunk-wanted' }))
  /** When a link was asked for, and none has come since. */
  #linkWantedAt = Number.NEGATIVE_INFINITY

  constructor(carrier: Carrier, remoteAddress: string, host: ClientHost, rule: Rule) {
    this.#host = host
    this.#rule = rule
    this.remoteAddress = remoteAddress
    this.use = new ClientUse(host.holderOf(rule, remoteAddress))
    const { limits, deadlines } = host
    this.#session = new Session(
      carrier,
      {
        opened: () => 'PROTOCOL_ERROR',
        tunnelCount: () => this.#registered.size + this.#claiming,
        control: json => this.#control(json),
        leaving: () => {},
        linkWanted: () => this.#wantLink(),
        closed: (code, error) => this.#closed(code, error),
      },
      {
        role: 'server',
        scheduler: eventLoop,
        turns: host.turns,
        maxStreams: limits.maxClientStreams,
        maxCarrierBacklogBytes: limits.maxCarrierBacklogBytes,
        maxStreamWindowBytes: limits.maxStreamWindowBytes,
        maxSessionWindowBytes: limits.maxSessionWindowBytes,
        pingIntervalMs: limits.pingIntervalMs,
        deadAfterMs: limits.deadAfterMs,
        streamBudget: this.use.streamBudget,
        hungAfterMs: limits.hungAfterMs,
      },
    )
    this.#links = host.linkGate.open(this.#session, deadlines, limits.maxLinks, {
      hasRoom: () => this.holder.hasRoomFor('links') && host.hasRoomForLink(this.holder),
      opened: () => this.holder.take('links'),
      closed: () => this.holder.give('links'),
    })
    this.reports = new StreamsReports(this.#session, host)
    if (limits.maxLinks === 0) this.#trunk.refused(undefined)
    deadlines.watch(this)
    deadlines.arm(this, limits.registerTimeoutMs)
  }

  get holder(): Holder {
    return this.use.holder
  }

  get roundTripMs(): number {
    return this.#session.roundTripMs
  }

  get creditStalls(): number {
    return this.#session.creditStalls
  }

  get carrierHandler(): CarrierHandler {
    return this.#session.carrierHandler
  }

  /** Nothing was registered in time. */
  expired(): void {
    if (this.#registered.size > 0) return
    const { limits, deadlines } = this.#host
    // It asked in time, and waits for the answer.
    if (this.#claiming > 0) deadlines.arm(this, limits.registerTimeoutMs)
    else this.#session.close('REGISTER_TIMEOUT')
  }

  checkAlive(): Promise<boolean> {
    const { promise, resolve } = deferred<boolean>()
    const cancel = eventLoop.after(this.#host.limits.deadAfterMs, () => resolve(false))
    this.#session.ping(() => {
      cancel()
      resolve(true)
    })
    return promise
  }

  drain(code: 'SERVER_DRAINING' | 'SERVER_REPLACED'): void {
    this.#session.leave(code)
  }

  close(code: ErrorCode): void {
    this.reports.flush()
    this.#session.close(code)
  }

  reloaded(): void {
    const rule = this.#host.ruleNow(this.#rule)
    for (const [number, registered] of [...this.#registered]) {
      const { tunnel } = registered.member
      // What a connection could not ask for any more, it does not keep either.
      const own = rule && this.#host.ruleNow(registered.rule)
      const code = own === undefined ? registered.rule.endCode : this.#host.refusalOf(tunnel, own)
      if (own === undefined || code !== undefined) {
        this.#revoke(number, registered, code ?? 'TOKEN_REFUSED')
        continue
      }
      registered.rule = own
      registered.member.moveTo(this.#host.holderOf(own, this.remoteAddress))
      const url = this.#host.urlOf(tunnel)
      if (url === registered.url) continue
      registered.url = url
      this.#report({ type: 'moved', tunnel: number, url })
    }
    if (rule === undefined) return this.close(this.#rule.endCode)
    this.#rule = rule
    this.use.passTo(this.#host.holderOf(rule, this.remoteAddress), this.#links.count)
  }

  hostTroubled(tunnel: Tunnel, host: string, { code, message }: TunnelError): void {
    const [[number, registered] = []] = [...this.#registered].filter(
      ([, { member }]) => member.tunnel === tunnel,
    )
    if (number === undefined || registered === undefined) return
    const now = performance.now()
    const told = registered.member.toldAt.get(host)
    if (told !== undefined && now - told < TELL_AGAIN_MS) return
    // No more hosts than it has now, however often they change.
    for (const one of registered.member.toldAt.keys())
      if (!registered.member.hostNames.includes(one)) registered.member.toldAt.delete(one)
    registered.member.toldAt.set(host, now)
    this.#report({ type: 'host-troubled', tunnel: number, code, message })
  }

  #revoke(number: number, { member, upstream }: Registered, code: ErrorCode): void {
    this.#unregister(number, member.tunnel)
    this.#report({ type: 'revoked', tunnel: number, code, message: ERRORS[code].meaning })
    if (member.upstream === upstream) member.remove(code)
    // Of a name that is not allowed any more, requests under way are still answered.
    if (code === 'TOKEN_REFUSED' || code === 'TOKEN_EXPIRED' || code === 'BLOCKED') upstream.stop?.()
    this.#host.released(this, member.tunnel, code)
  }

  #report(message: Parameters<typeof encodeControl>[0]): void {
    this.#session.sendControl(encodeControl(message))
  }

  #unregister(number: number, tunnel: Tunnel): void {
    this.#registered.delete(number)
    this.reports.remove(tunnel, number)
  }

  #control(json: Uint8Array): void {
    const message = parseClientMessage(json)
    if (message === undefined) return this.#session.close('PROTOCOL_ERROR')
    if (message === 'unknown') return
    switch (message.type) {
      case 'register':
        return this.#register(message)
      case 'health': {
        const member = this.#registered.get(message.tunnel)?.member
        if (member !== undefined) member.isHealthy = message.isHealthy
        return
      }
      case 'guard':
        // One after the other: the last one has to be in force at the end.
        this.#guardChange = this.#guardChange.then(() => this.#changeGuard(message))
        return
      case 'watch':
        this.reports.watch(message.on, message.rate ?? 0)
        for (const { member } of this.#registered.values()) member.tunnel.routesChanged()
        return
      case 'linked':
        if (message.trunk === true) return this.#links.linked(message.link, link => this.#trunk.take(link))
        this.#linkWantedAt = Number.NEGATIVE_INFINITY
        return this.#links.linked(message.link)
      case 'no-trunk':
        return this.#trunk.refused(message.retryMs)
      case 'link-retired':
        return this.#links.retired(message.link)
      case 'release':
        return this.#release(message.tunnel)
    }
  }

  /** Asks for a link for bulk; not again within a while, unless one came. */
  #wantLink(): void {
    const now = eventLoop.now()
    if (this.#host.limits.maxLinks === 0 || now - this.#linkWantedAt < LINK_WISH_MS) return
    this.#linkWantedAt = now
    this.#report({ type: 'link-wanted' })
  }

  #register(message: Register): void {
    const { token } = message
    if (token === undefined) return this.#registerBy(this.#rule, message)
    if (this.#isFull) return this.#answer(message, 'CLIENT_LIMIT', this.#rule)
    const { tokenGate } = this.#host
    const judged = (verdict: Verdict): void => {
      if (typeof verdict !== 'string') return this.#registerBy(verdict, message)
      this.#answer(message, verdict, this.#rule)
      if (verdict === 'TOKEN_REFUSED' && ++this.#refusedTokens >= this.#host.limits.maxTokenGuesses)
        this.close('TOKEN_REFUSED')
    }
    if (tokenGate.isQuick(token, this.remoteAddress))
      return judged(tokenGate.judge(token, this.remoteAddress))
    const wait = tokenGate.judgeLater(token, this.remoteAddress, verdict => {
      this.#waits.delete(message)
      this.#claiming--
      try {
        judged(verdict)
      } catch (cause) {
        this.#broke(cause)
      }
    })
    if (typeof wait === 'string') return judged(wait)
    this.#claiming++
    this.#waits.set(message, wait)
  }

  #registerBy(rule: Rule, message: Register): void {
    const { guard } = message
    if (guard === undefined) return this.#registerWith(rule, message, undefined)
    if (this.#isFull) return this.#answer(message, 'CLIENT_LIMIT', rule)
    this.#claiming++
    void this.#makeGuard(guard, message).then(made => {
      this.#claiming--
      if (this.#session.isClosed) return made instanceof TunnelError ? undefined : this.#guards.close(made)
      if (made instanceof TunnelError) return this.#refuse(message, made.code, made.message, rule)
      // Made in a moment, in which the server may have reloaded.
      const ruleNow = this.#host.ruleNow(rule)
      if (ruleNow === undefined) return this.#answer(message, 'TOKEN_REFUSED', rule)
      this.#registerWith(ruleNow, message, made)
    })
  }

  #makeGuard(
    guard: GuardFields,
    { kind, name = '', port = 0 }: Pick<Register, 'kind' | 'name' | 'port'>,
  ): Promise<OwnGuard | TunnelError> {
    const tunnel = { kind: kind === 'unknown' ? 'http' : kind, name: name || `${kind}-${port}` }
    return this.#guards.make(guard, tunnel)
  }

  get #guards(): Guards {
    return this.#host.tunnels.guards
  }

  /** Another guard for a tunnel that it has. One that cannot be had ends the tunnel: the client counts on it. */
  async #changeGuard({ tunnel: number, guard }: Guarded): Promise<void> {
    const before = this.#registered.get(number)
    if (before === undefined) return
    const { tunnel } = before.member
    const made = await this.#makeGuard(guard, tunnel)
    const registered = this.#registered.get(number)
    if (made instanceof TunnelError) {
      if (registered !== undefined) this.#revoke(number, registered, made.code)
    } else if (registered === undefined) this.#guards.close(made)
    else if (tunnel.members.length > 1 && tunnel.guard?.definition !== made.definition) {
      this.#guards.close(made)
      this.#revoke(number, registered, 'GUARD_DIFFERS')
    } else tunnel.useGuard(made)
  }

  #registerWith(rule: Rule, message: Register, guard: OwnGuard | undefined): void {
    const holder = this.#host.holderOf(rule, this.remoteAddress)
    const claimed = this.#claim(message, { rule, holder, guard })
    if (!(claimed instanceof Promise)) return this.#answer(message, claimed, rule)
    this.#claiming++
    const answered = claimed.then(member => {
      this.#claiming--
      // Opening a port took a moment, in which the client may have left, or the server reloaded.
      if (this.#session.isClosed) return typeof member === 'string' ? undefined : member.lapse()
      const ruleNow = this.#host.ruleNow(rule)
      if (typeof member === 'string') return this.#answer(message, member, rule)
      const refusal = ruleNow === undefined ? 'TOKEN_REFUSED' : this.#host.refusalOf(member.tunnel, ruleNow)
      if (refusal !== undefined) member.remove(refusal)
      this.#answer(message, refusal ?? member, ruleNow ?? rule)
    })
    answered.catch((cause: unknown) => this.#broke(cause))
  }

  /** Something threw where no session catches it. */
  #broke(cause: unknown): void {
    this.#host.failed(cause instanceof Error ? cause : new Error(String(cause)))
    this.close('INTERNAL')
  }

  #claim(message: Register, claiming: Claiming): Member | ErrorCode | Promise<Member | ErrorCode> {
    if (claiming.holder.isRefusedTooOften(performance.now())) return 'REFUSED_TOO_OFTEN'
    return this.#isFull ? 'CLIENT_LIMIT' : this.#host.claim(message, claiming)
  }

  get #isFull(): boolean {
    return this.#registered.size + this.#claiming >= this.#host.limits.maxTunnels
  }

  #answer(message: Register, member: Member | ErrorCode, rule: Rule): void {
    if (typeof member !== 'string') return this.#grant(message, member, rule)
    const holder = this.#host.holderOf(rule, this.remoteAddress)
    const detail =
      member === 'CLIENT_LIMIT' && this.#isFull
        ? `This client has ${this.#host.limits.maxTunnels} tunnels, as many as the server allows (maxTunnels).`
        : this.#host.detailOf(member, message, { rule, holder })
    this.#refuse(message, member, detail ?? ERRORS[member].meaning, rule)
  }

  #refuse(message: Register, code: ErrorCode, text: string, rule: Rule): void {
    this.#host.holderOf(rule, this.remoteAddress).refused(performance.now())
    this.#host.refused(this, message, code)
    this.#report({ type: 'refused', ref: message.ref, code, message: text })
  }

  #grant(message: Register, member: Member, rule: Rule): void {
    const { tunnel } = member
    const host = this.#host
    const { limits, deadlines } = host
    const url = host.urlOf(tunnel)
    const { routes = [], proxyProtocol } = message
    const number = this.#nextTunnel
    this.#nextTunnel += 1 + routes.length
    const upstreamOf = (offset: number, rewrite: HostRewrite, protocol?: Register['protocol']) =>
      this.#upstreamOf(number + offset, rewrite, tunnel.pool !== undefined, proxyProtocol, protocol)
    const own = upstreamOf(0, message, message.protocol)
    const upstream =
      routes.length === 0
        ? own
        : new RoutedUpstream(
            own,
            routes.map((route, index) => ({
              path: route.path,
              upstream: upstreamOf(1 + index, route, route.protocol),
            })),
          )
    this.reports.add(tunnel, number)
    this.#registered.set(number, { member, upstream, rule, url })
    deadlines.disarm(this)
    const resume = member.secretFor(message.resume)
    this.#report({
      type: 'granted',
      ref: message.ref,
      tunnel: number,
      name: tunnel.name,
      url,
      resume,
      ...(tunnel.port !== 0 && { port: tunnel.port }),
      ...(limits.maxLinks > 0 && { linkSecret: this.#links.secret }),
      ...(message.guard !== undefined && { guarded: true }),
      ...(message.hostNames !== undefined && { hosted: true }),
      ...(message.inbox !== undefined && { boxed: true }),
      ...(message.protocol !== undefined && { protocol: message.protocol }),
      ...(routes.some(({ protocol }) => protocol !== undefined) && { routed: true }),
    })
    member.isWildcard = message.wildcard === true
    member.label = message.poolLabel
    // More would be kept and never be used.
    member.hosts = (message.hosts ?? []).slice(0, limits.maxHostsBelow)
    tunnel.hasInbox ||= message.inbox !== undefined
    member.attach(upstream, this)
    this.#host.registered(this, tunnel, rule, message.inbox)
  }

  /** Apart from `#grant`: an upstream lives as long as its tunnel, and would keep the whole message with it. */
  #upstreamOf(
    tunnel: number,
    { hostHeader, origin = '' }: HostRewrite,
    isShared: boolean,
    proxyProtocol: 1 | 2 | undefined,
    protocol: Register['protocol'],
  ): StreamsUpstream {
    const host = this.#host
    const session = this.#session
    return new StreamsUpstream({
      session,
      apps:
        protocol === undefined
          ? undefined
          : new Http2Apps({
              session,
              get limits() {
                return host.limits
              },
              deadlines: host.deadlines,
              turns: host.turns,
              scheme: protocol === 'h2' ? 'https' : 'http',
            }),
      trunk: this.#trunk,
      tunnel,
      get limits() {
        return host.limits
      },
      deadlines: host.deadlines,
      turns: host.turns,
      isShared,
      rewrite: hostHeader === undefined ? undefined : { host: hostHeader, origin },
      proxyProtocol,
      idle: this.#idle,
      isStopped: false,
    })
  }

  #release(number: number): void {
    const registered = this.#registered.get(number)
    if (registered === undefined) return
    const { member, upstream } = registered
    this.#unregister(number, member.tunnel)
    if (member.upstream === upstream) member.remove()
    this.#host.released(this, member.tunnel, 'released')
    member.whenIdle(() => {
      this.reports.flush()
      this.#report({ type: 'released', tunnel: number })
    })
  }

  #closed(code: ErrorCode, error: Error | undefined): void {
    if (code === 'INTERNAL' && error !== undefined) this.#host.failed(error)
    this.#host.deadlines.forget(this)
    this.reports.close()
    for (const stop of this.#waits.values()) stop()
    this.#waits.clear()
    for (const { member, upstream } of this.#registered.values()) {
      member.detach(upstream)
      this.#host.released(this, member.tunnel, code)
    }
    this.#registered.clear()
    this.#links.close()
    this.#host.gone(this)
  }
}
