// Types of configuration files. Written from the tables of schema/ by test/config/docs.test.ts; do not edit.

export interface ClientInspect {
  /** All that is kept; above, the oldest exchange that is not pinned is dropped. Default: `32MiB`. */
  readonly memory?: number | string
  /** Kept of each body and message; at most half of `memory`. Default: `256KiB`. */
  readonly maxBody?: number | string
  /** Exchanges kept. Default: 1000. */
  readonly maxExchanges?: number
  /** WebSocket messages and server-sent events kept, of all exchanges together. Default: 10000. */
  readonly maxFrames?: number
  /** Requests a second above which only some are captured; 0: all. Default: 50. */
  readonly rate?: number
  /** Fields of headers, forms and JSON that are masked in addition to Authorization, Cookie and password. Default: none. */
  readonly secrets?: readonly string[]
  /** Port of the page and the API on 127.0.0.1 and ::1; 0: any free one. Default: 0. */
  readonly port?: number
  /** SQLite file in which exchanges are kept across restarts. Default: none: nothing is written to disk. */
  readonly store?: string
}

export interface ClientLimits {
  /** Streams open at once, which are connections to the app; on the JSON wire requests. Default: `8192`. */
  readonly maxStreams?: number
  /** Connections beside the carrier for bulk. Default: `32`. */
  readonly maxLinks?: number
  /** Receive window that one stream may grow to from 256 KiB. Default: `4MiB`. */
  readonly maxStreamWindow?: number | string
  /** Growth of windows allowed in all streams together. Default: `64MiB`. */
  readonly maxSessionWindow?: number | string
  /** Answers to the server (PONG, RESET, CREDIT and their like) that may wait while it does not read; data waits at its source. Default: `4MiB`. */
  readonly maxCarrierBacklog?: number | string
  /** Answers of the app that are being collected, all requests together: the JSON wire carries whole ones only. Default: `256MiB`. */
  readonly maxCollected?: number | string
}

export interface ClientServicePool {
  /** A visitor stays with one client: by a cookie (http), by the address, or not. Default: `none`. */
  readonly affinity?: 'none' | 'cookie' | 'address'
  /** Each request goes to one client, or all get a copy (http; webhooks.md). Default: `one`. */
  readonly to?: 'one' | 'all'
  /** With `to = "all"`, what the visitor gets. `first`: the first answer below 400, else the first; a client's `label`: its answer; a status: that, at once. Default: `first`. */
  readonly answer?: string | number
  /** With `to = "all"`: the name of this client for `answer`. Default: none. */
  readonly label?: string
}

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

export interface ClientServiceVerify {
  /** Who sends the webhooks; `standard`: Standard Webhooks, as Svix and others do. */
  readonly provider: 'standard' | 'stripe' | 'github' | 'slack' | 'shopify'
  /** As the provider shows it, such as `${STRIPE_SECRET}`. Several hold while one is replaced. It never leaves this machine. */
  readonly secret: string | readonly string[]
  /** How old a signature may be; `0`: any. Default: 300. */
  readonly toleranceSeconds?: number
  /** Bytes of a body that are kept until its signature is checked. Default: `1MiB`. */
  readonly maxBody?: number | string
  /** Where webhooks come to, such as `/hooks/*`. Default: `/*`. */
  readonly paths?: readonly string[]
  /** A request there without a valid signature gets 401 and does not reach the app. Default: `false`. */
  readonly require?: boolean
}

export interface ClientServiceInbox {
  /** Where webhooks come to, such as `/hooks/*`. */
  readonly paths: readonly string[]
  /** What their sender gets: 200, 201, 202 or 204. Default: 202. */
  readonly answer?: number
}

export interface ClientServiceGuardRate {
  /** Requests, or connections, of one address in a window. */
  readonly limit: number
  /** The window, at most `24h`. */
  readonly window: number | string
}

export interface ClientServiceGuardJwt {
  /** Issuer of the tokens, one of the server's. */
  readonly issuer: string
  /** Whom the tokens are for. */
  readonly audience: string
  /** Claims that must have these values; `*` stands for any characters. Default: any. */
  readonly claims?: Readonly<Record<string, string>>
}

export interface ClientServiceGuardLogin {
  /** OpenID Connect issuer, one for which the server has a login. */
  readonly issuer: string
  /** Verified addresses that may visit, such as `anna@example.com` or `*@example.com`. Default: every account. */
  readonly emails?: readonly string[]
}

export interface ClientServiceGuardCertificate {
  /** PEM file of the authorities that sign them. */
  readonly ca: string
  /** Common names, DNS names or e-mail addresses that may visit; `*@example.com`. Default: all. */
  readonly names?: readonly string[]
  /** Fields of the subject that must have these values, such as `OU`. Default: any. */
  readonly subject?: Readonly<Record<string, string>>
  /** SHA-256 of the certificates that may visit, in hexadecimal. Default: any. */
  readonly fingerprints?: readonly string[]
}

export interface ClientServiceGuardPathWebhook {
  /** Who sends the webhooks; `standard`: Standard Webhooks, as Svix and others do. */
  readonly provider: 'standard' | 'stripe' | 'github' | 'slack' | 'shopify'
  /** As the provider shows it, such as `${STRIPE_SECRET}`. Several hold while one is replaced. It never leaves this machine. */
  readonly secret: string | readonly string[]
  /** How old a signature may be; `0`: any. Default: 300. */
  readonly toleranceSeconds?: number
  /** Bytes of a body that are kept until its signature is checked. Default: `1MiB`. */
  readonly maxBody?: number | string
}

export interface ClientServiceGuardPath {
  /** Way in: a shared password of 6 characters or more. Default: none. */
  readonly password?: string
  /** Way in: tokens of machines, 16 characters or more each. Default: none. */
  readonly bearer?: readonly string[]
  /** Way in: tokens of an issuer. Default: none. */
  readonly jwt?: ClientServiceGuardJwt
  /** Way in: signed links. Default: `false`. */
  readonly links?: boolean
  /** Way in: accounts of an OpenID Connect issuer. Default: none. */
  readonly login?: ClientServiceGuardLogin
  /** Way in: certificates that visitors show in TLS. Default: none. */
  readonly certificate?: ClientServiceGuardCertificate
  /** Way in, the only one of its path: webhooks with a valid signature, which the client checks. Default: none. */
  readonly webhook?: ClientServiceGuardPathWebhook
}

export interface ClientServiceGuard {
  /** Wall: addresses and ranges that may visit. Default: all. */
  readonly allow?: readonly string[]
  /** Wall: addresses and ranges that may not, even if `allow` has them. Default: none. */
  readonly deny?: readonly string[]
  /** Wall: how often one address may ask. Default: as often as it likes. */
  readonly rate?: ClientServiceGuardRate
  /** Wall: how long the tunnel may be visited, from the start of the client. Default: no end. */
  readonly ttl?: number | string
  /** Paths that need no way in, such as `/health` and `/assets/*`; walls still hold. Default: none. */
  readonly open?: readonly string[]
  /** Way in: a shared password of 6 characters or more. Default: none. */
  readonly password?: string
  /** Way in: tokens of machines, 16 characters or more each. Default: none. */
  readonly bearer?: readonly string[]
  /** Way in: tokens of an issuer. Default: none. */
  readonly jwt?: ClientServiceGuardJwt
  /** Way in: signed links. Default: `false`. */
  readonly links?: boolean
  /** Way in: accounts of an OpenID Connect issuer. Default: none. */
  readonly login?: ClientServiceGuardLogin
  /** Way in: certificates that visitors show in TLS. Default: none. */
  readonly certificate?: ClientServiceGuardCertificate
  /** Other ways in for a path and what is below it; the longest path wins. Default: none. */
  readonly paths?: Readonly<Record<string, ClientServiceGuardPath>>
  /** Preflights of browsers reach the app without a way in. Default: `false`. */
  readonly cors?: boolean
  /** Header lines for the app, in place of the visitor's. Default: none. */
  readonly requestHeaders?: Readonly<Record<string, string>>
  /** Header lines added to answers. Default: none. */
  readonly answerHeaders?: Readonly<Record<string, string>>
  /** How long a browser stays signed in. Default: `12h`. */
  readonly session?: number | string
  /** Signs sessions and links, 32 characters or more: with the same one they outlive the client, and the clients of a pool agree. Default: made up at each start. */
  readonly secret?: string
}

export interface ClientService {
  /** What visitors speak: requests, raw connections, datagrams, TLS that only the app can read, or files of a folder. Default: `folder` if there is a `folder`, else `http`. */
  readonly kind?: 'http' | 'tcp' | 'udp' | 'tls' | 'folder'
  /** Port of the app; for tcp and udp also a range such as `27015-27030`, a tunnel for each port. Give exactly one of `port`, `url`, `unix` and `folder`. */
  readonly port?: number | string
  /** Host of the app, beside `port`. Default: `localhost`. */
  readonly host?: string
  /** The app as an `http://` or `https://` URL without path, query and login. */
  readonly url?: string
  /** Path of the app's unix socket. */
  readonly unix?: string
  /** Folder whose files are served. */
  readonly folder?: string
  /** Paths without a file get `index.html`, as apps with their own router want. Default: `false`. */
  readonly spa?: boolean
  /** The name to ask for. Default: the service's name. */
  readonly subdomain?: string
  /** No other name will do: when it is taken, the service is refused with `NAME_TAKEN`. Default: `false`. */
  readonly exact?: boolean
  /** The names below the subdomain are its, too: `*.shop` beside `shop`. Default: `false`. */
  readonly wildcard?: boolean
  /** With `wildcard`: names below that may have certificates, such as `anna` and `a.b`. Default: those that the app answers for. */
  readonly wildcardHosts?: readonly string[]
  /** Hosts of your own that it answers, too, such as `www.customer.example`: their DNS leads to the server, and the token opens them. Default: none. */
  readonly hosts?: readonly string[]
  /** What the app speaks: `h2c` is HTTP/2 without TLS, as servers of gRPC do, `h2` is HTTP/2 of an `https://` URL. Default: `http/1.1`. */
  readonly protocol?: 'http/1.1' | 'h2c' | 'h2'
  /** What the app sees as Host: `preserve` (the visitor's), `rewrite` (the app's own, Origin too), or a host. Default: `preserve`. */
  readonly hostHeader?: string
  /** Paths with an app of their own: a port, `host:port`, a URL, `unix:/path`; for HTTP/2 `h2c://host:port`, `h2c+unix:/path`, or `h2://host:port` by TLS. `/api` means it and all below; the longest wins. Default: none. */
  readonly routes?: Readonly<Record<string, number | string>>
  /** Any certificate of an `https://` app, routes included, is accepted. Default: `false`; `true` for this machine's own addresses without `app-ca`. */
  readonly appInsecure?: boolean
  /** PEM file of an authority to trust for the certificate of such an app, besides the usual ones. Default: none. */
  readonly appCa?: string
  /** Name that such an app is asked for (SNI), and that its certificate must have. Default: the host of its URL. */
  readonly appServerName?: string
  /** How long the app may take to accept a connection. Default: `10s`. */
  readonly originConnectTimeout?: number | string
  /** Public port to ask for, one of the server's; for a range a range of the same size. Default: any. */
  readonly remotePort?: number | string
  /** PROXY protocol header in front of each connection, which tells the app the visitor's address. Default: none. */
  readonly proxyProtocol?: 'v1' | 'v2'
  /** How long a silent visitor keeps the same socket to the app. Default: `60s`. */
  readonly idleTimeout?: number | string
  /** Shares the name or port with other clients that ask for it so: visitors are spread over them. Default: `false`. */
  readonly pool?: boolean | ClientServicePool
  /** Checks the app, and sends it no visitors while it is unwell. Default: no checks. */
  readonly health?: ClientServiceHealth
  /** The app gets webhooks, whose signatures are checked on this machine (webhooks.md). Default: nothing is checked. */
  readonly verify?: ClientServiceVerify
  /** Filter of the requests that the app gets, such as `POST path:/hooks/* body:"invoice.paid"`; others get 404, or go to another client of the pool (webhooks.md). Default: all. */
  readonly take?: string
  /** Webhooks wait on the server while no client is there, if its operator allows it (webhooks.md). Default: none. */
  readonly inbox?: ClientServiceInbox
  /** Who may visit: all walls must let a visitor pass, and one of the ways in is enough. Default: everybody. */
  readonly guard?: ClientServiceGuard
  /** Token for this service alone. Default: the file's `token`. */
  readonly token?: string
}

/** What the file of a client may say. */
export interface ClientFile {
  /** The tunnel server: `wss://`, `https://`, `ws://`, `http://` or `host[:port]`, which is https unless it is this machine; or several of one cluster. Default: `TUNNEL_SERVER`, else the default server, else one in the same process. */
  readonly server?: string | readonly string[]
  /** Token of the server. Default: that of `localtunnels login`; `TUNNEL_TOKEN`, if the server is that of `TUNNEL_SERVER`. */
  readonly token?: string
  /** Tokens may go to another machine without TLS, where others on the way can read them. Default: `false`. */
  readonly insecureToken?: boolean
  /** Proxy to the server: `http://`, `https://`, `socks5://` or `socks5h://`, with `user:password@` if needed. `""`: none. Default: `HTTPS_PROXY`, `HTTP_PROXY` or `ALL_PROXY`. */
  readonly proxy?: string
  /** `streams`, `json`, or what the server can. Default: `auto`. */
  readonly wire?: 'auto' | 'streams' | 'json'
  /** The server's certificate must be a trusted one. Default: `true`. */
  readonly verifyServer?: boolean
  /** PEM file of an authority to trust for the server's certificate, besides the usual ones. Default: none. */
  readonly ca?: string
  /** PEM file of the client's own certificate, for servers that want one; with `key`. Default: none. */
  readonly cert?: string
  /** PEM file of its key. Default: none. */
  readonly key?: string
  /** The public key that the server's certificate must have: `sha256//` and base64 of its SHA-256. Default: any. */
  readonly pin?: string
  /** From the dial to the registration. Default: `10s`. */
  readonly connectTimeout?: number | string
  /** A lost connection is made anew, for as long as it takes. Default: `true`. */
  readonly reconnect?: boolean
  /** Longest pause between tries. Default: `5s`. */
  readonly maxBackoff?: number | string
  /** Silence on the connection before it is pinged. Default: `10s`. */
  readonly pingInterval?: number | string
  /** Silence on the connection before it is given up; more than `ping-interval`. Default: `20s`. */
  readonly deadAfter?: number | string
  /** Keeps what comes through, for the page, the commands and the API of the inspector on this machine. Default: `false`. */
  readonly inspect?: boolean | ClientInspect
  /** Bounds to change. Default: those of the table below. */
  readonly limits?: ClientLimits
  /** What is shared: a table for each service, named as you like. */
  readonly services: Readonly<Record<string, ClientService>>
}

export interface ServerTls {
  /** PEM file of the certificate chain. */
  readonly cert: string
  /** PEM file of its private key. */
  readonly key: string
}

export interface ServerBranding {
  /** Name of the operator. Default: none. */
  readonly name?: string
  /** Where visitors and users get help: an email address or an `https://` URL. Default: none. */
  readonly contact?: string
  /** SVG file of at most 64 KiB, without scripts and without links to other files. Default: none. */
  readonly logo?: string
}

export interface ServerAcme {
  /** Mail address of the account. With it you agree to the authority's terms. */
  readonly email: string
  /** URL of the authority's directory. Default: Let's Encrypt's. */
  readonly directory?: string
  /** PEM file of the roots that sign the directory's own certificate. Default: those of the system. */
  readonly ca?: string
  /** Let's Encrypt's staging is used, whose certificates no browser trusts. Default: `false`. */
  readonly staging?: boolean
  /** How names are proved without `dns`: on `http-port`, or on `port`, which visitors then have to reach as 443. Default: `http-01`. */
  readonly challenge?: 'http-01' | 'tls-alpn-01'
  /** Who sets DNS records, for one certificate of all names: `cloudflare`, `route53`, `rfc2136://key-name@name-server/zone`, `exec:/path`, `acme-dns:/path`. Default: none: each tunnel has a certificate of its own. */
  readonly dns?: string
  /** Name servers, `address` or `address:port`, that are asked where the records of `dns` belong, and where hosts of customers lead. Default: those of the system. */
  readonly resolvers?: readonly string[]
  /** Addresses of this server: a host of a customer gets a certificate only if DNS leads it to these alone. Default: those that the first domain leads to. */
  readonly addresses?: readonly string[]
  /** External account: its name, for authorities that want one. Default: none. */
  readonly keyId?: string
  /** External account: its key, base64url. Default: none. */
  readonly hmacKey?: string
}

export interface ServerAdmin {
  /** Port of the admin listener; `0` takes any free one. Default: 9090. */
  readonly port?: number
  /** Address that it listens on. It speaks plain HTTP. Default: `127.0.0.1`. */
  readonly host?: string
  /** What requests must show, 16 characters at least. Default: one for this start, which `localtunnels admin` of the same user finds. */
  readonly token?: string
  /** SQLite file for traffic, bans and what was done. Default: `admin.db` in the state folder of the user. */
  readonly store?: string
  /** How long a tunnel may be without a visitor before its app is asked for `HEAD /`; `0`: never. Default: `60s`. */
  readonly probe?: number | string
}

export interface ServerCluster {
  /** The Redis or Valkey that the servers share: `redis://user:password@host:6379`, `rediss://host`, `unix:/path` or `sentinel://a:26379,b:26379/name`. */
  readonly url: string
  /** What the names of all keys there begin with. Default: `localtunnels`. */
  readonly prefix?: string
  /** PEM file of the authority that signs its certificate, in place of the usual ones, for `rediss://`. Default: none. */
  readonly ca?: string
  /** Where the other servers reach this one, such as `http://10.0.0.2:8080`. Default: the address that it listens on, or the first of this machine that is not loopback. */
  readonly peerUrl?: string
  /** PEM file of the authority that signs `peer-cert` of all servers: they show each other certificates on the port of `peer-url`, which is `https:` and theirs alone. Default: none: the secret is enough. */
  readonly peerCa?: string
  /** PEM file of the certificate of this server, for the first of its domains. Default: none. */
  readonly peerCert?: string
  /** PEM file of its key. Default: none. */
  readonly peerKey?: string
  /** What the servers know each other by, 32 characters at least. Default: one that is made, and kept in Redis. */
  readonly secret?: string
  /** What a client gets that registers while Redis cannot be reached. Default: `refuse`. */
  readonly whenUnreachable?: 'refuse' | 'grant'
}

export interface ServerRate {
  /** Names, or patterns such as `team-*`. Default: all tunnels. */
  readonly tunnels?: readonly string[]
  /** Requests, or connections, in a window; above: 429. */
  readonly limit: number
  /** How long a window is, up to a day. */
  readonly window: number | string
  /** Each address has its own, or all visitors of a tunnel, or of a token's tunnels, share one. Default: `address`. */
  readonly by?: 'address' | 'tunnel' | 'token'
  /** All servers of the `cluster` keep it together. Default: `false`: each by itself. */
  readonly shared?: boolean
  /** While Redis does not answer each server counts by itself, every visitor passes, or none (503). Default: `local`. */
  readonly whenUnreachable?: 'local' | 'open' | 'closed'
}

export interface ServerTunnelRuleBreaker {
  /** Failed requests of a window, in percent, from which it opens. Default: 50. */
  readonly errorPercent?: number
  /** Requests of a window below which it does not open. Default: 20. */
  readonly minRequests?: number
  /** How long a window is. Default: `10s`. */
  readonly window?: number | string
  /** How long it is open before one visitor tries; doubled by each failed try. Default: `5s`. */
  readonly open?: number | string
}

export interface ServerTunnelRule {
  /** Names, or patterns such as `team-*`. Default: all tunnels. */
  readonly tunnels?: readonly string[]
  /** Circuit breaker: refuses visitors at once for a while when the app fails. Default: none. */
  readonly breaker?: ServerTunnelRuleBreaker
  /** Requests under way at once; others wait in their order. Default: no bound. */
  readonly maxInFlight?: number
  /** Requests that wait like that; above: 503. Default: 100. */
  readonly maxQueued?: number
  /** How long one waits. Default: `10s`. */
  readonly queueTimeout?: number | string
  /** Length of a request body, announced or not; above: 413. Default: that of the server. */
  readonly maxContentLength?: number | string
  /** From when a request goes to its client to the head of the answer, uploads included; above: 504. Default: `limits.origin-timeout` alone. */
  readonly answerTimeout?: number | string
  /** Length of a request head; above: 431. Default: that of the server. */
  readonly maxHead?: number | string
  /** Bytes a second, each way, of all visitors of a tunnel; above, bytes wait. Default: no bound. */
  readonly bandwidth?: number | string
  /** The same for each address of a visitor. Default: no bound. */
  readonly addressBandwidth?: number | string
}

export interface ServerInbox {
  /** SQLite file, with mode 0600. */
  readonly file: string
  /** Webhooks of one name; above, the sender gets 503. Default: 10000. */
  readonly maxRequests?: number
  /** All of one name; above likewise. Default: `50MiB`. */
  readonly maxBytes?: number | string
  /** All of all names; above likewise. Default: `1GiB`. */
  readonly maxAllBytes?: number | string
  /** Longest body, up to `64MiB`; above, the sender gets 413. Default: `1MiB`. */
  readonly maxBody?: number | string
  /** Older webhooks are dropped. Default: `3d`. */
  readonly maxAge?: number | string
  /** Answers that ask for another try, until a webhook is dropped. Default: 15. */
  readonly maxAttempts?: number
}

export interface ServerAccessLog {
  /** The file, with mode 0600. Default: stdout. */
  readonly file?: string
  /** Part of the visits that have a line, in percent; what failed always has one. Default: 100. */
  readonly sample?: number
  /** Lines have the query, which may hold secrets. Default: `false`. */
  readonly query?: boolean
  /** Size at which the file is renamed to `.1`, that one to `.2`, and so on; `0`: never. Default: `100MiB`. */
  readonly maxFile?: number | string
  /** Renamed files that are kept. Default: 5. */
  readonly maxFiles?: number
}

export interface ServerTokenRate {
  /** Requests, or connections, in a window. */
  readonly limit: number
  /** How long a window is, up to a day. */
  readonly window: number | string
}

export interface ServerToken {
  /** The secret itself. */
  readonly token: string
  /** Its name in the server's output and access logs. Default: nothing. */
  readonly name?: string
  /** Names that it may have; `*` stands for any letters, digits and `-`. Default: all. */
  readonly names?: readonly string[]
  /** Kinds of tunnel that it may have. Default: all; with `names`: `http`, `tls`, and those of `tcp-ports` and `udp-ports` if given. */
  readonly kinds?: readonly ('http' | 'tcp' | 'udp' | 'tls')[]
  /** Public TCP ports that it may have. Default: the server's. */
  readonly tcpPorts?: number | string
  /** Public UDP ports that it may have. Default: the server's. */
  readonly udpPorts?: number | string
  /** Hosts outside of the server's domains that its tunnels may answer: `www.customer.example`, `*.customer.example`, `*`. Default: none; of a token that is a text alone, any. */
  readonly hosts?: readonly string[]
  /** Tunnels without a guard are refused. Default: `false`. */
  readonly requireGuard?: boolean
  /** Bytes a second, each way, of all visitors of all its tunnels; above, bytes wait. Default: no bound. */
  readonly bandwidth?: number | string
  /** How often all visitors of all its tunnels may ask; above: 429. Default: no bound. */
  readonly rate?: ServerTokenRate
  /** Tunnels of all its clients together, leases included. Default: `limits.max-token-tunnels`. */
  readonly maxTunnels?: number
  /** Public ports of all its clients together, leases included. Default: `limits.max-token-ports`. */
  readonly maxPorts?: number
  /** Such hosts of all its clients together, leases included. Default: `limits.max-token-hosts`. */
  readonly maxHosts?: number
  /** Clients connected at once with it. Default: `limits.max-token-clients`. */
  readonly maxClients?: number
  /** Its `names` without a `*` are kept from all other tokens, also while no client has them. Default: `false`. */
  readonly reserve?: boolean
}

export interface ServerJwtToken {
  /** Who makes the tokens, as in their `iss`. */
  readonly issuer: string
  /** Whom they are for, as in their `aud`: something of this server alone, such as its URL. */
  readonly audience: string
  /** Claims that they must have; `*` stands for any characters. Default: any: all to whom the issuer gives tokens get in. */
  readonly claims?: Readonly<Record<string, string>>
  /** Name of such a token in the server's output and access logs. Default: its `sub`. */
  readonly name?: string
  /** How long a client may stay, and come back, with one token; `0`: as long as the token is good. Default: `1h`. */
  readonly session?: number | string
  /** Where the issuer's keys are. Default: as its `/.well-known/openid-configuration` says. */
  readonly jwksUrl?: string
  /** Names that they may have, as of `tokens`; `{claim}` stands for that claim of the token. Default: all. */
  readonly names?: readonly string[]
  /** Kinds of tunnel that it may have. Default: all; with `names`: `http`, `tls`, and those of `tcp-ports` and `udp-ports` if given. */
  readonly kinds?: readonly ('http' | 'tcp' | 'udp' | 'tls')[]
  /** Public TCP ports that it may have. Default: the server's. */
  readonly tcpPorts?: number | string
  /** Public UDP ports that it may have. Default: the server's. */
  readonly udpPorts?: number | string
  /** Hosts outside of the server's domains, likewise. Default: none. */
  readonly hosts?: readonly string[]
  /** Tunnels without a guard are refused. Default: `false`. */
  readonly requireGuard?: boolean
  /** Bytes a second, each way, of all visitors of all its tunnels; above, bytes wait. Default: no bound. */
  readonly bandwidth?: number | string
  /** How often all visitors of all its tunnels may ask; above: 429. Default: no bound. */
  readonly rate?: ServerTokenRate
  /** Tunnels of all its clients together, leases included. Default: `limits.max-token-tunnels`. */
  readonly maxTunnels?: number
  /** Public ports of all its clients together, leases included. Default: `limits.max-token-ports`. */
  readonly maxPorts?: number
  /** Such hosts of all its clients together, leases included. Default: `limits.max-token-hosts`. */
  readonly maxHosts?: number
  /** Clients connected at once with it. Default: `limits.max-token-clients`. */
  readonly maxClients?: number
}

export interface ServerLogin {
  /** URL of the OpenID Connect issuer. */
  readonly issuer: string
  /** As what the server is registered there. */
  readonly clientId: string
  /** Its secret there. */
  readonly clientSecret: string
  /** What is asked for. Default: `openid email`. */
  readonly scope?: string
}

export interface ServerLimits {
  /** Request or answer head. Default: `64KiB`. */
  readonly maxHead?: number | string
  /** Header lines of one head. Default: `200`. */
  readonly maxHeaderCount?: number
  /** Request target. Default: `16KiB`. */
  readonly maxTarget?: number | string
  /** Requests under way on one HTTP/2 connection. Default: `100`. */
  readonly maxHttp2Streams?: number
  /** Requests of one HTTP/2 connection that the visitor resets, or the server for the visitor's faults, before their answer is complete. Default: `256`. */
  readonly maxHttp2Resets?: number
  /** Frames of one HTTP/2 connection that say nothing: PING, SETTINGS (counted 8 times), PRIORITY, empty DATA and the like. Default: `1024`. */
  readonly maxHttp2Noise?: number
  /** 1xx answers of an app to one request. Default: `100`. */
  readonly maxInterimAnswers?: number
  /** First byte to blank line of a request head, and the next bytes of a body that is kept until it is complete: for an inbox, for all clients of a pool, or on the JSON wire. Default: `15s`. */
  readonly headTimeout?: number | string
  /** Body, framing included, of a request that every client of a pool gets: the server keeps it until all have taken it. Default: `1MiB`. */
  readonly maxCopyBody?: number | string
  /** Such bodies in memory, all requests together. Default: `64MiB`. */
  readonly maxCopied?: number | string
  /** Connections to `tlsPort` whose first message is not complete; it has `headTimeoutMs`. Default: `4096`. */
  readonly maxHellos?: number
  /** Connections of visitors at once, of all kinds, from `accept` on. Default: `32768`. */
  readonly maxVisitors?: number
  /** Connections of one address at once, and likewise its requests under way by HTTP/2 and HTTP/3. An IPv6 address counts by its first 64 bits. A connection with a PROXY header is the visitor's, others of `trustedProxies` are not counted. Default: `8192`. */
  readonly maxAddressVisitors?: number
  /** New connections of one address a second, and HTTP/2 requests that it gives up, by a reset or with the connection; addresses count as in `maxAddressVisitors`. So many at once, and they come back evenly over a second. Default: `1000`. */
  readonly maxAddressRate?: number
  /** Descriptors that visitors leave free, for the control host, clients and the process itself. Default: `64`. */
  readonly reservedDescriptors?: number
  /** Part of the descriptors beyond `reservedDescriptors` that connections, links and ports of clients may take, in percent, up to 100. Default: `75`. */
  readonly clientDescriptorsPercent?: number
  /** Part of `clientDescriptorsPercent` that one token or address may take, in percent, up to 100. Default: `50`. */
  readonly tokenDescriptorsPercent?: number
  /** A kept-alive visitor connection without a request. Default: `75s`. */
  readonly idleTimeout?: number | string
  /** End of the request to the head of the answer. Default: `1m`. */
  readonly originTimeout?: number | string
  /** How long bytes may wait while their reader takes none: an answer for its visitor, or a request for the app. Default: `5m`. */
  readonly sendTimeout?: number | string
  /** Request bytes read ahead of the exchange under way. Default: `64KiB`. */
  readonly maxPipelined?: number | string
  /** Request bytes of all visitors that wait here: incomplete heads, and requests ahead of their turn. Default: `256MiB`. */
  readonly maxAllInput?: number | string
  /** Request body, in bytes. Default: 0. */
  readonly maxBody?: number | string
  /** Streams open at once per tunnel, idle ones included. Default: `4096`. */
  readonly maxStreams?: number
  /** Streams open at once of all tunnels of one client. Default: `8192`. */
  readonly maxClientStreams?: number
  /** Tunnels of one client. Default: `256`. */
  readonly maxTunnels?: number
  /** Tunnels of one token, over all its clients and leases included; on a server without tokens, of one address. An IPv6 address counts by its first 64 bits. Default: `32768`. */
  readonly maxTokenTunnels?: number
  /** Public ports, TCP and UDP, of one token or address, leases included. Default: `5000`. */
  readonly maxTokenPorts?: number
  /** Hosts outside of the server's domains of one token, leases included. Default: `256`. */
  readonly maxTokenHosts?: number
  /** Clients of one token or address connected at once. Default: `5000`. */
  readonly maxTokenClients?: number
  /** Streams open at once of one token or address, over all its clients; a request on the JSON wire counts as one. Default: `32768`. */
  readonly maxTokenStreams?: number
  /** Bytes in this process that wait for slow readers of one token or address: answers that visitors do not take, and incomplete messages of the JSON wire. Default: `512MiB`. */
  readonly maxTokenBuffered?: number | string
  /** Refused registrations of one token or address a second. Default: `1000`. */
  readonly maxTokenRefusals?: number
  /** Refused tokens of one address before its tokens have to wait. An IPv6 address counts by its first 64 bits. Default: `10`. */
  readonly maxTokenGuesses?: number
  /** Longest wait of a token because others of its address were refused: 100 ms after `maxTokenGuesses`, doubled by each further one. Good ones wait too, and get in. Default: `5s`. */
  readonly tokenDelay?: number | string
  /** Tokens of one address that wait like that. Default: `64`. */
  readonly maxTokenWaits?: number
  /** Tunnels of all clients, leases included. Default: `65536`. */
  readonly maxAllTunnels?: number
  /** Hosts outside of the server's domains of all clients, leases included. Default: `16384`. */
  readonly maxAllHosts?: number
  /** Streams open at once of all clients. Default: `65536`. */
  readonly maxAllStreams?: number
  /** `maxTokenBufferedBytes` of all clients together. Default: `1GiB`. */
  readonly maxAllBuffered?: number | string
  /** Links of one client: connections beside its carrier for bulk. Default: `32`. */
  readonly maxLinks?: number
  /** Links of one token or address, over all its clients. Default: `4096`. */
  readonly maxTokenLinks?: number
  /** Links of all clients. Default: `8192`. */
  readonly maxAllLinks?: number
  /** How long an idle stream is kept for the next request. Default: `4s`. */
  readonly streamIdle?: number | string
  /** Visitors of one UDP tunnel at once, by address and port: each is a stream here and a socket at the client. Default: `1024`. */
  readonly maxFlows?: number
  /** New visitors of one UDP tunnel a second, a tenth of them at once. Default: `2000`. */
  readonly maxFlowRate?: number
  /** Visitors of all UDP tunnels at once. Default: `16384`. */
  readonly maxAllFlows?: number
  /** New visitors of one UDP port at once that wait for a guard, or for the directory of a cluster. Default: `1000`. */
  readonly maxAskedFlows?: number
  /** How long a visitor of a UDP tunnel is known without datagrams either way. Default: `5m`. */
  readonly flowIdle?: number | string
  /** Raw visitors and UDP flows at once that this server sends on to others of its cluster. Default: `8192`. */
  readonly maxPeerStreams?: number
  /** How long a name stays with a client whose carrier was lost. Default: `30s`. */
  readonly lease?: number | string
  /** How long a request or TCP connection waits for a client that reconnects. Default: `10s`. */
  readonly holdTimeout?: number | string
  /** How long a guard may take for a visitor. Default: `10s`. */
  readonly guardTimeout?: number | string
  /** Requests and connections of one tunnel that wait for its client. Default: `100`. */
  readonly maxHeldRequests?: number
  /** How long after its start the server holds requests for names that no client has, because clients need a moment to come back. Default: `5s`. */
  readonly startupHold?: number | string
  /** Requests that wait like that, for all names together. Default: `1000`. */
  readonly maxStartupHeld?: number
  /** Those of one address; a visitor behind `trustedProxies` counts by its own address. An IPv6 address counts by its first 64 bits. Default: `100`. */
  readonly maxAddressStartupHeld?: number
  /** Hosts below one wildcard tunnel that `/tls-check` confirms: so many that its client names (`wildcardHosts`), and so many for which the app answered without an error within a day. Default: `20`. */
  readonly maxHostsBelow?: number
  /** Control connection open to first registration. Default: `2s`. */
  readonly registerTimeout?: number | string
  /** Clients connected at once. Default: `10000`. */
  readonly maxClients?: number
  /** Answers to a client (PONG, RESET, CREDIT and the like) that wait while it does not read; data waits at its source. Default: `4MiB`. */
  readonly maxCarrierBacklog?: number | string
  /** Silence on a carrier before it is pinged. Default: `10s`. */
  readonly pingInterval?: number | string
  /** Silence on a carrier before it is given up. Default: `25s`. */
  readonly deadAfter?: number | string
  /** The same while a visitor waits: such a carrier is pinged as soon as it is silent. Default: `10s`. */
  readonly hungAfter?: number | string
  /** Largest JSON wire message either way. Default: `64MiB`. */
  readonly maxMessage?: number | string
  /** Bytes of incomplete JSON wire messages, of all clients together. Default: `128MiB`. */
  readonly maxUnfinishedMessage?: number | string
  /** Receive window that one stream may grow to from 256 KiB. Default: `4MiB`. */
  readonly maxStreamWindow?: number | string
  /** Growth of windows allowed in all streams of a session together. Default: `64MiB`. */
  readonly maxSessionWindow?: number | string
  /** How long `stop()` waits for what is under way. Default: `30s`. */
  readonly drainTimeout?: number | string
  /** How long a kept-alive connection may have been without a request when `stop()` closes it; an earlier request is served, as the last one there. Default: `1s`. */
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
  /** The operator on the pages that visitors see: errors, sign-in, and the page of the server itself. Default: none. */
  readonly branding?: ServerBranding
  /** PEM file of the authorities that sign certificates of clients: a client without one is refused. Default: none: clients need no certificate. */
  readonly clientCa?: string
  /** Certificates of an ACME authority; then `port` is 443 and `http-port` 80 unless they are given. Default: none. */
  readonly acme?: ServerAcme
  /** A listener for the operator alone: API, metrics, bans. A reload cannot change it. Default: none. */
  readonly admin?: ServerAdmin
  /** The other servers of the same domains. A reload cannot change it. Default: none. */
  readonly cluster?: ServerCluster
  /** Modules whose default export is a guard, a middleware, an observer, or a list of these. A reload cannot change them. Default: none. */
  readonly plugins?: readonly string[]
  /** Requests get an id (`X-Request-Id`) and a trace (`traceparent`). Default: `false`. */
  readonly tracing?: boolean
  /** Answers say how long they took (Server-Timing). Default: `false`. */
  readonly serverTiming?: boolean
  /** The operator's own rates, besides those that clients ask for. Default: none. */
  readonly rates?: readonly ServerRate[]
  /** What tunnels may do under pressure; the first rule that names a tunnel counts. Default: none. */
  readonly tunnelRules?: readonly ServerTunnelRule[]
  /** Keeps webhooks for clients with a token that are away, on the paths that their services name. A reload cannot change it. Default: none are kept. */
  readonly inbox?: ServerInbox
  /** One JSON line for each visit. A reload cannot change it. Default: none. */
  readonly accessLog?: ServerAccessLog
  /** Second port for plain HTTP: checks of the authority, and redirects to https. Default: none; with `acme` 80. */
  readonly httpPort?: number
  /** Oldest version of TLS, as a text. Default: `"1.2"`. */
  readonly tlsMinVersion?: '1.2' | '1.3'
  /** Ciphers of TLS 1.2 by their OpenSSL names, with `:` in between. Default: those with forward secrecy and authenticated encryption. */
  readonly tlsCiphers?: string
  /** Visitors may speak HTTP/2: by TLS, and by prior knowledge without it. Default: `true`. */
  readonly http2?: boolean
  /** Visitors may speak HTTP/3, too, on the UDP port with the number of `port`. Experimental. Not with `accept-proxy-protocol` or `workers`. A reload cannot change it. Default: `false`. */
  readonly http3?: boolean
  /** Seconds for which browsers use https only (Strict-Transport-Security), if the app does not say it; `0`: not sent. Default: 0. */
  readonly hsts?: number
  /** Who may connect: texts, or tables that say what each token may have. Default: none: needs `open`, or a `host` of this machine alone. */
  readonly tokens?: readonly (string | ServerToken)[]
  /** SQLite file of more tokens: `localtunnels token` makes and revokes them while the server runs. A reload cannot change it. Default: none. */
  readonly tokensDb?: string
  /** Who may connect with a token of an issuer, such as a CI system; the first rule that fits counts. Default: none. */
  readonly jwtTokens?: readonly ServerJwtToken[]
  /** The server may listen beyond this machine's own addresses without tokens. Default: `false`: refused with `OPEN_SERVER`. */
  readonly open?: boolean
  /** OpenID Connect issuers at which visitors of guarded tunnels can sign in, named as you like. Default: none. */
  readonly login?: Readonly<Record<string, ServerLogin>>
  /** Issuers whose tokens the guards of tunnels may ask for, besides those of `login`. Default: none. */
  readonly jwtIssuers?: readonly string[]
  /** Names that no client may have, besides those that are always reserved. Default: none. */
  readonly reservedNames?: readonly string[]
  /** Addresses or ranges of proxies whose X-Forwarded-* and Forwarded headers are believed. Default: none. */
  readonly trustedProxies?: readonly string[]
  /** Connections of trusted proxies begin with a PROXY header that names the visitor. Default: `false`. */
  readonly acceptProxyProtocol?: boolean
  /** Bounds to change. Default: those of the table below. */
  readonly limits?: ServerLimits
}
