// One error class and one table: every way localtunnels says no, with its stable code.

/** What one error code means, wherever it shows up. */
export interface ErrorEntry {
  /** Number in RESET and GOAWAY frames. Never reused; `docs/protocol.md` lists them. */
  readonly wire: number
  /** HTTP status the visitor gets when an exchange fails with it. */
  readonly status: number
  /** Whose doing it is: the page that the visitor sees says so. */
  readonly fault: 'visitor' | 'server' | 'client' | 'origin' | 'user'
  /** Whether the same request or command may work if tried again unchanged. */
  readonly retryable: boolean
  /** What happened, one sentence. */
  readonly meaning: string
  /** What to do about it, one sentence. */
  readonly action: string
}

const entry = (
  wire: number,
  status: number,
  fault: ErrorEntry['fault'],
  retryable: boolean,
  meaning: string,
  action: string,
): ErrorEntry => ({ wire, status, fault, retryable, meaning, action })

/** A stable error code, listed in `docs/errors.md`. Codes and wire numbers are public: they are added, never renamed. */
export type ErrorCode =
  | 'BAD_REQUEST'
  | 'HEAD_TOO_LARGE'
  | 'TARGET_TOO_LONG'
  | 'HEAD_TIMEOUT'
  | 'VERSION_UNSUPPORTED'
  | 'METHOD_REFUSED'
  | 'UPGRADE_UNSUPPORTED'
  | 'BODY_TOO_LARGE'
  | 'BODY_TIMEOUT'
  | 'VISITOR_STALLED'
  | 'HOST_UNKNOWN'
  | 'TUNNEL_NOT_FOUND'
  | 'CLIENT_GONE'
  | 'CLIENT_RECONNECTING'
  | 'TUNNEL_BUSY'
  | 'SERVER_DRAINING'
  | 'VISITOR_LIMIT'
  | 'ADDRESS_LIMIT'
  | 'DESCRIPTORS_SHORT'
  | 'SERVER_STARTING'
  | 'CLUSTER_UNREACHABLE'
  | 'CLUSTER_MOVED'
  | 'ORIGIN_REFUSED'
  | 'ORIGIN_TIMEOUT'
  | 'ORIGIN_CLOSED'
  | 'ORIGIN_INVALID'
  | 'ORIGIN_TLS'
  | 'ORIGIN_NO_WEBSOCKET'
  | 'ORIGIN_UNREACHABLE'
  | 'ORIGIN_UNHEALTHY'
  | 'HANDLER_FAILED'
  | 'ORIGIN_SPEAKS_TLS'
  | 'ORIGIN_SPEAKS_PLAIN'
  | 'WIRE_UNSUPPORTED'
  | 'ANSWER_TOO_LARGE'
  | 'PROTOCOL_ERROR'
  | 'FRAME_TOO_LARGE'
  | 'CREDIT_EXCEEDED'
  | 'STREAM_UNKNOWN'
  | 'STREAM_LIMIT'
  | 'FLOOD'
  | 'CARRIER_DEAD'
  | 'CANCELLED'
  | 'CARRIER_LOST'
  | 'NAME_INVALID'
  | 'NAME_RESERVED'
  | 'NAME_TAKEN'
  | 'TOKEN_REFUSED'
  | 'ORIGIN_HEADER_REFUSED'
  | 'CLIENT_LIMIT'
  | 'REGISTER_TIMEOUT'
  | 'NOT_ALLOWED'
  | 'KIND_REFUSED'
  | 'PORT_TAKEN'
  | 'PORT_NOT_ALLOWED'
  | 'PORTS_EXHAUSTED'
  | 'REFUSED_TOO_OFTEN'
  | 'OPEN_SERVER'
  | 'TOKEN_THROTTLED'
  | 'TOKEN_EXPIRED'
  | 'TOKEN_ISSUER_UNAVAILABLE'
  | 'RATES_UNREACHABLE'
  | 'LISTENERS_INVALID'
  | 'UPGRADE_FAILED'
  | 'SERVER_REPLACED'
  | 'BUFFERS_FULL'
  | 'OPTION_INVALID'
  | 'PORT_INVALID'
  | 'PORT_IN_USE'
  | 'SERVER_UNREACHABLE'
  | 'SERVER_REFUSED'
  | 'SERVER_UNTRUSTED'
  | 'SERVER_SCHEME'
  | 'CONNECT_TIMEOUT'
  | 'TLS_INVALID'
  | 'RUNTIME_UNSUPPORTED'
  | 'STATE_INVALID'
  | 'PROXY_UNREACHABLE'
  | 'PROXY_AUTH_REFUSED'
  | 'PROXY_REFUSED'
  | 'CONFIG_INVALID'
  | 'TOKEN_IN_CLEAR'
  | 'LOGIN_INVALID'
  | 'PROXY_HEADER_INVALID'
  | 'WORKER_FAILED'
  | 'STATE_UNWRITABLE'
  | 'OUTPUT_INCOMPLETE'
  | 'ACME_UNREACHABLE'
  | 'ACME_ANSWER_INVALID'
  | 'ACME_REFUSED'
  | 'ACME_RATE_LIMITED'
  | 'ACME_ACCOUNT_REFUSED'
  | 'ACME_CHALLENGE_FAILED'
  | 'DNS_RECORD_FAILED'
  | 'CERTIFICATE_DELAYED'
  | 'CERTIFICATE_STORE_FAILED'
  | 'CLIENT_CERTIFICATE_MISSING'
  | 'HTTP3_UNSUPPORTED'
  | 'HTTP3_BODY_TOO_LARGE'
  | 'HOST_TAKEN'
  | 'HOST_NOT_ALLOWED'
  | 'HOSTS_UNSUPPORTED'
  | 'HOST_ELSEWHERE'
  | 'ADDRESS_REFUSED'
  | 'RATE_LIMITED'
  | 'ACCESS_REQUIRED'
  | 'CERTIFICATE_REQUIRED'
  | 'CONNECTION_MISDIRECTED'
  | 'CREDENTIALS_REFUSED'
  | 'LINK_REFUSED'
  | 'LOGIN_REFUSED'
  | 'GUARD_REFUSED'
  | 'TUNNEL_EXPIRED'
  | 'LOGIN_UNAVAILABLE'
  | 'GUARD_FAILED'
  | 'GUARD_INVALID'
  | 'GUARD_UNAVAILABLE'
  | 'GUARD_UNSUPPORTED'
  | 'GUARD_DIFFERS'
  | 'POOL_DIFFERS'
  | 'NOT_TAKEN'
  | 'COPIES_REFUSED'
  | 'CREDENTIALS_THROTTLED'
  | 'INSPECT_TOKEN_REFUSED'
  | 'INSPECT_REFUSED'
  | 'EXCHANGE_NOT_FOUND'
  | 'FILTER_INVALID'
  | 'BODY_CUT'
  | 'REPLAY_IMPOSSIBLE'
  | 'WAIT_TIMEOUT'
  | 'INSPECTOR_NOT_FOUND'
  | 'SIGNATURE_INVALID'
  | 'INBOX_REFUSED'
  | 'INBOX_FULL'
  | 'INBOX_FAILED'
  | 'INSPECT_STORE_FAILED'
  | 'OBSERVER_FAILED'
  | 'MIDDLEWARE_FAILED'
  | 'ADMIN_REFUSED'
  | 'ADMIN_INVALID'
  | 'ADMIN_UNAVAILABLE'
  | 'BLOCKED'
  | 'CIRCUIT_OPEN'
  | 'EDITOR_FAILED'
  | 'INTERNAL'

/** What each error code means. */
export const ERRORS: Readonly<Record<ErrorCode, ErrorEntry>> = {
  // The visitor's request
  BAD_REQUEST: entry(
    1,
    400,
    'visitor',
    false,
    'The request is not well-formed HTTP/1.1, or can be read in two ways.',
    'Send one Host, one length, CRLF line ends and no control characters.',
  ),
  HEAD_TOO_LARGE: entry(
    2,
    431,
    'visitor',
    false,
    'The request head has too many bytes or headers.',
    'Send smaller or fewer headers, or raise maxHeadBytes or maxHeaderCount on the server.',
  ),
  TARGET_TOO_LONG: entry(
    3,
    414,
    'visitor',
    false,
    'The request target is longer than the server accepts.',
    'Shorten the URL or raise maxTargetBytes on the server.',
  ),
  HEAD_TIMEOUT: entry(
    4,
    408,
    'visitor',
    true,
    'The request head did not arrive in time.',
    'Send the whole head within headTimeoutMs.',
  ),
  VERSION_UNSUPPORTED: entry(
    5,
    505,
    'visitor',
    false,
    'This HTTP version is not served.',
    'Use HTTP/1.1 or HTTP/1.0.',
  ),
  METHOD_REFUSED: entry(
    6,
    405,
    'visitor',
    false,
    'CONNECT is not served: this is not a forward proxy.',
    'Send the request to the tunnel itself.',
  ),
  UPGRADE_UNSUPPORTED: entry(
    170,
    501,
    'visitor',
    false,
    'The visitor asked for another protocol than WebSocket by HTTP/2.',
    'Use an extended CONNECT with `:protocol: websocket`, or HTTP/1.1.',
  ),
  BODY_TOO_LARGE: entry(
    7,
    413,
    'visitor',
    false,
    'The request body is larger than this tunnel can carry.',
    'Send less, raise maxBodyBytes, or use the streams wire, by default without a limit.',
  ),
  BODY_TIMEOUT: entry(
    9,
    408,
    'visitor',
    true,
    'The request body stopped, and the server keeps it until it is complete.',
    'Send the next bytes sooner: within headTimeoutMs, or 15 s for a webhook that is checked.',
  ),
  VISITOR_STALLED: entry(
    8,
    408,
    'visitor',
    true,
    'The visitor stopped reading the answer.',
    'Read on within sendTimeoutMs, or ask again.',
  ),
  // Finding the way
  HOST_UNKNOWN: entry(
    10,
    404,
    'visitor',
    false,
    'The Host is not one of this server.',
    'Ask for <name>.<domain> with a domain that this server was started with.',
  ),
  TUNNEL_NOT_FOUND: entry(
    11,
    404,
    'client',
    true,
    'No tunnel has this name.',
    'Start the client with this name, or check the URL for a typing error.',
  ),
  CLIENT_GONE: entry(
    12,
    502,
    'client',
    true,
    'The tunnel client disconnected.',
    'Start the client again; the page works as soon as it is back.',
  ),
  CLIENT_RECONNECTING: entry(
    13,
    503,
    'client',
    true,
    'The tunnel client lost its connection and did not come back in time.',
    'Try again in a moment; the client keeps trying to reconnect.',
  ),
  TUNNEL_BUSY: entry(
    14,
    503,
    'client',
    true,
    'The tunnel has as many requests under way as it may.',
    'Try again in a moment or raise maxStreams.',
  ),
  SERVER_DRAINING: entry(
    15,
    503,
    'server',
    true,
    'The server is stopping and takes no new requests.',
    'Try again in a moment.',
  ),
  VISITOR_LIMIT: entry(
    115,
    503,
    'server',
    true,
    'The server can take no more connections of visitors.',
    'Try again in a moment, or raise maxVisitors, or the descriptors of the process, on the server.',
  ),
  ADDRESS_LIMIT: entry(
    116,
    503,
    'visitor',
    true,
    'One address opens more connections than the server takes.',
    'Keep connections open for several requests, or raise maxAddressVisitors or maxAddressRate on the server.',
  ),
  DESCRIPTORS_SHORT: entry(
    117,
    503,
    'server',
    true,
    'The server process has hardly any free descriptors.',
    'Let it open more (ulimit -n, LimitNOFILE=), or lower maxVisitors.',
  ),
  CLUSTER_UNREACHABLE: entry(
    230,
    503,
    'server',
    true,
    'The server cannot reach the directory of its cluster.',
    'Try again; the operator checks that Redis runs and that the server reaches it.',
  ),
  CLUSTER_MOVED: entry(
    231,
    421,
    'server',
    true,
    'Another server of the cluster holds the name now.',
    'Try again.',
  ),
  SERVER_STARTING: entry(
    118,
    503,
    'server',
    true,
    'The server has just started, and this name has no client yet.',
    'Try again in a moment; clients reconnect by themselves.',
  ),
  // The origin
  ORIGIN_REFUSED: entry(
    20,
    502,
    'origin',
    true,
    'The app is not running.',
    'Start the app, or check the port that the client was given.',
  ),
  ORIGIN_TIMEOUT: entry(
    21,
    504,
    'origin',
    true,
    'The app did not read or answer the request in time.',
    'Find out why the app is slow, or raise --origin-timeout on the server.',
  ),
  ORIGIN_CLOSED: entry(
    22,
    502,
    'origin',
    true,
    'The app closed the connection before its answer was complete.',
    'Look at the log of the app: it may have crashed.',
  ),
  ORIGIN_INVALID: entry(
    23,
    502,
    'origin',
    false,
    "The app's answer is not well-formed HTTP/1.1.",
    'The log of the client says what is wrong with it. For an https app give the client an https:// URL.',
  ),
  ORIGIN_TLS: entry(
    24,
    502,
    'origin',
    false,
    'The TLS connection to the app failed.',
    'Name the authority of its certificate with --app-ca (appCa), add it to those of this system, or accept any certificate of the app with --app-insecure (appInsecure).',
  ),
  ORIGIN_NO_WEBSOCKET: entry(
    169,
    501,
    'origin',
    false,
    'The app takes no WebSockets by HTTP/2, nor HTTP/1.1 on the same port.',
    'Let the app send SETTINGS_ENABLE_CONNECT_PROTOCOL (RFC 8441), or give its WebSockets a service or route without `protocol`.',
  ),
  ORIGIN_UNREACHABLE: entry(
    25,
    502,
    'origin',
    true,
    'The host of the app cannot be found or reached.',
    'Check --host given to the client.',
  ),
  ORIGIN_UNHEALTHY: entry(
    27,
    503,
    'origin',
    true,
    "The app is unwell: it fails its client's health checks.",
    'Look at the log of the app, and at what the health option asks for.',
  ),
  HANDLER_FAILED: entry(
    26,
    500,
    'origin',
    false,
    'The app threw an error.',
    "Look at the client's error event or log: what was thrown is the cause.",
  ),
  ORIGIN_SPEAKS_TLS: entry(
    172,
    502,
    'origin',
    false,
    'The app speaks TLS on this port and was asked in plain HTTP.',
    'Give the client the https:// URL of the app, such as https://localhost:3000.',
  ),
  ORIGIN_SPEAKS_PLAIN: entry(
    173,
    502,
    'origin',
    false,
    'The app does not speak TLS on this port and was asked by TLS.',
    'Give the client the http:// URL of the app, such as http://localhost:3000.',
  ),
  // What a wire cannot carry
  WIRE_UNSUPPORTED: entry(
    30,
    501,
    'client',
    false,
    'This client speaks the JSON wire, which cannot carry this request.',
    'Use a client that speaks the streams wire.',
  ),
  ANSWER_TOO_LARGE: entry(
    31,
    502,
    'origin',
    false,
    'The answer is too large for the JSON wire.',
    'Use a client that speaks the streams wire, which has no limit.',
  ),
  // Sessions and carriers
  PROTOCOL_ERROR: entry(
    40,
    502,
    'client',
    false,
    'The other end broke the tunnel protocol.',
    'Use the same version on both ends.',
  ),
  FRAME_TOO_LARGE: entry(
    41,
    502,
    'client',
    false,
    'A frame is larger than the limit.',
    'Use the same version on both ends.',
  ),
  CREDIT_EXCEEDED: entry(
    42,
    502,
    'client',
    false,
    'The other end sent more bytes than it had credit for.',
    'Use the same version on both ends.',
  ),
  STREAM_UNKNOWN: entry(
    43,
    502,
    'client',
    false,
    'A frame names a stream that was never opened.',
    'Use the same version on both ends.',
  ),
  STREAM_LIMIT: entry(
    44,
    503,
    'client',
    true,
    'The session has as many open streams as it may.',
    'Try again in a moment or raise maxStreams.',
  ),
  FLOOD: entry(
    45,
    502,
    'client',
    false,
    'The other end sends too many control frames.',
    'Use the same version on both ends.',
  ),
  CARRIER_DEAD: entry(
    46,
    502,
    'client',
    true,
    'The connection between client and server stopped answering.',
    'Check the network; the client reconnects by itself.',
  ),
  CANCELLED: entry(
    47,
    499,
    'visitor',
    true,
    'The visitor left before the answer was complete.',
    'Nothing to do.',
  ),
  CARRIER_LOST: entry(
    48,
    502,
    'client',
    true,
    'The connection between client and server was lost.',
    'Check the network; the client reconnects by itself.',
  ),
  // Registration
  NAME_INVALID: entry(
    60,
    400,
    'user',
    false,
    'The name is not a valid subdomain.',
    'Use 1 to 63 of a-z, 0-9 and "-", starting and ending with a letter or digit.',
  ),
  NAME_RESERVED: entry(61, 403, 'user', false, 'The name is reserved by the server.', 'Choose another name.'),
  NAME_TAKEN: entry(
    62,
    409,
    'user',
    true,
    'Another client holds this name.',
    'Choose another name, or end that client: it may be yours, in another terminal.',
  ),
  TOKEN_REFUSED: entry(
    63,
    401,
    'user',
    false,
    'The server does not accept this token.',
    "Give one of the server's: --token, TUNNEL_TOKEN, or run: localtunnels login <server>",
  ),
  ORIGIN_HEADER_REFUSED: entry(
    64,
    403,
    'user',
    false,
    'Web pages may not open control connections.',
    'Connect with a client that sends no Origin header.',
  ),
  CLIENT_LIMIT: entry(
    65,
    503,
    'server',
    true,
    'The server allows no more clients, or tunnels of this client, token or address.',
    'Try again later, close a tunnel, or raise the limit on the server.',
  ),
  REGISTER_TIMEOUT: entry(
    66,
    408,
    'client',
    true,
    'A control connection registered nothing in time.',
    'Send a register message right after connecting.',
  ),
  NOT_ALLOWED: entry(
    67,
    403,
    'user',
    false,
    'The token does not allow this tunnel.',
    'Ask for a name, kind or port that the token allows, or use another token.',
  ),
  KIND_REFUSED: entry(
    68,
    501,
    'server',
    false,
    'The server has no tunnels of this kind.',
    'Ask its operator for --tcp-ports (tcpPorts), --udp-ports (udpPorts) or --tls-port (tlsPort), or use the streams wire.',
  ),
  PORT_TAKEN: entry(
    69,
    409,
    'user',
    true,
    'The public port is in use on the server.',
    'Ask for another port, or for none.',
  ),
  PORT_NOT_ALLOWED: entry(
    70,
    403,
    'user',
    false,
    'The public port is outside the ranges of server or token.',
    'Ask for a port within them, or for none.',
  ),
  PORTS_EXHAUSTED: entry(
    71,
    503,
    'server',
    true,
    'All public ports of the range are in use.',
    'Try again later or give the server a larger range.',
  ),
  REFUSED_TOO_OFTEN: entry(
    120,
    503,
    'client',
    true,
    'Too many registrations of this token or address were refused in this second.',
    'Try again in a second, and ask for names and ports that the server has.',
  ),
  TOKEN_THROTTLED: entry(
    122,
    429,
    'client',
    true,
    'Too many tokens from this address were refused, and too many wait: this one was not checked.',
    'Try again in a few seconds, and stop the client whose token is refused.',
  ),
  TOKEN_EXPIRED: entry(
    245,
    401,
    'user',
    false,
    'The token is over.',
    'Connect with a fresh one of its issuer.',
  ),
  TOKEN_ISSUER_UNAVAILABLE: entry(
    246,
    503,
    'server',
    true,
    "The server cannot get the keys of the token's issuer to check it.",
    'Try again in a few seconds; the operator checks that the server reaches the issuer.',
  ),
  LISTENERS_INVALID: entry(
    240,
    500,
    'user',
    false,
    'The server cannot use a socket that was passed to it.',
    'Pass listening TCP sockets, one for each port of the server: see "Sockets of systemd" in docs/operating.md.',
  ),
  UPGRADE_FAILED: entry(
    241,
    503,
    'server',
    false,
    'The new program did not start, so the old one goes on.',
    'Read what it printed, try "localtunnels config check", and upgrade again.',
  ),
  SERVER_REPLACED: entry(
    242,
    503,
    'server',
    true,
    'A new program of the server has taken over.',
    'Nothing to do: clients connect to it by themselves.',
  ),
  RATES_UNREACHABLE: entry(
    247,
    503,
    'server',
    true,
    'The servers cannot agree on how often a visitor may ask, and refuse visitors meanwhile.',
    'Try again in a second; the operator checks that the servers reach Redis.',
  ),
  BUFFERS_FULL: entry(
    123,
    503,
    'server',
    true,
    'Too many bytes wait for slow readers of this token or address, or of all visitors.',
    'Read or send faster, or raise maxTokenBufferedBytes, maxAllBufferedBytes or maxAllInputBytes on the server.',
  ),
  OPEN_SERVER: entry(
    121,
    403,
    'user',
    false,
    'A server without tokens gives everybody who reaches it names and ports of this machine.',
    'Give it a token (--token), let it listen on this machine alone (--host 127.0.0.1), or open it on purpose (--open, or open = true in its file).',
  ),
  // The user's side: options, reaching the server
  OPTION_INVALID: entry(
    80,
    400,
    'user',
    false,
    'An option has a value that cannot be used.',
    'Change the option that the message names.',
  ),
  PORT_INVALID: entry(
    81,
    400,
    'user',
    false,
    'The port is not a whole number from 0 to 65535.',
    'Give a port such as 3000.',
  ),
  PORT_IN_USE: entry(
    82,
    409,
    'user',
    true,
    'Another program listens on this port.',
    'Choose another port, or 0 for any free one.',
  ),
  SERVER_UNREACHABLE: entry(
    83,
    502,
    'user',
    true,
    'The tunnel server cannot be reached.',
    'Check address and network, or start a server with: localtunnels server',
  ),
  SERVER_REFUSED: entry(
    84,
    502,
    'user',
    false,
    'What answers at that address is no tunnel server.',
    'Check the address given with --server.',
  ),
  SERVER_UNTRUSTED: entry(
    135,
    502,
    'user',
    false,
    'The certificate of the tunnel server is not trusted.',
    'Name its authority with --ca <file>, add it to those of this system, or accept any certificate with --insecure.',
  ),
  SERVER_SCHEME: entry(
    136,
    502,
    'user',
    false,
    "The server's port speaks TLS and its address says http://, or the reverse.",
    'Use https:// (or wss://) for a port that speaks TLS, http:// (or ws://) for one that does not.',
  ),
  CONNECT_TIMEOUT: entry(
    85,
    504,
    'user',
    true,
    'The tunnel server did not answer in time.',
    'Check address and network.',
  ),
  TLS_INVALID: entry(
    86,
    400,
    'user',
    false,
    'The certificate or key cannot be used.',
    'Give a PEM certificate and the key that belongs to it.',
  ),
  RUNTIME_UNSUPPORTED: entry(
    87,
    500,
    'user',
    false,
    'This needs the Bun runtime.',
    'Install Bun 1.4 or newer: https://bun.sh. A client with --server also runs on Node 20.',
  ),
  STATE_INVALID: entry(
    88,
    500,
    'user',
    false,
    'This cannot be done in the current state.',
    'Start it first; after a stop make a new instance.',
  ),
  CONFIG_INVALID: entry(
    95,
    400,
    'user',
    false,
    'The configuration file has faults.',
    'See docs/configuration.md for every key and examples.',
  ),
  TOKEN_IN_CLEAR: entry(
    130,
    400,
    'user',
    false,
    'The token would go to another machine unencrypted.',
    'Use an https:// server, or allow it with --insecure-token (insecureToken) in a network that you trust.',
  ),
  LOGIN_INVALID: entry(
    131,
    500,
    'user',
    false,
    'The file of saved logins cannot be used.',
    'Fix it or delete it, then run: localtunnels login <server>',
  ),
  // The proxy between client and server
  PROXY_UNREACHABLE: entry(
    90,
    502,
    'user',
    true,
    'The proxy to the tunnel server cannot be reached.',
    'Check --proxy, or HTTPS_PROXY and its like; --proxy= goes without one.',
  ),
  PROXY_AUTH_REFUSED: entry(
    91,
    502,
    'user',
    false,
    'The proxy to the tunnel server wants a user and password, or refused them.',
    "Put them into the proxy's URL: http://user:password@host:port, special characters as %40.",
  ),
  PROXY_REFUSED: entry(
    92,
    502,
    'user',
    true,
    'The proxy to the tunnel server gave no connection.',
    'Check that it is a proxy, and what it allows: many allow port 443 only (wss://).',
  ),
  PROXY_HEADER_INVALID: entry(
    96,
    400,
    'user',
    false,
    'A trusted proxy did not send a sound PROXY header.',
    'Let it send one (HAProxy: send-proxy-v2, nginx: proxy_protocol on), or turn acceptProxyProtocol off.',
  ),
  WORKER_FAILED: entry(
    100,
    500,
    'server',
    true,
    'A worker thread that moves bytes failed.',
    'Nothing: it starts again by itself. Please report it; LOCALTUNNELS_SPLICE=0 does without such threads.',
  ),
  STATE_UNWRITABLE: entry(
    125,
    500,
    'user',
    false,
    'The secret for a name after a crash cannot be written.',
    "Check the state folder's permissions; the tunnel works without.",
  ),
  OUTPUT_INCOMPLETE: entry(
    150,
    500,
    'user',
    false,
    'Not all of standard output could be written.',
    'Free some space on the disk, and repeat the command.',
  ),
  // Certificates
  ACME_UNREACHABLE: entry(
    160,
    503,
    'server',
    true,
    'The certificate authority cannot be reached or did not answer in time.',
    'Check the network and its directory URL; the order is tried again later.',
  ),
  ACME_ANSWER_INVALID: entry(
    161,
    503,
    'server',
    true,
    "The certificate authority's answer is not ACME (RFC 8555).",
    'Check the URL of its directory.',
  ),
  ACME_REFUSED: entry(
    162,
    503,
    'user',
    false,
    'The certificate authority refused the request.',
    'Read its reason; the order is tried again later.',
  ),
  ACME_RATE_LIMITED: entry(
    163,
    503,
    'user',
    true,
    'The certificate authority takes no requests for now.',
    'Wait: the order is tried again as soon as allowed. Its staging directory has higher limits.',
  ),
  ACME_ACCOUNT_REFUSED: entry(
    164,
    503,
    'user',
    false,
    'The certificate authority does not accept the account.',
    'Check contact and external account binding, or remove the stored account to get a new one.',
  ),
  ACME_CHALLENGE_FAILED: entry(
    165,
    503,
    'user',
    true,
    'The certificate authority could not confirm that the name belongs to this server.',
    'Check that the name leads to this server, whose ports 80 and 443 are reachable from outside; for DNS-01, the zone.',
  ),
  DNS_RECORD_FAILED: entry(
    166,
    503,
    'user',
    true,
    'The DNS record that proves a name could not be set.',
    'Check the DNS provider, its key and the zone.',
  ),
  CERTIFICATE_DELAYED: entry(
    167,
    503,
    'server',
    true,
    'No certificate is ordered for this name now: earlier orders failed, or there were too many.',
    'Wait for the time in the message; the reason was reported before.',
  ),
  CERTIFICATE_STORE_FAILED: entry(
    168,
    503,
    'user',
    true,
    'The file that keeps the certificates cannot be used.',
    'Check its path, its permissions and the free space.',
  ),
  CLIENT_CERTIFICATE_MISSING: entry(
    180,
    403,
    'client',
    false,
    'The server takes only clients with a certificate of its authority; this one has none.',
    'Give the client a certificate and key that the operator has signed: --cert and --key.',
  ),
  HTTP3_UNSUPPORTED: entry(
    181,
    501,
    'user',
    false,
    'This runtime lacks the HTTP/3 that the server needs.',
    'Leave --http3 out: visitors get HTTP/2 and HTTP/1.1; or use the Bun version in docs/http.md.',
  ),
  HTTP3_BODY_TOO_LARGE: entry(
    213,
    421,
    'visitor',
    true,
    'By HTTP/3 this server takes request bodies of up to 8 MiB.',
    'Send it by HTTP/2 or HTTP/1.1 to the same address.',
  ),
  HOST_TAKEN: entry(
    176,
    409,
    'client',
    true,
    'Another tunnel answers this host.',
    'Choose another host, or close the tunnel that has it; after a lost connection its lease has to end.',
  ),
  HOST_NOT_ALLOWED: entry(
    177,
    403,
    'client',
    false,
    'The token does not open this host, or it belongs to the server.',
    "Ask the operator for a token whose `hosts` name it. For hosts below the server's domains use `subdomain`.",
  ),
  HOSTS_UNSUPPORTED: entry(
    178,
    501,
    'client',
    false,
    'The server knows no hosts of customers, so the tunnel is not opened.',
    'Update the server, or leave `hosts` out.',
  ),
  HOST_ELSEWHERE: entry(
    179,
    503,
    'user',
    true,
    'DNS does not lead this host to the server, so no certificate is ordered for it.',
    'Let a CNAME, A or AAAA record of the host lead to the server; it is looked up again within a minute.',
  ),
  // Guards
  ADDRESS_REFUSED: entry(
    185,
    403,
    'visitor',
    false,
    'This address may not visit the app.',
    'Ask the person who shares the app to allow your address.',
  ),
  RATE_LIMITED: entry(
    186,
    429,
    'visitor',
    true,
    'Too many requests or connections came from this address.',
    'Wait for the time in the header Retry-After.',
  ),
  ACCESS_REQUIRED: entry(
    187,
    401,
    'visitor',
    false,
    'The app is shared with those who have a password, a token or a link.',
    'Sign in, or ask the person who shares it for a link.',
  ),
  CERTIFICATE_REQUIRED: entry(
    249,
    403,
    'visitor',
    false,
    'The app takes only visitors with a certificate that its owner trusts; this connection has none.',
    'Choose your certificate when the browser asks, or give it to your program (curl: --cert, --key).',
  ),
  CONNECTION_MISDIRECTED: entry(
    250,
    421,
    'visitor',
    true,
    'The app asks for a certificate, and this connection was opened before that, or for another name.',
    'Open a new connection, whose TLS handshake names this host. Browsers do so, at the latest when the page is loaded again.',
  ),
  CREDENTIALS_REFUSED: entry(
    188,
    401,
    'visitor',
    false,
    'The password or token is not one that opens this app.',
    'Check it, or ask the person who shares the app for the current one.',
  ),
  LINK_REFUSED: entry(
    189,
    403,
    'visitor',
    false,
    'The link has expired, was used or was taken back.',
    'Ask the person who shares the app for a new one.',
  ),
  LOGIN_REFUSED: entry(
    190,
    403,
    'visitor',
    false,
    'The login did not succeed, or this account may not visit the app.',
    'Sign in with another account, or ask the person who shares the app.',
  ),
  GUARD_REFUSED: entry(
    191,
    403,
    'visitor',
    false,
    'A guard of the server or tunnel refused the visit.',
    'Ask the person who shares the app.',
  ),
  TUNNEL_EXPIRED: entry(
    192,
    410,
    'user',
    false,
    'The app was shared for a limited time, which is over.',
    'Share it again.',
  ),
  LOGIN_UNAVAILABLE: entry(
    193,
    503,
    'server',
    true,
    'The service that confirms who visits cannot be reached.',
    'Try again in a moment.',
  ),
  GUARD_FAILED: entry(
    194,
    500,
    'server',
    true,
    'A guard of the server or tunnel failed or did not answer in time.',
    "Try again; the server's error event says which guard and why.",
  ),
  GUARD_INVALID: entry(
    195,
    400,
    'user',
    false,
    'The guard of the tunnel cannot be used.',
    'Correct the options of the guard.',
  ),
  GUARD_UNAVAILABLE: entry(
    196,
    501,
    'user',
    false,
    'The server cannot guard this tunnel as asked, so it does not serve it.',
    'Ask the operator to set up what is missing, or choose another way in.',
  ),
  GUARD_UNSUPPORTED: entry(
    197,
    501,
    'user',
    false,
    'The server or the wire does not know guards, so the tunnel is not opened.',
    'Update the server, use the streams wire, or leave the guard out.',
  ),
  GUARD_DIFFERS: entry(
    198,
    409,
    'user',
    false,
    'Another client of the pool has another guard for this name.',
    'Give all clients of a pool the same guard and guard secret.',
  ),
  POOL_DIFFERS: entry(
    211,
    409,
    'user',
    false,
    'Clients share this name in another way: each request goes to all, or to one.',
    'Give all clients of a pool the same pool, or choose another name.',
  ),
  COPIES_REFUSED: entry(
    212,
    403,
    'user',
    false,
    'The server is one of several, of a version that does not copy requests to clients of the others.',
    'Leave out pool "all", or ask the operator for a newer version.',
  ),
  NOT_TAKEN: entry(
    210,
    404,
    'user',
    false,
    'No client takes this request: their filters do not match.',
    'See the option take of the clients of this name.',
  ),
  CREDENTIALS_THROTTLED: entry(
    199,
    429,
    'visitor',
    true,
    'Too many wrong passwords or tokens came from this address.',
    'Wait for the time in the header Retry-After.',
  ),
  // The inspector
  INSPECT_TOKEN_REFUSED: entry(
    200,
    401,
    'user',
    false,
    'The inspector needs its token.',
    'Open the URL that the client prints, or take url and token from its file in $XDG_RUNTIME_DIR/localtunnels.',
  ),
  INSPECT_REFUSED: entry(
    201,
    403,
    'user',
    false,
    'The inspector answers only its page and programs of this machine.',
    'Ask 127.0.0.1, [::1] or localhost with its port, from no other origin, and write with Content-Type: application/json.',
  ),
  EXCHANGE_NOT_FOUND: entry(
    202,
    404,
    'user',
    false,
    'The inspector has no exchange with this id (any more).',
    'List the exchanges, or pin those that must stay.',
  ),
  FILTER_INVALID: entry(
    203,
    400,
    'user',
    false,
    'The filter cannot be read.',
    'Write terms such as method:POST path:/hooks/* status:5xx; docs/inspector.md lists them.',
  ),
  BODY_CUT: entry(
    204,
    409,
    'user',
    false,
    'The body was not kept whole, so it cannot be sent again.',
    "Raise the inspector's maxBody, and have the request sent again.",
  ),
  REPLAY_IMPOSSIBLE: entry(
    205,
    409,
    'user',
    false,
    'This exchange cannot be sent again from here.',
    'Only complete HTTP requests to a tunnel that is still open can be.',
  ),
  WAIT_TIMEOUT: entry(
    206,
    408,
    'user',
    true,
    'No exchange that matches the filter ended in time.',
    'Check the filter, or wait longer.',
  ),
  INSPECTOR_NOT_FOUND: entry(
    207,
    404,
    'user',
    true,
    'No client with an inspector runs here for this user.',
    'Start one with --inspect, or name one of several with --pid.',
  ),
  INBOX_REFUSED: entry(
    215,
    403,
    'user',
    false,
    'The server keeps no webhooks for this client.',
    'Leave out inbox, or ask the operator for a token, and for a server with --inbox (inbox).',
  ),
  INBOX_FULL: entry(
    216,
    503,
    'server',
    true,
    'The client is away, and its inbox has no room for another webhook.',
    'Send it again later; start the client so that it gets those that wait.',
  ),
  INBOX_FAILED: entry(
    218,
    503,
    'server',
    true,
    'The client is away, and its inbox cannot be written.',
    "Send it again later; the server's log has the reason.",
  ),
  SIGNATURE_INVALID: entry(
    208,
    401,
    'visitor',
    false,
    'The signature of the webhook is not valid.',
    'Check the signing secret on both sides, and the clock.',
  ),
  INSPECT_STORE_FAILED: entry(
    209,
    500,
    'user',
    false,
    "The inspector's file for exchanges cannot be used.",
    'Check its folder and rights, name another file, or leave store out.',
  ),
  OBSERVER_FAILED: entry(
    224,
    500,
    'server',
    true,
    'An observer of the server threw. No visitor notices.',
    'Mend the observer: the message says which, the cause why.',
  ),
  MIDDLEWARE_FAILED: entry(
    225,
    500,
    'server',
    true,
    'A middleware of the server threw, or did not answer in time.',
    "Try again; the server's error event says which middleware and why.",
  ),
  ADMIN_REFUSED: entry(
    226,
    401,
    'user',
    false,
    'The admin listener does not know this token.',
    "Show the admin listener's token, not one of clients.",
  ),
  ADMIN_INVALID: entry(
    227,
    400,
    'user',
    false,
    'The admin API cannot do this.',
    'Compare the request with /api/v1/openapi.json, or run localtunnels help admin.',
  ),
  ADMIN_UNAVAILABLE: entry(
    248,
    503,
    'server',
    true,
    'No worker of the server answers the admin listener.',
    "Try again in a second; the server's log says why its workers do not start.",
  ),
  BLOCKED: entry(
    228,
    403,
    'user',
    false,
    'The operator does not allow this address, client or name.',
    'Ask the operator of the server.',
  ),
  CIRCUIT_OPEN: entry(
    229,
    503,
    'origin',
    true,
    'The app failed too often, so nothing is sent to it for a while.',
    "Try again after the time in Retry-After; the operator's breaker sets it.",
  ),
  EDITOR_FAILED: entry(
    217,
    500,
    'user',
    false,
    'The editor did not end in good order, so nothing was sent.',
    'Set EDITOR or VISUAL to an editor that waits until it is closed, such as "code --wait".',
  ),
  INTERNAL: entry(99, 500, 'server', false, 'Something went wrong inside localtunnels.', 'Please report it.'),
}

/** A detail of these says what to do. */
const DETAIL_SAYS_ALL: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  'OPTION_INVALID',
  'SERVER_SCHEME',
  'ORIGIN_SPEAKS_TLS',
  'ORIGIN_SPEAKS_PLAIN',
])

/** Everything localtunnels throws or hands to an `error` event. Match on `code`, not on the message. */
export class TunnelError extends Error {
  /** What went wrong, as `ERRORS` and `docs/errors.md` list it. */
  readonly code: ErrorCode

  /**
   * `detail` replaces the meaning of the code in the message; what to do stays, except for `OPTION_INVALID`,
   * `SERVER_SCHEME`, `ORIGIN_SPEAKS_TLS` and `ORIGIN_SPEAKS_PLAIN`, where the detail says it. `action`: another one is better here.
   */
  constructor(
    code: ErrorCode,
    detail?: string,
    options: { readonly cause?: unknown; readonly action?: string | undefined } = {},
  ) {
    const { meaning } = ERRORS[code]
    const { cause, action = ERRORS[code].action } = options
    // A message that another end sent says what to do already.
    const isEnough = detail !== undefined && (DETAIL_SAYS_ALL.has(code) || detail.endsWith(action))
    super(isEnough ? detail : `${detail ?? meaning} ${action}`, 'cause' in options ? { cause } : undefined)
    this.name = 'TunnelError'
    this.code = code
  }
}

const byWire = new Map<number, ErrorCode>(
  Object.entries(ERRORS).map(([code, { wire }]) => [wire, code as ErrorCode]), // keys of ERRORS by construction
)

/** The code for a number from a RESET or GOAWAY frame; `INTERNAL` for one that a newer peer may know. */
export function errorOfWire(wire: number): ErrorCode {
  return byWire.get(wire) ?? 'INTERNAL'
}
