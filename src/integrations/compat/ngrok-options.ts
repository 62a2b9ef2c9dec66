// Turns the options of `forward` of `@ngrok/ngrok` into options of a client.

import type {
  OriginOptions,
  TcpTunnelOptions,
  TlsTunnelOptions,
  TunnelClientOptions,
} from '../../client/options.ts'
import { optionInvalid, type TunnelError } from '../../errors.ts'
import type { GuardOptions } from '../../guard.ts'
import { checkNames, type Names, namesOf } from '../../option-names.ts'

type Several = string | readonly string[]

/** The options of `@ngrok/ngrok` that have a meaning here. Any other one: `OPTION_INVALID`. */
export interface ForwardOptions {
  /** The address of the app: `8080`, `"localhost:8080"`, `"https://localhost:8443"`, `"unix:/run/app.sock"`. Default 80. */
  readonly addr?: number | string
  /** `http` (default), `tcp`, or `tls` for an app that has the certificate. */
  readonly proto?: string
  /** The token of the server. Default: that of `authtoken()`, otherwise `TUNNEL_TOKEN`. */
  readonly authtoken?: string
  /** Whether to use the token of `TUNNEL_TOKEN`, which is also the default. */
  readonly authtoken_from_env?: boolean
  /** The host: `shop.tunnel.example` requests `shop`, and no other name. */
  readonly domain?: string
  readonly hostname?: string
  /** The public address, for `proto: 'tcp'`: `tunnel.example:20000` requests that port. */
  readonly remote_addr?: string
  /** The server. Default `TUNNEL_SERVER`. */
  readonly server_addr?: string
  /** The PEM text of the server's authority. */
  readonly session_ca_cert?: string
  /** The credentials `name:password`: visitors need the password, and any name. */
  readonly basic_auth?: Several
  readonly ip_restriction_allow_cidrs?: Several
  readonly ip_restriction_deny_cidrs?: Several
  /** The login provider `google`, for a server whose operator has listed that issuer. */
  readonly oauth_provider?: string
  readonly oauth_allow_domains?: Several
  readonly oauth_allow_emails?: Several
  /** The issuer of another login provider. */
  readonly oidc_issuer_url?: string
  readonly oidc_allow_domains?: Several
  readonly oidc_allow_emails?: Several
  /** The protocol of the app: `http2`. */
  readonly app_protocol?: string
  /** The version of the PROXY header, for `proto: 'tcp'` and `'tls'`: `"1"` or `"2"`. */
  readonly proxy_proto?: string
  /** Whether to verify the app's certificate. */
  readonly verify_upstream_tls?: boolean
  /** Whether to share the name with other clients that set this. */
  readonly pooling_enabled?: boolean
  readonly metadata?: string
  readonly forwards_to?: string
  /** Called with `closed` when the connection to the server is lost, and with `connected` when it is back. */
  readonly onStatusChange?: (status: string) => void
  /** Called when the connection to the server is lost. */
  readonly on_status_change?: (address: string, error: string) => void
}

/** The options of a client: its connection, with the app of an HTTP tunnel, or with a raw tunnel in addition. */
export type Wanted =
  | { readonly kind: 'http'; readonly client: TunnelClientOptions }
  | { readonly kind: 'tcp'; readonly client: TunnelClientOptions; readonly tunnel: TcpTunnelOptions }
  | { readonly kind: 'tls'; readonly client: TunnelClientOptions; readonly tunnel: TlsTunnelOptions }

const TAKEN: Names<ForwardOptions> = namesOf<ForwardOptions>()(
  'addr proto authtoken authtoken_from_env domain hostname remote_addr server_addr session_ca_cert',
  'basic_auth ip_restriction_allow_cidrs ip_restriction_deny_cidrs oauth_provider',
  'oauth_allow_domains oauth_allow_emails oidc_issuer_url oidc_allow_domains oidc_allow_emails',
  'app_protocol proxy_proto verify_upstream_tls pooling_enabled metadata forwards_to',
  'onStatusChange on_status_change',
)
/** The options that change neither access nor routing. */
const IDLE = { session_metadata: true, compression: true, force_new_session: true }
/** The address of an app without an `addr`. */
export const DEFAULT_ADDR = 80
const GOOGLE = 'https://accounts.google.com'

/** Converts the options. Throws `OPTION_INVALID`: an option that protects an app must not be ignored silently. */
export function wantedOf(options: ForwardOptions, defaultToken: string | undefined): Wanted {
  checkNames(options, { ...TAKEN, ...IDLE }, 'forward()')
  const {
    proto = 'http',
    addr = DEFAULT_ADDR,
    server_addr,
    session_ca_cert,
    authtoken = defaultToken,
  } = options
  const shared = guarded(options)
  const client = {
    ...(authtoken !== undefined && { token: authtoken }),
    ...(server_addr !== undefined && { server: server_addr }),
    ...(session_ca_cert !== undefined && { ca: session_ca_cert }),
  }
  const pool = options.pooling_enabled === true ? { pool: true } : {}
  if (proto === 'http') {
    const place = placeOf(addr)
    const isUnverified = options.verify_upstream_tls === false && place.url?.startsWith('https:')
    const app = { ...place, ...(isUnverified && { appInsecure: true }) }
    return {
      kind: 'http',
      client: { ...client, ...app, ...protocolOf(options, app), ...named(options), ...pool, ...shared },
    }
  }
  const proxied = proxyProtocolOf(options)
  const tunnel = { ...serviceOf(addr), ...proxied, ...pool, ...shared }
  if (proto === 'tcp') return { kind: 'tcp', client, tunnel: { ...tunnel, ...remotePortOf(options) } }
  if (proto === 'tls') {
    const { subdomain } = named(options)
    return { kind: 'tls', client, tunnel: { ...tunnel, ...(subdomain !== undefined && { subdomain }) } }
  }
  throw refused(`forward() does not have proto ${proto}`)
}

/** Returns the place of the app for `addr`. */
export function placeOf(addr: number | string): OriginOptions {
  const text = String(addr)
  if (text.startsWith('unix:')) return { unix: text.slice('unix:'.length) }
  if (/^https?:\/\//.test(text)) return { url: text }
  return { url: `http://${/^\d+$/.test(text) ? `localhost:${text}` : text}` }
}

function serviceOf(addr: number | string): Pick<TcpTunnelOptions, 'port' | 'host' | 'unix'> {
  const text = String(addr).replace(/^(?:tcp|tls):\/\//, '')
  if (text.startsWith('unix:')) return { unix: text.slice('unix:'.length) }
  const [, host, port = text] = /^(.*):(\d+)$/.exec(text) ?? []
  return { port: Number(port), ...(host !== undefined && { host: host.replace(/^\[|\]$/g, '') }) }
}

function named({ domain, hostname = domain }: ForwardOptions): { subdomain?: string; exact?: boolean } {
  return hostname === undefined ? {} : { subdomain: hostname.split('.')[0] ?? hostname, exact: true }
}

function remotePortOf({ remote_addr }: ForwardOptions): { remotePort?: number } {
  return remote_addr === undefined ? {} : { remotePort: Number(/\d+$/.exec(remote_addr)?.[0]) }
}

function protocolOf({ app_protocol }: ForwardOptions, { url }: OriginOptions): { protocol?: 'h2' | 'h2c' } {
  if (app_protocol === undefined || app_protocol === 'http1') return {}
  if (app_protocol !== 'http2') throw refused(`forward() does not have app_protocol ${app_protocol}`)
  return { protocol: url?.startsWith('https:') ? 'h2' : 'h2c' }
}

function proxyProtocolOf({ proxy_proto = '' }: ForwardOptions): { proxyProtocol?: 'v1' | 'v2' } {
  if (proxy_proto === '') return {}
  if (proxy_proto !== '1' && proxy_proto !== '2') throw refused('proxy_proto is "1" or "2"')
  return { proxyProtocol: proxy_proto === '1' ? 'v1' : 'v2' }
}

function guarded(options: ForwardOptions): { guard?: GuardOptions } {
  const allow = listOf(options.ip_restriction_allow_cidrs)
  const deny = listOf(options.ip_restriction_deny_cidrs)
  const guard: GuardOptions = {
    ...(allow.length > 0 && { allow }),
    ...(deny.length > 0 && { deny }),
    ...passwordOf(options),
    ...loginOf(options),
  }
  return Object.keys(guard).length === 0 ? {} : { guard }
}

function passwordOf({ basic_auth }: ForwardOptions): { password?: string } {
  const pairs = listOf(basic_auth)
  const [first] = pairs
  if (first === undefined) return {}
  if (pairs.length > 1) throw refused('basic_auth is one pair here')
  const [, password] = /^[^:]*:([\s\S]*)$/.exec(first) ?? []
  if (password === undefined) throw refused('basic_auth is "name:password"')
  return { password }
}

function loginOf(options: ForwardOptions): { login?: { issuer: string; emails?: string[] } } {
  const { oauth_provider, oidc_issuer_url } = options
  if (oauth_provider !== undefined && oauth_provider !== 'google')
    throw refused(`oauth_provider ${oauth_provider} has no OpenID Connect here`)
  const issuer = oauth_provider === undefined ? oidc_issuer_url : GOOGLE
  const domains = [...listOf(options.oauth_allow_domains), ...listOf(options.oidc_allow_domains)]
  const emails = [...listOf(options.oauth_allow_emails), ...listOf(options.oidc_allow_emails)]
  const all = [...emails, ...domains.map(domain => `*@${domain}`)]
  if (issuer === undefined) {
    if (all.length > 0) throw refused('allowed accounts need oauth_provider or oidc_issuer_url')
    return {}
  }
  return { login: { issuer, ...(all.length > 0 && { emails: all }) } }
}

function listOf(given: Several | undefined): readonly string[] {
  if (given === undefined) return []
  return typeof given === 'string' ? [given] : given
}

function refused(what: string): TunnelError {
  return optionInvalid(`${what}. TunnelClient has guards, routes and tunnels of all kinds.`)
}
