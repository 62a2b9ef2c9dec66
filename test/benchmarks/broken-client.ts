// Our benchmark client, broken in the way that BROKEN names: the suites must notice each of them.

import { TunnelClient } from '../../src/index.ts'

const way = process.env.BROKEN
if (way === 'exits') process.exit(3)
// Written by benchmarks/peers/ours.ts.
const { server, tunnels } = JSON.parse(process.argv[2]!) as {
  readonly server: string
  readonly tunnels: readonly { readonly subdomain: string; readonly port: number }[]
}
const [{ subdomain, port }] = tunnels as readonly [(typeof tunnels)[number]]
if (way === 'never connects') {
  console.log('connecting')
  await new Promise(() => setInterval(() => {}, 60_000))
}

/** Cuts every answer in its middle. */
const cutting = Bun.listen({
  hostname: '127.0.0.1',
  port: 0,
  socket: {
    data(socket) {
      socket.write('HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\n0123456789')
      socket.end()
    },
  },
})

let requests = 0
async function app(request: Request): Promise<Response> {
  requests++
  // The first request is the probe that waits until the tunnel works.
  if (way === 'answers 502' && requests > 1) return new Response('no', { status: 502 })
  if (way === 'wrong bytes') return new Response('hello, this is 20 B\n')
  if (way === 'dies under load' && requests > 100) process.exit(3)
  const url = new URL(request.url)
  return fetch(`http://127.0.0.1:${port}${url.pathname}`)
}

const origin = way === 'cuts answers' ? { host: '127.0.0.1', port: cutting.port } : { fetch: app }
const client = new TunnelClient({ server, subdomain, ...origin })
await client.connect()
console.log(`connected ${client.getTunnelUrl()}`)
