// The two ends of a tunnel in the form that commands use: the boundary to TunnelServer and TunnelClient.

import type {
  ConnectOptions,
  HttpTunnelOptions,
  TcpTunnelOptions,
  TlsTunnelOptions,
  TunnelClientEvents,
  TunnelClientOptions,
  UdpTunnelOptions,
} from '../client/options.ts'
import type { Tunnel } from '../client/tunnels/tunnel.ts'
import type { JwtTokenConfig, RateConfig, ServerConfigOptions } from '../config/server-config.ts'
import { optionInvalid, TunnelError } from '../errors.ts'
import type { Guard } from '../plugin.ts'
import type { TunnelServerEvents, TunnelServerOptions } from '../server/settings/options.ts'
import type { SharedRates } from '../shared-rates.ts'
import type { TokenReader } from '../tokens.ts'

export type TunnelEnd = Pick<Tunnel, 'kind' | 'name' | 'url' | 'close'>

export interface ClientEnd {
  connect(): Promise<void>
  /** Takes no new requests, and waits for open ones. */
  close(): Promise<void>
  disconnect(): Promise<void>
  http(options: HttpTunnelOptions): Promise<TunnelEnd>
  tcp(options: TcpTunnelOptions): Promise<TunnelEnd>
  tls(options: TlsTunnelOptions): Promise<TunnelEnd>
  udp(options: UdpTunnelOptions): Promise<TunnelEnd>
  connectTo(options: ConnectOptions): Promise<TunnelEnd>
  /** Sets the port of the app of a client with `later`. */
  forward(port: number): void
  isConnected(): boolean
  probe(): Promise<boolean | undefined>
  /** The round trip to the server, in milliseconds. 0 before it is measured. */
  readonly roundTripMs: number
  readonly inspectorUrl: string | undefined
  getTunnelUrl(): string
  getSubdomain(): string
  on<Name extends keyof TunnelClientEvents>(
    event: Name,
    listener: (payload: TunnelClientEvents[Name]) => void,
  ): () => void
}

export interface ServerEnd {
  start(): Promise<void>
  stop(): Promise<void>
  /** Stops after another program took over. */
  handOver(): Promise<void>
  readonly descriptors: readonly number[]
  /** Applies the options that can change while the server runs. */
  reload(options: TunnelServerOptions): Promise<void>
  readonly port: number
  readonly tlsPort: number | undefined
  readonly url: string
  readonly adminUrl: string | undefined
  isKnownHost(name: string): boolean
  on<Name extends keyof TunnelServerEvents>(
    event: Name,
    listener: (payload: TunnelServerEvents[Name]) => void,
  ): () => void
}

/** Makes a client. Its code is loaded only when a command needs it, so `--help` and usage errors do not load it. */
export async function createClient(options: TunnelClientOptions): Promise<ClientEnd> {
  const { TunnelClient } = await import('../tunnel-client.ts')
  return new TunnelClient(options)
}

/** Checks whether the server accepts a client with these options. Rejects with the reason if not. */
export async function reachServer(options: TunnelClientOptions): Promise<void> {
  const { reach } = await import('../client/reach/reach.ts')
  await reach(options)
}

/** The command that continues with Bun: with `--package`, npx only fetches Bun, and the program runs where it is installed. */
const GO_ON =
  'Install Bun 1.4 or newer (https://bun.sh), or run: npx --yes --package bun localtunnels, with the same options. With --server, a client also runs on Node 20.'

/** Throws on Node, before any code for Bun is loaded. */
export function needBun(text = 'A tunnel server needs Bun, and this is Node.'): void {
  if (typeof Bun === 'undefined') throw new TunnelError('RUNTIME_UNSUPPORTED', text, { action: GO_ON })
}

export async function createServer(options: ServerConfigOptions): Promise<ServerEnd> {
  const { TunnelServer } = await import('../tunnel-server.ts')
  return new TunnelServer(await withGuards(options))
}

/** Adds the guards that clients may ask for, and the operator's issuers. */
export async function withGuards({
  jwtIssuers = [],
  login = new Map(),
  open: _open,
  tokensFile: _tokensFile,
  adminListener: _adminListener,
  clusterOf: _clusterOf,
  inboxOf: _inboxOf,
  rates = [],
  jwtTokens = [],
  sharedRates,
  usedLinks,
  countriesFile: _countriesFile,
  countries,
  pluginFiles: _pluginFiles,
  accessLog: _accessLog,
  ...options
}: ServerConfigOptions): Promise<TunnelServerOptions> {
  const { guarding } = await import('../plugins/guarding.ts')
  const guards = [...(options.guards ?? []), ...(await ratesOf(rates, sharedRates))]
  const issuers = jwtIssuers.map(issuer => ({ issuer }))
  return {
    ...options,
    ...(guards.length > 0 && { guards }),
    ...(jwtTokens.length > 0 && { tokenReader: await readerOf(jwtTokens) }),
    guarding: guarding({
      issuers,
      logins: [...login.values()],
      ...(usedLinks && { usedLinks }),
      ...(countries && { countries }),
    }),
  }
}

/** The last token reader, and the rules it was made of. Verified tokens stay valid when a reload changes something else. */
let lastReader: { readonly rules: string; readonly reader: TokenReader } | undefined

async function readerOf(configs: readonly JwtTokenConfig[]): Promise<TokenReader> {
  const rules = configs.map(({ claims, ...rule }) => ({
    ...rule,
    ...(claims && { claims: Object.fromEntries(claims) }),
  }))
  const text = JSON.stringify(rules)
  if (lastReader?.rules === text) return lastReader.reader
  const { jwtTokens } = await import('../plugins/jwt-tokens.ts')
  const reader = jwtTokens(rules)
  lastReader = { rules: text, reader }
  return reader
}

async function ratesOf(
  rates: readonly RateConfig[],
  sharedRates: SharedRates | undefined,
): Promise<readonly Guard[]> {
  if (rates.length === 0) return []
  const { rate } = await import('../plugins/rate.ts')
  return rates.map(({ shared, ...one }) => {
    if (!shared) return rate(one)
    if (sharedRates !== undefined) return rate({ ...one, shared: sharedRates })
    throw optionInvalid('A rate that is shared needs a cluster from the start: cluster.url, or --cluster.')
  })
}
