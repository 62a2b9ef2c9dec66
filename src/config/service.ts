// A service of a client's configuration file: its kind, and the options of the client's function of that name.

import type {
  HttpTunnelOptions,
  TcpTunnelOptions,
  TlsTunnelOptions,
  UdpTunnelOptions,
} from '../client/options.ts'
import type { RouteTarget } from './target.ts'

/** A service. `options` are those of the client's function of the same name as `kind`. */
export type ServiceConfig =
  | { readonly name: string; readonly kind: 'http'; readonly options: HttpServiceOptions }
  | { readonly name: string; readonly kind: 'tcp'; readonly options: TcpTunnelOptions }
  | { readonly name: string; readonly kind: 'tls'; readonly options: TlsTunnelOptions & Named }
  | { readonly name: string; readonly kind: 'udp'; readonly options: UdpTunnelOptions }

export type ServiceKind = ServiceConfig['kind']

/** The options of an HTTP service: exactly one of `port`, `url`, `unix` and `folder` is there. */
export type HttpServiceOptions = Omit<HttpTunnelOptions, 'routes'> &
  Named & { readonly routes?: Readonly<Record<string, RouteTarget>> }

/** A file always has a name to ask for. */
interface Named {
  readonly subdomain: string
}
