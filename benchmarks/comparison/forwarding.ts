// Request Forwarding: single requests through each running tool, sent with fetch from this process.

import { exchange, type Target, target, together } from '../live.ts'
import { interrupted } from '../measure/children.ts'
import { bench, group } from '../measure/mitata.ts'
import { say } from '../measure/suite.ts'
import { startOrigins } from '../origin/origin.ts'
import type { Peer } from '../peers/peer.ts'

const POST: RequestInit = { method: 'POST', body: new Uint8Array(1024).fill(97) }

/** Starts every peer once more and defines the benchmarks; the processes stay until this one ends. */
export async function forwardingBenchmarks(peers: readonly Peer[]): Promise<void> {
  const origins = await startOrigins('bun')
  const targets: Target[] = []
  for (const peer of peers) {
    interrupted.throwIfAborted()
    try {
      const { endpoints } = await peer.start({ sink: origins.ports.sink! })
      const { port, hostHeader, headers } = endpoints.sink!
      const through = target(peer.name, port, hostHeader)
      const one: Target = { ...through, ask: (path, init) => through.ask(path, { ...init, headers }) }
      await exchange(one, '/json')
      targets.push(one)
    } catch (error) {
      say(
        `${peer.name} is left out of Request Forwarding: ${error instanceof Error ? error.message : String(error)}`,
      )
    }
  }
  for (const [title, work] of [
    ['GET / (plain text "OK")', (to: Target) => exchange(to, '/')],
    ['GET /json (10-item array)', (to: Target) => exchange(to, '/json')],
    ['POST 1 KB body', (to: Target) => exchange(to, '/', POST)],
    ['10 Concurrent Requests (GET /json)', (to: Target) => together(10, to, '/json')],
  ] as const) {
    group(`Request Forwarding: ${title}`, () => {
      for (const to of targets) bench(to.title, () => work(to))
    })
  }
}
