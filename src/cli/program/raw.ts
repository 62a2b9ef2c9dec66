// `localtunnels tcp`, `udp` and `tls`: services that do not speak HTTP.

import type { Command } from 'commander'
import { optionInvalid } from '../../errors.ts'
import type { GuardOptions } from '../../guard.ts'
import type { Actions } from '../actions.ts'
import type { RawSettings } from '../commands/raw.ts'
import type { TunnelEnd } from '../ends.ts'
import { Flags } from '../settings/flags.ts'
import { parseServices, type Service } from '../settings/target.ts'
import { connection, LASTING_FLAGS } from './connection.ts'
import { guardSettings, RULE_FLAGS } from './guard.ts'
import {
  HOST_NAME_FLAG,
  hostsOf,
  PRIVATE_FLAG,
  privateOf,
  subdomainFlag,
  subdomainOf,
  WILDCARD_FLAG,
} from './names.ts'
import { outputWish, PRINTING_FLAGS } from './printing.ts'
import { duration, flagOptions, type Texts } from './values.ts'

/** A service with the access rules of its flags. */
interface GuardedService extends Service {
  readonly options: Service['options'] & { readonly guard?: GuardOptions }
}

/** A command that shares a service which does not speak HTTP. */
interface RawCommand {
  /** The flags of the command, in addition to those of the connection. */
  readonly flags: Texts
  /** Returns the settings. `services`: one, or one for each port of a range. */
  settings(
    flags: Flags,
    services: readonly GuardedService[],
  ): Pick<RawSettings, 'open' | 'embedded' | 'isWatched'>
}

const REMOTE_PORT_FLAG = {
  '--remote-port <port>': 'public port to request, or a range (default: any free port)',
}
const PROXY_PROTOCOL_FLAG = {
  '--proxy-protocol <version>':
    'send the service a PROXY header with the address of the visitor: v1 or v2 (default: none)',
}

const RAW_COMMANDS: Readonly<Record<'tcp' | 'udp' | 'tls', RawCommand>> = {
  tcp: {
    flags: {
      ...REMOTE_PORT_FLAG,
      '--tls':
        'use a public name instead of a port, for a service that speaks TLS; the same as "localtunnels tls"',
      ...subdomainFlag('random; with --tls'),
      ...WILDCARD_FLAG,
      ...PROXY_PROTOCOL_FLAG,
    },
    settings(flags, services) {
      if (flags.isOn('tls')) {
        if (flags.text('remotePort') !== undefined)
          throw optionInvalid('--tls gives a name on the port of all TLS tunnels: no --remote-port.')
        return tlsSettings(flags, services)
      }
      for (const name of ['subdomain', 'wildcard'])
        if (flags.isTyped(name))
          throw optionInvalid(`${flags.label(name)} is for --tls: a TCP tunnel has a port, no name.`)
      const version = proxyProtocol(flags)
      const more = version !== undefined && { proxyProtocol: version }
      const wishes = withRemotePorts(services, flags)
      return {
        open: client => allOf(wishes.map(wish => client.tcp({ ...wish, ...more }))),
        // On this machine, any port will do.
        embedded: flags.text('remotePort') === undefined ? {} : { tcpPorts: flags.text('remotePort') },
        isWatched: true,
      }
    },
  },
  udp: {
    flags: {
      ...REMOTE_PORT_FLAG,
      '--idle-timeout <time>': 'forget a visitor that has been silent for this time (default: 60s)',
    },
    settings(flags, services) {
      const idleTimeoutMs = duration(flags, 'idleTimeout')
      const more = idleTimeoutMs !== undefined && { idleTimeoutMs }
      const wishes = withRemotePorts(services, flags).map(wish => {
        if ('unix' in wish) throw optionInvalid('UDP needs a port, not a unix socket.')
        return { ...wish, ...more }
      })
      return {
        open: client => allOf(wishes.map(wish => client.udp(wish))),
        embedded: flags.text('remotePort') === undefined ? {} : { udpPorts: flags.text('remotePort') },
        // Only a response or a refusal to the first datagram shows whether anything listens on UDP.
        isWatched: false,
      }
    },
  },
  tls: {
    flags: { ...subdomainFlag('random'), ...WILDCARD_FLAG, ...HOST_NAME_FLAG, ...PROXY_PROTOCOL_FLAG },
    settings: tlsSettings,
  },
}

/** Resolves with all tunnels of a range, or none, because a user who tries again requests all of them. */
async function allOf(opening: readonly Promise<TunnelEnd>[]): Promise<readonly TunnelEnd[]> {
  const outcomes = await Promise.allSettled(opening)
  const refused = outcomes.find(({ status }) => status === 'rejected')
  if (refused === undefined) return Promise.all(opening)
  const granted = outcomes.flatMap(one => (one.status === 'fulfilled' ? one.value : []))
  await Promise.all(granted.map(tunnel => tunnel.close()))
  return Promise.all(opening)
}

/** Returns the services with a public port for each, if `--remote-port` names some. */
function withRemotePorts(services: readonly GuardedService[], flags: Flags) {
  const ports = flags.portRange('remotePort')
  if (ports !== undefined && ports.length !== services.length)
    throw optionInvalid(
      `${flags.label('remotePort')} names ${ports.length} ports, and the service has ${services.length}.`,
    )
  return services.map(({ options }, index) => {
    const remotePort = ports?.[index]
    return { ...options, ...(remotePort !== undefined && { remotePort }) }
  })
}

function tlsSettings(
  flags: Flags,
  [service, another]: readonly GuardedService[],
): ReturnType<RawCommand['settings']> {
  if (service === undefined || another !== undefined)
    throw optionInvalid('A range is for TCP and UDP: a TLS tunnel has a name, no port.')
  const { options } = service
  const subdomain = subdomainOf(flags)
  const version = proxyProtocol(flags)
  const wish = {
    ...options,
    ...(subdomain !== undefined && { subdomain }),
    ...(flags.isOn('wildcard') && { wildcard: true }),
    ...hostsOf(flags),
    ...(version !== undefined && { proxyProtocol: version }),
  }
  return { open: async client => [await client.tls(wish)], embedded: { tlsPort: 0 }, isWatched: true }
}

export function addRaw(command: Command, actions: Actions, name: keyof typeof RAW_COMMANDS): void {
  const raw = RAW_COMMANDS[name]
  const texts = {
    'Public port or name:': { ...raw.flags, ...PRIVATE_FLAG },
    ...LASTING_FLAGS,
    ...RULE_FLAGS,
    'Output:': PRINTING_FLAGS,
  }
  // The only flag without a variable: `TUNNEL_TLS` would apply to every command.
  for (const option of flagOptions(texts))
    command.addOption(option.long === '--tls' ? option.env('TUNNEL_TCP_TLS') : option)
  command.action((positional: string) => {
    const flags = new Flags(command)
    const targets = parseServices(positional)
    const guard = guardSettings(flags)
    const way = connection(flags)
    const own = privateOf(flags, way.destination)
    if (own.private !== undefined && targets.length > 1)
      throw optionInvalid(`${flags.label('private')} is for one port, not for a range.`)
    const more = { ...(guard && { guard }), ...own }
    const services = targets.map(one => ({ ...one, options: { ...one.options, ...more } }))
    const settings = { targets, ...way, ...raw.settings(flags, services) }
    return actions.shareRaw(settings, outputWish(flags))
  })
}

export function proxyProtocol(flags: Flags): 'v1' | 'v2' | undefined {
  const version = flags.text('proxyProtocol')
  if (version === undefined || version === 'v1' || version === 'v2') return version
  throw optionInvalid(`${flags.label('proxyProtocol')} "${version}" is neither v1 nor v2.`)
}
