// The reports of each server of a cluster, for the operator of any of them.

import { objectIn } from '../../directory.ts'
import { isRecentRow, type RecentRow } from '../../measures.ts'
import type { ServerReport } from '../../server/contracts/servers.ts'
import type { ServerStats } from '../../server/settings/stats.ts'
import type { SharedTable } from './shared-table.ts'

const REPORT_MS = 10_000
/**
 * The time in milliseconds after which a silent server is forgotten: three reports, so that a single lost one does not matter.
 */
const KEPT_MS = 3 * REPORT_MS

export class Roster {
  readonly #table: SharedTable
  readonly #node: string
  readonly #stats: () => ServerStats
  readonly #recent: () => RecentRow | undefined
  #timer: ReturnType<typeof setInterval> | undefined
  /** Makes the roster. `node`: this server. `recent` returns `undefined` while it has no admin listener. */
  constructor(
    table: SharedTable,
    node: string,
    stats: () => ServerStats,
    recent: () => RecentRow | undefined,
  ) {
    this.#table = table
    this.#node = node
    this.#stats = stats
    this.#recent = recent
  }

  begin(): void {
    this.#report()
    this.#timer = setInterval(() => this.#report(), REPORT_MS)
    this.#timer.unref()
  }

  /** Ends the reports: the others forget this server at once. */
  stop(): void {
    if (this.#timer === undefined) return
    clearInterval(this.#timer)
    this.#timer = undefined
    this.#table.end(this.#node)
  }

  get count(): number {
    return this.#table.all().length
  }

  reportOf(node: string): ServerReport | undefined {
    // This server's own state is newer than its last report.
    if (node === this.#node) return this.#own()
    const { version, ...counts } = objectIn(this.#table.get(node)) ?? {}
    const { uptimeSeconds, clients, tunnels, requests, pending, recent } = counts
    if (typeof version !== 'string' || !isCount(uptimeSeconds) || !isCount(clients)) return undefined
    if (!isCount(tunnels) || !isCount(requests) || !isCount(pending)) return undefined
    const report = { version, uptimeSeconds, clients, tunnels, requests, pending }
    return isRecentRow(recent) ? { ...report, recent } : report
  }

  #report(): void {
    this.#table.set(this.#node, JSON.stringify(this.#own()), Date.now() + KEPT_MS)
  }

  #own(): ServerReport {
    const { version, uptimeSeconds, connections, activeSubdomains, requests, pendingResponses } =
      this.#stats()
    const recent = this.#recent()
    return {
      version,
      uptimeSeconds,
      clients: connections,
      tunnels: activeSubdomains,
      requests,
      pending: pendingResponses,
      ...(recent !== undefined && { recent }),
    }
  }
}

const isCount = (value: unknown): value is number => typeof value === 'number'
