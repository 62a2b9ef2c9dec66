// How others do what our functions do: names, ids, messages, states. `bun benchmarks/comparison.ts`
//
// What is called bore, frp, ngrok, Expose or Cloudflare here is a stand-in in JavaScript of the way they do it, not their
// program: `speed.ts` runs the programs themselves.

import { TunnelClient } from '../src/index.ts'
import { generateId, generateSubdomain, isValidSubdomain } from '../src/names.ts'
import { DATA } from '../src/wire/frame.ts'
import { encodeRequest, parseServerMessage } from '../src/wire/json.ts'
import { newClient, startLive, together, WIRES } from './live.ts'
import { bench, group, inTurn, keep, runSuite } from './measure/mitata.ts'
import { JSON_REQUEST, REQUEST, REQUEST_BYTES, REQUEST_JSON, RESPONSE, writeFrame } from './messages.ts'

const STAND_IN = 'Stand-ins in JavaScript for how others do it, not their programs.'
const STAND_INS = Object.fromEntries(
  [
    'Subdomain Strategy',
    'ID Generation Strategy',
    'Protocol Message Overhead',
    'Payload Serialization',
    'State Machine',
  ].map(name => [name, STAND_IN]),
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
  bench('TunnelClient instance', () =>
    keep(new TunnelClient({ port: 3000, server: 'http://127.0.0.1:8080' })),
  )
})

await runSuite('comparison', 'Cross-Tool Comparison', { notes: STAND_INS })
