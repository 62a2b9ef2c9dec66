// Resident memory over time, and how fast it grows.

import { interrupted } from './children.ts'
import { type Processes, residentBytes } from './proc.ts'

export interface MemorySamples {
  readonly server: readonly (readonly [number, number])[]
  readonly client: readonly (readonly [number, number])[]
}

/** Samples both ends until `work` is done. Seconds and megabytes. */
export async function sampleWhile(
  { server, client }: Processes,
  everyMs: number,
  work: () => Promise<void>,
): Promise<MemorySamples> {
  const began = performance.now()
  const samples = { server: [] as [number, number][], client: [] as [number, number][] }
  const take = (): void => {
    const at = Math.round((performance.now() - began) / 100) / 10
    samples.server.push([at, residentBytes(server) / 1e6])
    samples.client.push([at, residentBytes(client) / 1e6])
  }
  take()
  const timer = setInterval(take, everyMs)
  try {
    await work()
  } catch (error) {
    if (!interrupted.aborted) throw error
  } finally {
    clearInterval(timer)
    take()
  }
  return samples
}

/** Least-squares slope of the second half, per hour: the first half is warming up. */
export function growthPerHour(points: readonly (readonly [number, number])[]): number {
  const half = points.slice(points.length >> 1)
  const mean = (pick: 0 | 1): number => half.reduce((sum, point) => sum + point[pick], 0) / half.length
  const [meanX, meanY] = [mean(0), mean(1)]
  const above = half.reduce((sum, [x, y]) => sum + (x - meanX) * (y - meanY), 0)
  const below = half.reduce((sum, [x]) => sum + (x - meanX) ** 2, 0)
  return below === 0 ? 0 : (above / below) * 3600
}
