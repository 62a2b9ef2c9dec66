// Server and client life: starting, connecting, registering, leaving. `bun benchmarks/index.ts connection`.

import type { TunnelClient } from '../../src/index.ts'
import { newClient, startServer, titled, WIRES, type Wire } from '../live.ts'
import { bench, group, keep, runSuite } from '../measure/mitata.ts'
import { startApp } from '../origin/app.ts'

const app = startApp()
const server = await startServer()
let names = 0
const fresh = (wire: Wire): TunnelClient => newClient(server, app, `c${names++}`, wire)

group('Server Lifecycle', () => {
  bench('Server start + stop', async () => {
    const own = await startServer()
    await own.stop()
  })
})

group('Client Connection Lifecycle', () => {
  for (const wire of WIRES) {
    bench(titled('Client connect + register + disconnect', wire), async () => {
      const client = fresh(wire)
      await client.connect()
      await client.disconnect()
    })
  }
})

group('Client Connect Time', () => {
  for (const wire of WIRES) {
    // Left connected and closed by the hundred.
    const left: TunnelClient[] = []
    bench(titled('Client connect + register (no disconnect)', wire), async () => {
      const client = fresh(wire)
      await client.connect()
      left.push(client)
      if (left.length >= 100) await Promise.all(left.splice(0).map(one => one.disconnect()))
    })
  }
})

group('Sequential Multi-Client Connect', () => {
  for (const wire of WIRES) {
    bench(titled('5 clients sequential', wire), async () => {
      const clients = Array.from({ length: 5 }, () => fresh(wire))
      for (const client of clients) await client.connect()
      await Promise.all(clients.map(client => client.disconnect()))
    })
  }
})

group('Concurrent Multi-Client Connect', () => {
  for (const wire of WIRES) {
    bench(titled('5 clients concurrent (Promise.all)', wire), async () => {
      const clients = Array.from({ length: 5 }, () => fresh(wire))
      await Promise.all(clients.map(client => client.connect()))
      await Promise.all(clients.map(client => client.disconnect()))
    })
  }
})

group('Server Stats', () => {
  bench('getStats()', () => keep(server.getStats()))
  bench('getStats(includeSubdomains)', () => keep(server.getStats(true)))
})

await runSuite('connection', 'Connection Lifecycle', {
  notes: {
    'Client Connect Time': 'One disconnect for each client is in it, a hundred at a time.',
    'Server Stats': 'With the clients of the groups before, whose number depends on the machine.',
  },
})
