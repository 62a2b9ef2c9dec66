// Our server in a process of its own: `server.ts PORT HOST`, runs until SIGTERM.
// `BENCH_FEATURES` switches optional features on, separated by semicolons; `BENCH_TLS` has its certificate, `BENCH_LIMITS`
// its bounds, `BENCH_TOKEN` its only token.

import { serverOptionsOf } from './features.ts'
import { TunnelServer } from './tunnel.ts'

const [port, host = '127.0.0.1'] = process.argv.slice(2)
const tls = process.env.BENCH_TLS
const server = new TunnelServer(
  {
    port: Number(port),
    host,
    domains: ['localhost'],
    tcpPorts: '1024-65535',
    udpPorts: '1024-65535',
    ...(await serverOptionsOf((process.env.BENCH_FEATURES ?? '').split(';'))),
    ...(process.env.BENCH_TOKEN !== undefined && { tokens: [process.env.BENCH_TOKEN] }),
    ...(tls !== undefined && { tls: JSON.parse(tls) as { cert: string; key: string } }),
  },
  // Fixed bounds are among them.
  JSON.parse(process.env.BENCH_LIMITS ?? '{}') as object,
)
await server.start()
process.on('SIGTERM', () => void server.stop().then(() => process.exit(0)))
console.log(`listening ${server.port}`)
