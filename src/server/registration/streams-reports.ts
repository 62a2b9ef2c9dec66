// The reports for a client on the streams wire: requests and raw visitors of its tunnels, one by one or by their number.

import type { ExchangeCounts } from '../../accelerator.ts'
import type { ErrorCode } from '../../errors.ts'
import type { Session } from '../../session/session.ts'
import type { Endpoint } from '../../socket.ts'
import { encodeControl } from '../../wire/control.ts'
import type { Asked, AskedBy, ClientReports, RawEnd } from '../contracts/clients.ts'
import type { StreamsServer } from '../contracts/streams-context.ts'
import { isFailure, Reports } from '../routing/reports.ts'
import type { Tunnel } from '../tunnels/tunnel.ts'

/** The mark of a request that is counted, and not reported by itself. */
const COUNTED = -1

/** Reports may take this much of `maxCarrierBacklogBytes`: the rest is for what has to reach the client. */
const REPORTS_PART = 1 / 4

/** The minimum wait in milliseconds that is worth a report: a shorter one is the way through the server. */
const MIN_WAIT_MS = 1

export class StreamsReports implements ClientReports {
  readonly #session: Session
  readonly #server: StreamsServer
  /** The numbers of its tunnels: asked for each report, and a client may have thousands. */
  readonly #numbers = new Map<Tunnel, number>()
  readonly #reports: Reports
  isWatching = false
  reportRate = 0
  #nextReport = 1

  constructor(session: Session, server: StreamsServer) {
    this.#session = session
    this.#server = server
    this.#reports = new Reports(
      server.deadlines,
      () => this.reportRate,
      counts => this.#send({ type: 'requests', ...counts }),
    )
  }

  /** The client wants reports, or wants none. `rate`: see `reportRate`. `false`: it said so before. */
  watch(isWatching: boolean, rate: number): boolean {
    if (isWatching === this.isWatching && rate === this.reportRate) return false
    const { deadlines } = this.#server
    this.#reports.flush()
    this.isWatching = isWatching
    this.reportRate = rate
    if (isWatching && rate > 0) deadlines.watch(this.#reports)
    else deadlines.forget(this.#reports)
    return true
  }

  add(tunnel: Tunnel, number: number): void {
    this.#numbers.set(tunnel, number)
  }

  /** Forgets a tunnel that the client has no longer, or not under this number. */
  remove(tunnel: Tunnel, number: number): void {
    if (this.#numbers.get(tunnel) === number) this.#numbers.delete(tunnel)
  }

  /** Sends what is counted and not sent yet. */
  flush(): void {
    this.#reports.flush()
  }

  close(): void {
    this.#server.deadlines.forget(this.#reports)
    this.#numbers.clear()
  }

  // ── ClientReports ──────────────────────────────────────────────────────────────────────────────────────────

  get isBehind(): boolean {
    return this.#session.backlogBytes > REPORTS_PART * this.#server.limits.maxCarrierBacklogBytes
  }

  begun(tunnel: Tunnel, { host, method, target }: Asked, by?: AskedBy): number {
    if (!this.isWatching) return 0
    // A client that reads nothing must not be cut because visitors ask much.
    if (this.isBehind && this.reportRate === 0) return 0
    if (!this.#reports.take() || this.isBehind) {
      this.#reports.began()
      return COUNTED
    }
    const id = this.#nextReport++
    this.#send({
      type: 'request',
      id,
      tunnel: this.#numberOf(tunnel),
      ...(tunnel.isWildcard && { host }),
      method,
      path: target,
      ...(by !== undefined && by.address !== '' && { visitor: by.address }),
      ...(by !== undefined && by.waitedMs >= MIN_WAIT_MS && { waitedMs: by.waitedMs }),
    })
    return id
  }

  counted(counts: ExchangeCounts): void {
    if (this.isWatching && this.reportRate > 0) this.#reports.counted(counts)
  }

  switched(tunnel: Tunnel, id: number): void {
    if (this.isWatching && id > 0) this.#send({ type: 'switched', id, tunnel: this.#numberOf(tunnel) })
  }

  finished(
    tunnel: Tunnel,
    id: number,
    status: number,
    durationMs: number,
    bytes: number,
    error?: ErrorCode,
    reason?: string,
  ): void {
    if (!this.isWatching || id === 0) return
    if (id === COUNTED) return this.#reports.ended(isFailure(status, error), bytes)
    this.#send({
      type: 'response',
      id,
      tunnel: this.#numberOf(tunnel),
      status,
      durationMs,
      bytes,
      ...(error !== undefined && { error }),
      ...(reason !== undefined && { reason }),
    })
  }

  rawBegan(tunnel: Tunnel, source: Endpoint): number {
    if (!this.isWatching) return 0
    const id = this.#nextReport++
    const { address: remoteAddress, port: remotePort } = source
    this.#send({
      type: 'visitor-connected',
      id,
      tunnel: this.#numberOf(tunnel),
      remoteAddress,
      remotePort,
    })
    return id
  }

  rawEnded(tunnel: Tunnel, id: number, end: RawEnd): void {
    if (!this.isWatching || id === 0) return
    this.#send({ type: 'visitor-disconnected', id, tunnel: this.#numberOf(tunnel), ...end })
  }

  #numberOf(tunnel: Tunnel): number {
    return this.#numbers.get(tunnel) ?? 0
  }

  #send(message: Parameters<typeof encodeControl>[0]): void {
    this.#session.sendControl(encodeControl(message))
  }
}
