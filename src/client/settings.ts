// Turns the options of a client, and its environment, into settings. This is the only place that checks them.

import type { Agent } from 'node:http'
import { optionInvalid } from '../errors.ts'
import { whole } from '../option-names.ts'
import type { Dial } from '../socket.ts'
import { proxyChooser } from './carriers/proxy.ts'
import { guardToken, parseServer, type ServerAddress, serverList } from './carriers/server-address.ts'
import type { Laning } from './contracts/laning.ts'
import { type ClientLimits, clientLimits, positive } from './limits.ts'
import type { OneServer, OriginOptions, TunnelClientOptions } from './options.ts'
import type { OwnOrigin } from './origins/origin-of.ts'
import { dialThrough } from './proxies/dial.ts'
import { dialOutward } from './reach/outward.ts'
import { DEFAULT_PROBE_INTERVAL_MS } from './reach/public-watch.ts'
import { httpTunnel } from './tunnels/http-tunnel.ts'
import type { Environment, TunnelSettings } from './tunnels/tunnel-settings.ts'

export interface ClientSettings {
  readonly server: ServerAddress
  readonly otherServers: readonly ServerChoice[]
  readonly tunnel: TunnelSettings | undefined
  readonly token: string | undefined
  /** Whether tokens may go to another machine without TLS. */
  readonly isInsecureTokenAllowed: boolean
  readonly wire: 'auto' | 'streams' | 'json'
  /** The Node Agent that connects to the server in place of `dial`. */
  readonly agent: Agent | undefined
  /** Dials the server, through a proxy or directly. */
  readonly dial: Dial
  /** Dials the public URL that a server reports, through a proxy or directly. */
  readonly dialPublic: Dial
  /** The proxy on the way to the server, for messages: its URL without the login. */
  readonly proxyLabel: string | undefined
  readonly connectTimeoutMs: number
  readonly isReconnecting: boolean
  readonly maxBackoffMs: number
  readonly probeIntervalMs: number
  readonly pingIntervalMs: number
  readonly deadAfterMs: number
  readonly drainTimeoutMs: number
  /** The number of requests per second that are reported one by one; `0`: all. */
  readonly reportRate: number
  readonly stateFolder: string | undefined
  readonly limits: ClientLimits
  readonly lanes?: Laning | undefined
}

export interface ServerChoice {
  readonly server: ServerAddress
  readonly token: string | undefined
}

/** The maximum number of servers: more than a user would type. */
const MAX_SERVERS = 16

export const DEFAULT_SERVER = 'http://localhost:8080'

export function clientSettings(
  options: TunnelClientOptions,
  environment: Environment,
  dial: Dial,
  ownOrigin: OwnOrigin,
): ClientSettings {
  const { wire = 'auto' } = options
  if (wire !== 'auto' && wire !== 'streams' && wire !== 'json') {
    throw optionInvalid(`wire must be auto, streams or json, not "${String(wire)}".`)
  }
  const pingIntervalMs = positive('pingIntervalMs', options.pingIntervalMs ?? 10_000)
  const deadAfterMs = positive('deadAfterMs', options.deadAfterMs ?? 20_000)
  if (deadAfterMs <= pingIntervalMs) {
    throw optionInvalid('deadAfterMs must be more than pingIntervalMs.')
  }
  // An empty variable counts as not set.
  const fallback = (options.token ?? environment.TUNNEL_TOKEN) || undefined
  const given = options.server ?? serverList(environment.TUNNEL_SERVER || DEFAULT_SERVER)
  const choices = serversOf(given, options, fallback)
  const [{ server, token }, ...otherServers] = choices
  if (options.agent !== undefined && options.proxy) {
    throw optionInvalid('agent and proxy exclude each other: the agent is the way.')
  }
  // The request with the token may be sent before this code sees the certificate.
  if (options.agent !== undefined && options.pin !== undefined) {
    const text =
      'pin cannot be verified where an agent makes the connection: use proxy, or leave the pin out.'
    throw optionInvalid(text)
  }
  const chooseProxy = proxyChooser(options, environment)
  const way = {
    server,
    proxyLabel: options.agent === undefined ? chooseProxy(server.address)?.label : undefined,
    isInsecureTokenAllowed: options.insecureToken ?? false,
  }
  for (const one of choices) guardToken(one.token, { ...way, server: one.server })
  return {
    ...way,
    otherServers,
    dial: dialThrough(chooseProxy, dial),
    dialPublic: dialThrough(
      chooseProxy,
      dialOutward(
        choices.map(one => one.server.address),
        dial,
      ),
    ),
    tunnel: isTunnelGiven(options)
      ? httpTunnel({ ...options, token: undefined }, environment, dial, ownOrigin)
      : undefined,
    token,
    wire,
    // The public type is `object`, so that published types do not need those of Node.
    agent: options.agent as Agent | undefined,
    connectTimeoutMs: positive('connectTimeoutMs', options.connectTimeoutMs ?? 10_000),
    isReconnecting: options.reconnect ?? true,
    maxBackoffMs: positive('maxBackoffMs', options.maxBackoffMs ?? 5_000),
    probeIntervalMs: positive('probeIntervalMs', options.probeIntervalMs ?? DEFAULT_PROBE_INTERVAL_MS),
    pingIntervalMs,
    deadAfterMs,
    drainTimeoutMs: positive('drainTimeoutMs', options.drainTimeoutMs ?? 10_000),
    reportRate: whole('reportRate', options.reportRate ?? 0, 0),
    stateFolder: options.stateFolder,
    limits: clientLimits(options.limits ?? {}),
  }
}

function serversOf(
  given: NonNullable<TunnelClientOptions['server']>,
  options: TunnelClientOptions,
  fallback: string | undefined,
): readonly [ServerChoice, ...ServerChoice[]] {
  const [first, ...others] = typeof given === 'string' ? [given] : given
  if (first === undefined || others.length >= MAX_SERVERS)
    throw optionInvalid(`server must name 1 to ${MAX_SERVERS} servers.`)
  const choice = (one: string | OneServer): ServerChoice => {
    const { url, token = fallback, ca = options.ca } = typeof one === 'string' ? { url: one } : one
    return {
      server: parseServer(url, { ...options, ...(ca !== undefined && { ca }) }),
      token: token || undefined,
    }
  }
  return [choice(first), ...others.map(choice)]
}

/** Returns the settings for each of the servers, in their order. */
export function atEachServer(settings: ClientSettings): readonly ClientSettings[] {
  return [settings, ...settings.otherServers.map(one => ({ ...settings, ...one }))]
}

function isTunnelGiven({ port, url, unix, fetch, folder, spa, later }: OriginOptions): boolean {
  return [port, url, unix, fetch, folder, spa, later].some(one => one !== undefined)
}
