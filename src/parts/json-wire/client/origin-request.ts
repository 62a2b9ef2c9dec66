// Turns a request message into HTTP/1.1 for the origin. The server is not trusted: no field may lead to another host.

import type { TunnelSettings } from '../../../client/tunnels/tunnel-settings.ts'
import type { ErrorCode } from '../../../errors.ts'
import type { Rewriting } from '../../../paths/rewriting.ts'
import { decodeBody, type JsonRequest } from '../json.ts'

/** The headers of framing and of the connection, which this client decides. */
const LEFT_OUT: ReadonlySet<string> = new Set([
  'connection',
  'content-length',
  'content_length',
  'expect',
  'host',
  'http2-settings',
  'keep-alive',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'transfer_encoding',
  'upgrade',
])

/** A pattern for paths: without spaces, control characters or a fragment, and beginning with a slash. */
const PATH = /^\/[\x21\x22\x24-\x7e\x80-\xff]*$/
const METHOD = /^[A-Za-z][A-Za-z-]{0,31}$/
/** A pattern for a Host that cannot mean anything else. */
const HOST = /^(?:[\w.-]{1,253}|\[[0-9a-f:.]{2,45}\])(?::\d{1,5})?$/i

/** Returns the bytes for the origin, or why it gets none. */
export function originRequest(
  request: JsonRequest,
  tunnel: TunnelSettings,
  rewriting?: Rewriting,
): Uint8Array | ErrorCode {
  const { method, path, headers, body } = request
  if (!METHOD.test(method) || method.toUpperCase() === 'CONNECT' || !PATH.test(path)) return 'BAD_REQUEST'
  const bytes = body === undefined ? undefined : decodeBody(body)
  if (body !== undefined && bytes === undefined) return 'BAD_REQUEST'
  const publicHost = hostOf(request)
  const { hostHeader, origin } = tunnel
  const target = rewriting === undefined ? path : rewriting.target(path)
  if (target === undefined) return 'FILTERED_OUT'
  let head = `${method} ${target} HTTP/1.1\r\nHost: ${hostHeader ?? publicHost ?? new URL(origin.url).host}\r\n`
  for (const [name, value] of headers) {
    const lower = name.toLowerCase()
    if (LEFT_OUT.has(lower)) continue
    const own =
      publicHost === undefined ? value : (rewriting?.requestValue(lower, value, publicHost) ?? value)
    head += `${name}: ${own}\r\n`
  }
  // For methods that usually have no body, a length is needed only with one (RFC 9110 section 8.6).
  if (bytes !== undefined && (bytes.length > 0 || expectsBody(method)))
    head += `Content-Length: ${bytes.length}\r\n`
  head += '\r\n'
  const whole = Buffer.allocUnsafe(head.length + (bytes?.length ?? 0))
  whole.write(head, 'latin1')
  if (bytes !== undefined) whole.set(bytes, head.length)
  return whole
}

/** Returns the Host that the visitor requested, which this wire only carries in X-Forwarded-Host. */
function hostOf({ headers }: JsonRequest): string | undefined {
  const host = headers.find(([name]) => name.toLowerCase() === 'x-forwarded-host')?.[1]
  return host !== undefined && HOST.test(host) ? host : undefined
}

/** Returns the scheme and host of the visitor. `undefined` if the server does not report them. */
export function originOf(request: JsonRequest): string | undefined {
  const host = hostOf(request)
  const proto = request.headers.find(([name]) => name.toLowerCase() === 'x-forwarded-proto')?.[1]
  return host === undefined ? undefined : `${proto?.toLowerCase() === 'https' ? 'https' : 'http'}://${host}`
}

function expectsBody(method: string): boolean {
  return method === 'POST' || method === 'PUT' || method === 'PATCH'
}
