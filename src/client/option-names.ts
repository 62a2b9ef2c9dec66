// The options of clients and their tunnels, by name.

import { type Names, namesOf } from '../option-names.ts'
import type {
  HealthOptions,
  HttpTunnelOptions,
  OriginOptions,
  RouteOptions,
  SharedTunnelOptions,
  TcpTunnelOptions,
  TlsTunnelOptions,
  TunnelClientOptions,
  UdpTunnelOptions,
} from './options.ts'

const SHARED: Names<SharedTunnelOptions> = namesOf<SharedTunnelOptions>()('token guard private')

export const ORIGIN_NAMES: Names<OriginOptions> = namesOf<OriginOptions>()(
  'port host url unix fetch websocket folder spa later appInsecure appCa appServerName',
  'originConnectTimeoutMs hostHeader rewrite stripPrefix addPrefix',
)

export const ROUTE_NAMES: Names<RouteOptions> = { ...ORIGIN_NAMES, protocol: true }

export const HEALTH_NAMES: Names<HealthOptions> = namesOf<HealthOptions>()(
  'kind path intervalMs timeoutMs healthyAfter unhealthyAfter',
)

export const HTTP_NAMES: Names<HttpTunnelOptions> = {
  ...ORIGIN_NAMES,
  ...SHARED,
  ...namesOf<Omit<HttpTunnelOptions, keyof OriginOptions | keyof SharedTunnelOptions>>()(
    'verify subdomain exact routes pool filter health wildcard wildcardHosts hosts protocol inbox',
    'responseTimeoutMs away collectBodyBytes',
  ),
}

export const TCP_NAMES: Names<TcpTunnelOptions> = {
  ...SHARED,
  ...namesOf<Omit<TcpTunnelOptions, keyof SharedTunnelOptions>>()(
    'port host unix remotePort pool health proxyProtocol originConnectTimeoutMs',
  ),
}

const { remotePort: _remotePort, ...RAW } = TCP_NAMES
export const TLS_NAMES: Names<TlsTunnelOptions> = { ...RAW, subdomain: true, wildcard: true, hosts: true }

export const UDP_NAMES: Names<UdpTunnelOptions> = {
  ...SHARED,
  ...namesOf<Omit<UdpTunnelOptions, keyof SharedTunnelOptions>>()('port host remotePort idleTimeoutMs'),
}

export const CLIENT_NAMES: Names<TunnelClientOptions> = {
  ...HTTP_NAMES,
  ...namesOf<Omit<TunnelClientOptions, keyof HttpTunnelOptions>>()(
    'server insecureToken wire verifyServer ca cert key pin proxy agent connectTimeoutMs reconnect',
    'maxBackoffMs pingIntervalMs deadAfterMs probeIntervalMs drainTimeoutMs stateFolder reportRate',
    'inspect limits',
  ),
}

/** Translates options of the packages `localtunnels` (version 0.2.0) and `localtunnel`. */
export const CLIENT_HINTS: Readonly<Record<string, string>> = {
  localPort: 'The port of the app is port, and its host is host; the address of the server is server.',
  localHost: 'The host of the app is host, and its port is port; the address of the server is server.',
  local_host: 'The host of the app is host; hostHeader replaces the Host that it sees.',
  secure: 'server has the scheme: https://tunnel.example.',
  authtoken: 'It is token.',
  basicAuth: 'It is guard: { password }.',
  basic_auth: 'It is guard: { password }.',
  verbose: 'The client prints nothing. Its events tell what happens.',
  domain: 'It is subdomain, or hosts for hosts of your own.',
  name: 'It is subdomain.',
}
