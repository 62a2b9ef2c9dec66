// A public UDP port: the datagrams of each visitor's address and port are a flow, with a stream of its own.

import { deferred } from '../../deferred.ts'
import type { Place } from '../../directory.ts'
import { type ErrorCode, TunnelError } from '../../errors.ts'
import { eventLoop } from '../../event-loop.ts'
import { Flow } from '../../flow/flow.ts'
import { FlowShare } from '../../flow/share.ts'
import { Join } from '../../join.ts'
import type { Pass } from '../../plugin.ts'
import type { ByteStream } from '../../session/byte-stream.ts'
import type { Turns } from '../../session/turns.ts'
import type { Socket, SocketHandler } from '../../socket.ts'
import { type BoundPort, bindBun } from '../../sockets/bun-datagrams.ts'
import type { SendDatagrams } from '../../wire/datagrams.ts'
import { networkOf } from '../../wire/ip-address.ts'
import type { ServerContext } from '../context/server-context.ts'
import type { Judgement } from '../contracts/guarding.ts'
import { Takers } from '../limits/takers.ts'
import { judge } from '../routing/judging.ts'
import { keepOpen } from '../routing/keep-open.ts'
import type { Tunnel } from '../tunnels/tunnel.ts'
import type { OpenPort } from './public-ports.ts'

/**
 * The time in milliseconds after which a flow without a reply may be replaced by another one. Forged addresses get no
 * reply, so visitors that had one stay.
 */
const UNANSWERED_MS = 1_000
/** The number of attempts to bind a port that another worker process may have, and the pause between them. */
const BIND_TRIES = 10
const BIND_MS = 30
/** The largest burst of a flow, as milliseconds at `maxFlowRate`. */
const BURST_MS = 100

/**
 * Listens for the visitors of a port. Rejects with `PORT_TAKEN` or `NOT_ALLOWED`. `turns` limits what all UDP tunnels
 * together send to visitors in one turn of the event loop.
 */
export async function listenUdp(port: number, context: ServerContext, turns: Turns): Promise<OpenPort> {
  const front = new UdpPort(port, context, turns)
  try {
    await bindSoon(front, context.servers?.isOneMachine === true ? BIND_TRIES : 1)
  } catch (cause) {
    const code = cause instanceof Error && 'code' in cause ? cause.code : undefined
    throw new TunnelError(code === 'EACCES' ? 'NOT_ALLOWED' : 'PORT_TAKEN', undefined, { cause })
  }
  return front
}

/** Binds the port. A client that changed to this worker process may have left the port open at another one for a moment. */
async function bindSoon(front: UdpPort, tries: number): Promise<void> {
  try {
    await front.bind()
  } catch (error) {
    if (tries <= 1) throw error
    const { promise, resolve } = deferred<void>()
    eventLoop.after(BIND_MS, resolve)
    await promise
    await bindSoon(front, tries - 1)
  }
}

class UdpPort implements OpenPort {
  readonly #number: number
  readonly #name: string
  readonly #context: ServerContext
  readonly #share: FlowShare
  readonly #flows = new FlowTable()
  /** The flows of visitors of other servers. */
  readonly #passed = new Set<Join>()
  /** The flows without a reply from the origin, the oldest first. */
  readonly #unanswered = new Set<VisitorFlow>()
  readonly #takers = new Takers()
  /** The visitors, by address and port, for whom a guard or the directory is being asked. */
  readonly #judged = new Set<string>()
  /** The flow of the last datagram, which is often also the flow of the next one. */
  #last: VisitorFlow | undefined
  #port: BoundPort | undefined
  /** The time until which the flows so far use up `maxFlowRate`. */
  #ratedUntil = 0
  /**
   * The turn of the event loop in which a new flow was refused. Further new flows of that address are then refused
   * without a check.
   */
  #refusedTurn = -1
  #refusedAddress = ''
  /** Whether no new flows are opened; existing ones continue. */
  #isDraining = false

  constructor(port: number, context: ServerContext, turns: Turns) {
    this.#number = port
    this.#name = `udp-${port}`
    this.#context = context
    this.#share = new FlowShare({
      scheduler: eventLoop,
      turns,
      idleTimeoutMs: context.limits.flowIdleMs,
      dropped: count => this.#dropped(count),
    })
  }

  get #tunnel(): Tunnel | undefined {
    return this.#context.tunnels.find(this.#name)
  }

  async bind(): Promise<void> {
    this.#port = await bindBun({
      hostname: this.#context.settings.hostname,
      port: this.#number,
      received: (datagram, port, address) => this.#received(datagram, port, address),
      dropped: () => this.#dropped(1),
      drained: () => {
        for (const { flow } of this.#flows.all()) flow.drained()
      },
      failed: error => this.#context.failed(error),
    })
  }

  drain(): void {
    this.#isDraining = true
  }

  /** Called when the tunnel leaves. Replies come from the port at which datagrams arrive. */
  left(_tunnel: Tunnel, code: ErrorCode = 'CLIENT_GONE'): void {
    for (const { join } of this.#flows.all()) join.fail(code)
    for (const join of [...this.#passed]) join.fail(code)
  }

  stop(): void {
    this.#isDraining = true
    this.#port?.close()
    for (const { join } of this.#flows.all()) join.fail('CLIENT_GONE')
    for (const join of [...this.#passed]) join.fail('CLIENT_GONE')
  }

  #received(datagram: Uint8Array, port: number, address: string): void {
    const last = this.#last
    const isLast = last?.port === port && last.address === address
    const found = isLast ? last : (this.#flows.find(port, address) ?? this.#open(port, address, datagram))
    if (found === 'kept') return
    if (found === undefined) return this.#dropped(1)
    this.#last = found
    found.flow.arrived(datagram)
  }

  /** Opens a flow. `undefined` if there is no client, no room, or a guard refuses it; then the datagram is lost. */
  #open(port: number, address: string, datagram: Uint8Array): VisitorFlow | 'kept' | undefined {
    const tunnel = this.#tunnel
    if (this.#isDraining) return undefined
    if (tunnel === undefined) return this.#openElsewhere(port, address, datagram)
    if (tunnel.upstream === undefined || this.#isFullOrAsked(port, address)) return undefined
    // Guards decide first, so that refused flows do not take the places of others.
    const judgement = judge(this.#context, tunnel, { address })
    if (judgement === undefined) return this.#openWith(tunnel, port, address, [])
    if (!(judgement instanceof Promise))
      return judgement.kind === 'pass' ? this.#openWith(tunnel, port, address, judgement.passes) : undefined
    this.#openLater(tunnel, port, address, judgement)
    return undefined
  }

  /** Opens a flow after a guard's verdict. Datagrams until then are lost; the visitor sends them again. */
  #openLater(tunnel: Tunnel, port: number, address: string, judgement: Promise<Judgement>): void {
    this.#later(port, address, judgement, one => {
      if (one.kind === 'pass' && this.#tunnel === tunnel) this.#openWith(tunnel, port, address, one.passes)
    })
  }

  /** Whether the visitor waits already, or the number of waiting visitors is at its maximum. */
  #isFullOrAsked(port: number, address: string): boolean {
    const { size } = this.#judged
    return size > 0 && (size >= this.#context.limits.maxAskedFlows || this.#judged.has(`${address} ${port}`))
  }

  /** Calls `then` if the visitor has no flow by that time. Returns `false` if too many wait, or this visitor waits already. */
  #later<Answer>(
    port: number,
    address: string,
    asked: Promise<Answer>,
    then: (answer: Answer) => void,
  ): boolean {
    if (this.#isFullOrAsked(port, address)) return false
    const key = `${address} ${port}`
    this.#judged.add(key)
    void asked.then(
      answer => {
        this.#judged.delete(key)
        if (!this.#isDraining && this.#flows.find(port, address) === undefined) then(answer)
      },
      () => this.#judged.delete(key),
    )
    return true
  }

  #openWith(tunnel: Tunnel, port: number, address: string, passes: readonly Pass[]): VisitorFlow | undefined {
    if (!this.#mayOpen(tunnel.owner, address)) return undefined
    const chosen = tunnel.choose({ address })
    // A datagram does not wait for a client: the visitor sends it again.
    if (typeof chosen === 'string' || chosen.kind === 'holding') return undefined
    const open = (join: Join) => chosen.upstream?.open(join, address, undefined) ?? 'CLIENT_GONE'
    return this.#begin(port, address, tunnel.owner, passes, open)
  }

  #begin(
    port: number,
    address: string,
    owner: string,
    passes: readonly Pass[],
    open: (join: Join) => ByteStream | ErrorCode,
  ): VisitorFlow | undefined {
    const visitor: VisitorFlow = new VisitorFlow(
      port,
      address,
      this.#share,
      datagrams => {
        this.#unanswered.delete(visitor)
        return this.#port?.send(datagrams, port, address) ?? datagrams.length
      },
      () => {
        this.#flows.delete(visitor)
        this.#unanswered.delete(visitor)
        this.#takers.delete(network, taker)
        if (this.#last === visitor) this.#last = undefined
        this.#ended(owner, visitor.stream)
        stopKeeping?.()
      },
    )
    const network = networkOf(address)
    const taker = { giveWay: () => visitor.flow.end() }
    const stopKeeping = this.#keepOpen(passes, () => visitor.flow.end())
    if (stopKeeping === undefined) return undefined
    this.#flows.add(visitor)
    this.#takers.add(network, taker)
    this.#unanswered.add(visitor)
    this.#began(owner)
    const stream = open(visitor.join)
    if (typeof stream === 'string') {
      visitor.join.fail(stream)
      return undefined
    }
    visitor.useStream(stream)
    return visitor
  }

  /** Returns the function to call at the end of the flow. `undefined`: a guard has failed, so the flow is refused. */
  #keepOpen(passes: readonly Pass[], cut: () => void): (() => void) | undefined {
    const failed = (cause: unknown): void => void this.#context.tunnels.guards.fail(cause)
    try {
      return keepOpen(passes, cut, failed)
    } catch (cause) {
      failed(cause)
      return undefined
    }
  }

  #began(owner: string): void {
    this.#context.flows.take(owner, '', 1, Number.POSITIVE_INFINITY)
  }

  /** Counts the end of a flow. */
  #ended(owner: string, stream: ByteStream | undefined): void {
    const { counters, flows } = this.#context
    flows.give(owner, '', 1)
    counters.bytesIn += stream?.sentBytes ?? 0
    counters.bytesOut += stream?.deliveredBytes ?? 0
  }

  // ── Between servers ────────────────────────────────────────────────────────────────────────────────────────

  /**
   * Opens a flow to the server that has the tunnel. The first datagram waits for the directory; later ones until then are lost.
   */
  #openElsewhere(port: number, address: string, datagram: Uint8Array): VisitorFlow | 'kept' | undefined {
    const found = this.#context.servers?.find(this.#name)
    if (found === undefined) return undefined
    if (!(found instanceof Promise)) return this.#openAt(found, port, address)
    const isKept = this.#later(port, address, found, places => {
      const flow = this.#openAt(places, port, address)
      if (flow === undefined) this.#dropped(1)
      else flow.flow.arrived(datagram)
    })
    return isKept ? 'kept' : undefined
  }

  #openAt(places: readonly Place[], port: number, address: string): VisitorFlow | undefined {
    const { servers, settings } = this.#context
    if (servers === undefined || !this.#mayOpen(this.#name, address)) return undefined
    const destination = { address: settings.hostname, port: this.#number }
    const passenger = {
      kind: 'udp',
      wanted: `${this.#number}`,
      endpoints: { source: { address, port }, destination },
    } as const
    return this.#begin(
      port,
      address,
      this.#name,
      [],
      join => servers.pass(places, passenger, join, { opened() {} }) ?? 'CLIENT_GONE',
    )
  }

  takeFlow(socket: Socket, address: string, opened: () => void): SocketHandler {
    const tunnel = this.#tunnel
    const owner = tunnel?.owner ?? this.#name
    let stream: ByteStream | undefined
    let stopKeeping = (): void => {}
    const join: Join = new Join('CANCELLED', false, () => {
      if (!this.#passed.delete(join)) return
      this.#takers.delete(network, taker)
      this.#ended(owner, stream)
      stopKeeping()
    })
    const network = networkOf(address)
    const taker = { giveWay: () => join.fail('TUNNEL_BUSY') }
    const enter = (judgement: Judgement | undefined): void => {
      if (join.isOver) return
      const passes = judgement === undefined ? [] : judgement.kind === 'pass' ? judgement.passes : undefined
      const isFree =
        passes !== undefined &&
        tunnel?.upstream !== undefined &&
        !this.#isDraining &&
        this.#mayOpen(owner, address)
      const chosen = isFree ? tunnel.choose({ address }) : 'TUNNEL_BUSY'
      if (typeof chosen === 'string' || chosen.kind === 'holding') return join.fail('TUNNEL_BUSY')
      const granted = chosen.upstream?.open(join, address, undefined) ?? 'CLIENT_GONE'
      if (typeof granted === 'string') return join.fail(granted)
      stream = granted
      const kept = this.#keepOpen(passes ?? [], () => join.fail('GUARD_REFUSED'))
      if (kept === undefined) return join.fail('PLUGIN_FAILED')
      stopKeeping = kept
      this.#passed.add(join)
      this.#takers.add(network, taker)
      this.#began(owner)
      opened()
      join.useStream(granted)
    }
    join.useSocket(socket)
    const judgement = tunnel && judge(this.#context, tunnel, { address })
    if (judgement instanceof Promise) void judgement.then(enter)
    else enter(judgement)
    return join.socketHandler
  }

  // ── How many ───────────────────────────────────────────────────────────────────────────────────────────────

  #dropped(count: number): void {
    const tunnel = this.#tunnel
    if (tunnel !== undefined) tunnel.droppedDatagrams += count
    this.#context.counters.droppedDatagrams += count
  }

  #mayOpen(owner: string, address: string): boolean {
    const { turnNumber } = this.#share
    if (this.#refusedTurn === turnNumber && this.#refusedAddress === address) return false
    if (this.#isInRate() && this.#hasRoom(owner, address)) return true
    this.#refusedTurn = turnNumber
    this.#refusedAddress = address
    return false
  }

  /** Counts one more flow and returns whether it is within `maxFlowRate`. A tenth of a second's number may arrive at once. */
  #isInRate(): boolean {
    const { maxFlowRate } = this.#context.limits
    if (maxFlowRate === 0) return true
    const now = eventLoop.now()
    const from = Math.max(now, this.#ratedUntil)
    if (from - now > BURST_MS) return false
    this.#ratedUntil = from + 1_000 / maxFlowRate
    return true
  }

  #hasRoom(owner: string, address: string): boolean {
    const { maxFlows, maxAllFlows } = this.#context.limits
    const isFree = () =>
      this.#flows.size + this.#passed.size < maxFlows &&
      this.#context.flows.hasRoom(owner, '', 1, maxAllFlows)
    if (isFree()) return true
    const [oldest] = this.#unanswered
    if (oldest !== undefined && eventLoop.now() - oldest.openedAt >= UNANSWERED_MS) oldest.flow.end()
    else if (!this.#takers.makeRoomFor(networkOf(address))) return false
    return isFree()
  }
}

/** The flows of a tunnel by address and then port. One key for both would need a new string for each datagram. */
class FlowTable {
  readonly #byAddress = new Map<string, Map<number, VisitorFlow>>()
  size = 0

  find(port: number, address: string): VisitorFlow | undefined {
    return this.#byAddress.get(address)?.get(port)
  }

  add(flow: VisitorFlow): void {
    const ports = this.#byAddress.get(flow.address)
    if (ports === undefined) this.#byAddress.set(flow.address, new Map([[flow.port, flow]]))
    else ports.set(flow.port, flow)
    this.size++
  }

  delete({ address, port }: VisitorFlow): void {
    const ports = this.#byAddress.get(address)
    if (ports?.delete(port) !== true) return
    this.size--
    if (ports.size === 0) this.#byAddress.delete(address)
  }

  /** Returns a copy, because flows may end while the caller goes through it. */
  all(): readonly VisitorFlow[] {
    return [...this.#byAddress.values()].flatMap(ports => [...ports.values()])
  }
}

/** One visitor's flow: its datagrams as a socket that is joined to a stream. */
class VisitorFlow {
  readonly port: number
  readonly address: string
  readonly openedAt: number = eventLoop.now()
  readonly join: Join
  readonly flow: Flow
  stream: ByteStream | undefined

  constructor(port: number, address: string, share: FlowShare, send: SendDatagrams, closed: () => void) {
    this.port = port
    this.address = address
    this.join = new Join('CANCELLED', false)
    this.flow = new Flow(address, this.join.socketHandler, share, send, closed)
    this.join.useSocket(this.flow)
  }

  useStream(stream: ByteStream): void {
    this.stream = stream
    this.join.useStream(stream)
  }
}
