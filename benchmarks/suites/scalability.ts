// Many tunnels on one server: registering them, requests beside them, what a message costs. `bun benchmarks/index.ts scalability`.

import type { TunnelServer } from '../../src/index.ts'
import {
  encodeReady,
  encodeRequest,
  encodeResponse,
  parseClientMessage,
  parseServerMessage,
} from '../../src/parts/json-wire/json.ts'
import { DATA, FrameDecoder, PING as PING_FRAME } from '../../src/wire/frame.ts'
import { exchange, newClient, startServer, target, titled, together, WIRES, type Wire } from '../live.ts'
import { bench, group, inTurn, keep, runSuite } from '../measure/mitata.ts'
import {
  JSON_ANSWER,
  JSON_REQUEST,
  PING,
  PING_JSON,
  READY_JSON,
  REQUEST_BYTES,
  REQUEST_JSON,
  RESPONSE_BYTES,
  RESPONSE_JSON,
  writeFrame,
} from '../messages.ts'
import { startApp } from '../origin/app.ts'

const app = startApp()
const registry = await startServer()
let names = 0

/** A server with so many tunnels; the first one of each wire is the one that is asked. */
async function crowded(tunnels: number, wire: Wire): Promise<TunnelServer> {
  const server = await startServer()
  const clients = Array.from({ length: tunnels }, (_, i) => newClient(server, app, `t${i}`, wire))
  await Promise.all(clients.map(client => client.connect()))
  return server
}

const crowds = new Map<string, TunnelServer>()
for (const wire of WIRES) {
  for (const tunnels of [1, 10, 50]) crowds.set(`${wire} ${tunnels}`, await crowded(tunnels, wire))
}
const asked = (wire: Wire, tunnels: number) =>
  target(wire, app, crowds.get(`${wire} ${tunnels}`), 't0.localhost')

group('Register N Clients', () => {
  for (const wire of WIRES) {
    for (const count of [1, 5, 10, 25]) {
      bench(titled(String(count), wire), async () => {
        const clients = Array.from({ length: count }, () => newClient(registry, app, `r${names++}`, wire))
        await Promise.all(clients.map(client => client.connect()))
        await Promise.all(clients.map(client => client.disconnect()))
      })
    }
  }
})

group('Request Latency Under Load', () => {
  for (const wire of WIRES) {
    for (const tunnels of [1, 10, 50]) {
      const to = asked(wire, tunnels)
      bench(titled(`${tunnels} active tunnels`, wire), () => exchange(to, '/'))
    }
  }
})

group('Concurrent Requests Under Load', () => {
  for (const wire of WIRES) {
    for (const tunnels of [1, 10, 50]) {
      const to = asked(wire, tunnels)
      bench(titled(`${tunnels} active tunnels`, wire), () => together(10, to, '/'))
    }
  }
})

group('Server Stats Under Load', () => {
  const server = crowds.get('streams 50')!
  bench('getStats() with 50 tunnels', () => keep(server.getStats()))
  bench('getStats(includeSubdomains) with 50 tunnels', () => keep(server.getStats(true)))
})

group('WebSocket Protocol Parse', () => {
  bench('Parse ready message', () => keep(parseClientMessage(READY_JSON)))
  bench('Parse ping message', () => keep(parseClientMessage(PING_JSON)))
  bench('Parse request message', () => keep(parseServerMessage(REQUEST_JSON)))
  bench('Parse response message', () => keep(parseClientMessage(RESPONSE_JSON)))
  const decoder = new FrameDecoder({ data: (_, piece) => keep(piece), frame: type => keep(type) })
  const frame = (type: number, payload: Uint8Array): Uint8Array => {
    const buffer = new Uint8Array(2048)
    return buffer.slice(0, writeFrame(buffer, 0, type, type === DATA ? 7 : 0, payload))
  }
  const [ping, request] = [frame(PING_FRAME, new Uint8Array(8)), frame(DATA, REQUEST_BYTES)]
  const response = frame(DATA, RESPONSE_BYTES)
  bench('Parse ping frame · streams wire', () => keep(decoder.receive(ping)))
  bench('Parse request frame · streams wire', () => keep(decoder.receive(request)))
  bench('Parse response frame · streams wire', () => keep(decoder.receive(response)))
})

group('WebSocket Protocol Serialize', () => {
  bench('Serialize ready message', () => keep(encodeReady('swift-fox')))
  bench('Serialize ping message', () => keep(JSON.stringify(PING)))
  bench('Serialize request message', () => keep(encodeRequest(JSON_REQUEST)))
  bench('Serialize response message', () => keep(encodeResponse(42, JSON_ANSWER)))
  const [buffer, eight] = [new Uint8Array(4096), new Uint8Array(8)]
  bench('Serialize ping frame · streams wire', () => keep(writeFrame(buffer, 0, PING_FRAME, 0, eight)))
  bench('Serialize request frame · streams wire', () => keep(writeFrame(buffer, 0, DATA, 7, REQUEST_BYTES)))
  bench('Serialize response frame · streams wire', () => keep(writeFrame(buffer, 0, DATA, 7, RESPONSE_BYTES)))
})

group('Connection Map Operations', () => {
  const map = new Map(Array.from({ length: 100 }, (_, i) => [`tunnel-${i}`, new Set([i])] as const))
  const name = inTurn<`tunnel-${number}`>('tunnel-50', 'tunnel-7', 'tunnel-99')
  bench('Map.get()', () => keep(map.get(name())))
  bench('Map.has()', () => keep(map.has(name())))
  bench('Iterate keys', () => {
    let length = 0
    for (const key of map.keys()) length += key.length
    keep(length)
  })
  bench('Count connections', () => {
    let count = 0
    for (const connections of map.values()) count += connections.size
    keep(count)
  })
})

await runSuite('scalability', 'Scalability', {
  notes: { 'Register N Clients': 'Connecting and disconnecting, all of them at once.' },
})
