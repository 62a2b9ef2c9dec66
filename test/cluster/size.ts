// How large a cluster may get: constants measured on a real Redis, and what follows for 1,000 servers and 1,000,000 tunnels.
// `bun test/cluster/size.ts [--quick] [--write]`
//
// Each constant is measured at several sizes and fitted by a line; the tables add up what the servers ask of Redis by themselves.
// `--quick` measures at small sizes, which says little; `--write` puts the first table into docs/cluster.md.

import { join } from 'node:path'
import { environment } from '../../benchmarks/measure/environment.ts'
import { readFlags } from '../../benchmarks/measure/flags.ts'
import { figure } from '../../benchmarks/measure/samples.ts'
import { table } from '../../benchmarks/measure/table.ts'
import { CLUSTER_TIMES } from '../../src/parts/cluster/options.ts'
import { measureConstants, type Points, type Use } from './size-constants.ts'

const options = readFlags(import.meta.path, {
  quick: { type: 'boolean', default: false },
  write: { type: 'boolean', default: false },
})
if (Bun.which('redis-server') === null) {
  console.error('error: redis-server is not installed: apt-get install redis-server')
  process.exit(2)
}

/** What the cluster does; docs/cluster.md says so, too. */
const CLAIMS_PER_TUNNEL_HOUR = 1
const REPORT_SECONDS = 10
const KNOWN_SECONDS = 30
/** Names that visitors ask each server for, within `KNOWN_SECONDS`, and that another one holds. */
const ASKED_AT_A_SERVER = 1_000
const NAMES_IN_A_CALL = 200

const CLUSTERS = [
  [3, 3_000],
  [10, 10_000],
  [100, 100_000],
  [300, 300_000],
  [1_000, 1_000_000],
] as const

const constants = await measureConstants(
  options.quick
    ? { names: [200, 400], servers: [5, 10], listeners: [0, 5, 10] }
    : {
        names: [2_000, 5_000, 10_000, 20_000],
        servers: [10, 50, 100, 200],
        listeners: [0, 10, 50, 100, 200],
      },
)
const { beats, lists, changes, reports, spreads, claim, renewal, question, told } = constants

/** `base + slope × size`, by least squares. */
function fit(points: Points<number>): (size: number) => number {
  const mean = (at: 0 | 1): number => points.reduce((sum, point) => sum + point[at], 0) / points.length
  const [x, y] = [mean(0), mean(1)]
  const over = points.reduce((sum, [size]) => sum + (size - x) ** 2, 0)
  const slope = Math.max(0, points.reduce((sum, [size, value]) => sum + (size - x) * (value - y), 0) / over)
  const base = Math.max(0, y - slope * x)
  return size => base + slope * size
}

interface Cost {
  readonly cpuUs: number
  readonly bytes: number
}

const costOf = ({ cpuUs, inBytes, outBytes }: Use): Cost => ({ cpuUs, bytes: inBytes + outBytes })

function fitCost(points: Points<Use>): (size: number) => Cost {
  const cpu = fit(points.map(([size, { cpuUs }]) => [size, cpuUs]))
  const bytes = fit(points.map(([size, use]) => [size, costOf(use).bytes]))
  return size => ({ cpuUs: cpu(size), bytes: bytes(size) })
}

const FITTED = {
  beats: fitCost(beats),
  lists: fitCost(lists),
  changes: fitCost(changes),
  reports: fitCost(reports),
}
const nameBytes = fit(constants.memory)(1) - fit(constants.memory)(0)
const spreadMs = fit(spreads)

interface Part extends Cost {
  readonly what: string
  /** A second, of all servers. */
  readonly times: number
  /** To Redis, and from it to those that hear of it. */
  readonly messages: number
}

function partsOf(servers: number, tunnels: number): readonly Part[] {
  const signs = servers / (CLUSTER_TIMES.nodeMs / 3 / 1_000)
  const part = (what: string, times: number, messages: number, cost: Cost): Part => ({
    what,
    times,
    messages,
    ...cost,
  })
  return [
    part('signs of life', signs, 3, FITTED.beats(servers)),
    part('list of those that live', servers / (CLUSTER_TIMES.nodeMs / 1_000), 1, FITTED.lists(servers)),
    part('names renewed', tunnels / (CLUSTER_TIMES.holdMs / 3 / 1_000), 1 / NAMES_IN_A_CALL, costOf(renewal)),
    part(
      'names claimed, heard by all servers',
      (tunnels * CLAIMS_PER_TUNNEL_HOUR) / 3_600,
      1 + servers,
      FITTED.changes(servers),
    ),
    part('reports of servers, heard by all', servers / REPORT_SECONDS, 1 + servers, FITTED.reports(servers)),
    part(
      'names asked for',
      (servers * Math.min(ASKED_AT_A_SERVER, tunnels)) / KNOWN_SECONDS,
      1,
      costOf(question),
    ),
  ]
}

const sumOf = (parts: readonly Part[], of: (part: Part) => number): number =>
  parts.reduce((sum, part) => sum + part.times * of(part), 0)
const whole = (value: number): string => Math.round(value).toLocaleString('en-US')
const count = (value: number): string => (value >= 100 ? whole(value) : figure(value))

function constantsTable(): string {
  const flat: readonly (readonly [string, Use])[] = [
    ['a name claimed, heard by none', claim],
    [`a name renewed, ${NAMES_IN_A_CALL} in a call`, renewal],
    ['a name asked for', question],
    ['a name told to an empty Redis', told],
  ]
  const lines: readonly (readonly [string, (size: number) => Cost])[] = [
    ['a sign of life', FITTED.beats],
    ['the list of those that live', FITTED.lists],
    ['a name claimed, heard by all', FITTED.changes],
    ['a report, heard by all', FITTED.reports],
  ]
  return table(
    ['constant', 'CPU of Redis, µs', 'bytes', 'and for each server, µs', 'bytes'],
    [
      ...flat.map(([what, use]) => [what, figure(use.cpuUs), count(costOf(use).bytes), '', '']),
      ...lines.map(([what, cost]) => {
        const [none, one] = [cost(0), cost(1)]
        const more = [figure(one.cpuUs - none.cpuUs), count(one.bytes - none.bytes)]
        return [what, figure(none.cpuUs), count(none.bytes), ...more]
      }),
    ],
  )
}

function sizesTable(): string {
  return table(
    [
      'servers',
      'tunnels',
      'messages/s',
      'MB/s',
      'core of Redis',
      'memory of Redis, MB',
      'a change is heard by all after, ms',
      'all names told again, s of a core',
    ],
    CLUSTERS.map(([servers, tunnels]) => {
      const parts = partsOf(servers, tunnels)
      return [
        whole(servers),
        whole(tunnels),
        whole(sumOf(parts, ({ messages }) => messages)),
        figure(sumOf(parts, ({ bytes }) => bytes) / 1e6),
        `${figure(sumOf(parts, ({ cpuUs }) => cpuUs) / 1e4)} %`,
        figure((tunnels * nameBytes) / 1e6),
        figure(spreadMs(servers)),
        figure((tunnels * told.cpuUs) / 1e6),
      ]
    }),
  )
}

function partsTable(): string {
  const [servers, tunnels] = CLUSTERS.at(-1)!
  return table(
    [
      `of ${whole(servers)} servers with ${whole(tunnels)} tunnels`,
      'a second',
      'CPU of Redis, µs',
      'core of Redis',
      'MB/s',
    ],
    partsOf(servers, tunnels).map(({ what, times, cpuUs, bytes }) => [
      what,
      whole(times),
      count(cpuUs),
      `${figure((times * cpuUs) / 1e4)} %`,
      figure((times * bytes) / 1e6),
    ]),
  )
}

const remark =
  `A name takes ${whole(nameBytes)} bytes in Redis and ${whole(constants.ownBytes)} in the server that holds it, besides its client. One server told ` +
  `${whole(constants.names)} names to an empty Redis in ${figure(constants.toldMs / 1_000)} s.`
/** What the page has; the parts and the constants that it is made of are printed. */
const text = [sizesTable(), remark].join('\n\n')
console.log(`\n${[sizesTable(), partsTable(), constantsTable(), remark].join('\n\n')}\n`)
if (options.write) await write()
process.exit(0)

async function write(): Promise<void> {
  const page = join(import.meta.dir, '../../docs/cluster.md')
  const place = /(<!-- size: [^\n]*-->\n)[\s\S]*(<!-- end of size -->)/
  const before = await Bun.file(page).text()
  if (!place.test(before)) throw new Error('docs/cluster.md has no place for the tables')
  const { cpu, cores, bun } = await environment()
  const where = `${new Date().toISOString().slice(0, 10)}, ${cores} cores (${cpu}), Bun ${bun}.`
  await Bun.write(
    page,
    before.replace(place, (_, first: string, last: string) => `${first}\n${where}\n\n${text}\n\n${last}`),
  )
}
