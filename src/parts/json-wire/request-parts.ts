// Turns a visitor's request into its form on the JSON wire: forwarded like any other, then divided into a path and pairs.

import {
  CONNECTION,
  CONTENT_LENGTH,
  EXPECT,
  HOST,
  TE,
  TRANSFER_ENCODING,
  UPGRADE,
} from '../../http/field-names.ts'
import { Fields } from '../../http/fields.ts'
import { forwardRequestHead, maxForwardedBytes } from '../../http/forward.ts'
import type { Visit } from '../../server/contracts/upstream.ts'
import type { HeaderList } from './json.ts'
import { latin1Text } from './json.ts'

/** The content of a request message, without its body. */
export interface RequestParts {
  readonly path: string
  readonly headers: HeaderList
}

/**
 * The header kinds that are left out: the message frames the body, the connection to the origin is the client's, and
 * Host is in X-Forwarded-Host.
 */
const LEFT_OUT: ReadonlySet<number> = new Set([
  HOST,
  CONNECTION,
  UPGRADE,
  TE,
  EXPECT,
  CONTENT_LENGTH,
  TRANSFER_ENCODING,
])
/** The number of lines that forwarding may add. */
const MAX_ADDED_LINES = 8

// Shared by all requests, because each is handled within one call.
let scratch = new Uint8Array(16_384)
const fields = new Fields()

/**
 * Returns the parts. `undefined` for `OPTIONS *`: a path of this wire begins with a slash, and clients read others differently.
 */
export function requestParts(visit: Visit, keepsRawPath: boolean): RequestParts | undefined {
  const { head } = visit
  const needed = maxForwardedBytes(head.end - head.start)
  if (scratch.length < needed) scratch = new Uint8Array(needed)
  const end = forwardRequestHead(head, visit.hop(undefined), scratch, 0)
  // One string for the whole head; the others are slices of it, because offsets of bytes and characters are equal.
  const text = latin1Text(scratch, 0, end)
  const pathStart = text.indexOf(' ') + 1
  const path = text.slice(pathStart, text.indexOf(' ', pathStart))
  if (path === '*') return undefined
  fields.begin(scratch, text.indexOf('\n') + 1)
  fields.scan(scratch, fields.nextLine, end, head.headerCount + MAX_ADDED_LINES)
  const headers: [string, string][] = []
  for (let line = 0; line < fields.count; line++) {
    if (LEFT_OUT.has(fields.kind(line))) continue
    const nameStart = fields.lineStart(line)
    headers.push([
      text.slice(nameStart, text.indexOf(':', nameStart)),
      text.slice(fields.valueStart(line), fields.valueEnd(line)),
    ])
  }
  return { path: keepsRawPath ? path : escaped(path), headers }
}

/** Escapes raw bytes above ASCII, which an existing client would turn into other bytes in its URL. */
function escaped(path: string): string {
  if (!/[\x80-\xff]/.test(path)) return path
  return path.replace(/[\x80-\xff]/g, byte => `%${byte.charCodeAt(0).toString(16).toUpperCase()}`)
}
