// Every key of a server's configuration file. Checking, documentation, editor schema and types come from this table.

import { DEFAULT_LIMITS, NEVER_ZERO } from '../../server/options.ts'
import type { Fields } from '../field.ts'
import { LOGIN_PROVIDER } from './guard.ts'
import { SERVER_LIMITS } from './limit-meanings.ts'
import { limitFields } from './limits.ts'

const LIMITS: Fields = limitFields(DEFAULT_LIMITS, NEVER_ZERO, SERVER_LIMITS)

const TLS: Fields = {
  cert: { value: { type: 'file' }, isRequired: true, meaning: 'PEM file of the certificate chain' },
  key: { value: { type: 'file' }, isRequired: true, meaning: 'PEM file of its private key' },
}

const ADMIN: Fields = {
  port: {
    value: { type: 'number', least: 0, most: 65_535 },
    meaning: 'Port of the admin listener; `0` takes any free one',
    default: '9090',
  },
  host: {
    value: { type: 'text', form: 'host' },
    meaning: 'Address that it listens on. It speaks plain HTTP',
    default: '`127.0.0.1`',
  },
  token: {
    value: { type: 'text', form: 'token', isSecret: true },
    meaning: 'What requests must show, 16 characters at least',
    default: 'one for this start, which `localtunnels admin` of the same user finds',
  },
  store: {
    value: { type: 'path' },
    meaning: 'SQLite file for traffic, bans and what was done',
    default: '`admin.db` in the state folder of the user',
  },
  probe: {
    value: { type: 'duration', least: 0 },
    option: 'probeMs',
    meaning: 'How long a tunnel may be without a visitor before its app is asked for `HEAD /`; `0`: never',
    default: '`60s`',
  },
}

const BRANDING: Fields = {
  name: { value: { type: 'text', form: 'text' }, meaning: 'Name of the operator', default: 'none' },
  contact: {
    value: { type: 'text', form: 'text' },
    meaning: 'Where visitors and users get help: an email address or an `https://` URL',
    default: 'none',
  },
  logo: {
    value: { type: 'file' },
    meaning: 'SVG file of at most 64 KiB, without scripts and without links to other files',
    default: 'none',
  },
}

const CLUSTER: Fields = {
  url: {
    value: { type: 'text', form: 'text', isSecret: true },
    isRequired: true,
    meaning:
      'The Redis or Valkey that the servers share: `redis://user:password@host:6379`, `rediss://host`, `unix:/path` or `sentinel://a:26379,b:26379/name`',
  },
  prefix: {
    value: { type: 'text', form: 'text' },
    meaning: 'What the names of all keys there begin with',
    default: '`localtunnels`',
  },
  ca: {
    value: { type: 'file' },
    meaning:
      'PEM file of the authority that signs its certificate, in place of the usual ones, for `rediss://`',
    default: 'none',
  },
  'peer-url': {
    value: { type: 'text', form: 'url' },
    option: 'peerUrl',
    meaning: 'Where the other servers reach this one, such as `http://10.0.0.2:8080`',
    default: 'the address that it listens on, or the first of this machine that is not loopback',
  },
  'peer-ca': {
    value: { type: 'file' },
    option: 'peerCa',
    meaning:
      'PEM file of the authority that signs `peer-cert` of all servers: they show each other certificates on the port of `peer-url`, which is `https:` and theirs alone',
    default: 'none: the secret is enough',
  },
  'peer-cert': {
    value: { type: 'file' },
    option: 'peerCert',
    meaning: 'PEM file of the certificate of this server, for the first of its domains',
    default: 'none',
  },
  'peer-key': {
    value: { type: 'file' },
    option: 'peerKey',
    meaning: 'PEM file of its key',
    default: 'none',
  },
  secret: {
    value: { type: 'text', form: 'token', isSecret: true },
    meaning: 'What the servers know each other by, 32 characters at least',
    default: 'one that is made, and kept in Redis',
  },
  'when-unreachable': {
    value: { type: 'choice', choices: ['refuse', 'grant'] },
    option: 'whenUnreachable',
    meaning: 'What a client gets that registers while Redis cannot be reached',
    default: '`refuse`',
  },
}

const BREAKER: Fields = {
  'error-percent': {
    value: { type: 'number', least: 1, most: 100 },
    meaning: 'Failed requests of a window, in percent, from which it opens',
    default: '50',
  },
  'min-requests': {
    value: { type: 'number', least: 1, most: 2_147_483_647 },
    meaning: 'Requests of a window below which it does not open',
    default: '20',
  },
  window: {
    value: { type: 'duration', least: 1 },
    option: 'windowMs',
    meaning: 'How long a window is',
    default: '`10s`',
  },
  open: {
    value: { type: 'duration', least: 1 },
    option: 'openMs',
    meaning: 'How long it is open before one visitor tries; doubled by each failed try',
    default: '`5s`',
  },
}

const SERVER_RATE: Fields = {
  tunnels: {
    value: { type: 'list', of: { type: 'text', form: 'name-pattern' } },
    meaning: 'Names, or patterns such as `team-*`',
    default: 'all tunnels',
  },
  limit: {
    value: { type: 'number', least: 1, most: 1_000_000 },
    isRequired: true,
    meaning: 'Requests, or connections, in a window; above: 429',
  },
  window: {
    value: { type: 'duration', least: 1_000 },
    option: 'windowMs',
    isRequired: true,
    meaning: 'How long a window is, up to a day',
  },
  by: {
    value: { type: 'choice', choices: ['address', 'tunnel', 'token'] },
    meaning: "Each address has its own, or all visitors of a tunnel, or of a token's tunnels, share one",
    default: '`address`',
  },
  shared: {
    value: { type: 'flag' },
    meaning: 'All servers of the `cluster` keep it together',
    default: '`false`: each by itself',
  },
  'when-unreachable': {
    value: { type: 'choice', choices: ['local', 'open', 'closed'] },
    meaning: 'While Redis does not answer each server counts by itself, every visitor passes, or none (503)',
    default: '`local`',
  },
}

const TUNNEL_RULE: Fields = {
  tunnels: {
    value: { type: 'list', of: { type: 'text', form: 'name-pattern' } },
    meaning: 'Names, or patterns such as `team-*`',
    default: 'all tunnels',
  },
  breaker: {
    value: { type: 'table', fields: BREAKER },
    meaning: 'Circuit breaker: refuses visitors at once for a while when the app fails',
    default: 'none',
  },
  'max-in-flight': {
    value: { type: 'number', least: 1, most: 2_147_483_647 },
    meaning: 'Requests under way at once; others wait in their order',
    default: 'no bound',
  },
  'max-queued': {
    value: { type: 'number', least: 0, most: 10_000 },
    meaning: 'Requests that wait like that; above: 503',
    default: '100',
  },
  'queue-timeout': {
    value: { type: 'duration', least: 1 },
    option: 'queueTimeoutMs',
    meaning: 'How long one waits',
    default: '`10s`',
  },
  'max-content-length': {
    value: { type: 'size', least: 0 },
    meaning: 'Length of a request body, announced or not; above: 413',
    default: 'that of the server',
  },
  'answer-timeout': {
    value: { type: 'duration', least: 1 },
    option: 'answerTimeoutMs',
    meaning: 'From when a request goes to its client to the head of the answer, uploads included; above: 504',
    default: '`limits.origin-timeout` alone',
  },
  'max-head': {
    value: { type: 'size', least: 1 },
    option: 'maxHeadBytes',
    meaning: 'Length of a request head; above: 431',
    default: 'that of the server',
  },
  bandwidth: {
    value: { type: 'size', least: 1_024 },
    meaning: 'Bytes a second, each way, of all visitors of a tunnel; above, bytes wait',
    default: 'no bound',
  },
  'address-bandwidth': {
    value: { type: 'size', least: 1_024 },
    meaning: 'The same for each address of a visitor',
    default: 'no bound',
  },
}

const INBOX: Fields = {
  file: { value: { type: 'path' }, isRequired: true, meaning: 'SQLite file, with mode 0600' },
  'max-requests': {
    value: { type: 'number', least: 1, most: 10_000_000 },
    meaning: 'Webhooks of one name; above, the sender gets 503',
    default: '10000',
  },
  'max-bytes': {
    value: { type: 'size', least: 1 },
    meaning: 'All of one name; above likewise',
    default: '`50MiB`',
  },
  'max-all-bytes': {
    value: { type: 'size', least: 1 },
    meaning: 'All of all names; above likewise',
    default: '`1GiB`',
  },
  'max-body': {
    value: { type: 'size', least: 1 },
    option: 'maxBodyBytes',
    meaning: 'Longest body, up to `64MiB`; above, the sender gets 413',
    default: '`1MiB`',
  },
  'max-age': {
    value: { type: 'duration', least: 1 },
    option: 'maxAgeMs',
    meaning: 'Older webhooks are dropped',
    default: '`3d`',
  },
  'max-attempts': {
    value: { type: 'number', least: 1, most: 1_000_000 },
    meaning: 'Answers that ask for another try, until a webhook is dropped',
    default: '15',
  },
}

const ACCESS_LOG: Fields = {
  file: { value: { type: 'path' }, meaning: 'The file, with mode 0600', default: 'stdout' },
  sample: {
    value: { type: 'number', least: 0, most: 100 },
    option: 'samplePercent',
    meaning: 'Part of the visits that have a line, in percent; what failed always has one',
    default: '100',
  },
  query: {
    value: { type: 'flag' },
    meaning: 'Lines have the query, which may hold secrets',
    default: '`false`',
  },
  'max-file': {
    value: { type: 'size', least: 0 },
    option: 'maxFileBytes',
    meaning: 'Size at which the file is renamed to `.1`, that one to `.2`, and so on; `0`: never',
    default: '`100MiB`',
  },
  'max-files': {
    value: { type: 'number', least: 0, most: 1_000 },
    meaning: 'Renamed files that are kept',
    default: '5',
  },
}

const ACME: Fields = {
  email: {
    value: { type: 'text', form: 'text' },
    isRequired: true,
    meaning: "Mail address of the account. With it you agree to the authority's terms",
  },
  directory: {
    value: { type: 'text', form: 'url' },
    meaning: "URL of the authority's directory",
    default: "Let's Encrypt's",
  },
  ca: {
    value: { type: 'file' },
    meaning: "PEM file of the roots that sign the directory's own certificate",
    default: 'those of the system',
  },
  staging: {
    value: { type: 'flag' },
    meaning: "Let's Encrypt's staging is used, whose certificates no browser trusts",
    default: '`false`',
  },
  challenge: {
    value: { type: 'choice', choices: ['http-01', 'tls-alpn-01'] },
    meaning:
      'How names are proved without `dns`: on `http-port`, or on `port`, which visitors then have to reach as 443',
    default: '`http-01`',
  },
  dns: {
    value: { type: 'text', form: 'text' },
    meaning:
      'Who sets DNS records, for one certificate of all names: `cloudflare`, `route53`, `rfc2136://key-name@name-server/zone`, `exec:/path`, `acme-dns:/path`',
    default: 'none: each tunnel has a certificate of its own',
  },
  resolvers: {
    value: { type: 'list', of: { type: 'text', form: 'text' } },
    meaning:
      'Name servers, `address` or `address:port`, that are asked where the records of `dns` belong, and where hosts of customers lead',
    default: 'those of the system',
  },
  addresses: {
    value: { type: 'list', of: { type: 'text', form: 'text' } },
    meaning:
      'Addresses of this server: a host of a customer gets a certificate only if DNS leads it to these alone',
    default: 'those that the first domain leads to',
  },
  'key-id': {
    value: { type: 'text', form: 'text' },
    meaning: 'External account: its name, for authorities that want one',
    default: 'none',
  },
  'hmac-key': {
    value: { type: 'text', form: 'text', isSecret: true },
    meaning: 'External account: its key, base64url',
    default: 'none',
  },
}

const TOKEN_RATE: Fields = {
  limit: {
    value: { type: 'number', least: 1, most: 1_000_000 },
    isRequired: true,
    meaning: 'Requests, or connections, in a window',
  },
  window: {
    value: { type: 'duration', least: 1_000 },
    option: 'windowMs',
    isRequired: true,
    meaning: 'How long a window is, up to a day',
  },
}

/** What any token may open. */
const SCOPE: Fields = {
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
  hosts: {
    value: { type: 'list', of: { type: 'text', form: 'host-pattern' } },
    meaning:
      "Hosts outside of the server's domains that its tunnels may answer: `www.customer.example`, `*.customer.example`, `*`",
    default: 'none; of a token that is a text alone, any',
  },
  'require-guard': {
    value: { type: 'flag' },
    meaning: 'Tunnels without a guard are refused',
    default: '`false`',
  },
  bandwidth: {
    value: { type: 'size', least: 1_024 },
    meaning: 'Bytes a second, each way, of all visitors of all its tunnels; above, bytes wait',
    default: 'no bound',
  },
  rate: {
    value: { type: 'table', fields: TOKEN_RATE },
    meaning: 'How often all visitors of all its tunnels may ask; above: 429',
    default: 'no bound',
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
  'max-hosts': {
    value: { type: 'number', least: 1, most: 1_000_000 },
    meaning: 'Such hosts of all its clients together, leases included',
    default: '`limits.max-token-hosts`',
  },
  'max-clients': {
    value: { type: 'number', least: 1, most: 1_000_000 },
    meaning: 'Clients connected at once with it',
    default: '`limits.max-token-clients`',
  },
}

const TOKEN: Fields = {
  token: {
    value: { type: 'text', form: 'token', isSecret: true },
    isRequired: true,
    meaning: 'The secret itself',
  },
  name: {
    value: { type: 'text', form: 'service' },
    meaning: "Its name in the server's output and access logs",
    default: 'nothing',
  },
  ...SCOPE,
  reserve: {
    value: { type: 'flag' },
    meaning: 'Its `names` without a `*` are kept from all other tokens, also while no client has them',
    default: '`false`',
  },
}

const JWT_TOKEN: Fields = {
  issuer: {
    value: { type: 'text', form: 'url' },
    isRequired: true,
    meaning: 'Who makes the tokens, as in their `iss`',
  },
  audience: {
    value: { type: 'text', form: 'text' },
    isRequired: true,
    meaning: 'Whom they are for, as in their `aud`: something of this server alone, such as its URL',
  },
  claims: {
    value: { type: 'map', keys: 'text', each: 'claim', of: { type: 'text', form: 'text' } },
    meaning: 'Claims that they must have; `*` stands for any characters',
    default: 'any: all to whom the issuer gives tokens get in',
  },
  name: {
    value: { type: 'text', form: 'service' },
    meaning: "Name of such a token in the server's output and access logs",
    default: 'its `sub`',
  },
  session: {
    value: { type: 'duration', least: 0 },
    option: 'sessionMs',
    meaning: 'How long a client may stay, and come back, with one token; `0`: as long as the token is good',
    default: '`1h`',
  },
  'jwks-url': {
    value: { type: 'text', form: 'url' },
    meaning: "Where the issuer's keys are",
    default: 'as its `/.well-known/openid-configuration` says',
  },
  ...SCOPE,
  names: {
    value: { type: 'list', of: { type: 'text', form: 'name-template' } },
    meaning: 'Names that they may have, as of `tokens`; `{claim}` stands for that claim of the token',
    default: 'all',
  },
  hosts: {
    value: { type: 'list', of: { type: 'text', form: 'host-template' } },
    meaning: "Hosts outside of the server's domains, likewise",
    default: 'none',
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
  branding: {
    value: { type: 'table', fields: BRANDING },
    meaning:
      'The operator on the pages that visitors see: errors, sign-in, and the page of the server itself',
    default: 'none',
  },
  'client-ca': {
    value: { type: 'file' },
    meaning: 'PEM file of the authorities that sign certificates of clients: a client without one is refused',
    default: 'none: clients need no certificate',
  },
  acme: {
    value: { type: 'table', fields: ACME },
    meaning: 'Certificates of an ACME authority; then `port` is 443 and `http-port` 80 unless they are given',
    default: 'none',
  },
  admin: {
    value: { type: 'table', fields: ADMIN },
    option: 'adminListener',
    meaning: 'A listener for the operator alone: API, metrics, bans. A reload cannot change it',
    default: 'none',
  },
  cluster: {
    value: { type: 'table', fields: CLUSTER },
    option: 'clusterOf',
    meaning: 'The other servers of the same domains. A reload cannot change it',
    default: 'none',
  },
  plugins: {
    value: { type: 'list', of: { type: 'path' } },
    option: 'pluginFiles',
    meaning:
      'Modules whose default export is a guard, a middleware, an observer, or a list of these. A reload cannot change them',
    default: 'none',
  },
  tracing: {
    value: { type: 'flag' },
    meaning: 'Requests get an id (`X-Request-Id`) and a trace (`traceparent`)',
    default: '`false`',
  },
  'server-timing': {
    value: { type: 'flag' },
    meaning: 'Answers say how long they took (Server-Timing)',
    default: '`false`',
  },
  rates: {
    value: { type: 'list', of: { type: 'table', fields: SERVER_RATE } },
    meaning: "The operator's own rates, besides those that clients ask for",
    default: 'none',
  },
  'tunnel-rules': {
    value: { type: 'list', of: { type: 'table', fields: TUNNEL_RULE } },
    meaning: 'What tunnels may do under pressure; the first rule that names a tunnel counts',
    default: 'none',
  },
  inbox: {
    value: { type: 'table', fields: INBOX },
    option: 'inboxOf',
    meaning:
      'Keeps webhooks for clients with a token that are away, on the paths that their services name. A reload cannot change it',
    default: 'none are kept',
  },
  'access-log': {
    value: { type: 'table', fields: ACCESS_LOG },
    meaning: 'One JSON line for each visit. A reload cannot change it',
    default: 'none',
  },
  'http-port': {
    value: { type: 'number', least: 0, most: 65_535 },
    meaning: 'Second port for plain HTTP: checks of the authority, and redirects to https',
    default: 'none; with `acme` 80',
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
  http2: {
    value: { type: 'flag' },
    meaning: 'Visitors may speak HTTP/2: by TLS, and by prior knowledge without it',
    default: '`true`',
  },
  http3: {
    value: { type: 'flag' },
    meaning:
      'Visitors may speak HTTP/3, too, on the UDP port with the number of `port`. Experimental. Not with `accept-proxy-protocol` or `workers`. A reload cannot change it',
    default: '`false`',
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
  'tokens-db': {
    value: { type: 'path' },
    option: 'tokensFile',
    meaning:
      'SQLite file of more tokens: `localtunnels token` makes and revokes them while the server runs. A reload cannot change it',
    default: 'none',
  },
  'jwt-tokens': {
    value: { type: 'list', of: { type: 'table', fields: JWT_TOKEN } },
    meaning:
      'Who may connect with a token of an issuer, such as a CI system; the first rule that fits counts',
    default: 'none',
  },
  open: {
    value: { type: 'flag' },
    meaning: "The server may listen beyond this machine's own addresses without tokens",
    default: '`false`: refused with `OPEN_SERVER`',
  },
  login: {
    value: { type: 'map', keys: 'service', each: 'login', of: { type: 'table', fields: LOGIN_PROVIDER } },
    meaning: 'OpenID Connect issuers at which visitors of guarded tunnels can sign in, named as you like',
    default: 'none',
  },
  'jwt-issuers': {
    value: { type: 'list', of: { type: 'text', form: 'url' }, isUnique: true },
    meaning: 'Issuers whose tokens the guards of tunnels may ask for, besides those of `login`',
    default: 'none',
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
    meaning: 'Connections of trusted proxies begin with a PROXY header that names the visitor',
    default: '`false`',
  },
  limits: {
    value: { type: 'table', fields: LIMITS },
    meaning: 'Bounds to change',
    default: 'those of the table below',
  },
}
