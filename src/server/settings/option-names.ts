// The options of a server, by name.

import { type Names, namesOf } from '../../option-names.ts'
import type { TokenRule, TunnelServerOptions } from './options.ts'

export const SERVER_NAMES: Names<TunnelServerOptions> = namesOf<TunnelServerOptions>()(
  'port host inherited domains branding tls certificates challenges httpPort clientCa',
  'tlsMinVersion tlsCiphers http2 http3 hsts publicUrl basePath tcpPorts udpPorts tlsPort tokens',
  'tokenReader reservedNames trustedProxies acceptProxyProtocol reportRate guards observers',
  'middlewares tunnelRules tracing serverTiming admin cluster inbox guarding limits',
)

export const TOKEN_NAMES: Names<TokenRule> = namesOf<TokenRule>()(
  'token tokenHash name reserve names kinds tcpPorts udpPorts maxTunnels maxPorts requireGuard',
  'maxClients hosts maxHosts connect rate bandwidth',
)

/** Translates options of the package `localtunnels` of version 0.2.0. */
export const SERVER_HINTS: Readonly<Record<string, string>> = {
  domain: 'It is domains, a list.',
  token: 'It is tokens, a list.',
}
