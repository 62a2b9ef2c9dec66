// The programs that are installed, side by side, and how others do what our functions do. `bun benchmarks/index.ts comparison`
//
// Each tool is found by its version command. Those that one can host oneself are started with their own server on loopback
// and measured; hosted ones are named and not started, because an account or the internet would be what is measured. The
// tables in nanoseconds have stand-ins in JavaScript for how others do it, not their programs.

import { TunnelClient } from '../../src/index.ts'
import { generateId, generateSubdomain, isValidSubdomain } from '../../src/names.ts'
import { encodeRequest, parseServerMessage } from '../../src/parts/json-wire/json.ts'
import { DATA } from '../../src/wire/frame.ts'
import { type Exchange, run } from '../load/load.ts'
import { get, JSON_LIST, post } from '../load/traffic.ts'
import { COLUMNS, loadRow } from '../measure/load-rows.ts'
import { bench, group, inTurn, keep, runSuite } from '../measure/mitata.ts'
import { answering } from '../measure/ports.ts'
import { column, type ResultRow, type Table } from '../measure/result.ts'
import { measure, type Row } from '../measure/rounds.ts'
import { isQuick, options, printTable, unlessQuick } from '../measure/suite.ts'
import { JSON_REQUEST, REQUEST, REQUEST_BYTES, REQUEST_JSON, RESPONSE, writeFrame } from '../messages.ts'
import { detectBinary } from '../peers/binary.ts'
import { direct } from '../peers/floors.ts'
import { sish } from '../peers/http.ts'
import { choose, OURS } from '../peers/list.ts'
import type { Peer } from '../peers/peer.ts'
import { bore, chisel, frpStock, ratholeStock, wstunnel } from '../peers/tcp.ts'

const HOSTED = 'installed; hosted, so it is not started'
const TOOLS = [
  ['Cloudflare Tunnels', 'cloudflared --version', HOSTED],
  ['ngrok', 'ngrok version', HOSTED],
  ['Expose', 'expose --version', HOSTED],
  ['bore', 'bore --version', 'measured'],
  ['frp', 'frpc --version', 'measured'],
  ['rathole', 'rathole --version', 'measured'],
  ['chisel', 'chisel --version', 'measured'],
  ['wstunnel', 'wstunnel --version', 'measured'],
  ['sish', 'sish --version', 'measured'],
] as const

/** What the version command of each says. */
async function detected(): Promise<Table> {
  const rows = TOOLS.map(async ([name, command, state]): Promise<ResultRow> => {
    const [program = '', flag = ''] = command.split(' ')
    const found = await detectBinary(program, flag)
    const what = 'version' in found ? `${found.version}, ${state}` : 'not installed'
    return { name, role: 'floor', cells: { state: `\`${command}\`: ${what}` } }
  })
  return {
    id: 'tools',
    title: 'Detected tools',
    columns: [column('state', 'by its version command', '')],
    rows: await Promise.all(rows),
  }
}

const hasNoProcess = (peer: Peer): string | undefined => (peer === direct ? 'has no processes' : undefined)
const STARTUP: Row = {
  id: 'startup',
  title: 'Startup Time',
  excludes: hasNoProcess,
  columns: [
    column('ready', 'until the tunnel is ready', 'ms', 'lower'),
    column('server', 'server', 'ms', 'lower'),
    column('client', 'client', 'ms', 'lower'),
  ],
  fresh: true,
  take: ({ tunnel: { readyMs } }) => Promise.resolve({ ready: readyMs.server + readyMs.client, ...readyMs }),
}
const ESTABLISHMENT: Row = {
  id: 'establishment',
  title: 'Connection Establishment: the client ends, starts, connects and registers',
  excludes: hasNoProcess,
  columns: [column('ms', 'until a request is answered', 'ms', 'lower')],
  fresh: true,
  async take({ tunnel }) {
    // A client writes down the secret of its name right after it is ready: one that is killed before gets another name.
    await Bun.sleep(500)
    const began = performance.now()
    await tunnel.restart('client')
    await answering(tunnel.endpoints.bun!, '/20')
    return { ms: performance.now() - began }
  },
}
const POST_1K = post(1024, 'bun')
const PLAIN = { ...get('', 'bun'), answer: Buffer.from('OK') }
const forwarded = (id: string, title: string, exchange: Exchange, connections: number): Row =>
  loadRow({ id, title, columns: COLUMNS.latency, exchanges: [exchange], connections, path: 'ordinary' })
const ROWS: readonly Row[] = [
  STARTUP,
  ESTABLISHMENT,
  forwarded('forward', 'Request Forwarding: GET / (plain text "OK")', PLAIN, 1),
  forwarded('forwardJson', 'Request Forwarding: GET /json (10-item array)', JSON_LIST, 1),
  forwarded('forwardPost', 'Request Forwarding: POST 1 KB body', POST_1K, 1),
  ...[1, 10, 25].map(count =>
    forwarded(
      `concurrent${count}`,
      `Concurrent Throughput: ${count} requests at a time (GET /json)`,
      JSON_LIST,
      count,
    ),
  ),
]
const PROGRAMS = [direct, ...OURS, bore, frpStock, ratholeStock, chisel, wstunnel, sish]

const STAND_INS = [
  'Subdomain Strategy',
  'ID Generation Strategy',
  'Protocol Message Overhead',
  'Payload Serialization',
  'State Machine',
]
const tools = await detected()
printTable(tools)
const programs = await measure(
  [
    {
      origins: ['bun'],
      peers: choose(PROGRAMS, { names: options.peers, quick: isQuick, known: PROGRAMS }),
      rows: ROWS,
      warmUp: ({ tunnel: { endpoints } }) =>
        run(endpoints, {
          exchanges: [PLAIN, JSON_LIST, POST_1K],
          connections: 4,
          seconds: unlessQuick(1.5, 0.1),
        }),
    },
  ],
  [...STAND_INS, 'Allocation Pressure'],
  0.7,
)

let counter = 0
const hex = (length: number): string => {
  let text = ''
  for (const byte of crypto.getRandomValues(new Uint8Array(length)))
    text += byte.toString(16).padStart(2, '0')
  return text
}

group('Subdomain Strategy', () => {
  bench('localtunnels: adjective-noun', () => keep(generateSubdomain()))
  const name = inTurn('swift-fox', 'calm-otter')
  bench('localtunnels: validation', () => keep(isValidSubdomain(name())))
  bench('ngrok: random hex (8 characters)', () => keep(hex(4)))
  bench('Cloudflare Tunnels: UUID prefix (8 characters)', () => keep(crypto.randomUUID().slice(0, 8)))
  bench('bore: short hex (6 characters)', () => keep(hex(3)))
  bench('frp: counter prefix', () => keep(`tunnel-${++counter}`))
  bench('Expose: UUID slug (12 characters)', () => keep(crypto.randomUUID().replaceAll('-', '').slice(0, 12)))
})

group('ID Generation Strategy', () => {
  bench('localtunnels: generateId()', () => keep(generateId()))
  bench('ngrok / Cloudflare Tunnels: crypto.randomUUID()', () => keep(crypto.randomUUID()))
  bench('bore: crypto.getRandomValues (8 bytes)', () => keep(hex(8)))
  bench('frp: counter-based', () => keep(`conn_${++counter}`))
})

group('Protocol Message Overhead', () => {
  const [buffer, header] = [new Uint8Array(4096), new DataView(new ArrayBuffer(16))]
  bench('localtunnels, JSON wire: serialize request', () => keep(encodeRequest(JSON_REQUEST)))
  bench('localtunnels, JSON wire: parse request', () => keep(parseServerMessage(REQUEST_JSON)))
  bench('localtunnels, streams wire: frame a request, body included', () =>
    keep(writeFrame(buffer, 0, DATA, 7, REQUEST_BYTES)),
  )
  bench('bore / frp: header encode (16 bytes)', () => {
    header.setUint32(0, ++counter)
    header.setUint32(4, REQUEST_BYTES.length)
    header.setBigUint64(8, 7n)
    keep(header)
  })
  bench('bore / frp: header decode (16 bytes)', () =>
    keep(header.getUint32(0) + header.getUint32(4) + Number(header.getBigUint64(8))),
  )
})

group('Payload Serialization', () => {
  const payload = {
    ...RESPONSE,
    items: Array.from({ length: 20 }, (_, i) => ({ id: i, name: `Item ${i}`, on: true })),
  }
  const text = JSON.stringify(payload)
  const bytes = new TextEncoder().encode(text)
  const [encoder, decoder] = [new TextEncoder(), new TextDecoder()]
  bench('localtunnels / ngrok (JSON): JSON.stringify', () => keep(JSON.stringify(payload)))
  bench('localtunnels / ngrok (JSON): JSON.parse', () => keep(JSON.parse(text)))
  bench('bore (binary): TextEncoder.encode', () => keep(encoder.encode(text)))
  bench('bore (binary): TextDecoder.decode', () => keep(decoder.decode(bytes)))
})

group('State Machine', () => {
  const words = ['idle', 'connecting', 'connected', 'reconnecting'] as const
  let state: (typeof words)[number] = 'idle'
  let numeral = 0
  const object = { state: 'idle', transitions: 0 }
  bench('localtunnels: string-based', () => {
    state = words[++counter & 3]!
    keep(state)
  })
  bench('frp / bore: enum-based (integers)', () => {
    numeral = ++counter & 3
    keep(numeral)
  })
  bench('ngrok / Expose: object-based (with transition count)', () => {
    object.state = words[++counter & 3]!
    object.transitions++
    keep(object)
  })
})

group('Allocation Pressure', () => {
  bench('Headers object (3 headers)', () => keep(new Headers({ accept: '*/*', host: 'a.test', 'x-id': '1' })))
  bench('Request-like message (counter ID)', () =>
    keep({ type: 'request', id: ++counter, method: 'GET', path: '/', headers: REQUEST.headers }),
  )
  bench('Response-like message (object literal)', () =>
    keep({ type: 'response', id: counter, status: 200, headers: RESPONSE.headers, body: '' }),
  )
  bench('TunnelClient instance', () =>
    keep(new TunnelClient({ port: 3000, server: 'http://127.0.0.1:8080' })),
  )
})

await runSuite('comparison', 'Cross-Tool Comparison', {
  notes: Object.fromEntries(
    STAND_INS.map(name => [name, 'Stand-ins in JavaScript for how others do it, not their programs.']),
  ),
  more: [tools, ...programs.tables],
  tools: programs.versions,
  ids: ROWS.map(({ id }) => id),
})
