// One end of the tunnel under the soak, in a process of its own: `end.ts server`, or `end.ts client PORT ORIGIN NAME`.
// Answers every message with a census of itself.

import { generateHeapSnapshot } from 'bun'
import { TunnelClient, TunnelServer } from '../../src/index.ts'

/** What must be as many at the end as at the beginning. Names of classes in src/, and of the runtime's own objects. */
const COUNTED = [
  'HttpConnection',
  'PooledStream',
  'StreamExchange',
  'Stream',
  'Join',
  'OpenTrunk',
  'RunningLane',
  'Session',
  'StreamsConnection',
  'Tunnel',
  'Waiter',
  'Link',
  'TCPSocket',
  'Timeout',
] as const

export interface Census {
  readonly rssBytes: number
  readonly heapBytes: number
  readonly objects: Readonly<Record<string, number>>
}

/** Somebody wants to hear of each request, and nobody does, by turns: lanes that tell are others. */
const WATCH_SERVER_MS = 7_000
const WATCH_CLIENT_MS = 11_000

/** Requests that the client told of, and not of their ends. */
const begun = new Set<number>()

const [role, ...rest] = process.argv.slice(2)
const end = role === 'server' ? await startServer() : await startClient(rest)
process.on('message', async () => process.send?.(await census()))
process.on('SIGTERM', () => void end.stop().then(() => process.exit(0)))
process.send?.({ ready: end.port })

async function startServer(): Promise<{ readonly port: number; stop(): Promise<void> }> {
  const server = new TunnelServer({ port: 0, host: '127.0.0.1', limits: { drainTimeoutMs: 1_000 } })
  server.on('error', error => console.error(error))
  void listenByTurns(server)
  await server.start()
  return { port: server.port, stop: () => server.stop() }
}

async function startClient([port, origin, subdomain]: readonly (string | undefined)[]) {
  const client = new TunnelClient({
    server: `127.0.0.1:${port}`,
    host: '127.0.0.1',
    port: Number(origin),
    subdomain: subdomain ?? 'app',
    maxBackoffMs: 500,
  })
  // Of requests that were under way when the connection broke, nobody can tell.
  client.on('disconnected', () => begun.clear())
  void watchByTurns(client)
  await client.connect()
  return { port: 0, stop: () => client.disconnect() }
}

/** What began must end while somebody still listens: if it does not, its turn has no end, and the census shows it. */
async function watchByTurns(client: TunnelClient): Promise<never> {
  for (;;) {
    await Bun.sleep(WATCH_CLIENT_MS)
    const stopBegun = client.on('request', ({ id }) => begun.add(id))
    const stopEnded = client.on('response', ({ id }) => begun.delete(id))
    await Bun.sleep(WATCH_CLIENT_MS)
    stopBegun()
    while (begun.size > 0) await Bun.sleep(100)
    stopEnded()
  }
}

async function listenByTurns(server: TunnelServer): Promise<never> {
  for (;;) {
    await Bun.sleep(WATCH_SERVER_MS)
    const stop = server.on('request', () => {})
    await Bun.sleep(WATCH_SERVER_MS)
    stop()
  }
}

/** At most so many counts: what leaks is in each of them. */
const COUNTS = 5
const BETWEEN_COUNTS_MS = 20

/**
 * The least of each in a few counts. The collector takes every word on the stack for a pointer, and a stale one keeps a
 * whole session that is over, which nothing else holds: seen once in 60 counts, by walking the snapshot back from it.
 */
async function census(): Promise<Census> {
  let least = count()
  for (let counts = 1; counts < COUNTS; counts++) {
    await Bun.sleep(BETWEEN_COUNTS_MS)
    const next = count()
    const fewer = Object.entries(next.objects).map(([name, many]): [string, number] => [
      name,
      Math.min(least.objects[name] ?? 0, many),
    ])
    least = {
      rssBytes: next.rssBytes,
      heapBytes: Math.min(least.heapBytes, next.heapBytes),
      objects: Object.fromEntries(fewer),
    }
  }
  return least
}

/** After a full collection, so that only what something holds is counted. */
function count(): Census {
  Bun.gc(true)
  // A second one finds what the finalizers of the first let go.
  Bun.gc(true)
  const rssBytes = process.memoryUsage.rss()
  const snapshot = generateHeapSnapshot('jsc')
  const counts = new Map<string, number>()
  let heapBytes = 0
  // Four numbers a node: id, size, index of its class name, flags.
  for (let at = 0; at < snapshot.nodes.length; at += 4) {
    heapBytes += snapshot.nodes[at + 1] ?? 0
    const name = snapshot.nodeClassNames[snapshot.nodes[at + 2] ?? -1] ?? ''
    counts.set(name, (counts.get(name) ?? 0) + 1)
  }
  return {
    rssBytes,
    heapBytes,
    objects: {
      ...Object.fromEntries(COUNTED.map(name => [name, counts.get(name) ?? 0])),
      'told, not ended': begun.size,
    },
  }
}
