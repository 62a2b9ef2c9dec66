// The server below a path of a site that is there already: real proxies, which pass the path on or remove it. Visitors of tunnels come by
// the same proxy, with hosts of their own.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { Agent } from 'node:http'
import type { TunnelClientOptions } from '../../src/client/options.ts'
import { guarding, TunnelClient, TunnelServer } from '../../src/index.ts'
import { finish } from '../cli/bin.ts'
import { ADMIN_TOKEN, adminOptions, metricsOf, sampleOf } from '../support/admin.ts'
import { ask } from '../support/ask.ts'
import { startHaproxy, startNginx } from '../support/haproxy.ts'
import { describeWith } from '../support/needs.ts'
import { freePort } from '../support/ports.ts'
import { folder, startProgram } from '../support/programs.ts'
import { rawDial } from '../support/raw.ts'
import { rejection } from '../support/rejection.ts'
import { startServer } from '../support/tunnel.ts'
import { within } from '../support/within.ts'

const SITE = 'the site that was there before\n'
const BULK = Buffer.alloc(4_000_000, 'bulk of a download ')

/** Ports on this machine. */
interface Behind {
  readonly server: number
  readonly admin: number
}

interface Proxy extends AsyncDisposable {
  readonly port: number
}

type StartProxy = (behind: Behind, strips: boolean) => Promise<Proxy>

/** Both programs keep the path where `proxy_pass` has none, and remove it where it has one. */
const nginx: StartProxy = ({ server, admin }, strips) => {
  const end = strips ? '/' : ''
  return startNginx(`
    map $http_upgrade $connection_upgrade { default upgrade; '' ''; }
    proxy_http_version 1.1;
    proxy_set_header Host $http_host;
    proxy_set_header Upgrade $http_upgrade;
    proxy_set_header Connection $connection_upgrade;
    proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
    proxy_buffering off;
    server {
      listen 127.0.0.1:PORT;
      server_name site.localhost;
      location / { default_type text/plain; return 200 "${SITE.trim()}\n"; }
      location /tunnel/ { proxy_pass http://127.0.0.1:${server}${end}; }
      location /tunnel/admin/ { proxy_pass http://127.0.0.1:${admin}${end}; }
    }
    server {
      listen 127.0.0.1:PORT;
      server_name *.site.localhost;
      location / { proxy_pass http://127.0.0.1:${server}; }
    }`)
}

const haproxy: StartProxy = ({ server, admin }, strips) =>
  startHaproxy(`
defaults
  mode http
  option forwardfor
  timeout connect 5s
  timeout client 1m
  timeout server 1m
  timeout tunnel 1m

frontend site
  bind 127.0.0.1:PORT
  acl site hdr(host),lower,field(1,:) -m str site.localhost
  http-request return status 200 content-type text/plain string "${SITE.trim()}\\n" if site !{ path_beg /tunnel/ }
  use_backend admin if site { path_beg /tunnel/admin/ }
  default_backend tunnel

backend tunnel
  ${strips ? 'http-request replace-path /tunnel(/.*) \\1 if { hdr(host),lower,field(1,:) -m str site.localhost }' : ''}
  server tunnel 127.0.0.1:${server}

backend admin
  ${strips ? 'http-request replace-path /tunnel/admin(/.*) \\1' : ''}
  server admin 127.0.0.1:${admin}
`)

const caddy: StartProxy = async ({ server, admin }, strips) => {
  const port = freePort()
  const dir = await folder('caddy')
  const handle = strips ? 'handle_path' : 'handle'
  await Bun.write(
    `${dir.path}/Caddyfile`,
    `{
      admin off
      auto_https off
    }
    http://site.localhost:${port} {
      ${handle} /tunnel/admin/* {
        reverse_proxy 127.0.0.1:${admin}
      }
      ${handle} /tunnel/* {
        reverse_proxy 127.0.0.1:${server} {
          flush_interval -1
        }
      }
      respond "${SITE.trim()}
"
    }
    http://*.site.localhost:${port} {
      reverse_proxy 127.0.0.1:${server}
    }`,
  )
  const command = ['caddy', 'run', '--adapter', 'caddyfile', '--config', `${dir.path}/Caddyfile`]
  const program = await startProgram(command, port, { XDG_CONFIG_HOME: dir.path, XDG_DATA_HOME: dir.path })
  return stopped(port, program, dir)
}

const traefik: StartProxy = async ({ server, admin }, strips) => {
  const port = freePort()
  const dir = await folder('traefik')
  const strip = (path: string) => (strips ? `middlewares: [strip-${path}]` : '')
  const site = startSite()
  await Bun.write(
    `${dir.path}/dynamic.yml`,
    `http:
  routers:
    site: { rule: "Host(\`site.localhost\`)", priority: 1, service: site }
    tunnel: { rule: "Host(\`site.localhost\`) && PathPrefix(\`/tunnel/\`)", priority: 2, service: tunnel, ${strip('tunnel')} }
    admin: { rule: "Host(\`site.localhost\`) && PathPrefix(\`/tunnel/admin/\`)", priority: 3, service: admin, ${strip('admin')} }
    visitors: { rule: "HostRegexp(\`^.+\\\\.site\\\\.localhost$\`)", priority: 1, service: tunnel }
  middlewares:
    strip-tunnel: { stripPrefix: { prefixes: [/tunnel] } }
    strip-admin: { stripPrefix: { prefixes: [/tunnel/admin] } }
  services:
    site: { loadBalancer: { servers: [{ url: "http://127.0.0.1:${site.port}" }] } }
    tunnel: { loadBalancer: { servers: [{ url: "http://127.0.0.1:${server}" }] } }
    admin: { loadBalancer: { servers: [{ url: "http://127.0.0.1:${admin}" }] } }
`,
  )
  const command = [
    'traefik',
    `--entrypoints.web.address=127.0.0.1:${port}`,
    `--providers.file.filename=${dir.path}/dynamic.yml`,
    '--providers.file.watch=false',
    '--global.checknewversion=false',
    '--global.sendanonymoususage=false',
  ]
  const program = await startProgram(command, port)
  // It listens before it has read where requests go.
  await within(
    (async () => {
      while ((await ask(port, 'site.localhost')).status !== 200) await Bun.sleep(20)
    })(),
    'the routes of Traefik',
  )
  return stopped(port, program, dir, { [Symbol.asyncDispose]: () => site.stop(true) })
}

const startSite = () => Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: () => new Response(SITE) })

const stopped = (port: number, ...parts: readonly AsyncDisposable[]): Proxy => ({
  port,
  async [Symbol.asyncDispose]() {
    for (const part of parts) await part[Symbol.asyncDispose]()
  },
})

interface World extends AsyncDisposable {
  readonly server: TunnelServer
  /** Of the proxy. */
  readonly port: number
  readonly url: string
  connect(options?: TunnelClientOptions): Promise<TunnelClient>
}

async function world(start: StartProxy, strips: boolean): Promise<World> {
  const app = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    fetch: ({ url }) =>
      new URL(url).pathname === '/bulk'
        ? new Response(BULK)
        : new Response(new URL(url).pathname, { headers: { 'x-app': 'yes' } }),
  })
  const server = await startServer({
    domains: ['site.localhost'],
    basePath: '/tunnel',
    trustedProxies: ['127.0.0.1'],
    admin: adminOptions(),
    guarding: guarding(),
  })
  const admin = Number(new URL(server.adminUrl ?? '').port)
  const proxy = await start({ server: server.port, admin }, strips)
  const url = `http://site.localhost:${proxy.port}/tunnel`
  return {
    server,
    port: proxy.port,
    url,
    async connect(options = {}) {
      const client = new TunnelClient({
        server: url,
        port: app.port ?? 0,
        host: '127.0.0.1',
        subdomain: 'app',
        ...options,
      })
      await client.connect()
      return client
    },
    async [Symbol.asyncDispose]() {
      await proxy[Symbol.asyncDispose]()
      await server.stop()
      await app.stop(true)
    },
  }
}

/** Paths of the server's own pages, spelled in ways that a proxy or a server may take for others. */
const PATHS = [
  ...[
    '/health',
    '/_health',
    '/tls-check?domain=site.localhost',
    '/api/v1/tunnels',
    '/admin/api/v1/tunnels',
    '/metrics',
  ],
  ...[
    '/tunnel',
    '/tunnel/',
    '/tunnel/health',
    '//tunnel/health',
    '/tunnel//health',
    '/./tunnel/health',
    '/tunnel/./health',
  ],
  ...[
    '/tunnel/../health',
    '/tunnel/%2e%2e/health',
    '/tunnel/..%2fhealth',
    '/tunnel%2fhealth',
    '/tunnel%2Fadmin%2Fapi/v1/tunnels',
  ],
  ...[
    '/tunnel;x/health',
    '/tunnel/;/health',
    '/tunnel/..;/tunnel/admin/',
    '/tunnel\\health',
    '/tunnel/..\\health',
    '/TUNNEL/health',
  ],
  ...[
    '/tunnel/admin',
    '/tunnel/admin/',
    '/tunnel/admin/health',
    '/tunnel/admin/../../inside',
    '/tunnel/admin/%2e%2e/%2e%2e/inside',
  ],
  ...[
    '/tunnel/admin/api/v1/tunnels',
    '/tunnel//admin/api/v1/tunnels',
    '/tunnel/admin//api/v1/tunnels',
    '/tunnel/%61dmin/metrics',
  ],
  ...[
    '/tunnel/http://app.site.localhost/inside',
    '/tunnel/../../inside',
    '/tunnel/.%2e/inside',
    '/x/../tunnel/admin/metrics',
  ],
]
const TUNNEL_HOSTS = [
  ...['app.site.localhost', 'APP.site.localhost', 'app.site.localhost.'].map(host => [host, ''] as const),
  ...[
    'X-Forwarded-Host: site.localhost\r\n',
    'X-Forwarded-Prefix: /tunnel\r\n',
    'X-Original-URL: /tunnel/health\r\n',
  ].map(lines => ['app.site.localhost', lines] as const),
  ['app.site.localhost', 'X-Rewrite-URL: /health\r\nForwarded: host=site.localhost\r\n'] as const,
]
/** What a stranger says about the own address. */
const FORGED: readonly Record<string, string>[] = [
  { 'X-Forwarded-For': '203.0.113.9' },
  { 'X-Forwarded-For': '203.0.113.9, 203.0.113.9', Connection: 'X-Forwarded-For, close' },
  { X_Forwarded_For: '203.0.113.9' },
  { 'X-Real-IP': '203.0.113.9', 'True-Client-IP': '203.0.113.9', 'CF-Connecting-IP': '203.0.113.9' },
  { Forwarded: 'for=203.0.113.9' },
]

const PROXIES: readonly (readonly [name: string, start: StartProxy])[] = [
  ['nginx', nginx],
  ['caddy', caddy],
  ['traefik', traefik],
  ['haproxy', haproxy],
]

for (const [name, start] of PROXIES)
  for (const strips of [false, true])
    describeWith([name], `${name} that ${strips ? 'removes the path' : 'passes the path on'}`, () => {
      let all: World
      beforeAll(async () => {
        all = await world(start, strips)
      })
      afterAll(() => all?.[Symbol.asyncDispose]())

      test('carrier, links and both wires; visitors see no path', async () => {
        const get = (host: string, path: string) => ask(all.port, host, { path })
        {
          await using _client = await all.connect()
          expect((await get('app.site.localhost', '/tunnel/x')).body).toBe('/tunnel/x')
          expect((await get('app.site.localhost', '/tunnel')).body).toBe('/tunnel')
          const used = async () =>
            sampleOf(await metricsOf(all.server), 'localtunnels_limit_used_ratio{limit="maxAllLinks"}')
          for (let round = 0; round < 3; round++)
            expect((await get('app.site.localhost', '/bulk')).body).toHaveLength(BULK.length)
          expect(await used()).toBeGreaterThan(0)
        }
        for (const options of [{ wire: 'json' as const }, { agent: new Agent() }]) {
          await using _client = await all.connect(options)
          expect((await get('app.site.localhost', '/y')).body).toBe('/y')
        }
      })

      test("the site's own pages, those of the server, and the admin listener", async () => {
        const get = (path: string, headers: Record<string, string> = {}) =>
          ask(all.port, `site.localhost:${all.port}`, { path, headers })
        expect((await get('/')).body).toBe(SITE)
        expect((await get('/health')).body).toBe(SITE)
        expect((await get('/tunnel/health')).body).toBe('OK')
        expect((await get('/tunnel/tls-check?domain=site.localhost')).body).toBe('OK')
        expect((await get('/tunnel/')).body).toStartWith('localtunnels ')
        expect((await get('/tunnel/', { accept: 'text/html' })).body).toContain(
          `localtunnels 3000 --server site.localhost:${all.port}/tunnel<`,
        )
        expect((await get('/tunnel/nothing')).status).toBe(404)
        expect((await get('/tunnel/admin/')).body).toContain('<title>')
        expect((await get('/tunnel/admin/health')).body).toBe('OK\n')
        expect((await get('/tunnel/admin/metrics')).status).toBe(401)
        const good = { authorization: `Bearer ${ADMIN_TOKEN}` }
        expect((await get('/tunnel/admin/metrics', good)).body).toContain('localtunnels_')
        expect(JSON.parse((await get('/tunnel/admin/api/v1/tunnels', good)).body)).toEqual({ tunnels: [] })
      })

      test('no spelling leads from a tunnel to the pages of the server, nor from its path to an app', async () => {
        await using _client = await all.connect()
        await using _walled = await all.connect({ subdomain: 'walled', guard: { allow: ['203.0.113.9'] } })
        const seen = async (target: string, host: string, lines = '') => {
          const visitor = await rawDial(all.port)
          await visitor.send(`GET ${target} HTTP/1.1\r\nHost: ${host}\r\n${lines}Connection: close\r\n\r\n`)
          const answer = await visitor.end()
          return { answer, isApps: /^x-app: yes/im.test(answer) }
        }
        const wrong: unknown[] = []
        let appsCount = 0
        const ofTunnel = async (target: string, host: string, lines: string) => {
          const { answer, isApps } = await seen(target, host, lines)
          if (isApps) appsCount++
          // A proxy that does not know the host may answer by itself.
          else if (/^HTTP\/1.1 2.*\r\n\r\n(?:OK|localtunnels |<!doctype)/s.test(answer))
            wrong.push([target, host, lines, answer.slice(0, 200)])
        }
        const ofSite = async (path: string, host: string, lines: string) => {
          const { answer, isApps } = await seen(path, host, lines)
          if (isApps || /"tunnels":\[|^localtunnels_/m.test(answer))
            wrong.push([path, host, lines, answer.slice(0, 200)])
        }
        for (const path of PATHS)
          await Promise.all([
            ...TUNNEL_HOSTS.flatMap(([host, lines]) =>
              [path, `http://${host}${path}`].map(target => ofTunnel(target, host, lines)),
            ),
            ...['site.localhost', 'SITE.localhost', 'site.localhost.'].flatMap(host =>
              ['', 'X-Forwarded-Host: app.site.localhost\r\nX-Original-URL: /a\r\n'].map(lines =>
                ofSite(path, host, lines),
              ),
            ),
          ])
        expect(appsCount).toBeGreaterThan(PATHS.length)
        for (const headers of [{}, ...FORGED]) {
          const { code } = await ask(all.port, 'walled.site.localhost', { headers, from: '127.0.0.2' })
          if (code !== 'ADDRESS_REFUSED') wrong.push([headers, code])
        }
        expect(wrong).toEqual([])
      })

      test('doctor and the commands of admin', async () => {
        using app = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: () => new Response('') })
        const { stdout } = await finish(['doctor', `127.0.0.1:${app.port}`, '--server', all.url])
        expect(stdout).toContain(`${all.url} responds, version `)
        expect(stdout).toContain('WebSocket upgrade and registration work')
        const clients = ['admin', 'clients', '--url', `${all.url}/admin/`, '--admin-token', ADMIN_TOKEN]
        expect((await finish(clients)).exitCode).toBe(0)
      })
    })

test('a wrong path of a site is no tunnel server, and the message names it', async () => {
  using site = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    fetch: () => new Response('no', { status: 404 }),
  })
  const client = new TunnelClient({ server: `http://127.0.0.1:${site.port}/tunel/`, port: 1 })
  expect(String(await rejection(client.connect()))).toContain(
    `http://127.0.0.1:${site.port}/tunel answered with status 404.`,
  )
  const { stdout } = await finish(['doctor', '1', '--server', `http://127.0.0.1:${site.port}/tunel/`])
  expect(stdout).toContain('Check the path /tunel in --server')
})

test('a base path is a path, and the root is none', async () => {
  for (const basePath of ['tunnel', '/a b', '/a/../b', '/a?b', '/a//b', '/%2e%2e/a'])
    expect(() => new TunnelServer({ basePath })).toThrow(
      `basePath "${basePath}" is not a path such as /tunnel.`,
    )
  for (const [basePath, shown] of [
    ['/', ''],
    ['/tunnel/', '/tunnel'],
    ['/a/b', '/a/b'],
  ] as const) {
    await using server = await startServer({ basePath })
    expect(server.url).toBe(`http://localhost:${server.port}${shown}`)
  }
})
