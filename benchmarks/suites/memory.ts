// Resident memory idle, with held connections, under load and over many requests; start-up; pauses of the collector.
//
//   bun benchmarks/index.ts memory
//   LT_REQUESTS=10_000_000 LT_HOURS=6 bun benchmarks/index.ts memory --only many --peers ours-cli --json FILE

import { hold, run } from '../load/load.ts'
import { SMALL } from '../load/traffic.ts'
import { interrupted } from '../measure/children.ts'
import { forgetPeak, peakBytes, privateBytes, residentBytes } from '../measure/proc.ts'
import { column } from '../measure/result.ts'
import { type Figures, measure, type Row, type Scene } from '../measure/rounds.ts'
import { percentile } from '../measure/samples.ts'
import { conclude, isQuick, msLeft, options, seconds, unlessQuick } from '../measure/suite.ts'
import { summary } from '../measure/summary.ts'
import { ACCELERATOR_OFF, ALL, choose } from '../peers/list.ts'
import { oursBinary, oursLibrary } from '../peers/ours.ts'
import { packagedBinary, packagedCommand } from '../peers/packaged.ts'
import type { Peer } from '../peers/peer.ts'

/** How long memory is given to settle after the connections stand: what is freed at once does not count. */
const SETTLE_MS = 300

const megabytes = (pids: readonly number[]): number => residentBytes(pids) / 1e6

function held(count: number): Row {
  return {
    id: `held${count}`,
    title: `Memory: idle, and with ${count.toLocaleString('en-US')} open connections`,
    columns: [
      column('idle', 'idle, both ends', 'MB', 'lower'),
      column('private', 'of it not shared with other processes', 'MB', 'lower'),
      column('perConnection', 'a connection, both ends', 'KB', 'lower'),
      column('idleServer', 'server idle', 'MB', 'lower'),
      column('idleClient', 'client idle', 'MB', 'lower'),
      column('heldServer', 'server, held', 'MB', 'lower'),
      column('heldClient', 'client, held', 'MB', 'lower'),
    ],
    fresh: true,
    async take({ tunnel }): Promise<Figures> {
      const { server, client } = tunnel.processes
      const [idleServer, idleClient] = [megabytes(server), megabytes(client)]
      const figures = { idleServer, idleClient, private: privateBytes([...server, ...client]) / 1e6 }
      const connections = await hold(tunnel.endpoints, { exchanges: SMALL, connections: count, seconds: 60 })
      try {
        if (connections.held < count) throw new Error(`only ${connections.held} of ${count} were answered`)
        await Bun.sleep(SETTLE_MS)
        const [heldServer, heldClient] = [megabytes(server), megabytes(client)]
        const idle = idleServer + idleClient
        const perConnection = ((heldServer + heldClient - idle) * 1e6) / 1024 / count
        return { ...figures, idle, perConnection, heldServer, heldClient }
      } finally {
        await connections.stop()
      }
    },
  }
}

const START: Row = {
  id: 'start',
  title: 'Start-up: client spawn to the first answer through the tunnel',
  columns: [
    column('client', 'client', 'ms', 'lower'),
    column('server', 'server, to listening', 'ms', 'lower'),
  ],
  fresh: true,
  take: ({ tunnel }) => Promise.resolve({ client: tunnel.readyMs.client, server: tunnel.readyMs.server }),
}

/** It answers before it loads anything: the least that a start of the program costs. */
const VERSION: Row = {
  id: 'version',
  title: '`localtunnels --version`',
  columns: [column('ms', 'spawn to end', 'ms', 'lower')],
  excludes: ({ name }) => (/^ours-(?:cli|binary)$/.test(name) ? undefined : 'has no such command here'),
  fresh: true,
  async take({ peer }): Promise<Figures> {
    const command = peer === oursBinary ? [await packagedBinary()] : ['bun', await packagedCommand()]
    const began = performance.now()
    const child = Bun.spawn([...command, '--version'], { stdout: 'ignore' })
    if ((await child.exited) !== 0) throw new Error('--version failed')
    return { ms: performance.now() - began }
  },
}

const LOADED_SECONDS = unlessQuick(options.minutes === undefined ? 20 : 4, 1)
const UNDER_LOAD: Row = {
  id: 'load',
  title: `Memory: peak in ${LOADED_SECONDS} s at 1,000 requests a second`,
  columns: [
    column('peak', 'both ends', 'MB', 'lower'),
    column('server', 'server', 'MB'),
    column('client', 'client', 'MB'),
  ],
  fresh: true,
  atMost: 1,
  lasts: LOADED_SECONDS,
  async take({ tunnel }): Promise<Figures> {
    const { server, client } = tunnel.processes
    forgetPeak([...server, ...client])
    await run(tunnel.endpoints, {
      exchanges: SMALL,
      connections: 50,
      rate: 1_000,
      seconds: LOADED_SECONDS,
    })
    const [one, other] = [peakBytes(server) / 1e6, peakBytes(client) / 1e6]
    return { peak: one + other, server: one, client: other }
  },
}

/** Ten million with `LT_REQUESTS=10_000_000`; by the hour with `LT_HOURS=6`: as many as that, evenly. */
const REQUESTS = Number((process.env.LT_REQUESTS ?? unlessQuick('400_000', '4_000')).replaceAll('_', ''))
const HOURS = Number(process.env.LT_HOURS ?? 0)
const QUARTERS = ['a quarter', 'half', 'three quarters', 'the end'] as const
const MANY: Row = {
  id: 'many',
  title: `Memory over ${HOURS > 0 ? '' : 'at most '}${REQUESTS.toLocaleString('en-US')} requests${HOURS > 0 ? ` in ${HOURS} hours` : ''}, 50 connections`,
  columns: [
    column('grown', 'grown from a quarter to the end, both ends', 'MB', 'lower'),
    column('start', 'both ends at the start', 'MB'),
    ...QUARTERS.map(name => column(name, `at ${name}`, 'MB')),
    column('rps', 'requests', '/s'),
    column('made', 'requests made in the time of the run', ''),
  ],
  fresh: true,
  atMost: 1,
  lasts: REQUESTS / 40_000 + HOURS * 3_600,
  async take({ tunnel }): Promise<Figures> {
    const { server, client } = tunnel.processes
    const size = (): number => megabytes([...server, ...client])
    const figures: Record<string, number> = { start: size() }
    const began = performance.now()
    let made = 0
    for (const [index, name] of QUARTERS.entries()) {
      const passes = REQUESTS / QUARTERS.length
      // With --minutes fewer of them, if they would not end in time.
      const left = Math.max(1, msLeft() / 1_000) / (QUARTERS.length - index)
      const lasts = HOURS > 0 ? (HOURS * 3_600) / QUARTERS.length : Math.min(left, 3_600)
      const rate = HOURS > 0 ? { rate: passes / lasts, seconds: lasts } : { passes, seconds: lasts }
      made += (await run(tunnel.endpoints, { exchanges: SMALL, connections: 50, ...rate })).ok
      figures[name] = size()
    }
    const rps = (made * 1_000) / (performance.now() - began)
    return { ...figures, rps, made, grown: Math.max(0, figures['the end']! - figures['a quarter']!) }
  },
}

/** How often and how long our processes stop for garbage, while a fixed rate shows what it does to latency. */
const COLLECTIONS: Row = {
  id: 'collections',
  lasts: 10,
  atMost: 1,
  title: 'Pauses of the collector at 4,000 requests a second, both ends',
  columns: [
    column('longest', 'longest', 'ms', 'lower'),
    column('median', 'median', 'ms', 'lower'),
    column('perSecond', 'a second', ''),
    column('p99', 'p99 of the requests', 'ms', 'lower'),
    column('heap', 'largest heap of JavaScript', 'MB', 'lower'),
  ],
  fresh: true,
  async take(scene: Scene): Promise<Figures> {
    pauses.length = 0
    heapKb = 0
    const length = Math.max(seconds, unlessQuick(10, 0.3))
    const { p99 } = await run(scene.tunnel.endpoints, {
      exchanges: SMALL,
      connections: 50,
      rate: unlessQuick(4_000, 500),
      seconds: length,
    })
    const sorted = pauses.toSorted((a, b) => a - b)
    return {
      longest: sorted.at(-1) ?? 0,
      median: percentile(sorted, 50) || 0,
      perSecond: sorted.length / length,
      p99,
      heap: heapKb / 1_000,
    }
  },
}

const pauses: number[] = []
let heapKb = 0
/** JavaScriptCore's own log: one line a collection, `p=` is how long the program stood still. */
const logged: Peer = {
  ...oursLibrary,
  name: 'ours-logged',
  how: 'library, with the log of the collector',
  plan(ports, site) {
    const { server, client, ...plan } = oursLibrary.plan(ports, site)
    const withLog = (programs: typeof server): typeof server =>
      programs.map(program => ({
        ...program,
        env: { ...program.env, BUN_JSC_logGC: '1' },
        onLine: line => {
          for (const [, ms] of line.matchAll(/\bp=([\d.]+)ms/g)) pauses.push(Number(ms))
          for (const [, kb] of line.matchAll(/\b(\d+)kb\b/g)) heapKb = Math.max(heapKb, Number(kb))
        },
      }))
    return { ...plan, server: withLog(server), client: withLog(client) }
  },
}

/** The same programs as shipped have the same memory. */
const tunnels = ALL.filter(({ role, name }) => role !== 'floor' && !name.endsWith('-stock'))
const peers = choose([...tunnels, ...ACCELERATOR_OFF], {
  names: options.peers,
  quick: isQuick,
})
const rows = [held(1_000), ...(isQuick ? [] : [{ ...held(10_000), atMost: 1 }]), START, VERSION, UNDER_LOAD]
/** Minutes of it are those of the command line; few requests show two peers beside it. */
const ofMany = REQUESTS > 1_000_000 || HOURS > 0 ? /^ours-cli$/ : /^(?:ours|ours-cli|rathole|frp-mux)$/
const { tables, versions } = await measure([
  { origins: ['files'], peers, rows },
  {
    origins: ['files'],
    peers: options.peers?.includes('ours') === false ? [] : [logged],
    rows: [COLLECTIONS],
  },
  { origins: ['files'], peers: peers.filter(({ name }) => ofMany.test(name)), rows: [MANY] },
])
if (!interrupted.aborted) console.log(`\n${summary(tables)}`)
await conclude('memory', 'Memory and start-up', tables, versions)
