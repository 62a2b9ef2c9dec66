// Open loop: requests are due at fixed times; each one's latency counts from when it was due, not from when it left.
//
// Timers here have a grain of 1 ms, so requests are due in groups at whole milliseconds. A connection has one request
// at a time; when none is free another is opened, up to a bound, beyond which requests wait and their wait counts.

import type { Endpoint } from '../peers/peer.ts'
import { Latencies } from './histogram.ts'
import type { LoadResult, OpenLoad } from './load.ts'
import { requestBytes, Visitor } from './visitor.ts'

const MAX_CONNECTIONS = 1_000

export async function openLoop(endpoint: Endpoint, load: OpenLoad): Promise<Omit<LoadResult, 'cpuSeconds'>> {
  const request = requestBytes(endpoint, 'GET', load.path)
  const latencies = new Latencies()
  const idle: Visitor[] = []
  const due: number[] = []
  const total = Math.round(load.rate * load.seconds)
  let [connections, issued, finished, errors, bytes] = [0, 0, 0, 0, 0]
  const complete = Promise.withResolvers<void>()

  const settle = (dueAt: number, ok: boolean): void => {
    if (ok) latencies.add(performance.now() - dueAt)
    else errors++
    if (++finished === total) complete.resolve()
  }
  const serve = (visitor: Visitor, dueAt: number): void => {
    visitor.onAnswer = answer => {
      bytes += answer?.bytes ?? 0
      settle(dueAt, answer?.status === 200)
      if (!answer || answer.closes) {
        visitor.close()
        connections--
        return
      }
      const next = due.shift()
      if (next === undefined) idle.push(visitor)
      else serve(visitor, next)
    }
    visitor.send(request)
  }
  const dispatch = (dueAt: number): void => {
    const visitor = idle.pop()
    if (visitor) {
      serve(visitor, dueAt)
      return
    }
    if (connections >= MAX_CONNECTIONS) {
      due.push(dueAt)
      return
    }
    connections++
    const fresh = new Visitor(endpoint)
    fresh.connect().then(
      () => serve(fresh, dueAt),
      () => {
        connections--
        settle(dueAt, false)
      },
    )
  }
  const began = performance.now()
  const tick = setInterval(() => {
    const now = performance.now()
    while (issued < total) {
      const dueAt = began + Math.ceil((issued * 1000) / load.rate)
      if (dueAt > now) break
      issued++
      dispatch(dueAt)
    }
    if (issued === total) clearInterval(tick)
  }, 1)
  const deadline = setTimeout(complete.resolve, load.seconds * 1000 + 10_000)
  await complete.promise
  clearTimeout(deadline)
  clearInterval(tick)
  errors += total - finished
  const seconds = (performance.now() - began) / 1000
  return { tool: 'own', requests: total - errors, errors, seconds, bytes, latency: latencies.summary() }
}
