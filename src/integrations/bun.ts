// `localtunnels/bun`: a public URL for a server of `Bun.serve`, its WebSockets included, which stays across `bun --hot`.
//
//   import { share } from 'localtunnels/bun'
//   const { url } = await share(Bun.serve({ fetch: () => new Response('hello') }), { server: 'https://tunnel.example' })

import type { OriginOptions } from '../client/options.ts'
import type { ReserveOptions } from '../reserve.ts'
import { HeldTunnel } from './held-tunnel.ts'

/** The used part of the result of `Bun.serve`. */
export interface BunServer {
  readonly url: URL
}

export interface SharedServer extends AsyncDisposable {
  /** The URL for visitors. */
  readonly url: string
  /** Releases the name at once. The server of Bun continues. */
  close(): Promise<void>
}

/**
 * Reserves a name for `app`. Called again for the same address with the same options, as `bun --hot` does, it keeps
 * the existing tunnel. Rejects with the errors of `TunnelClient.connect`. Needs `server`, or `TUNNEL_SERVER`.
 */
export async function share(app: BunServer, options: ReserveOptions = {}): Promise<SharedServer> {
  // Two servers of one process have a tunnel each, even with the same options.
  const tunnel = HeldTunnel.of(`bun ${app.url.href}`, options)
  tunnel.lead(placeOf(app.url))
  await tunnel.open()
  const { url, failure } = tunnel
  if (url === undefined) throw failure ?? new Error('The tunnel was closed while it opened.')
  const close = () => tunnel.close()
  return { url, close, [Symbol.asyncDispose]: close }
}

function placeOf({ protocol, host, hostname, port, pathname }: URL): OriginOptions {
  if (protocol === 'unix:') return { unix: decodeURIComponent(pathname) }
  // All interfaces are an address to listen on, which not every system can dial.
  const to = hostname === '0.0.0.0' || hostname === '[::]' ? `localhost${port && `:${port}`}` : host
  // A certificate for localhost is rarely trusted.
  return protocol === 'https:' ? { url: `https://${to}`, appInsecure: true } : { url: `http://${to}` }
}
