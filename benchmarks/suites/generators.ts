// Three rows by our load generator and, right behind it, by wrk and by vegeta: whether the figures are those of the
// generator. `bun benchmarks/index.ts generators`, once for each release.

import { run } from '../load/load.ts'
import { get, post, SMALL } from '../load/traffic.ts'
import { finish } from '../measure/children.ts'
import { column } from '../measure/result.ts'
import { type Figures, measure, type Row, type Scene } from '../measure/rounds.ts'
import { conclude, isQuick, options, say, unlessQuick } from '../measure/suite.ts'
import { binary, scratch } from '../peers/binary.ts'
import { direct } from '../peers/floors.ts'
import { choose, OURS } from '../peers/list.ts'
import { oursLibrary as ours } from '../peers/ours.ts'
import type { Endpoint } from '../peers/peer.ts'
import { frpBest, ratholeBest } from '../peers/tcp.ts'

const SECONDS = unlessQuick(options.minutes === undefined ? 3 : 1, 1)
const RATE = 4_000
/** Answers that `wrk` and `vegeta` take for wrong: above this share the row has no figure. */
const MAX_FAILED = 0.001

interface Seen {
  readonly rps: number
  readonly p50: number
  readonly p99: number
}

const urlOf = ({ host, port }: Endpoint, path: string): string => `http://${host}:${port}${path}`

async function wrk(to: Endpoint, path: string, script: readonly string[] = []): Promise<Seen> {
  const flags = ['-t1', '-c50', `-d${SECONDS}s`, '--latency', '-H', `Host: ${to.hostHeader}`, ...script]
  const { stdout, stderr } = await finish(['wrk', ...flags, urlOf(to, path)], { timeoutMs: 60_000 })
  const ms = (percent: number): number => {
    const [, value, unit = 'ms'] = new RegExp(`^ +${percent}% +([\\d.]+)(us|ms|s)$`, 'm').exec(stdout) ?? []
    return Number(value) * { us: 0.001, ms: 1, s: 1_000 }[unit]!
  }
  const [, all] = /(\d+) requests in/.exec(stdout) ?? []
  const [, bad = '0'] = /Non-2xx or 3xx responses: (\d+)/.exec(stdout) ?? []
  const rps = Number(/^Requests\/sec: +([\d.]+)/m.exec(stdout)?.[1])
  if (!(rps > 0) || Number(bad) > MAX_FAILED * Number(all))
    throw new Error(`wrk: ${stderr || stdout.slice(-200)}`)
  return { rps, p50: ms(50), p99: ms(99) }
}

async function vegeta(to: Endpoint, path: string): Promise<Seen> {
  const files = scratch('vegeta')
  const [program, results] = [binary('vegeta')!, files.path('results')]
  const flags = `attack -rate ${RATE} -duration ${SECONDS}s -max-workers 50 -connections 50 -output ${results}`
  const stdin = `GET ${urlOf(to, path)}\nHost: ${to.hostHeader}\n`
  await finish([program, ...flags.split(' ')], { stdin, timeoutMs: 60_000 })
  const { stdout } = await finish([program, 'report', '-type=json', results])
  files.remove()
  // The documented JSON report, in nanoseconds.
  const report = JSON.parse(stdout || '{}') as {
    readonly throughput?: number
    readonly success?: number
    readonly latencies?: Readonly<Record<'50th' | '99th', number>>
  }
  const { throughput, success = 0, latencies } = report
  if (!throughput || !latencies || success < 1 - MAX_FAILED)
    throw new Error(`vegeta: ${stdout.slice(0, 200)}`)
  return { rps: throughput, p50: latencies['50th'] / 1e6, p99: latencies['99th'] / 1e6 }
}

function beside(
  id: string,
  title: string,
  other: string,
  own: Parameters<typeof run>[1],
  theirs: (scene: Scene) => Promise<Seen>,
): Row {
  const isRate = own.rate === undefined
  const figures = isRate
    ? ([['rps', 'requests', '/s', 'higher']] as const)
    : ([['p50', 'p50', 'ms', 'lower']] as const)
  return {
    id,
    title,
    columns: [...figures, ['p99', 'p99', 'ms', 'lower'] as const].flatMap(([key, name, unit, better]) => [
      column(key, name, unit, better),
      column(`${key}Theirs`, `${name} by ${other}`, unit),
    ]),
    async take(scene): Promise<Figures> {
      const result = await run(scene.tunnel.endpoints, own)
      const seen = await theirs(scene)
      return {
        rps: result.ok / result.seconds,
        p50: result.p50,
        p99: result.p99,
        rpsTheirs: seen.rps,
        p50Theirs: seen.p50,
        p99Theirs: seen.p99,
      }
    },
  }
}

const files = scratch('wrk')
const script = files.write(
  'post.lua',
  'wrk.method = "POST"\nwrk.body = string.rep("a", 1024)\nwrk.headers["Content-Type"] = "text/plain"\n',
)
const closed = { connections: 50, seconds: SECONDS }
const ROWS: readonly (Row & { readonly program: string })[] = [
  {
    ...beside('wrk', 'GET 20 B, 50 connections', 'wrk', { exchanges: SMALL, ...closed }, ({ tunnel }) =>
      wrk(tunnel.endpoints.files!, '/20'),
    ),
    program: 'wrk',
  },
  {
    ...beside(
      'wrkpost',
      'POST of 1 KB, 50 connections',
      'wrk',
      { exchanges: [post(1_024)], ...closed },
      ({ tunnel }) => wrk(tunnel.endpoints.sink!, '/', ['-s', script]),
    ),
    program: 'wrk',
  },
  {
    ...beside(
      'vegeta',
      `GET 20 B, ${RATE.toLocaleString('en-US')} a second on 50 connections`,
      'vegeta',
      { exchanges: [get('20')], ...closed, rate: RATE },
      ({ tunnel }) => vegeta(tunnel.endpoints.files!, '/20'),
    ),
    program: 'vegeta',
  },
]
const present = ROWS.filter(({ program, title }) => {
  const isThere = binary(program) !== null
  if (!isThere) say(`${title} is left out: ${program} is not installed`)
  return isThere
})
const all = isQuick ? [direct, ours] : [direct, ...OURS, ratholeBest, frpBest]
const peers = choose(all, { names: options.peers, quick: false, known: [...all, ...OURS] })
const { tables, versions } = await measure([
  {
    origins: ['files', 'sink'],
    peers,
    rows: present.map(row => ({ ...row, atMost: 3 })),
    warmUp: ({ tunnel }) =>
      run(tunnel.endpoints, { exchanges: SMALL, connections: 50, seconds: unlessQuick(1.5, 0.1) }).then(
        () => {},
      ),
  },
])
await conclude('generators', 'Other load generators', tables, versions)
