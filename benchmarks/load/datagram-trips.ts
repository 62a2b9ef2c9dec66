// Round trips of one datagram at a time: what a tunnel adds to every question by UDP.

import { createHistogram } from 'node:perf_hooks'

/** A datagram that has not come back after this long is lost; another is sent. */
const LOST_MS = 200
/** Lost in a row before it is given up. */
const MAX_LOST = 50

/** Milliseconds, and datagrams. */
export interface DatagramTrips {
  readonly p50: number
  readonly p99: number
  readonly lost: number
}

/** Throws when one came back changed, or none any more. */
export async function datagramRoundTrips(
  port: number,
  load: { readonly bytes: number; readonly trips: number; readonly warmup: number },
): Promise<DatagramTrips> {
  // Three digits, 1 µs to 60 s.
  const latencies = createHistogram({ lowest: 1, highest: 60_000_000, figures: 3 })
  const done = Promise.withResolvers<void>()
  const message = Uint32Array.from({ length: load.bytes / 4 }, (_, i) => Math.imul(i, 2_654_435_761))
  let [trips, warmup, lost, lostInARow, sentAt] = [0, load.warmup, 0, 0, 0]
  const socket = await Bun.udpSocket({
    connect: { hostname: '127.0.0.1', port },
    socket: {
      data(_, datagram) {
        // One that was given up comes late.
        if (datagram.readUInt32LE(0) !== message[0]) return
        if (Buffer.compare(datagram, new Uint8Array(message.buffer)) !== 0)
          return done.reject(new Error('a datagram came back changed'))
        lostInARow = 0
        if (warmup > 0) warmup--
        else {
          latencies.record(Math.max(1, Math.round((performance.now() - sentAt) * 1_000)))
          if (++trips === load.trips) return done.resolve()
        }
        next()
      },
      error() {},
    },
  })
  const next = (): void => {
    message[0] = (message[0] ?? 0) + 1
    sentAt = performance.now()
    socket.send(message)
  }
  const watch = setInterval(() => {
    if (performance.now() - sentAt < LOST_MS) return
    if (warmup === 0) lost++
    if (++lostInARow > MAX_LOST) done.reject(new Error('no datagram comes back any more'))
    else next()
  }, LOST_MS)
  next()
  await done.promise.finally(() => {
    clearInterval(watch)
    socket.close()
  })
  return { p50: latencies.percentile(50) / 1_000, p99: latencies.percentile(99) / 1_000, lost }
}
