// One client on the JSON wire: its names, its requests in progress, and whether it is alive.

import { deferred } from '../../deferred.ts'
import { ERRORS, type ErrorCode, errorOf, TunnelError } from '../../errors.ts'
import { eventLoop } from '../../event-loop.ts'
import { type ClientConnection, type ClientReports, NO_REPORTS } from '../../server/contracts/clients.ts'
import type { ClientHost } from '../../server/contracts/wire.ts'
import { ClientUse } from '../../server/limits/client-use.ts'
import type { Deadline } from '../../server/limits/deadlines.ts'
import type { QuotaOwner } from '../../server/limits/quotas.ts'
import type { Rule } from '../../server/settings/policy.ts'
import { WebSocketCarrier } from '../../session/carriers/websocket.ts'
import { Heartbeat } from '../../session/heartbeat.ts'
import { Tolerance } from '../../session/tolerance.ts'
import type { Socket, SocketHandler } from '../../socket.ts'
import { encodeConnected, encodeError, PONG, parseClientMessage } from './json.ts'
import { JsonNames, refusalText } from './names.ts'
import { JsonRequests } from './requests.ts'
import type { UnfinishedMessages } from './unfinished-messages.ts'

/**
 * The maximum number of bytes before a name is granted; clients send a few hundred. Also the size below which an
 * incomplete message is not cut.
 */
const MAX_BYTES_BEFORE_REGISTRATION = 65_536
/** The maximum number of messages per second, without responses. Existing clients send a ping every 25 s. */
const MAX_CONTROL_PER_SECOND = 100
/** The number of characters that count as a message. Existing clients send at most 100. */
const CHARS_OF_A_MESSAGE = 256
/**
 * The maximum size of a message from a client that owes no response: a name and a few words. Late responses are owed
 * until they come.
 */
const MAX_UNASKED_BYTES = 262_144
/** The maximum length of a message that is parsed while no request waits. Longer ones can only be late responses. */
const MAX_IDLE_MESSAGE_CHARS = 16_384
/** The time in milliseconds for the client of a name to prove that it is alive, if the same address requests the name again. */
const TAKEOVER_CHECK_MS = 1_000

/**
 * The time in milliseconds that a message waits for room before its client is cut, so that stalled ones do not delay
 * visitors for long.
 */
const ROOM_WAIT_MS = 5_000

/** The codes with which the WebSocket closes (RFC 6455 section 7.4.1). Existing clients reconnect after any of them. */
const CLOSE_CODES: Partial<Record<ErrorCode, number>> = {
  SERVER_DRAINING: 1001,
  CLIENT_LIMIT: 1013,
  REGISTER_TIMEOUT: 1008,
  PROTOCOL_ERROR: 1003,
}
const CLOSE_NORMAL = 1000

export class JsonConnection implements ClientConnection, Deadline {
  readonly wire = 'json'
  /** No reports, because clients of this wire see their requests themselves. */
  readonly reports: ClientReports = NO_REPORTS
  readonly remoteAddress: string
  number = 0
  agent = ''
  readonly connectedAtMs: number = Date.now()
  /** 0, because this wire has no streams. */
  readonly creditStalls = 0
  readonly socketHandler: SocketHandler
  dueTick = 0
  readonly #host: ClientHost
  /** The incomplete messages of all clients of this wire. */
  readonly #unfinished: UnfinishedMessages
  #rule: Rule
  readonly #use: ClientUse
  readonly #carrier: WebSocketCarrier
  readonly #heartbeat: Heartbeat
  readonly #tolerance: Tolerance = new Tolerance(MAX_CONTROL_PER_SECOND)
  readonly #names: JsonNames
  readonly #requests: JsonRequests
  /** The bytes of an incomplete message that are charged to its owner. */
  #unfinishedBytes = 0
  #bytesBeforeRegistration = 0
  /** The checks in progress of whether the client is alive. */
  readonly #signs = new Set<(isAlive: boolean) => void>()

  /** Takes the connection after the response to the upgrade. */
  constructor(
    socket: Socket,
    remoteAddress: string,
    host: ClientHost,
    rule: Rule,
    unfinished: UnfinishedMessages,
  ) {
    this.#host = host
    this.#unfinished = unfinished
    this.#rule = rule
    this.remoteAddress = remoteAddress
    this.#use = new ClientUse(host.server.quotas.of(rule, remoteAddress))
    const { limits, deadlines } = host.server
    this.#carrier = new WebSocketCarrier(socket, {
      role: 'server',
      scheduler: eventLoop,
      turns: host.server.turns,
      // Only responses are long, and only an owed one is accepted.
      maxTextBytes: () => (this.#requests.areOwed ? limits.maxMessageBytes : MAX_UNASKED_BYTES),
      text: message => this.#take(message),
      taken: () => this.#chargeUnfinished(),
    })
    this.#requests = new JsonRequests(host, this.#carrier, this.#use)
    this.#names = new JsonNames(host, this, this.#requests)
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
      // The client takes bytes, however slowly, so it is alive.
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
      () => this.#lose('CARRIER_LOST'),
      () => this.#requests.areWaiting,
    )
    deadlines.watch(this)
    deadlines.arm(this, limits.registerTimeoutMs)
    this.#carrier.sendText(encodeConnected(limits.originTimeoutMs))
  }

  get rule(): Rule {
    return this.#rule
  }

  get holder(): QuotaOwner {
    return this.#use.holder
  }

  get isClosed(): boolean {
    return this.#requests.isClosed
  }

  // ── ClientConnection ───────────────────────────────────────────────────────────────────────────────────────

  /** Checks with a ping, to which every WebSocket replies, also in existing clients. */
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

  drain(): void {}

  close(code: ErrorCode): void {
    this.#end(code)
    this.#carrier.close(CLOSE_CODES[code] ?? CLOSE_NORMAL, ERRORS[code].meaning)
  }

  get roundTripMs(): number {
    return this.#heartbeat.roundTripMs
  }

  reloaded(): void {
    const rule = this.#rule.in(this.#host.server.settings.policy)
    const refusal = this.#names.takeBack(rule, this.#rule.endCode)
    if (rule !== undefined) this.#worksBy(rule)
    const isOver = rule === undefined || (refusal !== undefined && this.#names.size === 0)
    if (!isOver || this.isClosed) return
    const code = refusal ?? this.#rule.endCode
    this.#carrier.sendText(encodeError(refusalText(code)))
    this.close(code)
  }

  #worksBy(rule: Rule): void {
    this.#rule = rule
    const before = this.holder
    this.#use.passTo(this.#host.server.quotas.of(rule, this.remoteAddress), 0)
    this.#unfinished.moved(before, this.holder, this.#unfinishedBytes)
    this.#names.moveTo(this.holder)
  }

  /** Called when nothing was registered in time, or a message found no room. */
  expired(): void {
    if (this.#names.hasRegistered) this.#lose('BUFFERS_FULL')
    else this.close('REGISTER_TIMEOUT')
  }

  sendText(text: string): void {
    this.#carrier.sendText(text)
  }

  // ── From the client ────────────────────────────────────────────────────────────────────────────────────────

  #heard(bytes: number): void {
    this.#heartbeat.hasHeard = true
    this.#sign(true)
    if (this.#names.hasRegistered) return
    this.#bytesBeforeRegistration += bytes
    if (this.#bytesBeforeRegistration > MAX_BYTES_BEFORE_REGISTRATION) this.#lose('FLOOD')
  }

  /** Charges an incomplete message, which can be as long as `maxMessageBytes` and may never end. */
  #chargeUnfinished(): void {
    const before = this.#unfinishedBytes
    const bytes = this.isClosed ? 0 : this.#carrier.unfinishedTextBytes
    if (bytes === before) return
    const { limits } = this.#host.server
    const { maxMessageBytes, maxUnfinishedMessageBytes } = limits
    // There is room for one message of the maximum size, whatever the limits are.
    const most = Math.max(maxUnfinishedMessageBytes, maxMessageBytes)
    this.#use.hold(bytes - before)
    this.#unfinishedBytes = bytes
    const hasRoom = this.#unfinished.changed(this.holder, before, bytes, most)
    if (bytes <= MAX_BYTES_BEFORE_REGISTRATION) return
    if (this.#use.isOver) this.#lose('BUFFERS_FULL')
    else if (!hasRoom && !this.#unfinished.isFirst(this)) this.#waitForRoom()
  }

  /** Waits for room. Reading more would use memory until the next garbage collection. */
  #waitForRoom(): void {
    this.#carrier.pause()
    this.#host.server.deadlines.arm(this, ROOM_WAIT_MS)
    this.#unfinished.wait(this)
  }

  /** Called when the connection is read again. */
  woke(): void {
    const { deadlines } = this.#host.server
    if (this.#unfinished.isFirst(this)) deadlines.arm(this, ROOM_WAIT_MS)
    else deadlines.disarm(this)
    this.#carrier.resume()
  }

  /** Lets other connections have their turn after a complete message. */
  #letOthersFirst(): void {
    const { deadlines } = this.#host.server
    if (!this.#unfinished.isFirst(this)) return
    deadlines.disarm(this)
    this.#unfinished.over(this)
  }

  #sign(isAlive: boolean): void {
    if (this.#signs.size > 0) for (const finish of this.#signs) finish(isAlive)
  }

  #take(text: string): void {
    if (this.isClosed) return
    this.#letOthersFirst()
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
    // Unknown messages are ignored, as by existing servers.
    if (typeof message !== 'object') return
    switch (message.type) {
      case 'ready':
        this.#requests.accept(message.accepts ?? [])
        this.#names.register(message.subdomain).catch((cause: unknown) => this.#broke(cause))
        return
      case 'ping':
        this.#carrier.sendText(PONG)
        return
      case 'disconnect':
        if (message.subdomain !== undefined && !this.#names.has(message.subdomain)) return
        return this.#release()
    }
  }

  #isTolerated(chars: number): boolean {
    const count = Math.min(Math.ceil(chars / CHARS_OF_A_MESSAGE), MAX_CONTROL_PER_SECOND / 2)
    return this.#tolerance.allows(performance.now(), count)
  }

  #broke(cause: unknown): void {
    this.#host.server.failed(errorOf(cause))
    this.close('INTERNAL')
  }

  // ── The end ────────────────────────────────────────────────────────────────────────────────────────────────

  /** Releases the names at once; the connection closes after the last response. */
  #release(): void {
    this.#names.release(() => {
      if (this.isClosed) return
      this.#end('released')
      this.#carrier.close(CLOSE_NORMAL, 'Client disconnected')
    })
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

  /** Releases the names and fails what is in progress at once, however long the socket takes to close. */
  #end(reason: ErrorCode | 'released'): void {
    if (this.isClosed) return
    this.#heartbeat.stop()
    this.#host.server.deadlines.forget(this)
    this.#unfinished.over(this)
    this.#requests.close()
    this.#sign(false)
    this.#chargeUnfinished()
    this.#names.end(reason)
  }
}
