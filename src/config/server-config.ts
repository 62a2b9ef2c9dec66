// What a server's configuration file means: the options of a TunnelServer.

import type { TokenRule, TunnelServerOptions } from '../server/options.ts'
import type { InboxOptions } from '../server/part-options.ts'
import type { SharedRates } from '../shared-rates.ts'
import type { UsedLinks } from '../store.ts'
import { Check, type CheckOptions } from './check.ts'
import type { Checked } from './client-config.ts'
import type { TableNode } from './node.ts'
import { CLIENT_FIELDS } from './schema/client.ts'
import { SERVER_FIELDS } from './schema/server.ts'

export interface ServerConfig {
  readonly kind: 'server'
  readonly options: ServerConfigOptions
}

/** The table `acme`, for the command alone: a program makes its `AcmeCertificates` itself. */
export interface AcmeSettings {
  readonly email: string
  readonly directory?: string
  /** PEM. */
  readonly ca?: string
  readonly staging?: boolean
  readonly challenge?: 'http-01' | 'tls-alpn-01'
  readonly dns?: string
  readonly resolvers?: readonly string[]
  readonly addresses?: readonly string[]
  readonly keyId?: string
  readonly hmacKey?: string
}

/** The table `admin`, for the command: a program gives its server a token and a store. */
export interface AdminConfig {
  readonly port?: number
  readonly host?: string
  /** Default: one for this start, which the commands of this user find. */
  readonly token?: string
  /** Path of the file for traffic, bans and what was done. Default: in the state folder of this user. */
  readonly store?: string
  readonly probeMs?: number
}

/** A table of `rates`. */
export interface RateConfig {
  readonly tunnels?: readonly string[]
  readonly limit: number
  readonly windowMs: number
  readonly by?: 'address' | 'tunnel' | 'token'
  readonly shared?: boolean
  readonly whenUnreachable?: 'local' | 'open' | 'closed'
}

/** A table of `jwt-tokens`. */
export interface JwtTokenConfig extends Omit<TokenRule, 'token' | 'tokenHash' | 'reserve'> {
  readonly issuer: string
  readonly audience: string
  readonly claims?: ReadonlyMap<string, string>
  readonly sessionMs?: number
  readonly jwksUrl?: string
}

/** The table `access-log`. */
export interface AccessLogConfig {
  readonly file?: string
  readonly samplePercent?: number
  readonly query?: boolean
  readonly maxFileBytes?: number
  readonly maxFiles?: number
}

/** The table `inbox`. */
export interface InboxConfig extends Omit<InboxOptions, 'store'> {
  readonly file: string
}

/** The table `cluster`. */
export interface ClusterConfig {
  readonly url: string
  readonly prefix?: string
  readonly ca?: string
  readonly peerUrl?: string
  readonly peerCa?: string
  readonly peerCert?: string
  readonly peerKey?: string
  readonly secret?: string
  readonly whenUnreachable?: 'refuse' | 'grant'
}

/** What is not there has the server's default. */
export interface ServerConfigOptions extends TunnelServerOptions {
  /** File of the tokens of `localtunnels token`; `true`: the one in the state folder. */
  readonly tokensFile?: string | true
  readonly tlsPort?: number
  /** Everybody may have a tunnel. For the command alone: a program that makes a server decides for itself. */
  readonly open?: boolean
  /** PEM files of certificates, as flags name them. */
  readonly tlsFiles?: readonly { readonly cert: string; readonly key: string }[]
  readonly adminListener?: AdminConfig
  readonly clusterOf?: ClusterConfig
  readonly inboxOf?: InboxConfig
  readonly rates?: readonly RateConfig[]
  /** Keeps the rates that are `shared`; the command opens it. */
  readonly sharedRates?: SharedRates
  /** Opens where used links are kept; the command has it. */
  readonly usedLinks?: () => Promise<UsedLinks | undefined>
  readonly jwtTokens?: readonly JwtTokenConfig[]
  /** Paths of modules. */
  readonly pluginFiles?: readonly string[]
  readonly accessLog?: AccessLogConfig
  /** Certificates of an authority. */
  readonly acme?: AcmeSettings
  /** Issuers that the guards of tunnels may ask for. For the command, which makes a server's `guarding` of them. */
  readonly jwtIssuers?: readonly string[]
  readonly login?: ReadonlyMap<string, LoginConfig>
}

/** An issuer at which visitors can sign in. */
export interface LoginConfig {
  readonly issuer: string
  readonly clientId: string
  readonly clientSecret: string
  readonly scope?: string
}

export function checkServer(root: TableNode, options: CheckOptions): Checked<ServerConfig> {
  const check = new Check(options)
  // The names and types of SERVER_FIELDS, as test/config/syntaxes.test.ts goes through them.
  const values = check.table(root, SERVER_FIELDS, '', [
    { fields: CLIENT_FIELDS, where: "in a client's file" },
  ]) as ServerConfigOptions
  const { limits, tokens = [], tlsPort, tls, acme, port = acme === undefined ? 8080 : 443 } = values
  if (limits !== undefined) {
    const { pingIntervalMs = 10_000, deadAfterMs = 25_000 } = limits
    if (deadAfterMs <= pingIntervalMs) {
      const key = limits.deadAfterMs === undefined ? 'ping-interval' : 'dead-after'
      check.fault(`limits.${key}`, 'limits.dead-after must be more than limits.ping-interval')
    }
  }
  if (tlsPort !== undefined && tlsPort !== 0 && tlsPort === port && (tls ?? acme) === undefined) {
    check.fault(
      'tls-port',
      `tls-port ${tlsPort} is the port of the server itself: that needs tls or acme, or another port`,
    )
  }
  const secrets = tokens.map(token => (typeof token === 'string' ? token : token.token))
  for (const [index, secret] of secrets.entries()) {
    const first = secrets.indexOf(secret)
    if (secret !== undefined && first < index) {
      check.fault(`tokens[${index}]`, `tokens[${index}] has the same token as tokens[${first}]`)
    }
  }
  const config: ServerConfig = { kind: 'server', options: values }
  return {
    config: check.faults.length === 0 ? config : undefined,
    faults: check.faults,
    shown: check.shown,
    places: check.places,
  }
}

/** A file's options with those that win over them; limits one by one. */
export function serverOptions({ options }: ServerConfig, stronger: ServerConfigOptions): ServerConfigOptions {
  const limits = { ...options.limits, ...stronger.limits }
  const branding = { ...options.branding, ...stronger.branding }
  const adminListener = { ...options.adminListener, ...stronger.adminListener }
  const { url = '', ...peer } = stronger.clusterOf ?? {}
  const clusterOf = { url: '', ...options.clusterOf, ...peer, ...(url !== '' && { url }) }
  const hasCluster = (options.clusterOf ?? stronger.clusterOf) !== undefined
  const hasAdmin = (options.adminListener ?? stronger.adminListener) !== undefined
  return {
    ...options,
    ...stronger,
    ...(Object.keys(limits).length > 0 && { limits }),
    ...(Object.keys(branding).length > 0 && { branding }),
    ...(hasAdmin && { adminListener }),
    ...(hasCluster && { clusterOf }),
  }
}
