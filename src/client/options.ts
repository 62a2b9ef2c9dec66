// All options of a TunnelClient, with their defaults.

import type { GuardOptions, WebhookRule } from '../guard.ts'
import type { HandlerServer, WebSocketHandlers } from './contracts/handler.ts'
import type { ClientLimits } from './limits.ts'

/**
 * Responds to a request in process: the `fetch` of Hono, Elysia, or a plain function. Bodies stream both ways and `request.signal`
 * aborts when the visitor leaves. An error becomes a 500 `HANDLER_FAILED` for the visitor and an `error` event with the same
 * code, whose `cause` is the error. WebSockets: `server.upgrade(request)` with the option `websocket`, as for `Bun.serve`, or
 * `upgradeWebSocket(request)`, as in Deno.
 */
export type FetchHandler = (
  request: Request,
  server: HandlerServer,
) => Response | undefined | Promise<Response | undefined>

/** The place of the app. Times are milliseconds from 1 to 2,147,483,647; a value outside: `OPTION_INVALID`. */
export interface OriginOptions {
  /**
   * The port of the app on `host`, 1 to 65535. Exactly one of `port`, `url`, `unix`, `fetch`, `folder` and `later` says where
   * the app is; none or two: `OPTION_INVALID`.
   */
  readonly port?: number
  /** The host of the app. Default `localhost`, dialled on both address families. */
  readonly host?: string
  /**
   * The app as an `http://` or `https://` URL, such as `https://localhost:3000`. With a path, a query or a login: `OPTION_INVALID`.
   */
  readonly url?: string
  /** The path of the app's unix socket. */
  readonly unix?: string
  /** The app as a function: no port at all. An error becomes a 500 `HANDLER_FAILED` and an `error` event. */
  readonly fetch?: FetchHandler
  /** The handlers of WebSockets that `fetch` made with `server.upgrade`. Without `fetch`: `OPTION_INVALID`. */
  readonly websocket?: WebSocketHandlers
  /**
   * The app as a folder of files, relative to the working directory. Names that begin with a dot are not served, nor what
   * links outside the folder lead to. A missing folder is `OPTION_INVALID`.
   */
  readonly folder?: string
  /** Whether a missing page of `folder` gets `/index.html`. Default `false`. */
  readonly spa?: boolean
  /**
   * Whether the app is not there yet. `client.forward(3000)` says where it is; until then its visitors get 502
   * `ORIGIN_REFUSED`. Only for the client's own tunnel. Default `false`.
   */
  readonly later?: boolean
  /**
   * Whether to accept any certificate of an `https://` app. Default `false`. This and the next two without such an app:
   * `OPTION_INVALID`.
   */
  readonly appInsecure?: boolean
  /**
   * The PEM text of an authority to trust for the certificate of an `https://` app, in addition to the usual ones. Default none.
   */
  readonly appCa?: string
  /** The name for an `https://` app in the TLS handshake (SNI), which its certificate must have. Default: the host of its URL. */
  readonly appServerName?: string
  /** The time that the app has to accept a connection. Default 10,000 ms. If exceeded: 502 `ORIGIN_UNREACHABLE`. */
  readonly originConnectTimeoutMs?: number
  /**
   * The Host header of the app: `preserve` (default) keeps the visitor's; `rewrite` replaces it with the app's own; any other
   * value is the Host that the app gets. `rewrite` says which other headers follow.
   */
  readonly hostHeader?: string
  /**
   * Headers in which the names of app and tunnel are translated, never bodies: of responses `location` and `cookies` (Domain and Path), of
   * requests `referer`, `origin` and `destination` (WebDAV). Default: all of them with a `hostHeader` or a prefix; otherwise none. With any, the
   * tunnel has no lanes. An unknown one: `OPTION_INVALID`.
   */
  readonly rewrite?: readonly ('location' | 'cookies' | 'referer' | 'origin' | 'destination')[]
  /**
   * The path that is removed from the visitor's path, such as `/app`. Default none. Requests for other paths get 404 `FILTERED_OUT`.
   */
  readonly stripPrefix?: string
  /** Path that the app gets in front of the visitor's path, such as `/app`. Default none. It does not control access. Not a path: `OPTION_INVALID`. */
  readonly addPrefix?: string
}

/** The app for requests below a path. */
export interface RouteOptions extends OriginOptions {
  /** The protocol of this app, as `protocol` of the tunnel. Default `http/1.1`, whatever the tunnel's own app speaks. */
  readonly protocol?: 'http/1.1' | 'h2c' | 'h2'
}

/** The options of all kinds of tunnels. */
export interface SharedTunnelOptions {
  /** A token for this tunnel alone. Default: that of the connection. If the token does not allow it: `NOT_ALLOWED`. */
  readonly token?: string
  /**
   * The access rules and sign-in methods of the tunnel ([guards.md](guards.md)). Default: everybody. A server that does not
   * know guards, or the JSON wire: `FEATURE_UNSUPPORTED`, and no tunnel. If the server cannot do something: `OPTION_INVALID` or
   * `GUARD_UNAVAILABLE`.
   */
  readonly guard?: GuardOptions
  /**
   * The name of a private service: it has no public address, and a client with a token for it connects with `connectTo`. Default: the tunnel
   * is public. Codes: `NAME_INVALID` if it is not 1 to 63 of a-z, 0-9 and `-`; `NAME_TAKEN`; `OPTION_INVALID` with `subdomain`, `remotePort`
   * and other options of public addresses; `FEATURE_UNSUPPORTED` with an older server and the JSON wire.
   */
  readonly private?: string
}

/**
 * The options of health checks. The first check decides alone; then it takes several in a row to change the verdict. Times are
 * milliseconds from 1 to 2,147,483,647.
 */
export interface HealthOptions {
  /**
   * The kind of the check. `tcp`: a connection is enough. `http`: a GET must return 200 to 399. Default `http` with a
   * `path`, otherwise `tcp`.
   */
  readonly kind?: 'tcp' | 'http'
  /** The path of the check, such as `/health`. Default `/`. */
  readonly path?: string
  /** The time from the end of a check to the next one. Default 10,000 ms. */
  readonly intervalMs?: number
  /** The time that a check may take. Default 3,000 ms. If exceeded: it failed. */
  readonly timeoutMs?: number
  /** Checks in a row that must pass for an unhealthy app to become healthy. Default 1. */
  readonly healthyAfter?: number
  /** Checks in a row that must fail for a healthy app to become unhealthy. Default 3. */
  readonly unhealthyAfter?: number
}

/** Webhooks whose signatures are checked. */
export interface VerifyOptions extends WebhookRule {
  /** The paths that webhooks come to; `*` at the end stands for anything. Default `/*`. At most 32. */
  readonly paths?: readonly string[]
  /** Whether a request to these paths without a valid signature gets 401 and does not reach the app. Default `false`. */
  readonly require?: boolean
}

/**
 * Every client that shares the name gets a copy of each request, and the visitor one response. Bodies are bounded by the server's
 * `maxCopyBodyBytes`. A WebSocket goes to one client.
 */
export interface CopyPool {
  readonly to: 'all'
  /**
   * The response that the visitor gets; the setting of the first client counts. `first` (default): the first below 400, or the
   * first of all when there is none. A label: the response of that client, while it is connected and takes the request, otherwise as
   * `first`. 200 to 299: that status at once.
   */
  readonly response?: string | number
  /** The name of this client for `response` of the others: letters, digits, `.`, `_` and `-`, at most 63. Default: nothing. */
  readonly label?: string
}

/** A response in place of an app that is away. It contains no scripts that run, and loads nothing. Give `file` or `text`. */
export interface AwayOptions {
  /** A file of at most 32 KiB in UTF-8: .html, .htm, .txt or .json. Browsers get HTML, and programs JSON with the code. Read at each registration. */
  readonly file?: string
  /** The plain text of the page. */
  readonly text?: string
  /** The status: 200, or 400 to 599. Default: that of the code, such as 502 or 503. */
  readonly status?: number
}

/** An HTTP tunnel: `client.http(…)`. */
export interface HttpTunnelOptions extends OriginOptions, SharedTunnelOptions {
  /**
   * The app gets webhooks, whose signatures are checked on this machine: the inspector shows the result, and with `require`
   * a request without a valid one gets 401 `SIGNATURE_INVALID` and does not reach the app. Not together with
   * `protocol`. Default: nothing is checked. If it cannot be used: `OPTION_INVALID`.
   */
  readonly verify?: VerifyOptions
  /**
   * The name to ask for. Default of the client's own tunnel: `TUNNEL_SUBDOMAIN`, otherwise a slug of `APP_NAME`, or adjective-noun.
   * If in use: `name-2`, `name-3`, then random ones, then `NAME_TAKEN`.
   */
  readonly subdomain?: string
  /**
   * Whether to fail with `NAME_TAKEN` if the name is in use, instead of trying other names. If in use: `NAME_TAKEN` at once, also
   * when it is lost to another client later. Without a name to ask for: `OPTION_INVALID`. Default `false`.
   */
  readonly exact?: boolean
  /**
   * Paths with origins of their own: `{ '/api': 8080 }`, the value a port or what says where an app is. `/api` means
   * `/api`, `/api?…` and all of `/api/`; the longest one wins. At most 32. Streams wire only, otherwise `KIND_REFUSED`.
   */
  readonly routes?: Readonly<Record<string, number | RouteOptions>>
  /**
   * Shares the name with other clients that ask for it like this; requests go to the one with the fewest in progress. With
   * `affinity` a visitor stays with the client it had first, recognised by a cookie or by its address; the setting of the
   * first client counts. Default: the name is this client's alone. A name that another client does not share: `NAME_TAKEN`.
   * Streams wire only.
   *
   * `{ to: 'all' }`: every client gets a copy of each request, as webhooks for several developers; see `CopyPool`. Clients that share
   * the name in the other way: `POOL_DIFFERS`.
   */
  readonly pool?: boolean | { readonly affinity: 'none' | 'cookie' | 'address' } | CopyPool
  /**
   * The requests that the app gets, as a filter of `docs/inspector.md`: `POST path:/hooks/* body:"invoice.paid"`. Its keys are
   * those of a request: `method`, `path`, `host`, `header`, `body`. Others get 404 and `FILTERED_OUT`, or by another client of
   * the pool. With `body` a request is kept until it is complete, up to 1 MiB; a longer one: `BODY_TOO_LARGE`. Default: all of
   * them. If it is not such a filter: `OPTION_INVALID`.
   */
  readonly filter?: string
  /**
   * The time that the app has from the end of a request to the head of the response. Milliseconds. Default: `originTimeoutMs` of the
   * server. Visitors of a slower app get 504 `ORIGIN_TIMEOUT`. A time above the server's `maxResponseTimeoutMs` is
   * `FEATURE_UNSUPPORTED`.
   * Streams wire only.
   */
  readonly responseTimeoutMs?: number
  /** The page that visitors get while the app or the client is away. Default: the server's own page. Streams wire only. */
  readonly away?: AwayOptions
  /**
   * Collects request bodies without a length on this machine, up to this number of bytes, and gives the app `Content-Length`, for apps that
   * cannot read chunked bodies. A longer body gets 413 `BODY_TOO_LARGE`. Default: bodies pass as they arrive. Not together with
   * `protocol`.
   */
  readonly collectBodyBytes?: number
  /**
   * Checks of the app by this client. While it is unhealthy it gets no new visitors: those of a pool go to others, otherwise 503
   * `ORIGIN_UNHEALTHY`. Default none. Streams wire only.
   */
  readonly health?: HealthOptions
  /**
   * Whether the tunnel also receives requests for all hosts below its own, such as `a.b.app.example.dev`. Default `false`.
   * Streams wire only.
   */
  readonly wildcard?: boolean
  /**
   * The hosts below the name for which a proxy in front of the server may get certificates, whatever strangers ask for: the
   * labels before the name, such as `['anna', 'a.b']`. Default none: hosts that the app responds for. At most 100, of which
   * the server takes 20. Other values are `OPTION_INVALID`, as is this option without `wildcard`.
   */
  readonly wildcardHosts?: readonly string[]
  /**
   * Hosts of your own that the tunnel has in addition to its name, such as `['www.customer.example']`: their DNS points to
   * the server, and the token allows them. Default none. At most 32, otherwise `OPTION_INVALID`. If another tunnel has it:
   * `HOST_TAKEN`; if the token does not allow it: `NOT_ALLOWED`. Streams wire only.
   */
  readonly hosts?: readonly string[]
  /**
   * The protocol of the app. `h2c`: HTTP/2 without TLS, as gRPC servers use. The server then speaks it as well, many exchanges on
   * each connection, to whatever visitors speak. For `port`, `unix` and an `http://` URL. `h2`: the same over TLS, for an
   * `https://` URL whose app chooses it by ALPN, otherwise `ORIGIN_TLS`. Default `http/1.1`. Routes name their own. WebSockets:
   * where the app takes extended CONNECT, otherwise over HTTP/1.1 on the same port (`h2c`), otherwise 501 `ORIGIN_NO_WEBSOCKET`. Streams
   * wire only.
   */
  readonly protocol?: 'http/1.1' | 'h2c' | 'h2'
  /**
   * The paths whose POST, PUT and PATCH requests the server stores while no client has the tunnel, and delivers in order when
   * one is back ([webhooks.md](webhooks.md)). Needs a name, a token, and an operator who allows it, otherwise `INBOX_REFUSED`.
   * Default none. Streams wire only.
   */
  readonly inbox?: InboxWishOptions
}

/** Webhooks that wait on the server. */
export interface InboxWishOptions {
  /** The paths: `/hooks/github`, or `/hooks/*` for all below. 1 to 32 of at most 256 characters, otherwise `OPTION_INVALID`. */
  readonly paths: readonly string[]
  /** The status that their sender gets: 200, 201, 202 or 204. Default 202. */
  readonly status?: number
}

/** A TCP tunnel: `client.tcp(…)`. Exactly one of `port` and `unix` says where connections go. */
export interface TcpTunnelOptions extends SharedTunnelOptions {
  /** The port of the service on `host`, 1 to 65535. */
  readonly port?: number
  /** The host of the service. Default `localhost`, dialled on both address families. */
  readonly host?: string
  /** The path of the service's unix socket. */
  readonly unix?: string
  /** The public port to ask for. Default any of the server's range. If in use: `PORT_TAKEN`; outside: `NOT_ALLOWED`. */
  readonly remotePort?: number
  /**
   * Shares the public port with other clients that ask for it like this; connections go to the one with the fewest open,
   * or by the visitor's address. Default: the port is this client's alone.
   */
  readonly pool?: boolean | { readonly affinity: 'none' | 'address' }
  /** Checks of the service by this client. While it is unhealthy connections are cut, or go to others of a pool. Default none. */
  readonly health?: HealthOptions
  /**
   * Tells the service who connects: each connection to it begins with a PROXY header of this version, as HAProxy sends
   * it. Configure the service to expect one. Default none. Any other value is `OPTION_INVALID`.
   */
  readonly proxyProtocol?: 'v1' | 'v2'
  /** The time that the service has to accept a connection. Default 10,000 ms. If exceeded: the visitor's is cut. */
  readonly originConnectTimeoutMs?: number
}

/** The options that TCP and TLS tunnels share. */
export type RawTunnelOptions = Omit<TcpTunnelOptions, 'remotePort'>

/**
 * A TLS tunnel: `client.tls(…)`. Visitors reach the service by the server name they ask for, and only the service can read
 * what they send: it has the certificate. Exactly one of `port` and `unix` says where it is.
 */
export interface TlsTunnelOptions extends RawTunnelOptions {
  /** The name to ask for, as of an HTTP tunnel. Default adjective-noun. If in use: `NAME_TAKEN`, because the certificate has it. */
  readonly subdomain?: string
  /** Whether the tunnel also receives connections for all names below its own. Default `false`. */
  readonly wildcard?: boolean
  /**
   * Hosts of your own that the tunnel has in addition to its name, such as `['www.customer.example']`: their DNS points to
   * the server, and the token allows them. Default none. At most 32, otherwise `OPTION_INVALID`. If another tunnel has it:
   * `HOST_TAKEN`; if the token does not allow it: `NOT_ALLOWED`. Streams wire only.
   */
  readonly hosts?: readonly string[]
}

/** A UDP tunnel: `client.udp(…)`. */
export interface UdpTunnelOptions extends SharedTunnelOptions {
  /** The UDP port of the service on `host`, 1 to 65535. */
  readonly port: number
  /** The host of the service. Default `localhost`, which is 127.0.0.1 here: a datagram cannot try both address families. */
  readonly host?: string
  /** The public port to ask for. Default any of the server's range. If in use: `PORT_TAKEN`; outside: `NOT_ALLOWED`. */
  readonly remotePort?: number
  /**
   * The time without datagrams after which a visitor's address and port is forgotten, as in the NAT of a router. Default 60,000
   * ms. If exceeded: the flow ends at both ends, and the next datagram begins another, from another port to the service.
   */
  readonly idleTimeoutMs?: number
}

/** A private service, and where it is found on this machine. */
export interface ConnectOptions {
  /** The name of the service, such as `db`; of a UDP service, `udp:dns`. Any other text is `NAME_INVALID`. */
  readonly name: string
  /** The port of 127.0.0.1 and ::1 (UDP: of 127.0.0.1) where programs find the service. Default any free port. A port in use is `PORT_IN_USE`. */
  readonly port?: number
  /** A token for this service alone. Default: the token of the connection. A token without the service in `connect` is `NOT_ALLOWED`. */
  readonly token?: string
  /** The time after which a silent UDP flow ends. Default 60,000 ms. The next datagram then begins another flow. */
  readonly idleTimeoutMs?: number
}

/** Options of the inspector. Sizes are bytes; `0` is refused with `OPTION_INVALID` unless said otherwise. */
export interface InspectOptions {
  /**
   * All that is kept in memory. Default 33,554,432 (32 MiB): a day of webhooks. At least 1,048,576. At the limit the oldest
   * exchange that is not pinned is dropped; pinned ones use at most half.
   */
  readonly memory?: number
  /**
   * The stored bytes of each body, WebSocket message and server-sent event. Default 262,144 (256 KiB): most JSON and HTML.
   * Further bytes are counted.
   */
  readonly maxBody?: number
  /** Exchanges kept. Default 1,000. At the limit the oldest that is not pinned is dropped. */
  readonly maxExchanges?: number
  /**
   * The maximum number of stored WebSocket messages and server-sent events of all exchanges together. Default 10,000. At the
   * limit the oldest is dropped.
   */
  readonly maxFrames?: number
  /**
   * Requests a second, behind a burst of `maxExchanges`, above which only some are captured: a person reads no more, and
   * the others are as fast as without the inspector. Default 50. `0`: every request is captured, whatever it costs.
   */
  readonly rate?: number
  /** Names of fields of headers, forms, JSON and queries that are masked besides Authorization, Cookie, `password` and similar ones. Default none. */
  readonly secrets?: readonly string[]
  /**
   * The port of the page and the API on 127.0.0.1 and ::1. Default 4040, otherwise the next that is free. `0`: any free one.
   * `false`: neither, for programs that read `tunnel.exchanges`. If the given port is in use: `PORT_IN_USE`.
   */
  readonly port?: number | false
  /**
   * The path of a SQLite file, readable only by you (mode 0600), that stores exchanges across restarts, within the same bounds.
   * Bodies and secrets are in it unchanged. Default none: nothing is written to disk. In use by another client, or not
   * usable: `STORE_FAILED`. On Node it needs 22.13.
   */
  readonly store?: string
}

/** A server of several, with settings that the others do not get. */
export interface OneServer {
  /** The address, as in `server`. */
  readonly url: string
  /** The token instead of the client's; empty: none. */
  readonly token?: string
  /** The authority instead of the client's. */
  readonly ca?: string
}

/**
 * Options of a client: the connection, and the HTTP tunnel that `connect()` registers. Without `port`, `url`, `unix`,
 * `fetch` or `folder` there is no such tunnel, and `client.http(…)`, `client.tcp(…)`, `client.udp(…)` add them. Times are
 * milliseconds from 1 to 2,147,483,647; a value outside: `OPTION_INVALID`.
 */
export interface TunnelClientOptions extends HttpTunnelOptions {
  /**
   * The tunnel server: `ws://`, `wss://`, `http://`, `https://` or `host[:port]`, which is https unless the host is this
   * machine. A path may follow, for a server below a path of a site: `https://site.example/tunnel`. Default: `TUNNEL_SERVER` from the
   * environment, otherwise `http://localhost:8080`.
   * Several servers of one cluster, each as above, or with what is its own: when one cannot be reached or leaves, the client goes to
   * the next at once. The variable separates them by commas. At most 16; none: `OPTION_INVALID`.
   */
  readonly server?: string | readonly (string | OneServer)[]
  /**
   * The token for the server. Default: `TUNNEL_TOKEN` from the environment, otherwise none. Empty: none, whatever the environment
   * says. To another machine it goes over TLS only, otherwise `TOKEN_UNENCRYPTED`.
   */
  readonly token?: string
  /** Whether tokens may go to another machine without TLS, where everybody on the way can read them. Default `false`. */
  readonly insecureToken?: boolean
  /**
   * The wire protocol: `auto` (default) speaks streams, and JSON if the server negotiates nothing. `streams` rejects such a
   * server with `SERVER_REFUSED`; `json` offers nothing else.
   */
  readonly wire?: 'auto' | 'streams' | 'json'
  /** Whether to verify the certificate of the server. Default `true`. */
  readonly verifyServer?: boolean
  /** The PEM text of an authority to trust for the server's certificate, in addition to those of the runtime. Default none. */
  readonly ca?: string
  /**
   * The client's own certificate with its chain as PEM, for servers with `clientCa`. Default none. Without `key`:
   * `OPTION_INVALID`.
   */
  readonly cert?: string
  /** The private key of `cert` as PEM. Default none. If it does not fit: `OPTION_INVALID`. */
  readonly key?: string
  /**
   * The public key that the server's certificate must have, in addition: `sha256//` and base64 of its SHA-256, as in curl.
   * Default none. A server with a different key is `SERVER_UNTRUSTED`; a malformed value is `OPTION_INVALID`.
   */
  readonly pin?: string
  /**
   * The proxy on the way to the server, `http://`, `https://`, `socks5://` or `socks5h://` with `user:password@` if need
   * be (special characters as `%40`). `false` or empty: none. Default: `HTTPS_PROXY` or `HTTP_PROXY`, as the server's
   * scheme, otherwise `ALL_PROXY`, except for what `NO_PROXY` lists and this machine. Unusable: `OPTION_INVALID`.
   */
  readonly proxy?: string | false
  /**
   * A `node:http` Agent that makes the connection to the server, for ways that `proxy` does not know. Default none. With
   * one the carrier is made by `ws`, and bulk stays on it, because links would not go that way.
   */
  readonly agent?: object
  /** The time from the dial to the registration. Default 10,000 ms. If exceeded: `SERVER_UNREACHABLE`. */
  readonly connectTimeoutMs?: number
  /** Whether to reconnect after a lost connection. Default `true`: tries without limit, first at once, then with full jitter. */
  readonly reconnect?: boolean
  /** The longest pause between attempts. Default 5,000 ms; for the first 60, half a minute, at most 1,000 ms. */
  readonly maxBackoffMs?: number
  /** The silence on the carrier after which the client sends a ping. Default 10,000 ms. */
  readonly pingIntervalMs?: number
  /**
   * The silence on the carrier after which the client closes it. Default 20,000 ms: a dead carrier is noticed within 25 s. More
   * than `pingIntervalMs`, or `OPTION_INVALID`.
   */
  readonly deadAfterMs?: number
  /**
   * The time between requests that the client sends to its own public URL, while the event `reach` has a listener. Default
   * 60,000 ms. A probe takes 5 s at most, and the next one waits for it.
   */
  readonly probeIntervalMs?: number
  /**
   * The time for which `client.close()`, or the `close()` of a tunnel, waits for open requests. Default 10,000 ms, as long as
   * supervisors such as systemd and Docker wait, or longer. If exceeded: it is cut.
   */
  readonly drainTimeoutMs?: number
  /**
   * The folder for secrets with which a client that was killed gets its names and ports back at once, while the server reserves
   * them. A file for each (mode 0600, the folder 0700), removed when the name is returned. A client that runs next to another
   * one with the same name gets `name-2`, as without. Default none. Streams wire only, and not for pools. Of guarded HTTP
   * tunnels with a name also what signs their sessions and links, for good. A folder that cannot be written: an `error` event,
   * `STORE_FAILED`.
   */
  readonly stateFolder?: string
  /**
   * Requests a second that have `request` and `response` events of their own. Above it, `requests` events pass on
   * counts about twice a second. For programs that show requests to people, who read no more than 30 lines a second:
   * a report costs more than the request. Default `0`: all have their own events, as always on the JSON wire and with
   * older servers. Not a whole number from 0: `OPTION_INVALID`.
   */
  readonly reportRate?: number
  /**
   * Captures requests with their responses, WebSocket messages and connections for `tunnel.exchanges`, the page and the API of
   * the inspector ([docs/inspector.md](inspector.md)), which listen on 127.0.0.1 and ::1 only. `true`: with its defaults. Default
   * `false`: nothing is captured, and nothing of it is loaded.
   */
  readonly inspect?: boolean | InspectOptions
  /** Bounds to change; those not named keep their defaults. A value that cannot be used: `OPTION_INVALID`. */
  readonly limits?: Partial<ClientLimits>
}

/** The state of a client. `closing`: `close()` waits for what is in progress. `closed` may `connect()` again, as `idle` may. */
export type TunnelState = 'idle' | 'connecting' | 'connected' | 'reconnecting' | 'closing' | 'closed'

/** The events of a TunnelClient. */
export interface TunnelClientEvents {
  /** Emitted when the server routes the URL (of the first tunnel) to this client; also after each reconnect. */
  connected: { readonly url: string; readonly subdomain: string; readonly wire: 'streams' | 'json' }
  /**
   * Emitted when a tunnel is granted: at first, after each reconnect, and when it moves to another URL. If the server
   * revokes a tunnel, there is an `error` event; for the last one, `close`.
   */
  registered: {
    readonly kind: 'http' | 'tcp' | 'udp' | 'tls'
    readonly name: string
    readonly url: string
  }
  /**
   * Emitted when visitors cannot reach the first tunnel by its public URL although the client is connected (two
   * probes in a row failed), and when they can again. The client probes every `probeIntervalMs` while this event has
   * a listener. HTTP tunnels only.
   */
  reach: { readonly url: string; readonly isReachable: boolean }
  /** Emitted when the carrier is lost. */
  disconnected: { readonly error?: Error }
  /** Emitted when another attempt begins after `delayMs`. */
  reconnecting: { readonly attempt: number; readonly delayMs: number }
  /** Emitted when a visitor's request arrived. If the server refused it before, `response` follows at once, with the code. */
  request: {
    readonly id: number
    /** The name of the tunnel. */
    readonly tunnel: string
    /** The requested host, for wildcard tunnels only. */
    readonly host?: string
    readonly method: string
    readonly path: string
  }
  /** Emitted when the app switched protocols. `response`, with status 101, follows when the connection is closed. */
  upgraded: {
    readonly id: number
    readonly tunnel: string
    readonly host?: string
    readonly method: string
    readonly path: string
  }
  /**
   * Called when a response is complete, or failed: then `error` has the code, and `reason` the fault of the app's response.
   * `CANCELLED`: the visitor left; `status` is 0 when there was no response yet. `CARRIER_LOST`: `status` and `bytes` are 0.
   * `bytes` went to the visitor. `event`: the name of a webhook's event or GraphQL operation, with `inspect` only.
   */
  response: {
    readonly id: number
    readonly tunnel: string
    readonly host?: string
    readonly method: string
    readonly path: string
    readonly status: number
    readonly durationMs: number
    readonly bytes: number
    readonly error?: string
    readonly reason?: string
    readonly event?: string
  }
  /**
   * Requests above `reportRate` a second, which have no events of their own: how many started and ended (`requests`) since the
   * last such event, and how many are in progress. `errors`: those with a status of 500 or above, or a code other than
   * `CANCELLED`.
   */
  requests: {
    readonly started: number
    readonly requests: number
    readonly errors: number
    readonly bytes: number
    readonly inFlight: number
  }
  /** Emitted when the health checks of a tunnel have another result; `error` says why the app is unhealthy. */
  health: { readonly tunnel: string; readonly isHealthy: boolean; readonly error?: Error }
  /** Emitted when a visitor of a TCP tunnel connected. `tunnel` is its name, such as `tcp-20000`. */
  visitorConnected: {
    readonly id: number
    readonly tunnel: string
    readonly remoteAddress: string
    readonly remotePort: number
  }
  /**
   * Emitted when that connection is closed. `bytesIn` went to the service, `bytesOut` to the visitor. `error` is the
   * code of a failure: `CANCELLED` if the visitor reset the connection, `CARRIER_LOST` with 0 bytes if the connection
   * to the server was lost.
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
  /** Emitted for a failure after which the client continues. */
  error: Error
  /** Emitted when the client ends: after `disconnect()`, or when reconnecting is off or cannot help. */
  close: { readonly error?: Error }
}
