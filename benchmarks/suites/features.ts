// What optional features cost, each alone and those of an operator together; the inspector with every kind of load.
// `bun benchmarks/index.ts features`

import { Redis } from '../../test/support/redis.ts'
import { get, post, SMALL } from '../load/traffic.ts'
import { COLUMNS, loadRow } from '../measure/load-rows.ts'
import { column } from '../measure/result.ts'
import { measure, type Row } from '../measure/rounds.ts'
import { conclude, options, unlessQuick } from '../measure/suite.ts'
import { summary } from '../measure/summary.ts'
import { FEATURES } from '../ours/features.ts'
import { ALL, choose } from '../peers/list.ts'
import { ours, oursLibrary } from '../peers/ours.ts'
import type { Peer } from '../peers/peer.ts'

const PEAK = column('peakMb', 'peak, both ends', 'MB', 'lower')
const redis = Bun.which('redis-server') === null ? undefined : await Redis.start('redis-server')
// `conclude` ends the program, also behind Ctrl+C.
process.on('exit', () => void redis?.kill())
if (redis === undefined)
  console.error('note: redis-server is not installed, so the rate limit in Redis is not measured')
const REDIS = 'rate limit (Redis)'
const isMeasured = (name: string) => name !== REDIS || redis !== undefined

const built = FEATURES.filter(({ name }) => isMeasured(name)).map(({ name }) => name)
/** What tells an operator what happens. */
const OBSERVABILITY = ['access log', 'metrics', 'correlation ids']
/** What an operator switches on; the others are a client's own wish. */
const ofServer = FEATURES.filter(({ name, at }) => at === 'server' && isMeasured(name)).map(
  ({ name }) => name,
)
const withFeatures = (name: string, features: readonly string[]): Peer =>
  ours(name, `library with ${features.join(', ')}`, {
    env: { BENCH_FEATURES: features.join(';'), BENCH_REDIS: redis?.url ?? '' },
  })

const ALONE: Row = loadRow({
  id: 'features',
  title: 'Features, GET 20 B, 50 connections',
  columns: [...COLUMNS.rate, PEAK],
  exchanges: SMALL,
  connections: 50,
  note: '`ours` has none of them. Retries where safe are always on, in `ours`, too. The access log goes to /dev/null; nobody reads the metrics.',
})

const INSPECTED =
  'The inspector captures 50 requests a second behind a burst of 1,000; `ours-every` captures all of them.'
const MB = 1_048_576
const inspected: readonly Row[] = [
  loadRow({
    id: 'inspected1',
    title: 'Inspector, GET 20 B, 1 connection',
    columns: [...COLUMNS.latency, PEAK],
    exchanges: SMALL,
    connections: 1,
    note: INSPECTED,
  }),
  loadRow({
    id: 'inspected64k',
    title: 'Inspector, GET 64 KB, 10 connections',
    columns: [...COLUMNS.sized, PEAK],
    exchanges: [get('64k')],
    connections: 10,
  }),
  loadRow({
    id: 'inspectedDown',
    title: 'Inspector, GET 100 MB, 1 connection',
    columns: [...COLUMNS.bulk, PEAK],
    exchanges: [get(unlessQuick('100m', '10m'))],
    connections: 1,
    note: 'A body past what is kept of it is not looked at any more: the accelerator moves it.',
  }),
  loadRow({
    id: 'inspectedUp',
    title: 'Inspector, POST 100 MB, 1 connection',
    columns: [...COLUMNS.bulk, PEAK],
    exchanges: [{ ...post(0), body: '100m', answer: Buffer.from(String(100 * MB)) }],
    connections: 1,
  }),
]

const alone: readonly Peer[] = [
  oursLibrary,
  ...built.map(name => withFeatures(name, [name])),
  withFeatures('ours-observed', OBSERVABILITY),
  withFeatures('ours-all', ofServer),
]
const beside: readonly Peer[] = [
  oursLibrary,
  withFeatures('ours-inspected', ['inspector']),
  withFeatures('ours-every', ['inspector of every request']),
]
const chosen = (peers: readonly Peer[]): readonly Peer[] =>
  choose(peers, { names: options.peers, quick: false, known: [...ALL, ...alone, ...beside] })
const { tables } = await measure([
  { origins: ['files'], peers: chosen(alone), rows: [ALONE] },
  { origins: ['files', 'sink'], peers: chosen(beside), rows: inspected },
])
console.log(`\n${summary(tables)}`)
await conclude('features', 'Features', tables)
