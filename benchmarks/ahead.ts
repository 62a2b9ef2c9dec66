// One table, ours against every peer that is installed: `bun benchmarks/ahead.ts`.
//
//   bun benchmarks/peers/install.ts              once: builds the peers (LT_PEERS says where, default .cache/peers)
//   bun benchmarks/ahead.ts                      everything, three rounds, about 15 minutes
//   bun benchmarks/ahead.ts --quick              one short round, for a look
//   bun benchmarks/ahead.ts --only t50,t10 --peers ours-streams,rathole,bore --rounds 5
//
//   --rounds N    interleaved rounds (default 3); medians and spreads are over these
//   --seconds N   length of one measurement (default 2)
//   --only A,B    rows: t50 t100 t1 t10 t500 close10 64k10 1m10 down down10 up open1000 open4000 held mixed
//   --peers A,B   direct ours-streams ours-json rathole bore frp-tcp frp-nomux frp-http chisel ferrotunnel piko
//   --origin bun  the app is our own small program instead of nginx (some peers stall on nginx's split writes)
//   --json FILE   save every single figure with the environment
//
// All tunnels are up at once, each in processes of its own, in front of the same origin; in every round each row is
// measured on all of them in turn, and every other round in reverse order. Ctrl+C prints what there is.

import { parseArgs } from 'node:util'
import { checkTunnel } from './ahead/check.ts'
import { peerTable, verdictTable, warnings } from './ahead/print.ts'
import { type Figures, ROWS, type Row } from './ahead/rows.ts'
import type { Measured } from './ahead/verdict.ts'
import { run } from './load/load.ts'
import { interrupted, stopAll } from './measure/children.ts'
import { environment, environmentLine } from './measure/environment.ts'
import { type RunningOrigins, startOrigins } from './origin/origin.ts'
import { choose, PEERS } from './peers/list.ts'
import type { Peer, Tunnel } from './peers/peer.ts'

const { values: options } = parseArgs({
  options: {
    rounds: { type: 'string' },
    seconds: { type: 'string' },
    only: { type: 'string' },
    peers: { type: 'string' },
    origin: { type: 'string', default: 'nginx' },
    json: { type: 'string' },
    quick: { type: 'boolean', default: false },
  },
})
const rounds = Number(options.rounds ?? (options.quick ? 1 : 3))
const seconds = Number(options.seconds ?? (options.quick ? 1 : 2))
const rows = chooseRows(options.only)
const peers = options.peers ? choose(options.peers.split(',')) : PEERS
const versions: Record<string, string> = {}
const measured: Measured[] = []

const origins = await startOrigins(options.origin === 'bun' ? 'bun' : 'nginx')
try {
  const installed = await detectAll(peers)
  const total = rounds * rows.length * installed.length
  const began = performance.now()
  await measureFresh(installed, origins, () => progress(began, total))
  await measureRounds(await startAll(installed, origins), origins, () => progress(began, total))
} catch (error) {
  if (!interrupted.aborted) throw error
} finally {
  await print(origins)
  await stopAll()
}
process.exit(interrupted.aborted ? 130 : 0)

function chooseRows(only: string | undefined): readonly Row[] {
  if (!only) return ROWS
  const ids = only.split(',')
  const unknown = ids.filter(id => !ROWS.some(row => row.id === id))
  if (unknown.length > 0) {
    console.error(`no row is called ${unknown.join(', ')}; known: ${ROWS.map(row => row.id).join(', ')}`)
    process.exit(2)
  }
  return ROWS.filter(row => ids.includes(row.id))
}

async function detectAll(all: readonly Peer[]): Promise<readonly Peer[]> {
  const installed: Peer[] = []
  for (const peer of all) {
    const detected = await peer.detect()
    if ('missing' in detected) {
      say(`${peer.name}: ${detected.missing}`)
      continue
    }
    versions[peer.name] = detected.version
    installed.push(peer)
  }
  return installed
}

/** Rows about what a new process does: one tunnel at a time, started for the row and stopped behind it. */
async function measureFresh(
  all: readonly Peer[],
  { ports, pids }: RunningOrigins,
  tick: () => void,
): Promise<void> {
  for (let round = 0; round < rounds; round++) {
    for (const row of rows.filter(({ fresh }) => fresh)) {
      for (const peer of all) {
        interrupted.throwIfAborted()
        const start = async (): Promise<Figures> => {
          const tunnel = await peer.start(ports)
          try {
            return await row.run(tunnel, pids, seconds)
          } finally {
            await tunnel.stop()
          }
        }
        await record(peer.name, row, round, start)
        tick()
      }
    }
  }
}

async function startAll(
  all: readonly Peer[],
  { ports }: RunningOrigins,
): Promise<ReadonlyMap<string, Tunnel>> {
  const started = new Map<string, Tunnel>()
  if (rows.every(({ fresh }) => fresh)) return started
  for (const peer of all) {
    interrupted.throwIfAborted()
    try {
      const tunnel = await peer.start(ports)
      await checkTunnel(tunnel)
      started.set(peer.name, tunnel)
      say(`${peer.name} ${versions[peer.name]}: up and checked`)
    } catch (error) {
      say(`${peer.name} is left out: ${reason(error)}`)
    }
  }
  return started
}

async function measureRounds(
  all: ReadonlyMap<string, Tunnel>,
  { pids }: RunningOrigins,
  tick: () => void,
): Promise<void> {
  for (const tunnel of all.values()) {
    interrupted.throwIfAborted()
    await run(tunnel.endpoints.files!, { kind: 'closed', path: '/20', connections: 50, seconds: 1 })
  }
  for (let round = 0; round < rounds; round++) {
    for (const row of rows.filter(({ fresh }) => !fresh)) {
      const order = round % 2 ? [...all].reverse() : [...all]
      for (const [peer, tunnel] of order) {
        interrupted.throwIfAborted()
        await record(peer, row, round, () => row.run(tunnel, pids, seconds))
        tick()
      }
    }
  }
}

async function record(peer: string, row: Row, round: number, take: () => Promise<Figures>): Promise<void> {
  try {
    measured.push({ peer, row: row.id, round, figures: await take() })
  } catch (error) {
    interrupted.throwIfAborted()
    measured.push({ peer, row: row.id, round, figures: null, failure: reason(error) })
  }
}

function progress(began: number, total: number): void {
  const { round, row, peer } = measured.at(-1)!
  const where = `round ${round + 1}/${rounds} ${row} ${peer}`
  const left = ((performance.now() - began) / measured.length) * (total - measured.length)
  const minutes = `${Math.floor(left / 60_000)}:${String(Math.round((left / 1000) % 60)).padStart(2, '0')}`
  if (process.stderr.isTTY)
    process.stderr.write(`\r\x1b[K${measured.length}/${total} ${where}, ${minutes} left`)
  else if (measured.length % 10 === 0 || measured.length === total)
    say(`${measured.length}/${total} ${where}, ${minutes} left`)
}

async function print({ kinds }: RunningOrigins): Promise<void> {
  if (process.stderr.isTTY) process.stderr.write('\r\x1b[K')
  const env = await environment(versions)
  const done = new Set(measured.map(({ round }) => round)).size
  console.log(`\n${environmentLine(env)}`)
  console.log(
    `origin: ${kinds.files}; uploads: ${kinds.sink}; ${done} round(s) of ${seconds} s, interleaved\n`,
  )
  for (const ours of ['ours-streams', 'ours-json']) {
    const verdicts = verdictTable(measured, ours)
    if (verdicts) console.log(`${verdicts}\n`)
  }
  console.log(`${peerTable(measured)}\n`)
  for (const warning of warnings(measured)) console.log(`note: ${warning}`)
  if (options.json) {
    await Bun.write(
      options.json,
      `${JSON.stringify({ suite: 'ahead', environment: env, seconds, measured }, null, 1)}\n`,
    )
  }
}

function say(line: string): void {
  process.stderr.write(`${line}\n`)
}

function reason(error: unknown): string {
  return error instanceof Error ? error.message.split('\n')[0]! : String(error)
}
