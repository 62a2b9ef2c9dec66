// Where the tunnel server is, and whether what a client sends there can be read on the way.

import { TunnelError } from '../errors.ts'
import { isLoopback } from '../names.ts'
import type { Address } from '../socket.ts'

/** The server as something to dial. */
export interface ServerAddress {
  readonly address: Address
  /** For Host headers and messages. */
  readonly host: string
  readonly isSecure: boolean
}

/** Reads `ws://`, `wss://`, `http://`, `https://` or `host[:port]`, which is https unless it is this machine. */
export function parseServer(
  server: string,
  tls: { readonly verifyServer?: boolean; readonly ca?: string } = {},
): ServerAddress {
  const parsed = parseUrl(server)
  if (parsed === undefined || !/^(?:wss?|https?):$/.test(parsed.protocol) || parsed.hostname === '') {
    throw new TunnelError('OPTION_INVALID', `"${server}" is not the address of a server.`)
  }
  const isSecure = parsed.protocol === 'wss:' || parsed.protocol === 'https:'
  const host = parsed.hostname.replace(/^\[|\]$/g, '')
  const port = parsed.port === '' ? (isSecure ? 443 : 80) : Number(parsed.port)
  const secure = {
    ...(tls.verifyServer !== undefined && { verify: tls.verifyServer }),
    ...(tls.ca !== undefined && { ca: tls.ca }),
  }
  return { address: { host, port, ...(isSecure && { tls: secure }) }, host: parsed.host, isSecure }
}

/** The one spelling of a server: `https://tunnel.example`, with the port when it is not the scheme's own. */
export function serverOrigin(server: string): string {
  const { host, isSecure } = parseServer(server)
  return `${isSecure ? 'https' : 'http'}://${host}`
}

/**
 * Refuses with `TOKEN_IN_CLEAR` to send a token where others can read it: without TLS to another machine. A proxy is one,
 * also on the way to this machine.
 */
export function guardToken(
  token: string | undefined,
  way: {
    readonly server: ServerAddress
    readonly proxyLabel: string | undefined
    readonly isInsecureTokenAllowed: boolean
  },
): void {
  const { server, proxyLabel, isInsecureTokenAllowed } = way
  if (token === undefined || server.isSecure || isInsecureTokenAllowed) return
  if (isLoopback(server.address.host ?? '') && proxyLabel === undefined) return
  const through = proxyLabel === undefined ? '' : `, through the proxy ${proxyLabel}`
  throw new TunnelError(
    'TOKEN_IN_CLEAR',
    `The token would go to http://${server.host} unencrypted${through}.`,
  )
}

function parseUrl(server: string): URL | undefined {
  if (/^[a-z][a-z0-9+.-]*:\/\//i.test(server)) return URL.canParse(server) ? new URL(server) : undefined
  const secure = `https://${server}`
  if (!URL.canParse(secure)) return undefined
  const url = new URL(secure)
  // Not another `protocol` for this one: it has dropped a port 443 by now.
  return isLoopback(url.hostname) ? new URL(`http://${server}`) : url
}
