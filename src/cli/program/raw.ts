// `localtunnels tcp`, `udp` and `tls`: services that do not speak HTTP.

import { type Command, Option } from 'commander'
import { TunnelError } from '../../errors.ts'
import type { GuardOptions } from '../../guard.ts'
import type { Actions } from '../actions.ts'
import type { RawSettings } from '../commands/raw.ts'
import { Flags } from '../settings/flags.ts'
import { parseService, type Service } from '../settings/target.ts'
import { connection, connectionOptions } from './connection.ts'
import { guardSettings, wallOptions } from './guard.ts'
import { hostOption, hostsOf, subdomainOf, subdomainOption, wildcardOption } from './names.ts'
import { jsonOption, logRateOption, outputWish, quietOption } from './printing.ts'
import { repeatable, seconds } from './values.ts'

/** With what its flags say of visitors. */
interface GuardedService extends Service {
  readonly options: Service['options'] & { readonly guard?: GuardOptions }
}

/** A command that shares a service which does not speak HTTP. */
interface RawCommand {
  readonly name: string
  readonly description: string
  /** What to say of its argument. */
  readonly argument: string
  /** Its own options, besides those of the connection. */
  options(): Option[]
  settings(flags: Flags, service: GuardedService): Pick<RawSettings, 'open' | 'embedded' | 'isWatched'>
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
        // Only an answer or a refusal to the first datagram shows whether anything listens on UDP.
        isWatched: false,
      }
    },
  },
  {
    name: 'tls',
    description: 'give a service that speaks TLS a public name',
    argument: 'where the service is: 8443, host:8443 or unix:/path',
    options: () => [subdomainOption('a friendly one'), wildcardOption(), hostOption(), proxyProtocolOption()],
    settings: tlsSettings,
  },
]

function tlsSettings(flags: Flags, { options }: GuardedService): ReturnType<RawCommand['settings']> {
  const subdomain = subdomainOf(flags)
  const version = proxyProtocol(flags)
  const wish = {
    ...options,
    ...(subdomain !== undefined && { subdomain }),
    ...(flags.isOn('wildcard') && { wildcard: true }),
    ...hostsOf(flags),
    ...(version !== undefined && { proxyProtocol: version }),
  }
  return { open: client => client.tls(wish), embedded: { tlsPort: 0 }, isWatched: true }
}

export function addRawCommands(program: Command, actions: Actions): void {
  for (const raw of RAW_COMMANDS) addRawCommand(program, raw, actions)
}

function addRawCommand(program: Command, raw: RawCommand, actions: Actions): void {
  const command = program
    .command(raw.name)
    .description(raw.description)
    .helpOption('-h, --help', 'print this help')
    .argument('<port>', raw.argument)
  const options = [
    ...connectionOptions('accept any certificate of the server'),
    ...raw.options(),
    ...wallOptions(repeatable),
  ]
  for (const option of [...options, jsonOption(), logRateOption(), quietOption()]) command.addOption(option)
  command.action((positional: string) => {
    const flags = new Flags(command)
    const target = parseService(positional)
    const guard = guardSettings(flags)
    const service = { ...target, options: { ...target.options, ...(guard && { guard }) } }
    const settings = { target, ...connection(flags), ...raw.settings(flags, service) }
    return actions.shareRaw(settings, outputWish(flags))
  })
}

function remotePortOption(): Option {
  return new Option('--remote-port <port>', 'public port to ask for (default: any free one)').env(
    'TUNNEL_REMOTE_PORT',
  )
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

export function proxyProtocol(flags: Flags): 'v1' | 'v2' | undefined {
  const version = flags.text('proxyProtocol')
  if (version === undefined || version === 'v1' || version === 'v2') return version
  throw new TunnelError(
    'OPTION_INVALID',
    `${flags.label('proxyProtocol')} "${version}" is neither v1 nor v2.`,
  )
}
