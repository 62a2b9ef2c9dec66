// What is said of faulty files, to the letter.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { chmod, mkdir, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { faultLine } from '../../src/config/fault.ts'
import { loadConfig } from '../../src/config/load.ts'
import { ConfigFiles } from '../support/config-files.ts'
import { testWith, withoutPrivileges } from '../support/needs.ts'

let files: ConfigFiles
beforeAll(async () => {
  files = await ConfigFiles.make()
})
afterAll(() => files[Symbol.asyncDispose]())

interface Case {
  readonly of: string
  readonly file: string
  readonly says: readonly string[]
  readonly environment?: Readonly<Record<string, string>>
  readonly kind?: 'client' | 'server'
}

/** A client's file with one service of these lines, which begin in line 2. */
const web = (...lines: readonly string[]) => ['[services.web]', ...lines].join('\n')

const CLIENT: readonly Case[] = [
  {
    of: 'an unknown key, and what was meant',
    file: web('port = 3000', '  subdomian = "shop"'),
    says: ['a.toml:3:3 unknown key "subdomian" in services.web: did you mean "subdomain"?'],
  },
  {
    of: 'an unknown key in camelCase',
    file: web('port = 3000', 'hostHaeder = "rewrite"'),
    says: ['a.toml:3:1 unknown key "hostHaeder" in services.web: did you mean "hostHeader"?'],
  },
  {
    of: 'an unknown key like no other',
    file: web('port = 3000', 'colour = "red"', 'health = { colour = "red" }'),
    says: [
      'a.toml:3:1 unknown key "colour" in services.web',
      'a.toml:4:12 unknown key "colour" in services.web.health: the keys here are kind, path, interval, timeout, healthy-after, unhealthy-after',
    ],
  },
  {
    of: 'what a pool cannot be',
    file: web('port = 3000', 'pool = { to = "all", affinity = "cookie", response = 404 }'),
    says: [
      'a.toml:3:22 services.web.pool.affinity is for to = "one": all get a copy',
      'a.toml:3:43 services.web.pool.response must be a whole number from 200 to 299, not 404',
    ],
  },
  {
    of: 'what a pool of the ordinary kind cannot be',
    file: web('port = 3000', 'pool = { response = "first", label = "anna" }'),
    says: [
      'a.toml:3:10 services.web.pool.response is for to = "all"',
      'a.toml:3:30 services.web.pool.label is for to = "all"',
    ],
  },
  {
    of: 'a key in the wrong place',
    file: `port = 3000\ndomains = "a.example"\n${web('port = 3000')}`,
    says: [
      'a.toml:1:1 unknown key "port": it belongs in a service, such as [services.web]',
      'a.toml:2:1 unknown key "domains": it belongs in a server\'s file',
    ],
    kind: 'client',
  },
  {
    of: 'two spellings of one key',
    file: web('port = 3000', 'host-header = "rewrite"', 'hostHeader = "rewrite"'),
    says: ['a.toml:4:1 "hostHeader" says the same as "host-header": keep one of them'],
  },
  {
    of: 'wrong types',
    file: web(
      'port = "http"',
      'subdomain = 5',
      'wildcard = "yes"',
      'health = true',
      'routes = 8080',
      'token = [1]',
    ),
    says: [
      'a.toml:2:1 services.web.port must be a port from 1 to 65535, or a range of at most 256 such as "27015-27030", not "http"',
      'a.toml:3:1 services.web.subdomain must be a subdomain: 1 to 63 of a-z, 0-9 and "-", letter or digit at both ends, not 5',
      'a.toml:4:1 services.web.wildcard must be true or false, not "yes"',
      'a.toml:5:1 services.web.health must be a table, not true or false',
      'a.toml:6:1 services.web.routes must be a table with a key for each route, not a number',
      'a.toml:7:1 services.web.token must be a token: visible ASCII without spaces, 1 to 8192 of it, not a list',
    ],
  },
  {
    of: 'hosts below a name that has none',
    file: web('port = 3000', 'wildcard-hosts = ["anna"]'),
    says: ['a.toml:3:1 services.web.wildcard-hosts is for wildcard = true'],
  },
  {
    of: 'a date, and services that are none',
    file: 'services = 1979-05-27',
    says: ['a.toml:1:1 services must be a table with a key for each service, not a date'],
  },
  {
    of: 'a service that is no table',
    file: '[services]\nweb = 3000',
    says: ['a.toml:2:1 services.web must be a table, not a number'],
  },
  {
    of: 'values out of range',
    file: `connect-timeout = "0s"\nmax-backoff = "25d"\nping-interval = 1.5\n${web('port = 65536')}`,
    says: [
      'a.toml:1:1 connect-timeout must be milliseconds or a text such as "30s", from 1ms to 24d, not "0s"',
      'a.toml:2:1 max-backoff must be milliseconds or a text such as "30s", from 1ms to 24d, not "25d"',
      'a.toml:3:1 ping-interval must be milliseconds or a text such as "30s", from 1ms to 24d, not 1.5',
      'a.toml:5:1 services.web.port must be a port from 1 to 65535, or a range of at most 256 such as "27015-27030", not 65536',
    ],
  },
  {
    of: 'a choice that there is not',
    file: web('kind = "smtp"', 'port = 25'),
    says: [
      'a.toml:2:1 services.web.kind must be one of "http", "tcp", "udp", "tls", "folder", "connect", not "smtp"',
    ],
  },
  {
    of: 'private services that have public keys, or no name, or the name of another',
    file: `${web('port = 1\nprivate = true\nexact = true')}\n[services.a_b]\nport = 2\nprivate = true\n[services.two]\nport = 3\nprivate = true\nsubdomain = "web"\n[services.range]\nkind = "tcp"\nport = "5-6"\nprivate = true`,
    says: [
      'a.toml:4:1 services.web.exact is for public addresses, and this service is private',
      'a.toml:5:11 services.a_b is private, and its own name is not a subdomain: 1 to 63 of a-z, 0-9 and "-", letter or digit at both ends',
      'a.toml:8:11 services.two: private service "web" is already used by services.web (line 1)',
      'a.toml:14:1 services.range.port: a range is for tcp and udp, and this service is private',
    ],
  },
  {
    of: 'ends of private services without a port, with the keys of others',
    file: '[services.a]\nkind = "connect"\n[services.b]\nkind = "connect"\nport = 1\nto = "a b"\nhost = "x"\nguard = { ttl = "1h" }\n[services.c]\nto = "db"\nport = 2',
    says: [
      'a.toml:1:11 services.a does not say where the app is: give it "port"',
      'a.toml:6:1 services.b needs "to": the name of a private service, such as db or udp:dns',
      'a.toml:7:1 services.b.host is for http, tcp, udp and tls, and this service is connect',
      'a.toml:8:1 services.b.guard is for services that are shared, and this one is connect',
      'a.toml:10:1 services.c.to is for connect, and this service is http',
    ],
  },
  {
    of: 'addresses that are none',
    file: `server = "ftp://a"\nproxy = "a:1"\n${web('url = "localhost:3000"')}\n[services.two]\nport = 1\nhost = "a:1"`,
    says: [
      'a.toml:1:1 server must be the address of a server, such as "https://tunnel.example", not "ftp://a"',
      'a.toml:2:1 proxy must be the URL of a proxy, such as "http://proxy.example:3128", or "" for none, not this value',
      'a.toml:4:1 services.web.url must be an http:// or https:// URL, not "localhost:3000"',
      'a.toml:7:1 services.two.host must be a host without a port, not "a:1"',
    ],
  },
  {
    of: 'no target',
    file: `${web('subdomain = "shop"')}\n[services.db]\nkind = "tcp"\n[services.pages]\nkind = "folder"`,
    says: [
      'a.toml:1:11 services.web does not say where the app is: give it one of "port", "url", "unix" and "folder"',
      'a.toml:3:11 services.db does not say where the app is: give it one of "port" and "unix"',
      'a.toml:5:11 services.pages does not say where the app is: give it "folder"',
    ],
  },
  {
    of: 'two targets',
    file: `${web('port = 3000', 'url = "http://localhost:3000"')}\n[services.b]\nfolder = "dist"\nport = 1\nspa = true`,
    says: [
      'a.toml:3:1 services.web has two targets, port and url: keep one of them',
      'a.toml:5:1 services.b has two targets, port and folder: keep one of them',
    ],
  },
  {
    of: 'keys of another kind',
    file: `${web('port = 1', 'remote-port = 2', 'spa = true')}\n[services.db]\nkind = "tcp"\nport = 5432\nsubdomain = "db"\nurl = "http://a"\n[services.u]\nkind = "udp"\nport = 53\nhealth = { kind = "tcp" }`,
    says: [
      'a.toml:3:1 services.web.remote-port is for tcp and udp, and this service is http',
      'a.toml:4:1 services.web.spa is for folder, and this service is http',
      'a.toml:8:1 services.db.subdomain is for http, tls and folder, and this service is tcp',
      'a.toml:9:1 services.db.url is for http, and this service is tcp',
      'a.toml:13:1 services.u.health is for http, tcp and tls, and this service is udp',
    ],
  },
  {
    of: 'a host without a port, a path without http',
    file: web('unix = "app.sock"', 'host = "localhost"', 'health = { path = "/up" }'),
    says: [
      'a.toml:3:1 services.web.host is for "port", and there is none',
      'a.toml:4:12 services.web.health.path is for kind = "http"',
    ],
  },
  {
    of: 'one subdomain for two services',
    file: `${web('port = 1')}\n[services.other]\nport = 2\nsubdomain = "WEB"`,
    says: ['a.toml:5:1 services.other.subdomain: subdomain "web" is already used by services.web (line 1)'],
  },
  {
    of: 'names that are reserved',
    file: `[services.docs]\nport = 1\n[services.web]\nport = 2\nsubdomain = "API"`,
    says: [
      'a.toml:1:11 services.docs: subdomain "docs" is reserved by every server: give it another',
      'a.toml:5:1 services.web.subdomain: subdomain "api" is reserved by every server: give it another',
    ],
  },
  {
    of: 'one public port for two services; tcp and udp are two',
    file: '[services]\na = { kind = "tcp", port = 1, remote-port = 25000 }\nb = { kind = "udp", port = 1, remote-port = 25000 }\nc = { kind = "tcp", port = 2, remote-port = 25000 }',
    says: ['a.toml:4:31 services.c.remote-port: tcp port 25000 is already used by services.a (line 2)'],
  },
  {
    of: 'a name that cannot be a subdomain',
    file: '[services."My Shop"]\nport = 1\n[services.my_shop]\nport = 2\n[services.my_other]\nport = 3\nsubdomain = "other"',
    says: [
      'a.toml:1:11 "My Shop" in services is not a name: 1 to 63 letters, digits, "-", "_" and "."',
      'a.toml:1:11 services."My Shop" needs "subdomain": its own name is not a subdomain: 1 to 63 of a-z, 0-9 and "-", letter or digit at both ends',
      'a.toml:3:11 services.my_shop needs "subdomain": its own name is not a subdomain: 1 to 63 of a-z, 0-9 and "-", letter or digit at both ends',
    ],
  },
  {
    of: 'routes',
    file: web(
      'port = 1',
      '[services.web.routes]',
      'api = 80',
      '"/a" = 0',
      '"/b" = "localhost"',
      '"/c" = "ftp://x"',
    ),
    says: [
      'a.toml:4:1 "api" in services.web.routes is not a path such as "/api", without "?" and "#"',
      'a.toml:5:1 services.web.routes."/a" must be a port, "host:port", a URL or "unix:/path", not 0',
      'a.toml:6:1 services.web.routes."/b" must be a port, "host:port", a URL or "unix:/path", not "localhost"',
      'a.toml:7:1 services.web.routes."/c" must be a port, "host:port", a URL or "unix:/path", not "ftp://x"',
    ],
  },
  {
    of: 'a route given twice, and dots in one',
    file: web('port = 1', '[services.web.routes]', '"/a" = 80', '"/a/" = 81', '"/b/../c" = 82', '"/" = 83'),
    says: [
      'a.toml:5:1 services.web.routes."/a/" is the same path as "/a"',
      'a.toml:6:1 "/b/../c" in services.web.routes is not a path such as "/api", without "?" and "#"',
      'a.toml:7:1 "/" in services.web.routes is not a path such as "/api", without "?" and "#"',
    ],
  },
  {
    of: 'too many routes',
    file: web(
      'port = 1',
      `routes = { ${Array.from({ length: 33 }, (_, index) => `"/${index}" = 1`).join(', ')} }`,
    ),
    says: ['a.toml:3:1 services.web.routes has 33: at most 32'],
  },
  {
    of: 'variables',
    file: 'server = "${HOST}"\ntoken = "$TOKEN"\nca = "${"\n[services.web]\nport = "${PORT:-x}"\nhost = "${a b}"\nsubdomain = "${EMPTY}"',
    environment: { EMPTY: '' },
    says: [
      'a.toml:1:10 server: the variable HOST is not set: set it, or write ${HOST:-default}',
      'a.toml:2:9 token: write $$ for a dollar, or ${NAME} for a variable',
      'a.toml:3:6 ca: a "${" is not closed with "}"',
      'a.toml:5:1 services.web.port must be a port from 1 to 65535, or a range of at most 256 such as "27015-27030", not what "${PORT:-x}" stands for',
      'a.toml:6:8 services.web.host: "${a b}" is not a variable: write ${NAME} or ${NAME:-default}',
      'a.toml:7:13 services.web.subdomain: the variable EMPTY is not set: set it, or write ${EMPTY:-default}',
    ],
  },
  {
    of: 'secrets, which are never shown',
    file: 'token = "se cret"\nserver = "${SECRET}"\n[services.web]\nport = 1\ntoken = 12345',
    environment: { SECRET: 'hidden secret' },
    says: [
      'a.toml:1:1 token must be a token: visible ASCII without spaces, 1 to 8192 of it, not this value',
      'a.toml:2:1 server must be the address of a server, such as "https://tunnel.example", not what "${SECRET}" stands for',
      'a.toml:5:1 services.web.token must be a token: visible ASCII without spaces, 1 to 8192 of it, not this value',
    ],
  },
  {
    of: 'silence that comes before the ping',
    file: `ping-interval = "30s"\n${web('port = 1')}`,
    says: ['a.toml:1:1 dead-after must be more than ping-interval'],
  },
  { of: 'no services', file: 'server = "a.example"', says: ['a.toml:1:1 the file needs "services"'] },
  {
    of: 'an empty table of services',
    file: '[services]',
    says: ['a.toml:1:2 services has none: add one, such as [services.web]'],
  },
]

const SERVER: readonly Case[] = [
  {
    of: 'an unknown limit',
    file: '[limits]\nmax-bdy = "1MiB"\nheadTimeoutMS = 5',
    says: [
      'a.toml:2:1 unknown key "max-bdy" in limits: did you mean "max-body"?',
      'a.toml:3:1 unknown key "headTimeoutMS" in limits: did you mean "headTimeout"?',
    ],
  },
  {
    of: 'limits out of range',
    file: '[limits]\nmax-head = 0\nmax-streams = 0\nmax-body = "-1"\nhead-timeout = true\nmax-clients = 1e3',
    says: [
      'a.toml:2:1 limits.max-head must be bytes or a text such as "64MiB", from 1 on, not 0',
      'a.toml:3:1 limits.max-streams must be a whole number from 1 on, not 0',
      'a.toml:4:1 limits.max-body must be bytes or a text such as "64MiB", from 0 on, not "-1"',
      'a.toml:5:1 limits.head-timeout must be milliseconds or a text such as "30s", from 0ms to 24d, not true',
    ],
  },
  {
    of: 'ports',
    file: 'tcp-ports = "30000-20000"\nudp-ports = [1, 2]\ntls-port = 443\nport = 443',
    says: [
      'a.toml:1:1 tcp-ports must be ports from 1 to 65535, such as "20000-29999", not "30000-20000"',
      'a.toml:2:1 udp-ports must be ports from 1 to 65535, such as "20000-29999", not a list',
      'a.toml:3:1 tls-port 443 is the port of the server itself: that needs tls or acme, or another port',
    ],
  },
  {
    of: 'ranges of ports',
    file: [
      '[services.game]',
      'kind = "udp"',
      'port = "27015-27030"',
      'remote-port = "27015-27020"',
      '[services.web]',
      'port = "3000-3001"',
      '[services.many]',
      'kind = "tcp"',
      'port = "1-257"',
    ].join('\n'),
    says: [
      'a.toml:4:1 services.game.remote-port has 6 ports, and services.game.port has 16',
      'a.toml:6:1 services.web.port: a range is for tcp and udp, and this service is http',
      'a.toml:9:1 services.many.port must be a port from 1 to 65535, or a range of at most 256 such as "27015-27030", not "1-257"',
    ],
  },
  {
    of: 'a public port that a range has, too',
    file: '[services.a]\nkind = "tcp"\nport = "1-3"\nremote-port = "20000-20002"\n[services.b]\nkind = "tcp"\nport = 9\nremote-port = 20002',
    says: ['a.toml:8:1 services.b.remote-port: tcp port 20002 is already used by services.a (line 4)'],
  },
  {
    of: 'half a certificate, and files that are not there',
    file: 'tls = { cert = "none.pem" }',
    says: [
      'a.toml:1:1 tls needs "key"',
      'a.toml:1:9 tls.cert: FOLDER/none.pem cannot be read: there is no such file',
    ],
  },
  {
    of: 'lists',
    file: 'domains = ["a.example", "b_.example", "a.example"]\ntrusted-proxies = ["10.0.0.0/33", "::1/128", "proxy"]\nreserved-names = []',
    says: [
      'a.toml:1:25 domains[1] must be a domain name, such as "tunnel.example", not "b_.example"',
      'a.toml:1:39 domains[2] is in domains twice',
      'a.toml:2:20 trusted-proxies[0] must be an IP address or a range such as "10.0.0.0/8", not "10.0.0.0/33"',
      'a.toml:2:46 trusted-proxies[2] must be an IP address or a range such as "10.0.0.0/8", not "proxy"',
      'a.toml:3:1 reserved-names must be a list of at least one, or left out, not an empty list',
    ],
  },
  {
    of: 'tokens',
    file: '[[tokens]]\ntoken = "a"\nkinds = ["ftp"]\nnames = "te am"\n[[tokens]]\nmax-tunnels = 0\n[[tokens]]\ntoken = "a"',
    says: [
      'a.toml:3:10 tokens[0].kinds[0] must be one of "http", "tcp", "udp", "tls", "private", not "ftp"',
      'a.toml:4:1 tokens[0].names must be a name or a pattern such as "team-*", not "te am"',
      'a.toml:5:3 tokens[1] needs "token"',
      'a.toml:6:1 tokens[1].max-tunnels must be a whole number from 1 to 1000000, not 0',
      'a.toml:7:3 tokens[2] has the same token as tokens[0]',
    ],
  },
  {
    of: 'silence that comes before the ping',
    file: '[limits]\ndead-after = 1000',
    says: ['a.toml:2:1 limits.dead-after must be more than limits.ping-interval'],
  },
  {
    of: 'keys of a client',
    file: 'domains = "a.example"\nport = 1\nproxy = "http://p"',
    says: ['a.toml:3:1 unknown key "proxy": it belongs in a client\'s file'],
  },
]

describe.each([
  ['client', CLIENT],
  ['server', SERVER],
] as const)("a %s's file with", (_, cases) => {
  test.each(cases)('$of', async ({ file, says, environment, kind }) => {
    const lines = await files.faults('a.toml', file, environment, kind)
    expect(lines.map(line => line.replace(files.folder, 'FOLDER'))).toEqual([...says])
  })
})

interface SyntaxCase {
  readonly of: string
  readonly name: string
  readonly file: string | Uint8Array
  readonly says: readonly string[]
}

/** Files of other tunnels, as their documentation has them. */
const OTHERS: readonly (readonly [string, string, string])[] = [
  [
    'ngrok',
    'ngrok.yml',
    'version: "3"\nagent:\n  authtoken: x\nendpoints:\n  - name: a\n    upstream: { url: 8080 }\n',
  ],
  ['ngrok', 'ngrok2.yml', 'version: "2"\nauthtoken: x\ntunnels:\n  a: { proto: http, addr: 8080 }\n'],
  ['frp', 'frpc.toml', 'serverAddr = "a"\nserverPort = 7000\n[[proxies]]\nname = "ssh"\ntype = "tcp"\n'],
  ['frp', 'frps.toml', 'bindPort = 7000\n'],
  ['frp', 'frpc.ini', '[common]\nserver_addr = a\n'],
  [
    'cloudflared',
    'config.yml',
    'tunnel: 6ff42ae2\ncredentials-file: /root/x.json\ningress:\n  - service: http_status:404\n',
  ],
  [
    'rathole',
    'client.toml',
    '[client]\nremote_addr = "a:2333"\n[client.services.ssh]\nlocal_addr = "127.0.0.1:22"\n',
  ],
  [
    'rathole',
    'server.toml',
    '[server]\nbind_addr = "0.0.0.0:2333"\n[server.services.ssh]\nbind_addr = "0.0.0.0:5202"\n',
  ],
  ['localtunnels 0.2', 'localtunnels.config.ts', 'export default { localPort: 3000, verbose: true }\n'],
]

const SYNTAX: readonly SyntaxCase[] = [
  {
    of: 'a missing value',
    name: 'a.toml',
    file: 'server =\n',
    says: ['a.toml:2:1 is not TOML: unspecified values are invalid'],
  },
  {
    of: 'an open text',
    name: 'a.toml',
    file: '\n\nserver = "x\n',
    says: ['a.toml:3:12 is not TOML: unterminated string constant'],
  },
  {
    of: 'a table given twice',
    name: 'a.toml',
    file: '[services.a]\nport = 1\n[services.a]\nport = 2',
    says: ['a.toml:3:11 is not TOML: defining a key multiple times is invalid'],
  },
  {
    of: 'YAML in a TOML file',
    name: 'a.toml',
    file: 'services:\n  web:',
    says: ['a.toml:1:9 is not TOML: unexpected character'],
  },
  {
    of: 'a tab',
    name: 'a.yaml',
    file: 'services:\n\tweb: {}',
    says: ['a.yaml:2:1 is not YAML: tabs are not allowed as indentation'],
  },
  {
    of: 'an open brace',
    name: 'a.yml',
    file: 'services: {web: {port: 1}',
    says: [
      'a.yml:1:26 is not YAML: flow map in block collection must be sufficiently indented and end with a }',
    ],
  },
  {
    of: 'keys given twice in YAML',
    name: 'a.yaml',
    file: 'services:\n  web: {port: 1, port: 2}\n  web: {port: 3}',
    says: [
      'a.yaml:2:18 "port" is given twice: first in line 2',
      'a.yaml:3:3 "web" is given twice: first in line 2',
    ],
  },
  {
    of: 'two documents',
    name: 'a.yaml',
    file: 'a: 1\n---\nb: 2',
    says: ['a.yaml:2:1 is not YAML: one file is one document, without a second "---"'],
  },
  {
    of: 'an alias without an anchor',
    name: 'a.yaml',
    file: 'services: *here',
    says: ['a.yaml:1:11 is an alias for an anchor that does not stand above it'],
  },
  {
    of: 'a list in YAML',
    name: 'a.yaml',
    file: '- web\n',
    says: ['a.yaml:1:1 is not a table: write keys, each with ": " and its value'],
  },
  {
    of: 'nothing after a key',
    name: 'a.yaml',
    file: 'services:\n',
    says: ['a.yaml:1:1 services must be a table with a key for each service, not nothing'],
  },
  {
    of: 'an open brace in JSON',
    name: 'a.json',
    file: '{"services": {}',
    says: ['a.json:1:16 is not JSON: a } is missing'],
  },
  {
    of: 'no quotes',
    name: 'a.json',
    file: '{\n  services: {}}',
    says: ['a.json:2:3 is not JSON: this is not a value; texts and keys need double quotes'],
  },
  {
    of: 'more after the end',
    name: 'a.json',
    file: '{} {}',
    says: ['a.json:1:4 is not JSON: the file must end here'],
  },
  {
    of: 'a list in JSON',
    name: 'a.json',
    file: '[1]',
    says: ['a.json:1:1 is not a table: begin with { and end with }'],
  },
  {
    of: 'keys given twice in JSON',
    name: 'a.json',
    file: '{"services": {"web": {"port": 1,\n"port": 2}}}',
    says: ['a.json:2:1 "port" is given twice: first in line 1'],
  },
  {
    of: 'null',
    name: 'a.json',
    file: '{"services": null}',
    says: ['a.json:1:2 services must be a table with a key for each service, not null'],
  },
  ...['', ' \n\n', '# nothing yet\n'].map(file => ({
    of: `${JSON.stringify(file)}, which is empty,`,
    name: 'a.toml',
    file,
    says: [EMPTY('a.toml')],
  })),
  { of: 'an empty YAML file', name: 'a.yaml', file: '# nothing\n', says: [EMPTY('a.yaml')] },
  { of: 'an empty JSON file', name: 'a.json', file: '/* nothing */ // yet\n', says: [EMPTY('a.json')] },
  {
    of: 'UTF-16, as PowerShell 5 writes it',
    name: 'a.toml',
    file: new Uint8Array([0xff, 0xfe, ...Buffer.from('port = 3000\n', 'utf16le')]),
    says: ['a.toml is UTF-16: save it as UTF-8'],
  },
  {
    of: 'UTF-16 without a mark',
    name: 'a.json',
    file: new Uint8Array(Buffer.from('{ "port": 3000 }', 'utf16le').swap16()),
    says: ['a.json is UTF-16: save it as UTF-8'],
  },
  ...['0000feff0000007b0000007d', '7b0000007d000000', 'fffe00007b000000'].map(hex => ({
    of: `UTF-32 (${hex})`,
    name: 'a.json',
    file: new Uint8Array(Buffer.from(hex, 'hex')),
    says: ['a.json is UTF-32: save it as UTF-8'],
  })),
  ...OTHERS.map(([tool, name, file]) => ({
    of: `what ${tool} reads`,
    name,
    file,
    says: [
      `${name} looks like a configuration of ${tool}: write a localtunnels.toml, as docs/configuration.md says`,
    ],
  })),
  {
    of: 'a merge key without a table',
    name: 'a.yaml',
    file: 'services:\n  a: { <<: 3, port: 3000 }\n',
    says: ['a.yaml:2:12 "<<" takes a table, or a list of them'],
  },
  {
    of: 'TypeScript in a folder without the package',
    name: 'alone.ts',
    file: "import { defineConfig } from 'localtunnels'\nexport default defineConfig({ services: { web: { port: 3000 } } })\n",
    says: [
      'alone.ts cannot be run: it imports localtunnels, which its folder does not have: install it there, or import types alone',
    ],
  },
  {
    of: 'one slip, one fault',
    name: 'a.yaml',
    file: 'services:\n  a: { port: 3000, spa: off }\n',
    says: ['a.yaml:2:20 services.a.spa must be true or false, not "off"'],
  },
  {
    of: 'domains that are none, and what to write',
    name: 'a.toml',
    file: 'domains = ["lt.test:8080", "*.lt.test", "münchen.test", "a_b"]\n',
    says: [
      'a.toml:1:12 domains[0] must be a domain name, such as "tunnel.example", not "lt.test:8080": write lt.test, as the port has an option of its own',
      'a.toml:1:28 domains[1] must be a domain name, such as "tunnel.example", not "*.lt.test": write lt.test, which has all hosts below it',
      'a.toml:1:41 domains[2] must be a domain name, such as "tunnel.example", not "münchen.test": letters must be a-z here, so use another domain',
      'a.toml:1:57 domains[3] must be a domain name, such as "tunnel.example", not "a_b"',
    ],
  },
  {
    of: 'zero bytes',
    name: 'a.toml',
    file: new Uint8Array([97, 0, 98]),
    says: ['a.toml is not a text file: it has zero bytes'],
  },
  {
    of: 'bytes that are no text',
    name: 'a.toml',
    file: new Uint8Array([97, 61, 255, 254]),
    says: ['a.toml is not a text file in UTF-8'],
  },
  {
    of: 'too many bytes',
    name: 'a.toml',
    file: '#'.repeat(1_048_577),
    says: ['a.toml cannot be read: it has more than 1 MiB'],
  },
  {
    of: 'a wrong extension',
    name: 'a.conf',
    file: 'port = 1',
    says: ['a.conf has a wrong extension: a configuration file ends in .toml, .yaml, .yml, .json, .ts'],
  },
  {
    of: 'brackets without end',
    name: 'a.json',
    file: `{"a":${'['.repeat(200_000)}`,
    says: ['a.json is nested too deeply'],
  },
  {
    of: 'no default export',
    name: 'none.ts',
    file: 'export const config = {}',
    says: ['none.ts has no configuration: write `export default defineConfig({ … })`'],
  },
  {
    of: 'code that throws',
    name: 'throws.ts',
    file: 'throw new Error("not today")',
    says: ['throws.ts cannot be run: not today'],
  },
  {
    of: 'an unknown key in TypeScript',
    name: 'key.ts',
    file: 'const port = 3000\n// { services: {\nexport default {\n  "services": { web: { port, /* : */ subdomian: `shop` } },\n}\n',
    says: ['key.ts:4:38 unknown key "subdomian" in services.web: did you mean "subdomain"?'],
  },
  {
    of: 'a function',
    name: 'function.ts',
    file: 'export default { services: { web: { port: () => 1 } } }',
    says: [
      'function.ts:1:37 services.web.port must be a port from 1 to 65535, or a range of at most 256 such as "27015-27030", not a function',
    ],
  },
]

function EMPTY(name: string): string {
  return `${name} is empty: it names no service`
}

describe('a file with', () => {
  test.each(SYNTAX)('$of in $name', async ({ name, file, says }) => {
    expect(await files.faults(name, file)).toEqual([...says])
  })
})

describe('a path that', () => {
  const says = async (path: string) =>
    (await loadConfig(path, { environment: {} })).faults.map(fault => faultLine('FILE', fault))

  test('leads nowhere, to a folder or in a circle', async () => {
    expect(await says(files.path('nowhere.toml'))).toEqual(['FILE cannot be read: there is no such file'])
    await mkdir(files.path('folder.toml'), { recursive: true })
    expect(await says(files.path('folder.toml'))).toEqual(['FILE cannot be read: it is a folder'])
    expect(await says('/dev/null/x.toml')).toEqual(['FILE cannot be read: there is no such folder'])
    await symlink('/dev/zero', files.path('endless.toml'))
    expect(await says(files.path('endless.toml'))).toEqual(['FILE cannot be read: it is not a regular file'])
    await symlink('circle.toml', files.path('circle.toml'))
    expect(await says(files.path('circle.toml'))).toEqual([
      'FILE cannot be read: its links go round in a circle',
    ])
  })

  testWith(['setpriv'], 'this user may not read', async () => {
    const path = await files.write('mine.toml', 'port = 1')
    await chmod(path, 0)
    const cli = join(import.meta.dir, '../../bin/localtunnels.ts')
    const child = Bun.spawn(withoutPrivileges([process.execPath, cli, 'config', 'check', path]), {
      stdout: 'pipe',
      stderr: 'ignore',
    })
    expect(await new Response(child.stdout).text()).toContain(`${path} cannot be read: this user may not`)
    expect(await child.exited).not.toBe(0)
  })
})

test('a hundred faults are told, and how many more there are', async () => {
  const lines = await files.faults(
    'many.toml',
    Array.from({ length: 150 }, (_, index) => `k${index} = 1`).join('\n'),
  )
  expect(lines.length).toBe(101)
  expect(lines.at(-1)).toBe('many.toml has 51 more faults')
})

test('aliases of aliases end in a fault, not in memory', async () => {
  const bomb = [
    'a0: &a0 [1,1,1,1,1,1,1,1,1,1]',
    ...Array.from({ length: 9 }, (_, n) => `a${n + 1}: &a${n + 1} [${Array(10).fill(`*a${n}`).join(',')}]`),
  ]
  expect(await files.faults('bomb.yaml', bomb.join('\n'))).toEqual([
    expect.stringMatching(/^bomb\.yaml:\d+:\d+ has more than 20000 values: use fewer aliases$/),
  ])
})
