// The metrics of a server in the text format of Prometheus. docs/operating/ has alert rules and a dashboard for them.

import { X509Certificate } from 'node:crypto'
import {
  DURATION_BOUNDS_MS,
  DURATION_SUM,
  FIRST_DURATION,
  FIRST_SIZE,
  SIZE_BOUNDS,
  STATUS_CLASSES,
} from '../../measures.ts'
import type { ServerStats } from '../../server/settings/stats.ts'
import { METHODS, type Metrics, type Series } from './metrics.ts'
import { openDescriptors, type ProcessState, processorUs, usedMemory } from './process-state.ts'

export interface ClusterGauges {
  readonly servers: number
  readonly isInTouch: boolean
  readonly inFlight: number
  readonly entries: ReadonlyMap<string, number>
}

/** The values in addition to the metrics. */
export interface Gauges {
  readonly stats: ServerStats
  readonly clients: Readonly<Record<'streams' | 'json', number>>
  readonly streams: number
  readonly bufferedBytes: number
  readonly creditStalls: number
  readonly tunnels: Readonly<Record<string, number>>
  readonly limits: Readonly<Record<string, readonly [used: number, most: number]>>
  readonly certificates: readonly { readonly name: string; readonly notAfterMs: number }[]
  /** The state of the cluster. `undefined` if the server is alone. */
  readonly cluster: ClusterGauges | undefined
  readonly process: ProcessState
  /** The number of dropped lines of the access log. `undefined` without a log. */
  readonly droppedLogLines: number | undefined
}

const CLASSES = ['none', '1xx', '2xx', '3xx', '4xx', '5xx']

export function prometheusText(metrics: Metrics, gauges: Gauges): string {
  const text = new Text()
  writeRequests(text, metrics)
  writeState(text, metrics, gauges)
  if (gauges.cluster !== undefined) writeCluster(text, gauges.cluster)
  writeProcess(text, gauges)
  return text.all
}

function writeRequests(text: Text, metrics: Metrics): void {
  text.family(
    'localtunnels_requests_total',
    'counter',
    'Requests that are over, by tunnel, method and class of the status.',
  )
  eachRow(metrics, (tunnel, method, row) => {
    for (let status = 0; status < STATUS_CLASSES; status++)
      if (row[status]! > 0)
        text.sample(`{tunnel="${tunnel}",method="${method}",status="${CLASSES[status]}"}`, row[status]!)
  })
  text.family(
    'localtunnels_request_duration_seconds',
    'histogram',
    'From the head of a request to the end of its answer.',
  )
  eachSum(metrics, (tunnel, sum) =>
    text.histogram(
      tunnel,
      DURATION_BOUNDS_MS.map(bound => bound / 1_000),
      sum.subarray(FIRST_DURATION, FIRST_SIZE),
      sum[DURATION_SUM]! / 1_000,
    ),
  )
  text.family(
    'localtunnels_response_size_bytes',
    'histogram',
    'Answers as visitors got them, heads included.',
  )
  eachSum(metrics, (tunnel, sum, series) =>
    text.histogram(tunnel, SIZE_BOUNDS, sum.subarray(FIRST_SIZE), series.bytesOut),
  )
  text.family('localtunnels_received_bytes_total', 'counter', 'Bytes of visitors, heads included.')
  for (const [tunnel, { bytesIn }] of metrics.series) text.sample(`{tunnel="${tunnel}"}`, bytesIn)
  text.family('localtunnels_sent_bytes_total', 'counter', 'Bytes to visitors, heads included.')
  for (const [tunnel, { bytesOut }] of metrics.series) text.sample(`{tunnel="${tunnel}"}`, bytesOut)
  text.family(
    'localtunnels_raw_visits_total',
    'counter',
    'TCP and TLS connections of visitors that are over.',
  )
  for (const [tunnel, { rawVisits }] of metrics.series)
    if (rawVisits > 0) text.sample(`{tunnel="${tunnel}"}`, rawVisits)
  text.family(
    'localtunnels_failed_total',
    'counter',
    'Requests and connections that failed or were refused, by the code.',
  )
  for (const [tunnel, { codes }] of metrics.series)
    for (const [code, count] of codes) text.sample(`{tunnel="${tunnel}",code="${code}"}`, count)
  for (const [code, count] of metrics.codes) text.sample(`{tunnel="",code="${code}"}`, count)
  text.family(
    'localtunnels_last_proven_timestamp_seconds',
    'gauge',
    'When the app of a tunnel answered last.',
  )
  for (const [tunnel, { provenAtMs }] of metrics.series)
    if (provenAtMs > 0) text.sample(`{tunnel="${tunnel}"}`, provenAtMs / 1_000)
}

function writeState(text: Text, metrics: Metrics, gauges: Gauges): void {
  const { stats, clients, tunnels } = gauges
  text.family('localtunnels_info', 'gauge', 'The version of the server.')
  text.sample(`{version="${stats.version}"}`, 1)
  text.gauge('localtunnels_uptime_seconds', 'Since the server began.', stats.uptimeSeconds)
  text.family('localtunnels_clients', 'gauge', 'Carriers: clients that are connected, by wire.')
  for (const [wire, count] of Object.entries(clients)) text.sample(`{wire="${wire}"}`, count)
  text.counter('localtunnels_clients_total', 'Clients that ever connected.', stats.totalConnections)
  text.family('localtunnels_tunnels', 'gauge', 'Names and ports that are held, by kind.')
  for (const [kind, count] of Object.entries(tunnels)) text.sample(`{kind="${kind}"}`, count)
  text.gauge('localtunnels_streams', 'Streams that are open, idle ones included.', gauges.streams)
  text.gauge(
    'localtunnels_buffered_bytes',
    'Bytes that wait for readers that are slower than what they read.',
    gauges.bufferedBytes,
  )
  text.counter(
    'localtunnels_credit_stalls_total',
    'Streams to apps that had to wait for credit.',
    gauges.creditStalls,
  )
  text.gauge(
    'localtunnels_requests_pending',
    'Requests that are under way, those in lanes not counted.',
    stats.pendingResponses,
  )
  text.counter(
    'localtunnels_requests_held_total',
    'Requests that waited for a client that was away.',
    metrics.held,
  )
  text.family(
    'localtunnels_inbox_total',
    'counter',
    'Webhooks whose client was away, by what became of them.',
  )
  for (const [outcome, count] of Object.entries(metrics.inbox)) text.sample(`{outcome="${outcome}"}`, count)
  text.counter('localtunnels_requests_retried_total', 'Requests that were sent once more.', metrics.retried)
  text.gauge(
    'localtunnels_raw_visitors',
    'TCP and TLS connections of visitors that are open.',
    stats.rawVisitors,
  )
  text.gauge('localtunnels_udp_flows', 'Visitors of UDP tunnels.', stats.flows)
  text.counter(
    'localtunnels_datagrams_dropped_total',
    'Datagrams of visitors that were dropped.',
    stats.droppedDatagrams,
  )
  text.family('localtunnels_limit_used_ratio', 'gauge', 'How much of a limit is used: 1 is all of it.')
  for (const [limit, [used, most]] of Object.entries(gauges.limits))
    text.sample(`{limit="${limit}"}`, most === 0 ? 0 : used / most)
  text.family(
    'localtunnels_certificate_expiry_timestamp_seconds',
    'gauge',
    'When a certificate of the server ends.',
  )
  for (const { name, notAfterMs } of gauges.certificates) text.sample(`{name="${name}"}`, notAfterMs / 1_000)
  if (gauges.droppedLogLines === undefined) return
  text.counter(
    'localtunnels_access_log_dropped_total',
    'Lines of the access log that were dropped.',
    gauges.droppedLogLines,
  )
}

function writeCluster(text: Text, { servers, isInTouch, inFlight, entries }: ClusterGauges): void {
  text.gauge(
    'localtunnels_cluster_servers',
    'Servers of the cluster that report, this one included.',
    servers,
  )
  text.gauge(
    'localtunnels_cluster_reachable',
    '1: the directory answered the last sign of life.',
    isInTouch ? 1 : 0,
  )
  text.gauge('localtunnels_cluster_requests_pending', 'Requests under way at other servers.', inFlight)
  text.family('localtunnels_cluster_entries', 'gauge', 'What all servers have in memory, by table.')
  for (const [table, count] of entries) text.sample(`{table="${table}"}`, count)
}

function writeProcess(text: Text, { process: state }: Gauges): void {
  text.family('localtunnels_event_loop_delay_seconds', 'summary', 'How late timers came.')
  text.sample('_sum', state.delaySum)
  text.sample('_count', state.delayCount)
  text.gauge(
    'localtunnels_event_loop_delay_max_seconds',
    'The latest since the last look.',
    state.takeWorst(),
  )
  const memory = usedMemory()
  if (memory !== undefined) {
    text.gauge('process_resident_memory_bytes', 'Memory of the process.', memory.rss)
    text.gauge('localtunnels_heap_used_bytes', 'Heap of JavaScript that is in use.', memory.heapUsed)
  }
  text.counter(
    'process_cpu_seconds_total',
    'Time of all processors that the process used.',
    processorUs() / 1_000_000,
  )
  const open = openDescriptors()
  if (open === undefined) return
  text.gauge('process_open_fds', 'Descriptors that are open.', open)
}

function eachRow(metrics: Metrics, use: (tunnel: string, method: string, row: Float64Array) => void): void {
  for (const [tunnel, { byMethod }] of metrics.series)
    for (const [index, row] of byMethod.entries()) if (row !== undefined) use(tunnel, METHODS[index]!, row)
}

/** Calls `use` with the sum of a tunnel's rows for all methods. */
function eachSum(metrics: Metrics, use: (tunnel: string, sum: Float64Array, series: Series) => void): void {
  for (const [tunnel, series] of metrics.series) {
    const rows = series.byMethod.filter(row => row !== undefined)
    const [first, ...rest] = rows
    if (first === undefined) continue
    const sum = first.slice()
    for (const row of rest) for (let index = 0; index < sum.length; index++) sum[index]! += row[index]!
    use(tunnel, sum, series)
  }
}

class Text {
  #lines: string[] = []
  #name = ''

  get all(): string {
    return `${this.#lines.join('\n')}\n`
  }

  gauge(name: string, help: string, value: number): void {
    this.family(name, 'gauge', help)
    this.sample('', value)
  }

  counter(name: string, help: string, value: number): void {
    this.family(name, 'counter', help)
    this.sample('', value)
  }

  family(name: string, type: 'counter' | 'gauge' | 'histogram' | 'summary', help: string): void {
    this.#name = name
    this.#lines.push(`# HELP ${name} ${help}`, `# TYPE ${name} ${type}`)
  }

  /** Adds a sample to the current family. `labels` may begin with a suffix of its name. */
  sample(labels: string, value: number): void {
    this.#lines.push(`${this.#name}${labels} ${value}`)
  }

  histogram(tunnel: string, bounds: readonly number[], counts: Float64Array, sum: number): void {
    let count = 0
    for (const [index, bound] of bounds.entries()) {
      count += counts[index]!
      this.sample(`_bucket{tunnel="${tunnel}",le="${bound}"}`, count)
    }
    count += counts[bounds.length]!
    this.sample(`_bucket{tunnel="${tunnel}",le="+Inf"}`, count)
    this.sample(`_sum{tunnel="${tunnel}"}`, sum)
    this.sample(`_count{tunnel="${tunnel}"}`, count)
  }
}

/** Returns when a PEM certificate expires. `undefined` if it cannot be parsed. */
export function notAfterOf(pem: string): number | undefined {
  try {
    return Date.parse(new X509Certificate(pem).validTo)
  } catch {
    return undefined // the listener has refused it before
  }
}
