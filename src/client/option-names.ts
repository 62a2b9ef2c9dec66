// The options of clients and their tunnels, by name.

import type { Names } from '../option-names.ts'
import type {
  HttpTunnelOptions,
  OriginOptions,
  SharedTunnelOptions,
  TcpTunnelOptions,
  TlsTunnelOptions,
  TunnelClientOptions,
  UdpTunnelOptions,
} from './options.ts'

const SHARED: Names<SharedTunnelOptions> = { token: true, guard: true }

export const ORIGIN_NAMES: Names<OriginOptions> = {
  port: true,
  host: true,
  url: true,
  unix: true,
  fetch: true,
  websocket: true,
  folder: true,
  spa: true,
  later: true,
  appInsecure: true,
  appCa: true,
  appServerName: true,
  originConnectTimeoutMs: true,
  hostHeader: true,
}

export const HTTP_NAMES: Names<HttpTunnelOptions> = {
  ...ORIGIN_NAMES,
  ...SHARED,
  verify: true,
  subdomain: true,
  exact: true,
  routes: true,
  pool: true,
  take: true,
  health: true,
  wildcard: true,
  wildcardHosts: true,
  hosts: true,
  protocol: true,
  inbox: true,
}

export const TCP_NAMES: Names<TcpTunnelOptions> = {
  ...SHARED,
  port: true,
  host: true,
  unix: true,
  remotePort: true,
  pool: true,
  health: true,
  proxyProtocol: true,
  originConnectTimeoutMs: true,
}

const { remotePort: _remotePort, ...RAW } = TCP_NAMES
export const TLS_NAMES: Names<TlsTunnelOptions> = { ...RAW, subdomain: true, wildcard: true, hosts: true }

export const UDP_NAMES: Names<UdpTunnelOptions> = {
  ...SHARED,
  port: true,
  host: true,
  remotePort: true,
  idleTimeoutMs: true,
}

export const CLIENT_NAMES: Names<TunnelClientOptions> = {
  ...HTTP_NAMES,
  server: true,
  insecureToken: true,
  wire: true,
  verifyServer: true,
  ca: true,
  cert: true,
  key: true,
  pin: true,
  proxy: true,
  agent: true,
  connectTimeoutMs: true,
  reconnect: true,
  maxBackoffMs: true,
  pingIntervalMs: true,
  deadAfterMs: true,
  probeIntervalMs: true,
  drainTimeoutMs: true,
  stateFolder: true,
  reportRate: true,
  inspect: true,
  limits: true,
}

/** Options of the packages `localtunnels` 0.2 and `localtunnel`, in our words. */
export const CLIENT_HINTS: Readonly<Record<string, string>> = {
  localPort: 'The port of the app is port, and its host is host; the address of the server is server.',
  localHost: 'The host of the app is host, and its port is port; the address of the server is server.',
  local_host: 'The host of the app is host; hostHeader replaces the Host that it sees.',
  secure: 'server has the scheme: https://tunnel.example.',
  authtoken: 'It is token.',
  domain: 'It is subdomain, or hosts for hosts of your own.',
  name: 'It is subdomain.',
}
