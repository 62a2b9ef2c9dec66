// How a proxy can fail a dial, in words that name it without its login.

import { TunnelError } from '../../errors.ts'
import type { ProxySettings } from '../proxy.ts'

/** The proxy works; the server behind it does not answer it. */
export function cannotReach({ label }: ProxySettings, why: string): TunnelError {
  return new TunnelError('SERVER_UNREACHABLE', `The proxy ${label} cannot reach the tunnel server: ${why}.`)
}

export function notAProxy({ label, scheme }: ProxySettings, why: string): TunnelError {
  const kind = scheme.startsWith('http') ? 'an HTTP' : 'a SOCKS5'
  return new TunnelError('PROXY_REFUSED', `${label} is not ${kind} proxy, or it is broken: ${why}.`)
}
