// `localtunnels server`.

import { availableParallelism } from 'node:os'
import type { Command } from 'commander'
import type { ServerConfigOptions } from '../../config/server-config.ts'
import { optionInvalid, TunnelError } from '../../errors.ts'
import type { Actions } from '../actions.ts'
import { Flags } from '../settings/flags.ts'
import { ACME_FLAGS, acmeSettings } from './acme.ts'
import { adminAddress } from './admin.ts'
import { outputWish, PRINTING_FLAGS } from './printing.ts'
import {
  duration,
  type FlagTexts,
  flagOptions,
  given,
  readAuthority,
  readText,
  wholeNumber,
} from './values.ts'

/** The maximum number of workers: each core can use one. */
const MOST_WORKERS = 64

export function addServer(server: Command, actions: Actions): void {
  server.addHelpText('after', VARIABLES)
  for (const option of flagOptions(FLAGS, 'TUNNEL_SERVER_')) server.addOption(option)
  server.action(async () => {
    const flags = new Flags(server)
    const text = flags.text('workers')
    const settings = {
      file: flags.text('config'),
      flags: serverSettings(flags),
      workers: text === undefined ? 1 : workerCount(text),
    }
    return actions.serve(settings, outputWish(flags))
  })
}

const FLAGS: FlagTexts = {
  'General:': {
    '--config <file>': 'read settings from this file; options and variables override it',
    '-p, --port <port>':
      'port for visitors and clients, 0 for any free port (default: 8080; 443 with --acme)',
    '--host <address>': 'address to listen on (default: 0.0.0.0)',
    '--domain <domain>': 'tunnels get names below it (default: localhost); repeatable',
    '--public-url <url>': 'URL that visitors use, if a proxy is in front of the server',
    '--origin-timeout <time>': 'time that an app has to respond, 0 for no limit (default: 60s)',
    '--branding-name <name>': 'your name, on the pages that visitors see',
    '--branding-contact <address>': 'email address or https:// URL for help, on these pages',
    '--branding-logo <file>': 'your logo on these pages: an SVG of at most 64 KiB',
    '--workers <count>': 'processes that share the ports, or auto for one per core (default: 1)',
  },
  'Certificates from an authority (ACME):': ACME_FLAGS,
  'TLS:': {
    '--tls-cert <file>': 'certificate chain, PEM; repeatable, for other names',
    '--tls-key <file>': 'private key of the certificate, PEM; repeatable, in the same order',
    '--tls-min-version <version>': 'oldest accepted version of TLS: 1.2 or 1.3 (default: 1.2)',
    '--tls-ciphers <list>':
      'ciphers of TLS 1.2, names of OpenSSL (default: ciphers with forward secrecy and authentication)',
    '--client-ca <file>': 'require a certificate from every client, signed by these authorities, PEM',
    '--http-port <port>':
      'port that redirects to https and serves the checks of ACME (default: none; 80 with --acme)',
    '--no-http2': 'do not offer HTTP/2 to visitors',
    '--http3': 'offer HTTP/3 to visitors (experimental)',
    '--hsts <seconds>': 'send Strict-Transport-Security with this max-age (default: do not send it)',
  },
  'Clients and tokens:': {
    '--countries <file>': 'MMDB file with the countries of addresses, for access rules such as country:DE',
    '--tokens-db [file]':
      'accept the tokens of "localtunnels token" (default file: tokens.db in the state folder)',
    '--token <token>': 'accept this token; repeatable',
    '--token-issuer <url>': 'accept JSON Web Tokens of this issuer, such as a CI system',
    '--token-audience <text>': 'audience ("aud") that these tokens must have',
    '--token-claim <name=value>':
      'claim that these tokens must have, such as repository=me/shop; * matches any characters; repeatable',
    '--token-names <pattern>':
      'subdomains that these tokens may use, such as ci-* or {repository_owner}--* (default: all); repeatable',
    '--open': 'accept clients without a token from other machines too; anyone can then open tunnels',
  },
  'Tunnels:': {
    '--tcp-ports <ports>': 'ports of TCP tunnels, or none (default: 20000-29999)',
    '--udp-ports <ports>': 'ports of UDP tunnels, or none (default: 20000-29999)',
    '--tls-port <port>': 'port of all TLS tunnels, which have names (default: none)',
    '--inbox <file>': 'store webhooks in this file while their client is offline',
  },
  'Behind a proxy:': {
    '--trusted-proxy <address>': 'trust X-Forwarded-* headers from this address or range; repeatable',
    '--base-path <path>': 'path of a site that the proxy passes to the server, such as /tunnel',
    '--proxy-protocol': 'expect a PROXY header from trusted proxies',
  },
  'Several servers:': {
    '--cluster <url>': 'Redis or Valkey that all servers of the domain use: redis://host:6379',
    '--peer-url <url>': 'URL at which the other servers reach this one (default: the address it listens on)',
  },
  'Operation:': {
    '--admin <address>': 'serve the admin page, its API and metrics there, such as 127.0.0.1:9090',
    '--admin-token <token>': 'token for it (default: a new one per start, which "localtunnels admin" finds)',
    '--access-log <file>': 'write one JSON line per request or connection; - for standard output',
    '--tracing': 'add X-Request-Id and traceparent headers to requests',
    ...PRINTING_FLAGS,
  },
}

const VARIABLES = `
A time is 500ms, 30s or 2h; a number alone is seconds.
Each option is also a variable: --tls-cert is TUNNEL_SERVER_TLS_CERT.
Options on the command line override variables, and both override the file.`

function serverSettings(flags: Flags): ServerConfigOptions {
  const inbox = flags.text('inbox')
  const clientCa = flags.text('clientCa')
  const accessLog = flags.text('accessLog')
  const originTimeoutMs = duration(flags, 'originTimeout', 0)
  return {
    ...adminSettings(flags),
    ...brandingSettings(flags),
    ...clusterSettings(flags),
    ...jwtSettings(flags),
    ...(inbox && { inboxOf: { file: inbox } }),
    ...(accessLog !== undefined && { accessLog: accessLog === '-' ? {} : { file: accessLog } }),
    ...(clientCa !== undefined && { clientCa: readAuthority(clientCa, flags.label('clientCa')) }),
    ...(originTimeoutMs !== undefined && { limits: { originTimeoutMs } }),
    ...(flags.isOff('http2') && { http2: false }),
    ...given({
      acme: acmeSettings(flags),
      tracing: flags.isOn('tracing'),
      httpPort: flags.port('httpPort', 0),
      host: flags.text('host'),
      port: flags.port('port', 0),
      domains: flags.list('domain'),
      tokens: flags.list('token'),
      tokensFile: flags.isOn('tokensDb') || flags.text('tokensDb') || undefined,
      countriesFile: flags.text('countries') || undefined,
      open: flags.isOn('open'),
      tcpPorts: portsOf(flags.text('tcpPorts')),
      udpPorts: portsOf(flags.text('udpPorts')),
      trustedProxies: flags.list('trustedProxy'),
      acceptProxyProtocol: flags.isOn('proxyProtocol'),
      publicUrl: flags.text('publicUrl'),
      basePath: flags.text('basePath'),
      tlsFiles: tlsFiles(flags),
      tlsMinVersion: tlsVersion(flags),
      tlsCiphers: flags.text('tlsCiphers'),
      http3: flags.isOn('http3'),
      hsts: wholeNumber(flags, 'hsts'),
      tlsPort: flags.port('tlsPort', 0),
    }),
  }
}

const portsOf = (text: string | undefined): string | undefined => (text === 'none' ? '' : text)

/** Returns one rule. A file can have any number of them. */
function jwtSettings(flags: Flags): Pick<ServerConfigOptions, 'jwtTokens'> {
  const [issuer, audience] = [flags.text('tokenIssuer'), flags.text('tokenAudience')]
  const [claims, names] = [flags.list('tokenClaim'), flags.list('tokenNames')]
  if (issuer === undefined && audience === undefined && claims.length === 0 && names.length === 0) return {}
  if (issuer === undefined || audience === undefined)
    throw optionInvalid(
      '--token-issuer and --token-audience belong together: who makes the tokens, and for whom.',
    )
  const pairs = claims.map((text): [string, string] => {
    const at = text.indexOf('=')
    if (at > 0 && at < text.length - 1) return [text.slice(0, at), text.slice(at + 1)]
    throw optionInvalid(
      `${flags.label('tokenClaim')} "${text}" is not a claim with its value, such as repository=me/shop.`,
    )
  })
  return {
    jwtTokens: [
      {
        issuer,
        audience,
        ...(pairs.length > 0 && { claims: new Map(pairs) }),
        ...(names.length > 0 && { names }),
      },
    ],
  }
}

function clusterSettings(flags: Flags): Pick<ServerConfigOptions, 'clusterOf'> {
  const url = flags.text('cluster')
  const peerUrl = flags.text('peerUrl')
  if (url === undefined && peerUrl === undefined) return {}
  // Adds the file's URL if the flags have none.
  return { clusterOf: { url: url ?? '', ...(peerUrl !== undefined && { peerUrl }) } }
}

function brandingSettings(flags: Flags): Pick<ServerConfigOptions, 'branding'> {
  const logo = flags.text('brandingLogo')
  const branding = given({
    name: flags.text('brandingName'),
    contact: flags.text('brandingContact'),
    logo: logo === undefined ? undefined : readText(logo, flags.label('brandingLogo')),
  })
  return Object.keys(branding).length === 0 ? {} : { branding }
}

function adminSettings(flags: Flags): Pick<ServerConfigOptions, 'adminListener'> {
  const address = flags.text('admin')
  const token = flags.text('adminToken')
  if (address === undefined && token === undefined) return {}
  return {
    adminListener: {
      ...(address !== undefined && adminAddress(address)),
      ...(token !== undefined && { token }),
    },
  }
}

function tlsVersion(flags: Flags): '1.2' | '1.3' | undefined {
  const version = flags.text('tlsMinVersion')
  if (version === undefined || version === '1.2' || version === '1.3') return version
  throw optionInvalid(`${flags.label('tlsMinVersion')} "${version}" is neither 1.2 nor 1.3.`)
}

/** Pairs the certificates with the keys, in order. */
function tlsFiles(flags: Flags): readonly { readonly cert: string; readonly key: string }[] {
  const certs = flags.list('tlsCert')
  const keys = flags.list('tlsKey')
  if (certs.length !== keys.length)
    throw new TunnelError('TLS_INVALID', '--tls-cert and --tls-key belong together; one of them is missing.')
  return certs.map((cert, index) => ({ cert, key: keys[index] ?? '' }))
}

/** Returns the number of workers. Throws `OPTION_INVALID`. */
function workerCount(text: string): number {
  if (text === 'auto') return Math.min(availableParallelism(), MOST_WORKERS)
  const count = Number(text)
  if (/^\d{1,3}$/.test(text) && count >= 1 && count <= MOST_WORKERS) return count
  throw optionInvalid(`--workers "${text}" is neither auto nor a number from 1 to ${MOST_WORKERS}.`)
}
