// A service of a client's configuration file: its kind, and the options of the client's function of that name.

import type { VerifyOptions } from '../client/options.ts'
import type { GuardOptions } from '../guard.ts'
import type { RouteTarget } from './target.ts'

/** One service. `options` are those of the client's function of the same name as `kind`. */
export type ServiceConfig =
  | { readonly name: string; readonly kind: 'http'; readonly options: HttpServiceOptions }
  | { readonly name: string; readonly kind: 'tcp'; readonly options: TcpServiceOptions }
  | { readonly name: string; readonly kind: 'tls'; readonly options: TlsServiceOptions }
  | { readonly name: string; readonly kind: 'udp'; readonly options: UdpServiceOptions }

export type ServiceKind = ServiceConfig['kind']

/** Exactly one of `port`, `url`, `unix` and `folder` is there. */
export interface HttpServiceOptions extends Shared {
  readonly pool?: { readonly affinity: 'none' | 'cookie' | 'address' } | CopyPoolOptions
  readonly take?: string
  readonly port?: number
  readonly host?: string
  readonly url?: string
  readonly unix?: string
  readonly folder?: string
  readonly spa?: boolean
  readonly subdomain: string
  readonly exact?: boolean
  readonly wildcard?: boolean
  readonly wildcardHosts?: readonly string[]
  readonly hosts?: readonly string[]
  readonly protocol?: 'http/1.1' | 'h2c' | 'h2'
  readonly verify?: VerifyOptions
  readonly inbox?: { readonly paths: readonly string[]; readonly answer?: number }
  readonly hostHeader?: string
  readonly appInsecure?: boolean
  readonly appCa?: string
  readonly appServerName?: string
  readonly originConnectTimeoutMs?: number
  /** By path prefix. */
  readonly routes?: Readonly<Record<string, RouteTarget>>
}

/** Exactly one of `port` and `unix` is there. */
export interface TcpServiceOptions extends Shared {
  readonly pool?: RawPoolOptions
  readonly port?: number
  readonly host?: string
  readonly unix?: string
  readonly originConnectTimeoutMs?: number
  readonly remotePort?: number
  readonly proxyProtocol?: 'v1' | 'v2'
}

/** Exactly one of `port` and `unix` is there. */
export interface TlsServiceOptions extends Shared {
  readonly pool?: RawPoolOptions
  readonly port?: number
  readonly host?: string
  readonly unix?: string
  readonly originConnectTimeoutMs?: number
  readonly subdomain: string
  readonly wildcard?: boolean
  readonly hosts?: readonly string[]
  readonly proxyProtocol?: 'v1' | 'v2'
}

export interface UdpServiceOptions {
  readonly port: number
  readonly host?: string
  readonly remotePort?: number
  readonly idleTimeoutMs?: number
  readonly token?: string
  readonly guard?: GuardOptions
}

interface Shared {
  readonly token?: string
  readonly health?: HealthOptions
  readonly guard?: GuardOptions
}

/** All get a copy. */
export interface CopyPoolOptions {
  readonly to: 'all'
  readonly answer?: string | number
  readonly label?: string
}

/** Cookies are for those who speak HTTP. */
export interface RawPoolOptions {
  readonly affinity: 'none' | 'address'
}

export interface HealthOptions {
  readonly kind: 'tcp' | 'http'
  readonly path?: string
  readonly intervalMs?: number
  readonly timeoutMs?: number
  readonly healthyAfter?: number
  readonly unhealthyAfter?: number
}
