// wrk: closed loop, C, the least processor time per request of all generators here.

import { join } from 'node:path'
import { finish } from '../measure/children.ts'
import type { Endpoint } from '../peers/peer.ts'
import type { ClosedLoad, Latency, LoadResult } from './load.ts'

interface Report {
  readonly requests: number
  readonly bytes: number
  readonly seconds: number
  readonly errors: number
  readonly latency: Latency
}

export async function wrk(endpoint: Endpoint, load: ClosedLoad): Promise<LoadResult> {
  const headers = {
    ...endpoint.headers,
    // Written `Host`: wrk adds a second one when it does not find exactly that.
    Host: endpoint.hostHeader,
    ...(load.reconnect && { connection: 'close' }),
  }
  const seconds = Math.round(load.seconds)
  const { stdout, stderr, cpuSeconds } = await finish(
    [
      ...`wrk -t1 -c${load.connections} -d${seconds}s --timeout 10s -s`.split(' '),
      join(import.meta.dir, 'wrk.lua'),
      ...Object.entries(headers).flatMap(([name, value]) => ['-H', `${name}: ${value}`]),
      `http://${endpoint.host}:${endpoint.port}${load.path}`,
    ],
    { timeoutMs: (load.seconds + 20) * 1000 },
  )
  const line = /^REPORT (.*)$/m.exec(stdout)?.[1]
  if (!line) throw new Error(`wrk: ${stderr || stdout || 'nothing printed'}`)
  // Printed by wrk.lua beside this file.
  const report = JSON.parse(line) as Report
  return { tool: 'wrk', cpuSeconds, ...report }
}
