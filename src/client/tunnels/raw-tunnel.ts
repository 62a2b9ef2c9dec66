// The settings of tunnels for bytes or datagrams, from their options.

import type { Associate } from '../../datagram-socket.ts'
import { optionInvalid, type TunnelError } from '../../errors.ts'
import { isValidPort, noPort, parseHost } from '../../names.ts'
import type { Dial } from '../../socket.ts'
import { positive } from '../limits.ts'
import type { RawTunnelOptions, TcpTunnelOptions, TlsTunnelOptions, UdpTunnelOptions } from '../options.ts'
import { DatagramOrigin } from '../origins/datagrams.ts'
import { addressOrigin } from '../origins/origin-of.ts'
import {
  affinityOf,
  checkToken,
  guardOf,
  healthOf,
  hostNamesOf,
  isNameGiven,
  nameOf,
  type TunnelSettings,
} from './tunnel-settings.ts'

/** Returns the settings of a TCP tunnel. Throws `OPTION_INVALID`. */
export function tcpTunnel(options: TcpTunnelOptions, dial: Dial): TunnelSettings {
  return {
    ...rawTunnel(options, dial),
    kind: 'tcp',
    name: undefined,
    port: checkRemotePort(options.remotePort),
    isWildcard: false,
  }
}

export function tlsTunnel(options: TlsTunnelOptions, dial: Dial): TunnelSettings {
  return {
    ...rawTunnel(options, dial),
    kind: 'tls',
    name: nameOf(options, {}),
    isNamed: isNameGiven(options, {}),
    port: undefined,
    isWildcard: options.wildcard ?? false,
    ...hostNamesOf(options.hosts),
  }
}

function rawTunnel(options: RawTunnelOptions, dial: Dial) {
  if ((options.port === undefined) === (options.unix === undefined))
    throw optionInvalid('Exactly one of port and unix says where the service is.')
  const origin = addressOrigin(options, dial)
  return {
    token: checkToken(options.token),
    privateName: options.private,
    origin,
    proxyProtocol: proxyVersion(options.proxyProtocol),
    routes: [],
    pool: affinityOf(options.pool, ['none', 'address']),
    health: options.health && healthOf(options.health, origin),
    guard: guardOf(options.guard),
  }
}

function proxyVersion(name: 'v1' | 'v2' | undefined): 1 | 2 | undefined {
  if (name === undefined) return undefined
  if (name === 'v1' || name === 'v2') return name === 'v1' ? 1 : 2
  throw optionInvalid(`proxyProtocol must be v1 or v2, not "${String(name)}".`)
}

/** Returns the settings of a UDP tunnel. `failed` is called if the service does not listen. */
export function udpTunnel(
  options: UdpTunnelOptions,
  associate: Associate,
  failed: (error: TunnelError) => void,
): TunnelSettings {
  const { port, host = 'localhost', remotePort, token } = options
  if (!isValidPort(port)) throw noPort(`port ${port}`)
  const idleTimeoutMs = positive('idleTimeoutMs', options.idleTimeoutMs ?? 60_000)
  return {
    kind: 'udp',
    privateName: options.private,
    name: undefined,
    port: checkRemotePort(remotePort),
    token: checkToken(token),
    origin: new DatagramOrigin({ host: parseHost(host).hostname, port, idleTimeoutMs, associate, failed }),
    proxyProtocol: undefined,
    routes: [],
    isWildcard: false,
    pool: undefined,
    health: undefined,
    guard: guardOf(options.guard),
  }
}

function checkRemotePort(port: number | undefined): number | undefined {
  if (port === undefined || isValidPort(port)) return port
  throw noPort(`remotePort ${port}`)
}
