// Round trips of a few bytes on one connection, one at a time: what a tunnel adds to every keystroke.

import type { Endpoint } from '../peers/peer.ts'
import { Latencies } from './histogram.ts'
import type { LoadResult, TripLoad } from './load.ts'
import { requestBytes } from './visitor.ts'

/** The one upgrade that every tunnel passes on; what follows it is bytes, not WebSocket frames. */
const UPGRADE = [
  'connection: Upgrade',
  'upgrade: websocket',
  'sec-websocket-version: 13',
  'sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==',
]

const HEAD_END = Buffer.from('\r\n\r\n')

export async function roundTrips(
  endpoint: Endpoint,
  load: TripLoad,
): Promise<Omit<LoadResult, 'cpuSeconds'>> {
  const message = Buffer.alloc(load.bytes, 'x')
  const latencies = new Latencies()
  const done = Promise.withResolvers<void>()
  let [trips, warmup, received, sentAt] = [0, load.warmup, 0, 0]
  // Behind a tunnel that reads HTTP the connection is switched first; the head of that answer is not an echo.
  let switching = load.upgrade
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
        if (switching) {
          if (!chunk.includes(HEAD_END)) return
          if (!chunk.toString('latin1').startsWith('HTTP/1.1 101'))
            done.reject(new Error('the upgrade was refused'))
          switching = false
          next()
          return
        }
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
  if (switching) {
    socket.write(requestBytes(endpoint, 'GET', '/', UPGRADE))
  } else next()
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
