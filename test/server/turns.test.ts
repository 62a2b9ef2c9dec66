// While many connections of one attacker do their worst, the visitors of another tunnel are answered in time.
// Each attack runs for a second in processes of its own, and there are many: that is why this file takes long. With
// LT_FLOOD_SECONDS=5 it prints what was measured.

import { expect, test } from 'bun:test'
import { TunnelClient } from '../../src/index.ts'
import { FLOODS, Flooding } from '../support/flood-process.ts'
import { ServerProcess } from '../support/server-process.ts'
import { visits } from '../support/visits.ts'

const CONNECTIONS = 200
const SECONDS = Number(Bun.env.LT_FLOOD_SECONDS ?? 1)
/**
 * What the server works until a visitor has its answer, for whomever. The promise is 100 ms on a machine of its own; the one that runs
 * this is busy, and then this goes on while the visitor and its client wait for the processor.
 */
const MOST_P99_MS = 500
/** Three programs and 400 connections begin and end, on a machine that may have other things to do. */
const DEADLINE_MS = 60_000
/**
 * 200 clients hold one read and the batch of their session each, some 150 MB. The rest is what the collector has not got
 * to: clients that are cut and connect again at once, hundreds of times in a second, are the worst.
 */
const MOST_MB = 1_000

test.each(Object.keys(FLOODS))(
  '%s',
  async flood => {
    await using server = await ServerProcess.start({ tlsPort: 0 }, 4_096)
    await using client = new TunnelClient({
      server: `127.0.0.1:${server.port}`,
      subdomain: 'honest',
      fetch: () => new Response('unharmed'),
    })
    await client.connect()
    const before = await server.memory()
    const { port, tlsPort } = server
    await using flooding = await Flooding.start({ flood, port, tlsPort, connections: CONNECTIONS })
    const { p50, p99, max, count } = await visits(
      port,
      'honest.localhost',
      SECONDS * 1_000,
      () => server.workedMs,
    )
    const megabytes = (await flooding.stop()) / 1e6
    const { now, peak } = await server.memory()
    if (Bun.env.LT_FLOOD_SECONDS !== undefined)
      console.log(
        `${flood}: ${count} answers, p50 ${p50.toFixed(1)} p99 ${p99.toFixed(1)} max ${max.toFixed(1)} ms; server ${before.now.toFixed(0)} → ${now.toFixed(0)} MB, peak ${peak.toFixed(0)}; ${megabytes.toFixed(1)} MB were taken`,
      )
    expect(megabytes).toBeGreaterThan(0)
    expect(p99).toBeLessThan(MOST_P99_MS)
    expect(peak).toBeLessThan(MOST_MB)
  },
  DEADLINE_MS,
)
