// vegeta: open loop at a fixed rate, Go. Built by `peers/install.ts`.

import { finish } from '../measure/children.ts'
import { percentile } from '../measure/samples.ts'
import { binary, need } from '../peers/binary.ts'
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
  const command = [
    need('vegeta'),
    'attack',
    '-format=http',
    `-rate=${load.rate}`,
    `-duration=${load.seconds}s`,
  ]
  const shell = `${command.join(' ')} -timeout=10s -keepalive=true | ${need('vegeta')} encode -to=csv`
  const { stdout, stderr, cpuSeconds } = await finish(['sh', '-c', shell], {
    stdin,
    timeoutMs: (load.seconds + 30) * 1000,
  })
  const rows = stdout.split('\n').filter(Boolean)
  if (rows.length === 0) throw new Error(`vegeta: ${stderr || 'nothing printed'}`)
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
