// Every key of a client's configuration file. Checking, documentation, editor schema and types come from this table.

import { type ClientLimits, DEFAULT_CLIENT_LIMITS } from '../../client/limits.ts'
import type { Fields, Value } from '../field.ts'
import { GUARD_FIELDS, WEBHOOK } from './guard.ts'
import { CLIENT_LIMITS } from './limit-meanings.ts'
import { limitFields } from './limits.ts'

export const KINDS = ['http', 'tcp', 'udp', 'tls', 'folder'] as const

const HEALTH: Fields = {
  kind: {
    value: { type: 'choice', choices: ['tcp', 'http'] },
    meaning: '`tcp`: whether the app accepts connections; `http`: whether `path` answers 2xx or 3xx',
    default: '`tcp`',
  },
  path: { value: { type: 'text', form: 'path' }, meaning: 'Path asked for by `http`', default: '`/`' },
  interval: {
    value: { type: 'duration', least: 1 },
    option: 'intervalMs',
    meaning: 'From one check to the next',
    default: '`10s`',
  },
  timeout: {
    value: { type: 'duration', least: 1 },
    option: 'timeoutMs',
    meaning: 'Longest wait for an answer; above, the check has failed',
    default: '`3s`',
  },
  'healthy-after': {
    value: { type: 'number', least: 1, most: 1_000 },
    meaning: 'Good checks in a row until visitors are sent again',
    default: '1',
  },
  'unhealthy-after': {
    value: { type: 'number', least: 1, most: 1_000 },
    meaning: 'Failed checks in a row until visitors are sent no more',
    default: '3',
  },
}

const VERIFY: Fields = {
  ...WEBHOOK,
  paths: {
    value: { type: 'list', of: { type: 'text', form: 'text' }, isUnique: true },
    meaning: 'Where webhooks come to, such as `/hooks/*`',
    default: '`/*`',
  },
  require: {
    value: { type: 'flag' },
    meaning: 'A request there without a valid signature gets 401 and does not reach the app',
    default: '`false`',
  },
}

const INBOX: Fields = {
  paths: {
    value: { type: 'list', of: { type: 'text', form: 'text' }, isUnique: true },
    isRequired: true,
    meaning: 'Where webhooks come to, such as `/hooks/*`',
  },
  answer: {
    value: { type: 'number', least: 200, most: 204 },
    meaning: 'What their sender gets: 200, 201, 202 or 204',
    default: '202',
  },
}

const POOL: Fields = {
  affinity: {
    value: { type: 'choice', choices: ['none', 'cookie', 'address'] },
    meaning: 'A visitor stays with one client: by a cookie (http), by the address, or not',
    default: '`none`',
  },
  to: {
    value: { type: 'choice', choices: ['one', 'all'] },
    meaning: 'Each request goes to one client, or all get a copy (http; [webhooks.md](webhooks.md))',
    default: '`one`',
  },
  answer: {
    value: {
      type: 'either',
      of: [
        { type: 'text', form: 'text' },
        { type: 'number', least: 200, most: 299 },
      ],
    },
    meaning:
      'With `to = "all"`, what the visitor gets. `first`: the first answer below 400, else the first; a client\'s `label`: its answer; a status: that, at once',
    default: '`first`',
  },
  label: {
    value: { type: 'text', form: 'text' },
    meaning: 'With `to = "all"`: the name of this client for `answer`',
    default: 'none',
  },
}

const INSPECT: Fields = {
  memory: {
    value: { type: 'size', least: 1_048_576 },
    meaning: 'All that is kept; above, the oldest exchange that is not pinned is dropped',
    default: '`32MiB`',
  },
  'max-body': {
    value: { type: 'size', least: 1 },
    meaning: 'Kept of each body and message; at most half of `memory`',
    default: '`256KiB`',
  },
  'max-exchanges': {
    value: { type: 'number', least: 1, most: 1_000_000 },
    meaning: 'Exchanges kept',
    default: '1000',
  },
  'max-frames': {
    value: { type: 'number', least: 1, most: 10_000_000 },
    meaning: 'WebSocket messages and server-sent events kept, of all exchanges together',
    default: '10000',
  },
  rate: {
    value: { type: 'number', least: 0, most: 1_000_000 },
    meaning: 'Requests a second above which only some are captured; 0: all',
    default: '50',
  },
  secrets: {
    value: { type: 'list', of: { type: 'text', form: 'header' }, isUnique: true },
    meaning:
      'Fields of headers, forms and JSON that are masked in addition to Authorization, Cookie and password',
    default: 'none',
  },
  port: {
    value: { type: 'number', least: 0, most: 65_535 },
    meaning: 'Port of the page and the API on 127.0.0.1 and ::1; 0: any free one',
    default: '0',
  },
  store: {
    value: { type: 'path' },
    meaning: 'SQLite file in which exchanges are kept across restarts',
    default: 'none: nothing is written to disk',
  },
}

export const SERVICE_FIELDS: Fields = {
  kind: {
    value: { type: 'choice', choices: KINDS },
    meaning:
      'What visitors speak: requests, raw connections, datagrams, TLS that only the app can read, or files of a folder',
    default: '`folder` if there is a `folder`, else `http`',
  },
  port: {
    value: { type: 'port-range' },
    kinds: ['http', 'tcp', 'udp', 'tls'],
    meaning:
      'Port of the app; for tcp and udp also a range such as `27015-27030`, a tunnel for each port. Give exactly one of `port`, `url`, `unix` and `folder`',
  },
  host: {
    value: { type: 'text', form: 'host' },
    kinds: ['http', 'tcp', 'udp', 'tls'],
    meaning: 'Host of the app, beside `port`',
    default: '`localhost`',
  },
  url: {
    value: { type: 'text', form: 'url' },
    kinds: ['http'],
    meaning: 'The app as an `http://` or `https://` URL without path, query and login',
  },
  unix: { value: { type: 'path' }, kinds: ['http', 'tcp', 'tls'], meaning: "Path of the app's unix socket" },
  folder: { value: { type: 'path' }, kinds: ['folder'], meaning: 'Folder whose files are served' },
  spa: {
    value: { type: 'flag' },
    kinds: ['folder'],
    meaning: 'Paths without a file get `index.html`, as apps with their own router want',
    default: '`false`',
  },
  subdomain: {
    value: { type: 'text', form: 'subdomain' },
    kinds: ['http', 'tls', 'folder'],
    meaning: 'The name to ask for',
    default: "the service's name",
  },
  exact: {
    value: { type: 'flag' },
    kinds: ['http', 'folder'],
    meaning: 'No other name will do: when it is taken, the service is refused with `NAME_TAKEN`',
    default: '`false`',
  },
  wildcard: {
    value: { type: 'flag' },
    kinds: ['http', 'tls', 'folder'],
    meaning: 'The names below the subdomain are its, too: `*.shop` beside `shop`',
    default: '`false`',
  },
  'wildcard-hosts': {
    value: { type: 'list', of: { type: 'text', form: 'domain' }, isUnique: true },
    kinds: ['http', 'folder'],
    meaning: 'With `wildcard`: names below that may have certificates, such as `anna` and `a.b`',
    default: 'those that the app answers for',
  },
  hosts: {
    value: { type: 'list', of: { type: 'text', form: 'own-host' }, isUnique: true },
    kinds: ['http', 'tls', 'folder'],
    meaning:
      'Hosts of your own that it answers, too, such as `www.customer.example`: their DNS leads to the server, and the token opens them',
    default: 'none',
  },
  protocol: {
    value: { type: 'choice', choices: ['http/1.1', 'h2c', 'h2'] },
    kinds: ['http'],
    meaning:
      'What the app speaks: `h2c` is HTTP/2 without TLS, as servers of gRPC do, `h2` is HTTP/2 of an `https://` URL',
    default: '`http/1.1`',
  },
  'host-header': {
    value: { type: 'text', form: 'host-header' },
    kinds: ['http'],
    meaning:
      "What the app sees as Host: `preserve` (the visitor's), `rewrite` (the app's own, Origin too), or a host",
    default: '`preserve`',
  },
  routes: {
    value: { type: 'map', keys: 'route', each: 'route', of: { type: 'target' } },
    kinds: ['http', 'folder'],
    meaning:
      'Paths with an app of their own: a port, `host:port`, a URL, `unix:/path`; for HTTP/2 `h2c://host:port`, `h2c+unix:/path`, or `h2://host:port` by TLS. `/api` means it and all below; the longest wins',
    default: 'none',
  },
  'app-insecure': {
    value: { type: 'flag' },
    kinds: ['http', 'folder'],
    meaning: 'Any certificate of an `https://` app, routes included, is accepted',
    default: "`false`; `true` for this machine's own addresses without `app-ca`",
  },
  'app-ca': {
    value: { type: 'file' },
    kinds: ['http', 'folder'],
    meaning: 'PEM file of an authority to trust for the certificate of such an app, besides the usual ones',
    default: 'none',
  },
  'app-server-name': {
    value: { type: 'text', form: 'host' },
    kinds: ['http', 'folder'],
    meaning: 'Name that such an app is asked for (SNI), and that its certificate must have',
    default: 'the host of its URL',
  },
  'origin-connect-timeout': {
    value: { type: 'duration', least: 1 },
    option: 'originConnectTimeoutMs',
    kinds: ['http', 'tcp', 'tls'],
    meaning: 'How long the app may take to accept a connection',
    default: '`10s`',
  },
  'remote-port': {
    value: { type: 'port-range' },
    kinds: ['tcp', 'udp'],
    meaning: "Public port to ask for, one of the server's; for a range a range of the same size",
    default: 'any',
  },
  'proxy-protocol': {
    value: { type: 'choice', choices: ['v1', 'v2'] },
    kinds: ['tcp', 'tls'],
    meaning: "PROXY protocol header in front of each connection, which tells the app the visitor's address",
    default: 'none',
  },
  'idle-timeout': {
    value: { type: 'duration', least: 1 },
    option: 'idleTimeoutMs',
    kinds: ['udp'],
    meaning: 'How long a silent visitor keeps the same socket to the app',
    default: '`60s`',
  },
  pool: {
    value: { type: 'either', of: [{ type: 'flag' }, { type: 'table', fields: POOL }] },
    kinds: ['http', 'tcp', 'tls', 'folder'],
    meaning: 'Shares the name or port with other clients that ask for it so: visitors are spread over them',
    default: '`false`',
  },
  health: {
    value: { type: 'table', fields: HEALTH },
    kinds: ['http', 'tcp', 'tls'],
    meaning: 'Checks the app, and sends it no visitors while it is unwell',
    default: 'no checks',
  },
  verify: {
    value: { type: 'table', fields: VERIFY },
    kinds: ['http'],
    meaning:
      'The app gets webhooks, whose signatures are checked on this machine ([webhooks.md](webhooks.md))',
    default: 'nothing is checked',
  },
  take: {
    value: { type: 'text', form: 'text' },
    kinds: ['http', 'folder'],
    meaning:
      'Filter of the requests that the app gets, such as `POST path:/hooks/* body:"invoice.paid"`; others get 404, or go to another client of the pool ([webhooks.md](webhooks.md))',
    default: 'all',
  },
  inbox: {
    value: { type: 'table', fields: INBOX },
    kinds: ['http'],
    meaning:
      'Webhooks wait on the server while no client is there, if its operator allows it ([webhooks.md](webhooks.md))',
    default: 'none',
  },
  guard: {
    value: { type: 'table', fields: GUARD_FIELDS },
    meaning: 'Who may visit: all walls must let a visitor pass, and one of the ways in is enough',
    default: 'everybody',
  },
  token: {
    value: { type: 'text', form: 'credential', isSecret: true },
    meaning: 'Token for this service alone',
    default: "the file's `token`",
  },
}

const SERVER: Value = { type: 'text', form: 'server' }

export const CLIENT_FIELDS: Fields = {
  server: {
    value: { type: 'either', of: [SERVER, { type: 'list', of: SERVER, isUnique: true }] },
    meaning:
      'The tunnel server: `wss://`, `https://`, `ws://`, `http://` or `host[:port]`, which is https unless it is this machine; or several of one cluster',
    default: '`TUNNEL_SERVER`, else the default server, else one in the same process',
  },
  token: {
    value: { type: 'text', form: 'credential', isSecret: true },
    meaning: 'Token of the server',
    default: 'that of `localtunnels login`; `TUNNEL_TOKEN`, if the server is that of `TUNNEL_SERVER`',
  },
  'insecure-token': {
    value: { type: 'flag' },
    meaning: 'Tokens may go to another machine without TLS, where others on the way can read them',
    default: '`false`',
  },
  proxy: {
    value: { type: 'text', form: 'proxy', isSecret: true },
    meaning:
      'Proxy to the server: `http://`, `https://`, `socks5://` or `socks5h://`, with `user:password@` if needed. `""`: none',
    default: '`HTTPS_PROXY`, `HTTP_PROXY` or `ALL_PROXY`',
  },
  wire: {
    value: { type: 'choice', choices: ['auto', 'streams', 'json'] },
    meaning: '`streams`, `json`, or what the server can',
    default: '`auto`',
  },
  'verify-server': {
    value: { type: 'flag' },
    meaning: "The server's certificate must be a trusted one",
    default: '`true`',
  },
  ca: {
    value: { type: 'file' },
    meaning: "PEM file of an authority to trust for the server's certificate, besides the usual ones",
    default: 'none',
  },
  cert: {
    value: { type: 'file' },
    meaning: "PEM file of the client's own certificate, for servers that want one; with `key`",
    default: 'none',
  },
  key: { value: { type: 'file' }, meaning: 'PEM file of its key', default: 'none' },
  pin: {
    value: { type: 'text', form: 'text' },
    meaning: "The public key that the server's certificate must have: `sha256//` and base64 of its SHA-256",
    default: 'any',
  },
  'connect-timeout': {
    value: { type: 'duration', least: 1 },
    option: 'connectTimeoutMs',
    meaning: 'From the dial to the registration',
    default: '`10s`',
  },
  reconnect: {
    value: { type: 'flag' },
    meaning: 'A lost connection is made anew, for as long as it takes',
    default: '`true`',
  },
  'max-backoff': {
    value: { type: 'duration', least: 1 },
    option: 'maxBackoffMs',
    meaning: 'Longest pause between tries',
    default: '`5s`',
  },
  'ping-interval': {
    value: { type: 'duration', least: 1 },
    option: 'pingIntervalMs',
    meaning: 'Silence on the connection before it is pinged',
    default: '`10s`',
  },
  'dead-after': {
    value: { type: 'duration', least: 1 },
    option: 'deadAfterMs',
    meaning: 'Silence on the connection before it is given up; more than `ping-interval`',
    default: '`20s`',
  },
  inspect: {
    value: { type: 'either', of: [{ type: 'flag' }, { type: 'table', fields: INSPECT }] },
    meaning:
      'Keeps what comes through, for the page, the commands and the API of the inspector on this machine',
    default: '`false`',
  },
  limits: {
    value: {
      type: 'table',
      fields: limitFields(
        DEFAULT_CLIENT_LIMITS,
        new Set<keyof ClientLimits>(['maxStreams', 'maxCarrierBacklogBytes', 'maxCollectedBytes']),
        CLIENT_LIMITS,
      ),
    },
    meaning: 'Bounds to change',
    default: 'those of the table below',
  },
  services: {
    value: { type: 'map', keys: 'service', each: 'service', of: { type: 'table', fields: SERVICE_FIELDS } },
    isRequired: true,
    meaning: 'What is shared: a table for each service, named as you like',
  },
}
