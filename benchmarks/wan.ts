// The tunnel over a long road: 100 ms there and back, 100 Mbit/s, with 1 % of the packets lost and without.
// `bun benchmarks/wan.ts [--rounds 3] [--seconds 5] [--congestion cubic] [--loss 0.01] [--only down]`, as root, on Linux.
//
// Plain TCP is a visitor who reaches the origin over the same road without any tunnel. Rounds are interleaved.

import { parseArgs } from 'node:util'
import { figure, median, percentile, spread, summarize } from './measure/samples.ts'
import { table } from './measure/table.ts'
import { CLIENT_ADDRESS, Road, SERVER_ADDRESS } from './wan/road.ts'

const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '3' },
    seconds: { type: 'string', default: '5' },
    congestion: { type: 'string' },
    loss: { type: 'string', multiple: true, default: ['0', '0.01'] },
    only: { type: 'string', multiple: true },
  },
})
const rounds = Number(values.rounds)
const ms = String(Number(values.seconds) * 1000)

const SUBJECTS = [
  ['plain TCP', `http://${CLIENT_ADDRESS}:3000`, 'origin'],
  ['tunnel', `http://${SERVER_ADDRESS}:8080`, 'app.localhost'],
  ['tunnel, no links', `http://${SERVER_ADDRESS}:8081`, 'app.localhost'],
] as const
const KINDS = ['small', 'down', 'up', 'beside'].filter(kind => values.only?.includes(kind) ?? true)

/** Everything is over by then, whatever hangs. */
const deadline = setTimeout(
  () => void stop('it took too long'),
  60_000 + values.loss.length * rounds * 12 * (Number(ms) + 8_000),
)
let road = new Road()
process.on('SIGINT', () => void stop('interrupted'))
process.on('SIGTERM', () => void stop('interrupted'))

try {
  for (const loss of values.loss.map(Number)) await measure(loss)
} finally {
  clearTimeout(deadline)
  await road.close()
}

async function measure(loss: number): Promise<void> {
  road = new Road()
  const results = new Map<string, number[][]>()
  try {
    await road.open({ rateMbit: 100, oneWayMs: 50, loss, congestion: values.congestion })
    await road.start('server', 'server.ts')
    await road.start('client', 'client.ts')
    for (let round = 0; round < rounds; round++) {
      for (const kind of KINDS) {
        for (const [name, url, host] of SUBJECTS) {
          const printed = await road.run(
            'server',
            'visitor.ts',
            kind,
            url,
            host,
            kind === 'small' ? '2000' : ms,
          )
          const result: unknown = JSON.parse(printed)
          const figures = Array.isArray(result) ? result.map(Number) : [Number(result)]
          const key = `${kind} ${name}`
          results.set(key, [...(results.get(key) ?? []), figures])
        }
      }
    }
  } finally {
    await road.close()
  }
  print(loss, results)
}

function print(loss: number, results: ReadonlyMap<string, readonly number[][]>): void {
  const of = (kind: string, name: string) => results.get(`${kind} ${name}`) ?? []
  const bulk = (kind: string, name: string) => summarize(of(kind, name).map(([rate = 0]) => (rate * 8) / 1e6))
  const times = (kind: string, name: string) =>
    of(kind, name)
      .flat()
      .toSorted((a, b) => a - b)
  console.log(`\n${loss * 100} % loss, ${rounds} rounds of ${values.seconds} s\n`)
  const share = (kind: string, name: string) =>
    `${Math.round((bulk(kind, name).median / bulk(kind, 'plain TCP').median) * 100)} %`
  console.log(
    table(
      ['', 'down, Mbit/s', 'of plain', 'up, Mbit/s', 'of plain', 'small, ms', 'beside bulk p50', 'p99'],
      SUBJECTS.map(([name]) => [
        name,
        spread(bulk('down', name)),
        share('down', name),
        spread(bulk('up', name)),
        share('up', name),
        figure(median(times('small', name))),
        figure(median(times('beside', name))),
        figure(percentile(times('beside', name), 99)),
      ]),
    ),
  )
}

async function stop(why: string): Promise<never> {
  console.error(why)
  await road.close()
  process.exit(1)
}
