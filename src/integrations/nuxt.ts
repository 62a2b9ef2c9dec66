// `localtunnels/nuxt`: the dev server of Nuxt with a public URL. The server that listens is Nuxt's own, with Vite behind it.
//
//   // nuxt.config.ts
//   export default defineNuxtConfig({
//     modules: [['localtunnels/nuxt', { server: 'https://tunnel.example', subdomain: 'shop' }]],
//   })

import type { Server } from 'node:net'
import { type DevTunnelOptions, failureLine, hasServer, leadTo, NO_SERVER, urlLine } from './dev-tunnel.ts'
import { HeldTunnel } from './held-tunnel.ts'

export type NuxtTunnelOptions = DevTunnelOptions

/** The used part of Nuxt's types. */
interface Nuxt {
  readonly options: {
    readonly dev: boolean
    vite: { server?: { allowedHosts?: true | string[] } }
  }
  hook(name: 'listen', listener: (server: Server, at: { readonly https?: unknown }) => void): unknown
  hook(name: 'close', listener: () => Promise<void>): unknown
}

/**
 * A module of Nuxt: reserves a name when the dev server starts, lets it accept that host, and shows the URL. A tunnel that cannot
 * be made is one line, and the dev server starts without. Needs `server`, or `TUNNEL_SERVER`. Builds have no tunnel.
 */
export default async function localtunnels(
  { enabled = true, ...options }: NuxtTunnelOptions,
  nuxt: Nuxt,
): Promise<void> {
  if (!enabled || !nuxt.options.dev) return
  if (!hasServer(options)) {
    console.warn(NO_SERVER)
    return
  }
  const tunnel = HeldTunnel.of('nuxt', options)
  await tunnel.open()
  if (tunnel.failure !== undefined) console.warn(failureLine(tunnel.failure))
  if (tunnel.host !== undefined) allow(nuxt, tunnel.host)
  nuxt.hook('listen', (server, { https }) => {
    leadTo(tunnel, server.address(), Boolean(https))
    console.log(urlLine(tunnel))
  })
  // Nuxt ends its process without a 'close' of its own.
  const drop = () => tunnel.drop()
  process.once('exit', drop)
  // A restart then makes a new Nuxt, which requests the same name.
  nuxt.hook('close', () => {
    process.off('exit', drop)
    return tunnel.close()
  })
}

function allow({ options }: Nuxt, host: string): void {
  const { server } = options.vite
  if (server?.allowedHosts === true) return
  options.vite = {
    ...options.vite,
    server: { ...server, allowedHosts: [...(server?.allowedHosts ?? []), host] },
  }
}
