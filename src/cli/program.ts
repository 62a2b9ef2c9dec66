// The command line: every flag with its environment twin, and what each command makes of them.

import { readFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { Command, Option } from 'commander'
import type { ServerConfigOptions } from '../config/server-config.ts'
import { TunnelError } from '../errors.ts'
import { isValidSubdomain, parseHost } from '../names.ts'
import { VERSION } from '../version.ts'
import type { CheckSettings } from './commands/config.ts'
import type { DoctorSettings } from './commands/doctor.ts'
import type { LoginSettings } from './commands/login.ts'
import type { RawSettings } from './commands/raw.ts'
import type { ServeSettings } from './commands/server.ts'
import type { ShareSettings } from './commands/share.ts'
import type { UpSettings } from './commands/up.ts'
import { destinationOf } from './destination.ts'
import { DOCUMENTATION } from './documentation.ts'
import { Flags } from './flags.ts'
import { Logins } from './logins.ts'
import type { OutputWish } from './output.ts'
import { parseRoutes, parseService, parseTarget, type Service, type Target } from './target.ts'
import { isBareWord, unknownWord } from './words.ts'

/** What a command line can ask for. */
export interface Actions {
  share(settings: ShareSettings, output: OutputWish): Promise<void>
  shareRaw(settings: RawSettings, output: OutputWish): Promise<void>
  up(settings: UpSettings, output: OutputWish): Promise<void>
  serve(settings: ServeSettings, output: OutputWish): Promise<void>
  doctor(settings: DoctorSettings): Promise<void>
  checkConfig(settings: CheckSettings): Promise<void>
  printSchema(): Promise<void>
  login(settings: LoginSettings): Promise<void>
  logout(server: string | undefined): Promise<void>
  whoami(): Promise<void>
}

export function createProgram(actions: Actions): Command {
  const program = new Command('localtunnels')
    .description(
      'Gives a local app a public URL. Without --server or a login: a URL that works on this machine.',
    )
    .version(VERSION, '-V, --version', 'print the version')
    .helpOption('-h, --help', 'print this help')
    .helpCommand('help [command]', 'print the help of a command')
    // Flags behind `server` belong to it, though the names are the same.
    .enablePositionalOptions()
    .argument('[port]', 'where the app is: 3000, host:3000, https://localhost:3000 or unix:/path')
    .addHelpText('after', HELP_END)
  for (const option of [...appOptions(), ...shareOptions()]) program.addOption(option)
  program.action((positional: string | undefined) => {
    const flags = new Flags(program)
    return actions.share(shareSettings(flags, positional), outputWish(flags))
  })

  for (const raw of RAW_COMMANDS) addRawCommand(program, raw, actions)

  const server = program
    .command('server')
    .description('run a tunnel server')
    .helpOption('-h, --help', 'print this help')
  for (const option of serverOptions()) server.addOption(option)
  server.action(async () => {
    const flags = new Flags(server)
    const settings = { file: flags.text('config'), flags: await serverSettings(flags) }
    return actions.serve(settings, outputWish(flags))
  })

  const doctor = program
    .command('doctor')
    .description('check everything a tunnel needs, and say what to do about the rest')
    .helpOption('-h, --help', 'print this help')
    .argument('[port]', 'where the app is, as above')
  for (const option of appOptions()) doctor.addOption(option)
  doctor.action((positional: string | undefined) => {
    const flags = new Flags(doctor)
    const isAppGiven = [positional, flags.text('port'), flags.text('serve')].some(one => one !== undefined)
    const target = targetOf(flags, positional)
    return actions.doctor({ ...connection(flags), target: isAppGiven ? target : undefined })
  })

  const up = program
    .command('up')
    .description('share everything that a configuration file names, and follow its changes')
    .helpOption('-h, --help', 'print this help')
    .addOption(
      new Option(
        '--config <file>',
        'the file (default: localtunnels.toml, .yaml, .yml, .json or .ts in this folder)',
      ).env('TUNNEL_CONFIG'),
    )
    .addOption(localOption())
    .addOption(jsonOption())
    .addOption(logRateOption())
  up.action(() => {
    const flags = new Flags(up)
    return actions.up({ file: flags.text('config'), isLocal: flags.isOn('local') }, outputWish(flags))
  })

  addLoginCommands(program, actions)

  const config = program
    .command('config')
    .description('check a configuration file, or print the schema that editors use for it')
    .helpOption('-h, --help', 'print this help')
    .helpCommand(false)
  config
    .command('check')
    .description('say what a configuration file means, or every fault in it')
    .helpOption('-h, --help', 'print this help')
    .argument('[file]', 'the file (default: localtunnels.toml, .yaml, .yml, .json or .ts in this folder)')
    .option('--server', "it is a server's file (default: what its keys say)")
    .action((file: string | undefined, { server: isServer = false }: { readonly server?: boolean }) =>
      actions.checkConfig({ file, kind: isServer ? 'server' : undefined }),
    )
  config
    .command('schema')
    .description('print the JSON Schema of configuration files')
    .helpOption('-h, --help', 'print this help')
    .action(() => actions.printSchema())
  return program
}

function addLoginCommands(program: Command, actions: Actions): void {
  const login = program
    .command('login')
    .description('keep the token of a server, and make it the default server')
    .helpOption('-h, --help', 'print this help')
    .argument('<server>', 'the server, such as tunnel.example')
    .option(
      '--token-stdin',
      'read the token from standard input (default: ask for it, unless that is a pipe)',
    )
    .option('--default', 'only make it the default: it is logged in to')
  const options = connectionOptions('accept any certificate of the server')
  for (const option of options)
    if (['proxy', 'ca', 'insecure', 'insecureToken'].includes(option.attributeName())) login.addOption(option)
  login.action((server: string) => {
    const flags = new Flags(login)
    return actions.login({
      server,
      isPiped: flags.isOn('tokenStdin'),
      isPreferred: flags.isOn('default'),
      client: way(flags),
    })
  })
  program
    .command('logout')
    .description('forget the token of a server')
    .helpOption('-h, --help', 'print this help')
    .argument('[server]', 'the server (default: the default one)')
    .action((server: string | undefined) => actions.logout(server))
  program
    .command('whoami')
    .description('list the servers that are logged in to')
    .helpOption('-h, --help', 'print this help')
    .action(() => actions.whoami())
}

const HELP_END = `
Examples:
  localtunnels 3000                                  a URL for http://localhost:3000 on this machine
  localtunnels 3000 --server tunnel.example          a public URL, through your own server
  localtunnels login tunnel.example                  asks for its token, and makes it the default server
  localtunnels --serve ./dist                        a URL for the files in a folder
  localtunnels tcp 22 --server tunnel.example        a public port for a service that is not HTTP
  localtunnels tls 8443 --server tunnel.example      a public name for a service with a certificate of its own
  localtunnels server --domain tunnel.example --token SECRET   that server
  localtunnels up                                    all that localtunnels.toml names, over one connection
  localtunnels config check                          what localtunnels.toml means, or what is wrong with it

A variable that is empty counts as not set; 0, no and false switch a flag off.
NO_COLOR=1 prints without colours, LOCALTUNNELS_DEBUG=1 prints stack traces.

Documentation: ${DOCUMENTATION}`

/** What both sharing and checking need: where the app is, where the server is. */
function appOptions(): Option[] {
  return [
    new Option('-p, --port <port>', 'port of the app (default: 3000)').env('TUNNEL_PORT'),
    new Option('--host <host>', 'host of the app (default: localhost)').env('TUNNEL_HOST'),
    new Option('--serve <folder>', 'a folder of files instead of an app that listens').env('TUNNEL_SERVE'),
    ...connectionOptions('accept any certificate, of the app and of the server'),
  ]
}

function connectionOptions(insecure: string): Option[] {
  return [
    new Option('--server <address>', 'tunnel server: ws://, wss://, http(s):// or host[:port]').env(
      'TUNNEL_SERVER',
    ),
    new Option('--token <token>', 'shared secret of the server (default: of "localtunnels login")').env(
      'TUNNEL_TOKEN',
    ),
    localOption(),
    new Option(
      '--proxy <url>',
      'proxy to the server: http://, https://, socks5:// or socks5h://, empty for none (default: HTTPS_PROXY and its like)',
    ).env('TUNNEL_PROXY'),
    new Option(
      '--ca <file>',
      "PEM of an authority to trust for the server's certificate (default: the usual ones)",
    ).env('TUNNEL_CA'),
    new Option('--insecure', insecure).env('TUNNEL_INSECURE'),
    new Option('--insecure-token', 'let the token go to another machine without TLS').env(
      'TUNNEL_INSECURE_TOKEN',
    ),
  ]
}

function outputWish(flags: Flags): OutputWish {
  return { isJson: flags.isOn('json'), logRate: wholeNumber(flags, 'logRate') }
}

const LOG_RATE_OPTION =
  'lines a second, 0 for all; the rest is counted (default: 30 on a terminal, 1000 in a pipe, all with --json)'

const logRateOption = () => new Option('--log-rate <lines>', LOG_RATE_OPTION).env('TUNNEL_LOG_RATE')

const localOption = () =>
  new Option('--local', 'a server in this process, whatever server is logged in to').env('TUNNEL_LOCAL')
const jsonOption = () => new Option('--json', 'print one JSON event a line').env('TUNNEL_JSON')

function shareOptions(): Option[] {
  return [
    new Option('--spa', 'with --serve: /index.html for pages that are not there').env('TUNNEL_SPA'),
    subdomainOption('APP_NAME, else a friendly one'),
    new Option('--exact', 'take no other name when that one is taken').env('TUNNEL_EXACT'),
    new Option('--wire <wire>', 'auto, streams or json (default: auto)').env('TUNNEL_WIRE'),
    new Option(
      '--host-header <host>',
      'Host the app sees: preserve, rewrite, or a host (default: preserve)',
    ).env('TUNNEL_HOST_HEADER'),
    repeatable('--route <path=app>', 'path with an app of its own, such as /api=8080; repeatable').env(
      'TUNNEL_ROUTE',
    ),
    wildcardOption(),
    repeatable(
      '--wildcard-host <labels>',
      'with --wildcard: a host that may have a certificate, such as anna; repeatable',
    ).env('TUNNEL_WILDCARD_HOST'),
    new Option('--pool [affinity]', 'share the name with other clients: none, cookie or address').env(
      'TUNNEL_POOL',
    ),
    new Option('--qr', 'show the URL as a QR code').env('TUNNEL_QR'),
    new Option('--open', 'open the URL in the browser').env('TUNNEL_OPEN'),
    new Option('--copy', 'copy the URL to the clipboard').env('TUNNEL_COPY'),
    jsonOption(),
    logRateOption(),
  ]
}

// ── Raw tunnels ────────────────────────────────────────────────────────────────────────────────────────────────

/** A command that shares a service which does not speak HTTP. */
interface RawCommand {
  readonly name: string
  readonly description: string
  /** What to say of its argument. */
  readonly argument: string
  /** Its own options, besides those of the connection. */
  options(): Option[]
  settings(flags: Flags, service: Service): Pick<RawSettings, 'open' | 'embedded' | 'isWatched'>
}

const RAW_COMMANDS: readonly RawCommand[] = [
  {
    name: 'tcp',
    description: 'give a TCP service a public port',
    argument: 'where the service is: 5432, host:5432 or unix:/path',
    options: () => [
      remotePortOption(),
      new Option(
        '--tls',
        'the service speaks TLS: a public name instead of a port, as `localtunnels tls`',
      ).env('TUNNEL_TCP_TLS'),
      subdomainOption('a friendly one; with --tls'),
      wildcardOption(),
      proxyProtocolOption(),
    ],
    settings(flags, service) {
      if (flags.isOn('tls')) {
        if (flags.text('remotePort') !== undefined)
          throw new TunnelError(
            'OPTION_INVALID',
            '--tls gives a name on the port of all TLS tunnels: no --remote-port.',
          )
        return tlsSettings(flags, service)
      }
      for (const name of ['subdomain', 'wildcard'])
        if (flags.isTyped(name))
          throw new TunnelError(
            'OPTION_INVALID',
            `${flags.label(name)} is for --tls: a TCP tunnel has a port, no name.`,
          )
      const { options } = service
      const remotePort = flags.port('remotePort', 1)
      const version = proxyProtocol(flags)
      const wish = {
        ...options,
        ...(remotePort !== undefined && { remotePort }),
        ...(version !== undefined && { proxyProtocol: version }),
      }
      return {
        open: client => client.tcp(wish),
        // On this machine any port will do.
        embedded: remotePort === undefined ? {} : { tcpPorts: `${remotePort}` },
        isWatched: true,
      }
    },
  },
  {
    name: 'udp',
    description: 'give a UDP service a public port',
    argument: 'where the service is: 53 or host:53',
    options: () => [remotePortOption(), idleTimeoutOption()],
    settings(flags, { options }) {
      if ('unix' in options) throw new TunnelError('OPTION_INVALID', 'UDP needs a port, not a unix socket.')
      const remotePort = flags.port('remotePort', 1)
      const idleTimeoutMs = seconds(flags, 'idleTimeout', 0.001)
      const wish = {
        ...options,
        ...(remotePort !== undefined && { remotePort }),
        ...(idleTimeoutMs !== undefined && { idleTimeoutMs }),
      }
      return {
        open: client => client.udp(wish),
        embedded: remotePort === undefined ? {} : { udpPorts: `${remotePort}` },
        // Whether anything listens on UDP nobody can see from outside: the first datagram tells.
        isWatched: false,
      }
    },
  },
  {
    name: 'tls',
    description: 'give a service that speaks TLS a public name',
    argument: 'where the service is: 8443, host:8443 or unix:/path',
    options: () => [subdomainOption('a friendly one'), wildcardOption(), proxyProtocolOption()],
    settings: tlsSettings,
  },
]

function tlsSettings(flags: Flags, { options }: Service): ReturnType<RawCommand['settings']> {
  const subdomain = subdomainOf(flags)
  const version = proxyProtocol(flags)
  const wish = {
    ...options,
    ...(subdomain !== undefined && { subdomain }),
    ...(flags.isOn('wildcard') && { wildcard: true }),
    ...(version !== undefined && { proxyProtocol: version }),
  }
  return { open: client => client.tls(wish), embedded: { tlsPort: 0 }, isWatched: true }
}

function addRawCommand(program: Command, raw: RawCommand, actions: Actions): void {
  const command = program
    .command(raw.name)
    .description(raw.description)
    .helpOption('-h, --help', 'print this help')
    .argument('<port>', raw.argument)
  const options = [...connectionOptions('accept any certificate of the server'), ...raw.options()]
  for (const option of [...options, jsonOption(), logRateOption()]) command.addOption(option)
  command.action((positional: string) => {
    const flags = new Flags(command)
    const target = parseService(positional)
    const settings = { target, ...connection(flags), ...raw.settings(flags, target) }
    return actions.shareRaw(settings, outputWish(flags))
  })
}

function remotePortOption(): Option {
  return new Option('--remote-port <port>', 'public port to ask for (default: any free one)').env(
    'TUNNEL_REMOTE_PORT',
  )
}

function subdomainOption(standard: string): Option {
  return new Option('--subdomain <name>', `name to ask for (default: ${standard})`).env('TUNNEL_SUBDOMAIN')
}

function wildcardOption(): Option {
  return new Option('--wildcard', 'take the hosts below the name too').env('TUNNEL_WILDCARD')
}

function idleTimeoutOption(): Option {
  return new Option('--idle-timeout <seconds>', 'how long a silent visitor is remembered (default: 60)').env(
    'TUNNEL_IDLE_TIMEOUT',
  )
}

function proxyProtocolOption(): Option {
  return new Option(
    '--proxy-protocol <version>',
    'v1 or v2: tell the service who connects (default: not)',
  ).env('TUNNEL_PROXY_PROTOCOL')
}

function proxyProtocol(flags: Flags): 'v1' | 'v2' | undefined {
  const version = flags.text('proxyProtocol')
  if (version === undefined || version === 'v1' || version === 'v2') return version
  throw new TunnelError(
    'OPTION_INVALID',
    `${flags.label('proxyProtocol')} "${version}" is neither v1 nor v2.`,
  )
}

function serverOptions(): Option[] {
  return [
    new Option('--config <file>', 'configuration file; flags win over it').env('TUNNEL_SERVER_CONFIG'),
    new Option('--host <address>', 'address to listen on (default: 0.0.0.0)').env('TUNNEL_SERVER_HOST'),
    new Option('-p, --port <port>', 'port to listen on, 0 for any free one (default: 8080)').env(
      'TUNNEL_SERVER_PORT',
    ),
    repeatable('--domain <domain>', 'tunnels get names under it; repeatable (default: localhost)').env(
      'TUNNEL_SERVER_DOMAIN',
    ),
    new Option('--tls-cert <file>', 'certificate chain, PEM').env('TUNNEL_SERVER_TLS_CERT'),
    new Option('--tls-key <file>', 'private key, PEM').env('TUNNEL_SERVER_TLS_KEY'),
    new Option('--tls-min-version <version>', 'oldest version of TLS: 1.2 or 1.3 (default: 1.2)').env(
      'TUNNEL_SERVER_TLS_MIN_VERSION',
    ),
    new Option('--tls-ciphers <list>', 'ciphers of TLS 1.2 (default: forward secret and authenticated)').env(
      'TUNNEL_SERVER_TLS_CIPHERS',
    ),
    new Option('--hsts <seconds>', 'tell browsers to come by https only, for so long (default: not)').env(
      'TUNNEL_SERVER_HSTS',
    ),
    repeatable('--token <token>', 'secret that clients must have; repeatable').env('TUNNEL_SERVER_TOKEN'),
    new Option(
      '--open',
      "without a token, listen on other addresses than this machine's own: everybody may have a tunnel",
    ).env('TUNNEL_SERVER_OPEN'),
    new Option('--tcp-ports <ports>', 'public ports for TCP tunnels (default: 20000-29999)').env(
      'TUNNEL_SERVER_TCP_PORTS',
    ),
    new Option('--udp-ports <ports>', 'public ports for UDP tunnels (default: 20000-29999)').env(
      'TUNNEL_SERVER_UDP_PORTS',
    ),
    new Option('--tls-port <port>', 'port for TLS tunnels, told apart by name (default: none)').env(
      'TUNNEL_SERVER_TLS_PORT',
    ),
    new Option('--origin-timeout <seconds>', 'longest wait for an answer, 0 for ever (default: 60)').env(
      'TUNNEL_SERVER_ORIGIN_TIMEOUT',
    ),
    new Option('--public-url <url>', 'where visitors reach it, if behind a proxy').env(
      'TUNNEL_SERVER_PUBLIC_URL',
    ),
    repeatable(
      '--trusted-proxy <address>',
      'proxy (address or CIDR) whose X-Forwarded-* hold; repeatable',
    ).env('TUNNEL_SERVER_TRUSTED_PROXY'),
    new Option('--proxy-protocol', 'connections of trusted proxies begin with a PROXY header').env(
      'TUNNEL_SERVER_PROXY_PROTOCOL',
    ),
    new Option('--json', 'print one JSON event a line').env('TUNNEL_SERVER_JSON'),
    new Option('--log-rate <lines>', LOG_RATE_OPTION).env('TUNNEL_SERVER_LOG_RATE'),
  ]
}

function repeatable(flags: string, description: string): Option {
  return new Option(flags, description).argParser((value: string, earlier: readonly string[] | undefined) => [
    ...(earlier ?? []),
    value,
  ])
}

/** What was typed wins over variables; two of either contradict each other. */
function targetOf(flags: Flags, positional: string | undefined): Target {
  const named = ['port', 'serve'].filter(name => flags.text(name) !== undefined)
  const typed = named.filter(name => flags.isTyped(name))
  const counted = positional !== undefined || typed.length > 0 ? typed : named
  const ways = counted.map(name => `${flags.label(name)} ${flags.text(name)}`)
  if (positional !== undefined) ways.unshift(positional)
  if (positional !== undefined && isBareWord(positional)) throw unknownWord(positional)
  if (ways.length > 1)
    throw new TunnelError('OPTION_INVALID', `The app is given twice: ${ways.join(' and ')}.`)
  const isFolder = counted.includes('serve')
  if (!isFolder && flags.isTyped('spa'))
    throw new TunnelError('OPTION_INVALID', '--spa belongs to --serve, which is not given.')
  return parseTarget({
    positional,
    port: flags.port('port', 1),
    host: flags.text('host'),
    isInsecure: flags.isOn('insecure'),
    folder: isFolder ? flags.text('serve') : undefined,
    isSpa: flags.isOn('spa'),
  })
}

function connection(flags: Flags): Pick<ShareSettings, 'destination' | 'client'> {
  const given = { server: flags.given('server'), token: flags.given('token'), isLocal: isLocal(flags) }
  return {
    destination: destinationOf(given, () => new Logins(process.env), process.env.TUNNEL_SERVER),
    client: way(flags),
  }
}

/** How the server is reached. */
function way(flags: Flags): LoginSettings['client'] {
  const proxy = flags.text('proxy')
  const ca = flags.text('ca')
  return {
    ...(ca !== undefined && { ca: readAuthority(ca, flags.label('ca')) }),
    ...(proxy !== undefined && { proxy }),
    ...(flags.isOn('insecure') && { verifyServer: false }),
    ...(flags.isOn('insecureToken') && { insecureToken: true }),
  }
}

/** Typed wins over variables, as everywhere. */
function isLocal(flags: Flags): boolean {
  if (!flags.isOn('local')) return false
  const server = flags.given('server')
  if (server === undefined) return true
  if (flags.isTyped('local') === server.isTyped)
    throw new TunnelError(
      'OPTION_INVALID',
      `${flags.label('local')} and ${flags.label('server')} exclude each other.`,
    )
  return flags.isTyped('local')
}

const AFFINITIES = ['none', 'cookie', 'address'] as const

function poolAffinity(flags: Flags): (typeof AFFINITIES)[number] | undefined {
  if (flags.isOn('pool')) return 'none'
  const text = flags.text('pool')
  if (text === undefined) return undefined
  const affinity = AFFINITIES.find(one => one === text)
  if (affinity !== undefined) return affinity
  const label = flags.label('pool')
  throw new TunnelError('OPTION_INVALID', `${label} "${text}" is none of none, cookie and address.`)
}

const WIRES = ['auto', 'streams', 'json'] as const

function shareSettings(flags: Flags, positional: string | undefined): ShareSettings {
  const { destination, client } = connection(flags)
  const subdomain = subdomainOf(flags)
  const wireText = flags.text('wire') ?? 'auto'
  const wire = WIRES.find(one => one === wireText)
  if (wire === undefined) {
    throw new TunnelError(
      'OPTION_INVALID',
      `${flags.label('wire')} "${wireText}" is none of auto, streams and json.`,
    )
  }
  const hostHeader = flags.text('hostHeader')
  if (hostHeader !== undefined) parseHost(hostHeader)
  const pool = poolAffinity(flags)
  if (flags.isOn('exact') && subdomain === undefined)
    throw new TunnelError('OPTION_INVALID', `${flags.label('exact')} needs a name: --subdomain <name>.`)
  const wildcardHosts = flags.list('wildcardHost')
  const routes = parseRoutes(flags.list('route'), flags.isOn('insecure'))
  return {
    target: targetOf(flags, positional),
    destination,
    client: {
      ...client,
      wire,
      ...(subdomain !== undefined && { subdomain }),
      ...(flags.isOn('exact') && { exact: true }),
      ...(hostHeader && { hostHeader }),
      ...(routes && { routes }),
      ...(flags.isOn('wildcard') && { wildcard: true }),
      ...(wildcardHosts.length > 0 && { wildcardHosts }),
      ...(pool !== undefined && { pool: { affinity: pool } }),
    },
    isQrWanted: flags.isOn('qr'),
    isOpenWanted: flags.isOn('open'),
    isCopyWanted: flags.isOn('copy'),
  }
}

function subdomainOf(flags: Flags): string | undefined {
  const subdomain = flags.text('subdomain')?.toLowerCase()
  if (subdomain === undefined || isValidSubdomain(subdomain)) return subdomain
  throw new TunnelError(
    'NAME_INVALID',
    `${flags.label('subdomain')} "${subdomain}" is not a valid subdomain.`,
  )
}

async function serverSettings(flags: Flags): Promise<ServerConfigOptions> {
  const host = flags.text('host')
  const port = flags.port('port', 0)
  const domains = flags.list('domain')
  const tokens = flags.list('token')
  const trustedProxies = flags.list('trustedProxy')
  const publicUrl = flags.text('publicUrl')
  const tcpPorts = flags.text('tcpPorts')
  const udpPorts = flags.text('udpPorts')
  const originTimeoutMs = seconds(flags, 'originTimeout')
  const tls = await tlsFiles(flags)
  const tlsMinVersion = tlsVersion(flags)
  const tlsCiphers = flags.text('tlsCiphers')
  const hsts = wholeNumber(flags, 'hsts')
  const tlsPort = flags.port('tlsPort', 0)
  return {
    ...(host !== undefined && { host }),
    ...(port !== undefined && { port }),
    ...(domains.length > 0 && { domains }),
    ...(tokens.length > 0 && { tokens }),
    ...(flags.isOn('open') && { open: true }),
    ...(tcpPorts !== undefined && { tcpPorts: tcpPorts === 'none' ? '' : tcpPorts }),
    ...(udpPorts !== undefined && { udpPorts: udpPorts === 'none' ? '' : udpPorts }),
    ...(trustedProxies.length > 0 && { trustedProxies }),
    ...(flags.isOn('proxyProtocol') && { acceptProxyProtocol: true }),
    ...(publicUrl !== undefined && { publicUrl }),
    ...(originTimeoutMs !== undefined && { limits: { originTimeoutMs } }),
    ...(tls && { tls }),
    ...(tlsMinVersion !== undefined && { tlsMinVersion }),
    ...(tlsCiphers !== undefined && { tlsCiphers }),
    ...(hsts !== undefined && { hsts }),
    ...(tlsPort !== undefined && { tlsPort }),
  }
}

function wholeNumber(flags: Flags, name: string): number | undefined {
  const text = flags.text(name)
  if (text === undefined) return undefined
  if (/^\d{1,10}$/.test(text)) return Number(text)
  throw new TunnelError('OPTION_INVALID', `${flags.label(name)} "${text}" is not a whole number, such as 60.`)
}

/** As milliseconds. */
function seconds(flags: Flags, name: string, least = 0): number | undefined {
  const text = flags.text(name)
  if (text === undefined) return undefined
  if (/^\d{1,6}(?:\.\d+)?$/.test(text) && Number(text) >= least) return Math.round(Number(text) * 1_000)
  const above = least === 0 ? '' : ' above 0'
  throw new TunnelError(
    'OPTION_INVALID',
    `${flags.label(name)} "${text}" is not a number of seconds${above}, such as 60.`,
  )
}

function tlsVersion(flags: Flags): '1.2' | '1.3' | undefined {
  const version = flags.text('tlsMinVersion')
  if (version === undefined || version === '1.2' || version === '1.3') return version
  throw new TunnelError(
    'OPTION_INVALID',
    `${flags.label('tlsMinVersion')} "${version}" is neither 1.2 nor 1.3.`,
  )
}

async function tlsFiles(flags: Flags): Promise<{ readonly cert: string; readonly key: string } | undefined> {
  const cert = flags.text('tlsCert')
  const key = flags.text('tlsKey')
  if (cert === undefined && key === undefined) return undefined
  if (cert === undefined || key === undefined) {
    throw new TunnelError('TLS_INVALID', '--tls-cert and --tls-key belong together; one of them is missing.')
  }
  return { cert: await readPem(cert), key: await readPem(key) }
}

function readAuthority(path: string, label: string): string {
  let pem: string
  try {
    pem = readFileSync(path, 'utf8')
  } catch (cause) {
    throw new TunnelError('OPTION_INVALID', `${label}: ${path} cannot be read.`, { cause })
  }
  if (pem.includes('-----BEGIN CERTIFICATE-----')) return pem
  throw new TunnelError('OPTION_INVALID', `${label}: ${path} holds no certificate in PEM format.`)
}

async function readPem(path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8')
  } catch (cause) {
    throw new TunnelError('TLS_INVALID', `${path} cannot be read.`, { cause })
  }
}
