// The flags of `localtunnels server` for certificates of an authority.

import { Option } from 'commander'
import type { AcmeSettings } from '../../config/server-config.ts'
import { TunnelError } from '../../errors.ts'
import type { Flags } from '../settings/flags.ts'
import { readAuthority, repeatable } from './values.ts'

export function acmeOptions(): Option[] {
  return [
    new Option('--acme <email>', "certificates of an authority, Let's Encrypt, whose terms you agree to").env(
      'TUNNEL_SERVER_ACME',
    ),
    new Option('--acme-directory <url>', 'directory of another authority').env(
      'TUNNEL_SERVER_ACME_DIRECTORY',
    ),
    new Option('--acme-ca <file>', 'roots that sign the directory, PEM (default: of the system)').env(
      'TUNNEL_SERVER_ACME_CA',
    ),
    new Option('--acme-staging', "certificates of Let's Encrypt that no browser trusts, to try").env(
      'TUNNEL_SERVER_ACME_STAGING',
    ),
    new Option('--acme-challenge <kind>', 'http-01 or tls-alpn-01 (default: http-01)').env(
      'TUNNEL_SERVER_ACME_CHALLENGE',
    ),
    new Option(
      '--acme-dns <provider>',
      'one certificate for all names, proved by DNS records (docs/tls.md)',
    ).env('TUNNEL_SERVER_ACME_DNS'),
    repeatable('--acme-resolver <address>', 'name server asked where DNS records belong; repeatable').env(
      'TUNNEL_SERVER_ACME_RESOLVER',
    ),
    repeatable(
      '--acme-address <address>',
      'address of this server, to which hosts of customers have to lead; repeatable',
    ).env('TUNNEL_SERVER_ACME_ADDRESS'),
    new Option('--acme-key-id <id>', 'external account, for authorities that want one').env(
      'TUNNEL_SERVER_ACME_KEY_ID',
    ),
    new Option('--acme-hmac-key <key>', 'its key, base64url').env('TUNNEL_SERVER_ACME_HMAC_KEY'),
    new Option(
      '--http-port <port>',
      'port for redirects to https and checks (default: none; with --acme 80)',
    ).env('TUNNEL_SERVER_HTTP_PORT'),
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
