// Our server in a process of its own: prints its port, runs until it is told to stop.

import { TunnelServer } from '../../src/index.ts'

const server = new TunnelServer({ port: 0, host: '127.0.0.1', domains: ['localhost'] })
await server.start()
process.on('SIGTERM', () => void server.stop().then(() => process.exit(0)))
console.log(`listening ${server.port}`)
