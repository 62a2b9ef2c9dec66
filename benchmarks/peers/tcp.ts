// Tunnels of ports: rathole, bore, frp, chisel, and the TCP ways of piko and ferrotunnel.
//
// rathole and bore set TCP_NODELAY on the connection between their ends only. On the visitor's and the app's connection
// Nagle's algorithm stays on, so an answer that the tunnel writes in several pieces (10 to 64 KB) waits for the
// delayed acknowledgement of the first one: 40 ms, about 200 answers a second on 10 connections (rathole issue 171).

import { freePort } from '../measure/ports.ts'
import { binary, command, detectBinary } from './binary.ts'
import { certificate } from './certificate.ts'
import {
  eachPort,
  endpoint,
  type Peer,
  type Plan,
  type Ports,
  type Program,
  RAW_ORIGIN,
  type Site,
} from './peer.ts'

/** With the public ports that it opens, by origin. */
type Build = (ports: Ports, open: Ports, site: Site) => Omit<Plan, 'endpoints'>

function tcp(name: string, program: string, versionFlag: string, how: string, build: Build): Peer {
  return {
    name,
    role: 'peer',
    carries: 'tcp',
    how,
    detect: () => detectBinary(program, versionFlag),
    plan(ports, site) {
      const open = eachPort(ports, () => freePort())
      const endpoints = eachPort(ports, name => endpoint(open[name]!, undefined, { host: site.host }))
      return { ...build(ports, open, site), endpoints }
    },
  }
}

const KINDS = ['tcp', 'udp'] as const
type Kinds = readonly (typeof KINDS)[number][]

function rathole(
  name: string,
  how: string,
  transport: 'stock' | 'nodelay' | 'tls',
  kinds: Kinds = ['tcp'],
): Peer {
  return tcp(name, 'rathole', '--version', how, (ports, open, site) => {
    const control = freePort()
    const dial = site.dial(control)
    const nodelay = transport === 'stock' ? '' : 'nodelay = true\n'
    const text = (end: 'server' | 'client', head: string, line: (origin: string) => string): string => {
      const layers = {
        stock: '',
        nodelay: `[${end}.transport]\ntype = "tcp"\n[${end}.transport.tcp]\nnodelay = true\n`,
        tls: tls(end),
      }
      const services = Object.keys(ports).flatMap(origin =>
        kinds.map(
          kind =>
            `[${end}.services.${origin}-${kind}]\ntype = "${kind}"\n${kind === 'tcp' ? nodelay : ''}${line(origin)}\n`,
        ),
      )
      return `[${end}]\ndefault_token = "bench"\n${head}\n${layers[transport]}${services.join('')}`
    }
    const tls = (end: string): string => {
      const { certFile } = certificate()
      const own =
        end === 'server'
          ? `pkcs12 = "${pkcs12(site)}"\npkcs12_password = "bench"\n`
          : `trusted_root = "${certFile}"\nhostname = "localhost"\n`
      return `[${end}.transport]\ntype = "tls"\n[${end}.transport.tls]\n${own}`
    }
    const server = site.file(
      'server.toml',
      text(
        'server',
        `bind_addr = "${site.host}:${control}"`,
        origin => `bind_addr = "${site.host}:${open[origin]}"`,
      ),
    )
    const client = site.file(
      'client.toml',
      text(
        'client',
        `remote_addr = "${dial.host}:${dial.port}"`,
        origin => `local_addr = "127.0.0.1:${ports[origin]}"`,
      ),
    )
    return {
      server: [{ command: command('rathole', '--server', server) }],
      client: [{ command: command('rathole', '--client', client) }],
      listens: [control],
    }
  })
}

function pkcs12(site: Site): string {
  const { certFile, keyFile } = certificate()
  const file = site.file('identity.p12', '')
  const flags = `pkcs12 -export -passout pass:bench -in ${certFile} -inkey ${keyFile} -out ${file}`
  if (!Bun.spawnSync(['openssl', ...flags.split(' ')]).success)
    throw new Error('openssl made no PKCS 12 file')
  return file
}

interface FrpWay {
  readonly mux: boolean
  readonly tls?: boolean
  readonly kinds?: Kinds
}

function frp(name: string, how: string, { mux, tls = false, kinds = ['tcp'] }: FrpWay): Peer {
  return tcp(name, 'frps', '--version', how, (ports, open, site) => {
    const proxies = Object.entries(ports).flatMap(([origin, port]) =>
      kinds.map(
        kind =>
          `[[proxies]]\nname = "${origin}-${kind}"\ntype = "${kind}"\nlocalIP = "127.0.0.1"\nlocalPort = ${port}\nremotePort = ${open[origin]}\n`,
      ),
    )
    return frpPrograms(site, mux, tls, '', proxies.join(''))
  })
}

/** Both programs with their files; `frp-http` in http.ts is the same with other lines. */
export function frpPrograms(
  site: Site,
  mux: boolean,
  tls: boolean,
  server: string,
  proxies: string,
): Omit<Plan, 'endpoints'> {
  const control = freePort()
  const dial = site.dial(control)
  const both = `transport.tcpMux = ${mux}\nlog.level = "error"\n`
  const head = `serverAddr = "${dial.host}"\nserverPort = ${dial.port}\ntransport.tls.enable = ${tls}\n`
  const pool = mux ? '' : 'transport.poolCount = 5\n'
  const serverFile = site.file(
    'server.toml',
    `bindAddr = "${site.host}"\nbindPort = ${control}\nproxyBindAddr = "${site.host}"\n${server}${both}`,
  )
  const clientFile = site.file('client.toml', `${head}loginFailExit = false\n${both}${pool}${proxies}`)
  return {
    server: [{ command: command('frps', '-c', serverFile) }],
    client: [{ command: command('frpc', '-c', clientFile) }],
    listens: [control],
  }
}

function chiselOf(kinds: Kinds): Peer {
  return tcp(
    'chisel',
    'chisel',
    '--version',
    'as shipped: TCP over SSH over WebSocket, encryption always on',
    (ports, open, site) => {
      const control = freePort()
      const dial = site.dial(control)
      const remotes = Object.entries(ports).flatMap(([origin, port]) =>
        kinds.map(kind => `R:${site.host}:${open[origin]}:127.0.0.1:${port}${kind === 'udp' ? '/udp' : ''}`),
      )
      return {
        server: [{ command: command('chisel', `server --host ${site.host} --port ${control} --reverse`) }],
        client: [{ command: command('chisel', `client http://${dial.host}:${dial.port}`, ...remotes) }],
        listens: [control],
      }
    },
  )
}

/** Its control port cannot be changed. */
const BORE_PORT = 7835

export const ratholeBest: Peer = rathole(
  'rathole',
  'best: nodelay for the transport and each service, no TLS',
  'nodelay',
)
export const ratholeStock: Peer = rathole(
  'rathole-stock',
  'as shipped: the shortest configuration of its README',
  'stock',
)
export const ratholeTls: Peer = rathole('rathole-tls', 'transport tls', 'tls')
export const bore: Peer = tcp(
  'bore',
  'bore',
  '--version',
  'as shipped; there is nothing to tune',
  (ports, open, site) => ({
    server: [{ command: command('bore', `server --bind-addr ${site.host} --bind-tunnels ${site.host}`) }],
    client: Object.entries(ports).map(([origin, port]) => ({
      command: command(
        'bore',
        `local ${port} --local-host 127.0.0.1 --to ${site.dial(BORE_PORT).host} --port ${open[origin]}`,
      ),
    })),
    listens: [BORE_PORT],
  }),
)
export const frpBest: Peer = frp('frp-nomux', 'best for bulk: tcpMux off, poolCount 5, no TLS', {
  mux: false,
})
export const frpMux: Peer = frp('frp-mux', 'tcpMux on, no TLS', { mux: true })
export const frpStock: Peer = frp('frp-stock', 'as shipped: tcpMux on, TLS between its ends', {
  mux: true,
  tls: true,
})
export const chisel: Peer = chiselOf(['tcp'])
export const wstunnel: Peer = tcp(
  'wstunnel',
  'wstunnel',
  '--version',
  'as shipped: a WebSocket for each connection, no TLS',
  (ports, open, site) => {
    const control = freePort()
    const dial = site.dial(control)
    const remotes = Object.entries(ports).flatMap(([origin, port]) => [
      '-R',
      `tcp://${site.host}:${open[origin]}:127.0.0.1:${port}`,
    ])
    const client = command('wstunnel', '--log-lvl ERROR client', ...remotes, `ws://${dial.host}:${dial.port}`)
    return {
      server: [{ command: command('wstunnel', `--log-lvl ERROR server ws://${site.host}:${control}`) }],
      client: [{ command: client }],
      listens: [control],
    }
  },
)
export const pikoTcp: Peer = tcp(
  'piko',
  'piko',
  '--version',
  "`piko agent tcp`, and `piko forward tcp` on the visitors' side",
  (ports, open, site) => {
    const { server, listens, flags, dial } = pikoServer(site)
    const forward = Object.keys(ports).map(name => ({
      command: command(
        'piko',
        `forward tcp ${site.host}:${open[name]} ${name} --connect.url http://${site.host}:${listens[0]} --log.level error`,
      ),
    }))
    return {
      server: [server, ...forward],
      client: Object.entries(ports).map(([name, port]) => ({
        command: command(
          'piko',
          `agent tcp ${name} 127.0.0.1:${port} ${flags} --connect.url http://${dial.host}:${dial.port}`,
        ),
      })),
      listens: [...listens, ...Object.values(open)],
    }
  },
)
export const ferrotunnelTcp: Peer = tcp(
  'ferrotunnel',
  'ferrotunnel',
  '--version',
  'its --tcp-bind; caps raised where `install.ts` could',
  (ports, open, site) => {
    const [name = RAW_ORIGIN] = Object.keys(ports)
    const { server, client, listens } = ferrotunnelPrograms(site, open[name]!, freePort(), ports, false)
    return { server, client, listens }
  },
)

/** UDP, and TCP on the same port, because iperf3 talks over both. */
export const withDatagrams: readonly Peer[] = [
  rathole('rathole', 'udp service', 'nodelay', KINDS),
  frp('frp-mux', 'udp proxy, no TLS', { mux: true, kinds: KINDS }),
  chiselOf(KINDS),
]

interface PikoServer {
  readonly server: Program
  /** Where visitors and agents connect. */
  readonly listens: readonly [number, number]
  readonly flags: string
  readonly dial: { readonly host: string; readonly port: number }
}

export function pikoServer(site: Site): PikoServer {
  const [proxy, upstream, admin, gossip] = [freePort(), freePort(), freePort(), freePort()]
  const binds = `--proxy.bind-addr ${site.host}:${proxy} --upstream.bind-addr ${site.host}:${upstream} --admin.bind-addr ${site.host}:${admin} --cluster.gossip.bind-addr ${site.host}:${gossip}`
  return {
    server: {
      command: command('piko', `server --usage.disable --proxy.access-log=false --log.level error ${binds}`),
    },
    listens: [proxy, upstream],
    flags: '--access-log=false --log.level error --server.enabled=false',
    dial: site.dial(upstream),
  }
}

const FERRO_TOKEN = 'bench'.padEnd(32, '0')

/** The stock program stops at 100 streams and 10 MB a second; `install.ts` builds another one with these caps raised. */
export function ferrotunnelPrograms(
  site: Site,
  raw: number,
  http: number,
  ports: Ports,
  stock: boolean,
): Omit<Plan, 'endpoints'> & { readonly headers: Readonly<Record<string, string>> } {
  const control = freePort()
  const dial = site.dial(control)
  const program = stock ? 'ferrotunnel' : ferrotunnelProgram()
  const binds = `--bind ${site.host}:${control} --http-bind ${site.host}:${http} --tcp-bind ${site.host}:${raw}`
  return {
    server: [{ command: command(program, `server ${binds} --token-file`, site.file('token', FERRO_TOKEN)) }],
    client: Object.entries(ports).map(([name, port]) => ({
      command: command(
        program,
        `client --server ${dial.host}:${dial.port} --token ${FERRO_TOKEN} --no-dashboard --local-addr 127.0.0.1:${port} --tunnel-id ${name}.test`,
      ),
    })),
    listens: [control, http],
    headers: { 'x-tunnel-token': FERRO_TOKEN },
  }
}

export function ferrotunnelProgram(): string {
  return binary('ferrotunnel-uncapped') ? 'ferrotunnel-uncapped' : 'ferrotunnel'
}
