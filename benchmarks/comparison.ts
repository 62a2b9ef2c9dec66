// Ours against peers that really run here, and our functions against the ways others do the same.
//
//   bun benchmarks/peers/install.ts      builds the peers first
//   bun benchmarks/comparison.ts         [--rounds N] [--peers rathole,bore]
//
// Server, client, origin and load generator are processes of their own. `ahead.ts` beside this file measures more rows.

import { TunnelClient } from '../src/index.ts'
import { generateId, generateSubdomain, isValidSubdomain } from '../src/names.ts'
import { DATA } from '../src/wire/frame.ts'
import { encodeRequest, parseServerMessage } from '../src/wire/json.ts'
import { measureRounds } from './ahead/rounds.ts'
import { forwardingBenchmarks } from './comparison/forwarding.ts'
import { COMPARED_ROWS, peerGroups } from './comparison/groups.ts'
import { newClient, startLive, together, WIRES } from './live.ts'
import { stopAll } from './measure/children.ts'
import { bench, group, inTurn, keep, runSuite } from './measure/mitata.ts'
import { peersOr, printGroup, roundsOr, say, unlessQuick } from './measure/suite.ts'
import { JSON_REQUEST, REQUEST, REQUEST_BYTES, REQUEST_JSON, RESPONSE, writeFrame } from './messages.ts'
import { choose, INTERNET_PEERS, PEERS } from './peers/list.ts'

const peers = choose(peersOr(PEERS.map(({ name }) => name)))
const rounds = measureRounds({
  peers: [...peers, ...INTERNET_PEERS],
  rows: COMPARED_ROWS,
  rounds: roundsOr(3),
  seconds: unlessQuick(2, 0.2),
  origin: 'nginx',
  say,
})
await rounds.done
const groups = peerGroups(rounds)
for (const one of groups) printGroup(one)
await stopAll()

await forwardingBenchmarks(
  peers.filter(({ name }) => rounds.versions[name] !== undefined && !rounds.skipped[name]),
)

const live = await startLive()
let names = 0
group('Connection Establishment', () => {
  for (const wire of WIRES) {
    bench(`localtunnels connect + register + disconnect (${wire})`, async () => {
      const client = newClient(live.server, live.app, `e${names++}`, wire)
      await client.connect()
      await client.disconnect()
    })
  }
})

group('Concurrent Throughput', () => {
  for (const tunnel of [live.streams, live.json]) {
    for (const count of [1, 10, 25]) {
      bench(`${count} concurrent requests (${tunnel.title})`, () => together(count, tunnel, '/json'))
    }
  }
})

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
  bench(
    'TunnelClient instance',
    () => keep(new TunnelClient({ port: 3000, server: 'http://127.0.0.1:8080' })),
    true,
  )
})

await runSuite('comparison', 'Cross-Tool Comparison', { more: groups, tools: rounds.versions })
