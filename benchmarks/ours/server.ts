// Our server in a process of its own: prints its port, runs until it is told to stop.
// `BENCH_FEATURES` switches optional features on, separated by semicolons.

import { TunnelServer } from '../../src/index.ts'
import { enableOnServer } from './features.ts'

const server = new TunnelServer({ port: 0, host: '127.0.0.1', domains: ['localhost'] })
enableOnServer(server, (process.env.BENCH_FEATURES ?? '').split(';'))
await server.start()
process.on('SIGTERM', () => void server.stop().then(() => process.exit(0)))
console.log(`listening ${server.port}`)
