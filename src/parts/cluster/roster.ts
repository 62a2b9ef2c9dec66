// The reports of each server of a cluster about itself, for the operator of any of them.

import { objectIn } from '../../directory.ts'
import type { RecentRow } from '../../measures.ts'
import type { ServerReport } from '../../server/contracts/servers.ts'
import type { ServerStats } from '../../server/settings/stats.ts'
import type { SharedTable } from './shared-table.ts'

const REPORT_MS = 10_000
/** The time in milliseconds after which a silent server is forgotten: three reports, so that a lost one means nothing. */
const KEPT_MS = 3 * REPORT_MS

export class Roster {
  readonly #table: SharedTable
  readonly #node: string
  readonly #stats: () => ServerStats
  readonly #recent: () => RecentRow | undefined
  #timer: ReturnType<typeof setInterval> | undefined
  /**
   * Makes the roster. `node`: this server. `recent`: `undefined` while it has no admin listener. `recent`: `undefined` while it
   * has no admin listener.
   */
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

  get count(): number {
    return this.#table.all().length
  }

  reportOf(node: string): ServerReport | undefined {
    // This one knows better than its last report.
    if (node === this.#node) return this.#own()
    const { version, ...counts } = objectIn(this.#table.get(node)) ?? {}
    const { uptimeSeconds, clients, tunnels, requests, pending, recent } = counts
    if (typeof version !== 'string' || !isCount(uptimeSeconds) || !isCount(clients)) return undefined
    if (!isCount(tunnels) || !isCount(requests) || !isCount(pending)) return undefined
    const report = { version, uptimeSeconds, clients, tunnels, requests, pending }
    return isRecent(recent) ? { ...report, recent } : report
  }

  #report(untilMs: number): void {
    this.#table.set(this.#node, JSON.stringify(this.#own()), untilMs)
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

function isRecent(value: unknown): value is RecentRow {
  if (typeof value !== 'object' || value === null) return false
  const { seconds, requests, errors, bytesIn, bytesOut, durations } = value as Record<string, unknown>
  return (
    [seconds, requests, errors, bytesIn, bytesOut].every(isCount) &&
    Array.isArray(durations) &&
    durations.every(isCount)
  )
}
