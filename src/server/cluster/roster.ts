// What each server of a cluster says of itself, for the operator of any of them.

import type { ServerStats } from '../stats.ts'
import type { SharedTable } from './shared-table.ts'
import { objectIn } from './table-text.ts'

/** What a server was doing when it reported last, at most 10 s ago. */
export interface ServerReport {
  readonly version: string
  readonly uptimeSeconds: number
  readonly clients: number
  /** Names and ports that are held there. */
  readonly tunnels: number
  /** Requests since its start, and those that are under way. */
  readonly requests: number
  readonly pending: number
}

const REPORT_MS = 10_000
/** One that reports no more is forgotten; three reports, so that a lost one means nothing. */
const KEPT_MS = 3 * REPORT_MS

export class Roster {
  readonly #table: SharedTable
  readonly #node: string
  readonly #stats: () => ServerStats
  #timer: ReturnType<typeof setInterval> | undefined

  /** `node`: of this server. */
  constructor(table: SharedTable, node: string, stats: () => ServerStats) {
    this.#table = table
    this.#node = node
    this.#stats = stats
  }

  begin(): void {
    this.#report(Date.now() + KEPT_MS)
    this.#timer = setInterval(() => this.#report(Date.now() + KEPT_MS), REPORT_MS)
    this.#timer.unref()
  }

  /** The others forget it at once. */
  stop(): void {
    if (this.#timer === undefined) return
    clearInterval(this.#timer)
    this.#timer = undefined
    this.#report(Date.now())
  }

  /** How many servers report. */
  get count(): number {
    return this.#table.all().length
  }

  /** `undefined`: it has not reported, or is of a version that does not. */
  reportOf(node: string): ServerReport | undefined {
    // This one knows better than its last report.
    if (node === this.#node) return reportOf(this.#stats())
    const { version, ...counts } = objectIn(this.#table.get(node)) ?? {}
    const { uptimeSeconds, clients, tunnels, requests, pending } = counts
    if (typeof version !== 'string' || !isCount(uptimeSeconds) || !isCount(clients)) return undefined
    if (!isCount(tunnels) || !isCount(requests) || !isCount(pending)) return undefined
    return { version, uptimeSeconds, clients, tunnels, requests, pending }
  }

  #report(untilMs: number): void {
    this.#table.set(this.#node, JSON.stringify(reportOf(this.#stats())), untilMs)
  }
}

function reportOf(stats: ServerStats): ServerReport {
  const { version, uptimeSeconds, connections, activeSubdomains, requests, pendingResponses } = stats
  return {
    version,
    uptimeSeconds,
    clients: connections,
    tunnels: activeSubdomains,
    requests,
    pending: pendingResponses,
  }
}

const isCount = (value: unknown): value is number => typeof value === 'number'
