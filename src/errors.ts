// One error class and one table: every error of localtunnels, with its stable code.

/** The meaning of an error code. */
export interface ErrorEntry {
  /** Number in RESET and GOAWAY frames. Never reused; `docs/errors.md` lists them. */
  readonly wire: number
  /** The HTTP status that the visitor gets. */
  readonly status: number
  /** The party that must act. The visitor's error page names it. */
  readonly fault: 'visitor' | 'server' | 'client' | 'origin' | 'user'
  /** Whether the same request or command may succeed later. Default `false`. */
  readonly retryable?: boolean
  /** The event behind the code, in one sentence. */
  readonly meaning: string
  /** The next step of the reader, in one or two sentences. */
  readonly action: string
  /** The operator's next step, for the log and `docs/errors.md`. Visitors do not see it. */
  readonly operator?: string
}

const ROWS = {
  // Requests of visitors
  BAD_REQUEST: {
    wire: 1,
    status: 400,
    fault: 'visitor',
    meaning: 'The request is not well-formed HTTP/1.1, or can be read in two ways.',
    action: 'Send one Host header, one length, CRLF line ends and no control characters.',
  },
  HEAD_TOO_LARGE: {
    wire: 2,
    status: 431,
    fault: 'visitor',
    meaning: 'The request head has too many bytes or headers.',
    action: 'Send smaller or fewer headers. In a browser, delete the cookies of this site.',
    operator: 'Raise maxHeadBytes and maxHeaderCount.',
  },
  TARGET_TOO_LONG: {
    wire: 3,
    status: 414,
    fault: 'visitor',
    meaning: 'The request target is longer than the server accepts.',
    action: 'Shorten the URL.',
    operator: 'Raise maxTargetBytes.',
  },
  REQUEST_TIMEOUT: {
    wire: 4,
    status: 408,
    fault: 'visitor',
    retryable: true,
    meaning: 'The rest of the request did not arrive in time.',
    action: 'Send it again without long pauses.',
    operator: 'Raise headTimeoutMs.',
  },
  VERSION_UNSUPPORTED: {
    wire: 5,
    status: 505,
    fault: 'visitor',
    meaning: 'The server does not support this HTTP version.',
    action: 'Use HTTP/1.1 or HTTP/1.0.',
  },
  METHOD_REFUSED: {
    wire: 6,
    status: 405,
    fault: 'visitor',
    meaning: 'The server does not accept CONNECT: it is not a forward proxy.',
    action: 'Send the request to the tunnel itself.',
  },
  UPGRADE_UNSUPPORTED: {
    wire: 170,
    status: 501,
    fault: 'visitor',
    meaning: 'The visitor requested a protocol other than WebSocket over HTTP/2.',
    action: 'Use an extended CONNECT with `:protocol: websocket`, or HTTP/1.1.',
  },
  BODY_TOO_LARGE: {
    wire: 7,
    status: 413,
    fault: 'visitor',
    meaning: 'The request body is larger than this tunnel can carry.',
    action: 'Send a smaller body.',
    operator: 'Raise maxBodyBytes. A client without --wire json has no limit of its own.',
  },
  VISITOR_STALLED: {
    wire: 8,
    status: 408,
    fault: 'visitor',
    retryable: true,
    meaning: 'The visitor stopped reading the response.',
    action: 'Send the request again, and read without long pauses.',
    operator: 'Raise sendTimeoutMs.',
  },
  // Routing
  HOST_UNKNOWN: {
    wire: 10,
    status: 404,
    fault: 'visitor',
    meaning: 'The Host does not belong to this server.',
    action: 'Use <name>.<domain> of this server.',
  },
  TUNNEL_NOT_FOUND: {
    wire: 11,
    status: 404,
    fault: 'client',
    retryable: true,
    meaning: 'No tunnel has this name.',
    action: 'Start the client with this name, or check the URL for typing errors.',
  },
  CLIENT_GONE: {
    wire: 12,
    status: 502,
    fault: 'client',
    retryable: true,
    meaning: 'The client of this tunnel has disconnected.',
    action: 'Start the client again, then reload the page.',
  },
  CLIENT_RECONNECTING: {
    wire: 13,
    status: 503,
    fault: 'client',
    retryable: true,
    meaning: 'The client of this tunnel lost its connection.',
    action: 'Try again in a moment; the client keeps reconnecting.',
  },
  TUNNEL_BUSY: {
    wire: 14,
    status: 503,
    fault: 'client',
    retryable: true,
    meaning: 'The tunnel or its client has too many open requests.',
    action: 'Try again in a moment.',
    operator: 'Raise maxStreams.',
  },
  SERVER_DRAINING: {
    wire: 15,
    status: 503,
    fault: 'server',
    retryable: true,
    meaning: 'The server is stopping and accepts no new requests.',
    action: 'Try again in a moment.',
  },
  VISITOR_LIMIT: {
    wire: 115,
    status: 503,
    fault: 'server',
    retryable: true,
    meaning: 'The server has reached its limit of visitor connections.',
    action: 'Try again in a moment.',
    operator: 'Raise maxVisitors or the descriptor limit (ulimit -n).',
  },
  ADDRESS_LIMIT: {
    wire: 116,
    status: 503,
    fault: 'visitor',
    retryable: true,
    meaning: 'This address opens too many connections.',
    action: 'Use one connection for several requests.',
    operator: 'Raise maxAddressVisitors and maxAddressRate if this address has many visitors.',
  },
  DESCRIPTORS_SHORT: {
    wire: 117,
    status: 503,
    fault: 'server',
    retryable: true,
    meaning: 'The server process has almost no free descriptors.',
    action: 'Try again in a moment.',
    operator: 'Raise its limit (ulimit -n, LimitNOFILE=), or lower maxVisitors.',
  },
  CLUSTER_UNREACHABLE: {
    wire: 230,
    status: 503,
    fault: 'server',
    retryable: true,
    meaning: 'The server cannot reach the directory or the shared rates of its cluster.',
    action: 'Try again. The operator should check that Redis runs and that the server reaches it.',
  },
  CLUSTER_MOVED: {
    wire: 231,
    status: 421,
    fault: 'server',
    retryable: true,
    meaning: 'Another server of the cluster holds this name now.',
    action: 'Try again.',
  },
  SERVER_STARTING: {
    wire: 118,
    status: 503,
    fault: 'server',
    retryable: true,
    meaning: 'The server has just started, and this name has no client yet.',
    action: 'Try again in a moment; clients reconnect by themselves.',
  },
  DISCONNECTED: {
    wire: 171,
    status: 503,
    fault: 'server',
    retryable: true,
    meaning: 'The connection to the server was lost, and --exit-on-disconnect (reconnect) ends the program.',
    action: 'Start it again, or leave this option out: a client then reconnects by itself.',
  },
  // The origin
  ORIGIN_REFUSED: {
    wire: 20,
    status: 502,
    fault: 'origin',
    retryable: true,
    meaning: 'The app is not running.',
    action: 'Start the app, or give the client the right port.',
  },
  ORIGIN_TIMEOUT: {
    wire: 21,
    status: 504,
    fault: 'origin',
    retryable: true,
    meaning: 'The app did not read the request, or did not respond, in time.',
    action:
      'Find out why the app is slow, or give it more time: --response-timeout of the client, --origin-timeout of the server.',
  },
  ORIGIN_CLOSED: {
    wire: 22,
    status: 502,
    fault: 'origin',
    retryable: true,
    meaning: 'The app closed the connection before its response was complete.',
    action: 'Look at the log of the app: it may have crashed.',
  },
  ORIGIN_INVALID: {
    wire: 23,
    status: 502,
    fault: 'origin',
    meaning: 'The response of the app is not valid HTTP/1.1.',
    action:
      'The log of the client says what is wrong. If the app uses https, give the client its https:// URL.',
  },
  ORIGIN_TLS: {
    wire: 24,
    status: 502,
    fault: 'origin',
    meaning: 'The TLS connection to the app failed.',
    action:
      'Trust its authority with --app-ca (appCa) or in this system, or accept any certificate of the app with --app-insecure (appInsecure).',
  },
  ORIGIN_NO_WEBSOCKET: {
    wire: 169,
    status: 501,
    fault: 'origin',
    meaning: 'The app accepts no WebSockets over HTTP/2, and no HTTP/1.1 on the same port.',
    action:
      'Make the app send SETTINGS_ENABLE_CONNECT_PROTOCOL (RFC 8441), or give its WebSockets a service or route without `protocol`.',
  },
  ORIGIN_UNREACHABLE: {
    wire: 25,
    status: 502,
    fault: 'origin',
    retryable: true,
    meaning: 'The client cannot find or reach the host of the app.',
    action: 'Check the --host of the client.',
  },
  ORIGIN_UNHEALTHY: {
    wire: 27,
    status: 503,
    fault: 'origin',
    retryable: true,
    meaning: 'The app is unhealthy: it fails the health checks of its client.',
    action: 'Look at the log of the app, and at the health option.',
  },
  HANDLER_FAILED: {
    wire: 26,
    status: 500,
    fault: 'origin',
    meaning: 'The app threw an error.',
    action: 'Look in the log of the client, or at the `cause` of its error event.',
  },
  ORIGIN_SCHEME: {
    wire: 172,
    status: 502,
    fault: 'origin',
    meaning: 'The app expects https on this port and the client sent plain HTTP, or the reverse.',
    action: 'Give the client the https:// URL of an app with TLS, or the http:// URL of an app without.',
  },
  // Requests that a wire cannot carry
  WIRE_UNSUPPORTED: {
    wire: 30,
    status: 501,
    fault: 'client',
    meaning:
      'The JSON wire of this client cannot carry this request or response, or the server has no JSON wire.',
    action: 'Start the client without --wire json.',
  },
  // Sessions and carriers
  PROTOCOL_ERROR: {
    wire: 40,
    status: 502,
    fault: 'client',
    meaning: 'The other end broke the rules of the tunnel protocol.',
    action: 'Use the same version on both ends.',
  },
  FLOOD: {
    wire: 45,
    status: 502,
    fault: 'client',
    meaning: 'The other end sent too many control frames.',
    action: 'Use the same version on both ends.',
  },
  CANCELLED: {
    wire: 47,
    status: 499,
    fault: 'visitor',
    retryable: true,
    meaning: 'The visitor left before the response was complete.',
    action: 'You do not need to do anything.',
  },
  CARRIER_LOST: {
    wire: 48,
    status: 502,
    fault: 'client',
    retryable: true,
    meaning: 'The connection between client and server was lost, or stopped responding.',
    action: 'Check the network; the client reconnects by itself.',
  },
  // Registration
  NAME_INVALID: {
    wire: 60,
    status: 400,
    fault: 'user',
    meaning: 'The name is not a valid subdomain.',
    action: 'Use 1 to 63 of a-z, 0-9 and "-", starting and ending with a letter or digit.',
  },
  NAME_RESERVED: {
    wire: 61,
    status: 403,
    fault: 'user',
    meaning: 'The name is reserved by the server.',
    action: 'Choose another name.',
  },
  NAME_TAKEN: {
    wire: 62,
    status: 409,
    fault: 'user',
    retryable: true,
    meaning: 'Another client uses this name.',
    action: 'Choose another name, or stop that client: it may be yours, in another terminal.',
  },
  TOKEN_REFUSED: {
    wire: 63,
    status: 401,
    fault: 'user',
    meaning: 'The server does not accept this token.',
    action: 'Run: localtunnels login <server>, or set TUNNEL_TOKEN (--token) to a token of this server.',
  },
  ORIGIN_HEADER_REFUSED: {
    wire: 64,
    status: 403,
    fault: 'user',
    meaning: 'Web pages may not open control connections.',
    action: 'Connect with a client that sends no Origin header.',
  },
  CLIENT_LIMIT: {
    wire: 65,
    status: 503,
    fault: 'server',
    retryable: true,
    meaning:
      'The server has reached its limit of clients, or of tunnels or ports for this client, token or address.',
    action: 'Close a tunnel, try again later, or ask the operator to raise the limit.',
  },
  REGISTER_TIMEOUT: {
    wire: 66,
    status: 408,
    fault: 'client',
    retryable: true,
    meaning: 'A control connection did not register a tunnel in time.',
    action: 'Send a register message right after connecting.',
  },
  NOT_ALLOWED: {
    wire: 67,
    status: 403,
    fault: 'user',
    meaning: 'The token does not allow this name, host, port or kind of tunnel, or the server does not.',
    action: 'Request one that the token allows, or use another token.',
  },
  KIND_REFUSED: {
    wire: 68,
    status: 501,
    fault: 'server',
    meaning: 'The server does not offer tunnels of this kind.',
    action:
      'Ask the operator to set --tcp-ports (tcpPorts), --udp-ports (udpPorts) or --tls-port (tlsPort). If you use the JSON wire, use the streams wire.',
  },
  PORT_TAKEN: {
    wire: 69,
    status: 409,
    fault: 'user',
    retryable: true,
    meaning: 'The public port is in use on the server.',
    action: 'Request another port, or none.',
  },
  TOO_MANY_REFUSALS: {
    wire: 120,
    status: 429,
    fault: 'client',
    retryable: true,
    meaning: 'The server has refused too many tokens or registrations of this address or token.',
    action: 'Correct the token, names and ports of the client. Then try again in a few seconds.',
  },
  TOKEN_EXPIRED: {
    wire: 245,
    status: 401,
    fault: 'user',
    meaning: 'The token has expired.',
    action: 'Get a new one from its issuer, then connect again.',
  },
  UPGRADE_FAILED: {
    wire: 241,
    status: 503,
    fault: 'server',
    meaning: 'The new program did not start, so the old one continues.',
    action: 'Read what it printed, run "localtunnels config check", and upgrade again.',
  },
  SERVER_REPLACED: {
    wire: 242,
    status: 503,
    fault: 'server',
    retryable: true,
    meaning: 'A new program of the server has taken over.',
    action: 'You do not need to do anything: clients connect to it by themselves.',
  },
  BUFFERS_FULL: {
    wire: 123,
    status: 503,
    fault: 'server',
    retryable: true,
    meaning: 'Too many bytes wait for slow readers of this token or address, or of all visitors.',
    action: 'Read or send faster, or try again in a moment.',
  },
  OPEN_SERVER: {
    wire: 121,
    status: 403,
    fault: 'user',
    meaning: 'A server without tokens gives names and ports of this machine to everyone.',
    action:
      'Set a token (--token), listen on this machine only (--host 127.0.0.1), or open it on purpose (--open, or open = true in its file).',
  },
  // The user's side: options, reaching the server
  OPTION_INVALID: {
    wire: 80,
    status: 400,
    fault: 'user',
    meaning: 'An option has a value that cannot be used.',
    action: 'Change the option that the message names.',
  },
  PORT_IN_USE: {
    wire: 82,
    status: 409,
    fault: 'user',
    retryable: true,
    meaning: 'Another program uses this port.',
    action: 'Choose another port, or 0 for any free one.',
  },
  SERVER_UNREACHABLE: {
    wire: 83,
    status: 502,
    fault: 'user',
    retryable: true,
    meaning: 'The client cannot reach the tunnel server.',
    action: 'Check the address and the network, or start a server with: localtunnels server',
  },
  SERVER_REFUSED: {
    wire: 84,
    status: 502,
    fault: 'user',
    meaning: 'The program at this address is not a localtunnels server.',
    action: 'Check --server. A proxy in front of the server must pass WebSocket upgrades.',
  },
  SERVER_UNTRUSTED: {
    wire: 135,
    status: 502,
    fault: 'user',
    meaning: 'The certificate of the tunnel server is not trusted.',
    action:
      'Trust its authority with --ca <file> or in this system, or accept any certificate with --insecure.',
  },
  SERVER_SCHEME: {
    wire: 136,
    status: 502,
    fault: 'user',
    meaning: "The server's port uses TLS and its address says http://, or the reverse.",
    action: 'Use https:// (or wss://) for a port with TLS, http:// (or ws://) for a port without.',
  },
  TLS_INVALID: {
    wire: 86,
    status: 400,
    fault: 'user',
    meaning: 'The certificate or key is not valid.',
    action: 'Give a PEM certificate and the key that belongs to it.',
  },
  RUNTIME_UNSUPPORTED: {
    wire: 87,
    status: 500,
    fault: 'user',
    meaning: 'This needs the Bun runtime.',
    action: 'Install Bun 1.4 or newer: https://bun.sh. A client with --server also runs on Node 20.',
  },
  STATE_INVALID: {
    wire: 88,
    status: 500,
    fault: 'user',
    meaning: 'This is not possible in the current state.',
    action: 'Start it first. After a stop, create a new instance.',
  },
  CONFIG_INVALID: {
    wire: 95,
    status: 400,
    fault: 'user',
    meaning: 'The configuration file has faults.',
    action: 'See docs/configuration.md for every key and examples.',
  },
  TOKEN_UNENCRYPTED: {
    wire: 130,
    status: 400,
    fault: 'user',
    meaning: 'The client would send the token to another machine unencrypted.',
    action:
      'Use an https:// server. If you trust the network, allow it with --insecure-token (insecureToken).',
  },
  LOGIN_INVALID: {
    wire: 131,
    status: 500,
    fault: 'user',
    meaning: 'The file of saved logins cannot be used.',
    action: 'Fix it or delete it, then run: localtunnels login <server>',
  },
  // The proxy between client and server
  PROXY_AUTH_REFUSED: {
    wire: 91,
    status: 502,
    fault: 'user',
    meaning: 'The proxy to the tunnel server needs a user and password, or refused them.',
    action: "Put them into the proxy's URL: http://user:password@host:port, with special characters as %40.",
  },
  PROXY_FAILED: {
    wire: 92,
    status: 502,
    fault: 'user',
    retryable: true,
    meaning: 'The proxy to the tunnel server cannot be reached, or refused the connection.',
    action:
      'Check the address of the proxy, and whether it allows connections to the port of the server, mostly 443.',
  },
  PROXY_HEADER_INVALID: {
    wire: 96,
    status: 400,
    fault: 'user',
    meaning: 'A trusted proxy did not send a valid PROXY header.',
    action:
      'Make it send one (HAProxy: send-proxy-v2, nginx: proxy_protocol on), or turn acceptProxyProtocol off.',
  },
  WORKER_FAILED: {
    wire: 100,
    status: 500,
    fault: 'server',
    retryable: true,
    meaning: 'A worker thread that moves bytes failed.',
    action: 'It starts again by itself. Please report it; LOCALTUNNELS_SPLICE=0 turns these threads off.',
  },
  // Certificates
  ACME_UNREACHABLE: {
    wire: 160,
    status: 503,
    fault: 'server',
    retryable: true,
    meaning: 'The certificate authority cannot be reached, or its response is not ACME (RFC 8555).',
    action: 'Check the address of the directory. The server tries again by itself.',
  },
  ACME_REFUSED: {
    wire: 162,
    status: 503,
    fault: 'user',
    meaning: 'The certificate authority refused the request or the account.',
    action:
      'Read its reason. For an account, check contact and external account binding, or remove the stored account.',
  },
  ACME_RATE_LIMITED: {
    wire: 163,
    status: 503,
    fault: 'user',
    retryable: true,
    meaning: 'The certificate authority accepts no more requests for now.',
    action: 'Wait: the server orders again as soon as it may. The staging directory has higher limits.',
  },
  ACME_CHALLENGE_FAILED: {
    wire: 165,
    status: 503,
    fault: 'user',
    retryable: true,
    meaning: 'The certificate authority could not confirm that the name belongs to this server.',
    action:
      'Check that the name points to this server, and that ports 80 and 443 are open to the internet. For DNS-01, check the zone.',
  },
  CERTIFICATE_DELAYED: {
    wire: 167,
    status: 503,
    fault: 'server',
    retryable: true,
    meaning:
      'The server orders no certificate for this name now: earlier orders failed, or there were too many.',
    action: 'Wait until the time in the message. An earlier message has the reason.',
  },
  STORE_FAILED: {
    wire: 168,
    status: 503,
    fault: 'user',
    retryable: true,
    meaning: 'localtunnels cannot use a file or store.',
    action: 'Check its path, its permissions and the free space.',
  },
  CLIENT_CERTIFICATE_MISSING: {
    wire: 180,
    status: 403,
    fault: 'client',
    meaning: 'The server accepts only clients with a certificate of its authority, and this client has none.',
    action: 'Give the client a certificate and key that the operator has signed: --cert and --key.',
  },
  HTTP3_BODY_TOO_LARGE: {
    wire: 213,
    status: 421,
    fault: 'visitor',
    retryable: true,
    meaning: 'Over HTTP/3, this server accepts request bodies of up to 8 MiB.',
    action: 'Send the request to the same address over HTTP/2 or HTTP/1.1.',
  },
  HOST_TAKEN: {
    wire: 176,
    status: 409,
    fault: 'client',
    retryable: true,
    meaning: 'Another tunnel uses this host.',
    action: 'Choose another host, or close that tunnel. After a lost connection, wait until its lease ends.',
  },
  HOST_NOT_POINTED_HERE: {
    wire: 179,
    status: 503,
    fault: 'user',
    retryable: true,
    meaning: 'DNS does not point this host to the server, so the server orders no certificate for it.',
    action:
      'Point a CNAME, A or AAAA record of the host to the server. The server looks it up again within a minute.',
  },
  // Guards
  ADDRESS_REFUSED: {
    wire: 185,
    status: 403,
    fault: 'visitor',
    meaning: 'This address may not visit the app.',
    action: 'Ask the person who shares the app to allow your address.',
  },
  RATE_LIMITED: {
    wire: 186,
    status: 429,
    fault: 'visitor',
    retryable: true,
    meaning: 'Too many requests, connections or wrong passwords came from this address.',
    action: 'Wait for the time in the Retry-After header.',
  },
  ACCESS_REQUIRED: {
    wire: 187,
    status: 401,
    fault: 'visitor',
    meaning: 'You need a password, a token or a link to open this app.',
    action: 'Sign in, or ask the person who shares it for a link.',
  },
  CERTIFICATE_REQUIRED: {
    wire: 249,
    status: 403,
    fault: 'visitor',
    meaning:
      'The app accepts only visitors with a certificate that its owner trusts, and this connection has none.',
    action:
      'Choose your certificate when the browser asks, or give it to your program (curl: --cert, --key).',
  },
  CONNECTION_MISDIRECTED: {
    wire: 250,
    status: 421,
    fault: 'visitor',
    retryable: true,
    meaning:
      'The app requires a certificate, and this connection was opened for another name, or before the app required one.',
    action:
      'Open a new connection whose TLS handshake names this host. Browsers do so, at the latest when you reload the page.',
  },
  CREDENTIALS_REFUSED: {
    wire: 188,
    status: 401,
    fault: 'visitor',
    meaning: 'The password or token is wrong.',
    action: 'Check it, or ask the person who shares the app for the current one.',
  },
  LINK_REFUSED: {
    wire: 189,
    status: 403,
    fault: 'visitor',
    meaning: 'The link has expired, was used already, or was revoked.',
    action: 'Ask the person who shares the app for a new one.',
  },
  LOGIN_REFUSED: {
    wire: 190,
    status: 403,
    fault: 'visitor',
    meaning: 'The sign-in failed, or this account may not visit the app.',
    action: 'Sign in with another account, or ask the person who shares the app.',
  },
  GUARD_REFUSED: {
    wire: 191,
    status: 403,
    fault: 'visitor',
    meaning: 'A guard of the server or tunnel refused the visit.',
    action: 'Ask the person who shares the app.',
  },
  TUNNEL_EXPIRED: {
    wire: 192,
    status: 410,
    fault: 'user',
    meaning: 'The app was shared for a limited time, which has ended.',
    action: 'Share it again.',
  },
  ISSUER_UNAVAILABLE: {
    wire: 193,
    status: 503,
    fault: 'server',
    retryable: true,
    meaning: 'The service that issues tokens or signs visitors in cannot be reached.',
    action: 'Try again in a few seconds. The operator should check that the server reaches it.',
  },
  GUARD_UNAVAILABLE: {
    wire: 196,
    status: 501,
    fault: 'user',
    meaning: 'The server cannot enforce the access control of this tunnel, so it does not open the tunnel.',
    action: 'Use another sign-in method, or ask the operator to set up what is missing.',
  },
  FEATURE_UNSUPPORTED: {
    wire: 197,
    status: 501,
    fault: 'user',
    meaning: 'The server does not support an option of this tunnel, so the tunnel is not opened.',
    action: 'Update the server, use the streams wire, or remove the option.',
  },
  POOL_DIFFERS: {
    wire: 211,
    status: 409,
    fault: 'user',
    meaning: 'The clients of this name share it in another way, or with another guard.',
    action: 'Give all clients the same pool, guard and guard secret, or choose another name.',
  },
  FILTERED_OUT: {
    wire: 210,
    status: 404,
    fault: 'user',
    meaning:
      'No client accepts this request: it matches none of their filters, or its path is not below their strip-prefix.',
    action: 'Check the path, and the filters and prefixes of the clients that use this name.',
  },
  // The inspector
  INSPECT_TOKEN_REFUSED: {
    wire: 200,
    status: 401,
    fault: 'user',
    meaning: 'The inspector needs its token.',
    action:
      'Open the URL that the client prints, or read url and token from its file in $XDG_RUNTIME_DIR/localtunnels.',
  },
  INSPECT_REFUSED: {
    wire: 201,
    status: 403,
    fault: 'user',
    meaning: 'The inspector responds only to its own page and to programs on this machine.',
    action:
      'Use 127.0.0.1, [::1] or localhost with its port and no other origin. To change something, send Content-Type: application/json.',
  },
  EXCHANGE_NOT_FOUND: {
    wire: 202,
    status: 404,
    fault: 'user',
    meaning: 'The inspector has no request with this id, or has deleted it.',
    action: 'List the requests. Pin those that must stay.',
  },
  BODY_TRUNCATED: {
    wire: 204,
    status: 409,
    fault: 'user',
    meaning: 'The inspector did not keep the whole body, so it cannot send it again.',
    action: "Raise the inspector's maxBody, and have the request sent again.",
  },
  REPLAY_IMPOSSIBLE: {
    wire: 205,
    status: 409,
    fault: 'user',
    meaning: 'The inspector cannot send this request again.',
    action: 'Choose a complete HTTP request to a tunnel that is still open.',
  },
  WAIT_TIMEOUT: {
    wire: 206,
    status: 408,
    fault: 'user',
    retryable: true,
    meaning: 'No request that matches the filter ended in time.',
    action: 'Check the filter, or wait longer.',
  },
  INSPECTOR_NOT_FOUND: {
    wire: 207,
    status: 404,
    fault: 'user',
    retryable: true,
    meaning: 'No client with an inspector runs on this machine for this user.',
    action:
      'Start one with --inspect, or for "up" with inspect = true in its file. If there are several, choose one with --pid.',
  },
  INBOX_REFUSED: {
    wire: 215,
    status: 403,
    fault: 'user',
    meaning: 'The server does not store webhooks for this client.',
    action: 'Remove inbox, or ask the operator for a token, and for a server with --inbox (inbox).',
  },
  INBOX_FULL: {
    wire: 216,
    status: 503,
    fault: 'server',
    retryable: true,
    meaning: 'The client is away, and its inbox cannot store another webhook.',
    action:
      'Start the client, so that it gets the stored webhooks. If the server could not write, its log has the reason.',
  },
  SIGNATURE_INVALID: {
    wire: 208,
    status: 401,
    fault: 'visitor',
    meaning: 'The signature of the webhook is not valid.',
    action: 'Check the signing secret on both sides, and the clock.',
  },
  PLUGIN_FAILED: {
    wire: 225,
    status: 500,
    fault: 'server',
    retryable: true,
    meaning: 'A guard, middleware or observer of the server failed, or did not decide in time.',
    action: "Try again. The server's error event says which one, and why.",
  },
  ADMIN_REFUSED: {
    wire: 226,
    status: 401,
    fault: 'user',
    meaning: 'The admin listener does not accept this token.',
    action: 'Use the token of the admin listener, not that of a client.',
  },
  ADMIN_INVALID: {
    wire: 227,
    status: 400,
    fault: 'user',
    meaning: 'The admin API does not support this request.',
    action: 'Compare the request with /api/v1/openapi.json, or run localtunnels help admin.',
  },
  BLOCKED: {
    wire: 228,
    status: 403,
    fault: 'user',
    meaning: 'The operator does not allow this address, client or name.',
    action: 'Ask the operator of the server.',
  },
  CIRCUIT_OPEN: {
    wire: 229,
    status: 503,
    fault: 'origin',
    retryable: true,
    meaning: 'The app failed too often, so the server sends it no requests for a while.',
    action: "Try again after the time in Retry-After, which the operator's breaker sets.",
  },
  INTERNAL: {
    wire: 99,
    status: 500,
    fault: 'server',
    meaning: 'localtunnels failed in an unexpected way.',
    action: 'Please report it, with the log.',
  },
} as const

/** A stable error code, listed in `docs/errors.md`. Codes and wire numbers are public: they are added, never renamed. */
export type ErrorCode = keyof typeof ROWS

/** The meaning of each error code. */
export const ERRORS: Readonly<Record<ErrorCode, ErrorEntry>> = ROWS

/** Whether the value is a code of this version. */
export const isErrorCode = (value: unknown): value is ErrorCode =>
  typeof value === 'string' && Object.hasOwn(ERRORS, value)

/** The codes whose detail already contains the next step. */
const DETAIL_SAYS_ALL: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  'OPTION_INVALID',
  'SERVER_SCHEME',
  'ORIGIN_SCHEME',
])

/** An error that localtunnels throws or passes to an `error` event. Match on `code`, not on the message. */
export class TunnelError extends Error {
  /** The code, as `ERRORS` and `docs/errors.md` list it. */
  readonly code: ErrorCode

  /**
   * Makes an error. `detail` replaces the meaning of the code in the message. The action stays, except for
   * `OPTION_INVALID`, `SERVER_SCHEME` and `ORIGIN_SCHEME`, whose detail says what to do. `action` replaces the
   * action; empty: the detail contains the next step.
   */
  constructor(
    code: ErrorCode,
    detail?: string,
    options: { readonly cause?: unknown; readonly action?: string | undefined } = {},
  ) {
    const { meaning } = ERRORS[code]
    const { cause, action = ERRORS[code].action } = options
    // A message from another end already contains the next step.
    const isEnough =
      detail !== undefined && (DETAIL_SAYS_ALL.has(code) || action === '' || detail.endsWith(action))
    super(isEnough ? detail : `${detail ?? meaning} ${action}`, 'cause' in options ? { cause } : undefined)
    this.name = 'TunnelError'
    this.code = code
  }
}

/** An option, a flag or a key that cannot be used. `detail` says why, and what to do. */
export function optionInvalid(
  detail: string,
  options?: ConstructorParameters<typeof TunnelError>[2],
): TunnelError {
  return new TunnelError('OPTION_INVALID', detail, options)
}

/** The message of what was thrown, which may be no error. */
export function messageOf(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message : String(thrown)
}

export function errorOf(thrown: unknown): Error {
  return thrown instanceof Error ? thrown : new Error(String(thrown))
}

const byWire = new Map<number, ErrorCode>(
  Object.entries(ERRORS).map(([code, { wire }]) => [wire, code as ErrorCode]), // the entries have the keys of ERRORS
)

/** Returns the code for a number in a RESET or GOAWAY frame; `INTERNAL` for a number that only a newer peer knows. */
export function errorOfWire(wire: number): ErrorCode {
  return byWire.get(wire) ?? 'INTERNAL'
}

const FILE_FAULTS: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such file',
  ENOTDIR: 'there is no such folder',
  EISDIR: 'it is a folder',
  EACCES: 'this user may not',
  EPERM: 'this user may not',
  ELOOP: 'its links go round in a circle',
  ENAMETOOLONG: 'the name is too long',
}

/** Returns why a file cannot be read, in plain words. */
export function whyUnreadable(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? String(error.code) : ''
  return FILE_FAULTS[code] ?? messageOf(error)
}
