// Rows that other projects publish of themselves and no other suite has: `bun benchmarks/published.ts`
//
// Rates of 1, 2,000 and 3,000 requests a second, 48 workers without a limit, 200 connections, an echo of 1 KB to 10 MB,
// HTTP/2 to the app, TLS handshakes, system calls. docs/benchmarks/published.csv has each published figure beside the measured one.

import { run } from './load/load.ts'
import { get, SMALL } from './load/traffic.ts'
import { launch } from './measure/children.ts'
import { COLUMNS, loadRow } from './measure/load-rows.ts'
import { column } from './measure/result.ts'
import { type Figures, measure, type Row, type Scene } from './measure/rounds.ts'
import { conclude, isQuick, options, say, seconds, unlessQuick } from './measure/suite.ts'
import { summary } from './measure/summary.ts'
import { scratch } from './peers/binary.ts'
import { caddyTls, direct, nginxTls } from './peers/floors.ts'
import { choose, OURS } from './peers/list.ts'
import { ours, oursCliTls, oursTls } from './peers/ours.ts'
import type { Peer } from './peers/peer.ts'
import { bore, frpBest, frpMux, ratholeBest } from './peers/tcp.ts'

const fixed = (rate: number, connections: number, lasts: number): Row => ({
  ...loadRow({
    id: `r${rate}`,
    title: `GET 20 B, ${rate.toLocaleString('en-US')} a second on ${connections} connection${connections === 1 ? '' : 's'}`,
    columns: COLUMNS.fixed,
    exchanges: SMALL,
    connections,
    more: { rate, seconds: unlessQuick(lasts, 1) },
  }),
  ...(rate === 1 && { atMost: 1 }),
})
const closed = (id: string, connections: number): Row =>
  loadRow({
    id,
    title: `GET 20 B, ${connections} connections`,
    columns: COLUMNS.rate,
    exchanges: SMALL,
    connections,
  })
const echo = (size: string, title: string): Row =>
  loadRow({
    id: `echo${size}`,
    title: `POST of ${title} that comes back, 10 connections`,
    columns: COLUMNS.sized,
    exchanges: [{ ...get(size, 'bun'), method: 'POST', path: '/echo', body: size }],
    connections: 10,
    // Ten at a time, each 10 MB there and back.
    more: { timeoutMs: 30_000 },
  })

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
    const report = files.path('calls')
    const of = [...server, ...client].flatMap(pid => ['-p', String(pid)])
    const trace = await launch(['strace', '-f', '-c', '-o', report, ...of], { ready: /attached/ })
    const { ok } = await run(tunnel.endpoints, {
      exchanges: SMALL,
      connections: 50,
      seconds: Math.max(seconds, 1),
      timeoutMs: 20_000,
    })
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

const TUNNELS = [direct, ...OURS, ratholeBest, bore, frpBest, frpMux]
const HTTP2_APPS = [
  ...OURS,
  ours('ours-h2c', 'library, the app speaks HTTP/2 without TLS', { h2cApp: true }),
  ours('ours-cli-h2c', 'command line, --protocol h2c', { h2cApp: true, cli: 'piped' }),
]
const TO_HTTP2 = loadRow({
  id: 'apph2',
  title: 'An app on Node, by HTTP/1.1 and by HTTP/2, 100 connections',
  columns: COLUMNS.rate,
  exchanges: [get('20', 'node')],
  connections: 100,
  path: 'ordinary',
})

/** Each request is a connection of its own: nginx has one worker, as our server has one thread for handshakes. */
const HANDSHAKES = loadRow({
  id: 'handshakes',
  title: 'TLS, a new connection for every request, 10 at a time',
  columns: COLUMNS.rate,
  exchanges: SMALL,
  connections: 10,
  more: { reconnect: true },
})
const OVER_TLS = [nginxTls, caddyTls, oursTls, oursCliTls]

const chosen = (peers: readonly Peer[]): readonly Peer[] =>
  choose(peers, { names: options.peers, quick: isQuick, known: [...TUNNELS, ...HTTP2_APPS, ...OVER_TLS] })
const canTrace = Bun.which('strace') !== null
if (!canTrace) say('System calls are left out: strace is not installed')
const { tables, versions } = await measure([
  {
    origins: ['files'],
    peers: chosen(TUNNELS),
    rows: [
      closed('w48', 48),
      ...(isQuick ? [] : [closed('t200', 200), fixed(2_000, 50, 2), fixed(3_000, 50, 2), fixed(1, 1, 10)]),
    ],
    warmUp: ({ tunnel }) =>
      run(tunnel.endpoints, { exchanges: SMALL, connections: 50, seconds: unlessQuick(1.5, 0.1) }).then(
        () => {},
      ),
  },
  {
    origins: ['bun'],
    peers: chosen(TUNNELS),
    rows: [
      echo('1k', '1 KB'),
      ...(isQuick
        ? []
        : [echo('10k', '10 KB'), echo('100k', '100 KB'), echo('1m', '1 MB'), echo('10m', '10 MB')]),
    ].map(row => ({ ...row, atMost: 3 })),
  },
  {
    origins: ['node', 'h2c'],
    peers: options.peers ? chosen(HTTP2_APPS) : HTTP2_APPS,
    rows: [TO_HTTP2],
  },
  {
    origins: ['files'],
    peers: options.peers?.includes('ours') === false ? [] : OVER_TLS,
    rows: [HANDSHAKES],
  },
  ...(canTrace ? [{ origins: ['files' as const], peers: chosen(TUNNELS), rows: [SYSTEM_CALLS] }] : []),
])
console.log(`\n${summary(tables)}`)
await conclude('published', 'Rows that others publish', tables, versions)
