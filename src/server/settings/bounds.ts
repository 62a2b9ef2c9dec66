// Limits that no option changes: their defaults suit every server that was measured. Tests make them small.

import type { ServerLimits } from './options.ts'

/**
 * The fixed limits. Times are milliseconds, sizes bytes. `boundsOf` raises some of them together with the options
 * that they depend on.
 */
export const FIXED_BOUNDS = {
  // HTTP/2. Browsers use 100 streams of a connection. A visitor that leaves a page resets fewer than 256.
  maxHttp2Streams: 100,
  /** The number of requests of one connection that may end before their response; a quarter of it is added each second. */
  maxHttp2Resets: 256,
  /**
   * The number of frames of one connection that cause no work for an app, such as PING, SETTINGS (counted 8 times)
   * and empty DATA; a quarter of it is added each second.
   */
  maxHttp2Noise: 1_024,
  /** The number of 1xx responses of an app to one request; the same number is added each second. */
  maxInterimAnswers: 100,
  /** The bytes of bodies in memory that all clients of a pool get; at least five times `maxCopyBodyBytes`. */
  maxCopiedBytes: 67_108_864,
  /** The number of connections to `tlsPort` without a complete hello, of at most 32 KiB each. */
  maxHellos: 4_096,
  /** The number of descriptors that visitors leave free, at most a quarter of those that the process may open. */
  reservedDescriptors: 64,
  /** The percentage of the other descriptors that clients may use for connections, links and ports, which they keep for days. */
  clientDescriptorsPercent: 75,
  tokenDescriptorsPercent: 50,
  /** The number of request bytes that a connection reads ahead of its exchange. */
  maxPipelinedBytes: 65_536,
  /**
   * The number of bytes in incomplete heads and requests ahead of their turn, for all visitors: 8 KiB for each of `maxVisitors`.
   */
  maxAllInputBytes: 268_435_456,
  /** The number of streams of all tunnels of one client: twice `maxStreams`, as many as a client accepts. */
  maxClientStreams: 8_192,

  // For one token, or one address on a server without tokens: at most half of the total. The token's own rule wins.
  maxTokenTunnels: 32_768,
  /** The maximum number of ports of a token: half of the server's default number of either kind. */
  maxTokenPorts: 5_000,
  maxTokenHosts: 256,
  maxTokenClients: 5_000,
  maxTokenStreams: 32_768,
  /** The bytes that may wait for slow readers: enough for 2,048 visitors with streams of the initial window. */
  maxTokenBufferedBytes: 536_870_912,
  /** The number of refused registrations per second; 1,000 cost about 1 % of a core. */
  maxTokenRefusals: 1_000,
  /**
   * The number of refused tokens of one address before its tokens are delayed. A client with a wrong configuration
   * tries a few times.
   */
  maxTokenGuesses: 10,
  /** The longest delay of a token: half of the time that a client gives a dial. */
  tokenDelayMs: 5_000,
  /** The number of tokens of one address that may wait; at most 13 are checked in a second. */
  maxTokenWaits: 64,

  // For all clients together.
  /** The number of tunnels, of about 2 KiB each. */
  maxAllTunnels: 65_536,
  /** The number of custom domains, of about 300 bytes each. */
  maxAllHosts: 16_384,
  maxAllStreams: 65_536,
  maxAllBufferedBytes: 1_073_741_824,
  /** The number of links of one client, which carry large transfers next to its carrier. */
  maxLinks: 32,
  maxTokenLinks: 4_096,
  /** The number of links of all clients: a quarter of `maxVisitors`, because each is a connection. */
  maxAllLinks: 8_192,

  // UDP. Visitors' addresses can be forged, and each new one costs a stream here and a socket at the client.
  /** The number of new visitors of one tunnel per second, a tenth of them at once. */
  maxFlowRate: 2_000,
  maxAllFlows: 16_384,
  /** The number of new visitors of one port that wait for a guard, or for the directory of a cluster. */
  maxAskedFlows: 1_000,
  /** The idle time for flows of clients that send no `idleTimeoutMs`. */
  flowIdleMs: 300_000,
  /** The number of raw visitors and flows that this server passes to others of its cluster: a quarter of `maxVisitors`. */
  maxPeerStreams: 8_192,

  // Waiting for clients.
  /** The number of requests and connections of one tunnel that wait for its client. */
  maxHeldRequests: 100,
  /** The number of requests that wait after the start of the server, of at most 64 KiB each. */
  maxStartupHeld: 1_000,
  maxAddressStartupHeld: 100,
  /**
   * The number of hosts below one wildcard tunnel that `/tls-check` confirms. Authorities issue about 50 certificates
   * for a domain in a week.
   */
  maxHostsBelow: 20,
  /** The time from the open control connection to the first registration. */
  registerTimeoutMs: 2_000,

  // Carriers.
  /** The bytes of control frames, such as PONG and CREDIT, that may wait for a client that does not read. */
  maxCarrierBacklogBytes: 4_194_304,
  /**
   * The silence on a carrier while a visitor waits. A client that hangs is dropped within 13 s; one that is busy for 7 s is not.
   */
  hungAfterMs: 10_000,
  /** The bytes of incomplete JSON messages of all clients: enough for two of the largest. */
  maxUnfinishedMessageBytes: 134_217_728,
  /** The size to which a stream's window may grow from 256 KiB. A stalled reader costs that much memory. */
  maxStreamWindowBytes: 4_194_304,
  /** The total growth of the windows of a session's streams. */
  maxSessionWindowBytes: 67_108_864,
}

export type FixedBounds = Readonly<Record<keyof typeof FIXED_BOUNDS, number>>

export type Bounds = ServerLimits & FixedBounds

/** Returns the longest response time that a client may choose for a tunnel, in milliseconds; 0: any. */
export function longestResponseMs({ originTimeoutMs, maxResponseTimeoutMs }: ServerLimits): number {
  const isAny = originTimeoutMs === 0 || maxResponseTimeoutMs === 0
  return isAny ? 0 : Math.max(originTimeoutMs, maxResponseTimeoutMs)
}

/**
 * Returns all limits. If an operator raises an option, the fixed limits that are a multiple or a part of it also
 * rise.
 * `fixed`: the values that tests set.
 */
export function boundsOf(limits: ServerLimits, fixed: Partial<FixedBounds> = {}): Bounds {
  const { maxVisitors, maxClients, maxStreams, maxTunnels, maxFlows, maxMessageBytes } = limits
  const needed: Partial<FixedBounds> = {
    maxAllInputBytes: 8_192 * maxVisitors,
    maxTokenStreams: maxVisitors,
    maxAllStreams: 2 * maxVisitors,
    maxAllLinks: maxVisitors / 4,
    maxPeerStreams: maxVisitors / 4,
    maxTokenClients: maxClients / 2,
    maxClientStreams: 2 * maxStreams,
    maxTokenTunnels: maxTunnels,
    maxAllTunnels: 2 * maxTunnels,
    maxAllFlows: 16 * maxFlows,
    maxUnfinishedMessageBytes: 2 * maxMessageBytes,
  }
  const raised = Object.entries(needed).map(([name, least]) => [
    name,
    Math.max(Math.floor(least), FIXED_BOUNDS[name as keyof FixedBounds]),
  ])
  return { ...limits, ...FIXED_BOUNDS, ...Object.fromEntries(raised), ...fixed }
}
