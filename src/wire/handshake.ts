// The HTTP exchange that opens a WebSocket (RFC 6455 section 4): writes a client's request and reads the response.

/** An upgrade request. Every value goes into the head unchanged: the caller has checked that none can end a line. */
export interface UpgradeRequest {
  readonly host: string
  readonly target: string
  /** The 16 random bytes of the key, in base64. */
  readonly key: string
  readonly protocols: readonly string[]
  readonly headers?: Readonly<Record<string, string>>
}

/** The head of a response, with header names in lower case. Values of a repeated header are joined with a comma. */
export interface AnswerHead {
  readonly status: number
  readonly headers: ReadonlyMap<string, string>
}

/** The maximum length of a response head. */
export const MAX_ANSWER_HEAD_BYTES = 16_384

const WEBSOCKET_GUID = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11'

const encoder = new TextEncoder()
const decoder = new TextDecoder('latin1')

/** Returns the reply to `Sec-WebSocket-Key`, which proves that a server speaks WebSocket and does not replay another response. */
export function acceptKey(key: string, sha1Base64: (text: string) => string): string {
  return sha1Base64(key + WEBSOCKET_GUID)
}

export function encodeUpgradeRequest(request: UpgradeRequest): Uint8Array {
  const { host, target, key, protocols, headers = {} } = request
  const lines = [
    `GET ${target} HTTP/1.1`,
    `Host: ${host}`,
    'Connection: Upgrade',
    'Upgrade: websocket',
    'Sec-WebSocket-Version: 13',
    `Sec-WebSocket-Key: ${key}`,
  ]
  if (protocols.length > 0) lines.push(`Sec-WebSocket-Protocol: ${protocols.join(', ')}`)
  for (const [name, value] of Object.entries(headers)) lines.push(`${name}: ${value}`)
  return encoder.encode(`${lines.join('\r\n')}\r\n\r\n`)
}

/** Returns where the head in `bytes` ends, just after its blank line; -1 if it is incomplete. */
export function endOfHead(bytes: Uint8Array): number {
  for (let at = bytes.indexOf(LF); at !== -1; at = bytes.indexOf(LF, at + 1)) {
    if (bytes[at - 1] === CR && bytes[at - 2] === LF && bytes[at - 3] === CR) return at + 1
  }
  return -1
}

/** Reads a response head, including the blank line. `undefined` if it is not valid HTTP/1.1. */
export function parseAnswerHead(bytes: Uint8Array): AnswerHead | undefined {
  const [first = '', ...lines] = decoder.decode(bytes).slice(0, -4).split('\r\n')
  const status = /^HTTP\/1\.[01] ([1-9]\d\d)(?: [\t\x20-\x7e\x80-\xff]*)?$/.exec(first)?.[1]
  if (status === undefined) return undefined
  const headers = new Map<string, string>()
  for (const line of lines) {
    const field = /^([!#$%&'*+\-.^_`|~0-9A-Za-z]+):[ \t]*([\t\x20-\x7e\x80-\xff]*?)[ \t]*$/.exec(line)
    if (field === null) return undefined
    const name = field[1]!.toLowerCase()
    const earlier = headers.get(name)
    headers.set(name, earlier === undefined ? field[2]! : `${earlier}, ${field[2]}`)
  }
  return { status: Number(status), headers }
}

/**
 * Checks a 101 (section 4.1, steps 2 to 6). Returns the subprotocol that the server chose, `''` for none, and
 * `undefined` for a response that does not match the request.
 */
export function pickedProtocol(
  { status, headers }: AnswerHead,
  accept: string,
  offered: readonly string[],
): string | undefined {
  if (status !== 101) return undefined
  if (headers.get('upgrade')?.toLowerCase() !== 'websocket') return undefined
  const connection = headers.get('connection')?.toLowerCase().split(',') ?? []
  if (!connection.some(option => option.trim() === 'upgrade')) return undefined
  if (headers.get('sec-websocket-accept') !== accept) return undefined
  // We offered no extension, so none may be used: compressed frames would look broken.
  if (headers.has('sec-websocket-extensions')) return undefined
  const protocol = headers.get('sec-websocket-protocol') ?? ''
  return protocol === '' || offered.includes(protocol) ? protocol : undefined
}

const CR = 13
const LF = 10
