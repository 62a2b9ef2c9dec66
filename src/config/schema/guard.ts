// The keys of a guard in a configuration file: who may visit a service, and what the operator sets up for that.

import type { Fields } from '../field.ts'

const JWT: Fields = {
  issuer: {
    value: { type: 'text', form: 'url' },
    isRequired: true,
    meaning: "Issuer of the tokens, one of the server's",
  },
  audience: { value: { type: 'text', form: 'text' }, isRequired: true, meaning: 'Whom the tokens are for' },
  claims: {
    value: { type: 'map', keys: 'text', each: 'claim', of: { type: 'text', form: 'text' } },
    meaning: 'Claims that must have these values; `*` stands for any characters',
    default: 'any',
  },
}

const LOGIN: Fields = {
  issuer: {
    value: { type: 'text', form: 'url' },
    isRequired: true,
    meaning: 'OpenID Connect issuer, one for which the server has a login',
  },
  emails: {
    value: { type: 'list', of: { type: 'text', form: 'email-pattern' }, isUnique: true },
    meaning: 'Verified addresses that may visit, such as `anna@example.com` or `*@example.com`',
    default: 'every account',
  },
}

const CERTIFICATE: Fields = {
  ca: { value: { type: 'file' }, isRequired: true, meaning: 'PEM file of the authorities that sign them' },
  names: {
    value: { type: 'list', of: { type: 'text', form: 'text' }, isUnique: true },
    meaning: 'Common names, DNS names or e-mail addresses that may visit; `*@example.com`',
    default: 'all',
  },
  subject: {
    value: { type: 'map', keys: 'text', each: 'field', of: { type: 'text', form: 'text' } },
    meaning: 'Fields of the subject that must have these values, such as `OU`',
    default: 'any',
  },
  fingerprints: {
    value: { type: 'list', of: { type: 'text', form: 'text' }, isUnique: true },
    meaning: 'SHA-256 of the certificates that may visit, in hexadecimal',
    default: 'any',
  },
}

const RATE: Fields = {
  limit: {
    value: { type: 'number', least: 1, most: 1_000_000 },
    isRequired: true,
    meaning: 'Requests, or connections, of one address in a window',
  },
  window: {
    value: { type: 'duration', least: 1_000 },
    option: 'windowMs',
    isRequired: true,
    meaning: 'The window, at most `24h`',
  },
}

/** Webhooks of a provider, whose signatures the client checks. */
export const WEBHOOK: Fields = {
  provider: {
    value: { type: 'choice', choices: ['standard', 'stripe', 'github', 'slack', 'shopify'] },
    isRequired: true,
    meaning: 'Who sends the webhooks; `standard`: Standard Webhooks, as Svix and others do',
  },
  secret: {
    value: {
      type: 'either',
      of: [
        { type: 'text', form: 'text', isSecret: true },
        { type: 'list', of: { type: 'text', form: 'text', isSecret: true } },
      ],
    },
    isRequired: true,
    meaning:
      'As the provider shows it, such as `${STRIPE_SECRET}`. Several hold while one is replaced. It never leaves this machine',
  },
  'tolerance-seconds': {
    value: { type: 'number', least: 0, most: 86_400 },
    meaning: 'How old a signature may be; `0`: any',
    default: '300',
  },
  'max-body': {
    value: { type: 'size', least: 1 },
    option: 'maxBodyBytes',
    meaning: 'Bytes of a body that are kept until its signature is checked',
    default: '`1MiB`',
  },
}

/** Ways in. */
const WAYS: Fields = {
  password: {
    value: { type: 'text', form: 'text', isSecret: true },
    meaning: 'Way in: a shared password of 6 characters or more',
    default: 'none',
  },
  bearer: {
    value: { type: 'list', of: { type: 'text', form: 'token', isSecret: true }, isUnique: true },
    meaning: 'Way in: tokens of machines, 16 characters or more each',
    default: 'none',
  },
  jwt: {
    value: { type: 'table', fields: JWT },
    meaning: 'Way in: tokens of an issuer',
    default: 'none',
  },
  links: { value: { type: 'flag' }, meaning: 'Way in: signed links', default: '`false`' },
  login: {
    value: { type: 'table', fields: LOGIN },
    meaning: 'Way in: accounts of an OpenID Connect issuer',
    default: 'none',
  },
  certificate: {
    value: { type: 'table', fields: CERTIFICATE },
    meaning: 'Way in: certificates that visitors show in TLS',
    default: 'none',
  },
}

const PATH_WAYS: Fields = {
  ...WAYS,
  webhook: {
    value: { type: 'table', fields: WEBHOOK },
    meaning: 'Way in, the only one of its path: webhooks with a valid signature, which the client checks',
    default: 'none',
  },
}

export const GUARD_FIELDS: Fields = {
  allow: {
    value: { type: 'list', of: { type: 'text', form: 'network' } },
    meaning: 'Wall: addresses and ranges that may visit',
    default: 'all',
  },
  deny: {
    value: { type: 'list', of: { type: 'text', form: 'network' } },
    meaning: 'Wall: addresses and ranges that may not, even if `allow` has them',
    default: 'none',
  },
  rate: {
    value: { type: 'table', fields: RATE },
    meaning: 'Wall: how often one address may ask',
    default: 'as often as it likes',
  },
  ttl: {
    value: { type: 'duration', least: 1_000 },
    option: 'ttlMs',
    meaning: 'Wall: how long the tunnel may be visited, from the start of the client',
    default: 'no end',
  },
  open: {
    value: { type: 'list', of: { type: 'text', form: 'path' }, isUnique: true },
    meaning: 'Paths that need no way in, such as `/health` and `/assets/*`; walls still hold',
    default: 'none',
  },
  ...WAYS,
  paths: {
    value: { type: 'map', keys: 'route', each: 'path', of: { type: 'table', fields: PATH_WAYS } },
    meaning: 'Other ways in for a path and what is below it; the longest path wins',
    default: 'none',
  },
  cors: {
    value: { type: 'flag' },
    meaning: 'Preflights of browsers reach the app without a way in',
    default: '`false`',
  },
  'request-headers': {
    value: { type: 'map', keys: 'header', each: 'header', of: { type: 'text', form: 'header-value' } },
    meaning: "Header lines for the app, in place of the visitor's",
    default: 'none',
  },
  'answer-headers': {
    value: { type: 'map', keys: 'header', each: 'header', of: { type: 'text', form: 'header-value' } },
    meaning: 'Header lines added to answers',
    default: 'none',
  },
  session: {
    value: { type: 'duration', least: 1_000 },
    option: 'sessionMs',
    meaning: 'How long a browser stays signed in',
    default: '`12h`',
  },
  secret: {
    value: { type: 'text', form: 'token', isSecret: true },
    meaning:
      'Signs sessions and links, 32 characters or more: with the same one they outlive the client, and the clients of a pool agree',
    default: 'made up at each start',
  },
}

/** Those that a tunnel of bytes has. */
export const RAW_GUARD_KEYS: ReadonlySet<string> = new Set(['allow', 'deny', 'rate', 'ttl'])

/** An issuer at which visitors can sign in. */
export const LOGIN_PROVIDER: Fields = {
  issuer: {
    value: { type: 'text', form: 'url' },
    isRequired: true,
    meaning: 'URL of the OpenID Connect issuer',
  },
  'client-id': {
    value: { type: 'text', form: 'text' },
    isRequired: true,
    meaning: 'As what the server is registered there',
  },
  'client-secret': {
    value: { type: 'text', form: 'text', isSecret: true },
    isRequired: true,
    meaning: 'Its secret there',
  },
  scope: { value: { type: 'text', form: 'text' }, meaning: 'What is asked for', default: '`openid email`' },
}
