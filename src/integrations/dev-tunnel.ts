// The common parts of integrations with dev servers: their options, where the app listens, and the line for the developer.

import type { AddressInfo } from 'node:net'
import pc from 'picocolors'
import type { ReserveOptions } from '../reserve.ts'
import type { HeldTunnel } from './held-tunnel.ts'

export interface DevTunnelOptions extends ReserveOptions {
  /** Whether to open a tunnel. Default `true`, and never in builds, previews and tests. */
  readonly enabled?: boolean
}

export const NO_SERVER = 'localtunnels: no tunnel, as there is no server: give server, or set TUNNEL_SERVER.'

export function hasServer({ server }: ReserveOptions): boolean {
  return Boolean(server ?? process.env.TUNNEL_SERVER)
}

/** Sends the tunnel's visitors to a dev server that listens. */
export function leadTo(tunnel: HeldTunnel, address: AddressInfo | string | null, isSecure: boolean): void {
  if (address === null || typeof address === 'string') return
  // A certificate for localhost is rarely trusted.
  if (isSecure) tunnel.lead({ url: `https://localhost:${address.port}`, appInsecure: true })
  else tunnel.lead({ port: address.port })
}

/** Formatted like the URLs of Vite and Nuxt. */
export function urlLine({ url, failure }: HeldTunnel): string {
  const why = failure === undefined ? 'paused' : 'none'
  return `  ${pc.green('➜')}  ${pc.bold('Tunnel')}:  ${url === undefined ? pc.dim(why) : pc.cyan(url)}`
}

export function failureLine({ message }: Error): string {
  return `localtunnels: no tunnel. ${message}`
}
