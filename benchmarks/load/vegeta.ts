// vegeta: open loop at a fixed rate, Go. Built by `peers/install.ts`.

import { finish } from '../measure/children.ts'
import { percentile } from '../measure/samples.ts'
import { binary, command, scratch } from '../peers/binary.ts'
import type { Endpoint } from '../peers/peer.ts'
import type { LoadResult, OpenLoad } from './load.ts'

export function hasVegeta(): boolean {
  return binary('vegeta') !== null
}

export async function vegeta(endpoint: Endpoint, load: OpenLoad): Promise<LoadResult> {
  const headers = Object.entries({ ...endpoint.headers, host: endpoint.hostHeader })
  const target = `GET http://${endpoint.host}:${endpoint.port}${load.path}\n`
  const stdin =
    target + headers.map(([name, value]) => `${name === 'host' ? 'Host' : name}: ${value}\n`).join('')
  const file = scratch('vegeta')
  try {
    const flags = `attack -format=http -rate=${load.rate} -duration=${load.seconds}s -timeout=10s -keepalive=true -output`
    const { stderr, cpuSeconds } = await finish(command('vegeta', flags, file.path('run')), {
      stdin,
      timeoutMs: (load.seconds + 30) * 1000,
    })
    // Decoded only afterwards: it would take processor time from what is measured.
    const { stdout } = await finish(command('vegeta', 'encode -to=csv', file.path('run')))
    if (stdout === '') throw new Error(`vegeta: ${stderr || 'nothing printed'}`)
    return report(stdout, load, cpuSeconds)
  } finally {
    file.remove()
  }
}

function report(csv: string, load: OpenLoad, cpuSeconds: number): LoadResult {
  const rows = csv.trim().split('\n')
  const times = new Float64Array(rows.length)
  let errors = 0
  let bytes = 0
  for (const [i, row] of rows.entries()) {
    // Columns: sent at (ns), status, latency (ns), bytes out, bytes in, …
    const [, status, latency, , read] = row.split(',', 5)
    times[i] = Number(latency) / 1e6
    bytes += Number(read)
    if (status !== '200') errors++
  }
  times.sort()
  const mean = times.reduce((sum, time) => sum + time, 0) / times.length
  const at = (percent: number): number => percentile(times, percent)
  return {
    tool: 'vegeta',
    requests: rows.length,
    errors,
    seconds: load.seconds,
    bytes,
    latency: { mean, p50: at(50), p90: at(90), p95: at(95), p99: at(99), p999: at(99.9), max: at(100) },
    cpuSeconds,
  }
}
