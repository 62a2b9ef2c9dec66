// The JSON wire: one text message per request and per answer, as clients and servers before the streams wire speak
// it. Both ends are strangers: everything is checked, and nothing that was not understood is passed on.

/** Longest message that servers on this wire take. */
export const MAX_JSON_MESSAGE_BYTES = 67_108_864

/** Lower-case name and value. Names may repeat here; on the wire they cannot. */
export type JsonHeader = readonly [name: string, value: string]

export interface JsonRequest {
  readonly type: 'request'
  readonly id: number
  readonly method: string
  /** Path and query; begins with a slash, so that it cannot become another host. */
  readonly path: string
  readonly headers: readonly JsonHeader[]
  /** Absent for a request without a body. */
  readonly body?: Uint8Array
}

export interface JsonResponse {
  readonly type: 'response'
  readonly id: number
  readonly status: number
  readonly headers: readonly JsonHeader[]
  readonly body: Uint8Array
}

/** A request or answer that cannot be passed on, with its number: whoever waits for it must be told. */
export interface JsonInvalid {
  readonly type: 'invalid'
  readonly of: 'request' | 'response'
  readonly id: number
}

/** Client to server, in this order of a connection's life. */
export type JsonClientMessage =
  | { readonly type: 'ready'; readonly subdomain: string }
  | JsonResponse
  | { readonly type: 'ping' }
  | { readonly type: 'disconnect'; readonly subdomain: string }

export type JsonServerMessage =
  | { readonly type: 'connected' }
  | { readonly type: 'registered'; readonly subdomain: string; readonly url: string }
  | { readonly type: 'subdomain_taken'; readonly subdomain: string }
  | { readonly type: 'error'; readonly message: string }
  | JsonRequest
  | { readonly type: 'pong' }

export type JsonMessage = JsonClientMessage | JsonServerMessage | JsonInvalid

const MAX_HEADERS = 256
const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]{1,256}$/
/** What RFC 9110 lets a value be: no CR, LF, NUL or other control, and nothing beyond a byte. */
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/
const PATH = /^\/[\x21-\x7e]*$/

const encoder = new TextEncoder()
/** Keeps a byte order mark: bytes that went through text must come out the same. */
const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

// ── Reading ────────────────────────────────────────────────────────────────────────────────────────────────────

/** `undefined` for anything to be ignored: no JSON, an unknown type, a field that is missing or of a wrong kind. */
export function parseJsonMessage(text: string): JsonMessage | undefined {
  const fields = parseFields(text)
  switch (fields?.type) {
    case 'ready':
    case 'disconnect':
    case 'subdomain_taken': {
      const { type, subdomain } = fields
      return isText(subdomain, 253) ? { type, subdomain } : undefined
    }
    case 'registered': {
      const { subdomain, url } = fields
      if (!isText(subdomain, 253) || !isText(url, 2048)) return undefined
      return { type: 'registered', subdomain, url }
    }
    case 'error': {
      const { message } = fields
      return isText(message, 4096) ? { type: 'error', message } : undefined
    }
    case 'connected':
    case 'ping':
    case 'pong':
      return { type: fields.type }
    case 'request':
      return parseRequest(fields)
    case 'response':
      return parseResponse(fields)
    default:
      return undefined
  }
}

type Fields = Readonly<Record<string, unknown>>

function parseFields(text: string): Fields | undefined {
  try {
    const value: unknown = JSON.parse(text)
    // Without a prototype, so that `__proto__` and `constructor` are names like any other.
    return isObject(value) ? Object.assign(Object.create(null) as Fields, value) : undefined
  } catch {
    // Not JSON: the protocol says to ignore it.
    return undefined
  }
}

function parseRequest(fields: Fields): JsonRequest | JsonInvalid | undefined {
  const { id, method, path, body } = fields
  if (!isId(id)) return undefined
  const headers = parseHeaders(fields.headers)
  const bytes = parseBody(body, fields.isBase64Encoded)
  if (!isToken(method) || typeof path !== 'string' || !PATH.test(path) || !headers || !bytes) {
    return { type: 'invalid', of: 'request', id }
  }
  return { type: 'request', id, method, path, headers, ...(isPresent(body) && { body: bytes }) }
}

function parseResponse(fields: Fields): JsonResponse | JsonInvalid | undefined {
  const { id, status } = fields
  if (!isId(id)) return undefined
  const headers = parseHeaders(fields.headers)
  const body = parseBody(fields.body, fields.isBase64Encoded)
  if (!isStatus(status) || !headers || !body) return { type: 'invalid', of: 'response', id }
  return { type: 'response', id, status, headers, body }
}

function parseHeaders(value: unknown): readonly JsonHeader[] | undefined {
  if (!isPresent(value)) return []
  if (!isObject(value)) return undefined
  const headers: JsonHeader[] = []
  for (const [name, text] of Object.entries(value)) {
    if (!TOKEN.test(name) || typeof text !== 'string' || !VALUE.test(text)) return undefined
    headers.push([name.toLowerCase(), text])
  }
  return headers.length <= MAX_HEADERS ? headers : undefined
}

function parseBody(body: unknown, isBase64Encoded: unknown): Uint8Array | undefined {
  if (!isPresent(body)) return new Uint8Array(0)
  if (typeof body !== 'string') return undefined
  if (isBase64Encoded !== true)
    return isPresent(isBase64Encoded) && isBase64Encoded !== false ? undefined : encoder.encode(body)
  const bytes = Buffer.from(body, 'base64')
  // Buffer skips what is not base64: then there are fewer bytes than the text is long for.
  const padding = body.endsWith('==') ? 2 : body.endsWith('=') ? 1 : 0
  return bytes.length === (body.length / 4) * 3 - padding ? bytes : undefined
}

const isPresent = (value: unknown): boolean => value !== undefined && value !== null
const isObject = (value: unknown): value is object =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
const isText = (value: unknown, most: number): value is string =>
  typeof value === 'string' && value.length > 0 && value.length <= most
const isToken = (value: unknown): value is string => typeof value === 'string' && TOKEN.test(value)
/** A number: existing clients ignore a string. */
const isId = (value: unknown): value is number => Number.isSafeInteger(value) && Number(value) >= 0
/** 1xx are not answers. */
const isStatus = (value: unknown): value is number =>
  Number.isInteger(value) && Number(value) >= 200 && Number(value) <= 599

// ── Writing ────────────────────────────────────────────────────────────────────────────────────────────────────

/** Encodes any message but an invalid one. */
export function encodeJsonMessage(message: JsonClientMessage | JsonServerMessage): string {
  switch (message.type) {
    case 'request':
    case 'response': {
      const { headers, body, ...rest } = message
      const type = headers.find(([name]) => name.toLowerCase() === 'content-type')?.[1]
      return JSON.stringify({
        ...rest,
        headers: collapseHeaders(headers),
        ...(body !== undefined && encodeBody(body, type)),
      })
    }
    default:
      return JSON.stringify(message)
  }
}

/**
 * One string per name, which is all that this wire has. Repeats are joined as RFC 9110 section 5.3 allows; of several
 * Set-Cookie, which cannot be joined, the last one is kept, as existing ends do.
 */
export function collapseHeaders(headers: readonly JsonHeader[]): Readonly<Record<string, string>> {
  const collapsed = Object.create(null) as Record<string, string>
  for (const [rawName, value] of headers) {
    const name = rawName.toLowerCase()
    const earlier = collapsed[name]
    collapsed[name] =
      earlier === undefined || name === 'set-cookie'
        ? value
        : `${earlier}${name === 'cookie' ? '; ' : ', '}${value}`
  }
  return collapsed
}

/** As text if the content type says text and the bytes are UTF-8, else in base64: latin-1 pages stay what they are. */
export function encodeBody(
  body: Uint8Array,
  contentType: string | undefined,
): { readonly body: string; readonly isBase64Encoded?: true } {
  if (body.length === 0) return { body: '' }
  const text = isTextType(contentType ?? '') ? decodeText(body) : undefined
  if (text !== undefined) return { body: text }
  return {
    body: Buffer.from(body.buffer, body.byteOffset, body.length).toString('base64'),
    isBase64Encoded: true,
  }
}

function isTextType(contentType: string): boolean {
  const [type = ''] = contentType.toLowerCase().split(';')
  return /^(?:text\/.*|.*\+(?:json|xml)|application\/(?:json|javascript|x-javascript|xml|x-www-form-urlencoded))$/.test(
    type.trim(),
  )
}

function decodeText(bytes: Uint8Array): string | undefined {
  try {
    return decoder.decode(bytes)
  } catch {
    // Not UTF-8, whatever the content type says: base64 carries it unharmed.
    return undefined
  }
}
