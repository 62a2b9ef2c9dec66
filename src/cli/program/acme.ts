// The flags of `localtunnels server` for certificates of an authority.

import type { AcmeSettings } from '../../config/server-config.ts'
import { optionInvalid } from '../../errors.ts'
import type { Flags } from '../settings/flags.ts'
import { given, readAuthority, type Texts } from './values.ts'

export const ACME_FLAGS: Texts = {
  '--acme <email>': "get certificates from Let's Encrypt, or --acme-directory; you agree to its terms",
  '--acme-staging':
    "use the staging directory of Let's Encrypt, for tests: no browser trusts its certificates",
  '--acme-challenge <kind>': 'http-01 or tls-alpn-01 (default: http-01)',
  '--acme-directory <url>': 'directory of another authority',
  '--acme-ca <file>':
    "trust the directory's certificate if these authorities signed it, PEM (default: the authorities of the system)",
  '--acme-key-id <id>': 'key ID of an external account, if the authority requires one',
  '--acme-hmac-key <key>': 'key of the external account, base64url',
  '--acme-dns <provider>': 'get one certificate for all names, proved by DNS records (docs/tls.md)',
  '--acme-resolver <address>':
    "DNS server for the records of --acme-dns and of custom domains (default: the system's); repeatable",
  '--acme-address <address>': 'public address of this server, which custom domains must point to; repeatable',
}

/** Returns the settings. `undefined` if no certificates are ordered. */
export function acmeSettings(flags: Flags): AcmeSettings | undefined {
  const email = flags.text('acme')
  const ca = flags.text('acmeCa')
  const challenge = flags.text('acmeChallenge')
  if (email === undefined) {
    const all = ['acmeDirectory', 'acmeCa', 'acmeChallenge', 'acmeDns', 'acmeStaging']
    const first = all.find(name => flags.text(name) !== undefined)
    if (first === undefined) return undefined
    throw optionInvalid(`${flags.label(first)} needs --acme: your mail address.`)
  }
  if (challenge !== undefined && challenge !== 'http-01' && challenge !== 'tls-alpn-01')
    throw optionInvalid(`${flags.label('acmeChallenge')} "${challenge}" is neither http-01 nor tls-alpn-01.`)
  return {
    email,
    ...given({
      directory: flags.text('acmeDirectory'),
      ca: ca === undefined ? undefined : readAuthority(ca, flags.label('acmeCa')),
      staging: flags.isOn('acmeStaging'),
      challenge,
      dns: flags.text('acmeDns'),
      resolvers: flags.list('acmeResolver'),
      addresses: flags.list('acmeAddress'),
      keyId: flags.text('acmeKeyId'),
      hmacKey: flags.text('acmeHmacKey'),
    }),
  }
}
