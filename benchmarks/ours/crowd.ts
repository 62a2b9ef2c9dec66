// Many of our clients in one process, one tunnel each: `crowd.ts SERVER_PORT ORIGIN_PORT COUNT WIRE [FIRST]`. Names: n0, n1, … from FIRST on.
// WIRE `tcp`: TCP tunnels, whose ports are FIRST, FIRST + 1, …

import { TunnelClient } from './tunnel.ts'

/** Registrations under way at once: a server takes a crowd in turn, and a deadline counts for each. */
const AT_ONCE = 50

const [serverPort, originPort, count, wire, first = '0'] = process.argv.slice(2)
let next = Number(first)
const end = next + Number(count)
async function register(): Promise<void> {
  while (next < end) {
    const number = next++
    const app = { host: '127.0.0.1', port: Number(originPort) }
    const client = new TunnelClient({
      server: `http://127.0.0.1:${serverPort}`,
      reconnect: false,
      ...(wire !== 'tcp' && { ...app, subdomain: `n${number}`, wire: wire === 'json' ? 'json' : 'streams' }),
    })
    client.on('error', (error: Error) => console.error(error.message))
    if (wire === 'tcp') await client.tcp({ ...app, remotePort: number })
    else await client.connect()
  }
}
await Promise.all(Array.from({ length: AT_ONCE }, register))
console.log(`registered ${count}`)
