// Contracts of plugins: a guard refuses, a middleware wraps, an observer watches. Implementations: plugins/.

import type { Branding } from './branding.ts'
import type { ErrorCode } from './errors.ts'

/** The head of a visitor's request, as guards and observers read it. Valid during the call it is given to. */
export interface VisitorHead {
  readonly method: string
  /** The request target as sent: path and query, rarely a whole URL. */
  readonly target: string
  /** The path and query, also if `target` is a whole URL. */
  readonly path: string
  /** The requested host in lower case, without port. */
  readonly host: string
  /** The requested host as sent, with its port. */
  readonly hostWithPort: string
  /** The protocol that the visitor wants to switch to, such as `websocket`. Empty without one. */
  readonly upgrade: string
  /** The first value of a header, trimmed; `name` is lower-case. */
  header(name: string): string | undefined
  /** All values of a header, in their order; `name` is lower-case. */
  headers(name: string): readonly string[]
}

/** The tunnels that a plugin of the server is for. */
export interface ForTunnels {
  /** The names, or patterns such as `team-*`. Default all tunnels. `[]`: none. */
  readonly tunnels?: readonly string[]
}

/** A visitor before its admission: one request, one upgrade, one raw connection, or the first datagram of a UDP flow. */
export interface Admittance {
  readonly kind: 'http' | 'tcp' | 'udp' | 'tls' | 'private'
  /** The name of the tunnel: its subdomain, kind and port as in `tcp-20000`, or `tcp:db` of a private service. */
  readonly tunnel: string
  /** The owner of the tunnel: the same text for all tunnels of one token; on a server without tokens, of one address. */
  readonly owner: string
  /** Address of the visitor, without port; behind trusted proxies, as they report it. */
  readonly address: string
  /** Whether the visitor used https, even if it ended at a proxy in front. Cookies depend on it. */
  readonly isSecure: boolean
  /** The head of the request, upgrades included. Only for `http`. */
  readonly head?: VisitorHead
  /**
   * The certificate request of the TLS handshake. Absent if there was none. A connection may be for another tunnel's name:
   * compare `clientCa` with your own.
   */
  readonly asked?: AskedCertificate
  /** The operator's name, contact and logo, for a page; the logo is a `data:` URL. */
  readonly branding?: Branding
}

/** A request for a certificate in a TLS handshake. */
export interface AskedCertificate {
  /** The `clientCa` of the guard that asked. */
  readonly clientCa: string
  /**
   * The visitor's certificate, if one of these authorities has signed it for clients and it is valid now. `undefined`: the
   * visitor showed none, or another.
   */
  readonly certificate: VisitorCertificate | undefined
}

/** A certificate of a visitor, as Node's `X509Certificate` describes it. */
export interface VisitorCertificate {
  /** The subject, with one field per line, such as `CN=anna`. */
  readonly subject: string
  /** The alternative names, such as `DNS:a.example, email:anna@example.com`. `undefined` if it has none. */
  readonly subjectAltName: string | undefined
  /** The SHA-256 fingerprint, in upper-case hexadecimal with colons. */
  readonly fingerprint256: string
  /** The end of its validity, as `Date.parse` reads it. */
  readonly validTo: string
  /** The certificate in DER. */
  readonly raw: Uint8Array
}

/** The name and value of a header line. */
export type HeaderLine = readonly [name: string, value: string]

/** Lets the visitor pass, with these changes to its exchange. Without any, a guard returns nothing. */
export interface Pass {
  /** Headers that the app does not get: credentials that the guard used. Any case; `_` counts as `-`. */
  readonly withoutHeaders?: readonly string[]
  /** Cookies that the app does not get. */
  readonly withoutCookies?: readonly string[]
  /**
   * The header lines for the app. The visitor's header lines with these names are removed. Trailers with any of these names: 400.
   */
  readonly requestHeaders?: readonly HeaderLine[]
  /** The header lines for the visitor, added to the app's response. */
  readonly responseHeaders?: readonly HeaderLine[]
  /** Wraps this exchange, behind the middlewares of the server. A request to switch protocols is refused: what follows a switch is not wrapped. */
  readonly middleware?: Middleware
  /**
   * Called when the admitted visit begins: a request with its response, a WebSocket, a raw connection, a flow. The guard calls
   * `cut` when the permission ends, and the connection is closed. The returned function is called when the visit is over.
   */
  readonly whileOpen?: (cut: () => void) => () => void
}

/** Refuses the visitor. Raw connections are reset and datagrams dropped, with the code in the server's events. */
export interface Refusal {
  /** The reason, in `x-localtunnels-error`, events and reports. Default `GUARD_REFUSED`. */
  readonly code?: ErrorCode
  /** The details of the reason, only for events and access logs, such as `email_unverified`. */
  readonly reason?: string
  /** The status. Default: the status of the code. */
  readonly status?: number
  readonly headers?: readonly HeaderLine[]
  /** The body, with a `content-type` among the headers. Default: the page or the JSON of the code. */
  readonly body?: string | Uint8Array
}

/** A response of the guard itself after it has read the body, such as that of a form of its own. */
export interface Reading {
  /** The maximum length of the body in bytes. If exceeded: 413. A body without a length: 400. */
  readonly maxBodyBytes: number
  /** Called with the whole body. A promise holds the request for at most `guardTimeoutMs`; if exceeded: 500 `PLUGIN_FAILED`. */
  readonly read: (body: Uint8Array) => Refusal | Promise<Refusal>
}

/** The decision of a guard. `undefined` lets the visitor pass unchanged. */
export type Verdict = undefined | Pass | Refusal | Reading

/**
 * A number of requests that pass without asking the guard for each. Threads share the counter `left`: a request subtracts one with
 * `Atomics.sub`, and passes if the counter was above 0. Otherwise the request adds the one again, and the guard is asked.
 */
export interface Allotment {
  readonly left: Int32Array<SharedArrayBuffer>
  /** Called when a connection begins to take from it. */
  began(): void
  /** Called about four times a second while connections draw from it: `left` may have grown. */
  renew(): void
  /** Called when a connection stops taking from it. */
  ended(): void
}

/**
 * Decides who may visit, before any byte is forwarded: requests of every HTTP version, upgrades, TCP and TLS connections,
 * UDP flows. A visitor must pass all guards. A guard that throws or rejects gives that visitor a 500
 * `PLUGIN_FAILED` and affects no other. A promise holds the visitor's request for at most `guardTimeoutMs`.
 *
 * ```ts
 * import { type Guard, TunnelServer } from 'localtunnels'
 *
 * const officeHours: Guard = {
 *   name: 'office-hours',
 *   admit({ head }) {
 *     const hour = new Date().getHours()
 *     if (hour >= 8 && hour < 18) return undefined
 *     return { status: 403, headers: [['content-type', 'text/plain']], body: `Closed: ${head?.path ?? ''}` }
 *   },
 * }
 *
 * const server = new TunnelServer({ port: 0, guards: [officeHours] })
 * ```
 */
export interface Guard extends ForTunnels {
  /** The name of the guard, for messages. */
  readonly name: string
  /**
   * The PEM text of authorities. Where this server ends TLS, handshakes for names of the guard's tunnels ask for a
   * certificate of them. A visitor without a certificate also reaches `admit`. For one tunnel the first guard that
   * has it counts. Default: visitors are not asked.
   */
  readonly clientCa?: string
  admit(visitor: Admittance): Verdict | Promise<Verdict>
  /**
   * Returns how many more small requests of this connection pass unchanged without a call of `admit`: GETs without a body,
   * which the lanes of the server then serve. `'all'`: as long as the guard is in use. Called for a visitor that passed a
   * moment ago. Default, and `undefined`: each is to be asked about, on the main thread.
   */
  allot?(visitor: Admittance): Allotment | 'all' | undefined
  /** Called when the guard is no longer used: its tunnel is gone, or has another guard, `next`, from now on. */
  close?(next?: Guard): void
}

/** The exchange that a middleware wraps. */
export interface ExchangeContext {
  /** The name of the tunnel. */
  readonly tunnel: string
  /** Address of the visitor, without port; behind trusted proxies, as they report it. */
  readonly address: string
}

/**
 * Wraps an exchange: may change the request, respond itself, or change the response. Runs after the guards. Costs the tunnels
 * that have one, because `Request` and `Response` are made for each exchange; bodies stream. A middleware that throws or
 * rejects gives
 * that visitor a 500 `PLUGIN_FAILED` and affects no other. Raw connections pass it by. A request to
 * switch protocols, such as a WebSocket, has the header `upgrade`; if the app agrees, the `Response` has status 101, and later bytes pass by.
 *
 * The first of the list is the outermost. `next` gives the request to the next one, and at last to the app; it may be called
 * once. The URL of the request may change its path and query; the host stays the visitor's.
 *
 * ```ts
 * import { type Middleware, TunnelServer } from 'localtunnels'
 *
 * const stamp: Middleware = {
 *   name: 'stamp',
 *   async handle(request, next) {
 *     const answer = await next(request)
 *     const stamped = new Response(answer.body, answer)
 *     stamped.headers.set('x-served-by', 'tunnel')
 *     return stamped
 *   },
 * }
 *
 * const server = new TunnelServer({ port: 0, middlewares: [stamp] })
 * ```
 */
export interface Middleware extends ForTunnels {
  /** The name of the middleware, for messages. */
  readonly name: string
  handle(
    request: Request,
    next: (request: Request) => Promise<Response>,
    context: ExchangeContext,
  ): Response | Promise<Response>
}

/** The beginning of a visit, for observers: the head of a request is complete, or a raw connection is open. */
export interface Seen extends Pick<Admittance, 'kind' | 'address'> {
  /** The id, unique in this run of the server. */
  readonly id: number
  /** The id as in `X-Request-Id`. Absent if `tracing` of the server is off, or for a raw connection. */
  readonly requestId?: string
  /** The name of the tunnel. Empty if this host has none. */
  readonly tunnel: string
  /** The method. Empty for raw connections, like the other fields of a request. */
  readonly method: string
  /** The request target as sent. It may contain secrets of the app's users. */
  readonly target: string
  /** The host in lower case, without port. */
  readonly host: string
}

/** The end of a visit. Sizes are bytes, times milliseconds. */
export interface Outcome {
  /** The status. 0 if the visitor left before the response started, or for a raw connection. */
  readonly status: number
  /** The time from the beginning to the end. */
  readonly durationMs: number
  /**
   * The time until it was sent to the client: guards, and the wait for a client that was away. The whole time, if it
   * was never sent.
   */
  readonly waitMs: number
  /** The time from then to the head of the response: the app, and the path there and back. 0 for raw connections. */
  readonly appMs: number
  /** The number of bytes, heads included. */
  readonly requestBytes: number
  readonly responseBytes: number
  /** The code of the failure or refusal. */
  readonly code?: ErrorCode
  /** The details of the reason, from a guard, or of what was wrong with the response of the app. */
  readonly reason?: string
  /** The number of the client that served it, as in `localtunnels admin clients`. */
  readonly client?: number
  /** The name of the token of that client, or of its tunnel. Absent if it has no name. */
  readonly token?: string
}

/**
 * Watches requests, upgrades, TCP and TLS connections, and cannot change anything. An exception is only an `error` event of
 * the server, counted once a minute after the first.
 *
 * ```ts
 * import { type Observer, TunnelServer } from 'localtunnels'
 *
 * const slow: Observer = {
 *   name: 'slow',
 *   tunnels: ['shop', 'team-*'],
 *   ended({ method, target }, { durationMs }) {
 *     if (durationMs > 1_000) console.error(`${method} ${target} took ${durationMs} ms`)
 *   },
 * }
 *
 * const server = new TunnelServer({ port: 0, observers: [slow] })
 * ```
 */
export interface Observer extends ForTunnels {
  /** The name of the observer, for messages. */
  readonly name: string
  /** Called when the head of a request is complete, or a raw connection is open, before the guards are asked. */
  began?(seen: Seen): void
  /**
   * The `traceparent` that the app gets with this request: that of a span of the observer's own. `parent`: what the visitor sent.
   * `undefined`: the server's own. Called after `began`; the first observer that returns one counts. With such an observer
   * `tracing` is on, and its tunnels have no lanes.
   */
  trace?(seen: Seen, parent: string | undefined): string | undefined
  /** Called before the head of the response is sent. */
  responded?(seen: Seen, status: number): void
  /** Called once for each `began`. */
  ended?(seen: Seen, outcome: Outcome): void
}

/** The access log. For some requests it gets whole lines, many at a time, in place of the calls. */
export interface LineObserver extends Observer {
  readonly accessLines: {
    /** Whether the log belongs to this observer, rather than to an object that copied this property. */
    isOf(observer: Observer): boolean
    /** Makes the constant parts of log lines. `middle`: everything between the id and the path. */
    of(
      seen: Omit<Seen, 'id' | 'target'>,
      served: Pick<Outcome, 'client' | 'token'>,
    ): { readonly sample: number; readonly query: boolean; readonly middle: Uint8Array }
    write(lines: Uint8Array, count: number): void
  }
}

/**
 * Makes the guard of a tunnel from the definition in a client's registration, which comes from a stranger and is checked here.
 * Throws, or rejects with, `OPTION_INVALID` or `GUARD_UNAVAILABLE`: the registration is refused with it.
 */
export type GuardMaker = (definition: unknown, tunnel: GuardedTunnel) => Guard | Promise<Guard>

/** The tunnel that a guard is for. */
export interface GuardedTunnel {
  readonly kind: Admittance['kind']
  /** The name as in `Admittance`; `tcp-0` or `udp-0` for a raw tunnel whose port the server still has to choose. */
  readonly name: string
  /** The owner: the same for all tunnels of one token. Default: no owner. */
  readonly owner?: string
  /** The used links and ended sessions of all servers of a cluster. `undefined` if the server is alone. */
  readonly marks?: UsedMarks
}

/** Remembers, for all servers of a cluster, links that were used and sessions that ended early. */
export interface UsedMarks {
  /** Whether this server knows that the id was used. It learns of a use on another server within a second. */
  has(id: string): boolean
  /**
   * Marks the id as used until `untilMs`, in milliseconds since 1970. Resolves with `true` for the first caller of
   * all servers; with `false` for others, and if there is no room to remember it. Rejects if the other servers cannot
   * be asked. `owner` gets no more of the room than it leaves free.
   */
  take(id: string, untilMs: number, owner?: string): Promise<boolean>
  /** Ends a session, here at once, on the other servers later. Remembered until `untilMs`, in milliseconds since 1970. */
  end(id: string, untilMs: number, owner?: string): void
  /** Whether this server knows that the session has ended. */
  hasEnded(id: string): boolean
  /** Calls `changed` after another server has ended a session. Returns a function that ends this. */
  onEnd(changed: () => void): () => void
}
