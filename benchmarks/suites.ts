// What `index.ts` runs: the suites, and what each measures in the time that there is.

import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { CONGESTION } from './measure/environment.ts'
import { readRun, type SuiteResult, writeRun } from './measure/result.ts'
import { options, refuse, savedRun, say } from './measure/suite.ts'
import { scratch } from './peers/binary.ts'

interface Suite {
  readonly name: string
  readonly file: string
  /** What it measures with `--minutes`, since not everything can be measured in minutes, and how many seconds that takes. */
  readonly seconds: number
  readonly inTime?: string
}

const MAIN = 'direct,nginx-hop,ours,ours-cli,rathole,bore,frp-nomux,wstunnel,nginx-tls,nginx-tls+,caddy-tls'
const FEW = 'direct,ours,ours-cli,rathole,frp-nomux'
const IN_TIME = [
  't1,t10,t50,t100,t200,t1000,10k10,64k10,r1,r1000,r4000,down,up,first10m,post,site,upload,retries,node',
  'websocket,echo1k,echo100k,h2,handshakes,apph2,syscalls,tls10,tls50,tls100,tlssite,tls16kx10,tls64kx10',
  'busy1,busy50,busy16kx10,len2kx10,len8kx10,len16kx10,len64kx10,len1mx10',
].join()
/** Of the long row of memory.ts. */
const REQUESTS = Number((process.env.LT_REQUESTS ?? '0').replaceAll('_', ''))

/** What says most comes first: a run that is stopped keeps what was measured. */
const SUITES: readonly Suite[] = [
  {
    name: 'Speed',
    file: 'speed.ts',
    seconds: 880,
    inTime: `--seconds 0.3 --peers ${MAIN} --only ${IN_TIME}`,
  },
  {
    name: 'Memory and start-up',
    file: 'memory.ts',
    seconds: 165 + REQUESTS / 50_000,
    inTime:
      '--only held1000,start,version,load,collections,many --peers ours,ours-cli,rathole,bore,frp-nomux',
  },
  {
    name: 'Bytes and datagrams',
    file: 'raw.ts',
    seconds: 180,
    inTime: `--only trips,datagrams,up1,udp --peers ${FEW},bore`,
  },
  { name: 'Fidelity', file: 'fidelity.ts', seconds: 35, inTime: '--peers ours-cli' },
  {
    name: 'Faults',
    file: 'faults.ts',
    seconds: 55,
    inTime: '--only client-killed,cut --peers ours-cli,rathole',
  },
  {
    name: 'A slow road',
    file: 'wan.ts',
    seconds: 195,
    inTime: '--only wan-down,wan-small --seconds 0.5 --peers direct,ours-cli,rathole,frp-nomux',
  },
  {
    name: 'Features',
    file: 'features.ts',
    seconds: 32,
    inTime: '--only features,inspected1,inspected64k,inspectedDown --rounds 3 --seconds 0.35',
  },
  {
    name: 'Frameworks',
    file: 'frameworks.ts',
    seconds: 26,
    inTime: '--rounds 2 --seconds 0.3 --peers direct,ours-cli',
  },
  {
    name: 'More than one server',
    file: 'scaling.ts',
    seconds: 22,
    inTime: '--rounds 1 --only small --peers one,two,two-other,workers-1,workers-2',
  },
  {
    name: 'Cross-Tool Comparison',
    file: 'comparison.ts',
    seconds: 145,
    inTime:
      '--seconds 0.35 --only startup,establishment,forward,forwardJson,forwardPost,concurrent10,concurrent25 --peers direct,ours-cli,bore,frp-stock,rathole-stock',
  },
  { name: 'Other load generators', file: 'generators.ts', seconds: 40, inTime: '--rounds 1' },
  { name: 'Connection Lifecycle', file: 'connection.ts', seconds: 5 },
  { name: 'Throughput', file: 'throughput.ts', seconds: 14 },
  { name: 'Latency', file: 'latency.ts', seconds: 12 },
  { name: 'Scalability', file: 'scalability.ts', seconds: 12 },
  { name: 'Utility Functions', file: 'utils.ts', seconds: 8 },
]

/** Besides the suites in a quick run: they have a verdict and no figures. */
const VERDICTS = [
  { name: 'Gate', file: 'speed.ts', flags: await gateFlags() },
  { name: 'Chaos', file: '../../test/chaos/run.ts', flags: '--quick' },
  { name: 'Attacks', file: '../../test/hostile/run.ts', flags: '--quick' },
] as const

const isWanted = ({ name, file }: { name: string; file: string }): boolean =>
  options.words.length === 0 ||
  options.words.some(word => `${name} ${file}`.toLowerCase().includes(word.toLowerCase()))
// A slow road is built by root, and is too long for a smoke run.
const canBuildRoads = process.getuid?.() === 0 && !options.quick
const chosen: readonly (Suite | (typeof VERDICTS)[number])[] = [
  ...SUITES.filter(isWanted).filter(
    ({ file }) => options.words.length > 0 || file !== 'wan.ts' || canBuildRoads,
  ),
  ...(options.quick ? VERDICTS.filter(isWanted) : []),
]
if (chosen.length === 0) {
  refuse(
    `no suite matches ${options.words.join(' ')}; there are: ${SUITES.map(({ file }) => file).join(' ')}`,
  )
}
const { json: target } = options
/** Of an earlier run into the same file: what is not measured anew stays, with the commit and the date that it has. */
const earlier = target !== undefined && existsSync(target) ? (await savedRun(target)).suites : []
if (earlier.some(({ quick }) => quick !== options.quick))
  refuse(`${target} has a smoke run in it, or would get one`)

/**
 * Each suite has a network of its own, in which all programs have the same congestion control. BBR, the default of some machines,
 * paces each send, also on loopback, where ours chooses `reno` and others cannot. `reno` is what any namespace may have.
 */
const NETWORK = `ip link set lo up && echo reno > ${CONGESTION} && exec "$@"`
const inNetwork = ['unshare', '--net', 'sh', '-c', NETWORK, 'sh']
const hasNetworks = Bun.which('unshare') !== null && Bun.spawnSync([...inNetwork, 'true']).success
if (!hasNetworks)
  say('note: a network with reno needs Linux, root and iproute2; BBR would slow others down, and not ours')

let interrupted = false
let running: Bun.Subprocess | null = null
// The suite is in a group of its own, so that it gets Ctrl+C once, saves what it has and ends its processes.
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.on(signal, () => {
    interrupted = true
    running?.kill(signal)
  })
}

const saved = scratch('results')
const shared = process.argv
  .slice(2)
  .filter((word, i, all) => !options.words.includes(word) && !isOwn(word, all[i - 1]))
const results: SuiteResult[] = []
const failed: string[] = []
const began = performance.now()
const secondsOf = (suites: typeof chosen): number =>
  suites.reduce((sum, suite) => sum + ('seconds' in suite ? suite.seconds : 0), 0)
for (const [index, suite] of chosen.entries()) {
  if (interrupted) break
  const { name, file } = suite
  const minutes = (performance.now() - began) / 60_000
  if (options.minutes !== undefined && minutes >= options.minutes) {
    say(`${name} is left out: the time is over`)
    continue
  }
  process.stderr.write(`\n━━ ${name} (${index + 1} of ${chosen.length}, after ${minutes.toFixed(1)} min)\n`)
  const json = saved.path(`${index}.json`)
  const words: string[] = []
  if (!('seconds' in suite)) words.push(suite.flags)
  else if (options.minutes !== undefined) {
    // Of the time that is left: a suite that needed less leaves it to the others.
    const part = suite.seconds / secondsOf(chosen.slice(index))
    words.push(suite.inTime ?? '', '--minutes', Math.max(0.05, (options.minutes - minutes) * part).toFixed(2))
  }
  const more = words.join(' ').split(' ').filter(Boolean)
  if ('seconds' in suite) more.push(...shared, '--json', json)
  running = Bun.spawn(
    [...(hasNetworks ? inNetwork : []), 'bun', join(import.meta.dir, 'suites', file), ...more],
    {
      stdio: ['ignore', 'inherit', 'inherit'],
      detached: true,
    },
  )
  const code = await running.exited
  if (code !== 0) failed.push(`error: ${name} ended with ${code}`)
  if (await Bun.file(json).exists()) results.push(...(await readRun(json)).suites)
  if (target !== undefined) await writeRun(target, merged(earlier, results))
}
for (const line of failed) console.error(line)
process.exit(interrupted ? 130 : failed.length > 0 ? 1 : 0)

/** Flags of this program, which each suite gets with values of its own. */
function isOwn(word: string, before: string | undefined): boolean {
  return (
    [word, before].some(one => /^--(?:json|minutes)$/.test(one ?? '')) || /^--(?:json|minutes)=/.test(word)
  )
}

/** One row of each way through ours, against the saved run: a build that got slow fails. */
async function gateFlags(): Promise<string> {
  const { version } = (await Bun.file(join(import.meta.dir, '../package.json')).json()) as { version: string }
  const saved = join(import.meta.dir, `results/${version}.json`)
  return `--gate ${saved} --rounds 3 --seconds 0.4 --only t1,t10,post,tls50 --peers nginx-hop,nginx-tls,ours-cli`
}

/** In the order of the list above. */
function merged(old: readonly SuiteResult[], now: readonly SuiteResult[]): readonly SuiteResult[] {
  const all = new Map([...old, ...now].map(one => [`${one.suite}.ts`, one]))
  return SUITES.flatMap(({ file }) => all.get(file) ?? [])
}
