// The parts that integrations of dev servers share: their options, where the app listens, and the line that a developer reads.

import type { AddressInfo } from 'node:net'
import pc from 'picocolors'
import type { ReserveOptions } from '../reserve.ts'
import type { HeldTunnel } from './held-tunnel.ts'

export interface DevTunnelOptions extends ReserveOptions {
  /** `false`: no tunnel. Default `true`, and never in builds, previews and tests. */
  readonly enabled?: boolean
}

export const NO_SERVER = 'localtunnels: no tunnel, as there is no server: give server, or set TUNNEL_SERVER.'

export function hasServer({ server }: ReserveOptions): boolean {
  return Boolean(server ?? process.env.TUNNEL_SERVER)
}

/** The tunnel leads to a dev server that listens. */
export function leadTo(tunnel: HeldTunnel, address: AddressInfo | string | null, isSecure: boolean): void {
  if (address === null || typeof address === 'string') return
  // A certificate for localhost is rarely one that is trusted.
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
