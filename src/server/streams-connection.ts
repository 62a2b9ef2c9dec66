// One client on the streams wire: its session, the tunnels it registered, what it wants to hear.

import { deferred } from '../deferred.ts'
import { ERRORS, type ErrorCode } from '../errors.ts'
import { eventLoop } from '../event-loop.ts'
import type { Carrier, CarrierHandler } from '../session/carrier.ts'
import { Session } from '../session/session.ts'
import type { Endpoint } from '../socket.ts'
import type { Account } from '../unsent.ts'
import { encodeControl, type HostRewrite, parseClientMessage, type Register } from '../wire/control.ts'
import type { Claiming } from './claims.ts'
import type { Asked, ClientConnection, ClientHost, RawEnd } from './clients.ts'
import type { Deadline } from './deadlines.ts'
import type { Holder } from './holdings.ts'
import type { SessionLinks } from './links.ts'
import type { Member } from './member.ts'
import type { Rule } from './policy.ts'
import type { Verdict } from './token-gate.ts'
import type { Tunnel } from './tunnels.ts'
import type { TunnelUpstream } from './upstream.ts'
import { RoutedUpstream } from './upstreams/routed.ts'
import { StreamsUpstream } from './upstreams/streams.ts'

/** A client that brings no link is asked again after this long: it may have been refused one, or have had enough. */
const LINK_WISH_MS = 5_000
/** So is one that brings no trunk: a thread takes some 50 ms to start. Twice as long each time, until a trunk is there. */
const FIRST_TRUNK_PAUSE_MS = 100
const MAX_TRUNK_PAUSE_MS = 60_000

interface Registered {
  readonly member: Member
  readonly upstream: TunnelUpstream
  /** What the token opened that it was granted for. */
  readonly rule: Rule
  /** As the client knows it. */
  url: string
}

/** What it is told of requests may take so much of `maxCarrierBacklogBytes`: the rest is for what has to reach it. */
const REPORTS_PART = 1 / 4

export class StreamsConnection implements ClientConnection, Deadline, Account {
  readonly wire = 'streams'
  readonly remoteAddress: string
  dueTick = 0
  readonly #host: ClientHost
  /** What the token of the connection opens. */
  #rule: Rule
  #holder: Holder
  /** What its holder is charged for bytes that the client does not take. */
  #unsentBytes = 0
  readonly #session: Session
  readonly #registered = new Map<number, Registered>()
  /** The same the other way round: asked for each report, and a client may have thousands. */
  readonly #numbers = new Map<Tunnel, number>()
  /** Registrations whose port is being opened, or whose token waits. */
  #claiming = 0
  /** What ends the wait of a token that is not looked at yet. */
  readonly #waits = new Map<Register, () => void>()
  /** Registrations that were refused for their own token. */
  #refusedTokens = 0
  #nextTunnel = 1
  #nextReport = 1
  #isWatching = false
  readonly #links: SessionLinks
  /** Since the last time a trunk was asked for. */
  #trunkPauseMs = 0
  /** When each was asked for; no link has come since. */
  readonly #wishedAt: Partial<Record<'link-wanted' | 'trunk-wanted', number>> = {}

  constructor(carrier: Carrier, remoteAddress: string, host: ClientHost, rule: Rule) {
    this.#host = host
    this.#rule = rule
    this.remoteAddress = remoteAddress
    this.#holder = host.holderOf(rule, remoteAddress)
    const { limits, deadlines } = host
    this.#session = new Session(
      carrier,
      {
        opened: () => 'PROTOCOL_ERROR',
        tunnelCount: () => this.#registered.size + this.#claiming,
        control: json => this.#control(json),
        leaving: () => {},
        linkWanted: () => this.#wish('link-wanted', LINK_WISH_MS),
        trunkWanted: () => this.#wishTrunk(),
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
        streamBudget: {
          open: () => {
            const hasRoom = this.#holder.hasRoomFor('streams')
            if (hasRoom) this.#holder.take('streams')
            return hasRoom
          },
          close: () => this.#holder.give('streams'),
        },
        hungAfterMs: limits.hungAfterMs,
      },
    )
    this.#links = host.linkGate.open(this.#session, deadlines, limits.maxLinks)
    deadlines.watch(this)
    deadlines.arm(this, limits.registerTimeoutMs)
  }

  get holder(): Holder {
    return this.#holder
  }

  /** Bytes wait for the client, or do so no longer. */
  hold(bytes: number): void {
    this.#unsentBytes += bytes
    this.#holder.hold(bytes)
  }

  get isOver(): boolean {
    return this.#holder.isOver
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

  drain(): void {
    this.#session.leave('SERVER_DRAINING')
  }

  close(code: ErrorCode): void {
    this.#session.close(code)
  }

  reloaded(): void {
    const rule = this.#host.ruleNow(this.#rule)
    for (const [number, registered] of [...this.#registered]) {
      const { tunnel } = registered.member
      // What a connection could not ask for any more, it does not keep either.
      const own = rule && this.#host.ruleNow(registered.rule)
      const code = own === undefined ? 'TOKEN_REFUSED' : this.#host.refusalOf(tunnel, own)
      if (own === undefined || code !== undefined) {
        this.#revoke(number, registered, code ?? 'TOKEN_REFUSED')
        continue
      }
      registered.member.moveTo(this.#host.holderOf(own, this.remoteAddress))
      const url = this.#host.urlOf(tunnel)
      if (url === registered.url) continue
      registered.url = url
      this.#report({ type: 'moved', tunnel: number, url })
    }
    if (rule === undefined) return this.close('TOKEN_REFUSED')
    this.#rule = rule
    this.#holder = this.#holder.passTo(
      this.#host.holderOf(rule, this.remoteAddress),
      this.#session.streamCount,
      this.#unsentBytes,
    )
  }

  #revoke(number: number, { member, upstream }: Registered, code: ErrorCode): void {
    this.#unregister(number, member.tunnel)
    this.#report({ type: 'revoked', tunnel: number, code, message: ERRORS[code].meaning })
    if (member.upstream === upstream) member.remove(code)
    this.#host.released(this, member.tunnel, code)
  }

  get isWatching(): boolean {
    return this.#isWatching
  }

  get isBehind(): boolean {
    return this.#session.backlogBytes > REPORTS_PART * this.#host.limits.maxCarrierBacklogBytes
  }

  begun(tunnel: Tunnel, { host, method, target }: Asked): number {
    // A client that reads nothing must not be cut because visitors ask much.
    if (!this.#isWatching || this.isBehind) return 0
    const id = this.#nextReport++
    this.#report({
      type: 'request',
      id,
      tunnel: this.#numberOf(tunnel),
      ...(tunnel.isWildcard && { host }),
      method,
      path: target,
    })
    return id
  }

  switched(tunnel: Tunnel, id: number): void {
    if (this.#isWatching && id !== 0) this.#report({ type: 'switched', id, tunnel: this.#numberOf(tunnel) })
  }

  finished(
    tunnel: Tunnel,
    id: number,
    status: number,
    durationMs: number,
    bytes: number,
    error?: ErrorCode,
  ): void {
    if (!this.#isWatching || id === 0) return
    this.#report({
      type: 'response',
      id,
      tunnel: this.#numberOf(tunnel),
      status,
      durationMs,
      bytes,
      ...(error !== undefined && { error }),
    })
  }

  rawBegan(tunnel: Tunnel, source: Endpoint): number {
    if (!this.#isWatching) return 0
    const id = this.#nextReport++
    const { address: remoteAddress, port: remotePort } = source
    this.#report({
      type: 'visitor-connected',
      id,
      tunnel: this.#numberOf(tunnel),
      remoteAddress,
      remotePort,
    })
    return id
  }

  rawEnded(tunnel: Tunnel, id: number, end: RawEnd): void {
    if (!this.#isWatching || id === 0) return
    this.#report({ type: 'visitor-disconnected', id, tunnel: this.#numberOf(tunnel), ...end })
  }

  #report(message: Parameters<typeof encodeControl>[0]): void {
    this.#session.sendControl(encodeControl(message))
  }

  #unregister(number: number, tunnel: Tunnel): void {
    this.#registered.delete(number)
    if (this.#numbers.get(tunnel) === number) this.#numbers.delete(tunnel)
  }

  #numberOf(tunnel: Tunnel): number {
    return this.#numbers.get(tunnel) ?? 0
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
      case 'watch':
        this.#isWatching = message.on
        for (const { member } of this.#registered.values()) member.tunnel.recallLanes()
        return
      case 'linked':
        if (message.trunk !== true) delete this.#wishedAt['link-wanted']
        if (this.#links.linked(message.link, message.trunk === true)) this.#trunkPauseMs = 0
        return
      case 'link-retired':
        return this.#links.retired(message.link)
      case 'release':
        return this.#release(message.tunnel)
    }
  }

  /** Asks for a link, for bulk or for lanes; not again within `pauseMs`, unless one came. */
  #wish(type: 'link-wanted' | 'trunk-wanted', pauseMs: number): boolean {
    const now = eventLoop.now()
    const wishedAt = this.#wishedAt[type] ?? Number.NEGATIVE_INFINITY
    if (this.#host.limits.maxLinks === 0 || now - wishedAt < pauseMs) return false
    this.#wishedAt[type] = now
    this.#report({ type })
    return true
  }

  /** A client behind something that speaks TLS for the server never opens one, and this server may have no place for it. */
  #wishTrunk(): void {
    if (!this.#wish('trunk-wanted', this.#trunkPauseMs)) return
    this.#trunkPauseMs = Math.min(Math.max(2 * this.#trunkPauseMs, FIRST_TRUNK_PAUSE_MS), MAX_TRUNK_PAUSE_MS)
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
    if (tokenGate.delayOf(this.remoteAddress) === 0) return judged(tokenGate.judge(token, this.remoteAddress))
    const wait = tokenGate.judgeLater(token, this.remoteAddress, verdict => {
      this.#waits.delete(message)
      this.#claiming--
      judged(verdict)
    })
    if (typeof wait === 'string') return judged(wait)
    this.#claiming++
    this.#waits.set(message, wait)
  }

  #registerBy(rule: Rule, message: Register): void {
    const holder = this.#host.holderOf(rule, this.remoteAddress)
    const claimed = this.#claim(message, { rule, holder })
    if (!(claimed instanceof Promise)) return this.#answer(message, claimed, rule)
    this.#claiming++
    void claimed.then(member => {
      this.#claiming--
      // Opening a port took a moment, in which the client may have left, or the server reloaded.
      if (this.#session.isClosed) return typeof member === 'string' ? undefined : member.lapse()
      const ruleNow = this.#host.ruleNow(rule)
      if (typeof member === 'string') return this.#answer(message, member, rule)
      const refusal = ruleNow === undefined ? 'TOKEN_REFUSED' : this.#host.refusalOf(member.tunnel, ruleNow)
      if (refusal !== undefined) member.remove(refusal)
      this.#answer(message, refusal ?? member, ruleNow ?? rule)
    })
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
    holder.refused(performance.now())
    this.#host.refused(this, message, member)
    const detail =
      member === 'CLIENT_LIMIT' && this.#isFull
        ? `This client has ${this.#host.limits.maxTunnels} tunnels, as many as the server allows (maxTunnels).`
        : this.#host.detailOf(member, message, { rule, holder })
    this.#report({
      type: 'refused',
      ref: message.ref,
      code: member,
      message: detail ?? ERRORS[member].meaning,
    })
  }

  #grant(message: Register, member: Member, rule: Rule): void {
    const { tunnel } = member
    const host = this.#host
    const { limits, deadlines } = host
    const url = host.urlOf(tunnel)
    const { routes = [], proxyProtocol } = message
    const number = this.#nextTunnel
    this.#nextTunnel += 1 + routes.length
    const upstreamOf = (offset: number, rewrite: HostRewrite) =>
      this.#upstreamOf(number + offset, rewrite, tunnel.pool !== undefined, proxyProtocol)
    const own = upstreamOf(0, message)
    const upstream =
      routes.length === 0
        ? own
        : new RoutedUpstream(
            own,
            routes.map((route, index) => ({ path: route.path, upstream: upstreamOf(1 + index, route) })),
          )
    this.#numbers.set(tunnel, number)
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
    })
    member.isWildcard = message.wildcard === true
    // More would be kept and never be used.
    member.hosts = (message.hosts ?? []).slice(0, limits.maxHostsBelow)
    member.attach(upstream, this)
    this.#host.registered(this, tunnel)
  }

  /** Apart from `#grant`: an upstream lives as long as its tunnel, and would keep the whole message with it. */
  #upstreamOf(
    tunnel: number,
    { hostHeader, origin = '' }: HostRewrite,
    isShared: boolean,
    proxyProtocol: 1 | 2 | undefined,
  ): StreamsUpstream {
    const host = this.#host
    return new StreamsUpstream({
      session: this.#session,
      tunnel,
      get limits() {
        return host.limits
      },
      deadlines: host.deadlines,
      isShared,
      rewrite: hostHeader === undefined ? undefined : { host: hostHeader, origin },
      proxyProtocol,
    })
  }

  #release(number: number): void {
    const registered = this.#registered.get(number)
    if (registered === undefined) return
    const { member, upstream } = registered
    this.#unregister(number, member.tunnel)
    if (member.upstream === upstream) member.remove()
    this.#host.released(this, member.tunnel, 'released')
    member.whenIdle(() => this.#report({ type: 'released', tunnel: number }))
  }

  #closed(code: ErrorCode, error: Error | undefined): void {
    if (code === 'INTERNAL' && error !== undefined) this.#host.failed(error)
    this.#host.deadlines.forget(this)
    for (const stop of this.#waits.values()) stop()
    this.#waits.clear()
    for (const { member, upstream } of this.#registered.values()) {
      member.detach(upstream)
      this.#host.released(this, member.tunnel, code)
    }
    this.#registered.clear()
    this.#numbers.clear()
    this.#links.close()
    this.#host.gone(this)
  }
}
