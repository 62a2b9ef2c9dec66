// Connects to the server with the client's settings.

import type { ClientSettings } from '../settings.ts'
import type { AcceptCarrier } from './carrier.ts'
import { directCarriers } from './direct.ts'

export interface CarrierUse {
  /** Subprotocols to offer. */
  readonly protocols: readonly string[]
  /** The maximum length of a text message in bytes. Default 0: text ends the carrier. */
  readonly maxTextBytes?: number | undefined
  readonly text: (message: string) => void
  readonly accept: AcceptCarrier
}

/** Connects to the server. Resolves once the server agreed and `accept` was called. */
export async function dialCarrier(
  settings: ClientSettings,
  signal: AbortSignal,
  use: CarrierUse,
): Promise<void> {
  const { server, tunnel, token, connectTimeoutMs, agent, dial, proxyLabel } = settings
  const { protocols, maxTextBytes = 0, text, accept } = use
  // Loaded only if needed: most clients do not use the package `ws`.
  const open = agent === undefined ? directCarriers(dial) : (await import('./ws.ts')).wsCarriers(agent)
  await open(
    {
      address: server.address,
      host: server.host,
      path: server.path,
      // Existing servers of the JSON wire expect the name in the query.
      query: tunnel?.name === undefined ? '' : `?subdomain=${encodeURIComponent(tunnel.name)}`,
      token,
      protocols,
      timeoutMs: connectTimeoutMs,
      proxyLabel,
      signal,
      maxTextBytes,
      text,
    },
    accept,
  )
}
