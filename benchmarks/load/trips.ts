// Round trips of a few bytes on one connection, one at a time: what a tunnel adds to every keystroke.

import type { Endpoint } from '../peers/peer.ts'
import { Latencies } from './histogram.ts'
import type { LoadResult, TripLoad } from './load.ts'

export async function roundTrips(
  endpoint: Endpoint,
  load: TripLoad,
): Promise<Omit<LoadResult, 'cpuSeconds'>> {
  const message = Buffer.alloc(load.bytes, 'x')
  const latencies = new Latencies()
  const done = Promise.withResolvers<void>()
  let [trips, warmup, received, sentAt] = [0, load.warmup, 0, 0]
  const next = (): void => {
    sentAt = performance.now()
    socket.write(message)
  }
  const socket = await Bun.connect({
    hostname: endpoint.host,
    port: endpoint.port,
    socket: {
      open: opened => void opened.setNoDelay(true),
      data(_, chunk) {
        received += chunk.length
        if (received < load.bytes) return
        received = 0
        if (warmup > 0) warmup--
        else {
          latencies.add(performance.now() - sentAt)
          if (++trips === load.trips) {
            done.resolve()
            return
          }
        }
        next()
      },
      close: () => done.reject(new Error(`the connection ended after ${trips} round trips`)),
    },
  })
  const began = performance.now()
  next()
  await done.promise
  const seconds = (performance.now() - began) / 1000
  socket.terminate()
  return {
    tool: 'own',
    requests: trips,
    errors: 0,
    seconds,
    bytes: trips * load.bytes,
    latency: latencies.summary(),
  }
}
