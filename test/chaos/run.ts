// A cluster under faults, beside visitors whose every byte is checked: `bun test/chaos/run.ts`.
//
//   --minutes N      how long faults happen (default 10)
//   --seed S         which ones, when, and to what (default: any, printed)
//   --redis NAME     redis-server (default) or valkey-server
//   --only WORDS     faults whose titles contain the words
//   --quick          half a minute, faults that take seconds, six clients
//   --write          put the table into docs/cluster.md
//   --verbose        what the processes say, and each failure
//
// Three servers, a Redis and 50 clients in processes of their own, each server in a network namespace of its own: with root and `ip`;
// else nothing is cut, which is said. Exits with 1 when an answer was wrong, looked complete and was not, or failed where docs/cluster.md
// does not say that it may; when a process died that nobody ended, a name is held twice at the end, or anything is left.

import { join } from 'node:path'
import { interrupted } from '../../benchmarks/measure/children.ts'
import { environment } from '../../benchmarks/measure/environment.ts'
import { readFlags } from '../../benchmarks/measure/flags.ts'
import { figure } from '../../benchmarks/measure/samples.ts'
import { table } from '../../benchmarks/measure/table.ts'
import { Random } from '../support/random.ts'
import { census } from './census.ts'
import { FAULTS, type Occurrence } from './faults.ts'
import { judge, recovery, type Verdict } from './judge.ts'
import { now, Scene } from './scene.ts'

const options = readFlags(
  import.meta.path,
  {
    minutes: { type: 'string' },
    seed: { type: 'string' },
    redis: { type: 'string', default: 'redis-server' },
    only: { type: 'string' },
    quick: { type: 'boolean', default: false },
    write: { type: 'boolean', default: false },
    verbose: { type: 'boolean', default: false },
  },
  ['minutes', 'seed'],
)
const minutes = Number(options.minutes ?? (options.quick ? 0.4 : 10))
const seed = Number(options.seed ?? Math.floor(Math.random() * 1e6))
if (!(minutes > 0) || !Number.isInteger(seed)) refuse('--minutes is a number above 0, --seed a whole number')
if (Bun.which(options.redis) === null)
  refuse(`${options.redis} is not installed: apt-get install ${options.redis}`)

/** Without faults, before the first and behind each. */
const QUIET_MS = 2_000
const SLACK_MS = 250
/** A machine of CI stands still for seconds now and then: a smoke run judges answers, and hardly times. */
const QUICK_SLACK_MS = 5_000
const PAGE = join(import.meta.dir, '../../docs/cluster.md')
const PLACE = /(<!-- chaos: [^\n]*-->\n)[\s\S]*(<!-- end of chaos -->)/

function refuse(why: string): never {
  console.error(`error: ${why}`)
  process.exit(2)
}

const random = new Random(seed)
const scene = await Scene.start({
  clients: options.quick ? 6 : 50,
  groups: options.quick ? 2 : 5,
  seed,
  rate: options.quick ? 30 : 40,
  keeping: 12,
  redis: options.redis,
  verbose: options.verbose,
})
if (scene.places.missing !== undefined) console.error(`nothing is cut off: ${scene.places.missing}`)
const usable = FAULTS.filter(
  ({ title, cuts, isShort }) =>
    (!cuts || scene.places.missing === undefined) &&
    (!options.quick || isShort) &&
    title.includes(options.only ?? ''),
)
if (usable.length === 0) refuse(`no fault is called ${options.only}`)

const occurrences: Occurrence[] = []
const began = now()
const end = began + minutes * 60_000
/** All of them come in turn, in another order each time. */
let deck: (typeof FAULTS)[number][] = []
const broken: string[] = []
await Bun.sleep(QUIET_MS)
while (now() < end && !interrupted.aborted && broken.length === 0) {
  if (deck.length === 0) deck = shuffled(usable)
  const fault = deck.pop()!
  const from = now()
  try {
    const done = await fault.run(scene, random)
    occurrences.push({ fault, from, ...done })
    say(`${fault.title}: ${done.what}`, from, done.until)
    await Bun.sleep(Math.max(0, done.until - now()) + QUIET_MS)
  } catch (error) {
    broken.push(`${fault.title}: ${error instanceof Error ? error.message : String(error)}`)
  }
}
await scene.endVisits()
broken.push(...(await census(scene)))
await scene.close()
broken.push(...scene.deaths)

const verdict = judge({
  visits: scene.visits,
  occurrences,
  slackMs: options.quick ? QUICK_SLACK_MS : SLACK_MS,
})
const text = tableOf(verdict)
const right = scene.visits.filter(({ judgement }) => judgement === 'right').length
console.log(`\n${text}\n`)
const summary =
  `Seed ${seed}, ${((now() - began) / 60_000).toFixed(1)} min, ${occurrences.length} faults, ${count(scene.visits.length)} requests, ` +
  `${count(right)} right: ${verdict.wrong.length} wrong, ${verdict.truncated.length} cut short that looked complete, ` +
  `${verdict.unexplained.length} failed outside of the times above`
console.log(summary)
for (const visit of [...verdict.wrong, ...verdict.truncated, ...verdict.unexplained].slice(
  0,
  options.verbose ? undefined : 20,
))
  explain(visit)
for (const what of broken) console.log(`✗ ${what}`)
const isHarmless =
  broken.length + verdict.wrong.length + verdict.truncated.length + verdict.unexplained.length === 0 &&
  right > 0
if (options.write && isHarmless) await write()
process.exit(interrupted.aborted ? 130 : isHarmless ? 0 : 1)

function shuffled<Of>(all: readonly Of[]): Of[] {
  const left = [...all]
  const order: Of[] = []
  while (left.length > 0) order.push(...left.splice(random.below(left.length), 1))
  return order
}

function say(what: string, from: number, until: number): void {
  const of = (time: number): string => `${((time - began) / 1_000).toFixed(1)} s`
  console.error(`${of(from)} to ${of(until)}: ${what}`)
}

function explain({ kind, name, server, begin, end: ended, judgement }: (typeof scene.visits)[number]): void {
  const of = (time: number): string => ((time - began) / 1_000).toFixed(1)
  const holder = scene.holderOf(name, begin)
  console.log(
    `✗ ${kind} ${name} (${holder}) by server ${server}, ${of(begin)} to ${of(ended)} s: ${judgement}`,
  )
}

function count(value: number): string {
  return value.toLocaleString('en-US')
}

function tableOf({ rows }: Verdict): string {
  const head = [
    'what happens',
    'times',
    'may fail',
    'requests',
    'failed',
    'recovered after, s',
    'longest, s',
    'failed outside',
  ]
  const order = FAULTS.flatMap(fault => rows.find(row => row.fault === fault) ?? [])
  return table(
    head,
    order.map(row => {
      const [median, longest] = recovery(row)
      const figures = [row.requests, row.failed].map(count)
      return [
        row.fault.title,
        `${row.times}`,
        row.fault.allowed,
        ...figures,
        figure(median),
        figure(longest),
        `${row.outside}`,
      ]
    }),
  )
}

async function write(): Promise<void> {
  const page = await Bun.file(PAGE).text()
  if (!PLACE.test(page)) throw new Error('docs/cluster.md has no place for the table')
  const { cpu, cores, bun } = await environment()
  const where = `${new Date().toISOString().slice(0, 10)}, ${cores} cores (${cpu}), Bun ${bun}. ${summary}.`
  await Bun.write(
    PAGE,
    page.replace(PLACE, (_, first: string, last: string) => `${first}\n${where}\n\n${text}\n\n${last}`),
  )
}
