// One load on one tunnel, with the processor time that each side spent on it, and how busy everybody else was.

import type { LoadResult } from '../load/load.ts'
import type { Tunnel } from '../peers/peer.ts'
import { cpuSeconds, forgetPeak, machineBusySeconds, peakBytes } from './proc.ts'

export type Observed = Readonly<Record<string, number>>

export async function observe(
  tunnel: Tunnel,
  originPids: readonly number[],
  load: () => Promise<LoadResult>,
): Promise<Observed> {
  const { server, client } = tunnel.processes
  const pids = [...server, ...client]
  forgetPeak(pids)
  const [began, busyBefore, selfBefore] = [performance.now(), machineBusySeconds(), selfSeconds()]
  const [serverBefore, clientBefore, originBefore] = [server, client, originPids].map(cpuSeconds)
  const result = await load()
  const seconds = (performance.now() - began) / 1000
  const serverCpu = cpuSeconds(server) - serverBefore!
  const clientCpu = cpuSeconds(client) - clientBefore!
  const originCpu = cpuSeconds(originPids) - originBefore!
  const known = serverCpu + clientCpu + originCpu + result.cpuSeconds + selfSeconds() - selfBefore
  const per100k = 100_000 / Math.max(1, result.requests)
  const gigabytes = Math.max(1, result.bytes) / 1e9
  const { latency } = result
  return {
    rps: result.requests / result.seconds,
    mbps: result.bytes / 1e6 / result.seconds,
    errors: result.errors,
    requests: result.requests,
    cpu100k: (serverCpu + clientCpu) * per100k,
    cpuServer100k: serverCpu * per100k,
    cpuClient100k: clientCpu * per100k,
    cpuPerGb: (serverCpu + clientCpu) / gigabytes,
    peakMb: peakBytes(pids) / 1e6,
    loadCores: result.cpuSeconds / seconds,
    foreignCores: Math.max(0, (machineBusySeconds() - busyBefore - known) / seconds),
    ...(latency && {
      mean: latency.mean,
      p50: latency.p50,
      p90: latency.p90,
      p95: latency.p95,
      p99: latency.p99,
      p999: latency.p999,
    }),
  }
}

function selfSeconds(): number {
  const used = process.cpuUsage()
  return (used.user + used.system) / 1e6
}
