// Joins the reports of several workers into those of one server.

import type { ServerStats } from '../../server/settings/stats.ts'
import { addedRecent } from './recent.ts'
import type { TunnelRow } from './rows.ts'

export interface ByWorker<Value> {
  readonly number: number
  readonly value: Value
}

const BEST_FIRST: readonly TunnelRow['state'][] = ['up', 'unhealthy', 'reconnecting']

/** Returns one row for each name. Members of a pool may be at several workers. */
export function mergedTunnels(rows: readonly TunnelRow[]): readonly TunnelRow[] {
  const byName = Map.groupBy(rows, ({ name }) => name)
  return [...byName.values()].map(([first, ...rest]) => rest.reduce(mergedTunnel, first!))
}

function mergedTunnel(one: TunnelRow, other: TunnelRow): TunnelRow {
  const lastProvenAt = latest(one.lastProvenAt, other.lastProvenAt)
  const lastProbe = (one.lastProbe?.at ?? '') > (other.lastProbe?.at ?? '') ? one.lastProbe : other.lastProbe
  return {
    ...one,
    state: BEST_FIRST.find(state => state === one.state || state === other.state)!,
    clients: [...one.clients, ...other.clients],
    inFlight: one.inFlight + other.inFlight,
    requests: one.requests + other.requests,
    errors: one.errors + other.errors,
    bytesIn: one.bytesIn + other.bytesIn,
    bytesOut: one.bytesOut + other.bytesOut,
    recent: addedRecent([one.recent, other.recent]),
    codes: addedCodes([one.codes, other.codes]),
    ...(lastProvenAt !== undefined && { lastProvenAt }),
    ...(lastProbe !== undefined && { lastProbe }),
  }
}

export function addedCodes(all: readonly Readonly<Record<string, number>>[]): Record<string, number> {
  const sums: Record<string, number> = {}
  for (const codes of all)
    for (const [code, count] of Object.entries(codes)) sums[code] = (sums[code] ?? 0) + count
  return sums
}

/** Returns the later time. ISO times of one form sort as texts. */
function latest(one: string | undefined, other: string | undefined): string | undefined {
  return (one ?? '') > (other ?? '') ? one : other
}

/** Adds the counts. The age is that of the oldest worker. */
export function mergedStats([first, ...rest]: readonly ServerStats[]): ServerStats {
  return rest.reduce(mergedStat, first!)
}

function mergedStat(one: ServerStats, other: ServerStats): ServerStats {
  const oldest = one.uptimeSeconds >= other.uptimeSeconds ? one : other
  return {
    ...oldest,
    status: one.status === 'operational' ? one.status : other.status,
    connections: one.connections + other.connections,
    totalConnections: one.totalConnections + other.totalConnections,
    activeSubdomains: one.activeSubdomains + other.activeSubdomains,
    rawVisitors: one.rawVisitors + other.rawVisitors,
    totalRawVisitors: one.totalRawVisitors + other.totalRawVisitors,
    flows: one.flows + other.flows,
    droppedDatagrams: one.droppedDatagrams + other.droppedDatagrams,
    pendingResponses: one.pendingResponses + other.pendingResponses,
    requests: one.requests + other.requests,
    bytesIn: one.bytesIn + other.bytesIn,
    bytesOut: one.bytesOut + other.bytesOut,
  }
}

/**
 * Returns the Prometheus text of all workers, with a label `worker` on each sample. Samples of one family are next to
 * each other, as the format requires.
 */
export function mergedMetrics(texts: readonly ByWorker<string>[]): string {
  const families = new Map<string, { readonly head: string[]; readonly samples: string[] }>()
  for (const { number, value } of texts) {
    let family = { head: [] as string[], samples: [] as string[] }
    for (const line of value.split('\n')) {
      if (line.startsWith('# HELP ')) {
        const name = line.slice(7, line.indexOf(' ', 7))
        family = families.get(name) ?? { head: [], samples: [] }
        families.set(name, family)
        if (family.head.length === 0) family.head.push(line)
      } else if (line.startsWith('# TYPE ')) {
        if (family.head.length === 1) family.head.push(line)
      } else if (line !== '') family.samples.push(labelled(line, number))
    }
  }
  const lines = [...families.values()].flatMap(({ head, samples }) => [...head, ...samples])
  return `${lines.join('\n')}\n`
}

/** Turns `name{a="b"} 1` into `name{worker="2",a="b"} 1`. */
function labelled(line: string, number: number): string {
  const [, name = '', labels, value = ''] = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)$/.exec(line) ?? []
  const label = `worker="${number}"`
  return `${name}{${labels === undefined || labels === '' ? label : `${label},${labels}`}} ${value}`
}
