// What stands beside tunnels for reference: no tunnel, one hop of a reverse proxy, and nginx with TLS in front.

import { freePort } from '../measure/ports.ts'
import { command, detectBinary } from './binary.ts'
import { certificate } from './certificate.ts'
import {
  type Endpoint,
  eachPort,
  endpoint,
  type Peer,
  type Plan,
  type Ports,
  type Program,
  type Site,
} from './peer.ts'

export const direct: Peer = {
  name: 'direct',
  role: 'floor',
  carries: 'both',
  how: 'no tunnel: the load generator asks the app',
  detect: () => Promise.resolve({ version: '-' }),
  plan: ports => ({
    server: [],
    client: [],
    listens: [],
    endpoints: eachPort(ports, (_, port) => endpoint(port)),
  }),
}

type Build = (ports: Ports, open: Ports, site: Site) => Program

function hop(
  name: string,
  program: string,
  versionFlag: string,
  how: string,
  build: Build,
  tls = false,
): Peer {
  return {
    name,
    role: 'floor',
    carries: 'http',
    how,
    ...(tls && { tls }),
    detect: () => detectBinary(program, versionFlag, `apt-get install ${program}`),
    plan(ports, site): Plan {
      const open = eachPort(ports, () => freePort())
      const endpoints = eachPort(ports, name =>
        tls ? endpoint(open[name]!, `localhost:${open[name]}`, { tls }) : endpoint(open[name]!),
      )
      return { server: [build(ports, open, site)], client: [], listens: Object.values(open), endpoints }
    },
  }
}

const hopsOf = (ports: Ports, open: Ports): Hops =>
  eachPort(ports, (name, port) => ({ listen: open[name]!, to: port }))
const caddy =
  (tls: boolean): Build =>
  (ports, open, site) => {
    const sites = Object.entries(ports).map(([name, port]) => {
      const at = tls ? `:${open[name]}` : `http://127.0.0.1:${open[name]}, http://localhost:${open[name]}`
      const files = tls ? ` tls ${certificate().certFile} ${certificate().keyFile}\n` : ''
      return `${at} {\n${files} reverse_proxy 127.0.0.1:${port}\n}\n`
    })
    const file = site.file('Caddyfile', `{\n admin off\n auto_https off\n}\n${sites.join('')}`)
    const env = { HOME: file.replace('/Caddyfile', '') }
    return { command: command('caddy', 'run --adapter caddyfile --config', file), env }
  }

export const nginxHop: Peer = hop(
  'nginx-hop',
  'nginx',
  '-v',
  'one reverse proxy, keep-alive to the app',
  (ports, open, site) => nginx(site, hopsOf(ports, open), false),
)
export const haproxyHop: Peer = hop(
  'haproxy-hop',
  'haproxy',
  '-v',
  'one reverse proxy, http-reuse always',
  (ports, open, site) => {
    const head =
      'global\n maxconn 8192\ndefaults\n mode http\n timeout connect 5s\n timeout client 60s\n timeout server 60s\n http-reuse always\n'
    const sites = Object.entries(ports).map(
      ([name, port]) => `listen ${name}\n bind 127.0.0.1:${open[name]}\n server app 127.0.0.1:${port}\n`,
    )
    return { command: command('haproxy', '-db -q -f', site.file('haproxy.cfg', head + sites.join(''))) }
  },
)
const OF_CADDY = ['caddy', 'version'] as const
export const caddyHop: Peer = hop('caddy-hop', ...OF_CADDY, 'one reverse proxy, as shipped', caddy(false))
export const caddyTls: Peer = hop(
  'caddy-tls',
  ...OF_CADDY,
  'caddy with TLS in front of the app, no tunnel',
  caddy(true),
  true,
)
export const nginxTls: Peer = hop(
  'nginx-tls',
  'nginx',
  '-v',
  'nginx with TLS in front of the app, no tunnel',
  (ports, open, site) => nginx(site, hopsOf(ports, open), true),
  true,
)

/** nginx takes the TLS of visitors and asks the tunnel in the clear. */
export function behindNginx(peer: Peer, name: string): Peer {
  const how = `nginx with TLS in front of ${peer.name} (${peer.how})`
  return { ...peer, name, how, tls: true, plan: (ports, site) => inFront(peer.plan(ports, site), site) }
}

/** The client reaches the server through nginx with TLS; visitors come in the clear. */
export function carrierBehindNginx(peer: Peer, name: string): Peer {
  return {
    ...peer,
    name,
    how: `${peer.how}; nginx with TLS in front of the carrier`,
    plan(ports, site) {
      const listen = freePort()
      let to = 0
      const plan = peer.plan(ports, {
        ...site,
        dial(port) {
          to = port
          return { host: site.host, port: listen }
        },
      })
      const program = nginx(site, { carrier: { listen, to } }, true)
      const client = plan.client.map(one => ({
        ...one,
        command: one.command.map(word => word.replace('http://', 'https://')),
      }))
      return { ...plan, server: [...plan.server, program], client, listens: [...plan.listens, listen] }
    },
  }
}

function inFront(plan: Plan, site: Site): Plan {
  const listens = new Map<number, number>()
  const endpoints = Object.fromEntries(
    Object.entries(plan.endpoints).map(([name, to]): [string, Endpoint] => {
      const listen = listens.get(to.port) ?? freePort()
      listens.set(to.port, listen)
      return [name, { ...to, port: listen, tls: true }]
    }),
  )
  const hops = Object.fromEntries([...listens].map(([to, listen]) => [`p${to}`, { listen, to }]))
  const program = nginx(site, hops, true)
  return {
    ...plan,
    server: [...plan.server, program],
    listens: [...plan.listens, ...listens.values()],
    endpoints,
  }
}

type Hops = Readonly<Record<string, { readonly listen: number; readonly to: number }>>

function nginx(site: Site, hops: Hops, tls: boolean): Program {
  const lines = tls
    ? `ssl_certificate ${certificate().certFile}; ssl_certificate_key ${certificate().keyFile};`
    : ''
  const servers = Object.entries(hops).map(
    ([
      name,
      { listen, to },
    ]) => `upstream ${name} { server 127.0.0.1:${to}; keepalive 128; keepalive_requests 1000000000; }
  server { listen 127.0.0.1:${listen}${tls ? ' ssl http2' : ''} backlog=4096; ${lines}
    location / { proxy_pass http://${name}; proxy_http_version 1.1; proxy_set_header Host $http_host;
      proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection $upgraded; proxy_read_timeout 600s; } }`,
  )
  return nginxProgram(
    site,
    `map $http_upgrade $upgraded { default upgrade; '' ''; }
  proxy_buffering off; proxy_request_buffering off; client_max_body_size 0; ${servers.join('\n  ')}`,
  )
}

/** One process, no log, all temporary files in the folder of the tunnel. */
export function nginxProgram(site: Pick<Site, 'file'>, http: string): Program {
  const folder = site.file('nginx/.keep', '').replace('/.keep', '')
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    kind => `${kind}_temp_path ${folder}/${kind};`,
  )
  const file = site.file(
    'nginx/nginx.conf',
    `daemon off; master_process off; pid ${folder}/pid; error_log stderr error;
${process.getuid?.() === 0 ? 'user root;' : ''}
events { worker_connections 16384; }
http { access_log off; tcp_nodelay on; default_type application/octet-stream;
  keepalive_requests 1000000000; keepalive_timeout 3600s; ${temporary.join(' ')}
  ${http}
}
`,
  )
  return { command: ['nginx', '-p', folder, '-e', 'stderr', '-c', file] }
}
