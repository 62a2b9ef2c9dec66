// The public port of a UDP tunnel: the datagrams of each visitor's address and port are a flow, with a stream of its own.

import { type ErrorCode, TunnelError } from '../../errors.ts'
import { eventLoop } from '../../event-loop.ts'
import { Flow, type FlowShare } from '../../flow.ts'
import { Join } from '../../join.ts'
import type { Stream } from '../../session/stream.ts'
import { type BoundPort, bindBun } from '../../sockets/bun-datagrams.ts'
import type { SendDatagrams } from '../../wire/datagrams.ts'
import type { ServerLimits } from '../options.ts'
import type { PortFront, Tunnel } from '../tunnels.ts'

/** What a UDP front needs of its server. */
export interface UdpFrontHost {
  /** Address to listen on. */
  readonly hostname: string
  readonly limits: ServerLimits
  /** Flows of all tunnels now. */
  readonly flows: { count: number }
  /** Datagrams of visitors were dropped. */
  dropped(tunnel: Tunnel, count: number): void
  /** A flow is over: what its visitor sent, and was sent. */
  ended(bytesIn: number, bytesOut: number): void
  /** Something threw that should not have. */
  failed(error: Error): void
}

/**
 * When there is room for no more flows, one that the origin never answered gives way after this long: addresses made up
 * by somebody never get an answer that is theirs, and visitors who had one stay.
 */
const UNANSWERED_MS = 1_000
/** So much of `maxFlowRate` may come at once. */
const BURST_MS = 100

/** Listens for a tunnel's visitors. Rejects with `PORT_TAKEN` or `PORT_NOT_ALLOWED`. */
export async function listenUdp(tunnel: Tunnel, host: UdpFrontHost): Promise<PortFront> {
  const front = new UdpFront(tunnel, host)
  try {
    await front.bind()
  } catch (cause) {
    const code = cause instanceof Error && 'code' in cause ? cause.code : undefined
    throw new TunnelError(code === 'EACCES' ? 'PORT_NOT_ALLOWED' : 'PORT_TAKEN', undefined, { cause })
  }
  return front
}

class UdpFront implements PortFront {
  readonly #tunnel: Tunnel
  readonly #host: UdpFrontHost
  readonly #share: FlowShare
  readonly #flows = new Map<string, VisitorFlow>()
  /** Those that the origin has not answered, the oldest first. */
  readonly #unanswered = new Set<VisitorFlow>()
  /** Whose datagram was the last: often the next one is its, too. */
  #last: VisitorFlow | undefined
  #port: BoundPort | undefined
  /** When the flows opened so far would all have been due, had they come at `maxFlowRate`. */
  #ratedUntil = 0
  /** No new flows: those that are there go on. */
  #isDraining = false

  constructor(tunnel: Tunnel, host: UdpFrontHost) {
    this.#tunnel = tunnel
    this.#host = host
    this.#share = {
      scheduler: eventLoop,
      idleTimeoutMs: host.limits.flowIdleMs,
      backlogBytes: 0,
      dropped: count => host.dropped(tunnel, count),
    }
  }

  async bind(): Promise<void> {
    this.#port = await bindBun({
      hostname: this.#host.hostname,
      port: this.#tunnel.port,
      received: (datagram, port, address) => this.#received(datagram, port, address),
      drained: () => {
        for (const { flow } of [...this.#flows.values()]) flow.drained()
      },
      failed: error => this.#host.failed(error),
    })
  }

  drain(): void {
    this.#isDraining = true
  }

  /** The answers go out by the same port as the datagrams come in: there is no keeping one without the other. */
  release(): void {
    this.stop('CLIENT_GONE')
  }

  stop(code: ErrorCode): void {
    this.#isDraining = true
    this.#port?.close()
    for (const { join } of [...this.#flows.values()]) join.fail(code)
  }

  #received(datagram: Uint8Array, port: number, address: string): void {
    const last = this.#last
    const found = last?.port === port && last.address === address ? last : this.#find(port, address)
    if (found === undefined) return this.#host.dropped(this.#tunnel, 1)
    this.#last = found
    found.flow.arrived(datagram)
  }

  #find(port: number, address: string): VisitorFlow | undefined {
    return this.#flows.get(`${address} ${port}`) ?? this.#open(port, address)
  }

  /** `undefined`: no client is there, or no room; the datagram is lost. */
  #open(port: number, address: string): VisitorFlow | undefined {
    const { upstream } = this.#tunnel
    if (upstream === undefined || this.#isDraining || !this.#isInRate() || !this.#hasRoom()) return undefined
    const key = `${address} ${port}`
    const visitor: VisitorFlow = new VisitorFlow(
      port,
      address,
      this.#share,
      datagrams => {
        this.#unanswered.delete(visitor)
        return this.#port?.send(datagrams, port, address) ?? datagrams.length
      },
      () => {
        this.#flows.delete(key)
        this.#unanswered.delete(visitor)
        if (this.#last === visitor) this.#last = undefined
        this.#host.flows.count--
        this.#host.ended(visitor.stream?.sentBytes ?? 0, visitor.stream?.deliveredBytes ?? 0)
      },
    )
    this.#flows.set(key, visitor)
    this.#unanswered.add(visitor)
    this.#host.flows.count++
    const stream = upstream.open(visitor.join, undefined)
    if (typeof stream === 'string') {
      visitor.join.fail(stream)
      return undefined
    }
    visitor.useStream(stream)
    return visitor
  }

  /** Whether one more flow keeps to `maxFlowRate`; then it counts. A tenth of a second's may come at once. */
  #isInRate(): boolean {
    const { maxFlowRate } = this.#host.limits
    if (maxFlowRate === 0) return true
    const now = eventLoop.now()
    const from = Math.max(now, this.#ratedUntil)
    if (from - now > BURST_MS) return false
    this.#ratedUntil = from + 1_000 / maxFlowRate
    return true
  }

  #hasRoom(): boolean {
    const { maxFlows, maxAllFlows } = this.#host.limits
    if (this.#flows.size < maxFlows && this.#host.flows.count < maxAllFlows) return true
    const [oldest] = this.#unanswered
    if (oldest === undefined || eventLoop.now() - oldest.openedAt < UNANSWERED_MS) return false
    oldest.flow.end()
    return true
  }
}

/** One visitor: its address, its datagrams as a socket, joined to a stream. */
class VisitorFlow {
  readonly port: number
  readonly address: string
  readonly openedAt: number = eventLoop.now()
  readonly join: Join
  readonly flow: Flow
  stream: Stream | undefined

  constructor(port: number, address: string, share: FlowShare, send: SendDatagrams, closed: () => void) {
    this.port = port
    this.address = address
    this.join = new Join('CANCELLED', false)
    this.flow = new Flow(address, this.join.socketHandler, share, send, closed)
    this.join.useSocket(this.flow)
  }

  useStream(stream: Stream): void {
    this.stream = stream
    this.join.useStream(stream)
  }
}
