// One table, ours against every peer that is installed: `bun benchmarks/ahead.ts`.
//
//   bun benchmarks/peers/install.ts              once: builds the peers (LT_PEERS says where, default .cache/peers)
//   bun benchmarks/ahead.ts                      everything, three rounds, about 15 minutes
//   bun benchmarks/ahead.ts --quick              one short round, for a look
//   bun benchmarks/ahead.ts --only t50,t10 --peers ours-streams,rathole,bore --rounds 5
//
//   --rounds N    interleaved rounds (default 3); medians and spreads are over these
//   --seconds N   length of one measurement (default 2; open loops above 1: at least 4)
//   --only A,B    rows: t50 t100 t1 t10 t500 close10 64k10 1m10 down down10 up open1000 open4000 held mixed
//   --peers A,B   direct ours-streams ours-json rathole bore frp-tcp frp-nomux frp-http chisel ferrotunnel piko localtunnels-0.2
//   --origin bun  the app is our own small program instead of nginx (some peers stall on nginx's split writes)
//   --json FILE   save every single figure with the environment
//
// All tunnels are up at once, each in processes of its own, in front of the same origin; in every round each row is
// measured on all of them in turn, and every other round in reverse order. Ctrl+C prints what there is.

import { parseArgs } from 'node:util'
import { jsonTable, peerTable, verdictTable, warnings } from './ahead/print.ts'
import { measureRounds } from './ahead/rounds.ts'
import { ROWS, type Row } from './ahead/rows.ts'
import { interrupted, stopAll } from './measure/children.ts'
import { environment, environmentLine } from './measure/environment.ts'
import { choose, PEERS } from './peers/list.ts'

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
const seconds = Number(options.seconds ?? (options.quick ? 1 : 2))
const rounds = measureRounds({
  peers: options.peers ? choose(options.peers.split(',')) : PEERS,
  rows: chooseRows(options.only),
  rounds: Number(options.rounds ?? (options.quick ? 1 : 3)),
  seconds,
  origin: options.origin === 'bun' ? 'bun' : 'nginx',
  say: line => void process.stderr.write(`${line}\n`),
})
try {
  await rounds.done
} finally {
  await print()
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

async function print(): Promise<void> {
  const { measured, versions } = rounds
  if (process.stderr.isTTY) process.stderr.write('\r\x1b[K')
  const env = await environment(versions)
  const count = new Set(measured.map(({ round }) => round)).size
  const { files, sink } = rounds.origins()
  console.log(`\n${environmentLine(env)}`)
  console.log(`origin: ${files}; uploads: ${sink}; ${count} round(s) of ${seconds} s, interleaved\n`)
  for (const verdicts of [verdictTable(measured), jsonTable(measured)]) {
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
