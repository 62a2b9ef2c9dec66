// The options of a server, by name.

import type { Names } from '../option-names.ts'
import type { TokenRule, TunnelServerOptions } from './options.ts'

export const SERVER_NAMES: Names<TunnelServerOptions> = {
  port: true,
  host: true,
  inherited: true,
  domains: true,
  branding: true,
  tls: true,
  certificates: true,
  challenges: true,
  httpPort: true,
  clientCa: true,
  tlsMinVersion: true,
  tlsCiphers: true,
  http2: true,
  http3: true,
  hsts: true,
  publicUrl: true,
  tcpPorts: true,
  udpPorts: true,
  tlsPort: true,
  tokens: true,
  tokenReader: true,
  reservedNames: true,
  trustedProxies: true,
  acceptProxyProtocol: true,
  reportRate: true,
  guards: true,
  observers: true,
  middlewares: true,
  tunnelRules: true,
  tracing: true,
  serverTiming: true,
  admin: true,
  cluster: true,
  inbox: true,
  guarding: true,
  limits: true,
}

export const TOKEN_NAMES: Names<TokenRule> = {
  token: true,
  tokenHash: true,
  name: true,
  reserve: true,
  names: true,
  kinds: true,
  tcpPorts: true,
  udpPorts: true,
  maxTunnels: true,
  maxPorts: true,
  requireGuard: true,
  maxClients: true,
  hosts: true,
  maxHosts: true,
  rate: true,
  bandwidth: true,
}

/** Options of the package `localtunnels` 0.2, in our words. */
export const SERVER_HINTS: Readonly<Record<string, string>> = {
  domain: 'It is domains, a list.',
  token: 'It is tokens, a list.',
}
