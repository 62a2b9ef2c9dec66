// Contract: what can be asked of a load generator, and what it reports. `run` picks the tool.

import type { Endpoint } from '../peers/peer.ts'
import { curl } from './curl.ts'
import { own } from './own.ts'
import { hasVegeta, vegeta } from './vegeta.ts'
import { wrk } from './wrk.ts'

/** Each connection sends the next request when its answer is complete. */
export interface ClosedLoad {
  readonly kind: 'closed'
  readonly path: string
  readonly connections: number
  readonly seconds: number
  /** A new connection for every request. */
  readonly reconnect?: boolean
}

/** Requests leave on a schedule, whether or not answers come: waiting shows as latency, not as fewer requests. */
export interface OpenLoad {
  readonly kind: 'open'
  readonly path: string
  readonly rate: number
  readonly seconds: number
}

/** Whole bodies one after the other (or several at once) until the time is up; at least `least` of them. */
export interface BulkLoad {
  readonly kind: 'down' | 'up'
  readonly path: string
  readonly bytes: number
  readonly parallel: number
  readonly seconds: number
}

/** Small messages to an echo and back, one at a time on one connection. */
export interface TripLoad {
  readonly kind: 'trips'
  readonly bytes: number
  readonly trips: number
  /** Round trips before counting begins. */
  readonly warmup: number
  readonly seconds: number
}

export type Load = ClosedLoad | OpenLoad | BulkLoad | TripLoad

/** Milliseconds. */
export interface Latency {
  readonly mean: number
  readonly p50: number
  readonly p90: number
  readonly p95: number
  readonly p99: number
  readonly p999: number
  readonly max: number
}

export interface LoadResult {
  readonly tool: string
  readonly requests: number
  readonly errors: number
  readonly seconds: number
  readonly bytes: number
  readonly latency: Latency | null
  /** Processor time of the generator itself. */
  readonly cpuSeconds: number
}

export type LoadTool = 'wrk' | 'vegeta' | 'curl' | 'own'

/** The fastest tool that is here: a C or Go program where one is installed, ours otherwise. wrk counts whole seconds. */
export function toolFor(load: Load): LoadTool {
  if (load.kind === 'closed') return load.seconds >= 1 && Bun.which('wrk') ? 'wrk' : 'own'
  if (load.kind === 'open') return hasVegeta() ? 'vegeta' : 'own'
  return load.kind === 'down' && Bun.which('curl') ? 'curl' : 'own'
}

export function run(endpoint: Endpoint, load: Load, tool: LoadTool = toolFor(load)): Promise<LoadResult> {
  if (tool === 'wrk' && load.kind === 'closed') return wrk(endpoint, load)
  if (tool === 'vegeta' && load.kind === 'open') return vegeta(endpoint, load)
  if (tool === 'curl' && load.kind === 'down') return curl(endpoint, load)
  return own(endpoint, load)
}
