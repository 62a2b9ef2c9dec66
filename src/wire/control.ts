// The control messages of the streams wire: JSON in CONTROL frames on stream 0. Both ends parse them strictly,
// because neither trusts the other.

import { type ErrorCode, isErrorCode } from '../errors.ts'
import { isPublicUrl } from './public-url.ts'
import type { GrantedKind } from './tunnel-kind.ts'

/** An app of an `http` tunnel. */
interface RegisterApp {
  /** The host (and port) that replaces the visitor's Host. */
  readonly hostHeader?: string
  /** The tasks of parts of the server for this app, by name. Each part checks its own. */
  readonly wishes?: Wishes
}

/** A path whose requests go to an origin of their own. */
export interface RegisterRoute extends RegisterApp {
  /** The path: `/api` matches `/api`, `/api?…` and everything below `/api/`. */
  readonly path: string
  /** The protocol of the route's app, as for the tunnel's own. Absent: HTTP/1.1. */
  readonly protocol?: 'h2c' | 'h2'
}

/** How visitors are distributed among the clients that share a name. */
export type Affinity = 'none' | 'cookie' | 'address' | 'all'

/** The response for the visitor in a pool where all clients get a copy: `first`, the label of a client, or a status. */
export type PoolResponse = string | number

/** A message to the server that requests a tunnel. The reply is `granted` or `refused` with the same `ref`. */
export interface Register extends RegisterApp {
  readonly type: 'register'
  /** The client's own number for this tunnel, unique among its registrations. */
  readonly ref: number
  /**
   * The kind of tunnel. `connect`: the client is the connecting end of a private service, and gets no tunnel.
   * `unknown`: a kind of a newer version, which is refused without ending the session.
   */
  readonly kind: GrantedKind | 'connect' | 'unknown'
  /** The requested name of an `http` or `tls` tunnel, or of a private service such as `tcp:db`. Other kinds have none. */
  readonly name?: string
  /** The requested public port of a `tcp` or `udp` tunnel. Absent or 0: any of the server's range. */
  readonly port?: number
  /** The secret of an earlier grant of the same name or port, which proves the same client. */
  readonly resume?: string
  /** A token for this tunnel alone, in place of the connection's. */
  readonly token?: string
  /** The paths of an `http` tunnel with origins of their own. Their order is that of their tunnel numbers. */
  readonly routes?: readonly RegisterRoute[]
  /** Whether names below this one also belong to the `http` or `tls` tunnel. */
  readonly wildcard?: boolean
  /** The names below a wildcard tunnel that may have certificates, as labels before the name. */
  readonly hosts?: readonly string[]
  /** The custom domains of an `http` or `tls` tunnel: whole host names outside of the server's domains. */
  readonly hostNames?: readonly string[]
  /** How the app of an `http` tunnel speaks HTTP/2: unencrypted (`h2c`) or over TLS (`h2`). Absent: HTTP/1.1. */
  readonly protocol?: 'h2c' | 'h2'
  /** The paths of an `http` tunnel whose webhooks the server stores while no client is connected. */
  readonly inbox?: InboxWish
  /** How visitors are spread over the clients that share the name or port. Without it, nothing is shared. */
  readonly pool?: Affinity
  /** The response for the visitor, with `all`. Absent: `first`. */
  readonly poolResponse?: PoolResponse
  /** The name that the client chose for itself, with `all`. */
  readonly poolLabel?: string
  /** The version of the PROXY header before each connection to the origin, for `tcp` and `tls`. */
  readonly proxyProtocol?: 1 | 2
  /**
   * The guard of the tunnel, whose content the server's plugins check. The kind of such a message begins with
   * `guarded-`, so a server that does not know guards refuses it instead of serving without one.
   */
  readonly guard?: GuardFields
}

/** Options of a tunnel that parts of the server check, by name. */
export type Wishes = Readonly<Record<string, unknown>>

/** The webhooks that a server stores while their client is away. */
export interface InboxWish {
  /** The paths: `/hooks/github`, or `/hooks/*` for everything below. */
  readonly paths: readonly string[]
  /** The status that the sender of a webhook gets. */
  readonly status: number
}

/** A guard, whose fields this file does not check. */
export type GuardFields = Readonly<Record<string, unknown>>

/** A message to the server that replaces the guard of a tunnel of this client. */
export interface Guarded {
  readonly type: 'guard'
  readonly tunnel: number
  readonly guard: GuardFields
}

/** A message to the server that says whether the origin can serve visitors. Before the first one, it can. */
export interface Health {
  readonly type: 'health'
  readonly tunnel: number
  readonly isHealthy: boolean
}

/** A message to the server that turns reports of visitors on or off. */
export interface Watch {
  readonly type: 'watch'
  readonly on: boolean
  /** The number of requests per second that are reported one by one; the others are counted. Absent: all are reported. */
  readonly rate?: number
}

/** A message to the server that releases a tunnel. Its name is free at once, and open streams continue until `released`. */
export interface Release {
  readonly type: 'release'
  readonly tunnel: number
}

/** A message to the server: the link with this number is open, and both sides may send on it. */
export interface Linked {
  readonly type: 'linked'
  readonly link: number
  /** Whether the link is only for lanes. */
  readonly trunk?: boolean
}

/** A message to the server: the client opens no trunk. */
export interface NoTrunk {
  readonly type: 'no-trunk'
  /** The milliseconds until the server may ask again. Absent: never in this session. */
  readonly retryMs?: number
}

/** A message to the server: the client puts nothing more on this link. The server closes it when it does not need it any more. */
export interface LinkRetired {
  readonly type: 'link-retired'
  readonly link: number
}

/** A message to the client: the server has a large transfer and could use another link. */
export interface LinkWanted {
  readonly type: 'link-wanted'
}

/** A message to the client: the server could begin lanes, and has no link for them. */
export interface TrunkWanted {
  readonly type: 'trunk-wanted'
}

/**
 * A message to the client: later bytes of this stream arrive as that lane of that link, and the responses are
 * expected there. Later frames of the stream come after the lane's last message.
 */
export interface LaneBegun {
  readonly type: 'lane'
  readonly stream: number
  readonly link: number
  readonly lane: number
}

/** A message to the client: the tunnel is granted. */
export interface Granted {
  readonly type: 'granted'
  readonly ref: number
  /** The number of the tunnel in OPEN frames. The numbers of its routes follow it. */
  readonly tunnel: number
  /** The name: the subdomain; for ports, kind and number as in `tcp-20000`. */
  readonly name: string
  /** The public port of a `tcp` or `udp` tunnel. */
  readonly port?: number
  readonly url: string
  /** The secret that proves the same client after a reconnect. Never show or log it. */
  readonly resume: string
  /** The secret that opens links of this session. Absent if the server takes none. */
  readonly linkSecret?: string
  /**
   * The features of `register` that the server applies. It leaves out those that it does not know, and the client
   * then releases the tunnel: without its guard, for example, everybody could visit.
   */
  readonly features?: readonly string[]
  /** The protocol of `register`, if the server uses it with the app. */
  readonly protocol?: 'h2c' | 'h2'
}

/** The features that this version knows: the guard, all `hostNames`, the inbox, and the `protocol` of routes. */
export type GrantedFeature = 'guard' | 'hosts' | 'inbox' | 'routes'

export interface Refused {
  readonly type: 'refused'
  readonly ref: number
  readonly code: ErrorCode
  readonly message: string
}

/** A message to the client: the server's settings changed, and the client loses the tunnel. */
export interface Revoked {
  readonly type: 'revoked'
  readonly tunnel: number
  readonly code: ErrorCode
  readonly message: string
}

/** A message to the client: the last visitor of a released tunnel is gone. The server opens no further stream to it. */
export interface Released {
  readonly type: 'released'
  readonly tunnel: number
}

/**
 * A message to the client: visitors do not reach one of the tunnel's hosts. The tunnel stays. Sent at most once a
 * minute for each host.
 */
export interface HostTroubled {
  readonly type: 'host-troubled'
  readonly tunnel: number
  readonly code: ErrorCode
  readonly message: string
}

/** A message to the client: the tunnel has another URL now. */
export interface Moved {
  readonly type: 'moved'
  readonly tunnel: number
  readonly url: string
}

/** A message to a watching client: a visitor's request arrived. */
export interface RequestReport {
  readonly type: 'request'
  readonly id: number
  readonly tunnel: number
  /** The requested host of a wildcard tunnel, without port. */
  readonly host?: string
  readonly method: string
  readonly path: string
  /** Address of the visitor. */
  readonly visitor?: string
  /** The time in milliseconds at the server before the request was sent to the client. */
  readonly waitedMs?: number
}

/** A message to a watching client: the app accepted a WebSocket. The response report follows when that closes. */
export interface SwitchedReport {
  readonly type: 'switched'
  readonly id: number
  readonly tunnel: number
}

/** A message to a watching client: a response is complete, or failed with a code. */
export interface ResponseReport {
  readonly type: 'response'
  readonly id: number
  readonly tunnel: number
  readonly status: number
  readonly durationMs: number
  readonly bytes: number
  readonly error?: ErrorCode
  /** The fault of the app's response, such as "line 3 of its head has no colon". */
  readonly reason?: string
}

/** The requests that were not reported one by one. The first three numbers count since the last such report. */
export interface UnreportedRequests {
  readonly started: number
  /** The number of requests that ended. */
  readonly requests: number
  /** The number of these with a status of 500 or above, or with an error code that is not `CANCELLED`. */
  readonly errors: number
  /** The number of response bytes. */
  readonly bytes: number
  /** The number of requests that started and have not ended yet. */
  readonly inFlight: number
}

/** A message to a client that watches with a rate: the requests above it. */
export interface RequestsReport extends UnreportedRequests {
  readonly type: 'requests'
}

/** A message to a watching client: a visitor's raw connection was sent to the origin. */
export interface VisitorConnectedReport {
  readonly type: 'visitor-connected'
  readonly id: number
  readonly tunnel: number
  /** The address. Empty if the system no longer knows it. */
  readonly remoteAddress: string
  readonly remotePort: number
}

/** A message to a watching client: a raw connection is closed. `bytesIn` went to the origin, `bytesOut` to the visitor. */
export interface VisitorDisconnectedReport {
  readonly type: 'visitor-disconnected'
  readonly id: number
  readonly tunnel: number
  readonly durationMs: number
  readonly bytesIn: number
  readonly bytesOut: number
  readonly error?: ErrorCode
}

/**
 * A message to the server: connections came to the connecting end of a private service, and the server opens a stream for each.
 */
export interface Dial {
  readonly type: 'dial'
  readonly tunnel: number
  /** The number of connections: 1 to `MAX_DIALS`. */
  readonly count: number
}

/** The maximum number of connections in one message. */
export const MAX_DIALS = 16

export type ClientMessage =
  | Register
  | Guarded
  | Health
  | Watch
  | Release
  | Linked
  | NoTrunk
  | LinkRetired
  | Dial
export type ServerMessage =
  | Granted
  | Refused
  | Revoked
  | Released
  | HostTroubled
  | Moved
  | LinkWanted
  | TrunkWanted
  | LaneBegun
  | RequestReport
  | SwitchedReport
  | ResponseReport
  | RequestsReport
  | VisitorConnectedReport
  | VisitorDisconnectedReport

/** The maximum number of paths of one tunnel with origins of their own. */
export const MAX_ROUTES = 32

const encoder = new TextEncoder()
const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/**
 * The maximum length of a visitor's method in a report. JSON may need six bytes for each character, and a message
 * must fit in one frame.
 */
const MAX_METHOD_CHARS = 64
const MAX_PATH_CHARS = 8192

/** Encodes a message as the payload of one CONTROL frame. */
export function encodeControl(message: ClientMessage | ServerMessage): Uint8Array {
  if (message.type === 'register' && message.guard !== undefined)
    return encoder.encode(JSON.stringify({ ...message, kind: `${GUARDED}${message.kind}` }))
  const fitting =
    message.type === 'request'
      ? {
          ...message,
          method: message.method.slice(0, MAX_METHOD_CHARS),
          path: message.path.slice(0, MAX_PATH_CHARS),
        }
      : message
  return encoder.encode(JSON.stringify(fitting))
}

/** Parses a message of a client. `undefined` if it breaks the protocol, `'unknown'` for a type of a newer version. */
export function parseClientMessage(json: Uint8Array): ClientMessage | 'unknown' | undefined {
  const fields = parseFields(json)
  if (fields === undefined) return undefined
  if (fields.type === 'register') return parseRegister(fields)
  return isKey(CLIENT_MESSAGES, fields.type) ? CLIENT_MESSAGES[fields.type](fields) : 'unknown'
}

/** The maximum length of a label with `tcp:` or `udp:` before it. */
const MAX_NAME_CHARS = 67
/** The prefix of the kind of a guarded tunnel. */
const GUARDED = 'guarded-'

function parseRegister(given: Record<string, unknown>): Register | undefined {
  const isGuarded = typeof given.kind === 'string' && given.kind.startsWith(GUARDED)
  const fields = isGuarded ? { ...given, kind: String(given.kind).slice(GUARDED.length) } : given
  const guard = isTable(given.guard) ? given.guard : undefined
  if (isGuarded !== (guard !== undefined)) return undefined
  const { ref, name, port, resume, token, wildcard, hosts, hostNames, protocol, proxyProtocol, inbox } =
    fields
  const { pool, poolResponse, poolLabel, wishes } = fields
  const { hostHeader } = fields
  const routes = fields.routes === undefined ? undefined : parseRoutes(fields.routes)
  const isValid =
    isCount(ref) &&
    isText(fields.kind, 16) &&
    isOptionalText(name, isPrivate(fields.kind) ? MAX_NAME_CHARS : 63) &&
    (name !== undefined || !(isNamed(fields.kind) || isPrivate(fields.kind))) &&
    (port === undefined || (isCount(port) && port <= 65_535)) &&
    isOptionalText(resume, 128) &&
    isTokenText(token) &&
    isHeaderText(hostHeader) &&
    (wildcard === undefined || typeof wildcard === 'boolean') &&
    (hosts === undefined || isHosts(hosts)) &&
    (hostNames === undefined || (isNamed(fields.kind) && isHostNames(hostNames))) &&
    (protocol === undefined || (fields.kind === 'http' && isProtocol(protocol))) &&
    (inbox === undefined || (fields.kind === 'http' && isInboxWish(inbox))) &&
    (wishes === undefined || (fields.kind === 'http' && isTable(wishes))) &&
    (pool === undefined || isAffinity(pool)) &&
    (pool !== 'all' || fields.kind === 'http') &&
    (poolResponse === undefined || (pool === 'all' && isPoolResponse(poolResponse))) &&
    (poolLabel === undefined || (pool === 'all' && isPoolLabel(poolLabel))) &&
    (proxyProtocol === undefined || proxyProtocol === 1 || proxyProtocol === 2)
  if (!isValid || (fields.routes !== undefined && routes === undefined)) return undefined
  return {
    type: 'register',
    ref,
    kind: isKind(fields.kind) ? fields.kind : 'unknown',
    ...defined({ name, port, resume, token, routes, wildcard, hosts, hostNames, protocol, wishes, pool }),
    ...defined({ hostHeader, poolResponse, poolLabel, proxyProtocol, guard }),
    ...(inbox !== undefined && { inbox: { paths: inbox.paths, status: inbox.status } }),
  }
}

const isTable = (value: unknown): value is GuardFields =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** The maximum number of hosts that a tunnel may name. */
export const MAX_HOSTS = 100

/** Whether the value is a list of hosts: labels of letters, digits and inner hyphens, with dots between them. */
export function isHosts(value: unknown): value is readonly string[] {
  if (!Array.isArray(value) || value.length > MAX_HOSTS) return false
  return value.every(
    one => isText(one, 253) && /^(?!-)[a-z0-9-]{1,63}(?<!-)(?:\.(?!-)[a-z0-9-]{1,63}(?<!-))*$/.test(one),
  )
}

/** The maximum number of paths of an inbox. */
export const MAX_INBOX_PATHS = 32
/** The statuses that the sender of a webhook may get. */
const INBOX_STATUSES: ReadonlySet<unknown> = new Set([200, 201, 202, 204])

export function isInboxWish(value: unknown): value is InboxWish {
  if (!isTable(value)) return false
  const { paths, status } = value
  if (!Array.isArray(paths) || paths.length === 0 || paths.length > MAX_INBOX_PATHS) return false
  return paths.every(one => isText(one, 256) && /^\/[^*?#\s]*\*?$/.test(one)) && INBOX_STATUSES.has(status)
}

/** The maximum number of whole host names of a tunnel. */
export const MAX_HOST_NAMES = 32

/** Whether the value is a list of different DNS names with at least two labels, and no addresses. */
export function isHostNames(value: unknown): value is readonly string[] {
  return (
    isHosts(value) &&
    value.length <= MAX_HOST_NAMES &&
    value.every(one => one.includes('.') && !/\.[0-9]+$/.test(one)) &&
    new Set(value).size === value.length
  )
}

function parseRoutes(value: unknown): readonly RegisterRoute[] | undefined {
  if (!Array.isArray(value) || value.length > MAX_ROUTES) return undefined
  const routes: RegisterRoute[] = []
  for (const one of value) {
    if (!isTable(one)) return undefined
    const { path, protocol, hostHeader, wishes } = one
    if (!isRoutePath(path) || !isHeaderText(hostHeader)) return undefined
    if (protocol !== undefined && !isProtocol(protocol)) return undefined
    if (wishes !== undefined && !isTable(wishes)) return undefined
    routes.push({ path, ...defined({ protocol, hostHeader, wishes }) })
  }
  return routes
}

/** A message of the server. */
export function parseServerMessage(json: Uint8Array): ServerMessage | 'unknown' | undefined {
  const fields = parseFields(json)
  if (fields === undefined) return undefined
  return isKey(SERVER_MESSAGES, fields.type) ? SERVER_MESSAGES[fields.type](fields) : 'unknown'
}

const isNumber32 = (value: unknown): value is number => isCount(value) && value < 0x1_0000_0000

/** Returns the fields of a JSON object, without a prototype: `__proto__` is then a name like any other. */
function parseFields(json: Uint8Array): ({ readonly type: string } & Record<string, unknown>) | undefined {
  if (json.length > MIN_LOOKED_THROUGH_BYTES && isTooDeep(json)) return undefined
  try {
    const value: unknown = JSON.parse(decoder.decode(json))
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined
    const fields = Object.assign(Object.create(null), value)
    return typeof fields.type === 'string' ? fields : undefined
  } catch {
    // Not JSON or not UTF-8: the caller ends the session.
    return undefined
  }
}

/** The maximum depth of a message; current ones have three levels. Parsing 30,000 levels takes milliseconds and much stack. */
const MAX_DEPTH = 16
/** The length from which messages are checked for depth. Shorter ones cannot cost much. */
const MIN_LOOKED_THROUGH_BYTES = 1_024
const QUOTE = 0x22
const BACKSLASH = 0x5c

/** Whether objects and lists are nested too deeply. For text that is not JSON, the result means nothing. */
function isTooDeep(json: Uint8Array): boolean {
  let depth = 0
  let isText = false
  for (let at = 0; at < json.length; at++) {
    const byte = json[at]!
    if (byte === QUOTE) isText = !isText
    else if (isText) at += byte === BACKSLASH ? 1 : 0
    // [ and {, ] and }
    else if ((byte | 0x20) === 0x7b && ++depth > MAX_DEPTH) return true
    else if ((byte | 0x20) === 0x7d) depth--
  }
  return false
}

const CONTROL_CHARACTERS = /\p{Cc}/gu
const printable = (text: string): string => text.replace(CONTROL_CHARACTERS, '\ufffd')

const isAmount = (value: unknown): value is number =>
  typeof value === 'number' && Number.isFinite(value) && value >= 0
const isCount = (value: unknown): value is number => isAmount(value) && Number.isSafeInteger(value)
/** A newer server may name features that this version does not know. */
const isFeatures = (value: unknown): value is readonly string[] =>
  Array.isArray(value) && value.length <= 32 && value.every(one => isText(one, 32))

/** The text appears on terminals and in logs, so control characters are refused. */
const isText = (value: unknown, most: number): value is string =>
  typeof value === 'string' &&
  value.length > 0 &&
  value.length <= most &&
  value.search(CONTROL_CHARACTERS) < 0
const isOptionalText = (value: unknown, most: number): value is string | undefined =>
  value === undefined || isText(value, most)
/** The text goes into a header line of the request. Only visible ASCII is allowed, so that it cannot end the line. */
const isHeaderText = (value: unknown): value is string | undefined =>
  value === undefined || (isText(value, 255) && /^[\x21-\x7e]+$/.test(value))
/** Whether the value may be a name that any server grants. Ours grants a subdomain, kind and port, or a private name. */
const isGrantedName = (value: unknown): value is string =>
  isText(value, MAX_NAME_CHARS) && /^[\x21-\x7e]+$/.test(value)
/** A token of an issuer may be long. */
const isTokenText = (value: unknown): value is string | undefined =>
  value === undefined || (isText(value, 8_192) && /^[\x21-\x7e]+$/.test(value))
/** Whether the value is a path as in a request target: with a slash at its start, without a query, without a slash at its end. */
export const isRoutePath = (value: unknown): value is string =>
  typeof value === 'string' &&
  value.length <= 255 &&
  /^(?:\/[\x21\x22\x24-\x2e\x30-\x3e\x40-\x7e]+)+$/.test(value)
const KINDS: ReadonlySet<unknown> = new Set(['http', 'tcp', 'udp', 'tls', 'private', 'connect'])
const isKind = (value: unknown): value is GrantedKind | 'connect' => KINDS.has(value)
const isNamed = (kind: string): boolean => kind === 'http' || kind === 'tls'
const isPrivate = (kind: string): boolean => kind === 'private' || kind === 'connect'
const isProtocol = (value: unknown): value is 'h2c' | 'h2' => value === 'h2c' || value === 'h2'
const isAffinity = (value: unknown): value is Affinity =>
  value === 'none' || value === 'cookie' || value === 'address' || value === 'all'
/** Whether the value is a name such as `anna`. `first` is reserved. */
export const isPoolLabel = (value: unknown): value is string =>
  isText(value, 63) && /^[\w.-]+$/.test(value) && value !== 'first' && !/^\d+$/.test(value)
/** Whether the value is a final status of success, with which webhooks are acknowledged. */
export const isPoolResponse = (value: unknown): value is PoolResponse =>
  value === 'first' || isPoolLabel(value) || (isCount(value) && value >= 200 && value <= 299)
/** A newer server may use codes that this version does not know, because codes are added within one version of the wire. */
const knownCode = (code: string): ErrorCode => (isErrorCode(code) ? code : 'INTERNAL')

const isBoolean = (value: unknown): value is boolean => typeof value === 'boolean'
const isString = (value: unknown): value is string => typeof value === 'string'
const isPort = (value: unknown): value is number => isCount(value) && value <= 65_535
const isDials = (value: unknown): value is number => isCount(value) && value > 0 && value <= MAX_DIALS
const isCode = (value: unknown): value is string => isText(value, 64)
const isSentence = (value: unknown): value is string => isText(value, 4_096)
const isSecret = (value: unknown): value is string => isText(value, 128)
const isLinkSecret = (value: unknown): value is string => value !== undefined && isHeaderText(value)
const isVisitorAddress = (value: unknown): value is string => value === '' || isText(value, 64)

type Check<Value> = (value: unknown) => value is Value
type Checks = Readonly<Record<string, Check<never> | Check<unknown>>>
type Checked<Some extends Checks> = {
  readonly [Key in keyof Some]: Some[Key] extends Check<infer Value> ? Value : never
}
type Given = Readonly<Record<string, unknown>>
type Read<Type, Fields extends Checks, Optional extends Checks> = { readonly type: Type } & Checked<Fields> &
  Partial<Checked<Optional>>

/** Reads messages of one type. Returns `undefined` if a field is missing or wrong; unknown fields are left out. */
function message<
  const Type extends string,
  Fields extends Checks,
  Optional extends Checks = Readonly<Record<never, never>>,
>(
  type: Type,
  fields: Fields,
  optional?: Optional,
): (given: Given) => Read<Type, Fields, Optional> | undefined {
  const needed = Object.entries(fields)
  const others = Object.entries(optional ?? {})
  return given => {
    const read: Record<string, unknown> = { type }
    for (const [key, isValid] of needed) {
      if (!isValid(given[key])) return undefined
      read[key] = given[key]
    }
    for (const [key, isValid] of others) {
      if (given[key] === undefined) continue
      if (!isValid(given[key])) return undefined
      read[key] = given[key]
    }
    return read as Read<Type, Fields, Optional>
  }
}

/** Reads messages of which one field is converted. */
const changed =
  <Before, After>(
    read: (given: Given) => Before | undefined,
    change: (message: Before, given: Given) => After,
  ) =>
  (given: Given): After | undefined => {
    const message = read(given)
    return message && change(message, given)
  }

const isKey = <Table extends object>(table: Table, key: string): key is keyof Table & string =>
  Object.hasOwn(table, key)

/** Returns the fields that are not `undefined`. */
const defined = <Fields extends object>(
  fields: Fields,
): { [Key in keyof Fields]?: NonNullable<Fields[Key]> } =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as Fields as never

const CLIENT_MESSAGES = {
  guard: message('guard', { tunnel: isCount, guard: isTable }),
  health: message('health', { tunnel: isCount, isHealthy: isBoolean }),
  watch: message('watch', { on: isBoolean }, { rate: isCount }),
  linked: changed(message('linked', { link: isNumber32 }, { trunk: isBoolean }), ({ trunk, ...linked }) => ({
    ...linked,
    ...(trunk && { trunk }),
  })),
  'no-trunk': message('no-trunk', {}, { retryMs: isNumber32 }),
  'link-retired': message('link-retired', { link: isNumber32 }),
  release: message('release', { tunnel: isCount }),
  dial: message('dial', { tunnel: isCount, count: isDials }),
} satisfies Readonly<Record<string, (given: Given) => ClientMessage | undefined>>

const trouble = { tunnel: isCount, code: isCode, message: isSentence }
const withKnownCode = <Message extends { readonly code: string }>(message: Message) => ({
  ...message,
  code: knownCode(message.code),
})
const withKnownError = <Message extends { readonly error?: string }>({ error, ...message }: Message) => ({
  ...message,
  ...(error !== undefined && { error: knownCode(error) }),
})

const SERVER_MESSAGES = {
  granted: message(
    'granted',
    { ref: isCount, tunnel: isCount, name: isGrantedName, url: isPublicUrl, resume: isSecret },
    { port: isPort, linkSecret: isLinkSecret, features: isFeatures, protocol: isProtocol },
  ),
  'link-wanted': message('link-wanted', {}),
  'trunk-wanted': message('trunk-wanted', {}),
  lane: message('lane', { stream: isNumber32, link: isNumber32, lane: isNumber32 }),
  refused: changed(message('refused', { ref: isCount, code: isCode, message: isSentence }), withKnownCode),
  revoked: changed(message('revoked', trouble), withKnownCode),
  'host-troubled': changed(message('host-troubled', trouble), withKnownCode),
  released: message('released', { tunnel: isCount }),
  moved: message('moved', { tunnel: isCount, url: isPublicUrl }),
  // A visitor wrote these texts: their content must neither end the session nor reach a terminal as an escape sequence.
  request: changed(
    message(
      'request',
      { id: isCount, tunnel: isCount, method: isString, path: isString },
      { host: isString },
    ),
    ({ host, method, path, ...message }, { visitor, waitedMs }) => ({
      ...message,
      ...(host !== undefined && { host: printable(host) }),
      method: printable(method),
      path: printable(path),
      // A proxy may have sent it: text that is not an address is left out.
      ...(isText(visitor, 64) && { visitor }),
      ...(isAmount(waitedMs) && { waitedMs }),
    }),
  ),
  switched: message('switched', { id: isCount, tunnel: isCount }),
  response: changed(
    message(
      'response',
      { id: isCount, tunnel: isCount, status: isCount, durationMs: isAmount, bytes: isAmount },
      { error: isCode },
    ),
    (message, { reason }) => ({
      ...withKnownError(message),
      // The text is for people. A text that is too long is left out.
      ...(isText(reason, 200) && { reason: printable(reason) }),
    }),
  ),
  requests: message('requests', {
    started: isCount,
    requests: isCount,
    errors: isCount,
    bytes: isCount,
    inFlight: isCount,
  }),
  'visitor-connected': message('visitor-connected', {
    id: isCount,
    tunnel: isCount,
    remoteAddress: isVisitorAddress,
    remotePort: isPort,
  }),
  'visitor-disconnected': changed(
    message(
      'visitor-disconnected',
      { id: isCount, tunnel: isCount, durationMs: isAmount, bytesIn: isAmount, bytesOut: isAmount },
      { error: isCode },
    ),
    withKnownError,
  ),
} satisfies Readonly<Record<string, (given: Given) => ServerMessage | undefined>>
/** A header of the response at `/` of a server for programs. It says that clients need no token. */
export const OPEN_HEADER = 'x-localtunnels-open'

/** The header with which a client probes its own public URL, with `probeProof`. The response has it too. */
export const PROBE_HEADER = 'x-localtunnels-probe'

/**
 * Returns a proof that the prober knows the resume secret, without revealing it: proxies in front read the header,
 * and may log it.
 */
export function probeProof(resume: string, sha256Base64Url: (text: string) => string): string {
  return sha256Base64Url(`probe ${resume}`)
}

/**
 * Returns a proof for the client that a probe of its app comes from the server, in the same header. No visitor knows the secret.
 */
export function serverProbeProof(resume: string, sha256Base64Url: (text: string) => string): string {
  return sha256Base64Url(`server probe ${resume}`)
}
