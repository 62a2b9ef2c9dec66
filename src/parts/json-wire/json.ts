// The JSON wire: one message per request and per response, as used by existing localtunnels clients and servers.
//
//   C dials ── S: connected
//   C: ready{app} ── S: registered{app, url}, or subdomain_taken{app} and the client asks for another name
//   S: request{1} ── C: response{1}                                   any number, interleaved
//   S: cancel{1}                         the visitor of request 1 left; only to clients that said that they accept it
//   C: ping ── S: pong                                                every 25 s
//   C: disconnect ── S closes
//
// Neither end is trusted: every field is checked before it is used, and invalid ones are distinguished from unknown
// ones.

import { isPublicUrl } from '../../wire/public-url.ts'

/** The header lines in order, as pairs: `__proto__` is then a name like any other, and names may repeat. */
export type HeaderList = readonly (readonly [name: string, value: string])[]

/** The body in a message: text, or bytes in base64. */
export interface JsonBody {
  readonly text: string
  readonly isBase64: boolean
}

/** A message to the client: a visitor's request. */
export interface JsonRequest {
  readonly type: 'request'
  /** The id. Existing servers count from 1; an old variant sends strings. It is returned unchanged. */
  readonly id: number | string
  readonly method: string
  /** The path and query, which the caller has checked. */
  readonly path: string
  readonly headers: HeaderList
  /**
   * The number of the visitor's connection, if that is logged in or about to be. The app's connection must then serve it alone.
   */
  readonly connection?: number | undefined
  readonly body?: JsonBody
  /** Whether the server itself asks. Existing servers do not send this. */
  readonly isProbe?: true
}

export interface JsonAnswer {
  readonly status: number
  readonly headers: HeaderList
  readonly body: JsonBody
  /** The reason why the client itself responds, as a code of `errors.ts`. Existing servers do not know it. */
  readonly error?: string
  /** The details of the reason, for logs. */
  readonly reason?: string | undefined
}

/**
 * A message to the server: the response to a request. `answer` is `undefined` if the message has the id but no valid response.
 */
export interface JsonResponse {
  readonly type: 'response'
  readonly id: number
  readonly answer: JsonAnswer | undefined
}

/**
 * The features of our client beyond existing ones, named in `ready`: `cancel` messages; `raw-path`, paths with bytes
 * above ASCII unchanged, one character each; and `connection`, the number of the visitor's connection in a request.
 */
export const EXTENSIONS = ['cancel', 'raw-path', 'connection'] as const
export type JsonExtension = (typeof EXTENSIONS)[number]

export type JsonClientMessage =
  | { readonly type: 'ready'; readonly subdomain: string; readonly accepts?: readonly JsonExtension[] }
  | { readonly type: 'disconnect'; readonly subdomain: string | undefined }
  | { readonly type: 'ping' }
  | JsonResponse

export type JsonServerMessage =
  /** The time in milliseconds that the server waits for a response; 0 for no limit. Existing servers do not send it. */
  | { readonly type: 'connected'; readonly originTimeoutMs: number | undefined }
  | { readonly type: 'registered'; readonly subdomain: string; readonly url: string | undefined }
  | { readonly type: 'subdomain_taken' }
  | { readonly type: 'error'; readonly message: string }
  | { readonly type: 'pong' }
  /** The visitor of this request left, so a response would be dropped. Existing servers do not send it. */
  | { readonly type: 'cancel'; readonly id: number }
  | JsonRequest

// ── Writing ────────────────────────────────────────────────────────────────────────────────────────────────────

export const PING = '{"type":"ping"}'
export const PONG = '{"type":"pong"}'

export function encodeConnected(originTimeoutMs: number): string {
  return JSON.stringify({ type: 'connected', originTimeoutMs })
}

export function encodeReady(subdomain: string): string {
  return JSON.stringify({ type: 'ready', subdomain, accepts: EXTENSIONS })
}

export function encodeCancel(id: number): string {
  return `{"type":"cancel","id":${id}}`
}

export function encodeDisconnect(subdomain: string): string {
  return JSON.stringify({ type: 'disconnect', subdomain })
}

export function encodeRegistered(subdomain: string, url: string): string {
  return JSON.stringify({ type: 'registered', subdomain, url })
}

export function encodeTaken(subdomain: string): string {
  return JSON.stringify({ type: 'subdomain_taken', subdomain })
}

export function encodeError(message: string): string {
  return JSON.stringify({ type: 'error', message })
}

/**
 * Encodes a request. Header names become lower-case, and lines of one name become one, because this wire has one value per name.
 */
export function encodeRequest({ id, method, path, headers, connection, body, isProbe }: JsonRequest): string {
  const joined: Record<string, string> = Object.create(null)
  for (const [name, value] of headers) {
    const key = name.toLowerCase()
    const earlier = joined[key]
    // RFC 9110 section 5.2; cookies are an exception by RFC 6265 section 5.4.
    joined[key] = earlier === undefined ? value : earlier + (key === 'cookie' ? '; ' : ', ') + value
  }
  return withBody(
    JSON.stringify({ type: 'request', id, method, path, headers: joined, connection, probe: isProbe }),
    body,
  )
}

/**
 * Encodes a response. Of repeated headers, only Set-Cookie cannot be joined. Each of these gets a spelling of its own
 * (`set-cookie`, `Set-cookie`, `sEt-cookie` …): an object can contain all of them, and HTTP treats them as one name.
 */
export function encodeResponse(id: number | string, answer: JsonAnswer): string {
  const { status, headers, body, error, reason } = answer
  const joined: Record<string, string> = Object.create(null)
  let cookies = 0
  for (const [name, value] of headers) {
    const lower = name.toLowerCase()
    const key = lower === 'set-cookie' ? respelled(lower, cookies++) : lower
    const earlier = joined[key]
    joined[key] = earlier === undefined ? value : `${earlier}, ${value}`
  }
  return withBody(JSON.stringify({ type: 'response', id, status, headers: joined, error, reason }), body)
}

/** Returns the `variant`-th spelling of a lower-case name, whose bits say which letters are capitals. */
function respelled(name: string, variant: number): string {
  if (variant === 0) return name
  let spelling = ''
  let bits = variant
  for (const character of name) {
    const isLetter = character >= 'a' && character <= 'z'
    spelling += isLetter && (bits & 1) === 1 ? character.toUpperCase() : character
    if (isLetter) bits >>= 1
  }
  return spelling
}

/** Appends the body unchanged after the other fields. base64 needs no escapes, so a large body is not scanned. */
function withBody(message: string, body: JsonBody | undefined): string {
  if (body === undefined) return message
  const open = message.slice(0, -1)
  if (body.isBase64) return `${open},"body":"${body.text}","isBase64Encoded":true}`
  return `${open},"body":${JSON.stringify(body.text)}}`
}

// ── Reading ────────────────────────────────────────────────────────────────────────────────────────────────────

/** Parses a message of a client. `'unknown'` for a type of another version, `undefined` for an invalid message. */
export function parseClientMessage(text: string): JsonClientMessage | 'unknown' | undefined {
  const message = parseMessage(text)
  if (message === undefined) return undefined
  const { subdomain, id } = message
  switch (message.type) {
    case 'ready':
      return isText(subdomain, MAX_NAME_CHARS)
        ? { type: 'ready', subdomain, ...extensionsOf(message.accepts) }
        : undefined
    case 'response':
      return isCount(id) ? { type: 'response', id, answer: answerOf(message) } : undefined
    case 'ping':
      return { type: 'ping' }
    case 'disconnect':
      return { type: 'disconnect', subdomain: isText(subdomain, MAX_NAME_CHARS) ? subdomain : undefined }
    default:
      return 'unknown'
  }
}

/** Parses a message of a server, as `parseClientMessage`. */
export function parseServerMessage(text: string): JsonServerMessage | 'unknown' | undefined {
  const message = parseMessage(text)
  if (message === undefined) return undefined
  const { subdomain, url, id } = message
  switch (message.type) {
    case 'connected': {
      const { originTimeoutMs } = message
      return { type: 'connected', originTimeoutMs: isCount(originTimeoutMs) ? originTimeoutMs : undefined }
    }
    case 'pong':
    case 'subdomain_taken':
      return { type: message.type }
    case 'registered':
      if (!isText(subdomain, MAX_NAME_CHARS) || !GRANTED_NAME.test(subdomain)) return undefined
      return { type: 'registered', subdomain, url: isPublicUrl(url) ? url : undefined }
    case 'error':
      return {
        type: 'error',
        message: typeof message.message === 'string' ? message.message.slice(0, MAX_ERROR_CHARS) : '',
      }
    case 'cancel':
      return isCount(id) ? { type: 'cancel', id } : undefined
    case 'request':
      return requestOf(message)
    default:
      return 'unknown'
  }
}

/** Returns the known extensions, without those of another version. */
function extensionsOf(accepts: unknown): { readonly accepts?: readonly JsonExtension[] } {
  if (!Array.isArray(accepts)) return {}
  const known = EXTENSIONS.filter(one => accepts.includes(one))
  return known.length === 0 ? {} : { accepts: known }
}

const MAX_NAME_CHARS = 255
const GRANTED_NAME = /^[\w.-]+$/
const MAX_ERROR_CHARS = 300
const MAX_CODE_CHARS = 64
/** A pattern for a reason, which is a stranger's text for logs. */
const REASON = /^[\x20-\x7e]{1,200}$/
const MAX_ID_CHARS = 128
const MAX_METHOD_CHARS = 32
const MAX_HEADERS = 1_000

type Fields = Readonly<Record<string, unknown>>

function parseMessage(text: string): Fields | undefined {
  try {
    const value: unknown = text.length < MIN_CUT_CHARS ? JSON.parse(text) : parseLong(text)
    return isObject(value) && typeof value.type === 'string' ? value : undefined
  } catch {
    // Not JSON, or nested beyond the stack.
    return undefined
  }
}

/**
 * Parses a long message. All known ends write the body last, with its mark after it, so it is cut out first. A body
 * in base64 is then neither scanned nor copied, which is half of the server's time for a response of 1 MB.
 */
function parseLong(text: string): unknown {
  const open = text.indexOf(BODY_OPEN)
  const close = CLOSES.find(one => text.endsWith(one))
  if (open === -1 || close === undefined || open > MAX_HEAD_CHARS) return parseWhole(text)
  const start = open + BODY_OPEN.length
  const end = text.length - close.length
  const body = bodyBetween(text, start, end)
  if (body === undefined) return parseWhole(text)
  // The quotes of BODY_OPEN would be escaped in a JSON text, and inside another object this would not parse.
  const rest = parseWhole(`${text.slice(0, open)}}`)
  if (!isObject(rest)) return undefined
  if (close === PLAIN_CLOSE) return { ...rest, body }
  return { ...rest, body, isBase64Encoded: close === BASE64_CLOSE }
}

/** Returns the body between two positions. `undefined` if a quote in it belongs to another field. */
function bodyBetween(text: string, start: number, end: number): string | undefined {
  if (end < start) return undefined
  const isWritten = text.indexOf('"', start) === end && !text.includes('\\', start)
  if (isWritten) return text.slice(start, end)
  try {
    const body: unknown = JSON.parse(text.slice(start - 1, end + 1))
    return typeof body === 'string' ? body : undefined
  } catch {
    return undefined
  }
}

function parseWhole(text: string): unknown {
  return isShallow(text) ? JSON.parse(text) : undefined
}

/**
 * Whether a long message consists of long texts. Nested lists and many small values take a hundred times as long to
 * parse, and no valid message has more of them than headers.
 */
function isShallow(text: string): boolean {
  let depth = 0
  let values = 0
  let isText = false
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code === QUOTE) isText = !isText
    else if (isText) at += code === BACKSLASH ? 1 : 0
    else if (code === COMMA && ++values > MAX_VALUES) return false
    // [ and {, ] and }
    else if ((code | 0x20) === 0x7b && ++depth > MAX_DEPTH) return false
    else if ((code | 0x20) === 0x7d) depth--
  }
  return true
}

const QUOTE = 0x22
const COMMA = 0x2c
const BACKSLASH = 0x5c
const MAX_DEPTH = 16
/** The maximum number of values. Each header may be a list. */
const MAX_VALUES = 20_000

const MIN_CUT_CHARS = 16_384
const BODY_OPEN = ',"body":"'
const PLAIN_CLOSE = '"}'
const BASE64_CLOSE = '","isBase64Encoded":true}'
const CLOSES = [PLAIN_CLOSE, BASE64_CLOSE, '","isBase64Encoded":false}']
/** The maximum length of the text before a body. */
const MAX_HEAD_CHARS = 1_048_576

function requestOf(message: Fields): JsonRequest | undefined {
  const { id, method, path, connection } = message
  if (!isCount(id) && !isText(id, MAX_ID_CHARS)) return undefined
  if (!isText(method, MAX_METHOD_CHARS) || typeof path !== 'string') return undefined
  const headers = headersOf(message.headers)
  const body = bodyOf(message)
  if (headers === undefined || body === undefined) return undefined
  const hasBody = message.body !== undefined && message.body !== null
  const own = isCount(connection) ? { connection } : {}
  const probe = message.probe === true && { isProbe: true as const }
  return { type: 'request', id, method, path, headers, ...own, ...(hasBody && { body }), ...probe }
}

function answerOf(message: Fields): JsonAnswer | undefined {
  const { status, error, reason } = message
  if (typeof status !== 'number' || !Number.isInteger(status) || status < 200 || status > 999)
    return undefined
  const headers = headersOf(message.headers)
  const body = bodyOf(message)
  if (headers === undefined || body === undefined) return undefined
  return {
    status,
    headers,
    body,
    ...(isText(error, MAX_CODE_CHARS) && { error }),
    ...(typeof reason === 'string' && REASON.test(reason) && { reason }),
  }
}

/**
 * Returns the header lines. Existing ends send one string per name; a list of strings counts as several lines, and a
 * number as its text.
 */
function headersOf(value: unknown): HeaderList | undefined {
  if (value === undefined || value === null) return []
  if (!isObject(value)) return undefined
  const list: [string, string][] = []
  for (const [name, given] of Object.entries(value)) {
    const values: readonly unknown[] = Array.isArray(given) ? given : [given]
    for (const one of values) {
      const text = typeof one === 'number' ? String(one) : one
      if (typeof text !== 'string' || !isFieldName(name) || !isFieldValue(text)) return undefined
      if (list.length === MAX_HEADERS) return undefined
      list.push([name, text])
    }
  }
  return list
}

function bodyOf({ body, isBase64Encoded }: Fields): JsonBody | undefined {
  if (body === undefined || body === null) return NO_BODY
  return typeof body === 'string' ? { text: body, isBase64: isBase64Encoded === true } : undefined
}

const NO_BODY: JsonBody = { text: '', isBase64: false }

const FIELD_NAME = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/
/**
 * A pattern for a field value: tab, visible ASCII and obs-text. A line end in a value would let its sender add a
 * header or a body.
 */
const FIELD_VALUE = /^[\t\x20-\x7e\x80-\xff]*$/

export function isFieldName(name: string): boolean {
  return FIELD_NAME.test(name)
}

export function isFieldValue(value: string): boolean {
  return FIELD_VALUE.test(value)
}

function isObject(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function isText(value: unknown, maxChars: number): value is string {
  return typeof value === 'string' && value.length > 0 && value.length <= maxChars
}

function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0
}

// ── Bodies ─────────────────────────────────────────────────────────────────────────────────────────────────────

const encoder = new TextEncoder()
/** Keeps a leading U+FEFF, which is part of the body. */
const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
const NOTHING = new Uint8Array(0)

export function isTextType(contentType: string | undefined): boolean {
  if (contentType === undefined || contentType === '') return false
  const semicolon = contentType.indexOf(';')
  const type = (semicolon === -1 ? contentType : contentType.slice(0, semicolon)).trim().toLowerCase()
  return type.startsWith('text/') || type.endsWith('+json') || type.endsWith('+xml') || TEXT_TYPES.has(type)
}

const TEXT_TYPES: ReadonlySet<string> = new Set([
  'application/json',
  'application/javascript',
  'application/x-javascript',
  'application/xml',
  'application/x-www-form-urlencoded',
])

/** Encodes bytes for a message: as text if the content type is one of text, unless they are not UTF-8 and would be damaged. */
export function encodeBody(bytes: Uint8Array, contentType: string | undefined): JsonBody {
  if (bytes.length === 0) return NO_BODY
  if (isTextType(contentType)) {
    try {
      return { text: decoder.decode(bytes), isBase64: false }
    } catch {
      // Bodies in another charset, and compressed ones, use base64.
    }
  }
  return {
    text: Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('base64'),
    isBase64: true,
  }
}

/** Returns the bytes of a body. `undefined` if it claims to be base64 and is not. */
export function decodeBody({ text, isBase64 }: JsonBody): Uint8Array | undefined {
  if (text === '') return NOTHING
  if (!isBase64) return encoder.encode(text)
  let end = text.length
  while (end > 0 && text.charCodeAt(end - 1) === EQUALS) end--
  if (end % 4 === 1) return undefined
  // Skips characters that are not base64.
  const bytes = Buffer.from(text, 'base64')
  return bytes.length === Math.floor((end * 3) / 4) ? bytes : undefined
}

const EQUALS = 0x3d

/** The response headers that only concern the origin's connection, which no message contains. */
export const LEFT_OUT: ReadonlySet<string> = new Set([
  'connection',
  'content-length',
  'keep-alive',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  // Only servers of a cluster send these, to each other.
  'localtunnels-moved',
])

/** Returns the names in a response's Connection lines, which also concern that connection only (RFC 9110 section 7.6.1). */
export function nominatedBy(headers: HeaderList): ReadonlySet<string> | undefined {
  const options = headers.filter(([name]) => name.toLowerCase() === 'connection').map(([, value]) => value)
  if (options.length === 0) return undefined
  return new Set(options.flatMap(value => value.split(',').map(option => option.trim().toLowerCase())))
}

/** Returns bytes[start, end) as Latin-1 text in 50 ns; a loop takes a microsecond. */
export function latin1Text(bytes: Uint8Array, start: number, end: number): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset + start, end - start).toString('latin1')
}
