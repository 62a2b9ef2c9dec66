// All options of a TunnelServer, with their defaults.

import type { Branding } from '../../branding.ts'
import type { Certificates, ChallengeResponses } from '../../certificates.ts'
import type { ErrorCode, TunnelError } from '../../errors.ts'
import type { Guard, GuardMaker, Middleware, Observer } from '../../plugin.ts'
import type { TokenReader } from '../../tokens.ts'
import type { GrantedKind } from '../../wire/tunnel-kind.ts'
import type { AdminOptions, ClusterOptions, InboxOptions } from './part-options.ts'
import type { TunnelRule } from './tunnel-rule.ts'

/** A token, and its rights. */
export interface TokenRule {
  /** The shared secret: 1 to 255 characters of visible ASCII, without spaces. The same twice: `OPTION_INVALID`. */
  readonly token?: string
  /**
   * The SHA-256 of the secret, in hexadecimal, in place of `token`: for secrets that are stored as hashes. Neither or both:
   * `OPTION_INVALID`.
   */
  readonly tokenHash?: string
  /** The name of the token in the event `connection` and in access logs. Default nothing. */
  readonly name?: string
  /**
   * Whether names of `names` without a `*` are reserved for this token, also while no client has them: `NAME_RESERVED` for
   * others. Default `false`.
   */
  readonly reserve?: boolean
  /** Subdomains it may have: `app`, `team-*`. Default all. For others: `NOT_ALLOWED`. */
  readonly names?: readonly string[]
  /**
   * Kinds of tunnels it may have: `http`, `tcp`, `udp`, `tls`, `private`. Default all. With `names`, which ports do not have: `http`,
   * `tls` and `private`, and those of `tcpPorts` and `udpPorts` where these are given. With `connect` and no `names`: only
   * the latter. All others are `NOT_ALLOWED`.
   */
  readonly kinds?: readonly GrantedKind[]
  /** The public TCP ports that the token may have, of those of the server. Default all of these. All others are `NOT_ALLOWED`. */
  readonly tcpPorts?: string
  /** The public UDP ports that the token may have, as `tcpPorts`. */
  readonly udpPorts?: string
  /**
   * Tunnels of all its clients together, those whose client is away for no longer than the lease included. Default 32,768.
   * If exceeded: `CLIENT_LIMIT`.
   */
  readonly maxTunnels?: number
  /**
   * The number of public ports, TCP and UDP, of all its clients together, leases included. Default 5,000. If exceeded:
   * `CLIENT_LIMIT`.
   */
  readonly maxPorts?: number
  /** Whether tunnels without a guard are refused with `NOT_ALLOWED`. Default `false`. */
  readonly requireGuard?: boolean
  /** Clients connected at once with it. Default half of the limit `maxClients`. If exceeded: `CLIENT_LIMIT`, at the upgrade. */
  readonly maxClients?: number
  /**
   * Hosts outside of the server's domains that its tunnels may have: `www.customer.example`, `*.customer.example`, `*` for any.
   * Default none; of a token that is a text alone, any. For others: `NOT_ALLOWED`.
   */
  readonly hosts?: readonly string[]
  /**
   * The private services that its clients connect to: `db`, `team-*`, `*` for any. Default none; of a token that is a text
   * alone, any. All others are `NOT_ALLOWED`.
   */
  readonly connect?: readonly string[]
  /** The number of custom domains of all its clients together, leases included. Default 256. If exceeded: `CLIENT_LIMIT`. */
  readonly maxHosts?: number
  /**
   * Requests, and connections of raw tunnels, of all visitors of all its tunnels together: `limit` in `windowMs`. Default no bound.
   * If exceeded: 429 `RATE_LIMITED`; raw connections are reset. A limit outside of 1 to 1,000,000, or a window outside of 1 s to 24 h:
   * `OPTION_INVALID`.
   */
  readonly rate?: { readonly limit: number; readonly windowMs: number }
  /**
   * Bytes a second, each way, of all visitors of all its tunnels together. Default no bound. If exceeded: bytes wait, and
   * nothing is cut. UDP does not count. Values below 1,024 are `OPTION_INVALID`.
   */
  readonly bandwidth?: number
}

/** All addresses of the machine, IPv4. */
export const DEFAULT_HOST = '0.0.0.0'

export interface TunnelServerOptions {
  /** The port for visitors and clients. Default 8080. `0` takes any free one; see `server.port`. */
  readonly port?: number
  /** Address to listen on. Default `0.0.0.0`, all of them. */
  readonly host?: string
  /**
   * Descriptors of TCP sockets that listen already, as systemd passes them: they belong to the server from now on. Each is for
   * the listener whose port it has; the first that has no other's is for `port`, whatever that says. The sockets of `tcpPorts`
   * wait for their tunnels, for as long as a lease (`leaseMs`). Default none: it listens by itself. If one does not listen:
   * `OPTION_INVALID` at the start. A port that no listener has: an `error` event, and the socket is closed. A reload ignores it.
   */
  readonly inherited?: readonly number[]
  /** Domains under which tunnels get one label; URLs name the first. Default `['localhost']`. */
  readonly domains?: readonly string[]
  /** The operator's name, contact and logo on the pages that the server shows to visitors. Default none. Unusable: `OPTION_INVALID`. */
  readonly branding?: Branding
  /** The certificate chain and private key as PEM text. Default none: plain HTTP. A key that does not fit is `TLS_INVALID`. */
  readonly tls?: { readonly cert: string; readonly key: string }
  /**
   * Certificates by the name that a visitor asks for: `FileCertificates` or `acmeCertificates` of `localtunnels/certificates`, or
   * code of your own. Asked during each full handshake. Default none. Together with `tls`: `OPTION_INVALID`. A runtime that
   * cannot: `RUNTIME_UNSUPPORTED` at the start.
   */
  readonly certificates?: Certificates
  /**
   * The responses to an authority that checks whether a name points here: HTTP-01 on `httpPort`, TLS-ALPN-01 on `port` with
   * `certificates`. Default nothing.
   */
  readonly challenges?: ChallengeResponses
  /**
   * A second port, for plain HTTP: responds to `challenges`, and redirects visitors to https with 308. `0` takes any free one; see
   * `server.httpPort`. Default none. Without `tls` or `certificates`: `OPTION_INVALID`. A reload cannot change it.
   */
  readonly httpPort?: number
  /**
   * The PEM text of the authorities that sign the certificates of clients: a client without one is refused with
   * `CLIENT_CERTIFICATE_MISSING`. Visitors are not asked. Default none: clients need no certificate. Without `tls` or
   * `certificates`: `OPTION_INVALID`.
   */
  readonly clientCa?: string
  /**
   * The oldest version of TLS on `port`: `'1.2'` or `'1.3'`. Default `'1.2'`: what browsers since 2014 speak. If a visitor offers
   * less, the handshake fails. Without `tls` or `certificates`: `OPTION_INVALID`. A reload cannot change it.
   */
  readonly tlsMinVersion?: '1.2' | '1.3'
  /**
   * The ciphers for connections with TLS 1.2: OpenSSL names with `:` in between. Default: those with forward secrecy
   * and authenticated encryption (ECDHE with AES-GCM or ChaCha20-Poly1305). The ciphers of TLS 1.3 are fixed. A list
   * that has none, or without `tls` or `certificates`: `OPTION_INVALID`.
   */
  readonly tlsCiphers?: string
  /**
   * Whether visitors may speak HTTP/2 on `port`: over TLS where ALPN chooses it, without TLS where the connection begins with its
   * preface. Default `true`. `false`: HTTP/1.1 only, as for visitors that offer nothing else. Apps get HTTP/1.1 either way. A
   * reload changes it for connections that come after.
   */
  readonly http2?: boolean
  /**
   * Whether visitors may speak HTTP/3 as well, on the UDP port with the number of `port`: responses over TLS announce it
   * (Alt-Svc). Experimental:
   * the runtime's QUIC is. Default `false`: nothing of it is loaded. Without `tls` or `certificates`, or with `acceptProxyProtocol`:
   * `OPTION_INVALID`. A runtime that cannot carry it: `RUNTIME_UNSUPPORTED`. Request bodies that say they are longer than 8 MiB get 421
   * `HTTP3_BODY_TOO_LARGE`, on which RFC 7838 has them ask again over HTTP/2. A reload cannot change it.
   */
  readonly http3?: boolean
  /**
   * Seconds for which browsers ask for a tunnel with https only (Strict-Transport-Security). Default 0: not at
   * all. Sent with responses of apps that visitors get with https of this server, unless the app has such a header of its own.
   */
  readonly hsts?: number
  /**
   * The address at which visitors reach this server behind a proxy, such as `https://tunnel.example`: gives scheme and port of
   * tunnel URLs. Default: the scheme and port it listens with.
   */
  readonly publicUrl?: string
  /**
   * The path below which a site in front passes requests to this server, such as `/tunnel`: clients then name `https://site.example/tunnel`
   * as their server. The server's own pages are below it, and those of the admin listener below `/tunnel/admin`. Both are also
   * there without it, since some proxies remove it. Tunnels are not affected. Default none. Not a path: `OPTION_INVALID`.
   */
  readonly basePath?: string
  /**
   * The public ports of TCP tunnels, as in `20000-29999,2222`. Default `20000-29999`. `''`: no TCP tunnels, `KIND_REFUSED`.
   * They are listened on at `host`, each while a client holds it.
   */
  readonly tcpPorts?: string
  /** The public ports of UDP tunnels, such as `20000-29999,2222`; empty: none. Default `20000-29999`. */
  readonly udpPorts?: string
  /**
   * The port of TLS tunnels, which are distinguished by the server name in the handshake (SNI), and whose bytes only the origin
   * can read. Default none: `KIND_REFUSED`. `0` takes any free one; see `server.tlsPort`. The same as `port`: with `tls` they
   * share it, and names that are not TLS tunnels are served with that certificate; without `tls`: `OPTION_INVALID`.
   */
  readonly tlsPort?: number
  /**
   * The tokens of clients: visible ASCII without spaces, each with a rule for what it opens, or for everything. When any is
   * given, a client without one of them is refused with `TOKEN_REFUSED`. Default none: everybody who reaches the server may
   * have a tunnel; unless `host` is a loopback address, there is a `warning` event.
   */
  readonly tokens?: readonly (string | TokenRule)[]
  /**
   * Reads tokens that are not among `tokens`: `jwtTokens()` of this package, for JSON Web Tokens of issuers. Default none. With
   * one, a client needs a token, as with `tokens`. A token that it cannot verify is refused with `TOKEN_REFUSED`,
   * `TOKEN_EXPIRED`, or `ISSUER_UNAVAILABLE` while the issuer's keys cannot be fetched.
   */
  readonly tokenReader?: TokenReader
  /** Labels that no client may take, besides `api`, `www` and the others that `isReservedName` knows. Default none. */
  readonly reservedNames?: readonly string[]
  /**
   * Addresses or CIDR ranges of proxies in front whose X-Forwarded-* and Forwarded headers are trusted. A range has
   * addresses of its own family only: `::/0` has none of IPv4. Default none: such headers from visitors are replaced.
   */
  readonly trustedProxies?: readonly string[]
  /**
   * Connections from `trustedProxies` begin with a PROXY header, version 1 or 2, and count as those of the visitor it names. A
   * connection without one is cut, with `PROXY_HEADER_INVALID` as an `error` event; from other addresses a header is a bad
   * request. Default `false`. With `tls` the header comes before TLS. Without `trustedProxies`: `OPTION_INVALID`. With `tls` a
   * reload cannot change it.
   */
  readonly acceptProxyProtocol?: boolean
  /**
   * Requests a second that have a `request` event of their own. Above, `requests` events pass on counts about twice a
   * second. For programs that show requests to people, who read no more than 30 lines a second: an event costs more than
   * the request. Default `0`: every request has its own event. Not a whole number from 0: `OPTION_INVALID`.
   */
  readonly reportRate?: number
  /**
   * Guards of all tunnels, asked in this order and before the tunnel's own; all must let a visitor pass. Default none. Requests of
   * tunnels with a guard that does not say how many pass (`allot`) take the way through the program (no lanes).
   */
  readonly guards?: readonly Guard[]
  /**
   * The observers, which watch visitors and change nothing. Default none. Each costs its tunnels a call at the beginning and
   * the end of each request; behind trusted proxies their requests take the way through the program (no lanes).
   */
  readonly observers?: readonly Observer[]
  /**
   * The middlewares, which wrap the exchanges of their tunnels, the first outermost. Default none. With any, requests of these
   * tunnels take the way through the program (no lanes).
   */
  readonly middlewares?: readonly Middleware[]
  /**
   * The rules for tunnels under load: circuit breaker, requests at once with a queue, length of bodies. The first rule that names
   * a tunnel counts. Default none. A value that cannot be used: `OPTION_INVALID`. After a reload breakers and queues begin again.
   */
  readonly tunnelRules?: readonly TunnelRule[]
  /**
   * Whether each request has an id, in `X-Request-Id` for the app and the visitor, and continues or begins a trace
   * (`traceparent`, W3C Trace Context). Ids of trusted proxies are kept, those of visitors replaced. Observers learn the id.
   * Default `false`.
   */
  readonly tracing?: boolean
  /**
   * Whether responses of apps say how long they took (Server-Timing): `tunnel-wait` until the request was sent to the client,
   * `tunnel-app` from then to the head of the response, in milliseconds. Browsers show it. Requests then take the way through
   * the program (no lanes). Default `false`.
   */
  readonly serverTiming?: boolean
  /**
   * A listener for the operator alone: API, metrics, bans. Default none, and then nothing is measured. A reload cannot change it:
   * `OPTION_INVALID`.
   */
  readonly admin?: AdminOptions
  /**
   * The cluster: other servers that have tunnels of the same domains, so that a visitor and a client may reach any of them.
   * Default none. A reload cannot change it: `OPTION_INVALID`.
   */
  readonly cluster?: ClusterOptions
  /**
   * Keeps webhooks for clients that are away, on the paths that they name with `inbox`: on the disk before they are acknowledged,
   * delivered in order once the client is back. For clients with a token. Default none: registrations with `inbox` are refused
   * with `INBOX_REFUSED`. In a `cluster` give each server one of its own. A reload cannot change it: `OPTION_INVALID`.
   */
  readonly inbox?: InboxOptions
  /**
   * Makes the guards that clients ask for with `guard`: `guarding()` of this package, with the issuers that the operator trusts.
   * Default none: registrations with a guard are refused with `GUARD_UNAVAILABLE`, never served without.
   */
  readonly guarding?: GuardMaker
  /** Bounds to change; those not named keep their defaults. A value that cannot be used: `OPTION_INVALID`. */
  readonly limits?: Partial<ServerLimits>
}

/**
 * Bounds of the server that operators change; `bounds.ts` has the others. Times are milliseconds up to 2,147,483,647, sizes
 * bytes. Options that allow `0` say what it means; for others the least is 1. A value outside, or a name that is not here:
 * `OPTION_INVALID`.
 */
export interface ServerLimits {
  /** The size of a request or response head. Default 65,536. If exceeded: 431 (visitor) or 502 (origin). */
  readonly maxHeadBytes: number
  /** The number of header lines in a head. Default 200. If exceeded: 431 or 502. */
  readonly maxHeaderCount: number
  /** The length of the request target. Default 16,384. If exceeded: 414. */
  readonly maxTargetBytes: number
  /**
   * The time from the first byte to the blank line of a request head, and for the next bytes of a body that the server stores
   * completely. Default 15,000. If exceeded: 408. `0`: none.
   */
  readonly headTimeoutMs: number
  /**
   * The size of a request body, framing included, that every client of a pool gets. Default 1,048,576, more than providers of
   * webhooks send. If longer: `BODY_TOO_LARGE`.
   */
  readonly maxCopyBodyBytes: number
  /**
   * Connections of visitors at once, of all kinds, from `accept` on. Default 32,768: idle ones cost about 4 KB each, so that is
   * some 130 MB. Fewer where the process may not open as many descriptors. If exceeded: a new connection replaces an idle one,
   * or gets 503 `VISITOR_LIMIT`; raw connections are cut. The control host still responds. An `error` event reports it at most
   * once a minute.
   */
  readonly maxVisitors: number
  /**
   * Connections of one address at once, and its requests in progress over HTTP/2 and HTTP/3. A connection with a PROXY header is the
   * visitor's, others of `trustedProxies` are not counted. Default 8,192, a quarter of `maxVisitors`: offices and mobile
   * networks share addresses; at most half of `maxVisitors`, and half of the descriptors that visitors may take, so that
   * one address cannot fill a small server. The loopback is not counted, unless a value is given here or in `maxAddressRate`.
   * If exceeded: cut at once, or 503, with `ADDRESS_LIMIT` as an `error` event once a minute. `0`: none.
   */
  readonly maxAddressVisitors: number
  /**
   * The number of new connections of one address per second, and of HTTP/2 requests that it gives up. Default 1,000: a tenth of
   * what one core accepts. If exceeded: as `maxAddressVisitors`. `0`: none.
   */
  readonly maxAddressRate: number
  /** A kept-alive visitor connection without a request. Default 75,000. If exceeded: closed. `0`: none. */
  readonly idleTimeoutMs: number
  /** The time from the end of the request to the head of the response. Default 60,000. If exceeded: 504. `0`: none. */
  readonly originTimeoutMs: number
  /**
   * The longest time for the response that a client may choose for a tunnel (`responseTimeoutMs`). Default 600,000; at least
   * `originTimeoutMs`. If a client asks for more, the server refuses the tunnel with `FEATURE_UNSUPPORTED`. `0`: any time.
   */
  readonly maxResponseTimeoutMs: number
  /**
   * The time for which bytes may wait while their reader reads none: a response for its visitor, or a request for the app.
   * Default 300,000, for a paused video or a debugger: a visitor to whom nothing is sent, such as an idle WebSocket, is not
   * concerned. If exceeded: cut with `VISITOR_STALLED`, or `ORIGIN_TIMEOUT`. `0`: none.
   */
  readonly sendTimeoutMs: number
  /** The size of a request body, in bytes. Default 0: unlimited. If exceeded: 413 `BODY_TOO_LARGE`. */
  readonly maxBodyBytes: number
  /**
   * Streams open at once per tunnel, idle ones included. Default 4,096. If exceeded: the address with most gives up its newest for one with fewer; otherwise 503 `TUNNEL_BUSY`, or cut (TCP).
   */
  readonly maxStreams: number
  /** Tunnels of one client. Default 256. If exceeded: `CLIENT_LIMIT`. */
  readonly maxTunnels: number
  /**
   * The time for which an idle stream is kept for the next request. Default 4,000, below the 5 s of Node's keep-alive. `0`:
   * until the app closes it.
   */
  readonly streamIdleMs: number
  /**
   * Visitors of one UDP tunnel at once, by address and port. Default 1,024, a quarter of `maxStreams`, so that made-up
   * addresses leave the client's other tunnels their streams. If exceeded: a flow without a reply gives way after a second, or
   * the newest of the address with most; otherwise new datagrams are dropped.
   */
  readonly maxFlows: number
  /** The time for which the server reserves a name whose carrier was lost. Default 30,000. `0`: as short as can be, up to 500. */
  readonly leaseMs: number
  /**
   * The time for which a request or TCP connection waits for a client that reconnects. Default 10,000. If exceeded: 503
   * `CLIENT_RECONNECTING`, or cut. `0`: 502 `CLIENT_GONE`, or cut, at once.
   */
  readonly holdTimeoutMs: number
  /**
   * The time that a guard has for a visitor. Default 10,000: twice what the guards of this package give an issuer. If exceeded: 500
   * `PLUGIN_FAILED`, or cut.
   */
  readonly guardTimeoutMs: number
  /**
   * The time after the start in which requests for names without a client wait. Default 5,000, the longest pause between the tries of clients. If exceeded: 503 `SERVER_STARTING`; later requests get 404. HTTP only. `0`: 404 at once.
   */
  readonly startupHoldMs: number
  /** Clients connected at once. Default 10,000. If exceeded: `CLIENT_LIMIT`. */
  readonly maxClients: number
  /** The silence on a carrier after which the server sends a ping. Default 10,000. */
  readonly pingIntervalMs: number
  /**
   * The silence on a carrier after which the server closes it. Default 25,000. More than `pingIntervalMs`, or `OPTION_INVALID`.
   */
  readonly deadAfterMs: number
  /**
   * The size of a JSON wire message in either direction. Requests that the server collects for one client have twice that together; above
   * it, the largest gets 503 `TUNNEL_BUSY`. Default 64 MiB, what existing clients accept. If exceeded: 413 or 501.
   */
  readonly maxMessageBytes: number
  /** The time for which `stop()` waits for open requests. Default 30,000. If exceeded: it is cut. `0`: at once. */
  readonly drainTimeoutMs: number
  /**
   * The time for which a kept-alive connection may have been idle when `stop()` closes it; an earlier request is served. Default 1,000, above the pauses of visitors that ask one thing after the other. `0`: closed at once, and a
   * request in transit just then is lost.
   */
  readonly drainIdleMs: number
}

export const DEFAULT_LIMITS: ServerLimits = {
  maxHeadBytes: 65_536,
  maxHeaderCount: 200,
  maxTargetBytes: 16_384,
  headTimeoutMs: 15_000,
  maxCopyBodyBytes: 1_048_576,
  maxVisitors: 32_768,
  maxAddressVisitors: 8_192,
  maxAddressRate: 1_000,
  idleTimeoutMs: 75_000,
  originTimeoutMs: 60_000,
  maxResponseTimeoutMs: 600_000,
  sendTimeoutMs: 300_000,
  maxBodyBytes: 0,
  maxStreams: 4_096,
  maxTunnels: 256,
  streamIdleMs: 4_000,
  maxFlows: 1_024,
  leaseMs: 30_000,
  holdTimeoutMs: 10_000,
  guardTimeoutMs: 10_000,
  startupHoldMs: 5_000,
  maxClients: 10_000,
  pingIntervalMs: 10_000,
  deadAfterMs: 25_000,
  maxMessageBytes: 67_108_864,
  drainTimeoutMs: 30_000,
  drainIdleMs: 1_000,
}

/** The limits that leave the server unusable at 0. */
export const NEVER_ZERO: ReadonlySet<string> = new Set<keyof ServerLimits>([
  'guardTimeoutMs',
  'maxHeadBytes',
  'maxHeaderCount',
  'maxTargetBytes',
  'maxStreams',
  'maxTunnels',
  'maxClients',
  'maxCopyBodyBytes',
  'maxVisitors',
  'maxFlows',
  'pingIntervalMs',
  'deadAfterMs',
  'maxMessageBytes',
])

/** The events of a TunnelServer. */
export interface TunnelServerEvents {
  /** Called when the server listens. */
  start: { readonly port: number; readonly url: string }
  /** Called when the server has stopped. */
  stop: Readonly<Record<string, never>>
  /** Emitted when a client registered a tunnel, for the first time or after a reconnect. */
  connection: {
    readonly subdomain: string
    readonly wire: 'streams' | 'json'
    readonly remoteAddress: string
    /** The name of the token, if it has one. */
    readonly token?: string
    /** Set to `connect` if the client connected to a private service, and has no tunnel. */
    readonly kind?: 'connect'
  }
  /** Emitted when a tunnel lost its client, or was released. The client keeps the name for the lease. */
  disconnection: { readonly subdomain: string; readonly reason: string; readonly kind?: 'connect' }
  /**
   * An exchange of a tunnel is over. `status` 0: the visitor left before there was one. `bytes` is the response as sent, head
   * included; `error` the code, when it failed, and `reason` more of why: what was wrong with the app's response, or what a guard says;
   * `host` of wildcard tunnels only.
   */
  request: {
    readonly subdomain: string
    readonly host?: string
    readonly method: string
    readonly path: string
    readonly status: number
    readonly durationMs: number
    readonly bytes: number
    readonly error?: string
    readonly reason?: string
  }
  /**
   * Exchanges above `reportRate` a second, which have no `request` event. `errors`: those with a status of 500 or above, or a
   * code other than `CANCELLED`. With the `request` events the numbers are exact; the last such event comes before `stop`.
   */
  requests: { readonly requests: number; readonly errors: number; readonly bytes: number }
  /** A visitor connected to a TCP tunnel, also while its client is away. `id` counts up; `tunnel` is its name, such as `tcp-20000`. */
  visitorConnected: {
    readonly id: number
    readonly tunnel: string
    readonly remoteAddress: string
    readonly remotePort: number
  }
  /**
   * Called when that connection is closed. `bytesIn` went to the service, `bytesOut` to the visitor; `error` is the code of a
   * bad end: `CANCELLED` when the visitor reset it.
   */
  visitorDisconnected: {
    readonly id: number
    readonly tunnel: string
    readonly remoteAddress: string
    readonly remotePort: number
    readonly durationMs: number
    readonly bytesIn: number
    readonly bytesOut: number
    readonly error?: string
  }
  /**
   * A client, or its registration (`kind` and `name`), was refused. Codes such as `TOKEN_REFUSED`, `TOO_MANY_REFUSALS`,
   * `CLIENT_LIMIT`, `NOT_ALLOWED`; `NAME_TAKEN` and `PORT_TAKEN` are everyday ones. `remoteAddress` is what trusted proxies
   * say it is. `wire` `admin`: a token at the admin listener, with `ADMIN_REFUSED` or `TOO_MANY_REFUSALS`.
   */
  refused: {
    readonly remoteAddress: string
    readonly wire: 'streams' | 'json' | 'admin'
    readonly code: ErrorCode
    readonly kind?: string
    readonly name?: string
  }
  /**
   * The server works by options that are rarely meant. Code `OPEN_SERVER`: it has no tokens, and listens beyond the
   * loopback, for a domain that is not `localhost`, or behind a proxy (`publicUrl`, `basePath`, `trustedProxies`). Emitted behind `start`, and behind a reload that takes the last token away.
   */
  warning: TunnelError
  /** Called for a failure that the server survives. */
  error: Error
}
