// A service of a client's configuration file: its kind, and the options of the client's function with that name.

import type {
  ConnectOptions,
  HttpTunnelOptions,
  TcpTunnelOptions,
  TlsTunnelOptions,
  UdpTunnelOptions,
} from '../client/options.ts'
import type { RouteTarget } from './target.ts'

/** One service. `options` are those of the client's function named by `kind`; for `connect`, those of `connectTo`. */
export type ServiceConfig =
  | { readonly name: string; readonly kind: 'http'; readonly options: HttpServiceOptions }
  | { readonly name: string; readonly kind: 'tcp'; readonly options: TcpTunnelOptions }
  | { readonly name: string; readonly kind: 'tls'; readonly options: TlsTunnelOptions & Named }
  | { readonly name: string; readonly kind: 'udp'; readonly options: UdpTunnelOptions }
  /** The end of another client's private service on this machine, to which local programs connect. */
  | {
      readonly name: string
      readonly kind: 'connect'
      readonly options: ConnectOptions & { readonly port: number }
    }

export type ServiceKind = ServiceConfig['kind']

/** The options of an HTTP service, with exactly one of `port`, `url`, `unix` and `folder`. */
export type HttpServiceOptions = Omit<HttpTunnelOptions, 'routes'> &
  Named & { readonly routes?: Readonly<Record<string, RouteTarget>> }

/** A name, which a file always has, unless the service is private. */
interface Named {
  readonly subdomain?: string
}
