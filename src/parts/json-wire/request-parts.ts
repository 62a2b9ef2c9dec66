// A visitor's request as the JSON wire tells it: forwarded like any other, then taken apart into a path and pairs.

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

/** The content of a message about a request, without its body. */
export interface RequestParts {
  readonly path: string
  readonly headers: HeaderList
}

/** The message frames the body, the connection to the origin is the client's, and Host is in X-Forwarded-Host. */
const LEFT_OUT: ReadonlySet<number> = new Set([
  HOST,
  CONNECTION,
  UPGRADE,
  TE,
  EXPECT,
  CONTENT_LENGTH,
  TRANSFER_ENCODING,
])
/** Lines that forwarding may add. */
const MAX_ADDED_LINES = 8

// Shared by all requests: one is taken apart within one call.
let scratch = new Uint8Array(16_384)
const fields = new Fields()

/** Returns the parts. `undefined` for `OPTIONS *`: a path of this wire begins with a slash, whatever clients make of others. */
export function requestParts(visit: Visit, keepsRawPath: boolean): RequestParts | undefined {
  const { head } = visit
  const needed = maxForwardedBytes(head.end - head.start)
  if (scratch.length < needed) scratch = new Uint8Array(needed)
  const end = forwardRequestHead(head, visit.hop(undefined), scratch, 0)
  // One string for the whole head, of which the others are slices: a byte's offset is its character's.
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

/** Escapes raw bytes above ASCII, which would become other bytes in the URL of an existing client. */
function escaped(path: string): string {
  if (!/[\x80-\xff]/.test(path)) return path
  return path.replace(/[\x80-\xff]/g, byte => `%${byte.charCodeAt(0).toString(16).toUpperCase()}`)
}
