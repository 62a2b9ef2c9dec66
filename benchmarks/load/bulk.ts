// Large bodies, one or several at once: whole transfers per second of wall clock.

import type { Endpoint } from '../peers/peer.ts'
import type { BulkLoad, LoadResult } from './load.ts'
import { type Answer, requestBytes, Visitor } from './visitor.ts'

export function download(endpoint: Endpoint, load: BulkLoad): Promise<Omit<LoadResult, 'cpuSeconds'>> {
  const request = requestBytes(endpoint, 'GET', load.path)
  return transfer(endpoint, load, request, answer => answer?.status === 200 && answer.bytes === load.bytes)
}

export function upload(endpoint: Endpoint, load: BulkLoad): Promise<Omit<LoadResult, 'cpuSeconds'>> {
  const head = requestBytes(endpoint, 'POST', load.path, [`content-length: ${load.bytes}`])
  const request = Buffer.concat([head, Buffer.alloc(load.bytes, 'x')])
  return transfer(endpoint, load, request, answer => answer?.status === 200)
}

async function transfer(
  endpoint: Endpoint,
  load: BulkLoad,
  request: Uint8Array,
  isWhole: (answer: Answer | null) => boolean,
): Promise<Omit<LoadResult, 'cpuSeconds'>> {
  let [requests, errors, seconds] = [0, 0, 0]
  let visitors: Visitor[] = []
  // The first round warms both ends up and is not counted.
  let isWarm = false
  while (seconds < load.seconds && errors === 0) {
    // One connection per place for the whole run, opened before the clock starts.
    if (visitors.length === 0) {
      visitors = Array.from({ length: load.parallel }, () => new Visitor(endpoint))
      await Promise.all(visitors.map(visitor => visitor.connect()))
    }
    const began = performance.now()
    const answers = await Promise.all(
      visitors.map(
        visitor =>
          new Promise<Answer | null>(resolve => {
            visitor.onAnswer = resolve
            visitor.send(request)
          }),
      ),
    )
    errors += answers.filter(answer => !isWhole(answer)).length
    if (isWarm) {
      seconds += (performance.now() - began) / 1000
      requests += answers.filter(isWhole).length
    }
    isWarm = true
    if (answers.some(answer => !answer || answer.closes)) {
      for (const visitor of visitors) visitor.close()
      visitors = []
    }
  }
  for (const visitor of visitors) visitor.close()
  return { tool: 'own', requests, errors, seconds, bytes: requests * load.bytes, latency: null }
}
