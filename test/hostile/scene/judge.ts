// What the honest visitors saw while an attack ran, and whether that is harm.

import { type Attack, type Bounds, DEFAULT_BOUNDS, type Evidence } from './attack.ts'
import type { Report } from './visitors-process.ts'

/** Figures of one attack: a row of the table. */
export interface Finding {
  readonly name: string
  readonly does: string
  readonly requests: number
  readonly wrong: number
  readonly failed: number
  /** In ms. `direct`: the same visitors asking the app itself at the same time, so what the busy machine costs. */
  readonly p50: number
  readonly p99: number
  readonly max: number
  readonly directP99: number
  readonly server: Use
  readonly client: Use
  readonly tally: Readonly<Record<string, number>>
  readonly told: Readonly<Record<string, number>>
  readonly serverCores: number
  /** Why it was harm; empty: it was none. */
  readonly harms: readonly string[]
  /** Honest answers were late, and that is all. */
  readonly isOnlyLate: boolean
}

/** MB and open descriptors: before, at the peak, and when the attack was over. */
export interface Use {
  readonly mb: readonly [before: number, peak: number, after: number]
  readonly files: readonly [before: number, peak: number, after: number]
}

export interface Seen {
  readonly requests: number
  readonly wrong: number
  readonly failed: Readonly<Record<string, number>>
  readonly latencies: readonly number[]
  readonly direct: readonly number[]
}

/** Adds reports up. Requests that wait at the end count with the age that they have reached. */
export function addUp(reports: readonly Report[]): Seen {
  const failed: Record<string, number> = {}
  for (const report of reports) {
    for (const [reason, count] of Object.entries(report.failed))
      failed[reason] = (failed[reason] ?? 0) + count
  }
  return {
    requests: reports.reduce((sum, { right, wrong }) => sum + right + wrong, total(failed)),
    wrong: reports.reduce((sum, { wrong }) => sum + wrong, 0),
    failed,
    latencies: [...reports.flatMap(({ latencies }) => latencies), ...(reports.at(-1)?.waiting ?? [])],
    direct: reports.flatMap(({ direct }) => direct),
  }
}

export function percentile(values: readonly number[], percent: number): number {
  const sorted = values.toSorted((one, other) => one - other)
  return sorted[Math.min(sorted.length - 1, Math.floor((sorted.length * percent) / 100))] ?? 0
}

export function total(counts: Readonly<Record<string, number>>): number {
  return Object.values(counts).reduce((sum, count) => sum + count, 0)
}

export interface Course {
  readonly during: Seen
  /** The last second of the time that a server has to recover. */
  readonly afterwards: Seen
  readonly server: Use
  readonly client: Use
  readonly hasServerDied: boolean
  readonly hasClientDied: boolean
}

/** Several attacks of a quick run share the processor, and what it has not yet worked off is memory. */
const QUICK_MEMORY = 3

export function boundsOf(
  attack: Attack,
  { p99Ms, isQuick }: { readonly p99Ms: number; readonly isQuick: boolean },
): Bounds {
  const bounds: Bounds = { ...DEFAULT_BOUNDS, p99Ms, ...attack.bounds }
  if (!isQuick) return bounds
  return {
    ...bounds,
    p99Ms: Math.max(p99Ms, bounds.p99Ms),
    serverMb: bounds.serverMb * QUICK_MEMORY,
    clientMb: bounds.clientMb * QUICK_MEMORY,
  }
}

export function judge(attack: Attack, bounds: Bounds, course: Course, evidence: Evidence): Finding {
  const { during, afterwards, server, client } = course
  const p99 = percentile(during.latencies, 99)
  const directP99 = percentile(during.direct, 99)
  const failed = total(during.failed)
  const harms: string[] = []
  if (course.hasServerDied) harms.push('the server process ended')
  if (course.hasClientDied) harms.push('the client process ended')
  if (during.wrong + afterwards.wrong > 0) harms.push(`${during.wrong + afterwards.wrong} wrong answers`)
  if (failed > bounds.failures) harms.push(`${failed} failed: ${most(during.failed)}`)
  const isLate = p99 > bounds.p99Ms + directP99
  if (isLate) {
    harms.push(`p99 ${Math.round(p99)} ms, above ${bounds.p99Ms} and the app's own ${Math.round(directP99)}`)
  }
  if (total(afterwards.failed) > 0) {
    harms.push(`did not recover: ${most(afterwards.failed)}`)
  }
  for (const [which, use, most] of [
    ['server', server, bounds.serverMb],
    ['client', client, bounds.clientMb],
  ] as const) {
    const [before, peak] = use.mb
    if (peak - before > most) harms.push(`${which} grew by ${Math.round(peak - before)} MB, above ${most}`)
    const [filesBefore, , filesAfter] = use.files
    if (filesAfter - filesBefore > bounds.keptFiles)
      harms.push(`${which} keeps ${filesAfter - filesBefore} descriptors`)
  }
  harms.push(...(attack.judge?.(evidence) ?? []))
  return {
    name: attack.name,
    does: attack.does,
    requests: during.requests,
    wrong: during.wrong,
    failed,
    p50: percentile(during.latencies, 50),
    p99,
    max: percentile(during.latencies, 100),
    directP99,
    server,
    client,
    tally: evidence.tally,
    told: evidence.told,
    serverCores: evidence.serverCores,
    harms,
    isOnlyLate: isLate && harms.length === 1,
  }
}

/** The most frequent reason, and how many others there were. */
function most(failed: Readonly<Record<string, number>>): string {
  const [first, ...others] = Object.entries(failed).toSorted(([, one], [, other]) => other - one)
  if (first === undefined) return ''
  return `${first[1]}× ${first[0]}${others.length > 0 ? ` and ${others.length} other reasons` : ''}`
}
