// Many clients in one process, one tunnel each: `crowd-process.ts SPEC`. Names: n0, n1, …

import { libraryAt } from './source.ts'

// The runner wrote it.
const { source, port, app, clients } = JSON.parse(process.argv[2] ?? '') as {
  readonly source: string
  readonly port: number
  readonly app: number
  readonly clients: number
}
const { TunnelClient } = await libraryAt(source)
const all = Array.from({ length: clients }, async (_, index) => {
  const client = new TunnelClient({
    server: `http://127.0.0.1:${port}`,
    host: '127.0.0.1',
    port: app,
    subdomain: `n${index}`,
  })
  client.on('error', () => {})
  await client.connect()
})
await Promise.all(all)
console.log('ready')
