// What visitors notice while all servers of a cluster are replaced, one after the other:
// `bun test/cluster/rolling.ts [--requests 100000] [--previous path/to/other/checkout]`
//
// Three servers and a Redis in processes of their own, clients that know all three, and visitors that keep their connections and go to
// the next server when one takes no more, as a load balancer does; they close what is idle before a server does. Each answer is checked. With `--previous`, servers of the two
// checkouts take turns, so that both versions run together.

import { mkdtemp, rm } from 'node:fs/promises'
import { Agent, request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { readFlags } from '../../benchmarks/measure/flags.ts'
import { TunnelClient } from '../../src/index.ts'
import { ClusterServer, TOKEN } from '../support/cluster-server.ts'
import { freePort } from '../support/ports.ts'
import { Redis } from '../support/redis.ts'

const options = readFlags(
  import.meta.path,
  {
    requests: { type: 'string', default: '100000' },
    previous: { type: 'string' },
    verbose: { type: 'boolean', default: false },
  },
  ['requests'],
)
const total = Number(options.requests)
const SERVERS = 3
const CLIENTS = 6
const VISITORS = 16
/** Between the start of a server and the end of the next one. */
const SETTLE_MS = 1_000
/** A share of the requests brings a body of this size. */
const BODY_BYTES = 20_000
/**
 * A visitor closes a connection that had no request for so long, as load balancers do: earlier than a server that stops (`drainIdleMs`,
 * 1 s). Otherwise a request may be on its way while its connection is closed for being idle, and only some may be sent again.
 */
const IDLE_MS = 500

const folder = await mkdtemp(join(tmpdir(), 'localtunnels-rolling-'))
const redis = await Redis.start('redis-server')
const ports = Array.from({ length: SERVERS }, () => freePort())
const programs = [undefined, options.previous && join(options.previous, 'bin/localtunnels.ts')].filter(
  (one, at) => at === 0 || one !== undefined,
)
let started = 0
/** By port: whether the server that has it is of the other checkout. */
const versions = new Map<number, string>()
const start = (port: number) => {
  const which = started++ % programs.length
  const program = programs[which]
  versions.set(port, which === 0 ? 'this version' : 'the previous version')
  return ClusterServer.start({ redis: redis.url, state: folder, port, ...(program && { program }) })
}
const servers = await Promise.all(ports.map(start))

const clients = Array.from({ length: CLIENTS }, (_, at) => {
  // Each has another one first.
  const order = ports.map((_, place) => `http://127.0.0.1:${ports[(place + at) % SERVERS]}`)
  const client = new TunnelClient({
    server: order,
    token: TOKEN,
    subdomain: `app-${at}`,
    exact: true,
    async fetch(asked: Request) {
      const { searchParams } = new URL(asked.url)
      const body = await asked.arrayBuffer()
      return new Response(`${at} ${searchParams.get('id')} ${body.byteLength}`)
    },
  })
  for (const event of ['error', 'connected', 'disconnected', 'reconnecting'] as const)
    client.on(
      event,
      payload => options.verbose && console.log(Math.round(performance.now()), 'client', at, event, payload),
    )
  return client
})
await Promise.all(clients.map(client => client.connect()))

let asked = 0
let refused = 0
const failures = new Map<string, number>()
const times: number[] = []

/** One request on a connection of `agent`. Rejects with `ECONNREFUSED` when the server takes no more. */
function ask(agent: Agent, port: number, at: number, id: number): Promise<string> {
  return new Promise((resolve, reject) => {
    const body = id % 10 === 0 ? Buffer.alloc(BODY_BYTES) : undefined
    const path = `/?id=${id}`
    const headers = { Host: `app-${at}.localhost` }
    const method = body === undefined ? 'GET' : 'POST'
    const exchange = request({ agent, host: '127.0.0.1', port, method, path, headers }, answer => {
      let text = ''
      answer.setEncoding('latin1')
      answer.on('data', (piece: string) => (text += piece))
      answer.on('error', reject)
      answer.on('end', () => {
        if (answer.statusCode === 200) resolve(text)
        else reject(new Error(`${answer.statusCode} ${String(answer.headers['x-localtunnels-error'])}`))
      })
    })
    exchange.on('error', reject)
    exchange.end(body)
  })
}

async function visit(visitor: number): Promise<void> {
  const agents = ports.map(() => new Agent({ keepAlive: true, maxSockets: 1 }))
  /** When the last answer of each server was complete. */
  const usedAt = ports.map(() => 0)
  let server = visitor % SERVERS
  while (asked < total) {
    const id = asked++
    const at = id % CLIENTS
    const want = `${at} ${id} ${id % 10 === 0 ? BODY_BYTES : 0}`
    const from = performance.now()
    for (let tries = 0; ; tries++) {
      const idleMs = performance.now() - usedAt[server]!
      if (idleMs > IDLE_MS) {
        agents[server]!.destroy()
        agents[server] = new Agent({ keepAlive: true, maxSockets: 1 })
      }
      try {
        const got = await ask(agents[server]!, ports[server]!, at, id)
        usedAt[server] = performance.now()
        if (got !== want) count(`wrong answer: ${got} for ${want}`)
        break
      } catch (cause) {
        const why = cause instanceof Error && 'code' in cause ? String(cause.code) : String(cause)
        const tried = ports[server]
        server = (server + 1) % SERVERS
        // Nothing was sent: another server gets it.
        if (why === 'ECONNREFUSED' && tries < SERVERS * 2) {
          refused++
          continue
        }
        count(why)
        if (options.verbose)
          console.log(
            Math.round(performance.now()),
            'failed',
            id,
            at,
            tried,
            versions.get(tried!),
            `idle ${Math.round(idleMs)} ms`,
            String(cause),
          )
        break
      }
    }
    times.push(performance.now() - from)
    if (options.verbose && performance.now() - from > 500)
      console.log(
        Math.round(performance.now()),
        'slow',
        at,
        Math.round(performance.now() - from),
        ports[server],
      )
    // Not always the same one.
    if (id % 50 === 0) server = (server + 1) % SERVERS
  }
  for (const agent of agents) agent.destroy()
}

function count(why: string): void {
  failures.set(why, (failures.get(why) ?? 0) + 1)
}

let replaced = 0
async function replace(): Promise<void> {
  for (let at = 0; asked < total; at = (at + 1) % SERVERS) {
    await Bun.sleep(SETTLE_MS)
    if (options.verbose) console.log(Math.round(performance.now()), 'stopping', at, ports[at])
    const code = await servers[at]!.kill('SIGTERM')
    if (options.verbose) console.log(Math.round(performance.now()), 'stopped', at, ports[at])
    if (code !== 0) count(`a server ended with ${code}`)
    servers[at] = await start(ports[at]!)
    replaced++
  }
}

const began = performance.now()
await Promise.all([...Array.from({ length: VISITORS }, (_, visitor) => visit(visitor)), replace()])
times.sort((one, other) => one - other)
const at = (share: number) =>
  (times[Math.min(times.length - 1, Math.floor(times.length * share))] ?? 0).toFixed(1)
const failed = [...failures.values()].reduce((sum, one) => sum + one, 0)
console.log(
  `${times.length} requests in ${((performance.now() - began) / 1_000).toFixed(0)} s, ${replaced} servers replaced: ${failed} failed; ` +
    `${refused} went to another server before anything was sent; p50 ${at(0.5)}, p99 ${at(0.99)}, p99.9 ${at(0.999)}, max ${at(1)} ms`,
)
for (const [why, times] of failures) console.log(`  ${times} × ${why}`)
await Promise.all(clients.map(client => client.disconnect()))
await Promise.all(servers.map(server => server.kill('SIGTERM')))
await redis[Symbol.asyncDispose]()
await rm(folder, { recursive: true, force: true })
process.exit(failed === 0 ? 0 : 1)
