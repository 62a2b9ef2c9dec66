// The meaning of a server's configuration file: the options of a TunnelServer.

import type { Countries } from '../countries.ts'
import type { TunnelServerOptions } from '../server/settings/options.ts'
import type { SharedRates } from '../shared-rates.ts'
import type { UsedLinks } from '../store.ts'
import { Check, type Checked, type CheckOptions } from './check.ts'
import type { TableNode } from './node.ts'
import { CLIENT_FIELDS, SERVER_FIELDS } from './schema/fields.ts'
import type { Output } from './schema/inferred.ts'

export interface ServerConfig {
  readonly kind: 'server'
  readonly options: ServerConfigOptions
}

/** The table `acme`, for the command alone: a program makes its `AcmeCertificates` itself. */
export type AcmeSettings = Output<'acme'>
/** The table `admin`, for the command: a program gives its server a token and a store. */
export type AdminConfig = Output<'admin'>
export type RateConfig = Output<'server-rate'>
export type JwtTokenConfig = Output<'jwt-token'>
export type ClusterConfig = Output<'cluster'>

/** The keys that the command turns into options. */
type OwnKeys =
  | 'open'
  | 'adminListener'
  | 'clusterOf'
  | 'inboxOf'
  | 'rates'
  | 'jwtTokens'
  | 'pluginFiles'
  | 'accessLog'
  | 'acme'
  | 'countriesFile'
  | 'jwtIssuers'
  | 'login'

export interface ServerConfigOptions extends TunnelServerOptions, Pick<Output<'server'>, OwnKeys> {
  /** The token file of `localtunnels token`; `true`: the one in the state folder. */
  readonly tokensFile?: string | true
  /** The PEM files of certificates, as flags name them. */
  readonly tlsFiles?: readonly { readonly cert: string; readonly key: string }[]
  /** The store of `shared` rates, which the command opens. */
  readonly sharedRates?: SharedRates
  /** The countries of addresses, in a file that the command opens. */
  readonly countries?: Countries
  /** Opens the store of used links of the command. */
  readonly usedLinks?: () => Promise<UsedLinks | undefined>
}

export function checkServer(root: TableNode, options: CheckOptions): Checked<ServerConfig> {
  const check = new Check(options)
  // The names and types of SERVER_FIELDS, which test/config/syntaxes.test.ts checks.
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
  return check.checked({ kind: 'server', options: values })
}

/** Returns a file's options with those that win over them. Limits are combined one by one. */
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
