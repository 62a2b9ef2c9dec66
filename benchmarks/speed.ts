// How fast ordinary work goes through every tunnel: `bun benchmarks/speed.ts [--only t50] [--peers ours,rathole]`.
//
//   bun benchmarks/peers/install.ts     once: builds the peers
//   bun benchmarks/speed.ts --accelerator --peers ours,ours-cli,rathole,bore,frp,nginx-tls,direct
//                                       the rows with goals, for the library and the command line, accelerator on and off
//
// A row is data: its requests, how many visitors at a time, its figures, what is to be reached. One row alone takes
// about a minute with all tunnels, and seconds with two.

import { h2load } from './load/h2load.ts'
import { keepBusy, run } from './load/load.ts'
import {
  BROWSER,
  CHUNKED,
  get,
  IN_TWO_SEGMENTS,
  ONE_POST_IN_TEN,
  POSTS,
  post,
  SERVER_SENT,
  SITE,
  SMALL,
  WEBSOCKET,
} from './load/traffic.ts'
import { watchedGet } from './load/watched.ts'
import { COLUMNS, loadRow, observe } from './measure/load-rows.ts'
import { peakBytes } from './measure/proc.ts'
import { column, type Goal } from './measure/result.ts'
import { type Figures, measure, type Row, type Scene, type Stage } from './measure/rounds.ts'
import { conclude, isQuick, options, seconds, unlessQuick } from './measure/suite.ts'
import { summary } from './measure/summary.ts'
import { FILE_SIZES, fileBytes } from './origin/files.ts'
import { behindNginx, caddyTls, carrierBehindNginx, nginxTls } from './peers/floors.ts'
import { ACCELERATOR_OFF, ALL, choose, FLOORS, OURS } from './peers/list.ts'
import { ours, oursCli, oursCliTls, oursJson, oursLibrary, oursTerminal, oursTls } from './peers/ours.ts'
import type { Peer } from './peers/peer.ts'
import { bore, frpBest, frpMux, frpStock, ratholeBest, ratholeTls } from './peers/tcp.ts'

const MB = 1_048_576
const atLeast = (key: string, reach: number, against?: string): Goal => ({
  key,
  reach,
  ...(against && { against }),
})
const atMost = atLeast
const RATE = atLeast('rps', 1.15)
const CPU = atMost('cpu', 0.8)

/** The JSON wire collects an answer whole, and refuses larger ones: that is documented and no failure. */
const notJson = (peer: Peer): string | undefined =>
  peer === oursJson ? 'its wire carries up to 50 MB' : undefined

const small = (id: string, connections: number, ...goals: readonly Goal[]): Row =>
  loadRow({
    id,
    title: `GET 20 B, ${connections} connection${connections === 1 ? '' : 's'}`,
    columns: connections === 1 ? COLUMNS.latency : COLUMNS.rate,
    exchanges: SMALL,
    connections,
    goals,
  })
const sized = (id: string, file: string, title: string, ...goals: readonly Goal[]): Row =>
  loadRow({
    id,
    title: `GET ${title}, 10 connections`,
    columns: COLUMNS.sized,
    exchanges: [get(file)],
    connections: 10,
    goals,
  })
const fixed = (id: string, rate: number, connections: number, ...goals: readonly Goal[]): Row =>
  loadRow({
    id,
    title: `GET 20 B, ${rate.toLocaleString('en-US')} a second on ${connections} connections`,
    columns: COLUMNS.fixed,
    exchanges: SMALL,
    connections,
    goals,
    // In less, p99 at 400/s and p99.9 at 4,000/s are those of a handful of requests.
    more: { rate, seconds: Math.max(seconds, unlessQuick(Math.min(3, 12_000 / rate), 0.2)) },
  })

/** Asked of all: as shipped and with the best options, with each wire, behind each reverse proxy. */
const OF_ALL: readonly Row[] = [
  small('t50', 50, RATE, CPU),
  sized('64k10', '64k', '64 KB', atLeast('mbps', 1.05)),
]

const CLASSIC: readonly Row[] = [
  small('t1', 1, atMost('p50', 0.9, 'rathole'), atMost('cpu', 1.2, 'rathole')),
  small('t10', 10, RATE),
  small('t100', 100, RATE, CPU),
  small('t500', 500, RATE),
  small('t1000', 1_000),
  sized('1k10', '1k', '1 KB'),
  sized('10k10', '10k', '10 KB'),
  sized('100k10', '100k', '100 KB'),
  sized('1m10', '1m', '1 MB', atLeast('mbps', 1.05)),
  sized('10m10', '10m', '10 MB'),
  fixed('r4000', 4_000, 50, atMost('p50', 1), atMost('p99', 1)),
]

/** Longer ones, and those that differ little between rounds. */
const FURTHER: readonly Row[] = [
  loadRow({
    id: 'new10',
    title: 'A new connection for every request, 10 at a time',
    columns: COLUMNS.rate,
    exchanges: SMALL,
    connections: 10,
    more: { reconnect: true },
  }),
  fixed('r400', 400, 4, { key: 'cpu', reach: 1, limit: 150 }),
  fixed('r1000', 1_000, 50, atMost('p50', 1), atMost('p99', 1)),
  fixed('r16000', 16_000, 50),
  bulk('down', '100 MB down, one stream', [get('100m')], 1),
  bulk(
    'up',
    '100 MB up, one stream',
    [{ ...post(0), body: '100m', answer: Buffer.from(String(100 * MB)) }],
    1,
  ),
  {
    id: 'beside',
    title: '20 B at 500 a second, alone and beside a download of 100 MB',
    columns: [
      column('p99Beside', 'p99 beside', 'ms', 'lower'),
      column('p99Alone', 'p99 alone', 'ms', 'lower'),
      // Who is slow alone has a small one.
      column('factor', 'p99 beside ÷ alone', '', 'neither'),
    ],
    excludes: notJson,
    take: beside,
  },
  watched('first10m', '10 MB answer, looked at closely', '10m', 0),
  watched(
    'slow100m',
    '100 MB to a visitor that stops reading for a second',
    unlessQuick('100m', '10m'),
    1_000,
  ),
]

function bulk(id: string, title: string, exchanges: typeof SMALL, connections: number): Row {
  return loadRow({ id, title, columns: COLUMNS.bulk, exchanges, connections, excludes: notJson })
}

/** At 50 connections, as people use it. */
const real = (id: string, title: string, exchanges: typeof SMALL, reach: number): Row =>
  loadRow({ id, title, columns: COLUMNS.rate, exchanges, connections: 50, goals: [atLeast('rps', reach)] })

const REAL: readonly Row[] = [
  real('browser', 'GET as a browser sends it, with cookies', BROWSER, 1.1),
  real('post', 'POST of 100 B', POSTS, 1.1),
  real('post10', 'One POST in ten', ONE_POST_IN_TEN, 1.1),
  real('site', 'A site: 20 B six times, 1 KB three times, 100 KB once', SITE, 1.1),
  real('two', 'Head and body in two segments (nginx as shipped)', IN_TWO_SEGMENTS, 1.1),
  loadRow({
    id: 'upload',
    title: 'POST of 1 MB, 10 connections',
    columns: COLUMNS.sized,
    exchanges: [{ ...post(0), body: '1m', answer: Buffer.from(String(MB)) }],
    connections: 10,
  }),
]

const APPS: readonly Row[] = [
  real('node', 'An app on Node, 20 B', [get('20', 'node')], 1),
  real('node2', 'An app on Node that sends its head first', [{ ...get('20', 'node'), path: '/two' }], 1.1),
  real('chunked', 'An app on Node that writes 1 KB in eight chunks', CHUNKED, 1),
  real('go', 'An app on Go, 20 B', [get('20', 'go')], 1),
  real('bun', 'An app on Bun, 20 B', [get('20', 'bun')], 1),
  loadRow({
    id: 'events',
    title: 'Server-sent events: streams of 20, one write each, 50 visitors',
    columns: COLUMNS.rate,
    exchanges: SERVER_SENT,
    connections: 50,
    excludes: peer => (peer === oursJson ? 'its wire carries whole answers only' : undefined),
  }),
  loadRow({
    id: 'websocket',
    title: 'WebSocket messages of 100 B there and back, 50 visitors',
    columns: COLUMNS.rate,
    exchanges: [],
    connections: 50,
    more: { messages: WEBSOCKET },
    excludes: ({ name }) =>
      /^(ours-json|localtunnels-0.2)$/.test(name) ? 'its wire carries no WebSockets' : undefined,
  }),
]

const COLD: readonly Row[] = [
  loadRow({
    id: 't1cold',
    title: 'GET 20 B, 1 connection, right after the start',
    columns: COLUMNS.latency,
    exchanges: SMALL,
    connections: 1,
    goals: [atMost('p50', 0.9, 'rathole')],
    cold: true,
  }),
  loadRow({
    id: 'upcold',
    title: '100 MB up on a fresh tunnel',
    columns: COLUMNS.bulk,
    exchanges: [{ ...post(0), body: '100m', answer: Buffer.from(String(100 * MB)) }],
    connections: 1,
    goals: [atLeast('mbps', 1.1)],
    // The first one alone.
    more: { passes: 1, seconds: 20 },
    cold: true,
    excludes: notJson,
  }),
]

const TWENTY = fileBytes(20)
const RATHOLE_BEHIND_NGINX = 'nginx-tls+rathole'
/** HTTP/2 and, right behind it, HTTP/1.1 with as many requests at once. */
async function byHttp2(scene: Scene): Promise<Figures> {
  const { endpoints } = scene.tunnel
  const { path } = SMALL[0]!
  let rate = { rps: 0, ok: 0, failed: 0 }
  const figures = await observe(scene, async () => {
    const began = performance.now()
    rate = await h2load(endpoints.files!, path, TWENTY, { connections: 10, streams: 10, seconds })
    const took = (performance.now() - began) / 1_000
    const none = { mean: 0, p50: 0, p90: 0, p95: 0, p99: 0, p999: 0, max: 0, cpuSeconds: 0, bytes: 0 }
    return { ...none, ok: rate.ok, failed: 0, wrong: 0, seconds: took, failure: '' }
  })
  const { ok, seconds: lasted } = await run(endpoints, { exchanges: SMALL, connections: 100, seconds })
  const rps1 = ok / lasted
  return { rps: rate.rps, rps1, factor: rate.rps / rps1, cpu: figures.cpu ?? 0, failed: rate.failed }
}

const HTTP2: Row = {
  id: 'h2',
  title: 'Visitors by HTTP/2 over TLS, 20 B, 10 connections with 10 requests at once',
  columns: [
    column('rps', 'requests', '/s', 'higher'),
    column('rps1', 'HTTP/1.1, 100 connections', '/s', 'higher'),
    column('factor', 'HTTP/2 ÷ HTTP/1.1', '', 'higher'),
    column('cpu', 'CPU, both ends', 'µs a request', 'lower'),
    column('failed', 'failed', '%', 'neither'),
  ],
  goals: [
    atLeast('rps', 1, 'nginx-tls'),
    atLeast('rps', 1, 'caddy-tls'),
    { key: 'factor', reach: 1, limit: 0.9 },
  ],
  note: 'The generator is h2load. nginx has one process; it and caddy stand in front of the app, without a tunnel.',
  // What its code does is compiled then.
  check: async ({ tunnel }) => {
    const load = { connections: 10, streams: 10, seconds: 1 }
    await h2load(tunnel.endpoints.files!, SMALL[0]!.path, TWENTY, load)
  },
  take: byHttp2,
}

const TLS: readonly Row[] = [
  loadRow({
    id: 'tls50',
    title: 'Visitors by TLS, 20 B, 50 connections',
    columns: COLUMNS.rate,
    exchanges: SMALL,
    connections: 50,
    goals: [atLeast('rps', 1.6, RATHOLE_BEHIND_NGINX), atLeast('rps', 0.7, 'nginx-tls')],
    note: 'ours: TLS at the server, also for the carrier. direct: none.',
  }),
  loadRow({
    id: 'tlssite',
    title: 'Visitors by TLS, a site, 50 connections',
    columns: COLUMNS.rate,
    exchanges: SITE,
    connections: 50,
  }),
]
/** Of every length that a page is made of: no cliff may be between them. */
const LENGTHS = ['2k', '4k', '8k', '16k', '24k', '32k', '48k', '64k', '100k', '256k', '1m']
const lengths = (id: string, title: string, files: readonly string[]): Row[] =>
  files.flatMap(file =>
    [10, 50].map(connections =>
      loadRow({
        id: `${id}${file}x${connections}`,
        title: `${title}, ${file.replace('k', ' KB').replace('m', ' MB')}, ${connections} connections`,
        columns: COLUMNS.sized,
        exchanges: [get(file)],
        connections,
        goals: [atLeast('mbps', 1)],
      }),
    ),
  )
/** The same while one loop for each core never waits. */
const BUSY: readonly Row[] = [
  small('busy1', 1, atLeast('rps', 1)),
  small('busy10', 10, atLeast('rps', 1)),
  small('busy50', 50, atLeast('rps', 1)),
  ...lengths('busy', 'GET', ['16k']),
].map(row => ({
  ...row,
  title: `${row.title}, beside one busy loop per core`,
  take: async (scene: Scene) => {
    const loops = Array.from({ length: navigator.hardwareConcurrency }, () =>
      Bun.spawn(['bun', '-e', 'for (const end = Date.now() + 60_000; Date.now() < end; );']),
    )
    try {
      return await row.take(scene)
    } finally {
      for (const loop of loops) loop.kill()
    }
  },
}))
const oursOrdinary: Peer = ours('ours-ordinary', 'a path with an app of its own: no lanes', { route: true })
const TLS_CARRIER: readonly Row[] = [
  loadRow({
    id: 'carriertls',
    title: 'Carrier by TLS, visitors in the clear, 20 B, 50 connections',
    columns: COLUMNS.rate,
    exchanges: SMALL,
    connections: 50,
    goals: [atLeast('rps', 1)],
  }),
]
const OPTIONS_ROW: readonly Row[] = [
  loadRow({
    id: 'options',
    title: 'Options of ours: GET 20 B from an app on Bun, 50 connections',
    columns: COLUMNS.rate,
    exchanges: [get('20', 'bun')],
    connections: 50,
    goals: [atLeast('rps', 0.85, 'ours')],
  }),
]
const services = (scene: Scene): typeof SMALL =>
  Object.keys(scene.tunnel.endpoints).map(to => ({ ...get('20'), to }))
const SERVICES: readonly Row[] = [
  loadRow({
    id: 'services',
    title: 'Many services of one client, another Host with each request, 50 connections',
    columns: COLUMNS.rate,
    exchanges: services,
    connections: 50,
    goals: [atLeast('rps', 0.9, 'ours-1')],
  }),
]
const many = (count: number, cli: 'piped' | undefined): Peer =>
  ours(cli ? `ours-cli-${count}` : `ours-${count}`, `${count} services`, {
    services: count,
    ...(cli && { cli }),
  })

const off = options.accelerator ? ACCELERATOR_OFF : []
const everybody = [
  ...FLOORS,
  ...OURS,
  oursTerminal,
  ...off,
  ...ALL.filter(({ role }) => role === 'peer'),
  oursJson,
]
/** Each program once, with its best options, and frp in all its ways. */
const best = everybody.filter(
  ({ name }) => !/-stock$|-tty$|^haproxy|^caddy|^ours-json$|^localtunnels/.test(name),
)
const fast = [FLOORS[0]!, ...OURS, ...off, ratholeBest, bore, frpBest, frpMux]

const STAGES: readonly Stage[] = [
  { origins: ['files'], peers: everybody, rows: OF_ALL, warmUp },
  { origins: ['files', 'sink'], peers: best, rows: [...CLASSIC, ...FURTHER.map(inFewRounds)], warmUp },
  { origins: ['files', 'sink', 'split'], peers: best, rows: REAL, warmUp },
  { origins: ['node', 'go', 'bun'], peers: best, rows: APPS.map(inFewRounds), warmUp: warmApps },
  { origins: ['files', 'sink'], peers: fast, rows: COLD.map(inFewRounds) },
  {
    origins: ['files'],
    peers: [
      nginxTls,
      oursTls,
      oursCliTls,
      behindNginx(oursLibrary, 'nginx-tls+ours'),
      behindNginx(ratholeBest, RATHOLE_BEHIND_NGINX),
      behindNginx(frpBest, 'nginx-tls+frp'),
    ],
    rows: [...TLS, ...lengths('tls', 'Visitors by TLS', ['16k', '64k']).map(inFewRounds)],
    warmUp,
  },
  {
    origins: ['files'],
    peers: [FLOORS[0]!, oursOrdinary, oursLibrary, frpBest],
    rows: lengths('len', 'GET', LENGTHS).map(inFewRounds),
    warmUp,
  },
  {
    origins: ['files'],
    peers: [FLOORS[0]!, oursOrdinary, oursLibrary, ratholeBest, frpBest],
    rows: BUSY.map(inFewRounds),
    warmUp,
  },
  {
    origins: ['files'],
    peers: [nginxTls, caddyTls, oursTls, oursCliTls],
    rows: Bun.which('h2load') === null ? [] : [HTTP2],
    warmUp,
  },
  {
    origins: ['files'],
    peers: [
      FLOORS[0]!,
      carrierBehindNginx(oursLibrary, 'ours'),
      carrierBehindNginx(ours('ours-cli', 'command line', { cli: 'piped', insecure: true }), 'ours-cli'),
      ratholeTls,
      frpStock,
    ],
    rows: TLS_CARRIER,
    warmUp,
  },
  {
    origins: ['bun', 'https'],
    peers: [
      oursLibrary,
      oursCli,
      ours('ours-pool', 'two clients share the name', { pool: true }),
      ours('ours-route', 'a path with an app of its own', { route: true }),
      ours('ours-https-app', 'the app speaks TLS', { httpsApp: true }),
      ours('ours-cli-pool', '--pool', { pool: true, cli: 'piped' }),
      ours('ours-cli-route', '--route', { route: true, cli: 'piped' }),
      ours('ours-cli-https-app', 'https://127.0.0.1:PORT', { httpsApp: true, cli: 'piped' }),
    ],
    rows: OPTIONS_ROW,
  },
  {
    origins: ['files'],
    peers: [undefined, 'piped' as const].flatMap(cli =>
      unlessQuick([1, 100, 1_000], [1, 100]).map(count => many(count, cli)),
    ),
    rows: SERVICES,
  },
]

function inFewRounds(row: Row): Row {
  return { ...row, atMost: 3 }
}

/** Rows of which a smoke run has one of each kind. */
const SMOKE_ROWS =
  't1 t50 64k10 r1000 up beside first10m post10 two node websocket events t1cold tls50 carriertls services'.split(
    ' ',
  )

/** Stages of more tunnels than this get only a few of them in a smoke run. */
const MANY = 8
const known = [...new Set(STAGES.flatMap(({ peers }) => peers))]
const stages = STAGES.map(stage => ({
  ...stage,
  rows: isQuick && !options.only ? stage.rows.filter(({ id }) => SMOKE_ROWS.includes(id)) : stage.rows,
  peers: chosen(stage.peers),
}))
const { tables, versions } = await measure(stages)
console.log(`\n${summary(tables)}`)
await conclude('speed', 'Speed', tables, versions)

/** A stage of ours alone is wanted where ours is; in a smoke run small stages keep all their tunnels. */
function chosen(peers: readonly Peer[]): readonly Peer[] {
  const isOursAlone = peers.every(({ role }) => role === 'ours')
  const names = isOursAlone && options.peers?.includes('ours') ? undefined : options.peers
  return choose(peers, { names, quick: isQuick && peers.length > MANY, known })
}
/** A tunnel serves for days. Few visitors may go another way than many. */
async function warmUp({ tunnel }: Scene): Promise<void> {
  const lasts = unlessQuick(options.minutes === undefined ? 1.5 : 0.7, 0.1)
  for (const connections of [50, 4])
    await run(tunnel.endpoints, { exchanges: SMALL, connections, seconds: lasts })
}

/** The apps are compiled as they run, too: the first tunnel must not pay for all. */
async function warmApps({ tunnel, peer }: Scene): Promise<void> {
  for (const to of peer.name === 'direct' ? ['node', 'go', 'bun'] : ['bun']) {
    await run(tunnel.endpoints, {
      exchanges: [get('20', to)],
      connections: 50,
      seconds: unlessQuick(1.5, 0.2),
    })
  }
}

async function beside(scene: Scene): Promise<Figures> {
  const { endpoints } = scene.tunnel
  const load = {
    exchanges: SMALL,
    connections: 10,
    rate: 500,
    seconds: Math.max(seconds, unlessQuick(2.5, 0.2)),
  }
  const alone = await observe(scene, () => run(endpoints, load))
  const download = await keepBusy(endpoints, {
    exchanges: [get('100m')],
    connections: 1,
    seconds: 60,
    warm: 0,
  })
  const busy = await observe(scene, () => run(endpoints, load)).finally(download.end)
  return { p99Alone: alone.p99!, p99Beside: busy.p99!, factor: busy.p99! / alone.p99! }
}

function watched(id: string, title: string, file: string, pauseMs: number): Row {
  return {
    id,
    title,
    columns: [
      column('firstByte', 'first byte', 'ms', 'lower'),
      column('total', 'total', 'ms', 'lower'),
      column('peak', 'peak, both ends', 'MB', 'lower'),
    ],
    excludes: file === '100m' ? notJson : () => undefined,
    async take({ tunnel }) {
      const { server, client } = tunnel.processes
      const { status, firstByteMs, totalMs, bytes, isRight } = await watchedGet(
        tunnel.endpoints.files!,
        `/${file}`,
        fileBytes(FILE_SIZES[file]!),
        pauseMs,
      )
      if (status !== 200 || !isRight) throw new Error(`status ${status}, ${bytes} bytes, or wrong ones`)
      return { firstByte: firstByteMs, total: totalMs, peak: peakBytes([...server, ...client]) / 1e6 }
    },
  }
}
