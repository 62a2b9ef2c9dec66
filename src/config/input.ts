// Types of configuration files. Written from the tables of schema/ by test/config/docs.test.ts; do not edit.

/** The table `limits`. */
export interface ClientLimits {
  /** `maxStreams` of the library. Default: `8192`. */
  readonly maxStreams?: number
  /** `maxLinks` of the library. Default: `32`. */
  readonly maxLinks?: number
  /** `maxStreamWindowBytes` of the library. Default: `4MiB`. */
  readonly maxStreamWindow?: number | string
  /** `maxSessionWindowBytes` of the library. Default: `64MiB`. */
  readonly maxSessionWindow?: number | string
  /** `maxCarrierBacklogBytes` of the library. Default: `4MiB`. */
  readonly maxCarrierBacklog?: number | string
  /** `maxCollectedBytes` of the library. Default: `256MiB`. */
  readonly maxCollected?: number | string
}

/** The table `service.pool`. */
export interface ClientServicePool {
  /** Whether a visitor stays with one client: by a cookie (http), by the address, or not. Default: `none`. */
  readonly affinity?: 'none' | 'cookie' | 'address'
}

/** The table `service.health`. */
export interface ClientServiceHealth {
  /** `tcp`: whether the app accepts connections; `http`: whether `path` answers 2xx or 3xx. Default: `tcp`. */
  readonly kind?: 'tcp' | 'http'
  /** Path asked for by `http`. Default: `/`. */
  readonly path?: string
  /** From one check to the next. Default: `10s`. */
  readonly interval?: number | string
  /** Longest wait for an answer; above, the check has failed. Default: `3s`. */
  readonly timeout?: number | string
  /** Good checks in a row until visitors are sent again. Default: 1. */
  readonly healthyAfter?: number
  /** Failed checks in a row until visitors are sent no more. Default: 3. */
  readonly unhealthyAfter?: number
}

/** The table `service`. */
export interface ClientService {
  /** What visitors speak: requests, raw connections, datagrams, TLS that only the app can read, or files of a folder. Default: `folder` if there is a `folder`, else `http`. */
  readonly kind?: 'http' | 'tcp' | 'udp' | 'tls' | 'folder'
  /** Port of the app. Of `port`, `url`, `unix` and `folder` there is exactly one. */
  readonly port?: number
  /** Host of the app, beside `port`. Default: `localhost`. */
  readonly host?: string
  /** The app as an `http://` or `https://` URL; path and query are not used. */
  readonly url?: string
  /** Path of the app's unix socket. */
  readonly unix?: string
  /** Folder whose files are served. */
  readonly folder?: string
  /** Whether paths without a file get `index.html`, as apps with their own router want. Default: `false`. */
  readonly spa?: boolean
  /** The name to ask for. Default: the service's name. */
  readonly subdomain?: string
  /** Whether the names below the subdomain are its, too: `*.shop` beside `shop`. Default: `false`. */
  readonly wildcard?: boolean
  /** With `wildcard`: names below that may have certificates, such as `anna` and `a.b`. Default: those that the app answers for. */
  readonly wildcardHosts?: readonly string[]
  /** What the app sees as Host: `preserve` (the visitor's), `rewrite` (the app's own, Origin too), or a host. Default: `preserve`. */
  readonly hostHeader?: string
  /** Paths with an app of their own: a port, `host:port`, a URL, `unix:/path`. `/api` is `/api` and all below it; the longest wins. Default: none. */
  readonly routes?: Readonly<Record<string, number | string>>
  /** Whether the certificate of an `https://` app must be a trusted one. On this machine's own addresses it need not. Default: `true`. */
  readonly verifyOrigin?: boolean
  /** How long the app may take to accept a connection. Default: `10s`. */
  readonly originConnectTimeout?: number | string
  /** Public port to ask for, one of the server's range. Default: any. */
  readonly remotePort?: number
  /** PROXY protocol header in front of each connection, which tells the app the visitor's address. Default: none. */
  readonly proxyProtocol?: 'v1' | 'v2'
  /** How long a visitor who sends nothing keeps the same socket to the app. Default: `60s`. */
  readonly idleTimeout?: number | string
  /** Shares the name or port with other clients that ask for the same in this way, so that visitors are spread over them. Default: `false`. */
  readonly pool?: boolean | ClientServicePool
  /** Looks whether the app is well, and sends it no visitors while it is not. Default: not looked. */
  readonly health?: ClientServiceHealth
  /** Token for this service alone. Default: the file's `token`. */
  readonly token?: string
}

/** What the file of a client may say. */
export interface ClientFile {
  /** The tunnel server: `wss://`, `https://`, `ws://`, `http://` or `host[:port]`, which is https unless it is this machine. Default: `TUNNEL_SERVER`, else the default server, else one in the same process. */
  readonly server?: string
  /** Token of the server. Default: that of `localtunnels login`; `TUNNEL_TOKEN`, if the server is that of `TUNNEL_SERVER`. */
  readonly token?: string
  /** Whether tokens may go to another machine without TLS, where everybody on the way can read them. Default: `false`. */
  readonly insecureToken?: boolean
  /** Proxy on the way to the server: `http://`, `https://`, `socks5://` or `socks5h://`, with `user:password@` if need be. `""`: none. Default: `HTTPS_PROXY`, `HTTP_PROXY` or `ALL_PROXY`. */
  readonly proxy?: string
  /** `streams`, `json`, or what the server can. Default: `auto`. */
  readonly wire?: 'auto' | 'streams' | 'json'
  /** Whether the server's certificate must be a trusted one. Default: `true`. */
  readonly verifyServer?: boolean
  /** PEM file of an authority to trust for the server's certificate, besides the usual ones. Default: none. */
  readonly ca?: string
  /** From the dial to the registration. Default: `10s`. */
  readonly connectTimeout?: number | string
  /** Whether a lost connection is made anew, however often that takes. Default: `true`. */
  readonly reconnect?: boolean
  /** Longest pause between tries. Default: `5s`. */
  readonly maxBackoff?: number | string
  /** Silence on the connection before it is pinged. Default: `10s`. */
  readonly pingInterval?: number | string
  /** Silence on the connection before it is given up; more than `ping-interval`. Default: `20s`. */
  readonly deadAfter?: number | string
  /** Bounds to change. Default: those of the table below. */
  readonly limits?: ClientLimits
  /** What is shared: a table for each service, named as you like. */
  readonly services: Readonly<Record<string, ClientService>>
}

/** The table `tls`. */
export interface ServerTls {
  /** PEM file of the certificate chain. */
  readonly cert: string
  /** PEM file of its private key. */
  readonly key: string
}

/** The table `token`. */
export interface ServerToken {
  /** The secret itself. */
  readonly token: string
  /** Names that it may have; `*` stands for any letters, digits and `-`. Default: all. */
  readonly names?: readonly string[]
  /** Kinds of tunnel that it may have. Default: all; with `names`: `http`, `tls`, and those of `tcp-ports` and `udp-ports` if given. */
  readonly kinds?: readonly ('http' | 'tcp' | 'udp' | 'tls')[]
  /** Public TCP ports that it may have. Default: the server's. */
  readonly tcpPorts?: number | string
  /** Public UDP ports that it may have. Default: the server's. */
  readonly udpPorts?: number | string
  /** Tunnels of all its clients together, leases included. Default: `limits.max-token-tunnels`. */
  readonly maxTunnels?: number
  /** Public ports of all its clients together, leases included. Default: `limits.max-token-ports`. */
  readonly maxPorts?: number
  /** Clients connected at once with it. Default: `limits.max-token-clients`. */
  readonly maxClients?: number
}

/** The table `limits`. */
export interface ServerLimits {
  /** `maxHeadBytes` of the library. Default: `64KiB`. */
  readonly maxHead?: number | string
  /** `maxHeaderCount` of the library. Default: `200`. */
  readonly maxHeaderCount?: number
  /** `maxTargetBytes` of the library. Default: `16KiB`. */
  readonly maxTarget?: number | string
  /** `headTimeoutMs` of the library. Default: `15s`. */
  readonly headTimeout?: number | string
  /** `maxHellos` of the library. Default: `4096`. */
  readonly maxHellos?: number
  /** `maxVisitors` of the library. Default: `32768`. */
  readonly maxVisitors?: number
  /** `maxAddressVisitors` of the library. Default: `8192`. */
  readonly maxAddressVisitors?: number
  /** `maxAddressRate` of the library. Default: `1000`. */
  readonly maxAddressRate?: number
  /** `reservedDescriptors` of the library. Default: `64`. */
  readonly reservedDescriptors?: number
  /** `idleTimeoutMs` of the library. Default: `75s`. */
  readonly idleTimeout?: number | string
  /** `originTimeoutMs` of the library. Default: `1m`. */
  readonly originTimeout?: number | string
  /** `sendTimeoutMs` of the library. Default: `5m`. */
  readonly sendTimeout?: number | string
  /** `maxPipelinedBytes` of the library. Default: `64KiB`. */
  readonly maxPipelined?: number | string
  /** `maxBodyBytes` of the library. Default: 0. */
  readonly maxBody?: number | string
  /** `maxStreams` of the library. Default: `4096`. */
  readonly maxStreams?: number
  /** `maxClientStreams` of the library. Default: `8192`. */
  readonly maxClientStreams?: number
  /** `maxTunnels` of the library. Default: `256`. */
  readonly maxTunnels?: number
  /** `maxTokenTunnels` of the library. Default: `32768`. */
  readonly maxTokenTunnels?: number
  /** `maxTokenPorts` of the library. Default: `5000`. */
  readonly maxTokenPorts?: number
  /** `maxTokenClients` of the library. Default: `5000`. */
  readonly maxTokenClients?: number
  /** `maxTokenStreams` of the library. Default: `32768`. */
  readonly maxTokenStreams?: number
  /** `maxTokenBufferedBytes` of the library. Default: `512MiB`. */
  readonly maxTokenBuffered?: number | string
  /** `maxTokenRefusals` of the library. Default: `1000`. */
  readonly maxTokenRefusals?: number
  /** `maxTokenGuesses` of the library. Default: `10`. */
  readonly maxTokenGuesses?: number
  /** `tokenDelayMs` of the library. Default: `5s`. */
  readonly tokenDelay?: number | string
  /** `maxTokenWaits` of the library. Default: `64`. */
  readonly maxTokenWaits?: number
  /** `maxAllTunnels` of the library. Default: `65536`. */
  readonly maxAllTunnels?: number
  /** `maxAllStreams` of the library. Default: `65536`. */
  readonly maxAllStreams?: number
  /** `maxAllBufferedBytes` of the library. Default: `1GiB`. */
  readonly maxAllBuffered?: number | string
  /** `maxLinks` of the library. Default: `32`. */
  readonly maxLinks?: number
  /** `streamIdleMs` of the library. Default: `4s`. */
  readonly streamIdle?: number | string
  /** `maxFlows` of the library. Default: `1024`. */
  readonly maxFlows?: number
  /** `maxAllFlows` of the library. Default: `16384`. */
  readonly maxAllFlows?: number
  /** `flowIdleMs` of the library. Default: `5m`. */
  readonly flowIdle?: number | string
  /** `leaseMs` of the library. Default: `30s`. */
  readonly lease?: number | string
  /** `holdTimeoutMs` of the library. Default: `10s`. */
  readonly holdTimeout?: number | string
  /** `maxHeldRequests` of the library. Default: `100`. */
  readonly maxHeldRequests?: number
  /** `startupHoldMs` of the library. Default: `5s`. */
  readonly startupHold?: number | string
  /** `maxStartupHeld` of the library. Default: `1000`. */
  readonly maxStartupHeld?: number
  /** `maxHostsBelow` of the library. Default: `20`. */
  readonly maxHostsBelow?: number
  /** `registerTimeoutMs` of the library. Default: `2s`. */
  readonly registerTimeout?: number | string
  /** `maxClients` of the library. Default: `10000`. */
  readonly maxClients?: number
  /** `maxCarrierBacklogBytes` of the library. Default: `4MiB`. */
  readonly maxCarrierBacklog?: number | string
  /** `pingIntervalMs` of the library. Default: `10s`. */
  readonly pingInterval?: number | string
  /** `deadAfterMs` of the library. Default: `25s`. */
  readonly deadAfter?: number | string
  /** `hungAfterMs` of the library. Default: `12s`. */
  readonly hungAfter?: number | string
  /** `maxMessageBytes` of the library. Default: `64MiB`. */
  readonly maxMessage?: number | string
  /** `maxStreamWindowBytes` of the library. Default: `4MiB`. */
  readonly maxStreamWindow?: number | string
  /** `maxSessionWindowBytes` of the library. Default: `64MiB`. */
  readonly maxSessionWindow?: number | string
  /** `drainTimeoutMs` of the library. Default: `30s`. */
  readonly drainTimeout?: number | string
  /** `drainIdleMs` of the library. Default: `1s`. */
  readonly drainIdle?: number | string
}

/** What the file of a server may say. */
export interface ServerFile {
  /** Domains under which tunnels get a name; URLs have the first. Default: `localhost`. */
  readonly domains?: readonly string[]
  /** Port for visitors and clients; `0` takes any free one. Default: 8080. */
  readonly port?: number
  /** Address to listen on. Default: `0.0.0.0`, all of them. */
  readonly host?: string
  /** Where visitors reach the server, if a proxy stands in front: scheme and port of the URLs. Default: as it listens. */
  readonly publicUrl?: string
  /** Public ports for tcp tunnels; `""`: no such tunnels. Default: `20000-29999`. */
  readonly tcpPorts?: number | string
  /** Public ports for udp tunnels; `""`: no such tunnels. Default: `20000-29999`. */
  readonly udpPorts?: number | string
  /** Port for tls tunnels, told apart by the name that the visitor asks for; `0` takes any free one. Default: none: no tls tunnels. */
  readonly tlsPort?: number
  /** Certificate of the server. Default: none: plain HTTP. */
  readonly tls?: ServerTls
  /** Oldest version of TLS, as a text. Default: `"1.2"`. */
  readonly tlsMinVersion?: '1.2' | '1.3'
  /** Ciphers of TLS 1.2 by their OpenSSL names, with `:` in between. Default: those with forward secrecy and authenticated encryption. */
  readonly tlsCiphers?: string
  /** Seconds for which browsers are told to come by https only, if the app does not say it; `0`: not at all. Default: 0. */
  readonly hsts?: number
  /** Who may connect: texts, or tables that say what each token may have. Default: none: needs `open`, or a `host` of this machine alone. */
  readonly tokens?: readonly (string | ServerToken)[]
  /** Whether the server may listen on other addresses than this machine's own without tokens. Default: `false`: refused with `OPEN_SERVER`. */
  readonly open?: boolean
  /** Names that no client may have, besides those that are always reserved. Default: none. */
  readonly reservedNames?: readonly string[]
  /** Addresses or ranges of proxies whose X-Forwarded-* and Forwarded headers are believed. Default: none. */
  readonly trustedProxies?: readonly string[]
  /** Whether connections of trusted proxies begin with a PROXY header that names the visitor. Default: `false`. */
  readonly acceptProxyProtocol?: boolean
  /** Bounds to change. Default: those of the table below. */
  readonly limits?: ServerLimits
}
