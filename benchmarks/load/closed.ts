// Closed loop: every connection has one request under way, always; with `reconnect` a new connection for each.

import type { Endpoint } from '../peers/peer.ts'
import { Latencies } from './histogram.ts'
import type { ClosedLoad, LoadResult } from './load.ts'
import { requestBytes, Visitor } from './visitor.ts'

export async function closedLoop(
  endpoint: Endpoint,
  load: ClosedLoad,
): Promise<Omit<LoadResult, 'cpuSeconds'>> {
  const request = requestBytes(endpoint, 'GET', load.path, load.reconnect ? ['connection: close'] : [])
  const latencies = new Latencies()
  const began = performance.now()
  const end = began + load.seconds * 1000
  let [requests, errors, bytes] = [0, 0, 0]

  const one = async (): Promise<void> => {
    let visitor = new Visitor(endpoint)
    while (performance.now() < end) {
      const sent = performance.now()
      if (!visitor.connected) {
        visitor = new Visitor(endpoint)
        await visitor.connect()
      }
      const answer = await new Promise<Parameters<Visitor['onAnswer']>[0]>(resolve => {
        visitor.onAnswer = resolve
        visitor.send(request)
      })
      if (answer?.status === 200) {
        requests++
        bytes += answer.bytes
        latencies.add(performance.now() - sent)
      } else errors++
      if (load.reconnect || !answer || answer.closes) visitor.close()
    }
    visitor.close()
  }
  await Promise.all(Array.from({ length: load.connections }, one))
  const seconds = (performance.now() - began) / 1000
  return { tool: 'own', requests, errors, seconds, bytes, latency: latencies.summary() }
}
