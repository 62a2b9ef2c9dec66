// One configuration in every syntax: the same meaning, every key of the tables among it.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { join } from 'node:path'
import { stringify } from 'yaml'
import type { ClientConfig } from '../../src/config/client-config.ts'
import { camelOf, type Fields, kebabOf } from '../../src/config/field.ts'
import { CLIENT_FIELDS, SERVER_FIELDS, SERVICE_FIELDS } from '../../src/config/schema/fields.ts'
import { DEFAULT_LIMITS } from '../../src/server/settings/options.ts'
import { ConfigFiles } from '../support/config-files.ts'

let files: ConfigFiles
beforeAll(async () => {
  files = await ConfigFiles.make()
  await files.write('ca.pem', 'an authority')
  await files.write('cert.pem', 'a certificate')
  await files.write('key.pem', 'a key')
})
afterAll(() => files[Symbol.asyncDispose]())

type Json = string | number | boolean | readonly Json[] | { readonly [key: string]: Json }
type Table = { readonly [key: string]: Json }

const CLIENT = {
  server: 'https://tunnel.example',
  token: 'secret',
  proxy: 'http://proxy.example:3128',
  wire: 'streams',
  'verify-server': false,
  'insecure-token': true,
  ca: 'ca.pem',
  cert: 'cert.pem',
  key: 'key.pem',
  pin: 'sha256//abc',
  'connect-timeout': '1m30s',
  reconnect: true,
  'max-backoff': '0.5s',
  'ping-interval': '5s',
  'dead-after': '12s',
  limits: {
    'max-streams': 5,
    maxLinks: 0,
    'max-stream-window': '1MiB',
    maxSessionWindowBytes: 7,
    'max-carrier-backlog-bytes': '8',
    'max-collected': '9B',
  },
  inspect: {
    memory: '8MiB',
    'max-body': 4_096,
    'max-exchanges': 50,
    'max-frames': 60,
    rate: 0,
    secrets: 'X-Internal',
    port: 4040,
    store: 'run/requests.sqlite',
  },
  services: {
    shop: {
      kind: 'http',
      port: 3000,
      host: '127.0.0.1',
      subdomain: 'Store',
      wildcard: true,
      'wildcard-hosts': ['anna', 'a.b'],
      hosts: ['www.customer.example'],
      protocol: 'h2c',
      exact: true,
      'host-header': 'rewrite',
      rewrite: ['location', 'cookies'],
      'strip-prefix': '/shop',
      'add-prefix': '/app',
      'app-insecure': true,
      'origin-connect-timeout': 2_500,
      routes: {
        '/api': 8080,
        '/ws': 'other:9000',
        '/s': 'unix:app.sock',
        '/u': 'https://localhost:1',
        '/g': 'h2c://localhost:2',
      },
      pool: { affinity: 'cookie' },
      health: {
        kind: 'http',
        path: '/up',
        interval: '1m',
        timeout: 500,
        'healthy-after': 2,
        'unhealthy-after': 4,
      },
      token: 'other',
      guard: {
        allow: ['10.0.0.0/8'],
        deny: '10.0.0.1',
        rate: { limit: 60, window: '1m' },
        ttl: '2h',
        open: ['/health', '/assets/*'],
        password: 'secret one',
        bearer: ['a-token-of-a-machine'],
        jwt: { issuer: 'https://id.example', audience: 'shop', claims: { repository: 'org/app' } },
        links: true,
        login: { issuer: 'https://id.example', emails: ['*@example.com'] },
        paths: {
          '/api': { bearer: 'another-token-of-a-machine' },
          '/hooks/stripe': {
            webhook: {
              provider: 'stripe',
              secret: 'whsec_x',
              'tolerance-seconds': 60,
              'max-body': '64KiB',
            },
          },
        },
        cors: true,
        'request-headers': { 'x-env': 'preview' },
        'response-headers': { 'x-robots-tag': 'noindex' },
        session: '1h',
        secret: 'a-secret-of-at-least-thirty-two-characters',
      },
    },
    byurl: {
      url: 'https://localhost:3443',
      'app-ca': 'ca.pem',
      'app-server-name': 'app.lan',
      pool: true,
      health: {},
      inbox: { paths: ['/hooks/*'], status: 200 },
      'response-timeout': '5m',
      away: { text: 'Back at nine', status: 503 },
      'collect-body': '10MiB',
      verify: {
        provider: 'stripe',
        secret: ['whsec_x', 'whsec_y'],
        paths: ['/hooks/*'],
        require: true,
        'tolerance-seconds': 60,
        'max-body': '1MiB',
      },
    },
    bysocket: { unix: 'run/app.sock', pool: false },
    pages: {
      folder: './dist',
      spa: true,
      filter: 'GET path:/docs',
      pool: { to: 'all', response: 202, label: 'anna' },
    },
    db: { kind: 'tcp', port: '5432', 'remote-port': 25432, 'proxy-protocol': 'v2' },
    secure: { kind: 'tls', port: 8443, 'proxy-protocol': 'v1' },
    dns: { kind: 'udp', port: 53, 'remote-port': 25432, 'idle-timeout': '2m' },
    admin: { port: 4000, private: true },
    cache: { kind: 'connect', to: 'udp:names', port: 5353, 'idle-timeout': '1m' },
  },
} as const

const CLIENT_MEANS = () => ({
  kind: 'client',
  connection: {
    server: 'https://tunnel.example',
    token: 'secret',
    proxy: 'http://proxy.example:3128',
    inspect: {
      memory: 8_388_608,
      maxBody: 4_096,
      maxExchanges: 50,
      maxFrames: 60,
      rate: 0,
      secrets: ['X-Internal'],
      port: 4040,
      store: join(files.folder, 'run/requests.sqlite'),
    },
    wire: 'streams',
    verifyServer: false,
    insecureToken: true,
    ca: 'an authority',
    cert: 'a certificate',
    key: 'a key',
    pin: 'sha256//abc',
    connectTimeoutMs: 90_000,
    reconnect: true,
    maxBackoffMs: 500,
    pingIntervalMs: 5_000,
    deadAfterMs: 12_000,
    limits: {
      maxStreams: 5,
      maxLinks: 0,
      maxStreamWindowBytes: 1_048_576,
      maxSessionWindowBytes: 7,
      maxCarrierBacklogBytes: 8,
      maxCollectedBytes: 9,
    },
  },
  services: [
    {
      name: 'shop',
      kind: 'http',
      options: {
        port: 3000,
        host: '127.0.0.1',
        subdomain: 'store',
        wildcard: true,
        wildcardHosts: ['anna', 'a.b'],
        hosts: ['www.customer.example'],
        protocol: 'h2c',
        exact: true,
        hostHeader: 'rewrite',
        rewrite: ['location', 'cookies'],
        stripPrefix: '/shop',
        addPrefix: '/app',
        appInsecure: true,
        originConnectTimeoutMs: 2_500,
        routes: {
          '/api': { port: 8080 },
          '/ws': { host: 'other', port: 9000 },
          '/s': { unix: files.path('app.sock') },
          '/u': { url: 'https://localhost:1' },
          '/g': { url: 'http://localhost:2', protocol: 'h2c' },
        },
        pool: { affinity: 'cookie' },
        health: {
          kind: 'http',
          path: '/up',
          intervalMs: 60_000,
          timeoutMs: 500,
          healthyAfter: 2,
          unhealthyAfter: 4,
        },
        token: 'other',
        guard: {
          allow: ['10.0.0.0/8'],
          deny: ['10.0.0.1'],
          rate: { limit: 60, windowMs: 60_000 },
          ttlMs: 7_200_000,
          open: ['/health', '/assets/*'],
          password: 'secret one',
          bearer: ['a-token-of-a-machine'],
          jwt: { issuer: 'https://id.example', audience: 'shop', claims: { repository: 'org/app' } },
          links: true,
          login: { issuer: 'https://id.example', emails: ['*@example.com'] },
          paths: {
            '/api': { bearer: ['another-token-of-a-machine'] },
            '/hooks/stripe': {
              webhook: {
                provider: 'stripe',
                secret: 'whsec_x',
                toleranceSeconds: 60,
                maxBodyBytes: 65_536,
              },
            },
          },
          cors: true,
          requestHeaders: { 'x-env': 'preview' },
          responseHeaders: { 'x-robots-tag': 'noindex' },
          sessionMs: 3_600_000,
          secret: 'a-secret-of-at-least-thirty-two-characters',
        },
      },
    },
    {
      name: 'byurl',
      kind: 'http',
      options: {
        url: 'https://localhost:3443',
        appCa: 'an authority',
        appServerName: 'app.lan',
        subdomain: 'byurl',
        pool: { affinity: 'none' },
        health: { kind: 'tcp' },
        inbox: { paths: ['/hooks/*'], status: 200 },
        responseTimeoutMs: 300_000,
        away: { text: 'Back at nine', status: 503 },
        collectBodyBytes: 10_485_760,
        verify: {
          provider: 'stripe',
          secret: ['whsec_x', 'whsec_y'],
          paths: ['/hooks/*'],
          require: true,
          toleranceSeconds: 60,
          maxBodyBytes: 1_048_576,
        },
      },
    },
    { name: 'bysocket', kind: 'http', options: { unix: files.path('run/app.sock'), subdomain: 'bysocket' } },
    {
      name: 'pages',
      kind: 'http',
      options: {
        folder: files.path('dist'),
        spa: true,
        subdomain: 'pages',
        filter: 'GET path:/docs',
        pool: { to: 'all', response: 202, label: 'anna' },
      },
    },
    { name: 'db', kind: 'tcp', options: { port: 5432, remotePort: 25432, proxyProtocol: 'v2' } },
    { name: 'secure', kind: 'tls', options: { port: 8443, proxyProtocol: 'v1', subdomain: 'secure' } },
    { name: 'dns', kind: 'udp', options: { port: 53, remotePort: 25432, idleTimeoutMs: 120_000 } },
    { name: 'admin', kind: 'http', options: { port: 4000, private: 'admin' } },
    { name: 'cache', kind: 'connect', options: { name: 'udp:names', port: 5353, idleTimeoutMs: 60_000 } },
  ],
})

/** Of its own for each; a part of something is at most all of it. */
const limitOf = (option: string, index: number) => (option.endsWith('Percent') ? index : 100_000 + index)
const LIMITS = Object.fromEntries(
  Object.keys(DEFAULT_LIMITS).map((option, index) => [kebabOf(option), limitOf(option, index)]),
)

const SERVER = {
  domains: ['tunnel.example', 'other.example'],
  port: 0,
  host: '::1',
  'public-url': 'https://tunnel.example',
  'base-path': '/tunnel',
  'tcp-ports': '20000-29999, 2222',
  'udp-ports': 20_000,
  'tls-port': 8443,
  tls: { cert: 'cert.pem', key: 'key.pem' },
  tokens: [
    'plain',
    {
      token: 'team',
      names: ['app', 'team-*'],
      kinds: ['http', 'tcp'],
      'tcp-ports': '20000-20099',
      'udp-ports': '1',
      'require-guard': true,
      name: 'team',
      reserve: true,
      rate: { limit: 600, window: '1m' },
      bandwidth: '1MiB',
      'max-tunnels': 3,
      'max-ports': 2,
      'max-clients': 1,
    },
  ],
  open: 'true',
  login: {
    google: { issuer: 'https://accounts.example', 'client-id': 'a', 'client-secret': 'b', scope: 'openid' },
  },
  'jwt-issuers': ['https://id.example'],
  'tokens-db': 'tokens.db',
  'server-timing': true,
  'jwt-tokens': {
    issuer: 'https://id.example',
    audience: 'https://tunnel.example',
    claims: { repository: 'me/*' },
    names: '{repository}--*',
    session: '2h',
  },
  'reserved-names': ['mine', 'ours'],
  'trusted-proxies': '10.0.0.0/8',
  countries: './countries.mmdb',
  'accept-proxy-protocol': 'true',
  'client-ca': 'cert.pem',
  branding: { name: 'Acme IT', contact: 'it@acme.example', logo: 'cert.pem' },
  plugins: './audit.ts',
  tracing: 'true',
  rates: [
    { tunnels: ['shop'], limit: 10, window: '1s', by: 'tunnel', shared: true, 'when-unreachable': 'closed' },
  ],
  'tunnel-rules': [
    {
      tunnels: ['shop', 'team-*'],
      breaker: { 'error-percent': 10, 'min-requests': 5, window: '1s', open: '2s' },
      'max-in-flight': 5,
      'max-queued': 0,
      'queue-timeout': '1s',
      'max-content-length': '1MiB',
      'max-head': '8KiB',
      'response-timeout': '10s',
      bandwidth: '1MiB',
      'address-bandwidth': 65_536,
    },
  ],
  inbox: {
    file: './inbox.db',
    'max-requests': '100',
    'max-bytes': '1MiB',
    'max-all-bytes': '2MiB',
    'max-body': '64KiB',
    'max-age': '1h',
    'max-attempts': 3,
  },
  'access-log': { file: './visits.log', sample: '50', query: 'true', 'max-file': '1MiB', 'max-files': 2 },
  admin: {
    port: 9_091,
    host: '127.0.0.1',
    token: 'x-secret-of-the-operator',
    store: './admin.db',
    probe: '30s',
  },
  cluster: {
    url: 'redis://127.0.0.1:6379',
    prefix: 'lt',
    ca: 'cert.pem',
    'peer-url': 'http://10.0.0.2:8080',
    secret: 'a-secret-of-at-least-32-characters',
    'when-unreachable': 'grant',
  },
  acme: {
    email: 'you@tunnel.example',
    directory: 'https://ca.example/dir',
    ca: 'cert.pem',
    staging: false,
    challenge: 'tls-alpn-01',
    dns: 'cloudflare',
    resolvers: '127.0.0.1:53',
    'key-id': 'kid',
    'hmac-key': 'aGk',
  },
  'http-port': '80',
  'tls-min-version': '1.3',
  'tls-ciphers': 'ECDHE-RSA-AES128-GCM-SHA256',
  http2: 'false',
  http3: 'true',
  hsts: '31536000',
  limits: { ...LIMITS, 'ping-interval-ms': '10s', 'dead-after-ms': '20s', 'max-body-bytes': '1.5MiB' },
}

const SERVER_MEANS = () => ({
  kind: 'server',
  options: {
    domains: ['tunnel.example', 'other.example'],
    port: 0,
    host: '::1',
    publicUrl: 'https://tunnel.example',
    basePath: '/tunnel',
    tcpPorts: '20000-29999,2222',
    udpPorts: '20000',
    tlsPort: 8443,
    tls: { cert: 'a certificate', key: 'a key' },
    tokens: [
      'plain',
      {
        token: 'team',
        names: ['app', 'team-*'],
        kinds: ['http', 'tcp'],
        tcpPorts: '20000-20099',
        udpPorts: '1',
        requireGuard: true,
        name: 'team',
        reserve: true,
        rate: { limit: 600, windowMs: 60_000 },
        bandwidth: 1_048_576,
        maxTunnels: 3,
        maxPorts: 2,
        maxClients: 1,
      },
    ],
    open: true,
    login: new Map([
      ['google', { issuer: 'https://accounts.example', clientId: 'a', clientSecret: 'b', scope: 'openid' }],
    ]),
    jwtIssuers: ['https://id.example'],
    reservedNames: ['mine', 'ours'],
    trustedProxies: ['10.0.0.0/8'],
    countriesFile: expect.stringMatching(/^\/.*countries\.mmdb$/),
    clientCa: 'a certificate',
    branding: { name: 'Acme IT', contact: 'it@acme.example', logo: 'a certificate' },
    jwtTokens: [
      {
        issuer: 'https://id.example',
        audience: 'https://tunnel.example',
        claims: new Map([['repository', 'me/*']]),
        names: ['{repository}--*'],
        sessionMs: 7_200_000,
      },
    ],
    serverTiming: true,
    tokensFile: expect.stringMatching(/^\/.*tokens.db$/),
    pluginFiles: [expect.stringMatching(/^\/.*audit\.ts$/)],
    tracing: true,
    rates: [
      {
        tunnels: ['shop'],
        limit: 10,
        windowMs: 1_000,
        by: 'tunnel',
        shared: true,
        whenUnreachable: 'closed',
      },
    ],
    tunnelRules: [
      {
        tunnels: ['shop', 'team-*'],
        breaker: { errorPercent: 10, minRequests: 5, windowMs: 1_000, openMs: 2_000 },
        maxInFlight: 5,
        maxQueued: 0,
        queueTimeoutMs: 1_000,
        maxContentLength: 1_048_576,
        maxHeadBytes: 8_192,
        responseTimeoutMs: 10_000,
        bandwidth: 1_048_576,
        addressBandwidth: 65_536,
      },
    ],
    inboxOf: {
      file: expect.stringMatching(/^\/.*inbox\.db$/),
      maxRequests: 100,
      maxBytes: 1_048_576,
      maxAllBytes: 2_097_152,
      maxBodyBytes: 65_536,
      maxAgeMs: 3_600_000,
      maxAttempts: 3,
    },
    accessLog: {
      file: expect.stringMatching(/^\/.*visits\.log$/),
      samplePercent: 50,
      query: true,
      maxFileBytes: 1_048_576,
      maxFiles: 2,
    },
    adminListener: {
      port: 9_091,
      host: '127.0.0.1',
      token: 'x-secret-of-the-operator',
      store: expect.stringMatching(/^\/.*admin\.db$/),
      probeMs: 30_000,
    },
    clusterOf: {
      url: 'redis://127.0.0.1:6379',
      prefix: 'lt',
      ca: 'a certificate',
      peerUrl: 'http://10.0.0.2:8080',
      secret: 'a-secret-of-at-least-32-characters',
      whenUnreachable: 'grant',
    },
    acme: {
      email: 'you@tunnel.example',
      directory: 'https://ca.example/dir',
      ca: 'a certificate',
      staging: false,
      challenge: 'tls-alpn-01',
      dns: 'cloudflare',
      resolvers: ['127.0.0.1:53'],
      keyId: 'kid',
      hmacKey: 'aGk',
    },
    httpPort: 80,
    tlsMinVersion: '1.3',
    tlsCiphers: 'ECDHE-RSA-AES128-GCM-SHA256',
    http2: false,
    http3: true,
    hsts: 31_536_000,
    acceptProxyProtocol: true,
    limits: {
      ...Object.fromEntries(
        Object.keys(DEFAULT_LIMITS).map((option, index) => [option, limitOf(option, index)]),
      ),
      pingIntervalMs: 10_000,
      deadAfterMs: 20_000,
      maxBodyBytes: 1_572_864,
    },
  },
})

/** Tables whose keys are names, and not ours. */
const NAMED: ReadonlySet<string> = new Set([
  'services',
  'routes',
  'paths',
  'claims',
  'request-headers',
  'response-headers',
])

/** Every key of every table in camelCase; names of services and paths of routes are no keys. */
function camelKeys(value: Json, isNames = false): Json {
  if (Array.isArray(value)) return (value as readonly Json[]).map(item => camelKeys(item))
  if (typeof value !== 'object') return value
  return Object.fromEntries(
    Object.entries(value as Table).map(([key, child]) => [
      isNames ? key : camelOf(key),
      camelKeys(child, NAMED.has(key)),
    ]),
  )
}

/** TOML with tables written in their own lines, as people do. */
function toml(table: Table, path: readonly string[] = []): string {
  const isTable = (value: Json): value is Table => typeof value === 'object' && !Array.isArray(value)
  const quoted = (key: string) => (/^[\w-]+$/.test(key) ? key : JSON.stringify(key))
  const own = Object.entries(table).filter(([, value]) => !isTable(value))
  const below = Object.entries(table).filter((entry): entry is [string, Table] => isTable(entry[1]))
  const inline = (value: Json): string => {
    if (Array.isArray(value)) return `[${(value as readonly Json[]).map(inline).join(', ')}]`
    if (!isTable(value)) return JSON.stringify(value)
    return `{ ${Object.entries(value)
      .map(([key, child]) => `${quoted(key)} = ${inline(child)}`)
      .join(', ')} }`
  }
  return [
    ...(path.length > 0 ? [`[${path.map(quoted).join('.')}]`] : []),
    ...own.map(([key, value]) => `${quoted(key)} = ${inline(value)}`),
    ...below.map(([key, value]) => toml(value, [...path, key])),
  ].join('\n')
}

const SPELLINGS: readonly (readonly [name: string, write: (table: Table) => string])[] = [
  ['tables.toml', toml],
  ['camel.toml', table => toml(camelKeys(table) as Table)],
  ['block.yaml', table => stringify(table)],
  ['camel.yml', table => stringify(camelKeys(table))],
  ['strict.json', table => JSON.stringify(table)],
  ['tabs.json', table => JSON.stringify(camelKeys(table), null, '\t')],
  ['as-yaml.yaml', table => JSON.stringify(table, null, 2)],
  ['bom.json', table => `\ufeff${JSON.stringify(table)}`],
  ['kebab.ts', table => `export default ${JSON.stringify(table)}`],
  [
    'typed.ts',
    table =>
      `import { defineConfig } from '${join(import.meta.dir, '../../src/index.ts')}'\nexport default defineConfig(${JSON.stringify(camelKeys(table), null, 2)})`,
  ],
]

test.each(SPELLINGS)('a client in %s', async (name, write) => {
  const { config, faults } = await files.load(name, write(CLIENT))
  expect(faults).toEqual([])
  expect<unknown>(config).toEqual(CLIENT_MEANS())
})

test.each(SPELLINGS)('a server in %s', async (name, write) => {
  const { config, faults } = await files.load(`server-${name}`, write(SERVER))
  expect(faults).toEqual([])
  expect<unknown>(config).toEqual(SERVER_MEANS())
})

test('no key of the tables is missing above', () => {
  const missing = (fields: Fields, ...tables: readonly object[]) =>
    Object.keys(fields).filter(key => !tables.some(table => key in table))
  expect(missing(CLIENT_FIELDS, CLIENT)).toEqual([])
  expect(missing(SERVICE_FIELDS, ...Object.values(CLIENT.services))).toEqual([])
  expect(missing(SERVER_FIELDS, SERVER)).toEqual([])
})

test('variables are read in TOML, YAML and JSON, and not in TypeScript', async () => {
  const table = {
    token: '${SECRET}',
    server: '${HOST:-a.example}',
    services: { web: { port: '${PORT}', subdomain: '${NAME:-x}$$' } },
  }
  const environment = { SECRET: 'a$b', PORT: '3000', NAME: '' }
  for (const [name, write] of SPELLINGS.slice(0, 8)) {
    const { faults } = await files.load(name, write(table), environment)
    expect(faults.map(fault => fault.message)).toEqual([
      expect.stringContaining('services.web.subdomain must be a subdomain'),
    ])
    const { config } = await files.load(
      name,
      write({ ...table, services: { web: { port: '${PORT}' } } }),
      environment,
    )
    expect<unknown>(config).toEqual({
      kind: 'client',
      connection: { token: 'a$b', server: 'a.example' },
      services: [{ name: 'web', kind: 'http', options: { port: 3000, subdomain: 'web' } }],
    })
  }
  const { config } = await files.load(
    'variables.ts',
    `export default ${JSON.stringify({ token: '${SECRET}', services: { web: { port: 1 } } })}`,
  )
  expect(config).toMatchObject({ connection: { token: '${SECRET}' } })
})

test('YAML shares keys by "<<", and keys with x- at the top are for anchors', async () => {
  const loaded = await files.load(
    'merged.yaml',
    `x-defaults: &defaults { host: 127.0.0.1, exact: true }
services:
  a: &a { <<: *defaults, port: 3000 }
  b: { port: 3001, <<: [*a, { host: ignored.example, wildcard: true }] }
`,
  )
  expect(loaded.faults).toEqual([])
  const { services } = loaded.config as ClientConfig // as its keys say
  expect(services.map(({ name, options }) => [name, options])).toEqual([
    ['a', { host: '127.0.0.1', exact: true, port: 3000, subdomain: 'a' }],
    ['b', { host: '127.0.0.1', exact: true, port: 3001, wildcard: true, subdomain: 'b' }],
  ])
})

test('keys of YAML are names, also those that look like numbers', async () => {
  const { config } = await files.load(
    'numbers.yaml',
    'services: {1e3: {port: 1}, 007: {port: 2}, true: {port: 3}, "x1": {port: 4}}',
  )
  const names = config?.kind === 'client' ? config.services.map(({ name }) => name) : []
  expect(names).toEqual(['1e3', '007', 'true', 'x1'])
})

test('a TypeScript file is run anew each time, and may be asynchronous', async () => {
  for (const port of [1, 2, 3]) {
    const { config } = await files.load(
      'again.ts',
      `export default Promise.resolve({ services: { web: { port: ${port} } } })`,
    )
    expect(config).toMatchObject({ services: [{ options: { port } }] })
  }
})

test('the examples of docs/configuration.md are right, and the same', async () => {
  const page = await Bun.file(join(import.meta.dir, '../../docs/configuration.md')).text()
  const examples = [...page.matchAll(/^```(toml|yaml|json|ts no-run)\n([\s\S]*?)^```$/gm)]
  const loaded = await Promise.all(
    examples.map(async ([, syntax = '', text = ''], index) => {
      const local = text
        .replace("'localtunnels'", `'${join(import.meta.dir, '../../src/index.ts')}'`)
        .replace('fullchain.pem', 'cert.pem')
        .replace('privkey.pem', 'key.pem')
        .replace("process.env.TUNNEL_SECRET ?? ''", "'s'")
      return files.load(`example-${index}.${syntax.split(' ')[0]}`, local, {
        TUNNEL_SECRET: 's',
        TEAM_SECRET: 't',
      })
    }),
  )
  expect(loaded.flatMap(({ faults }) => faults)).toEqual([])
  const configs = loaded.map(({ config }) => config)
  const clients = configs.filter(config => config?.kind === 'client')
  expect(clients.length).toBe(4)
  for (const client of clients) expect(client).toEqual(clients[0]!)
  expect(configs.filter(config => config?.kind === 'server').length).toBe(1)
})
