// How fast ordinary work goes through every tunnel: `bun benchmarks/index.ts speed [--only t50] [--peers ours,rathole]`.
//
//   bun benchmarks/peers/install.ts     once: builds the peers
//   bun benchmarks/index.ts speed --peers ours,ours-off,ours-cli,ours-cli-off,rathole,bore,frp,nginx-tls,direct
//                                       the library and the command line, accelerator on and off
//
// A row is data: its requests, how many visitors at a time, its figures. One row alone takes about a minute with all
// tunnels, and seconds with two.

import { h2load } from '../load/h2load.ts'
import { keepBusy, type Load, run } from '../load/load.ts'
import {
  BROWSER,
  CHUNKED,
  CLOSING,
  get,
  IN_TWO_SEGMENTS,
  ONE_POST_IN_TEN,
  POSTS,
  post,
  SERVER_SENT,
  SITE,
  SMALL,
  WEBSOCKET,
} from '../load/traffic.ts'
import { watchedGet } from '../load/watched.ts'
import { launch } from '../measure/children.ts'
import { COLUMNS, type LoadRow, loadRow, observe } from '../measure/load-rows.ts'
import { cpuSeconds, forgetPeak, peakBytes } from '../measure/proc.ts'
import { column, type Path } from '../measure/result.ts'
import { type Figures, measure, type Row, type Scene, type Stage } from '../measure/rounds.ts'
import { conclude, isQuick, options, seconds, unlessQuick } from '../measure/suite.ts'
import { summary } from '../measure/summary.ts'
import { FILE_SIZES, fileBytes } from '../origin/files.ts'
import { scratch } from '../peers/binary.ts'
import { behindNginx, caddyTls, carrierBehindNginx, direct, nginxHop, nginxTls } from '../peers/floors.ts'
import { ACCELERATOR_OFF, ALL, choose, FLOORS, HTTP_PEERS, OURS } from '../peers/list.ts'
import {
  type OursOptions,
  ours,
  oursBinary,
  oursCliTls,
  oursJson,
  oursLibrary,
  oursTerminal,
  oursTls,
} from '../peers/ours.ts'
import type { Peer } from '../peers/peer.ts'
import { bore, frpBest, frpMux, frpStock, ratholeBest, ratholeTls } from '../peers/tcp.ts'

const MB = 1_048_576
/** The JSON wire collects an answer whole, and refuses larger ones: that is documented and no failure. */
const notJson = (peer: Peer): string | undefined =>
  peer === oursJson ? 'its wire carries up to 50 MB' : undefined

type Exchanges = LoadRow['exchanges']
function row(
  id: string,
  title: string,
  exchanges: Exchanges,
  connections: number,
  columns: LoadRow['columns'] = COLUMNS.rate,
  more: Partial<LoadRow> = {},
): Row {
  return loadRow({ id, title, columns, exchanges, connections, ...more })
}
const small = (id: string, connections: number, more: Partial<LoadRow> = {}): Row => {
  const title = `GET 20 B, ${connections} connection${connections === 1 ? '' : 's'}`
  return row(id, title, SMALL, connections, connections === 1 ? COLUMNS.latency : COLUMNS.rate, more)
}
const titleOf = (file: string): string => file.replace('k', ' KB').replace('m', ' MB')
const sized = (id: string, file: string, connections = 10, what = 'GET'): Row =>
  row(id, `${what} ${titleOf(file)}, ${connections} connections`, [get(file)], connections, COLUMNS.sized)
/** With `--minutes` without p99.9. */
const SAMPLES_AT_4_000 = options.minutes === undefined ? 10_500 : 4_800
const fixed = (rate: number, connections: number, more: Partial<Load> = {}): Row =>
  row(
    `r${rate}`,
    `GET 20 B, ${rate.toLocaleString('en-US')} a second on ${connections} connection${connections === 1 ? '' : 's'}`,
    SMALL,
    connections,
    COLUMNS.fixed,
    // As long as p99 needs, and p99.9 where that is possible in a few seconds.
    {
      more: {
        rate,
        seconds: Math.max(seconds, unlessQuick((rate < 4_000 ? 1_200 : SAMPLES_AT_4_000) / rate, 0.2)),
        ...more,
      },
    },
  )
const bulk = (id: string, title: string, exchanges: Exchanges, more: Partial<LoadRow> = {}): Row =>
  row(id, title, exchanges, 1, COLUMNS.bulk, { excludes: notJson, ...more })
const upload = (file: string, bytes: number): Exchanges => [
  { ...post(0), body: file, answer: Buffer.from(String(bytes)) },
]

/** Asked of all: as shipped and with the best options, with each wire, behind each reverse proxy. */
const OF_ALL: readonly Row[] = [small('t50', 50), sized('64k10', '64k')]

const CLASSIC: readonly Row[] = [
  ...[1, 10, 48, 100, 200].map(count => small(count === 48 ? 'w48' : `t${count}`, count)),
  ...['1k', '10k', '100k', '1m', '10m'].map(file => sized(`${file}10`, file)),
]

/** Longer ones, and those that differ little between rounds. */
const FURTHER: readonly Row[] = [
  row('new10', 'A new connection for every request, 10 at a time', SMALL, 10, COLUMNS.rate, {
    more: { reconnect: true },
  }),
  { ...fixed(1, 1, { seconds: unlessQuick(options.minutes === undefined ? 10 : 2, 1) }), atMost: 1 },
  small('t500', 500),
  small('t1000', 1_000),
  fixed(400, 4),
  ...[1_000, 2_000, 3_000, 4_000, 16_000].map(rate => fixed(rate, 50)),
  bulk('down', '100 MB down, one stream', [get('100m')]),
  bulk('up', '100 MB up, one stream', upload('100m', 100 * MB)),
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

/** At 50 connections, as people use it. */
const REAL: readonly Row[] = [
  row('browser', 'GET as a browser sends it, with cookies', BROWSER, 50),
  row('post', 'POST of 100 B', POSTS, 50),
  row('post10', 'One POST in ten', ONE_POST_IN_TEN, 50),
  row('site', 'A site: 20 B six times, 1 KB three times, 100 KB once', SITE, 50),
  row('two', 'Head and body in two segments (nginx as shipped)', IN_TWO_SEGMENTS, 50),
  row('upload', 'POST of 1 MB, 10 connections', upload('1m', MB), 10, COLUMNS.sized),
]

const echo = (file: string): Row =>
  row(
    `echo${file}`,
    `POST of ${titleOf(file)} that comes back, 10 connections`,
    [{ ...get(file, 'bun'), method: 'POST', path: '/echo', body: file }],
    10,
    COLUMNS.sized,
    // Ten at a time, each 10 MB there and back.
    { more: { timeoutMs: 30_000 } },
  )
const APPS: readonly Row[] = [
  row('node', 'An app on Node, 20 B', [get('20', 'node')], 50),
  row('node2', 'An app on Node that sends its head first', [{ ...get('20', 'node'), path: '/two' }], 50),
  row('chunked', 'An app on Node that writes 1 KB in eight chunks', CHUNKED, 50),
  row('go', 'An app on Go, 20 B', [get('20', 'go')], 50),
  row('bun', 'An app on Bun, 20 B', [get('20', 'bun')], 50),
  row(
    'events',
    'Server-sent events: streams of 20, one write each, 50 visitors',
    SERVER_SENT,
    50,
    COLUMNS.rate,
    {
      excludes: peer => (peer === oursJson ? 'its wire carries whole answers only' : undefined),
    },
  ),
  row('websocket', 'WebSocket messages of 100 B there and back, 50 visitors', [], 50, COLUMNS.rate, {
    more: { messages: WEBSOCKET },
    excludes: peer => (peer === oursJson ? 'its wire carries no WebSockets' : undefined),
  }),
  ...['1k', '10k', '100k', '1m', '10m'].map(echo),
]

const COLD: readonly Row[] = [
  row('t1cold', 'GET 20 B, 1 connection, right after the start', SMALL, 1, COLUMNS.latency, { cold: true }),
  // The first one alone.
  bulk('upcold', '100 MB up on a fresh tunnel', upload('100m', 100 * MB), {
    more: { passes: 1, seconds: 20 },
    cold: true,
  }),
]

/** A second of small requests under strace, which slows them down: calls for each, and what the time in the kernel goes to. */
const SYSTEM_CALLS: Row = {
  id: 'syscalls',
  title: 'System calls of both ends, GET 20 B, 50 connections, under strace',
  columns: [
    column('calls', 'calls a request', '', 'lower'),
    column('send', 'time in sends and writes', '%'),
    column('receive', 'in receives and reads', '%'),
    column('wait', 'in epoll', '%'),
    column('futex', 'in futex', '%'),
  ],
  path: 'ordinary',
  fresh: true,
  atMost: 1,
  excludes: ({ name }) => (name === 'direct' ? 'has no processes' : undefined),
  async take({ tunnel }: Scene): Promise<Figures> {
    const { server, client } = tunnel.processes
    const files = scratch('strace')
    const of = [...server, ...client].flatMap(pid => ['-p', String(pid)])
    const trace = await launch(['strace', '-f', '-c', '-o', files.path('calls'), ...of], {
      ready: /attached/,
    })
    const load = { exchanges: SMALL, connections: 50, seconds: Math.max(seconds, 1), timeoutMs: 20_000 }
    const { ok } = await run(tunnel.endpoints, load)
    process.kill(trace.pid, 'SIGINT')
    await trace.exited
    const lines = files.read('calls').matchAll(/^ *([\d.]+) +[\d.]+ +\d+ +(\d+) +(?:\d+ +)?(\w+)$/gm)
    const calls = [...lines].map(([, share, count, name = '']) => ({
      share: Number(share),
      count: Number(count),
      name,
    }))
    files.remove()
    const shareOf = (names: RegExp): number =>
      calls.reduce((sum, { share, name }) => sum + (names.test(name) ? share : 0), 0)
    return {
      calls:
        calls.reduce((sum, { count, name }) => sum + (name === 'total' ? 0 : count), 0) / Math.max(1, ok),
      send: shareOf(/^(?:send|write|splice)/),
      receive: shareOf(/^(?:recv|read|ioctl)/),
      wait: shareOf(/^epoll/),
      futex: shareOf(/^futex/),
    }
  },
}

const TWENTY = fileBytes(20)
/** HTTP/2 and, right behind it, HTTP/1.1 with as many requests at once. */
async function byHttp2({ tunnel: { endpoints, processes } }: Scene): Promise<Figures> {
  const pids = [...processes.server, ...processes.client]
  const before = cpuSeconds(pids)
  const load = { connections: 10, streams: 10, seconds }
  const { rps, ok, failed } = await h2load(endpoints.files!, SMALL[0]!.path, TWENTY, load)
  const cpu = ((cpuSeconds(pids) - before) / ok) * 1e6
  const http1 = await run(endpoints, { exchanges: SMALL, connections: 100, seconds })
  const rps1 = http1.ok / http1.seconds
  return { rps, rps1, factor: rps / rps1, cpu, failed }
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
  note: 'The generator is h2load. nginx has one process; it and caddy stand in front of the app, without a tunnel.',
  // What its code does is compiled then.
  check: async ({ tunnel }) => {
    const load = { connections: 10, streams: 10, seconds: 1 }
    await h2load(tunnel.endpoints.files!, SMALL[0]!.path, TWENTY, load)
  },
  take: byHttp2,
}

/** Of every length that a page is made of: no cliff may be between them. */
const LENGTHS = ['2k', '4k', '8k', '16k', '24k', '32k', '48k', '64k', '100k', '256k', '1m']
const lengths = (id: string, what: string, files: readonly string[], path?: Path): readonly Row[] =>
  files.flatMap(file =>
    [10, 50].map(count => ({ ...sized(`${id}${file}x${count}`, file, count, what), ...(path && { path }) })),
  )
const TLS: readonly Row[] = [
  row('tls50', 'Visitors by TLS, 20 B, 50 connections', SMALL, 50, COLUMNS.rate, {
    note: 'ours: TLS at the server, also for the carrier. direct: none.',
  }),
  row('tls10', 'Visitors by TLS, 20 B, 10 connections', SMALL, 10),
  row('tls100', 'Visitors by TLS, 20 B, 100 connections', SMALL, 100),
  row('tlssite', 'Visitors by TLS, a site, 50 connections', SITE, 50),
  ...lengths('tls', 'Visitors by TLS,', ['16k', '64k', '1m']),
]
/** The ordinary path while one loop for each core never waits. */
const BUSY: readonly Row[] = [
  ...[1, 10, 50].map(count => small(`busy${count}`, count, { path: 'ordinary' })),
  ...lengths('busy', 'GET', ['16k'], 'ordinary'),
].map(one => ({
  ...one,
  // Its processes wait for a core, too.
  lasts: seconds + 0.4,
  title: `${one.title}, beside one busy loop per core`,
  take: async (scene: Scene) => {
    const loops = Array.from({ length: navigator.hardwareConcurrency }, () =>
      Bun.spawn(['bun', '-e', 'for (const end = Date.now() + 60_000; Date.now() < end; );']),
    )
    try {
      return await one.take(scene)
    } finally {
      for (const loop of loops) loop.kill()
    }
  },
}))

const services = (scene: Scene): typeof SMALL =>
  Object.keys(scene.tunnel.endpoints).map(to => ({ ...get('20'), to }))
const many = (count: number, cli: 'piped' | undefined): Peer =>
  ours(cli ? `ours-cli-${count}` : `ours-${count}`, `${count} services`, {
    services: count,
    ...(cli && { cli }),
  })
/** Each option by the library and by the command line. */
const both = (name: string, options: OursOptions): readonly Peer[] => [
  ours(`ours-${name}`, `library: ${name}`, options),
  ours(`ours-cli-${name}`, `command line: ${name}`, { ...options, cli: 'piped' }),
]

const everybody = [
  ...FLOORS,
  ...OURS,
  oursTerminal,
  oursBinary,
  ...ACCELERATOR_OFF,
  ...ALL.filter(({ role }) => role === 'peer'),
  oursJson,
]
/** Each program once, with its best options, and frp in all its ways. */
const best = everybody.filter(({ name }) => !/-stock$|-tty$|-binary$|^haproxy|^caddy|^ours-json$/.test(name))
const fast = [direct, ...OURS, ...ACCELERATOR_OFF, ratholeBest, bore, frpBest, frpMux]
/** A path with an app of its own: no lanes. */
const ordinary = [
  direct,
  nginxHop,
  ours('ours', 'library: a path with an app of its own', { route: true }),
  ours('ours-cli', 'command line: a path with an app of its own', { route: true, cli: 'piped' }),
  ratholeBest,
  frpBest,
]
const https = [nginxTls, caddyTls, oursTls, oursCliTls]

/** `isWhole`: where ours is wanted, all its tunnels are. */
const STAGES: readonly (Stage & { readonly isWhole?: boolean })[] = [
  {
    origins: ['files', 'sink'],
    peers: everybody,
    rows: OF_ALL,
    warmUp,
    isWhole: options.minutes !== undefined,
  },
  { origins: ['files', 'sink', 'split'], peers: best, rows: [...CLASSIC, ...FURTHER, ...REAL], warmUp },
  {
    origins: ['files'],
    peers: [
      nginxTls,
      oursTls,
      oursCliTls,
      ...[oursLibrary, ratholeBest, frpBest].map(peer =>
        behindNginx(peer, `nginx-tls+${peer.name.replace('-nomux', '')}`),
      ),
    ],
    rows: TLS,
    warmUp,
  },
  {
    // With a tunnel of ports, the visitor has to ask again.
    origins: ['sink'],
    peers: [nginxHop, ...OURS, ...HTTP_PEERS.filter(({ name }) => /^(?:frp-http|piko|sish)$/.test(name))],
    rows: [
      row('retries', 'An app that closes every tenth connection without a word', CLOSING, 50, COLUMNS.rate, {
        path: 'ordinary',
      }),
    ],
    isWhole: true,
  },
  {
    origins: ['files'],
    peers: ordinary,
    rows: [...lengths('len', 'The ordinary path, GET', LENGTHS, 'ordinary'), ...BUSY],
    warmUp,
  },
  { origins: ['node', 'go', 'bun'], peers: best, rows: APPS, warmUp: warmApps },
  { origins: ['files', 'sink'], peers: fast, rows: COLD },
  {
    origins: ['files'],
    peers: https,
    rows: [
      ...(Bun.which('h2load') === null ? [] : [HTTP2]),
      // Each request is a connection of its own: nginx has one worker, as our server has one thread for handshakes.
      row('handshakes', 'TLS, a new connection for every request, 10 at a time', SMALL, 10, COLUMNS.rate, {
        more: { reconnect: true },
      }),
    ],
    warmUp,
  },
  {
    origins: ['files'],
    peers: [
      direct,
      carrierBehindNginx(oursLibrary, 'ours'),
      carrierBehindNginx(ours('ours-cli', 'command line', { cli: 'piped', insecure: true }), 'ours-cli'),
      ratholeTls,
      frpStock,
    ],
    rows: [row('carriertls', 'Carrier by TLS, visitors in the clear, 20 B, 50 connections', SMALL, 50)],
    warmUp,
  },
  {
    origins: ['node', 'h2c'],
    peers: [...OURS, ...both('h2c', { h2cApp: true })],
    rows: [
      row(
        'apph2',
        'An app on Node, by HTTP/1.1 and by HTTP/2, 100 connections',
        [get('20', 'node')],
        100,
        COLUMNS.rate,
        {
          path: 'ordinary',
        },
      ),
    ],
  },
  {
    origins: ['bun', 'https'],
    peers: [
      ...OURS,
      ...both('pool', { pool: true }),
      ...both('route', { route: true }),
      ...both('https-app', { httpsApp: true }),
    ],
    rows: [
      row('options', 'Options of ours: GET 20 B from an app on Bun, 50 connections', [get('20', 'bun')], 50),
    ],
  },
  {
    origins: ['files'],
    peers: [undefined, 'piped' as const].flatMap(cli =>
      unlessQuick([1, 100, 1_000], [1, 100]).map(count => many(count, cli)),
    ),
    rows: [
      row(
        'services',
        'Many services of one client, another Host with each request, 50 connections',
        services,
        50,
      ),
    ],
  },
  { origins: ['files'], peers: fast, rows: Bun.which('strace') === null ? [] : [SYSTEM_CALLS] },
]

/** Rows of which a smoke run has one of each kind. */
const SMOKE_ROWS =
  't1 t50 64k10 r1000 up beside first10m post10 two retries node websocket events echo1k apph2 t1cold tls50 carriertls handshakes services syscalls'.split(
    ' ',
  )

/** Stages of more tunnels than this get only a few of them in a smoke run. */
const MANY = 8
const known = [...new Set(STAGES.flatMap(({ peers }) => peers))]
const stages: Stage[] = []
for (const stage of STAGES) {
  const rows = isQuick && !options.only ? stage.rows.filter(({ id }) => SMOKE_ROWS.includes(id)) : stage.rows
  const peers = chosen(stage)
  const before = stages.at(-1)
  const isSame =
    String(before?.origins) === String(stage.origins) && namesOf(before?.peers) === namesOf(peers)
  // The same tunnels are not started twice.
  if (before && isSame && before.warmUp === stage.warmUp)
    stages[stages.length - 1] = { ...before, rows: [...before.rows, ...rows] }
  else stages.push({ ...stage, rows, peers })
}
const { tables, versions } = await measure(stages)
console.log(`\n${summary(tables)}`)
await conclude('speed', 'Speed', tables, versions)

function namesOf(peers: readonly Peer[] = []): string {
  return peers.map(({ name, how }) => `${name} ${how}`).join()
}

/** A stage of ours alone is wanted where ours is; in a smoke run small stages keep all their tunnels. */
function chosen({
  peers,
  isWhole = peers.every(({ role }) => role === 'ours'),
}: (typeof STAGES)[number]): readonly Peer[] {
  const names = isWhole && options.peers?.includes('ours') ? undefined : options.peers
  return choose(peers, { names, quick: isQuick && peers.length > MANY, known })
}
/** A tunnel serves for days, and its runtime compiles for 80,000 requests. Few visitors may go another way than many, and bodies another than heads. */
async function warmUp({ tunnel: { endpoints } }: Scene): Promise<void> {
  const lasts = unlessQuick(options.minutes === undefined ? 1.5 : 0.7, 0.1)
  await run(endpoints, { exchanges: SMALL, connections: 50, seconds: lasts })
  for (const exchanges of [SMALL, [get('16k')], ...(endpoints.sink ? [POSTS] : [])])
    await run(endpoints, { exchanges, connections: 4, seconds: lasts / 2 })
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
      forgetPeak([...server, ...client])
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
