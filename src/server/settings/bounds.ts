// Bounds that no option changes: their defaults are right for every server that was measured. Tests make them small.

import type { ServerLimits } from './options.ts'

/** Times are milliseconds, sizes bytes. `boundsOf` raises some of them with the limits that they depend on. */
export const FIXED_BOUNDS = {
  // HTTP/2. Browsers use 100 streams of a connection; a page that the visitor leaves resets fewer than 256.
  maxHttp2Streams: 100,
  /** Requests of one connection that end before their response; a quarter comes back each second. */
  maxHttp2Resets: 256,
  /** Frames of one connection without a meaning, such as PING, SETTINGS (counted 8 times) and empty DATA; a quarter comes back each second. */
  maxHttp2Noise: 1_024,
  /** The number of 1xx responses of an app to one request; the same number is added each second. */
  maxInterimAnswers: 100,
  /** Bodies in memory that all clients of a pool get; at least five times `maxCopyBodyBytes`. */
  maxCopiedBytes: 67_108_864,
  /** Connections to `tlsPort` without a complete first message, of at most 32 KiB each. */
  maxHellos: 4_096,
  /** Descriptors that visitors leave free, at most a quarter of what the process may have. */
  reservedDescriptors: 64,
  /** The percentage of the other descriptors for connections, links and ports of clients: a client keeps its own for days. */
  clientDescriptorsPercent: 75,
  tokenDescriptorsPercent: 50,
  /** The number of request bytes that a connection reads ahead of its exchange. */
  maxPipelinedBytes: 65_536,
  /**
   * The number of bytes in incomplete heads and requests ahead of their turn, for all visitors: 8 KiB for each of
   * `maxVisitors`.
   */
  maxAllInputBytes: 268_435_456,
  /** Streams of all tunnels of one client: twice `maxStreams`, as many as a client accepts. */
  maxClientStreams: 8_192,

  // One token, or one address on a server without tokens: half of what all have, or less. The token's own rule wins.
  maxTokenTunnels: 32_768,
  /** The maximum number of ports of a token: half of those that the server has by default of either kind. */
  maxTokenPorts: 5_000,
  maxTokenHosts: 256,
  maxTokenClients: 5_000,
  maxTokenStreams: 32_768,
  /** Bytes that wait for slow readers: 2,048 visitors of streams that did not grow. */
  maxTokenBufferedBytes: 536_870_912,
  /** The number of refused registrations in a second; 1,000 cost about 1 % of a core. */
  maxTokenRefusals: 1_000,
  /**
   * The number of refused tokens of one address before its tokens wait: a client with a wrong configuration tries a few times.
   */
  maxTokenGuesses: 10,
  /** The longest of these waits: half of the time that a client gives a dial. */
  tokenDelayMs: 5_000,
  /** Tokens of one address that wait: at most 13 pass in a second. */
  maxTokenWaits: 64,

  // All clients together.
  /** Each costs some 2 KiB. */
  maxAllTunnels: 65_536,
  /** Each costs some 300 bytes. */
  maxAllHosts: 16_384,
  maxAllStreams: 65_536,
  maxAllBufferedBytes: 1_073_741_824,
  /** Links of one client: connections next to its carrier for bulk. */
  maxLinks: 32,
  maxTokenLinks: 4_096,
  /** A quarter of `maxVisitors`: each is a connection. */
  maxAllLinks: 8_192,

  // UDP. Addresses of visitors can be made up, and each new one costs a stream here and a socket at the client.
  /** The number of new visitors of one tunnel per second, a tenth of them at once. */
  maxFlowRate: 2_000,
  maxAllFlows: 16_384,
  /** The number of new visitors of one port that wait for a guard, or for the directory of a cluster. */
  maxAskedFlows: 1_000,
  /** A bound for clients without `idleTimeoutMs`, which otherwise comes first. */
  flowIdleMs: 300_000,
  /** The number of raw visitors and flows that this server sends on to others of its cluster: a quarter of `maxVisitors`. */
  maxPeerStreams: 8_192,

  // Waiting for clients.
  /** Requests and connections of one tunnel that wait for its client. */
  maxHeldRequests: 100,
  /** Requests that wait after the start of the server, of at most 64 KiB each. */
  maxStartupHeld: 1_000,
  maxAddressStartupHeld: 100,
  /** Hosts below one wildcard tunnel that `/tls-check` confirms: authorities issue some 50 certificates for a domain in a week. */
  maxHostsBelow: 20,
  /** The time from the open control connection to the first registration. */
  registerTimeoutMs: 2_000,

  // Carriers.
  /** The bytes of control frames, such as PONG and CREDIT, for a client that does not read. */
  maxCarrierBacklogBytes: 4_194_304,
  /**
   * The silence on a carrier while a visitor waits: a client that hangs is given up within 13 s, and one that is busy for 7 s
   * is not.
   */
  hungAfterMs: 10_000,
  /** The bytes of incomplete JSON messages of all clients: two of the largest. */
  maxUnfinishedMessageBytes: 134_217_728,
  /** The window that a stream may grow to from 256 KiB: the cost of a stalled reader. */
  maxStreamWindowBytes: 4_194_304,
  /** The growth of windows in total streams of a session. */
  maxSessionWindowBytes: 67_108_864,
}

export type FixedBounds = Readonly<Record<keyof typeof FIXED_BOUNDS, number>>

export type Bounds = ServerLimits & FixedBounds

/** The longest time for a response that a client may choose for a tunnel, in milliseconds; 0: any. */
export function longestResponseMs({ originTimeoutMs, maxResponseTimeoutMs }: ServerLimits): number {
  const isAny = originTimeoutMs === 0 || maxResponseTimeoutMs === 0
  return isAny ? 0 : Math.max(originTimeoutMs, maxResponseTimeoutMs)
}

/**
 * All bounds for these limits. If an operator raises a limit, the bounds that are a multiple or a part of it also rise.
 * `fixed`: values that tests give.
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
