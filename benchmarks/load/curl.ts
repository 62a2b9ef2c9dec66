// curl: large downloads. One process for all of them, so that starting it costs nothing that is measured.

import { finish } from '../measure/children.ts'
import type { Endpoint } from '../peers/peer.ts'
import type { BulkLoad, LoadResult } from './load.ts'

/** Downloads of one call: enough to see a rate, few enough to end soon after the time is up. */
const BATCH_BYTES = 400_000_000

export async function curl(endpoint: Endpoint, load: BulkLoad): Promise<LoadResult> {
  const url = `http://${endpoint.host}:${endpoint.port}${load.path}`
  const headers = Object.entries({ ...endpoint.headers, host: endpoint.hostHeader })
  const batch = load.parallel > 1 ? load.parallel : Math.max(1, Math.round(BATCH_BYTES / load.bytes / 2))
  let [requests, errors, seconds, bytes, cpuSeconds] = [0, 0, 0, 0, 0]
  while (seconds < load.seconds) {
    const {
      stdout,
      stderr,
      cpuSeconds: used,
    } = await finish(
      [
        'curl',
        '-sS',
        '--max-time',
        '60',
        '-w',
        '%{http_code} %{size_download} %{time_total}\\n',
        ...(load.parallel > 1 ? ['-Z', '--parallel-immediate', '--parallel-max', String(load.parallel)] : []),
        ...headers.flatMap(([name, value]) => ['-H', `${name}: ${value}`]),
        ...Array.from({ length: batch }, () => ['-o', '/dev/null', url]).flat(),
      ],
      { timeoutMs: 90_000 },
    )
    const transfers = stdout
      .trim()
      .split('\n')
      .map(line => line.split(' ').map(Number))
    const times = transfers.map(([, , time = 0]) => time)
    const complete = transfers.filter(([code, size]) => code === 200 && size === load.bytes).length
    requests += complete
    errors += batch - complete
    bytes += complete * load.bytes
    // All of a parallel batch begin together; the slowest ends it. A serial one takes the sum.
    seconds += load.parallel > 1 ? Math.max(...times) : times.reduce((sum, time) => sum + time, 0)
    cpuSeconds += used
    if (complete === 0) throw new Error(`curl: ${stderr || stdout || 'nothing came'}`)
  }
  return { tool: 'curl', requests, errors, seconds, bytes, latency: null, cpuSeconds }
}
