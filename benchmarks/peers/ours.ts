// localtunnels itself: through its library, and through its command line as users run it; with each of its options.

import { join } from 'node:path'
import { freePort } from '../measure/ports.ts'
import { certificate } from './certificate.ts'
import { packagedBinary, packagedCommand } from './packaged.ts'
import { eachPort, endpoint, type Peer, type Plan, type Ports, type Program, type Site } from './peer.ts'

const FOLDER = join(import.meta.dir, '../ours')

export interface OursOptions {
  /** The programs that users start, `localtunnels server` and `localtunnels PORT`, in place of the library. */
  readonly cli?: 'piped' | 'terminal' | 'binary'
  readonly wire?: 'json'
  /** Tunnels of ports: for what is not HTTP; or private services, with the end of each beside the visitors. */
  readonly raw?: 'tcp' | 'udp' | 'private'
  /** TLS at the server, for visitors and the carrier. */
  readonly tls?: boolean
  readonly env?: Readonly<Record<string, string>>
  /** Two clients share each name. */
  readonly pool?: boolean
  /** Another path of the tunnel goes to another port. */
  readonly route?: boolean
  /** The app speaks TLS. */
  readonly httpsApp?: boolean
  /** The app speaks HTTP/2 without TLS, and nothing else. */
  readonly h2cApp?: boolean
  /** Takes any certificate of the server: one made for the test stands in front of it. */
  readonly insecure?: boolean
  /** Names in front of the app at once, all of one client: n0, n1, … */
  readonly services?: number
}

export function ours(name: string, how: string, options: OursOptions = {}): Peer {
  /** Of the command line: built by `detect`. */
  let command: readonly string[] = []
  return {
    name,
    role: 'ours',
    carries: options.raw ? 'tcp' : 'http',
    how,
    ...(options.tls && { tls: true }),
    detect: async () => {
      if (options.cli === 'binary') command = [await packagedBinary()]
      else if (options.cli) command = ['bun', await packagedCommand()]
      return { version: 'this commit' }
    },
    plan: (ports, site) => plan(options, ports, site, command),
  }
}

function plan(options: OursOptions, all: Ports, site: Site, command: readonly string[]): Plan {
  const ports = appsOf(options, all)
  const port = freePort()
  const { host, port: dialled } = site.dial(port)
  const scheme = options.tls ? 'https' : 'http'
  const names = options.services
    ? Array.from({ length: options.services }, (_, i) => `n${i}`)
    : Object.keys(ports)
  const open: Record<string, number> = eachPort(ports, () => freePort())
  const endpoints = Object.fromEntries(
    names.map(name => [
      name,
      options.raw
        ? endpoint(open[name]!, undefined, { host: site.host })
        : endpoint(port, `${name}.localhost:${port}`, { host: site.host, tls: options.tls ?? false }),
    ]),
  )
  const server = `${scheme}://${host}:${dialled}`
  const programs = options.cli
    ? commandLine(options, port, server, site, command)
    : library(options, port, server, site)
  const clients = options.services
    ? [programs.services(Object.values(ports)[0]!, names)]
    : Object.entries(ports).flatMap(([name, origin]) =>
        Array.from({ length: options.pool ? 2 : 1 }, () => programs.client(name, origin, open[name]!)),
      )
  const ends =
    options.raw === 'private' ? Object.entries(open).map(([name, at]) => programs.end(name, at)) : []
  return { server: [programs.server], client: [...clients, ...ends], listens: [port], endpoints }
}

/** An app with TLS, or with HTTP/2, stands in for the plain one. */
function appsOf({ httpsApp, h2cApp }: OursOptions, { https, h2c, ...plain }: Ports): Ports {
  const other = httpsApp ? https : h2cApp ? h2c : undefined
  return other === undefined ? plain : eachPort(plain, () => other)
}

interface Programs {
  readonly server: Program
  client(name: string, origin: number, open: number): Program
  services(origin: number, names: readonly string[]): Program
  /** The end of a private service. */
  end(name: string, open: number): Program
}

function library(options: OursOptions, port: number, server: string, site: Site): Programs {
  const env = { ...options.env, ...(options.tls && { BENCH_TLS: JSON.stringify(certificate()) }) }
  const program = join(FOLDER, 'client.ts')
  // A client that is killed gets its name back when it starts again, as the command line does.
  const stateFolder = site.file('state/.keep', '').replace('/.keep', '')
  const specOf = (spec: object): string => JSON.stringify({ server, stateFolder, ...spec })
  const run = (spec: string): Program => ({ command: ['bun', program, spec], env, ready: /^connected / })
  const wire = options.wire ?? 'streams'
  return {
    server: {
      command: ['bun', join(FOLDER, 'server.ts'), String(port), site.host],
      // One client has all of them: more than a server lets it have by default.
      env: {
        ...env,
        ...(options.raw === 'private' && { BENCH_TOKEN: TOKEN }),
        ...(options.services && { BENCH_LIMITS: `{"maxTunnels":${options.services}}` }),
      },
      ready: /^listening \d+$/,
    },
    client: (name, origin, open) =>
      run(
        specOf({
          tunnels: [{ subdomain: name, ...originOf(options, origin) }],
          ...(options.raw === 'private' && { token: TOKEN }),
          ...(options.raw ? { kind: options.raw, remotePort: open } : { wire }),
        }),
      ),
    end: (name, open) =>
      run(specOf({ tunnels: [{ subdomain: name }], kind: 'end', remotePort: open, token: TOKEN })),
    // A file: Linux has 128 KB for an argument.
    services: (origin, names) =>
      run(
        site.file(
          'client.json',
          specOf({ tunnels: names.map(subdomain => ({ subdomain, port: origin })), wire }),
        ),
      ),
  }
}

function originOf({ httpsApp, h2cApp, pool, route }: OursOptions, port: number): object {
  return {
    ...(httpsApp ? { url: `https://127.0.0.1:${port}`, appInsecure: true } : { host: '127.0.0.1', port }),
    ...(h2cApp && { protocol: 'h2c' }),
    ...(pool && { pool: true }),
    ...(route && { routes: { '/api': { host: '127.0.0.1', port } } }),
  }
}

function commandLine(
  options: OursOptions,
  port: number,
  server: string,
  site: Site,
  program: readonly string[],
): Programs {
  const home = site.file('home/.keep', '').replace('/.keep', '')
  const env = { HOME: home, XDG_STATE_HOME: home, XDG_CONFIG_HOME: home, NO_COLOR: '', ...options.env }
  const terminal = options.cli === 'terminal'
  const run = (flags: readonly string[]): Program => ({
    command: [...program, ...flags],
    cwd: home,
    env,
    ...(terminal && { terminal }),
  })
  const tls = options.tls ? certificate() : undefined
  const insecure = options.tls || options.insecure
  const tlsFlags = tls ? ['--tls-cert', tls.certFile, '--tls-key', tls.keyFile] : []
  const limits = options.services
    ? ['--config', site.file('server.toml', `[limits]\nmax-tunnels = ${options.services}\n`)]
    : []
  const shared = ['--server', server, ...(insecure ? ['--insecure'] : [])]
  return {
    server: run([
      ...`server --host ${site.host} --port ${port} --tcp-ports 1024-65535`.split(' '),
      // At another address it wants a token, or this.
      ...(site.host === '127.0.0.1' ? [] : ['--open']),
      ...tlsFlags,
      ...limits,
    ]),
    client(name, origin, open) {
      if (options.raw === 'tcp')
        return run(['tcp', `127.0.0.1:${origin}`, '--remote-port', String(open), ...shared])
      const app = options.httpsApp ? [`https://127.0.0.1:${origin}`] : [`${origin}`, '--host', '127.0.0.1']
      const route = options.route ? ['--route', `/api=127.0.0.1:${origin}`] : []
      const more = [
        ...(options.h2cApp ? ['--protocol', 'h2c'] : []),
        ...(options.pool ? ['--pool'] : []),
        ...route,
      ]
      return run([...app, ...more, '--subdomain', name, ...shared])
    },
    end: () => {
      throw new Error('private services are measured through the library')
    },
    services: (origin, names) => {
      const services = names.map(name => `[services.${name}]\nport = ${origin}\nhost = "127.0.0.1"\n`)
      const file = site.file('localtunnels.toml', `server = "${server}"\n${services.join('')}`)
      return run(['up', '--config', file])
    },
  }
}

/** Private services need one. */
const TOKEN = 'bench'

const SPLICE_OFF = { LOCALTUNNELS_SPLICE: '0' }

export const oursLibrary: Peer = ours('ours', 'library: TunnelServer and TunnelClient, streams wire')
export const oursCli: Peer = ours(
  'ours-cli',
  '`localtunnels server` and `localtunnels PORT`, of the package, piped',
  {
    cli: 'piped',
  },
)
export const oursBinary: Peer = ours(
  'ours-binary',
  'the same as a single executable, without a runtime beside it',
  {
    cli: 'binary',
  },
)
export const oursTerminal: Peer = ours('ours-cli-tty', 'the same on a terminal', { cli: 'terminal' })
export const oursJson: Peer = ours('ours-json', 'library, JSON wire', { wire: 'json' })
export const oursPlain: Peer = ours('ours-off', 'library, LOCALTUNNELS_SPLICE=0', { env: SPLICE_OFF })
export const oursCliPlain: Peer = ours('ours-cli-off', 'command line, LOCALTUNNELS_SPLICE=0', {
  cli: 'piped',
  env: SPLICE_OFF,
})
export const oursTcp: Peer = ours('ours', 'library, a TCP tunnel', { raw: 'tcp' })
export const oursCliTcp: Peer = ours('ours-cli', '`localtunnels tcp PORT`, piped', {
  raw: 'tcp',
  cli: 'piped',
})
export const oursPrivate: Peer = ours('ours-private', 'library, a private service and its end', {
  raw: 'private',
})
export const oursUdp: Peer = ours('ours', 'library, TCP and UDP tunnels on one port', { raw: 'udp' })
export const oursTls: Peer = ours('ours', 'library, TLS at the server, also for the carrier', { tls: true })
export const oursCliTls: Peer = ours('ours-cli', 'command line, --tls-cert and --tls-key', {
  tls: true,
  cli: 'piped',
})
