// The reports for a client on the streams wire: requests and raw visitors of its tunnels, one by one or as counts.

import type { ExchangeCounts } from '../../accelerator.ts'
import type { ErrorCode } from '../../errors.ts'
import type { Session } from '../../session/session.ts'
import type { Endpoint } from '../../socket.ts'
import { encodeControl } from '../../wire/control.ts'
import type { Asked, AskedBy, ClientReports, RawEnd } from '../contracts/clients.ts'
import type { StreamsServer } from '../contracts/streams-context.ts'
import { isFailure, Reports } from '../routing/reports.ts'
import type { Tunnel } from '../tunnels/tunnel.ts'

/** The number that marks a request as counted, without a report of its own. */
const COUNTED = -1

/** The part of `maxCarrierBacklogBytes` that reports may use. The rest is for messages that the client must get. */
const REPORTS_PART = 1 / 4

/** The shortest wait in milliseconds that is reported. Less is the ordinary time in the server. */
const MIN_WAIT_MS = 1

export class StreamsReports implements ClientReports {
  readonly #session: Session
  readonly #server: StreamsServer
  /** The numbers of the client's tunnels. Each report needs one, and a client may have thousands. */
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

  /** Starts or stops reports for the client. `rate`: see `reportRate`. Returns `false` if nothing changes. */
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

  /** Forgets a tunnel that the client lost, or has under another number. */
  remove(tunnel: Tunnel, number: number): void {
    if (this.#numbers.get(tunnel) === number) this.#numbers.delete(tunnel)
  }

  /** Sends the counts that were not sent yet. */
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
    // Reports are dropped for a client that does not read: visitors' requests must not get it cut.
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
