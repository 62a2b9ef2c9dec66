// `localtunnels server`.

import { type Command, Option } from 'commander'
import type { ServerConfigOptions } from '../../config/server-config.ts'
import { TunnelError } from '../../errors.ts'
import type { Actions } from '../actions.ts'
import { Flags } from '../settings/flags.ts'
import { acmeOptions, acmeSettings } from './acme.ts'
import { adminAddress } from './admin.ts'
import { under } from './help.ts'
import { JSON_OPTION, LOG_RATE_OPTION, outputWish, QUIET_OPTION } from './printing.ts'
import { readAuthority, readText, repeatable, seconds, wholeNumber } from './values.ts'
import { workerCount } from './worker-count.ts'

export function addServerCommand(program: Command, actions: Actions): void {
  const server = program.command('server').description('run a tunnel server').addHelpText('after', VARIABLES)
  for (const option of serverOptions()) server.addOption(option)
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

function serverOptions(): Option[] {
  return [
    ...under('General:', [
      new Option('--config <file>', 'read settings from this file; options and variables override it').env(
        'TUNNEL_SERVER_CONFIG',
      ),
      new Option(
        '-p, --port <port>',
        'port for visitors and clients, 0 for any free port (default: 8080, with --acme 443)',
      ).env('TUNNEL_SERVER_PORT'),
      new Option('--host <address>', 'address to listen on (default: 0.0.0.0)').env('TUNNEL_SERVER_HOST'),
      repeatable('--domain <domain>', 'tunnels get names below it (default: localhost); repeatable').env(
        'TUNNEL_SERVER_DOMAIN',
      ),
      new Option('--public-url <url>', 'URL that visitors use, if a proxy is in front of the server').env(
        'TUNNEL_SERVER_PUBLIC_URL',
      ),
      new Option(
        '--origin-timeout <seconds>',
        'time that an app has to respond, 0 for no limit (default: 60)',
      ).env('TUNNEL_SERVER_ORIGIN_TIMEOUT'),
      new Option('--branding-name <name>', 'your name, on the pages that visitors see').env(
        'TUNNEL_SERVER_BRANDING_NAME',
      ),
      new Option(
        '--branding-contact <address>',
        'email address or https:// URL for help, on these pages',
      ).env('TUNNEL_SERVER_BRANDING_CONTACT'),
      new Option('--branding-logo <file>', 'your logo on these pages: an SVG of at most 64 KiB').env(
        'TUNNEL_SERVER_BRANDING_LOGO',
      ),
      new Option(
        '--workers <count>',
        'processes that share the ports, or auto for one per core (default: 1)',
      ).env('TUNNEL_SERVER_WORKERS'),
    ]),
    ...under('Certificates from an authority (ACME):', acmeOptions()),
    ...under('TLS:', [
      repeatable('--tls-cert <file>', 'certificate chain, PEM; repeatable, for other names').env(
        'TUNNEL_SERVER_TLS_CERT',
      ),
      repeatable('--tls-key <file>', 'its private key, PEM; repeatable, in the same order').env(
        'TUNNEL_SERVER_TLS_KEY',
      ),
      new Option(
        '--tls-min-version <version>',
        'oldest accepted version of TLS: 1.2 or 1.3 (default: 1.2)',
      ).env('TUNNEL_SERVER_TLS_MIN_VERSION'),
      new Option(
        '--tls-ciphers <list>',
        'ciphers of TLS 1.2, names of OpenSSL (default: ciphers with forward secrecy and authentication)',
      ).env('TUNNEL_SERVER_TLS_CIPHERS'),
      new Option(
        '--client-ca <file>',
        'require a certificate from every client, signed by these authorities, PEM',
      ).env('TUNNEL_SERVER_CLIENT_CA'),
      new Option(
        '--http-port <port>',
        'port that redirects to https and serves the checks of ACME (default: none, with --acme 80)',
      ).env('TUNNEL_SERVER_HTTP_PORT'),
      new Option('--no-http2', 'do not offer HTTP/2 to visitors').env('TUNNEL_SERVER_NO_HTTP2'),
      new Option('--http3', 'offer HTTP/3 to visitors (experimental)').env('TUNNEL_SERVER_HTTP3'),
      new Option(
        '--hsts <seconds>',
        'send Strict-Transport-Security with this max-age (default: do not send it)',
      ).env('TUNNEL_SERVER_HSTS'),
    ]),
    ...under('Clients and tokens:', [
      new Option(
        '--tokens-db [file]',
        'accept the tokens of "localtunnels token" (default file: tokens.db in the state folder)',
      ).env('TUNNEL_SERVER_TOKENS_DB'),
      repeatable('--token <token>', 'accept this token; repeatable').env('TUNNEL_SERVER_TOKEN'),
      new Option('--token-issuer <url>', 'accept JSON Web Tokens of this issuer, such as a CI system').env(
        'TUNNEL_SERVER_TOKEN_ISSUER',
      ),
      new Option('--token-audience <text>', 'audience ("aud") that these tokens must have').env(
        'TUNNEL_SERVER_TOKEN_AUDIENCE',
      ),
      repeatable(
        '--token-claim <name=value>',
        'claim that these tokens must have, such as repository=me/shop; * matches any characters; repeatable',
      ).env('TUNNEL_SERVER_TOKEN_CLAIM'),
      repeatable(
        '--token-names <pattern>',
        'subdomains that these tokens may use, such as ci-* or {repository_owner}--* (default: all); repeatable',
      ).env('TUNNEL_SERVER_TOKEN_NAMES'),
      new Option(
        '--open',
        'accept clients without a token from other machines too; anyone can then open tunnels',
      ).env('TUNNEL_SERVER_OPEN'),
    ]),
    ...under('Tunnels:', [
      new Option('--tcp-ports <ports>', 'ports of TCP tunnels, or none (default: 20000-29999)').env(
        'TUNNEL_SERVER_TCP_PORTS',
      ),
      new Option('--udp-ports <ports>', 'ports of UDP tunnels, or none (default: 20000-29999)').env(
        'TUNNEL_SERVER_UDP_PORTS',
      ),
      new Option('--tls-port <port>', 'port of all TLS tunnels, which have names (default: none)').env(
        'TUNNEL_SERVER_TLS_PORT',
      ),
      new Option('--inbox <file>', 'store webhooks in this file while their client is offline').env(
        'TUNNEL_SERVER_INBOX',
      ),
    ]),
    ...under('Behind a proxy:', [
      repeatable(
        '--trusted-proxy <address>',
        'trust X-Forwarded-* headers from this address or range; repeatable',
      ).env('TUNNEL_SERVER_TRUSTED_PROXY'),
      new Option('--proxy-protocol', 'expect a PROXY header from trusted proxies').env(
        'TUNNEL_SERVER_PROXY_PROTOCOL',
      ),
    ]),
    ...under('Several servers:', [
      new Option(
        '--cluster <url>',
        'Redis or Valkey that all servers of the domain use: redis://host:6379',
      ).env('TUNNEL_SERVER_CLUSTER'),
      new Option(
        '--peer-url <url>',
        'URL at which the other servers reach this one (default: the address it listens on)',
      ).env('TUNNEL_SERVER_PEER_URL'),
    ]),
    ...under('Operation:', [
      new Option(
        '--admin <address>',
        'serve the admin page, its API and metrics there, such as 127.0.0.1:9090',
      ).env('TUNNEL_SERVER_ADMIN'),
      new Option(
        '--admin-token <token>',
        'token for it (default: a new one per start, which "localtunnels admin" finds)',
      ).env('TUNNEL_SERVER_ADMIN_TOKEN'),
      new Option(
        '--access-log <file>',
        'write one JSON line per request or connection; - for standard output',
      ).env('TUNNEL_SERVER_ACCESS_LOG'),
      new Option('--tracing', 'add X-Request-Id and traceparent headers to requests').env(
        'TUNNEL_SERVER_TRACING',
      ),
      new Option('--json', JSON_OPTION).env('TUNNEL_SERVER_JSON'),
      new Option('--log-rate <lines>', LOG_RATE_OPTION).env('TUNNEL_SERVER_LOG_RATE'),
      new Option('-q, --quiet', QUIET_OPTION).env('TUNNEL_SERVER_QUIET'),
    ]),
  ]
}

const VARIABLES = `
Each option is also a variable: --tls-cert is TUNNEL_SERVER_TLS_CERT.
Options on the command line override variables, and both override the file.`

function serverSettings(flags: Flags): ServerConfigOptions {
  const host = flags.text('host')
  const port = flags.port('port', 0)
  const domains = flags.list('domain')
  const tokens = flags.list('token')
  const trustedProxies = flags.list('trustedProxy')
  const publicUrl = flags.text('publicUrl')
  const tcpPorts = flags.text('tcpPorts')
  const udpPorts = flags.text('udpPorts')
  const originTimeoutMs = seconds(flags, 'originTimeout')
  const files = tlsFiles(flags)
  const tlsMinVersion = tlsVersion(flags)
  const tlsCiphers = flags.text('tlsCiphers')
  const hsts = wholeNumber(flags, 'hsts')
  const tlsPort = flags.port('tlsPort', 0)
  const httpPort = flags.port('httpPort', 0)
  const acme = acmeSettings(flags)
  const clientCa = flags.text('clientCa')
  const accessLog = flags.text('accessLog')
  return {
    ...(acme && { acme }),
    ...adminSettings(flags),
    ...brandingSettings(flags),
    ...clusterSettings(flags),
    ...(flags.text('inbox') && { inboxOf: { file: flags.text('inbox') ?? '' } }),
    ...(flags.isOn('tracing') && { tracing: true }),
    ...(accessLog !== undefined && { accessLog: accessLog === '-' ? {} : { file: accessLog } }),
    ...(clientCa !== undefined && { clientCa: readAuthority(clientCa, flags.label('clientCa')) }),
    ...(httpPort !== undefined && { httpPort }),
    ...(host !== undefined && { host }),
    ...(port !== undefined && { port }),
    ...(domains.length > 0 && { domains }),
    ...(tokens.length > 0 && { tokens }),
    ...(flags.isOn('tokensDb')
      ? { tokensFile: true as const }
      : flags.text('tokensDb') && { tokensFile: flags.text('tokensDb') ?? true }),
    ...jwtSettings(flags),
    ...(flags.isOn('open') && { open: true }),
    ...(tcpPorts !== undefined && { tcpPorts: tcpPorts === 'none' ? '' : tcpPorts }),
    ...(udpPorts !== undefined && { udpPorts: udpPorts === 'none' ? '' : udpPorts }),
    ...(trustedProxies.length > 0 && { trustedProxies }),
    ...(flags.isOn('proxyProtocol') && { acceptProxyProtocol: true }),
    ...(publicUrl !== undefined && { publicUrl }),
    ...(originTimeoutMs !== undefined && { limits: { originTimeoutMs } }),
    ...(files.length > 0 && { tlsFiles: files }),
    ...(tlsMinVersion !== undefined && { tlsMinVersion }),
    ...(tlsCiphers !== undefined && { tlsCiphers }),
    ...(flags.isOff('http2') && { http2: false }),
    ...(flags.isOn('http3') && { http3: true }),
    ...(hsts !== undefined && { hsts }),
    ...(tlsPort !== undefined && { tlsPort }),
  }
}

/** One rule; a file has any number of them. */
function jwtSettings(flags: Flags): Pick<ServerConfigOptions, 'jwtTokens'> {
  const [issuer, audience] = [flags.text('tokenIssuer'), flags.text('tokenAudience')]
  const [claims, names] = [flags.list('tokenClaim'), flags.list('tokenNames')]
  if (issuer === undefined && audience === undefined && claims.length === 0 && names.length === 0) return {}
  if (issuer === undefined || audience === undefined)
    throw new TunnelError(
      'OPTION_INVALID',
      '--token-issuer and --token-audience belong together: who makes the tokens, and for whom.',
    )
  const pairs = claims.map((text): [string, string] => {
    const at = text.indexOf('=')
    if (at > 0 && at < text.length - 1) return [text.slice(0, at), text.slice(at + 1)]
    throw new TunnelError(
      'OPTION_INVALID',
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
  // Without a URL it is that of the file.
  return { clusterOf: { url: url ?? '', ...(peerUrl !== undefined && { peerUrl }) } }
}

function brandingSettings(flags: Flags): Pick<ServerConfigOptions, 'branding'> {
  const [name, contact, logo] = [
    flags.text('brandingName'),
    flags.text('brandingContact'),
    flags.text('brandingLogo'),
  ]
  if (name === undefined && contact === undefined && logo === undefined) return {}
  return {
    branding: {
      ...(name !== undefined && { name }),
      ...(contact !== undefined && { contact }),
      ...(logo !== undefined && { logo: readText(logo, flags.label('brandingLogo')) }),
    },
  }
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
  throw new TunnelError(
    'OPTION_INVALID',
    `${flags.label('tlsMinVersion')} "${version}" is neither 1.2 nor 1.3.`,
  )
}

/** The first key belongs to the first certificate, and so on. */
function tlsFiles(flags: Flags): readonly { readonly cert: string; readonly key: string }[] {
  const certs = flags.list('tlsCert')
  const keys = flags.list('tlsKey')
  if (certs.length !== keys.length)
    throw new TunnelError('TLS_INVALID', '--tls-cert and --tls-key belong together; one of them is missing.')
  return certs.map((cert, index) => ({ cert, key: keys[index] ?? '' }))
}
