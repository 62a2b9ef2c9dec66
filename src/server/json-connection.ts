// One client on the JSON wire: its names, its requests under way, and whether it still lives.

import { deferred } from '../deferred.ts'
import { ERRORS, type ErrorCode, TunnelError } from '../errors.ts'
import { eventLoop } from '../event-loop.ts'
import { WebSocketCarrier } from '../session/carriers/websocket.ts'
import { Heartbeat } from '../session/heartbeat.ts'
import { Tolerance } from '../session/tolerance.ts'
import type { Socket, SocketHandler } from '../socket.ts'
import {
  encodeConnected,
  encodeError,
  encodeRegistered,
  encodeTaken,
  PONG,
  parseClientMessage,
} from '../wire/json.ts'
import { claimNameInCluster } from './claims.ts'
import type { ClientHost } from './client-host.ts'
import { ClientUse } from './client-use.ts'
import { type ClientConnection, type ClientReports, NO_REPORTS } from './clients.ts'
import type { Deadline } from './deadlines.ts'
import type { Holder } from './holdings.ts'
import { JsonRequests } from './json-requests.ts'
import type { Member } from './member.ts'
import type { Rule } from './policy.ts'
import type { Tunnel } from './tunnels.ts'
import { JsonUpstream } from './upstreams/json.ts'

/** Bytes before a name is granted: clients send a few hundred. Of an unfinished message, what is not worth a cut. */
const MAX_BYTES_BEFORE_REGISTRATION = 65_536
/** Messages a second, answers not counted. Existing clients send a ping every 25 s. */
const MAX_CONTROL_PER_SECOND = 100
/** A long message counts as several. Existing clients send 100 characters at most. */
const CHARS_OF_A_MESSAGE = 256
/** A message of a client that owes no answer: a name and a few words, and nonsense is ignored. Late answers are owed until they come. */
const MAX_UNASKED_BYTES = 262_144
/** While no request waits for an answer, longer messages are not parsed: they can only be late answers. */
const MAX_IDLE_MESSAGE_CHARS = 16_384
/** How long the holder of a name has to show that it lives when the same address asks for the name again. */
const TAKEOVER_CHECK_MS = 1_000

/** Why the WebSocket is closed (RFC 6455 section 7.4.1). Existing clients reconnect whatever it says. */
const CLOSE_CODES: Partial<Record<ErrorCode, number>> = {
  SERVER_DRAINING: 1001,
  CLIENT_LIMIT: 1013,
  REGISTER_TIMEOUT: 1008,
  PROTOCOL_ERROR: 1003,
}
const CLOSE_NORMAL = 1000

interface Registered {
  readonly member: Member
  readonly upstream: JsonUpstream
}

export class JsonConnection implements ClientConnection, Deadline {
  readonly wire = 'json'
  /** Clients of this wire see their requests themselves. */
  readonly reports: ClientReports = NO_REPORTS
  readonly remoteAddress: string
  number = 0
  agent = ''
  readonly connectedAtMs: number = Date.now()
  /** The wire has no streams. */
  readonly creditStalls = 0
  /** Where the events of the socket go. */
  readonly socketHandler: SocketHandler
  dueTick = 0
  readonly #host: ClientHost
  /** What the token of the connection opens. */
  #rule: Rule
  readonly #use: ClientUse
  readonly #carrier: WebSocketCarrier
  readonly #heartbeat: Heartbeat
  readonly #tolerance: Tolerance = new Tolerance(MAX_CONTROL_PER_SECOND)
  readonly #registered = new Map<string, Registered>()
  /** Of names that were given or taken back: what is under way goes on. */
  readonly #leaving: JsonUpstream[] = []
  readonly #requests: JsonRequests
  /** What its holder is charged for a message whose end has not come yet. */
  #unfinishedBytes = 0
  #bytesBeforeRegistration = 0
  #hasRegistered = false
  /** Checks of whether the client lives. */
  readonly #signs = new Set<(isAlive: boolean) => void>()

  /** Takes over after the upgrade was answered. */
  constructor(socket: Socket, remoteAddress: string, host: ClientHost, rule: Rule) {
    this.#host = host
    this.#rule = rule
    this.remoteAddress = remoteAddress
    this.#use = new ClientUse(host.holderOf(rule, remoteAddress))
    const { limits, deadlines } = host
    this.#carrier = new WebSocketCarrier(socket, {
      role: 'server',
      scheduler: eventLoop,
      turns: host.turns,
      // Only answers are long, and only one that is owed is waited for.
      maxTextBytes: () => (this.#requests.areOwed ? limits.maxMessageBytes : MAX_UNASKED_BYTES),
      text: message => this.#take(message),
      taken: () => this.#chargeUnfinished(),
    })
    this.#requests = new JsonRequests(host, this.#carrier, this.#use)
    this.#carrier.account = { hold: bytes => this.#use.hold(bytes), isOver: false }
    this.#carrier.handler = {
      // This wire has no binary messages.
      received: () => this.close('PROTOCOL_ERROR'),
      drained() {},
      closed: error => this.#closed(error),
    }
    const carrierEvents = this.#carrier.socketHandler
    this.socketHandler = {
      received: bytes => {
        this.#heard(bytes.length)
        carrierEvents.received(bytes)
      },
      // The client takes bytes, however slowly: it lives.
      drained: () => {
        this.#heard(0)
        carrierEvents.drained()
      },
      ended: () => carrierEvents.ended(),
      closed: error => carrierEvents.closed(error),
    }
    this.#heartbeat = new Heartbeat(
      eventLoop,
      limits,
      () => this.#carrier.ping(),
      () => this.#lose('CARRIER_DEAD'),
      () => this.#requests.areWaiting,
    )
    deadlines.watch(this)
    deadlines.arm(this, limits.registerTimeoutMs)
    this.#carrier.sendText(encodeConnected(limits.originTimeoutMs))
  }

  get holder(): Holder {
    return this.#use.holder
  }

  get isClosed(): boolean {
    return this.#requests.isClosed
  }

  // ── ClientConnection ───────────────────────────────────────────────────────────────────────────────────────

  /** Every WebSocket answers a ping, existing clients included. */
  checkAlive(): Promise<boolean> {
    if (this.isClosed) return Promise.resolve(false)
    const { promise, resolve } = deferred<boolean>()
    const finish = (isAlive: boolean): void => {
      cancel()
      this.#signs.delete(finish)
      resolve(isAlive)
    }
    const cancel = eventLoop.after(TAKEOVER_CHECK_MS, () => finish(false))
    this.#signs.add(finish)
    this.#carrier.ping()
    return promise
  }

  /** Existing clients serve nothing after a reconnect: they are left alone until the very end. */
  drain(): void {}

  close(code: ErrorCode): void {
    this.#end(code)
    this.#carrier.close(CLOSE_CODES[code] ?? CLOSE_NORMAL, ERRORS[code].meaning)
  }

  /** This wire can take one name of several back only silently; with the last one it can say why. */
  get roundTripMs(): number {
    return this.#heartbeat.roundTripMs
  }

  reloaded(): void {
    const rule = this.#host.ruleNow(this.#rule)
    let refusal: ErrorCode | undefined
    for (const { member, upstream } of [...this.#registered.values()]) {
      const { tunnel } = member
      const code = rule === undefined ? this.#rule.endCode : this.#host.refusalOf(tunnel, rule)
      if (code === undefined) continue
      refusal = code
      this.#registered.delete(tunnel.name)
      this.#leaving.push(upstream)
      member.remove(code)
      this.#host.released(this, tunnel, code)
    }
    if (rule !== undefined) this.#worksBy(rule)
    const isOver = rule === undefined || (refusal !== undefined && this.#registered.size === 0)
    if (!isOver || this.isClosed) return
    const code = refusal ?? this.#rule.endCode
    this.#carrier.sendText(encodeError(refusalText(code)))
    this.close(code)
  }

  #worksBy(rule: Rule): void {
    this.#rule = rule
    const before = this.holder
    this.#use.passTo(this.#host.holderOf(rule, this.remoteAddress), 0)
    this.#host.unfinishedMessages.moved(before, this.holder, this.#unfinishedBytes)
    for (const { member } of this.#registered.values()) member.moveTo(this.holder)
  }

  /** Nothing was registered in time. */
  expired(): void {
    this.close('REGISTER_TIMEOUT')
  }

  // ── From the client ────────────────────────────────────────────────────────────────────────────────────────

  #heard(bytes: number): void {
    this.#heartbeat.heard()
    this.#sign(true)
    if (this.#hasRegistered) return
    this.#bytesBeforeRegistration += bytes
    if (this.#bytesBeforeRegistration > MAX_BYTES_BEFORE_REGISTRATION) this.#lose('FLOOD')
  }

  /** A message can be as long as `maxMessageBytes`, and its sender need not end it. */
  #chargeUnfinished(): void {
    const before = this.#unfinishedBytes
    const bytes = this.isClosed ? 0 : this.#carrier.unfinishedTextBytes
    if (bytes === before) return
    const { limits, unfinishedMessages } = this.#host
    const { maxMessageBytes, maxUnfinishedMessageBytes } = limits
    // One message of the largest size has room, whatever the limits are.
    const most = Math.max(maxUnfinishedMessageBytes, maxMessageBytes)
    this.#use.hold(bytes - before)
    this.#unfinishedBytes = bytes
    const hasRoom = unfinishedMessages.changed(this.holder, before, bytes, most) && !this.#use.isOver
    if (bytes > MAX_BYTES_BEFORE_REGISTRATION && !hasRoom) this.#lose('BUFFERS_FULL')
  }

  #sign(isAlive: boolean): void {
    if (this.#signs.size > 0) for (const finish of this.#signs) finish(isAlive)
  }

  #take(text: string): void {
    if (this.isClosed) return
    const isLate = !this.#requests.areWaiting && text.length > MAX_IDLE_MESSAGE_CHARS
    const message = isLate ? 'unknown' : parseClientMessage(text)
    const isAnswer = typeof message === 'object' && message.type === 'response'
    if (isAnswer && this.#requests.answered(message.id, message.answer)) return
    this.#takeControl(message, text.length)
  }

  #takeControl(message: ReturnType<typeof parseClientMessage>, chars: number): void {
    const isLateAnswer = message === 'unknown' || (typeof message === 'object' && message.type === 'response')
    const isOwed = isLateAnswer && this.#requests.answeredLate()
    if (!isOwed && !this.#isTolerated(chars)) return this.#lose('FLOOD')
    // What this server does not know or understand is ignored, as existing servers do.
    if (typeof message !== 'object') return
    switch (message.type) {
      case 'ready':
        this.#requests.accept(message.accepts ?? [])
        this.#register(message.subdomain).catch((cause: unknown) => this.#broke(cause))
        return
      case 'ping':
        this.#carrier.sendText(PONG)
        return
      case 'disconnect':
        if (message.subdomain !== undefined && !this.#registered.has(message.subdomain)) return
        return this.#release()
    }
  }

  #isTolerated(chars: number): boolean {
    const count = Math.min(Math.ceil(chars / CHARS_OF_A_MESSAGE), MAX_CONTROL_PER_SECOND / 2)
    return this.#tolerance.allows(performance.now(), count)
  }

  // ── Names ──────────────────────────────────────────────────────────────────────────────────────────────────

  async #register(name: string): Promise<void> {
    const { limits, deadlines } = this.#host
    if (!this.#hasRegistered) deadlines.arm(this, limits.registerTimeoutMs)
    const own = this.#registered.get(name)
    if (own !== undefined) return this.#confirm(own.member.tunnel)
    const first = this.#claim(name)
    let claimed = first instanceof Promise ? await first : first
    if (this.isClosed) return this.#forsake(claimed)
    if (claimed === 'NAME_TAKEN' && (await this.#isLeftBehind(name))) {
      if (this.isClosed) return
      // It may have asked twice.
      const again = this.#registered.get(name)
      if (again !== undefined) return this.#confirm(again.member.tunnel)
      claimed = await this.#claim(name)
      if (this.isClosed) return this.#forsake(claimed)
    }
    if (typeof claimed !== 'string') return this.#grant(claimed)
    this.holder.refused(performance.now())
    this.#host.refused(this, { kind: 'http', name }, claimed)
    this.#carrier.sendText(
      claimed === 'NAME_TAKEN'
        ? encodeTaken(name)
        : encodeError(refusalText(claimed, this.#detailOf(claimed, name))),
    )
  }

  #broke(cause: unknown): void {
    this.#host.failed(cause instanceof Error ? cause : new Error(String(cause)))
    this.close('INTERNAL')
  }

  /** It closed while the directory of a cluster was asked. */
  #forsake(claimed: Member | ErrorCode): void {
    if (typeof claimed !== 'string') claimed.lapse()
  }

  #claim(name: string): Member | ErrorCode | Promise<Member | ErrorCode> {
    if (this.holder.isRefusedTooOften(performance.now())) return 'REFUSED_TOO_OFTEN'
    if (this.#registered.size >= this.#host.limits.maxTunnels) return 'CLIENT_LIMIT'
    const refusal = this.#host.refusalOf({ kind: 'http', name }, this.#rule)
    if (refusal !== undefined) return refusal
    const { cluster, tunnels } = this.#host
    const { holder } = this
    return cluster === undefined
      ? tunnels.claim('http', name, { holder })
      : claimNameInCluster(name, holder, tunnels, cluster)
  }

  #detailOf(code: ErrorCode, name: string): string | undefined {
    return this.#host.detailOf(code, { kind: 'http', name }, { rule: this.#rule, holder: this.holder })
  }

  /**
   * Whether the name belongs to an earlier connection of the same client that does not answer any more. This wire has no
   * secret that proves it, and a client that comes back must not have to take `name-2`: the same token from the same
   * address counts as the same client. Without tokens the address alone does, unless it is a proxy's, which all clients
   * behind it have.
   */
  async #isLeftBehind(name: string): Promise<boolean> {
    const other = this.#host.tunnels.find(name)?.client
    if (other === undefined || other.wire !== 'json' || other === this) return false
    if (other.holder !== this.holder || other.remoteAddress !== this.remoteAddress) return false
    if (this.#rule.id === undefined && this.#host.isTrusted(this.remoteAddress)) return false
    if (await other.checkAlive()) return false
    other.close('CARRIER_DEAD')
    return true
  }

  #grant(member: Member): void {
    const { tunnel } = member
    const upstream = new JsonUpstream(this.#requests)
    this.#registered.set(tunnel.name, { member, upstream })
    this.#hasRegistered = true
    this.#host.deadlines.disarm(this)
    this.#confirm(tunnel)
    member.attach(upstream, this)
    this.#host.registered(this, tunnel, this.#rule)
  }

  #confirm(tunnel: Tunnel): void {
    this.#carrier.sendText(encodeRegistered(tunnel.name, this.#host.urlOf(tunnel)))
  }

  // ── The end ────────────────────────────────────────────────────────────────────────────────────────────────

  /** The names are free at once; the connection closes behind the last answer. */
  #release(): void {
    const leaving = [...this.#registered.values()]
    this.#registered.clear()
    this.#leaving.push(...leaving.map(({ upstream }) => upstream))
    let left = leaving.length + 1
    const oneLess = () => {
      if (--left > 0 || this.isClosed) return
      this.#end('released')
      this.#carrier.close(CLOSE_NORMAL, 'Client disconnected')
    }
    for (const { member } of leaving) {
      member.remove()
      this.#host.released(this, member.tunnel, 'released')
      member.whenIdle(oneLess)
    }
    oneLess()
  }

  #lose(code: ErrorCode): void {
    this.#end(code)
    this.#carrier.terminate()
  }

  #closed(error: Error | undefined): void {
    const isFlood = error instanceof TunnelError && error.code === 'FLOOD'
    this.#end(isFlood ? 'FLOOD' : 'CLIENT_GONE')
    this.#host.gone(this)
  }

  /** Frees the names and fails what is under way, at once, however long the socket takes to close. */
  #end(reason: ErrorCode | 'released'): void {
    if (this.isClosed) return
    this.#heartbeat.stop()
    this.#host.deadlines.forget(this)
    this.#requests.close()
    this.#sign(false)
    this.#chargeUnfinished()
    for (const { member, upstream } of this.#registered.values()) {
      member.detach(upstream)
      this.#host.released(this, member.tunnel, reason)
      upstream.clientGone()
    }
    for (const upstream of this.#leaving) upstream.clientGone()
    this.#registered.clear()
  }
}

/** Existing clients give up on an error, and show its text. */
function refusalText(code: ErrorCode, detail: string = ERRORS[code].meaning): string {
  return code === 'NAME_INVALID' ? 'Invalid subdomain format' : `${detail} ${ERRORS[code].action}`
}
