// The flags of `localtunnels server` for certificates of an authority.

import { Option } from 'commander'
import type { AcmeSettings } from '../../config/server-config.ts'
import { TunnelError } from '../../errors.ts'
import type { Flags } from '../settings/flags.ts'
import { readAuthority, repeatable } from './values.ts'

export function acmeOptions(): Option[] {
  return [
    new Option(
      '--acme <email>',
      "get certificates from Let's Encrypt, or --acme-directory; you agree to its terms",
    ).env('TUNNEL_SERVER_ACME'),
    new Option(
      '--acme-staging',
      "use the staging directory of Let's Encrypt, for tests: no browser trusts its certificates",
    ).env('TUNNEL_SERVER_ACME_STAGING'),
    new Option('--acme-challenge <kind>', 'http-01 or tls-alpn-01 (default: http-01)').env(
      'TUNNEL_SERVER_ACME_CHALLENGE',
    ),
    new Option('--acme-directory <url>', 'directory of another authority').env(
      'TUNNEL_SERVER_ACME_DIRECTORY',
    ),
    new Option(
      '--acme-ca <file>',
      "trust the directory's certificate if these authorities signed it, PEM (default: the authorities of the system)",
    ).env('TUNNEL_SERVER_ACME_CA'),
    new Option('--acme-key-id <id>', 'key ID of an external account, if the authority requires one').env(
      'TUNNEL_SERVER_ACME_KEY_ID',
    ),
    new Option('--acme-hmac-key <key>', 'key of the external account, base64url').env(
      'TUNNEL_SERVER_ACME_HMAC_KEY',
    ),
    new Option(
      '--acme-dns <provider>',
      'get one certificate for all names, proved by DNS records (docs/tls.md)',
    ).env('TUNNEL_SERVER_ACME_DNS'),
    repeatable(
      '--acme-resolver <address>',
      "DNS server for the records of --acme-dns and of custom domains (default: the system's); repeatable",
    ).env('TUNNEL_SERVER_ACME_RESOLVER'),
    repeatable(
      '--acme-address <address>',
      'public address of this server, which custom domains must point to; repeatable',
    ).env('TUNNEL_SERVER_ACME_ADDRESS'),
  ]
}

/** `undefined`: none are ordered. */
export function acmeSettings(flags: Flags): AcmeSettings | undefined {
  const email = flags.text('acme')
  const directory = flags.text('acmeDirectory')
  const ca = flags.text('acmeCa')
  const challenge = flags.text('acmeChallenge')
  const dns = flags.text('acmeDns')
  const resolvers = flags.list('acmeResolver')
  const addresses = flags.list('acmeAddress')
  const keyId = flags.text('acmeKeyId')
  const hmacKey = flags.text('acmeHmacKey')
  const isStaging = flags.isOn('acmeStaging')
  if (email === undefined) {
    const given = Object.entries({
      acmeDirectory: directory,
      acmeCa: ca,
      acmeChallenge: challenge,
      acmeDns: dns,
    })
    const [first] = [
      ...(given.find(([, value]) => value !== undefined) ?? (isStaging ? ['acmeStaging'] : [])),
    ]
    if (typeof first !== 'string') return undefined
    throw new TunnelError('OPTION_INVALID', `${flags.label(first)} needs --acme: your mail address.`)
  }
  if (challenge !== undefined && challenge !== 'http-01' && challenge !== 'tls-alpn-01')
    throw new TunnelError(
      'OPTION_INVALID',
      `${flags.label('acmeChallenge')} "${challenge}" is neither http-01 nor tls-alpn-01.`,
    )
  return {
    email,
    ...(directory !== undefined && { directory }),
    ...(ca !== undefined && { ca: readAuthority(ca, flags.label('acmeCa')) }),
    ...(isStaging && { staging: true }),
    ...(challenge !== undefined && { challenge }),
    ...(dns !== undefined && { dns }),
    ...(resolvers.length > 0 && { resolvers }),
    ...(addresses.length > 0 && { addresses }),
    ...(keyId !== undefined && { keyId }),
    ...(hmacKey !== undefined && { hmacKey }),
  }
}
