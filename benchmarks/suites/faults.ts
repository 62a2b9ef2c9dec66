// What a fault costs: requests lost, requests answered wrongly, seconds until the tunnel works again.
// `bun benchmarks/index.ts faults [--only server-killed] [--peers ours,rathole] [--rounds 3]`
//
// Visitors ask at a constant rate; then an end is killed and started again, frozen, cut off, or runs out of descriptors.

import { connect, createServer, type Server, type Socket } from 'node:net'
import { hold, run } from '../load/load.ts'
import { SMALL } from '../load/traffic.ts'
import { finish } from '../measure/children.ts'
import { request } from '../measure/ports.ts'
import { openFiles } from '../measure/proc.ts'
import { column } from '../measure/result.ts'
import { type Figures, measure, type Row } from '../measure/rounds.ts'
import { conclude, fault as faultOfOurs, isQuick, options, unlessQuick } from '../measure/suite.ts'
import { summary } from '../measure/summary.ts'
import { FILE_SIZES, fileBytes } from '../origin/files.ts'
import { ALL, choose } from '../peers/list.ts'
import type { Endpoint, Tunnel } from '../peers/peer.ts'

/** One every 20 ms: a loss of a tenth of a second shows. */
const EVERY_MS = 20
const HEALTHY_MS = unlessQuick(1_000, 300)
const FROZEN_MS = unlessQuick(3_000, 500)
/** So many right answers in a row, and it works again. */
const STEADY = 20
/** A tunnel that is not back by then is not coming back. */
const LIMIT_MS = unlessQuick(20_000, 8_000)
const PATIENCE_MS = 2_000
/** Requests behind the fault, of which none may fail through ours. */
const AFTERWARDS = 400
const RIGHT = Buffer.from(fileBytes(FILE_SIZES['20']!))

/** Stands at 127.0.0.2 in front of each server port that a client dials, so that the connection between the ends can be cut. */
const carrier = {
  servers: new Map<number, Server>(),
  sockets: new Set<Socket>(),
  dial(port: number): { readonly host: string; readonly port: number } {
    const passOn = (near: Socket): void => {
      const far = connect(port, '127.0.0.1')
      near.pipe(far).pipe(near)
      for (const one of [near, far]) {
        this.sockets.add(one)
        one.on('error', () => {})
        one.on('close', () => {
          for (const other of [near, far]) void (this.sockets.delete(other) && other.destroy())
        })
      }
    }
    if (!this.servers.has(port)) this.servers.set(port, createServer(passOn).listen(port, '127.0.0.2'))
    return { host: '127.0.0.2', port }
  },
  cut(): void {
    for (const socket of this.sockets) socket.resetAndDestroy()
  },
  close(): void {
    this.cut()
    for (const server of this.servers.values()) server.close()
    this.servers.clear()
  },
}

interface Asked {
  readonly at: number
  outcome: 'waiting' | 'right' | 'lost' | 'wrong'
}

/** Asks on a schedule, whatever comes back. */
class Visitors {
  readonly asked: Asked[] = []
  readonly #timer: Timer

  constructor(to: Endpoint) {
    this.#timer = setInterval(() => {
      const one: Asked = { at: performance.now(), outcome: 'waiting' }
      this.asked.push(one)
      void ask(to).then(outcome => {
        one.outcome = outcome
      })
    }, EVERY_MS)
  }

  /** When the first of enough right answers in a row was asked for. */
  steadyFrom(since: number): number | null {
    const later = this.asked.filter(({ at, outcome }) => at >= since && outcome !== 'waiting')
    for (let i = later.length - STEADY; i >= 0; i--) {
      const inARow = later.slice(i, i + STEADY)
      if (inARow.some(({ outcome }) => outcome !== 'right')) continue
      // The earliest run that nothing behind it breaks.
      let first = i
      while (first > 0 && later[first - 1]!.outcome === 'right') first--
      return later[first]!.at
    }
    return null
  }

  stop(): void {
    clearInterval(this.#timer)
  }
}

async function ask(to: Endpoint): Promise<'right' | 'lost' | 'wrong'> {
  try {
    const response = await request(to, '/20', { signal: AbortSignal.timeout(PATIENCE_MS) })
    const body = Buffer.from(await response.arrayBuffer())
    if (response.status !== 200) return 'lost'
    return body.equals(RIGHT) ? 'right' : 'wrong'
  } catch {
    // Refused, reset or too late: a visitor got nothing.
    return 'lost'
  }
}

async function frozen({ processes }: Tunnel, end: 'server' | 'client'): Promise<void> {
  const pids = processes[end]
  for (const pid of pids) process.kill(pid, 'SIGSTOP')
  await Bun.sleep(FROZEN_MS)
  for (const pid of pids) process.kill(pid, 'SIGCONT')
}

/** Few descriptors, and more visitors than that for a while. */
async function exhausted({ processes, endpoints }: Tunnel): Promise<void> {
  const pids = [...processes.server, ...processes.client]
  const limits = await Promise.all(
    pids.map(async pid => {
      const before = (
        await finish(['prlimit', '--pid', String(pid), '--nofile', '--noheadings', '--output', 'SOFT'])
      ).stdout.trim()
      await finish(['prlimit', '--pid', String(pid), `--nofile=${openFiles([pid]) + 30}:`])
      return [pid, before] as const
    }),
  )
  const crowd = await hold(endpoints, { exchanges: SMALL, connections: 200, seconds: 60 }).catch(() => null)
  await Bun.sleep(FROZEN_MS / 3)
  await crowd?.stop()
  for (const [pid, before] of limits) await finish(['prlimit', '--pid', String(pid), `--nofile=${before}:`])
}

/** Counted from the moment at which an end dies or the cut, or from the end of what lasts. */
type From = 'its begin' | 'its end'

function fault(id: string, title: string, from: From, happen: (tunnel: Tunnel) => Promise<void> | void): Row {
  return {
    id,
    title,
    columns: [
      column('seconds', 'until it works again', 's', 'lower'),
      column('lost', 'lost', 'requests', 'lower'),
      column('wrong', 'wrong', 'requests', 'lower'),
    ],
    note: `One request every ${EVERY_MS} ms. Not back: more than ${LIMIT_MS / 1000} s.`,
    fresh: true,
    async take({ tunnel, peer }): Promise<Figures> {
      const visitors = new Visitors(tunnel.endpoints.files!)
      try {
        await Bun.sleep(HEALTHY_MS)
        const since = performance.now()
        await happen(tunnel)
        const over = performance.now()
        const began = from === 'its begin' ? since : over
        let back = visitors.steadyFrom(over)
        while (back === null && performance.now() < over + LIMIT_MS) {
          await Bun.sleep(100)
          back = visitors.steadyFrom(over)
        }
        if (back === null) throw new Error(`it was not back after ${LIMIT_MS / 1000} s`)
        // What is under way still may be lost.
        while (visitors.asked.some(({ at, outcome }) => at <= back && outcome === 'waiting'))
          await Bun.sleep(EVERY_MS)
        const meanwhile = visitors.asked.filter(({ at }) => at >= since - PATIENCE_MS && at <= back)
        const count = (wanted: Asked['outcome']): number =>
          meanwhile.filter(({ outcome }) => outcome === wanted).length
        if (peer.role === 'ours' && count('wrong') > 0)
          faultOfOurs(`${title}: ${peer.name}: ${count('wrong')} answers were wrong`)
        // What goes wrong now and then has nothing to do with the fault.
        if (peer.role === 'ours')
          await run(tunnel.endpoints, { exchanges: SMALL, connections: 1, seconds: 60, passes: AFTERWARDS })
        // Nothing shorter than the time between two requests can be told apart.
        return {
          seconds: Math.max(EVERY_MS, back - began) / 1000,
          lost: count('lost'),
          wrong: count('wrong'),
        }
      } finally {
        visitors.stop()
        carrier.close()
      }
    },
  }
}

const ROWS: readonly Row[] = [
  fault('client-killed', 'The client is killed and started again', 'its begin', tunnel =>
    tunnel.restart('client'),
  ),
  fault('server-killed', 'The server is killed and started again', 'its begin', tunnel =>
    tunnel.restart('server'),
  ),
  fault('client-frozen', `The client stands still for ${FROZEN_MS / 1000} s`, 'its end', tunnel =>
    frozen(tunnel, 'client'),
  ),
  fault('server-frozen', `The server stands still for ${FROZEN_MS / 1000} s`, 'its end', tunnel =>
    frozen(tunnel, 'server'),
  ),
  fault('cut', 'The connection between them is reset', 'its begin', () => {
    if (carrier.sockets.size === 0) throw new Error('its client dials otherwise')
    carrier.cut()
  }),
  fault('descriptors', 'Both ends run out of descriptors for a second', 'its end', exhausted),
]

const tunnels = ALL.filter(({ role, name }) => role !== 'floor' && !/-stock$|-binary$|^frp-mux$/.test(name))
const peers = choose(tunnels, { names: options.peers, quick: isQuick })
const rows = isQuick && !options.only ? ROWS.filter(({ id }) => /cut|client-killed/.test(id)) : ROWS
const ground = { host: '127.0.0.1', dial: (port: number) => carrier.dial(port) }
const { tables, versions } = await measure([{ origins: ['files'], peers, rows, ground }])
console.log(`\n${summary(tables)}`)
await conclude('faults', 'Faults', tables, versions)
