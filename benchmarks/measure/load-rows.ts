// Rows that are a load on a tunnel: which requests, how many at a time, and the figures that come out.

import { check, type Exchange, type Load, type LoadResult, run } from '../load/load.ts'
import { ORIGINS } from '../origin/origins.ts'
import type { Peer } from '../peers/peer.ts'
import { cpuSeconds, forgetPeak, peakBytes } from './proc.ts'
import { type Column, column, type Path } from './result.ts'
import type { Figures, Row, Scene } from './rounds.ts'
import { unlessQuick, seconds as usualSeconds } from './suite.ts'

const RPS = column('rps', 'requests', '/s', 'higher')
const MBPS = column('mbps', 'rate', 'MB/s', 'higher')
const P50 = column('p50', 'p50', 'ms', 'lower')
const P90 = column('p90', 'p90', 'ms', 'lower')
const P95 = column('p95', 'p95', 'ms', 'lower')
const P99 = column('p99', 'p99', 'ms', 'lower')
const P999 = column('p999', 'p99.9', 'ms', 'lower')
const MAX = column('max', 'longest', 'ms', 'neither')
const CPU = column('cpu', 'CPU, both ends', 'µs a request', 'lower')
const CPU_GB = column('cpuGb', 'CPU, both ends', 's a GB', 'lower')
const TRANSFER = column('mbps', 'transfer', 'MB/s', 'neither')
const FAILED = column('failed', 'failed', '%', 'neither')
const GENERATOR = column('generator', 'generator', 'cores', 'neither')
const WAITED = column('waited', 'generator waits for a core', '%', 'neither')

export const COLUMNS: Readonly<Record<'rate' | 'bulk' | 'sized' | 'latency' | 'fixed', readonly Column[]>> = {
  rate: [RPS, P50, P90, P95, P99, MAX, CPU, TRANSFER, FAILED, GENERATOR, WAITED],
  bulk: [MBPS, CPU_GB, FAILED, GENERATOR],
  sized: [MBPS, RPS, P95, P99, CPU_GB, FAILED, GENERATOR, WAITED],
  latency: [P50, P90, P95, P99, MAX, CPU, RPS, FAILED, GENERATOR, WAITED],
  fixed: [
    P50,
    P90,
    P95,
    P99,
    P999,
    MAX,
    CPU,
    column('rps', 'achieved', '/s', 'neither'),
    FAILED,
    GENERATOR,
    WAITED,
  ],
}

export interface LoadRow {
  readonly id: string
  readonly title: string
  readonly columns: readonly Column[]
  readonly exchanges: readonly Exchange[] | ((scene: Scene) => readonly Exchange[])
  readonly connections: number
  readonly note?: string
  readonly path?: Path
  readonly more?: Partial<Load>
  /** A new tunnel for each measurement, which nothing warmed up. */
  readonly cold?: true
  readonly excludes?: (peer: Peer) => string | undefined
}

/** A thousand kept connections are measured for 2 s, a hundred requests of each: what a new connection costs has rows of its own. */
const CONNECTIONS_IN_A_SECOND = 500

export function loadRow({ exchanges, connections, more, cold, ...row }: LoadRow): Row {
  const asked = more?.messages?.to ?? (typeof exchanges === 'function' ? undefined : exchanges[0]?.to)
  const origin = ORIGINS.find(name => name === asked)
  const lasts = Math.max(usualSeconds, unlessQuick(connections / CONNECTIONS_IN_A_SECOND, 0))
  const load = (scene: Scene): Load => ({
    exchanges: typeof exchanges === 'function' ? exchanges(scene) : exchanges,
    connections,
    seconds: lasts,
    ...more,
    ...(cold && { warm: 0 }),
  })
  const isOrdinary =
    more?.messages !== undefined ||
    (typeof exchanges === 'object' && exchanges.some(({ method = 'GET' }) => method !== 'GET'))
  return {
    lasts: more?.seconds ?? lasts,
    ...row,
    ...(isOrdinary && row.path === undefined && { path: 'ordinary' }),
    ...(origin && { origin }),
    ...(cold ? { fresh: true } : { check: scene => check(scene.tunnel.endpoints, load(scene)) }),
    take: scene => {
      const one = load(scene)
      return observe(scene, () => run(scene.tunnel.endpoints, one), (one.warm ?? 1) * connections)
    },
  }
}

/** Percentiles of fewer samples are those of single requests. */
const SAMPLES_FOR_P99 = 1_000
const SAMPLES_FOR_P999 = 10_000

/**
 * One load on one tunnel, with the processor time of each side; that holds the exchanges before the clock starts, too,
 * `warmed` of them.
 */
export async function observe(
  { tunnel, origins }: Scene,
  load: () => Promise<LoadResult>,
  warmed = 0,
): Promise<Figures> {
  const { server, client } = tunnel.processes
  const pids = [...server, ...client]
  forgetPeak(pids)
  const began = performance.now()
  const [before, originBefore, selfBefore] = [cpuSeconds(pids), cpuSeconds(origins.pids), selfSeconds()]
  const result = await load()
  const elapsed = (performance.now() - began) / 1000
  const cpu = cpuSeconds(pids) - before
  const { ok, failed, seconds, bytes } = result
  const all = Math.max(1, ok + warmed)
  const allBytes = (bytes / Math.max(1, ok)) * all
  return {
    rps: ok / seconds,
    mbps: bytes / 1e6 / seconds,
    mean: result.mean,
    p50: result.p50,
    p90: result.p90,
    p95: result.p95,
    max: result.max,
    ...(ok >= unlessQuick(SAMPLES_FOR_P99, 1) && { p99: result.p99 }),
    ...(ok >= SAMPLES_FOR_P999 && { p999: result.p999 }),
    ...(pids.length > 0 && { cpu: (cpu / all) * 1e6, cpuGb: cpu / (allBytes / 1e9) }),
    failed: (100 * failed) / Math.max(1, ok + failed),
    peakMb: peakBytes(pids) / 1e6,
    generator: result.cpuSeconds / elapsed,
    waited: (100 * result.waitedSeconds) / result.seconds,
    ownSeconds:
      cpu + cpuSeconds(origins.pids) - originBefore + selfSeconds() - selfBefore + result.cpuSeconds,
  }
}

function selfSeconds(): number {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1e6
}
