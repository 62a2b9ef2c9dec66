// Every key of a server's configuration file. Checking, documentation, editor schema and types come from this table.

import { DEFAULT_LIMITS, NEVER_ZERO } from '../../server/options.ts'
import type { Fields } from '../field.ts'
import { SERVER_LIMITS } from './limit-meanings.ts'
import { limitFields } from './limits.ts'

const LIMITS: Fields = limitFields(DEFAULT_LIMITS, NEVER_ZERO, SERVER_LIMITS)

const TLS: Fields = {
  cert: { value: { type: 'file' }, isRequired: true, meaning: 'PEM file of the certificate chain' },
  key: { value: { type: 'file' }, isRequired: true, meaning: 'PEM file of its private key' },
}

const TOKEN: Fields = {
  token: {
    value: { type: 'text', form: 'token', isSecret: true },
    isRequired: true,
    meaning: 'The secret itself',
  },
  names: {
    value: { type: 'list', of: { type: 'text', form: 'name-pattern' } },
    meaning: 'Names that it may have; `*` stands for any letters, digits and `-`',
    default: 'all',
  },
  kinds: {
    value: { type: 'list', of: { type: 'choice', choices: ['http', 'tcp', 'udp', 'tls'] } },
    meaning: 'Kinds of tunnel that it may have',
    default: 'all; with `names`: `http`, `tls`, and those of `tcp-ports` and `udp-ports` if given',
  },
  'tcp-ports': {
    value: { type: 'ports' },
    meaning: 'Public TCP ports that it may have',
    default: "the server's",
  },
  'udp-ports': {
    value: { type: 'ports' },
    meaning: 'Public UDP ports that it may have',
    default: "the server's",
  },
  'max-tunnels': {
    value: { type: 'number', least: 1, most: 1_000_000 },
    meaning: 'Tunnels of all its clients together, leases included',
    default: '`limits.max-token-tunnels`',
  },
  'max-ports': {
    value: { type: 'number', least: 1, most: 1_000_000 },
    meaning: 'Public ports of all its clients together, leases included',
    default: '`limits.max-token-ports`',
  },
  'max-clients': {
    value: { type: 'number', least: 1, most: 1_000_000 },
    meaning: 'Clients connected at once with it',
    default: '`limits.max-token-clients`',
  },
}

export const SERVER_FIELDS: Fields = {
  domains: {
    value: { type: 'list', of: { type: 'text', form: 'domain' }, isUnique: true },
    meaning: 'Domains under which tunnels get a name; URLs have the first',
    default: '`localhost`',
  },
  port: {
    value: { type: 'number', least: 0, most: 65_535 },
    meaning: 'Port for visitors and clients; `0` takes any free one',
    default: '8080',
  },
  host: {
    value: { type: 'text', form: 'host' },
    meaning: 'Address to listen on',
    default: '`0.0.0.0`, all of them',
  },
  'public-url': {
    value: { type: 'text', form: 'url' },
    meaning: 'Where visitors reach the server, if a proxy stands in front: scheme and port of the URLs',
    default: 'as it listens',
  },
  'tcp-ports': {
    value: { type: 'ports' },
    meaning: 'Public ports for tcp tunnels; `""`: no such tunnels',
    default: '`20000-29999`',
  },
  'udp-ports': {
    value: { type: 'ports' },
    meaning: 'Public ports for udp tunnels; `""`: no such tunnels',
    default: '`20000-29999`',
  },
  'tls-port': {
    value: { type: 'number', least: 0, most: 65_535 },
    meaning: 'Port for tls tunnels, told apart by the name that the visitor asks for; `0` takes any free one',
    default: 'none: no tls tunnels',
  },
  tls: {
    value: { type: 'table', fields: TLS },
    meaning: 'Certificate of the server',
    default: 'none: plain HTTP',
  },
  'tls-min-version': {
    value: { type: 'choice', choices: ['1.2', '1.3'] },
    meaning: 'Oldest version of TLS, as a text',
    default: '`"1.2"`',
  },
  'tls-ciphers': {
    value: { type: 'text', form: 'text' },
    meaning: 'Ciphers of TLS 1.2 by their OpenSSL names, with `:` in between',
    default: 'those with forward secrecy and authenticated encryption',
  },
  hsts: {
    value: { type: 'number', least: 0, most: 10_000_000_000 },
    meaning:
      'Seconds for which browsers use https only (Strict-Transport-Security), if the app does not say it; `0`: not sent',
    default: '0',
  },
  tokens: {
    value: {
      type: 'list',
      of: {
        type: 'either',
        of: [
          { type: 'text', form: 'token', isSecret: true },
          { type: 'table', fields: TOKEN },
        ],
      },
    },
    meaning: 'Who may connect: texts, or tables that say what each token may have',
    default: 'none: needs `open`, or a `host` of this machine alone',
  },
  open: {
    value: { type: 'flag' },
    meaning: "Whether the server may listen on other addresses than this machine's own without tokens",
    default: '`false`: refused with `OPEN_SERVER`',
  },
  'reserved-names': {
    value: { type: 'list', of: { type: 'text', form: 'subdomain' }, isUnique: true },
    meaning: 'Names that no client may have, besides those that are always reserved',
    default: 'none',
  },
  'trusted-proxies': {
    value: { type: 'list', of: { type: 'text', form: 'network' } },
    meaning: 'Addresses or ranges of proxies whose X-Forwarded-* and Forwarded headers are believed',
    default: 'none',
  },
  'accept-proxy-protocol': {
    value: { type: 'flag' },
    meaning: 'Whether connections of trusted proxies begin with a PROXY header that names the visitor',
    default: '`false`',
  },
  limits: {
    value: { type: 'table', fields: LIMITS },
    meaning: 'Bounds to change',
    default: 'those of the table below',
  },
}
