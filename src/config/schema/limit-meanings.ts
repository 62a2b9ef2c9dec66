// What each limit bounds: the beginning of its docstring. Written by LT_WRITE_DOCS=1 bun test test/config/docs.test.ts.
// biome-ignore-all format: one line each

export const CLIENT_LIMITS: Readonly<Record<string, string>> = {
  maxStreams: 'Streams open at once, which are connections to the app; on the JSON wire requests',
  maxLinks: 'Connections beside the carrier for bulk',
  maxStreamWindowBytes: 'Receive window that one stream may grow to from 256 KiB',
  maxSessionWindowBytes: 'Growth of windows allowed in all streams together',
  maxCarrierBacklogBytes: 'Answers to the server (PONG, RESET, CREDIT and their like) that may wait while it does not read; data waits at its source',
  maxCollectedBytes: 'Answers of the app that are being collected, all requests together: the JSON wire carries whole ones only',
}

export const SERVER_LIMITS: Readonly<Record<string, string>> = {
  maxHeadBytes: 'Request or answer head',
  maxHeaderCount: 'Header lines of one head',
  maxTargetBytes: 'Request target',
  headTimeoutMs: 'First byte to blank line of a request head, and the next bytes of a body that is kept until it is complete: for an inbox, for all clients of a pool, or on the JSON wire',
  maxCopyBodyBytes: 'Body, framing included, of a request that every client of a pool gets: the server keeps it until all have taken it',
  maxVisitors: 'Connections of visitors at once, of all kinds, from `accept` on',
  maxAddressVisitors: "Connections of one address at once, and likewise its requests under way by HTTP/2 and HTTP/3. An IPv6 address counts by its first 64 bits. A connection with a PROXY header is the visitor's, others of `trustedProxies` are not counted",
  maxAddressRate: 'New connections of one address a second, and HTTP/2 requests that it gives up, by a reset or with the connection; addresses count as in `maxAddressVisitors`. So many at once, and they come back evenly over a second',
  idleTimeoutMs: 'A kept-alive visitor connection without a request',
  originTimeoutMs: 'End of the request to the head of the answer',
  sendTimeoutMs: 'How long bytes may wait while their reader takes none: an answer for its visitor, or a request for the app',
  maxBodyBytes: 'Request body, in bytes',
  maxStreams: 'Streams open at once per tunnel, idle ones included',
  maxTunnels: 'Tunnels of one client',
  streamIdleMs: 'How long an idle stream is kept for the next request',
  maxFlows: 'Visitors of one UDP tunnel at once, by address and port: each is a stream here and a socket at the client',
  leaseMs: 'How long a name stays with a client whose carrier was lost',
  holdTimeoutMs: 'How long a request or TCP connection waits for a client that reconnects',
  guardTimeoutMs: 'How long a guard may take for a visitor',
  startupHoldMs: 'How long after its start the server holds requests for names that no client has, because clients need a moment to come back',
  maxClients: 'Clients connected at once',
  pingIntervalMs: 'Silence on a carrier before it is pinged',
  deadAfterMs: 'Silence on a carrier before it is given up',
  maxMessageBytes: 'Largest JSON wire message either way',
  drainTimeoutMs: 'How long `stop()` waits for what is under way',
  drainIdleMs: 'How long a kept-alive connection may have been without a request when `stop()` closes it; an earlier request is served, as the last one there',
}
